//! A process is killed at each call of its disk, one after the other: what was acknowledged by then is
//! there, nothing else is but whole records of what was under way, and everything goes on.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use turnstile::store::format::Format;
use turnstile::store::log::LogId;
use turnstile::store::seam::{Durability, LogStore, LogWriter};
use turnstile::testing::beside;
use turnstile::testing::disk::{Fault, FaultyDisk, Plan};

use crate::backend::{log_of, open, open_on, record};
use crate::other::{Other, begin, marked, say, this_program, told};
use crate::told::{Told, What};

const FOLDER: &str = "TURNSTILE_TEST_FOLDER";
const FORMAT: &str = "TURNSTILE_TEST_FORMAT";
const CALL: &str = "TURNSTILE_TEST_CALL";
/// What the process says if no call was the one at which it was to be killed.
const DONE: &str = "done";
/// The forms whose files are written by way of a disk that can be told to fail.
const FILES: [Format; 2] = [Format::Jsonl, Format::JsonlZst];
/// A log that is made, written and opened again.
const WRITTEN: usize = 0;
/// One that is removed and restored.
const REMOVED: usize = 1;
/// One that a crash has torn before.
const TORN: usize = 2;
/// How many records the last two have at first.
const AT_FIRST: u64 = 3;

/// Is run by other tests, as another process; by itself it does nothing.
#[test]
fn another_process_is_killed_at_a_call() {
    let Some(folder) = told(FOLDER).map(PathBuf::from) else { return };
    let Some(call) = told(CALL) else { return };
    let format = FILES.into_iter().find(|it| Some(it.name()) == told(FORMAT).as_deref());
    begin();
    let disk = FaultyDisk::new();
    let store = open_on(Arc::new(disk.clone()), &folder, format.expect("one of ours"));
    let from = call.parse().expect("a number");
    disk.fail(Plan { only: None, from, times: 1, fault: Fault::Kill });
    beside::runtime().block_on(work(&store));
    say(DONE);
}

async fn work(store: &Arc<dyn LogStore>) {
    Told::say(WRITTEN, What::Tries(AT_FIRST));
    let batch: Vec<_> = (0..AT_FIRST).map(|at| record(WRITTEN, at, 0)).collect();
    let mut writer = store.create(&log_of(WRITTEN), &batch).await.expect("created");
    Told::say(WRITTEN, What::Acknowledged(AT_FIRST));
    append(&mut *writer, WRITTEN, 1, Durability::Written).await;
    append(&mut *writer, WRITTEN, 5, Durability::Barrier).await;
    append(&mut *writer, WRITTEN, 2, Durability::Written).await;
    writer.close().await.expect("closed");
    let mut writer = store.open(&log_of(WRITTEN)).await.expect("free");
    append(&mut *writer, WRITTEN, 3, Durability::Barrier).await;
    drop(writer);
    let mut writer = store.open(&log_of(TORN)).await.expect("repaired");
    append(&mut *writer, TORN, 2, Durability::Barrier).await;
    drop(writer);
    Told::say(REMOVED, What::Removes);
    let removed = store.remove(&log_of(REMOVED)).await.expect("removed");
    Told::say(REMOVED, What::Removed);
    Told::say(REMOVED, What::Restores);
    store.restore(&removed).await.expect("restored");
    Told::say(REMOVED, What::Restored);
    Told::say(REMOVED, What::Removes);
    store.remove(&log_of(REMOVED)).await.expect("removed");
    Told::say(REMOVED, What::Removed);
    store.flush(None).await.expect("all is safe");
}

async fn append(writer: &mut dyn LogWriter, log: usize, count: u64, durability: Durability) {
    let from = writer.records();
    Told::say(log, What::Tries(from + count));
    let batch: Vec<_> = (from..from + count).map(|at| record(log, at, 0)).collect();
    writer.append(&batch, durability).await.expect("written");
    Told::say(log, What::Acknowledged(from + count));
}

/// What the process said of a log.
#[derive(Clone, Copy, Default)]
struct Known {
    acknowledged: u64,
    tried: u64,
    last: Option<What>,
}

fn known(said: &[String], log: usize, at_first: u64) -> Known {
    let mut known = Known { acknowledged: at_first, tried: at_first, last: None };
    let told = marked(said).filter_map(|line| line.parse::<Told>().ok());
    for told in told.filter(|told| told.log == log) {
        match told.what {
            What::Tries(records) => known.tried = records,
            What::Acknowledged(records) => known.acknowledged = records,
            What::Found(_) | What::Removes | What::Removed | What::Restores | What::Restored => {}
        }
        known.last = Some(told.what);
    }
    known
}

/// A folder with a log to be removed and one that is torn.
async fn prepare(folder: &Path, format: Format) {
    let store = open(folder, format);
    for log in [REMOVED, TORN] {
        let batch: Vec<_> = (0..AT_FIRST).map(|at| record(log, at, 0)).collect();
        drop(store.create(&log_of(log), &batch).await.expect("created"));
    }
    let path = store.locate(&log_of(TORN)).expect("a file").path;
    let mut bytes = std::fs::read(&path).expect("there");
    // As if half of a write had come: of frames the beginning of one.
    let half: Vec<u8> = match format {
        Format::Jsonl => br#"{"type":"x","lo"#.to_vec(),
        Format::JsonlZst | Format::Sqlite => bytes[..bytes.len() / 5].to_vec(),
    };
    bytes.extend(half);
    std::fs::write(&path, bytes).expect("torn");
}

/// Checks what is there after the kill, and that it can be written.
async fn check(folder: &Path, format: Format, said: &[String]) {
    let store = open(folder, format);
    let written = known(said, WRITTEN, 0);
    check_written(&store, &log_of(WRITTEN), WRITTEN, written).await;
    check_written(&store, &log_of(TORN), TORN, known(said, TORN, AT_FIRST)).await;
    let removed = store.removed().await.expect("listed");
    let here = store.inspect(&log_of(REMOVED)).await;
    let last = known(said, REMOVED, AT_FIRST).last;
    let places = (here.is_ok(), removed.len());
    let expected: &[(bool, usize)] = match last {
        None | Some(What::Restored) => &[(true, 0)],
        Some(What::Removed) => &[(false, 1)],
        _ => &[(true, 0), (false, 1)],
    };
    assert!(expected.contains(&places), "{last:?}: {places:?}, {said:?}");
    if let [removed] = removed.as_slice() {
        store.restore(removed).await.expect("restored");
    }
    let whole = Known { acknowledged: AT_FIRST, tried: AT_FIRST, last };
    check_written(&store, &log_of(REMOVED), REMOVED, whole).await;
}

async fn check_written(store: &Arc<dyn LogStore>, log: &LogId, number: usize, known: Known) {
    let found = match store.inspect(log).await {
        Err(_) if known.acknowledged == 0 => return,
        found => found.expect("readable").records.clone(),
    };
    let count = found.len() as u64;
    assert!((known.acknowledged..=known.tried).contains(&count), "{number}: {count}");
    let expected: Vec<_> = (0..count).map(|at| record(number, at, 0)).collect();
    assert!(found == expected, "{number}: other records than were written");
    let mut writer = store.open(log).await.expect("free");
    assert_eq!(writer.records(), count, "{number}: opening took something away, or gave something");
    writer.append(&[record(number, count, 1)], Durability::Barrier).await.expect("it goes on");
}

fn check_all(format: Format) {
    let runtime = beside::runtime();
    for call in 0_u64.. {
        let folder = tempfile::tempdir().expect("a folder");
        runtime.block_on(prepare(folder.path(), format));
        let mut command: Command = this_program("calls::another_process_is_killed_at_a_call");
        command.env(FOLDER, folder.path()).env(FORMAT, format.name()).env(CALL, call.to_string());
        let (status, said) = Other::start(&mut command).end();
        let is_done = marked(&said).any(|line| line == DONE);
        assert_eq!(status.success(), is_done, "call {call}: {said:?}");
        runtime.block_on(check(folder.path(), format, &said));
        if is_done {
            assert!(call > 60, "the work has {call} calls only");
            return;
        }
    }
}

#[test]
fn a_process_that_is_killed_at_any_call_leaves_what_it_had_acknowledged_in_lines() {
    check_all(Format::Jsonl);
}

#[test]
fn a_process_that_is_killed_at_any_call_leaves_what_it_had_acknowledged_in_frames() {
    check_all(Format::JsonlZst);
}
