//! The process that is killed: writes several logs at once until then, and says each step before and
//! after it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use futures_util::FutureExt as _;
use turnstile::base::tasks::Tasks;
use turnstile::store::coordinate::Coordinator;
use turnstile::store::error::StoreError;
use turnstile::store::format::Format;
use turnstile::store::log::{LogKind, Record, Removed};
use turnstile::store::seam::{Durability, LogStore, LogWriter};
use turnstile::testing::beside;
use turnstile::testing::seed::Seed;

use crate::backend::{FORMATS, log_of, open, record};
use crate::other::{begin, say, this_program, told};
use crate::told::{BIG, READY, Told, What};

/// How many logs are written at once, each by a task of its own.
const TASKS: usize = 3;
/// How many logs each task has.
const LOGS_OF_TASK: usize = 3;
/// From how many bytes on a batch is one in whose writing a kill is likely to fall.
const BIG_BYTES: usize = 256 * 1024;
/// How many logs there are.
pub(crate) const LOGS: usize = TASKS * LOGS_OF_TASK;

const FOLDER: &str = "TURNSTILE_TEST_FOLDER";
const FORMAT: &str = "TURNSTILE_TEST_FORMAT";
const SEAM: &str = "TURNSTILE_TEST_SEAM";
const ROUND: &str = "TURNSTILE_TEST_ROUND";
const CHANCE: &str = "TURNSTILE_TEST_CHANCE";

/// What stands between the writers and the backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seam {
    Bare,
    /// As in the program.
    Coordinated,
}

/// What a process is to do.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    pub(crate) folder: PathBuf,
    pub(crate) format: Format,
    pub(crate) seam: Seam,
    pub(crate) round: u64,
    /// Draws the work.
    pub(crate) chance: u64,
}

impl Order {
    pub(crate) fn command(&self) -> Command {
        let mut command = this_program("writer::another_process_writes_until_it_is_killed");
        command
            .env(FOLDER, &self.folder)
            .env(FORMAT, self.format.name())
            .env(SEAM, format!("{:?}", self.seam))
            .env(ROUND, self.round.to_string())
            .env(CHANCE, self.chance.to_string());
        command
    }

    fn given() -> Option<Self> {
        let folder = told(FOLDER)?.into();
        let number = |name| told(name).and_then(|text| text.parse().ok()).expect("a number");
        let (format, seam) = (told(FORMAT), told(SEAM).expect("it is given"));
        let format = FORMATS.into_iter().find(|it| Some(it.name()) == format.as_deref());
        Some(Self {
            folder,
            format: format.expect("one of ours"),
            seam: if seam == "Bare" { Seam::Bare } else { Seam::Coordinated },
            round: number(ROUND),
            chance: number(CHANCE),
        })
    }
}

/// The logs of a folder behind this seam.
pub(crate) fn behind(folder: &Path, format: Format, seam: Seam) -> Arc<dyn LogStore> {
    let store = open(folder, format);
    match seam {
        Seam::Bare => store,
        Seam::Coordinated => Arc::new(Coordinator::new(store, Tasks::new())),
    }
}

/// Is run by other tests, as another process; by itself it does nothing.
#[test]
fn another_process_writes_until_it_is_killed() {
    let Some(order) = Order::given() else { return };
    begin();
    beside::runtime().block_on(write(&order));
}

async fn write(order: &Order) {
    let store = behind(&order.folder, order.format, order.seam);
    let mut states = look(&store).await;
    say(READY);
    let tasks = (0..TASKS).map(|task| {
        let first = task * LOGS_OF_TASK;
        let logs = (first..first + LOGS_OF_TASK).map(|log| (log, states.remove(&log)));
        Writing {
            store: Arc::clone(&store),
            seam: order.seam,
            round: order.round,
            seed: Seed::new(order.chance ^ (task as u64) << 32),
            logs: logs.map(|(log, state)| (log, state.unwrap_or(State::Absent))).collect(),
        }
        .go_on()
    });
    let tasks = tasks.collect::<Vec<_>>();
    let all = Tasks::new();
    let all = tasks.into_iter().map(|task| all.spawn("write", task));
    futures_util::future::join_all(all).await;
}

/// How a log is.
enum State {
    Absent,
    Free,
    Open(Box<dyn LogWriter>),
    Removed(Removed),
}

/// Finds every log, and says of each how many records it has.
async fn look(store: &Arc<dyn LogStore>) -> HashMap<usize, State> {
    let mut states = HashMap::new();
    let removed = store.removed().await.expect("listed");
    let mut there = store.list(LogKind::Turn).await.expect("listed");
    there.extend(store.list(LogKind::Session).await.expect("listed"));
    for number in 0..LOGS {
        let log = log_of(number);
        if there.contains(&log) {
            let writer = store.open(&log).await.expect("it can be opened");
            Told::say(number, What::Found(writer.records()));
            states.insert(number, State::Free);
        } else if let Some(removed) = removed.iter().find(|removed| removed.log == log) {
            states.insert(number, State::Removed(removed.clone()));
        }
    }
    states
}

/// The logs of one task.
struct Writing {
    store: Arc<dyn LogStore>,
    seam: Seam,
    round: u64,
    seed: Seed,
    logs: Vec<(usize, State)>,
}

impl Writing {
    /// Writes for ever.
    async fn go_on(mut self) {
        loop {
            let at = self.seed.below(self.logs.len());
            let (number, state) = self.logs.swap_remove(at);
            let state = self.step(number, state).await;
            self.logs.push((number, state));
        }
    }

    async fn step(&self, number: usize, state: State) -> State {
        let log = log_of(number);
        match state {
            State::Absent => {
                let size = 1 + self.seed.below(4) as u64;
                let batch: Vec<_> = (0..size).map(|at| record(number, at, self.round)).collect();
                Told::say(number, What::Tries(size));
                let writer = self.store.create(&log, &batch).await.expect("created");
                Told::say(number, What::Acknowledged(size));
                State::Open(writer)
            }
            State::Removed(removed) => {
                Told::say(number, What::Restores);
                self.store.restore(&removed).await.expect("restored");
                Told::say(number, What::Restored);
                State::Free
            }
            State::Free if self.seed.chance(20) => {
                Told::say(number, What::Removes);
                let removed = self.store.remove(&log).await.expect("removed");
                Told::say(number, What::Removed);
                State::Removed(removed)
            }
            State::Free => State::Open(self.store.open(&log).await.expect("it is free")),
            State::Open(writer) if self.seed.chance(8) => {
                if self.seed.chance(50) {
                    writer.close().await.expect("closed");
                }
                State::Free
            }
            State::Open(mut writer) => {
                self.append(number, &mut *writer).await.expect("appended");
                State::Open(writer)
            }
        }
    }

    /// Appends a batch; with a coordinator sometimes behind another that nobody waits for.
    async fn append(&self, number: usize, writer: &mut dyn LogWriter) -> Result<(), StoreError> {
        let mut end = writer.records();
        if self.seam == Seam::Coordinated && self.seed.chance(20) {
            let (batch, durability) = self.batch(number, &mut end);
            drop(writer.append(&batch, durability).now_or_never());
        }
        let (batch, durability) = self.batch(number, &mut end);
        writer.append(&batch, durability).await?;
        assert_eq!(writer.records(), end);
        Told::say(number, What::Acknowledged(end));
        Ok(())
    }

    /// The records that follow, of which it is said that they are tried.
    fn batch(&self, number: usize, end: &mut u64) -> (Vec<Record>, Durability) {
        let size = match self.seed.below(20) {
            0 => 300,
            1..7 => 10 + self.seed.below(40),
            _ => 1 + self.seed.below(3),
        };
        let durability =
            if self.seed.chance(30) { Durability::Barrier } else { Durability::Written };
        let from = *end;
        *end += size as u64;
        let batch: Vec<_> = (from..*end).map(|at| record(number, at, self.round)).collect();
        Told::say(number, What::Tries(*end));
        if batch.iter().map(|record| record.as_bytes().len()).sum::<usize>() > BIG_BYTES {
            say(BIG);
        }
        (batch, durability)
    }
}
