//! Logs in files on a disk that fails: once or for good, at every call of a workload.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

use crate::store::error::StoreError;
use crate::store::jsonl::{Encoding, Store};
use crate::store::log::Record;
use crate::store::seam::{Durability, LogStore as _, LogWriter};
use crate::testing::disk::{EINTR, EIO, ENOSPC, Fault, Plan};
use crate::testing::store::{ENCODINGS, Home, encoded, in_encoding, records, turn};

const FAULTS: [Fault; 5] = [
    Fault::Error(ENOSPC),
    Fault::Error(EIO),
    Fault::HalfThenError(ENOSPC),
    Fault::Half,
    Fault::Error(EINTR),
];

/// What is done to a log: batches of so many records, and barriers.
const WORKLOAD: [(usize, Durability); 5] = [
    (1, Durability::Written),
    (2, Durability::Barrier),
    (1, Durability::Written),
    (2, Durability::Written),
    (1, Durability::Barrier),
];

/// A log being written, and what was acknowledged of it.
pub(super) struct Run {
    encoding: Encoding,
    pub(super) home: Home,
    pub(super) store: Store,
    pub(super) writer: Option<Box<dyn LogWriter>>,
    pub(super) acked: Vec<Record>,
}

impl Run {
    pub(super) fn new() -> Self {
        Self::of(Encoding::Lines)
    }

    pub(super) fn of(encoding: Encoding) -> Self {
        let home = Home::new();
        let store = home.store(in_encoding(encoding));
        Self { encoding, home, store, writer: None, acked: Vec::new() }
    }

    pub(super) fn file(&self) -> PathBuf {
        self.home.file_in(self.encoding, &turn(0))
    }

    fn batch(&self, size: usize) -> Vec<Record> {
        records(self.acked.len()..self.acked.len() + size)
    }

    pub(super) async fn create(&mut self) -> Result<(), StoreError> {
        let batch = self.batch(2);
        self.writer = Some(self.store.create(&turn(0), &batch).await?);
        self.acked = batch;
        Ok(())
    }

    pub(super) async fn append(
        &mut self,
        size: usize,
        durability: Durability,
    ) -> Result<(), StoreError> {
        let batch = self.batch(size);
        self.writer.as_mut().expect("created").append(&batch, durability).await?;
        self.acked.extend(batch);
        Ok(())
    }

    /// Nothing but what was acknowledged is seen in this process.
    pub(super) async fn check_acked(&self) {
        match self.store.inspect(&turn(0)).await {
            Ok(read) => assert_eq!((&read.records, read.torn), (&self.acked, None)),
            Err(StoreError::NotFound(_)) => assert_eq!(self.acked, []),
            Err(error) => panic!("{error}"),
        }
    }

    /// What a process that starts now can make of it: what was acknowledged and perhaps whole
    /// records of the batch of `attempted` that was not.
    pub(super) async fn check_restart(&self, attempted: usize) {
        let store = self.home.store(in_encoding(self.encoding));
        let whole = records(0..self.acked.len() + attempted);
        let found = match store.open(&turn(0)).await {
            Ok(_writer) => store.inspect(&turn(0)).await.expect("readable").records.clone(),
            Err(StoreError::NotFound(_)) => Vec::new(),
            Err(error) => panic!("{error}"),
        };
        let (least, most) = (self.acked.len(), whole.len());
        assert!((least..=most).contains(&found.len()) && whole.starts_with(&found), "{found:?}");
    }
}

pub(super) fn once(from: u64, fault: Fault) -> Plan {
    Plan { only: None, from, times: 1, fault }
}

#[tokio::test]
async fn after_one_fault_anywhere_nothing_is_left_and_the_same_batch_can_be_given_again() {
    for (encoding, fault) in in_every_encoding(FAULTS) {
        let mut failures = 0;
        for from in 0.. {
            let mut run = Run::of(encoding);
            let before = run.home.disk.calls().len() as u64;
            run.home.disk.fail(once(from, fault));
            if run.create().await.is_err() {
                failures += 1;
                run.check_acked().await;
                run.create().await.expect("the fault is over");
            }
            for (size, durability) in WORKLOAD {
                if run.append(size, durability).await.is_err() {
                    failures += 1;
                    run.check_acked().await;
                    run.append(size, durability).await.expect("the fault is over");
                }
            }
            let closed = run.writer.take().expect("created").close().await;
            if closed.is_err() {
                run.store.flush(None).await.expect("the fault is over");
            }
            let made = run.home.disk.calls().len() as u64 - before;
            run.home.disk.heal();
            run.check_acked().await;
            run.check_restart(0).await;
            if from > made {
                break;
            }
        }
        assert!(failures > 0 || matches!(fault, Fault::Half), "{fault:?} was never seen");
    }
}

/// The workload on a disk whose calls all fail from number `from` on, up to the first error; how
/// many records were attempted then, and whether all went well. Then the disk works again.
async fn run_into(encoding: Encoding, fault: Fault, from: u64) -> (Run, usize, bool) {
    let mut run = Run::of(encoding);
    run.home.disk.fail(Plan { times: u64::MAX, ..once(from, fault) });
    let mut attempted = 2;
    let mut outcome = run.create().await;
    for (size, durability) in WORKLOAD {
        if outcome.is_ok() {
            attempted = size;
            outcome = run.append(size, durability).await;
        }
    }
    drop(run.writer.take());
    run.home.disk.heal();
    (run, attempted, outcome.is_ok())
}

/// A signal is a moment's matter; no fault of a device.
fn lasting_faults() -> impl Iterator<Item = Fault> {
    FAULTS.into_iter().filter(|fault| *fault != Fault::Error(EINTR))
}

fn in_every_encoding(
    faults: impl IntoIterator<Item = Fault>,
) -> impl Iterator<Item = (Encoding, Fault)> {
    faults.into_iter().flat_map(|fault| ENCODINGS.map(|encoding| (encoding, fault)))
}

#[tokio::test]
async fn after_a_fault_that_stays_a_restart_finds_what_was_acknowledged() {
    for (encoding, fault) in in_every_encoding(lasting_faults()) {
        for from in 0.. {
            let (run, attempted, went_well) = run_into(encoding, fault, from).await;
            run.check_restart(attempted).await;
            if went_well {
                break;
            }
        }
    }
}

#[tokio::test]
async fn after_a_fault_that_stays_the_next_writer_goes_on_where_the_last_one_was() {
    for (encoding, fault) in in_every_encoding(lasting_faults()) {
        for from in 0.. {
            let (mut run, _, went_well) = run_into(encoding, fault, from).await;
            if run.acked.is_empty() {
                // Whether a creation that could not be undone happened is for the disk to say.
                run.acked = match run.store.inspect(&turn(0)).await {
                    Ok(read) => read.records.clone(),
                    Err(_) => continue,
                };
                assert_eq!(run.acked, records(0..2));
            }
            run.check_acked().await;
            run.writer = Some(run.store.open(&turn(0)).await.expect("free"));
            run.check_acked().await;
            run.append(3, Durability::Barrier).await.expect("the disk works");
            run.check_acked().await;
            run.check_restart(0).await;
            if went_well {
                break;
            }
        }
    }
}

#[tokio::test]
async fn a_creation_that_failed_leaves_no_file() {
    for from in 0.. {
        let mut run = Run::new();
        run.home.disk.fail(once(from, Fault::Error(ENOSPC)));
        let created = run.create().await;
        run.home.disk.heal();
        let folder = run.file().parent().expect("a folder").to_path_buf();
        let files = fs::read_dir(folder).map_or(0, Iterator::count);
        match created {
            // A temporary file may stay if its removal is what failed.
            Ok(()) if files == 1 || files == 2 => {}
            Err(_) if files == 0 => {}
            _ => panic!("call {from}: {created:?}, {files} files"),
        }
        if created.is_ok() && from > 20 {
            break;
        }
    }
}

/// So many that a frame of them delivers whole lines before it is cut.
const TORN_RECORDS: usize = 6_000;

/// A log of two records with a torn end, and that end.
async fn torn(encoding: Encoding) -> (Run, Vec<u8>) {
    let mut run = Run::of(encoding);
    run.create().await.expect("created");
    drop(run.writer.take());
    let attempted = records(2..2 + TORN_RECORDS);
    let lines: Vec<_> = attempted.iter().flat_map(|it| [it.as_bytes(), b"\n"].concat()).collect();
    let mut torn = encoded(encoding, &lines);
    torn.truncate(torn.len() * 2 / 3);
    let mut file = fs::OpenOptions::new().append(true).open(run.file()).expect("there");
    file.write_all(&torn).expect("torn");
    (run, torn)
}

/// The records of the log once it has been opened for writing.
async fn repaired(run: &Run) -> Vec<Record> {
    let store = run.home.store(in_encoding(run.encoding));
    drop(store.open(&turn(0)).await.expect("free"));
    store.inspect(&turn(0)).await.expect("readable").records.clone()
}

#[tokio::test]
async fn a_repair_that_a_crash_ends_anywhere_loses_no_record_that_it_would_have_recovered() {
    for encoding in ENCODINGS {
        let whole = repaired(&torn(encoding).await.0).await;
        assert!(whole.len() > TORN_RECORDS / 4, "{} records", whole.len());
        for from in 0.. {
            let (run, torn) = torn(encoding).await;
            let dead = Plan { times: u64::MAX, ..once(from, Fault::Error(EIO)) };
            run.home.disk.fail(dead);
            let opened = run.store.open(&turn(0)).await;
            run.home.disk.heal();
            assert_eq!(repaired(&run).await, whole, "dead from call {from} on");
            check_kept(&run, &torn);
            if opened.is_ok() {
                break;
            }
        }
    }
}

#[tokio::test]
async fn a_repair_that_fails_anywhere_destroys_nothing_and_can_be_done_again() {
    for (encoding, fault) in in_every_encoding(FAULTS) {
        for from in 0.. {
            let (run, torn) = torn(encoding).await;
            let before = run.home.disk.calls().len() as u64;
            run.home.disk.fail(once(from, fault));
            drop(run.store.open(&turn(0)).await);
            run.home.disk.heal();
            let made = run.home.disk.calls().len() as u64 - before;
            run.check_restart(TORN_RECORDS).await;
            check_kept(&run, &torn);
            if from > made {
                break;
            }
        }
    }
}

/// What was torn is beside the log, but for lines that count.
fn check_kept(run: &Run, torn: &[u8]) {
    let folder = run.file().parent().expect("a folder").to_path_buf();
    let kept = fs::read_dir(folder).expect("listed").any(|entry| {
        let kept = fs::read(entry.expect("listed").path()).expect("readable");
        !kept.is_empty() && torn.ends_with(&kept)
    });
    assert!(kept, "nothing of the torn end is kept");
}
