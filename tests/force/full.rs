//! A device that is really full: what was acknowledged is there, what was not is held and told of with
//! its file, and goes on once there is room, nothing twice and nothing left out.
//!
//! Everywhere: a limit on the size of files that the system keeps. Where a person may mount in a
//! namespace of their own: a small file system in memory, filled to the brim.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use turnstile::base::tasks::{Ended, Tasks};
use turnstile::store::coordinate::{Coordinator, Stall};
use turnstile::store::disk::RealDisk;
use turnstile::store::format::Format;
use turnstile::store::log::{LogId, Record};
use turnstile::store::seam::{Durability, LogStore as _, LogWriter};
use turnstile::store::sqlite;
use turnstile::testing::beside;

use crate::backend::{FORMATS, log_of, open, parts, record, work_dir};
use crate::other::{Other, begin, marked, say, this_program, told};

const FOLDER: &str = "TURNSTILE_TEST_FOLDER";
const FORMAT: &str = "TURNSTILE_TEST_FORMAT";
const DEVICE: &str = "TURNSTILE_TEST_DEVICE";
/// How often the device is filled.
const TIMES: usize = 3;
/// What the process says when all is well.
const DONE: &str = "nothing is lost";

/// Why a device takes no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Device {
    /// Files may be only so long.
    Limited,
    /// All of it is in use.
    Small,
}

impl Device {
    /// From now on it takes nothing more, or next to nothing.
    fn fill(self, folder: &Path, format: Format) {
        match self {
            Self::Limited => limit(Some(longest(format))),
            Self::Small => {
                let mut ballast = File::create(folder.join("ballast")).expect("a file");
                for size in [64 * 1024, 4 * 1024, 64, 1] {
                    let piece = vec![b'x'; size];
                    while ballast.write_all(&piece).is_ok() {}
                }
            }
        }
    }

    /// There is room again.
    fn free(self, folder: &Path) {
        match self {
            Self::Limited => limit(None),
            Self::Small => fs::remove_file(folder.join("ballast")).expect("it can go"),
        }
    }

    /// What the system says, and whether it may pass by itself.
    fn check_told(self, stall: &Stall, format: Format) {
        let full = "No space left on device";
        let said = match (self, format) {
            // What the system said, or what SQLite makes of it.
            (Self::Small, Format::Sqlite) => [full, "database or disk is full"],
            (Self::Small, Format::Jsonl | Format::JsonlZst) => [full; 2],
            (Self::Limited, Format::Sqlite) => ["disk I/O error"; 2],
            (Self::Limited, Format::Jsonl | Format::JsonlZst) => ["File too large"; 2],
        };
        assert!(said.iter().any(|said| stall.why.contains(said)), "{stall:?}");
        // What a person alone can put right is not tried again by itself.
        assert_eq!(stall.retry_in.is_some(), self == Self::Small, "{stall:?}");
    }
}

/// How long a file may be that is to take nothing more. What those who read a database share with its
/// writer has to be there.
fn longest(format: Format) -> u64 {
    match format {
        Format::Jsonl | Format::JsonlZst => 1,
        Format::Sqlite => 40 * 1024,
    }
}

fn limit(size: Option<u64>) {
    let maximum = getrlimit(Resource::Fsize).maximum;
    setrlimit(Resource::Fsize, Rlimit { current: size.or(maximum), maximum }).expect("a lower one");
}

/// Is run by other tests, as another process; by itself it does nothing.
#[test]
fn another_process_fills_its_device() {
    let Some(folder) = told(FOLDER) else { return };
    let device = match told(DEVICE).as_deref() {
        Some("Small") => Device::Small,
        Some("Limited") => Device::Limited,
        _ => return,
    };
    let format = FORMATS.into_iter().find(|it| Some(it.name()) == told(FORMAT).as_deref());
    begin();
    let room = Room { folder: folder.into(), device, format: format.expect("one of ours") };
    beside::runtime().block_on(room.check());
    say(DONE);
}

/// A folder on a device.
struct Room {
    folder: PathBuf,
    device: Device,
    format: Format,
}

/// A writer and what became of its appends.
type Appended = (Box<dyn LogWriter>, u64);

impl Room {
    async fn check(&self) {
        let mut count = 2;
        for time in 0..TIMES {
            let store = Coordinator::new(open(&self.folder, self.format), Tasks::new());
            let writer = if time == 0 {
                store.create(&log_of(0), &batch(0, count)).await.expect("created")
            } else {
                store.open(&log_of(0)).await.expect("free")
            };
            let (writer, end) = self.write_on_full(&store, writer).await;
            assert!(end > count, "nothing was written");
            count = end;
            check_records(&store.inspect(&log_of(0)).await.expect("readable").records, count);
            writer.close().await.expect("closed");
        }
        self.check_reopened(count).await;
    }

    /// Writes what the device does not take before there is room again.
    async fn write_on_full(&self, store: &Coordinator, writer: Box<dyn LogWriter>) -> Appended {
        self.device.fill(&self.folder, self.format);
        let writing = Tasks::new().spawn("write", append_all(writer));
        self.check_held(store, &log_of(0)).await;
        self.device.free(&self.folder);
        if self.device == Device::Limited {
            store.retry();
        }
        let Ended::Done(appended) = writing.await.expect("it ends") else {
            panic!("the writer panicked")
        };
        store.flush(None).await.expect("there is room");
        assert_eq!(*store.follow_stalls().borrow(), []);
        appended
    }

    /// A process that starts now finds everything, and nothing to repair.
    async fn check_reopened(&self, count: u64) {
        let (store, log) = (open(&self.folder, self.format), log_of(0));
        let before = store.inspect(&log).await.expect("readable");
        check_records(&before.records, count);
        assert_eq!(before.torn, None);
        assert_eq!(store.open(&log).await.expect("it opens clean").records(), count);
        assert_eq!(store.revision(&log).await.expect("there"), before.revision);
    }

    /// What is not written is held, and told with its file; what was acknowledged can be read.
    async fn check_held(&self, store: &Coordinator, log: &LogId) {
        let file = match self.format {
            Format::Jsonl | Format::JsonlZst => store.locate(log).expect("a file").path,
            Format::Sqlite => work_dir(&self.folder).database(),
        };
        let file = file.display().to_string();
        let mut stalls = store.follow_stalls();
        loop {
            let stalled = stalls.wait_for(|stalls| !stalls.is_empty()).await;
            let stall = stalled.expect("the store is there")[0].clone();
            assert_eq!(stall.log, *log);
            self.device.check_told(&stall, self.format);
            assert!(stall.why.contains(&file), "{file} is not named: {stall:?}");
            // A database may find room in itself, but not for long.
            let Err(failed) = store.flush(Some(log)).await else { continue };
            let failed = failed.to_string();
            assert!(failed.contains(&file), "{file} is not named: {failed}");
            if failed.contains("not written") {
                break;
            }
        }
        let records = store.inspect(log).await.expect("readable").records.clone();
        check_records(&records, records.len() as u64);
    }
}

/// Appends one batch after the other, so few in all that they have room; gives how many records there
/// are then.
async fn append_all(mut writer: Box<dyn LogWriter>) -> Appended {
    for size in (1..12).cycle().take(30) {
        let end = writer.records() + size;
        let durability = if size % 3 == 0 { Durability::Barrier } else { Durability::Written };
        writer.append(&batch(writer.records(), end), durability).await.expect("written in the end");
        assert_eq!(writer.records(), end);
    }
    let end = writer.records();
    (writer, end)
}

fn batch(from: u64, to: u64) -> Vec<Record> {
    (from..to).map(|at| record(0, at, 0)).collect()
}

fn check_records(found: &[Record], count: u64) {
    assert!(found == batch(0, count), "{} records, not the {count} that were written", found.len());
}

/// Runs a room in a process of its own, started by `command`, which runs what it is given.
fn check(mut command: Command, folder: &Path, device: Device, format: Format) {
    let this = this_program("full::another_process_fills_its_device");
    command.arg(this.get_program()).args(this.get_args());
    command.env(FOLDER, folder).env(FORMAT, format.name()).env(DEVICE, format!("{device:?}"));
    let mut other = Other::start(&mut command);
    let (status, said) = other.end();
    assert!(status.success() && marked(&said).any(|line| line == DONE), "{format:?}: {said:?}");
}

#[test]
fn what_no_file_may_hold_is_held_and_written_once_it_may() {
    for format in FORMATS {
        let folder = tempfile::tempdir().expect("a folder");
        // Whoever goes beyond the limit is told, and not ended by a signal.
        let mut command = Command::new("sh");
        command.args(["-c", "trap '' XFSZ; exec \"$@\"", "sh"]);
        check(command, folder.path(), Device::Limited, format);
    }
}

/// Is run by another test, as another process; by itself it does nothing. Saves a damaged database on a
/// device with less and less room.
#[test]
fn another_process_saves_a_database_where_there_is_little_room() {
    let Some(folder) = told(FOLDER).map(PathBuf::from) else { return };
    if told(DEVICE).as_deref() != Some("Saved") {
        return;
    }
    begin();
    beside::runtime().block_on(save_in_little_room(&folder));
    say(DONE);
}

async fn save_in_little_room(folder: &Path) {
    let from = tempfile::tempdir().expect("a folder elsewhere");
    let records = batch(0, 300);
    let store = open(from.path(), Format::Sqlite);
    drop(store.create(&log_of(0), &records).await.expect("created"));
    drop(store);
    let database = work_dir(from.path()).database();
    let mut bytes = fs::read(&database).expect("the database");
    bytes[..100].fill(0x5a);
    fs::write(&database, &bytes).expect("damaged");
    let to = folder.join("turnstile.db");
    let (mut saved, mut refused) = (0, 0);
    // The copy and the new one need somewhat more than twice the room of the old one.
    for room in (0..3 * bytes.len()).step_by(bytes.len() / 8) {
        let ballast = folder.join("ballast");
        let device = rustix::fs::statvfs(folder).expect("a file system");
        let free = usize::try_from(device.f_bavail * device.f_frsize).expect("a small one");
        fs::write(&ballast, vec![b'x'; free.saturating_sub(room)]).expect("there is room");
        let parts = parts(Arc::new(RealDisk), None);
        let store = sqlite::Store::new(work_dir(from.path()), parts, sqlite::Options::default());
        match store.rescue(to.clone()).await {
            Ok(rescued) => {
                saved += 1;
                assert_eq!((rescued.turns, rescued.records), (1, 300), "{room} bytes of room");
                let whole = tempfile::tempdir().expect("a folder elsewhere");
                let place = work_dir(whole.path()).database();
                fs::copy(&to, place).expect("copied");
                let found = open(whole.path(), Format::Sqlite).inspect(&log_of(0)).await;
                assert!(found.expect("readable").records == records, "{room} bytes of room");
                fs::remove_file(&to).expect("there");
            }
            Err(_) => refused += 1,
        }
        fs::remove_file(&ballast).expect("there");
        let left: Vec<_> = fs::read_dir(folder).expect("listed").flatten().collect();
        assert!(left.is_empty(), "{room} bytes of room: {left:?}");
    }
    assert!(saved > 0 && refused > 0, "saved {saved} times and refused {refused} times");
}

/// A shell in namespaces of its own, in which `script` may mount; with the name of a folder as `$0`.
fn unshared(script: &str, folder: &Path) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]).arg(folder);
    command
}

#[test]
#[expect(clippy::print_stdout, reason = "what was not tried must be said")]
fn what_a_full_device_does_not_take_is_held_and_written_once_there_is_room() {
    const MOUNT: &str = "mount -t tmpfs -o size=2m,mode=0700 none \"$0\" && exec \"$@\"";
    let folder = tempfile::tempdir().expect("a folder");
    let may =
        unshared(MOUNT, folder.path()).arg("true").output().is_ok_and(|it| it.status.success());
    if !may {
        println!("skipped: nobody may mount a file system here, so that none can be filled");
        return;
    }
    for format in FORMATS {
        check(unshared(MOUNT, folder.path()), folder.path(), Device::Small, format);
    }
    let large = MOUNT.replace("2m", "64m");
    let mut command = unshared(&large, folder.path());
    let this = this_program("full::another_process_saves_a_database_where_there_is_little_room");
    command.arg(this.get_program()).args(this.get_args());
    command.env(FOLDER, folder.path()).env(DEVICE, "Saved");
    let (status, said) = Other::start(&mut command).end();
    assert!(status.success() && marked(&said).any(|line| line == DONE), "{said:?}");
}
