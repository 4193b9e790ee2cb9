//! Stores for tests: a work directory of one's own on a disk that can fail, ids and records by
//! number, and the contract suite that every backend passes.
#![expect(
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "a test stops where its surroundings fail"
)]

pub mod contract;
#[cfg(test)]
mod converted;
#[cfg(test)]
mod coordinated;
#[cfg(test)]
mod cuts;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod model;
pub mod scripted;
#[cfg(test)]
mod trouble;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::base::clock::{Clock, Entropy, Timestamp};
use crate::base::tasks::Tasks;
use crate::domain::event::Event;
use crate::mailbox::inbox::Inbox;
use crate::store::error::StoreError;
use crate::store::frames;
use crate::store::jsonl::{self, Encoding, Options, Parts};
use crate::store::log::{LogId, LogKind, Record};
use crate::store::repo::{Kind, Repo};
use crate::store::seam::{LogStore as _, SyncMode};
use crate::store::work_dir::WorkDir;
use crate::store::{memory, sqlite};
use crate::testing::disk::FaultyDisk;

/// A log as it is stored: its events, and what they amount to.
#[derive(Debug)]
pub struct Kept<K: Kind> {
    /// The events.
    pub events: Vec<Arc<Event<K::Fact>>>,
    /// What they amount to.
    pub state: K::State,
}

impl<K: Kind> Kept<K> {
    /// Reads a log on this thread.
    ///
    /// # Errors
    /// As [`Repo::scan`].
    pub fn read(repo: &Repo<K>, id: &K::Id) -> Result<Self, StoreError> {
        let mut events = Vec::new();
        let state = repo.scan(id, |event| events.push(Arc::new(event)))?;
        Ok(Self { events, state })
    }
}

/// A clock that stands still, so that nothing in a test differs by its time.
#[derive(Clone, Copy, Debug)]
pub struct StillClock;

impl Clock for StillClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_ms(1_762_835_789_000)
    }

    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }
}

/// Counts up: never the same twice, and the same in every run.
#[derive(Debug, Default)]
pub struct CountingEntropy(AtomicU64);

impl Entropy for CountingEntropy {
    fn bits(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

/// A work directory of one's own, gone with its last clone.
#[derive(Clone, Debug)]
pub struct Home {
    folder: Arc<tempfile::TempDir>,
    /// The disk under all stores of this home.
    pub disk: FaultyDisk,
    entropy: Arc<CountingEntropy>,
}

impl Home {
    /// An empty one, prepared.
    #[must_use]
    pub fn new() -> Self {
        let folder = Arc::new(tempfile::tempdir().expect("a folder for a test"));
        let home = Self { folder, disk: FaultyDisk::new(), entropy: Arc::default() };
        home.work_dir().prepare(&home.disk).expect("a folder can be made in it");
        home
    }

    /// Its layout.
    #[must_use]
    pub fn work_dir(&self) -> WorkDir {
        WorkDir::new(self.folder.path().to_path_buf()).expect("temporary folders are absolute")
    }

    /// The files in it, as a process that starts now sees them.
    #[must_use]
    pub fn store(&self, options: Options) -> jsonl::Store {
        jsonl::Store::new(self.work_dir(), self.parts(), options)
    }

    /// The database in it, as a process that starts now sees it.
    #[must_use]
    pub fn database(&self, options: sqlite::Options) -> sqlite::Store {
        sqlite::Store::new(self.work_dir(), self.parts(), options)
    }

    /// What a store in it works with.
    #[must_use]
    pub fn parts(&self) -> Parts {
        Parts {
            disk: Arc::new(self.disk.clone()),
            clock: Arc::new(StillClock),
            entropy: Arc::<CountingEntropy>::clone(&self.entropy),
            tasks: Tasks::new(),
            lock: None,
        }
    }

    /// The messages that wait in it.
    #[must_use]
    pub fn inbox(&self) -> Inbox {
        self.inbox_of(&Tasks::new())
    }

    /// The same, whose work these tasks do.
    #[must_use]
    pub fn inbox_of(&self, tasks: &Tasks) -> Inbox {
        let (disk, clock) = (Arc::new(self.disk.clone()), Arc::new(StillClock));
        Inbox::new(disk, self.work_dir(), clock, tasks.clone(), SyncMode::Barrier)
    }

    /// The file of a log of lines.
    #[must_use]
    pub fn file(&self, log: &LogId) -> PathBuf {
        self.file_in(Encoding::Lines, log)
    }

    /// The file of a log.
    #[must_use]
    pub fn file_in(&self, encoding: Encoding, log: &LogId) -> PathBuf {
        let location = self.store(in_encoding(encoding)).locate(log);
        location.expect("every log has a file").path
    }
}

impl Default for Home {
    fn default() -> Self {
        Self::new()
    }
}

/// All encodings of logs in files.
pub const ENCODINGS: [Encoding; 2] = [Encoding::Lines, Encoding::Frames];

/// The options of a store that differ in nothing else.
#[must_use]
pub fn in_encoding(encoding: Encoding) -> Options {
    Options { encoding, ..Options::default() }
}

/// Whole lines as the bytes that they add to a log.
#[must_use]
pub fn encoded(encoding: Encoding, lines: &[u8]) -> Vec<u8> {
    match encoding {
        Encoding::Lines => lines.to_vec(),
        Encoding::Frames => frames::encode(lines).expect("a frame can be made"),
    }
}

/// What a crash leaves of a line in which it came.
#[must_use]
pub fn torn(encoding: Encoding, line: &[u8]) -> Vec<u8> {
    let mut bytes = encoded(encoding, line);
    match encoding {
        Encoding::Lines => {}
        Encoding::Frames => bytes.truncate(bytes.len() - 1),
    }
    bytes
}

/// An empty store in memory.
#[must_use]
pub fn memory_store() -> memory::Store {
    memory::Store::new(Arc::new(StillClock))
}

/// The `number`th log of a kind, over several days.
#[must_use]
pub fn log(kind: LogKind, number: usize) -> LogId {
    let (day, sequence) = (1 + number % 9, number % 1000);
    let id = format!("2025-11-{day:02}T04-36-29Z-0001234-{sequence:03}");
    LogId::new(kind, &id).expect("a valid id")
}

/// The `number`th turn.
#[must_use]
pub fn turn(number: usize) -> LogId {
    log(LogKind::Turn, number)
}

/// The `number`th record of a log: text beyond ASCII, escapes, numbers that lose digits elsewhere.
#[must_use]
pub fn record(number: usize) -> Record {
    let line = format!(
        r#"{{"type":"x","n":{number},"big":12345678901234567890123,"f":1.50,"s":"é\u00e9\n\ud83d\ude00 日本"}}"#
    );
    Record::new(line).expect("an object")
}

/// Records by their numbers.
#[must_use]
pub fn records(numbers: std::ops::Range<usize>) -> Vec<Record> {
    numbers.map(record).collect()
}
