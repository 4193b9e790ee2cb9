//! Processes that write are killed at any moment: what was acknowledged is there, in order and byte
//! for byte, beyond it at most whole records of what was under way, and writing goes on.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use turnstile::base::clock::{Entropy as _, System};
use turnstile::store::format::Format;
use turnstile::store::log::{LogKind, Record, Removed};
use turnstile::store::seam::{Durability, LogStore};
use turnstile::testing::beside;
use turnstile::testing::seed::Seed;

use crate::backend::{log_of, open, record};
use crate::other::{Other, marked, told};
use crate::told::{BIG, READY, Told, What};
use crate::writer::{LOGS, Order, Seam};

/// How often is killed where nothing is said.
const ROUNDS: u64 = 50;
/// How many rounds share a folder, so that what was repaired is written, killed and repaired again.
const ROUNDS_OF_FOLDER: u64 = 10;

/// The number that a person gave.
pub(crate) fn asked(name: &str) -> Option<u64> {
    told(name).map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text:?}")))
}

/// How often to kill.
pub(crate) fn rounds() -> u64 {
    asked("TURNSTILE_KILL_ROUNDS").unwrap_or(ROUNDS)
}

/// The chance of a run, which says how to have it again.
#[expect(clippy::print_stdout, reason = "shown where the test fails")]
pub(crate) fn chance() -> Seed {
    let seed = asked("TURNSTILE_SEED").unwrap_or_else(|| System::new().bits());
    println!("again with TURNSTILE_SEED={seed}");
    Seed::new(seed)
}

/// Where a log may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Nowhere,
    Here,
    Removed,
}

/// What is known of a log.
struct Known {
    /// The records that were there when it was last looked at.
    kept: Vec<Record>,
    /// How many are there at least.
    acknowledged: u64,
    /// How many are there at most.
    tried: u64,
    places: BTreeSet<Place>,
}

impl Known {
    fn new() -> Self {
        Self { kept: Vec::new(), acknowledged: 0, tried: 0, places: [Place::Nowhere].into() }
    }

    /// What may be, for people.
    fn bounds(&self) -> String {
        format!("{} to {} records at {:?}", self.acknowledged, self.tried, self.places)
    }

    /// What was said by a process that is killed now or later.
    fn hear(&mut self, what: What) {
        match what {
            What::Found(records) => {
                assert!((self.acknowledged..=self.tried).contains(&records), "{}", self.bounds());
                assert!(self.places.contains(&Place::Here), "{}", self.bounds());
                (self.acknowledged, self.tried) = (records, records);
                self.places = [Place::Here].into();
            }
            What::Tries(records) => {
                self.tried = records;
                self.places.insert(Place::Here);
            }
            What::Acknowledged(records) => {
                (self.acknowledged, self.tried) = (records, records);
                self.places = [Place::Here].into();
            }
            What::Removes => drop(self.places.insert(Place::Removed)),
            What::Removed => self.places = [Place::Removed].into(),
            What::Restores => drop(self.places.insert(Place::Here)),
            What::Restored => self.places = [Place::Here].into(),
        }
    }

    /// What was found is what it may be, if it was written in these rounds.
    fn check(&mut self, number: usize, found: &[Record], rounds: &RangeInclusive<u64>) {
        let count = found.len() as u64;
        let bounds = self.acknowledged..=self.tried;
        assert!(bounds.contains(&count), "log {number}: {count} records, not {bounds:?}");
        assert!(found.starts_with(&self.kept), "log {number} is not what it was");
        let mut round = *rounds.start();
        for (at, found) in (0..).zip(found).skip(self.kept.len()) {
            while *found != record(number, at, round) {
                round += 1;
                assert!(
                    round <= *rounds.end(),
                    "record {at} of log {number} is none that was written"
                );
            }
        }
    }
}

/// A folder whose writers are killed.
struct Life {
    folder: TempDir,
    format: Format,
    logs: Vec<Known>,
    /// The rounds whose work has not been looked at.
    rounds: RangeInclusive<u64>,
    met: Met,
}

/// What came about.
#[derive(Debug, Default)]
struct Met {
    acknowledged: u64,
    /// How many logs had something under way.
    under_way: u64,
    /// How many logs held some of it afterwards.
    kept_of_it: u64,
    torn: u64,
    killed_before_ready: u64,
}

impl Life {
    fn new(format: Format) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let logs = (0..LOGS).map(|_| Known::new()).collect();
        Self { folder, format, logs, rounds: 0..=0, met: Met::default() }
    }

    /// Starts a writer and kills it.
    fn kill_one(&mut self, round: u64, seed: &Seed) {
        let seam = if seed.chance(50) { Seam::Bare } else { Seam::Coordinated };
        let chance = seed.below(usize::MAX) as u64;
        let folder = self.folder.path().to_path_buf();
        let order = Order { folder, format: self.format, seam, round, chance };
        let other = Other::start(&mut order.command());
        // Some are killed while they look, most while they write.
        let mut said = Vec::new();
        if seed.chance(85) {
            said = other.hear_until(READY);
            let (lines, moment_us) = if seed.chance(40) {
                said.extend(other.hear_until(BIG));
                (0, seed.below(800))
            } else {
                (seed.below(60), seed.below(3_000))
            };
            said.extend(other.hear(lines, Duration::from_micros(moment_us as u64)));
        } else {
            said.extend(other.hear(0, Duration::from_micros(seed.below(60_000) as u64)));
        }
        said.extend(other.kill());
        self.met.killed_before_ready += u64::from(!marked(&said).any(|line| line == READY));
        for told in marked(&said).filter_map(|line| line.parse::<Told>().ok()) {
            self.met.acknowledged += u64::from(matches!(told.what, What::Acknowledged(_)));
            self.logs[told.log].hear(told.what);
        }
        self.rounds = *self.rounds.start()..=round;
    }

    /// Looks at everything, as a process that starts now, and writes on.
    async fn check(&mut self, next: u64, seed: &Seed) {
        let store = open(self.folder.path(), self.format);
        let removed = store.removed().await.expect("listed");
        self.check_places(&store, &removed).await;
        for number in 0..LOGS {
            self.check_log(number, &store, &removed).await;
        }
        for number in 0..LOGS {
            if self.logs[number].places.contains(&Place::Here) && seed.chance(30) {
                self.write_on(number, &store).await;
            }
        }
        store.flush(None).await.expect("flushed");
        self.rounds = next..=next;
    }

    /// Every log is where it may be, once, and nothing else is there.
    async fn check_places(&mut self, store: &Arc<dyn LogStore>, removed: &[Removed]) {
        let mut here = Vec::new();
        for kind in [LogKind::Turn, LogKind::Session] {
            let listed = store.list(kind).await.expect("listed");
            let snapshots = store.snapshots(kind).await.expect("listed");
            let headers: Vec<_> = snapshots.iter().map(|it| it.as_ref().expect("whole")).collect();
            assert!(headers.iter().map(|it| &it.log).eq(&listed), "{headers:?}");
            here.extend(listed);
        }
        let mut there: Vec<_> = here.iter().chain(removed.iter().map(|it| &it.log)).collect();
        there.sort_unstable();
        let count = there.len();
        there.dedup();
        assert_eq!(there.len(), count, "a log is in two places: {here:?}, {removed:?}");
        for (number, known) in self.logs.iter_mut().enumerate() {
            let log = log_of(number);
            there.retain(|it| **it != log);
            let place = match (here.contains(&log), removed.iter().any(|it| it.log == log)) {
                (true, _) => Place::Here,
                (false, true) => Place::Removed,
                (false, false) => Place::Nowhere,
            };
            assert!(known.places.contains(&place), "log {number} is {place:?}: {}", known.bounds());
            known.places = [place].into();
        }
        assert!(there.is_empty(), "foreign logs: {there:?}");
    }

    async fn check_log(&mut self, number: usize, store: &Arc<dyn LogStore>, removed: &[Removed]) {
        let (log, rounds) = (log_of(number), self.rounds.clone());
        let known = &mut self.logs[number];
        let before = known.acknowledged;
        self.met.under_way += u64::from(known.tried > before);
        let found = if known.places.contains(&Place::Here) {
            let looked = store.inspect(&log).await.expect("readable");
            self.met.torn += u64::from(looked.torn.is_some());
            known.check(number, &looked.records, &rounds);
            drop(store.open(&log).await.expect("it can be opened"));
            let opened = store.inspect(&log).await.expect("readable");
            assert_eq!(opened.torn, None);
            assert!(opened.records.starts_with(&looked.records), "opening took something away");
            drop(store.open(&log).await.expect("it can be opened again"));
            let again = store.revision(&log).await.expect("there");
            assert_eq!(again, opened.revision, "opening once more changed something");
            opened.records.clone()
        } else if let Some(removed) = removed.iter().find(|removed| removed.log == log) {
            store.inspect_removed(removed).await.expect("readable").records
        } else {
            Vec::new()
        };
        known.check(number, &found, &rounds);
        let count = found.len() as u64;
        self.met.kept_of_it += u64::from(count > before);
        (known.acknowledged, known.tried, known.kept) = (count, count, found);
    }

    async fn write_on(&mut self, number: usize, store: &Arc<dyn LogStore>) {
        let (log, known) = (log_of(number), &mut self.logs[number]);
        let mut writer = store.open(&log).await.expect("free");
        let more = [record(number, known.acknowledged, *self.rounds.end())];
        writer.append(&more, Durability::Barrier).await.expect("appended");
        writer.close().await.expect("closed");
        known.kept.extend(more);
        known.acknowledged += 1;
        known.tried += 1;
        assert_eq!(store.inspect(&log).await.expect("readable").records, known.kept);
    }
}

#[expect(clippy::print_stdout, reason = "shown where the test fails, or to whoever wants it")]
fn check(format: Format) {
    let (seed, tokio) = (chance(), beside::runtime());
    let mut life = Life::new(format);
    for round in 0..rounds() {
        if round % ROUNDS_OF_FOLDER == 0 {
            let met = std::mem::take(&mut life.met);
            life = Life { met, rounds: round..=round, ..Life::new(format) };
        }
        life.kill_one(round, &seed);
        // Some find what the one before them left, before anybody else has looked.
        if seed.chance(80) || (round + 1) % ROUNDS_OF_FOLDER == 0 {
            tokio.block_on(life.check(round + 1, &seed));
        }
    }
    tokio.block_on(life.check(rounds(), &seed));
    println!("{:?}", life.met);
    let Met { acknowledged, under_way, kept_of_it, .. } = life.met;
    let tried = rounds() < ROUNDS || acknowledged > 0 && under_way > 0 && kept_of_it > 0;
    assert!(tried, "no kill fell where it matters");
}

#[test]
fn lines_of_a_killed_process_are_there_as_far_as_acknowledged() {
    check(Format::Jsonl);
}

#[test]
fn frames_of_a_killed_process_are_there_as_far_as_acknowledged() {
    check(Format::JsonlZst);
}

#[test]
fn rows_of_a_killed_process_are_there_as_far_as_acknowledged() {
    check(Format::Sqlite);
}
