//! Random operations on every backend give what a plain model gives.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;

use crate::base::tasks::Tasks;
use crate::store::cache::CacheBounds;
use crate::store::coordinate::Coordinator;
use crate::store::error::StoreError;
use crate::store::jsonl::{Encoding, Options};
use crate::store::log::{LogId, LogKind, Record, Removed};
use crate::store::seam::{Durability, LogStore, LogWriter, SyncMode};
use crate::store::sqlite;
use crate::testing::store::{ENCODINGS, Home, in_encoding, memory_store, records, turn};

/// So few logs that operations meet.
const LOGS: usize = 3;

#[derive(Clone, Copy, Debug)]
enum Op {
    Create(usize, usize),
    Open(usize),
    Append(usize, usize, Durability),
    Close(usize),
    Drop(usize),
    Inspect(usize),
    Scan(usize),
    ReadFrom(usize, u64),
    List,
    Snapshots,
    Flush,
    Remove(usize),
    Restore(usize),
    Destroy(usize),
    ListRemoved,
}

/// What an operation gives, without what backends may choose.
#[derive(Clone, Debug, PartialEq)]
enum Answer {
    Done,
    Records(Vec<Record>),
    Logs(Vec<LogId>),
    Refused(&'static str),
    /// There is no such writer or removal to do it with.
    Nothing,
}

fn op() -> impl Strategy<Value = Op> {
    let log = 0..LOGS;
    let durability = prop_oneof![Just(Durability::Written), Just(Durability::Barrier)];
    prop_oneof![
        3 => (log.clone(), 0..3_usize).prop_map(|(log, size)| Op::Create(log, size)),
        3 => log.clone().prop_map(Op::Open),
        6 => (log.clone(), 0..4_usize, durability).prop_map(|(log, size, d)| Op::Append(log, size, d)),
        1 => log.clone().prop_map(Op::Close),
        1 => log.clone().prop_map(Op::Drop),
        2 => log.clone().prop_map(Op::Inspect),
        1 => log.clone().prop_map(Op::Scan),
        1 => (log.clone(), 0..6_u64).prop_map(|(log, seq)| Op::ReadFrom(log, seq)),
        1 => Just(Op::List),
        1 => Just(Op::Snapshots),
        1 => Just(Op::Flush),
        2 => log.prop_map(Op::Remove),
        2 => (0..3_usize).prop_map(Op::Restore),
        1 => (0..3_usize).prop_map(Op::Destroy),
        1 => Just(Op::ListRemoved),
    ]
}

/// A store with its writers and what was removed from it.
struct Real<S> {
    store: S,
    writers: BTreeMap<usize, Box<dyn LogWriter>>,
    removed: Vec<Removed>,
    /// Numbers all records, so that no two are equal.
    next: usize,
}

impl<S: LogStore> Real<S> {
    fn new(store: S) -> Self {
        Self { store, writers: BTreeMap::new(), removed: Vec::new(), next: 0 }
    }

    async fn apply(&mut self, op: Op) -> Answer {
        match op {
            Op::Create(log, size) => {
                let batch = self.batch(size);
                let created = self.store.create(&turn(log), &batch).await;
                self.keep(log, created)
            }
            Op::Open(log) => {
                let opened = self.store.open(&turn(log)).await;
                self.keep(log, opened)
            }
            Op::Append(log, size, durability) => {
                let batch = self.batch(size);
                let Some(writer) = self.writers.get_mut(&log) else { return Answer::Nothing };
                done(writer.append(&batch, durability).await)
            }
            Op::Close(log) => match self.writers.remove(&log) {
                Some(writer) => done(writer.close().await),
                None => Answer::Nothing,
            },
            Op::Drop(log) => self.writers.remove(&log).map_or(Answer::Nothing, |_| Answer::Done),
            Op::Flush => self.store.flush(None).await.map_or(Answer::Nothing, |()| Answer::Done),
            Op::Inspect(_) | Op::Scan(_) | Op::ReadFrom(..) | Op::List | Op::Snapshots => {
                self.look(op).await
            }
            Op::Remove(_) | Op::Restore(_) | Op::Destroy(_) | Op::ListRemoved => {
                self.move_about(op).await
            }
        }
    }

    async fn look(&self, op: Op) -> Answer {
        match op {
            Op::Inspect(log) => {
                let read = self.store.inspect(&turn(log)).await;
                answer(read.map(|read| Answer::Records(read.records.clone())))
            }
            Op::Scan(log) => answer(
                self.store
                    .scan(&turn(log))
                    .map(|read| Answer::Records(read.records().expect("every line is a record"))),
            ),
            Op::ReadFrom(log, seq) => {
                answer(self.store.read_from(&turn(log), seq).await.map(Answer::Records))
            }
            Op::Snapshots => {
                let snapshots = self.store.snapshots(LogKind::Turn).await;
                let firsts = snapshots.map(|all| all.into_iter().flatten().map(|one| one.first));
                answer(firsts.map(|firsts| Answer::Records(firsts.collect())))
            }
            _ => answer(self.store.list(LogKind::Turn).await.map(Answer::Logs)),
        }
    }

    async fn move_about(&mut self, op: Op) -> Answer {
        match op {
            Op::Remove(log) => match self.store.remove(&turn(log)).await {
                Ok(removed) => {
                    self.removed.push(removed);
                    Answer::Done
                }
                Err(error) => Answer::Refused(kind(&error)),
            },
            Op::Restore(number) => match self.removed.get(number) {
                Some(removed) => done(self.store.restore(removed).await),
                None => Answer::Nothing,
            },
            Op::Destroy(number) => match self.removed.get(number) {
                Some(removed) => done(self.store.destroy(removed).await),
                None => Answer::Nothing,
            },
            _ => {
                let mut logs: Vec<_> = self
                    .store
                    .removed()
                    .await
                    .expect("listed")
                    .into_iter()
                    .map(|one| one.log)
                    .collect();
                logs.sort();
                Answer::Logs(logs)
            }
        }
    }

    fn batch(&mut self, size: usize) -> Vec<Record> {
        let batch = records(self.next..self.next + size);
        self.next += size;
        batch
    }

    fn keep(&mut self, log: usize, writer: Result<Box<dyn LogWriter>, StoreError>) -> Answer {
        match writer {
            Ok(writer) => {
                self.writers.insert(log, writer);
                Answer::Done
            }
            Err(error) => Answer::Refused(kind(&error)),
        }
    }
}

fn done<T>(outcome: Result<T, StoreError>) -> Answer {
    answer(outcome.map(|_| Answer::Done))
}

fn answer(outcome: Result<Answer, StoreError>) -> Answer {
    outcome.unwrap_or_else(|error| Answer::Refused(kind(&error)))
}

fn kind(error: &StoreError) -> &'static str {
    match error {
        StoreError::NotFound(_) => "not found",
        StoreError::AlreadyExists(_) => "exists",
        StoreError::AlreadyOwned(_) => "owned",
        StoreError::NoFirstRecord(_) => "no first record",
        other => panic!("{other}"),
    }
}

/// What a store of logs is, without anything that makes it one.
#[derive(Default)]
struct Model {
    logs: BTreeMap<usize, Vec<Record>>,
    owned: Vec<usize>,
    removed: Vec<Option<(usize, Vec<Record>)>>,
    next: usize,
}

impl Model {
    fn apply(&mut self, op: Op) -> Answer {
        match op {
            Op::Create(log, size) => {
                let batch = self.batch(size);
                if size == 0 {
                    return Answer::Refused("no first record");
                }
                if self.logs.contains_key(&log) {
                    return Answer::Refused("exists");
                }
                self.logs.insert(log, batch);
                self.owned.push(log);
                Answer::Done
            }
            Op::Open(log) => self.free(log, |model| model.owned.push(log)),
            Op::Append(log, size, _) => {
                let batch = self.batch(size);
                if !self.owned.contains(&log) {
                    return Answer::Nothing;
                }
                self.logs.get_mut(&log).expect("owned").extend(batch);
                Answer::Done
            }
            Op::Close(log) | Op::Drop(log) => {
                let before = self.owned.len();
                self.owned.retain(|owned| *owned != log);
                if self.owned.len() < before { Answer::Done } else { Answer::Nothing }
            }
            Op::Flush => Answer::Done,
            Op::Inspect(log) | Op::Scan(log) => self.read(log, 0),
            Op::ReadFrom(log, seq) => self.read(log, usize::try_from(seq).expect("small")),
            Op::List => Answer::Logs(self.sorted().map(|(log, _)| log).collect()),
            Op::Snapshots => {
                Answer::Records(self.sorted().map(|(_, all)| all[0].clone()).collect())
            }
            Op::Remove(log) => self.free(log, |model| {
                let records = model.logs.remove(&log).expect("there");
                model.removed.push(Some((log, records)));
            }),
            Op::Restore(number) => match self.removed.get_mut(number) {
                None => Answer::Nothing,
                Some(None) => Answer::Refused("not found"),
                Some(Some((log, _))) if self.logs.contains_key(log) => Answer::Refused("exists"),
                Some(kept) => {
                    self.logs.extend(kept.take());
                    Answer::Done
                }
            },
            Op::Destroy(number) => match self.removed.get_mut(number) {
                None => Answer::Nothing,
                Some(kept) if kept.is_none() => Answer::Refused("not found"),
                Some(kept) => {
                    *kept = None;
                    Answer::Done
                }
            },
            Op::ListRemoved => {
                let mut logs: Vec<_> =
                    self.removed.iter().flatten().map(|(log, _)| turn(*log)).collect();
                logs.sort();
                Answer::Logs(logs)
            }
        }
    }

    fn free(&mut self, log: usize, act: impl FnOnce(&mut Self)) -> Answer {
        if !self.logs.contains_key(&log) {
            return Answer::Refused("not found");
        }
        if self.owned.contains(&log) {
            return Answer::Refused("owned");
        }
        act(self);
        Answer::Done
    }

    fn read(&self, log: usize, from: usize) -> Answer {
        match self.logs.get(&log) {
            Some(records) => Answer::Records(records.get(from..).unwrap_or_default().to_vec()),
            None => Answer::Refused("not found"),
        }
    }

    fn sorted(&self) -> impl Iterator<Item = (LogId, &Vec<Record>)> {
        let logs: BTreeMap<_, _> = self.logs.iter().map(|(log, all)| (turn(*log), all)).collect();
        logs.into_iter()
    }

    fn batch(&mut self, size: usize) -> Vec<Record> {
        let batch = records(self.next..self.next + size);
        self.next += size;
        batch
    }
}

async fn check<S: LogStore>(store: S, ops: &[Op]) {
    let (mut real, mut model) = (Real::new(store), Model::default());
    for (number, op) in ops.iter().enumerate() {
        let (found, expected) = (real.apply(*op).await, model.apply(*op));
        assert_eq!(found, expected, "operation {number}, {op:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_backend_answers_as_the_model(ops in proptest::collection::vec(op(), 1..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            check(memory_store(), &ops).await;
            let cache = CacheBounds { logs_max: 2, bytes_max: 1_500 };
            for encoding in ENCODINGS {
                let options = Options { sync: SyncMode::Barrier, cache, ..in_encoding(encoding) };
                check(Home::new().store(options), &ops).await;
            }
            let options = sqlite::Options { sync: SyncMode::Never, cache };
            check(Home::new().database(options), &ops).await;
            let files = Home::new().store(Options { cache, ..in_encoding(Encoding::Frames) });
            check(Coordinator::new(Arc::new(files), Tasks::new()), &ops).await;
        });
    }
}
