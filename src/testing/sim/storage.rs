//! What outlives the processes of a simulation: the logs, in memory or in files, what was
//! acknowledged of them, and the texts of open calls.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use crate::base::id::EventIds;
use crate::base::tasks::Tasks;
use crate::sessions::waiting::Waiting;
use crate::sessions::waiting::memory::Memory;
use crate::store::jsonl::Encoding;
use crate::store::live_text::{self, LiveText};
use crate::store::log::{LogId, Record};
use crate::store::seam::{Durability, LogStore};
use crate::store::{jsonl, memory};
use crate::testing::clock::HandClock;
use crate::testing::seed::Seed;
use crate::testing::sim::gated::{GatedText, GatedWaiting};
use crate::testing::sim::gates::Gates;
use crate::testing::store::scripted::{Change, ScriptedStore, Watch};
use crate::testing::store::{CountingEntropy, Home, encoded, in_encoding};

/// Where the logs are.
pub(super) struct Storage {
    medium: Medium,
    ledger: Arc<Ledger>,
    /// The messages that wait, where the logs are in memory.
    waiting: Memory,
    event_ids: Arc<EventIds>,
}

enum Medium {
    Memory(memory::Store, live_text::Map),
    Files(Home, Encoding),
}

/// A store as one process has it.
pub(super) struct Opened {
    /// What the process works with: every change waits at a gate before and after it is made.
    pub(super) gated: Arc<dyn LogStore>,
    /// The same without gates, for whoever only looks.
    pub(super) plain: Arc<dyn LogStore>,
    /// The texts of open calls.
    pub(super) live_text: Arc<dyn LiveText>,
    /// The messages that wait: every change of them waits at a gate before and after it is made.
    pub(super) waiting: Arc<dyn Waiting>,
    /// The same without gates.
    pub(super) plain_waiting: Arc<dyn Waiting>,
    /// Their ids go on rising from process to process.
    pub(super) event_ids: Arc<EventIds>,
}

impl Storage {
    /// Empty logs, which every fourth seed has in files, of one encoding and the other.
    pub(super) fn new(seed: u64, clock: &Arc<HandClock>, gates: &Gates) -> Self {
        let hand = Arc::<HandClock>::clone(clock);
        let event_ids = Arc::new(EventIds::new(hand, Arc::<CountingEntropy>::default()));
        let medium = match seed % 8 {
            3 => Medium::Files(Home::new(), Encoding::Lines),
            7 => Medium::Files(Home::new(), Encoding::Frames),
            _ => {
                let clock = Arc::<HandClock>::clone(clock);
                Medium::Memory(memory::Store::new(clock), live_text::Map::default())
            }
        };
        let (gates, kept) = (gates.clone(), Mutex::default());
        let ledger = Arc::new(Ledger { gates, kept });
        Self { medium, ledger, waiting: Memory::default(), event_ids }
    }

    /// The logs, for a process that starts now.
    pub(super) fn open(&self, tasks: &Tasks) -> Opened {
        let (plain, live_text): (Arc<dyn LogStore>, Arc<dyn LiveText>) = match &self.medium {
            Medium::Memory(store, map) => (Arc::new(store.clone()), Arc::new(map.clone())),
            Medium::Files(home, encoding) => {
                let parts = jsonl::Parts { tasks: tasks.clone(), ..home.parts() };
                let disk = Arc::clone(&parts.disk);
                let store = jsonl::Store::new(home.work_dir(), parts, in_encoding(*encoding));
                let live = live_text::Files::new(disk, home.work_dir(), tasks.clone());
                (Arc::new(store), Arc::new(live))
            }
        };
        let watch = Arc::<Ledger>::clone(&self.ledger);
        let gated = ScriptedStore::new(Arc::clone(&plain)).watched_by(watch);
        let all_gates = self.ledger.gates.clone();
        let live_text = Arc::new(GatedText { inner: live_text, gates: all_gates.clone() });
        let plain_waiting: Arc<dyn Waiting> = match &self.medium {
            Medium::Memory(..) => Arc::new(self.waiting.clone()),
            Medium::Files(home, _) => Arc::new(home.inbox_of(tasks)),
        };
        let inner = Arc::clone(&plain_waiting);
        let waiting = Arc::new(GatedWaiting { inner, gates: all_gates });
        let event_ids = Arc::clone(&self.event_ids);
        Opened { gated: Arc::new(gated), plain, live_text, waiting, plain_waiting, event_ids }
    }

    /// The folder of the logs, which is another one in every run; empty if there is none.
    pub(super) fn folder(&self) -> String {
        match &self.medium {
            Medium::Memory(..) => String::new(),
            Medium::Files(home, _) => home.work_dir().root().display().to_string(),
        }
    }

    /// What was acknowledged of each log.
    pub(super) fn acknowledged(&self) -> BTreeMap<LogId, Vec<Record>> {
        self.ledger.lock().acknowledged.clone()
    }

    /// A process starts: what it finds in a log counts from now on, also what was written and not
    /// acknowledged any more.
    pub(super) fn adopt(&self, log: &LogId, found: Vec<Record>) {
        self.ledger.lock().acknowledged.insert(log.clone(), found);
    }

    /// The batches that are on their way to the disk.
    pub(super) fn under_way(&self) -> Vec<(LogId, Vec<Record>)> {
        self.ledger.lock().under_way.values().cloned().collect()
    }

    /// A process was killed while these batches were on their way: of each, as much is there as
    /// chance will have it. In files that is any byte of it.
    pub(super) async fn tear(&self, under_way: &[(LogId, Vec<Record>)], seed: &Seed) {
        for (log, batch) in under_way {
            match &self.medium {
                Medium::Memory(store, _) => {
                    let kept = seed.below(batch.len() + 1);
                    let kept = batch.get(..kept).unwrap_or_default();
                    let mut writer = store.open(log).await.expect("nobody writes it any more");
                    writer.append(kept, Durability::Written).await.expect("memory takes it");
                }
                Medium::Files(home, encoding) => {
                    let lines = batch.iter().flat_map(|it| [it.as_bytes(), b"\n"].concat());
                    let bytes = encoded(*encoding, &lines.collect::<Vec<u8>>());
                    let kept = bytes.get(..seed.below(bytes.len() + 1)).unwrap_or_default();
                    let file =
                        std::fs::OpenOptions::new().append(true).open(home.file_in(*encoding, log));
                    file.expect("the log is there").write_all(kept).expect("there is room");
                }
            }
        }
    }
}

/// Stands at every change of a log, and keeps what whoever made it was told.
#[derive(Debug)]
struct Ledger {
    gates: Gates,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    acknowledged: BTreeMap<LogId, Vec<Record>>,
    next: u64,
    under_way: BTreeMap<u64, (LogId, Vec<Record>)>,
}

impl Ledger {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A batch on its way, until this is dropped.
struct UnderWay<'a>(&'a Ledger, u64);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.lock().under_way.remove(&self.1);
    }
}

#[async_trait]
impl Watch for Ledger {
    async fn before(&self, log: &LogId, change: Change<'_>) {
        let _under_way = match change {
            Change::Append(batch) => {
                let mut kept = self.lock();
                kept.next += 1;
                let number = kept.next;
                kept.under_way.insert(number, (log.clone(), batch.to_vec()));
                Some(UnderWay(self, number))
            }
            Change::Create(_) | Change::Remove | Change::Restore | Change::Destroy => None,
        };
        self.gates.pass(format!("before {} of {log}", name(change))).await;
    }

    async fn after(&self, log: &LogId, change: Change<'_>) {
        self.gates.pass(format!("after {} of {log}", name(change))).await;
        match change {
            Change::Create(batch) | Change::Append(batch) => {
                let mut kept = self.lock();
                kept.acknowledged.entry(log.clone()).or_default().extend_from_slice(batch);
            }
            Change::Remove | Change::Restore | Change::Destroy => {}
        }
    }

    async fn read(&self, what: &str) {
        self.gates.pass(format!("before the reading of {what}")).await;
    }
}

fn name(change: Change<'_>) -> &'static str {
    match change {
        Change::Create(_) => "the creation",
        Change::Append(_) => "an append",
        Change::Remove => "the removal",
        Change::Restore => "the restoration",
        Change::Destroy => "the destruction",
    }
}
