//! The logs in a folder, as the program opens them, in each form that outlives a process.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use turnstile::base::clock::{Clock as _, System};
use turnstile::base::tasks::Tasks;
use turnstile::store::disk::{Disk, RealDisk};
use turnstile::store::format::{Claim, Claimant, Format};
use turnstile::store::jsonl::{self, Encoding};
use turnstile::store::lock::{InstanceLock, LockError};
use turnstile::store::log::{LogId, LogKind, Record};
use turnstile::store::parts::Parts;
use turnstile::store::seam::{LogStore, SyncMode};
use turnstile::store::sqlite;
use turnstile::store::work_dir::WorkDir;
use turnstile::testing::seed::Seed;
use turnstile::testing::store::{in_encoding, log};

/// The forms in which logs outlive a process.
pub(crate) const FORMATS: [Format; 3] = [Format::Jsonl, Format::JsonlZst, Format::Sqlite];

/// From the moment in which a process is forked to that in which it is another program.
const PASSING: Duration = Duration::from_secs(10);

/// The work directory `folder`, prepared.
pub(crate) fn work_dir(folder: &Path) -> WorkDir {
    let work_dir = WorkDir::new(folder.to_path_buf()).expect("an absolute path");
    work_dir.prepare(&RealDisk).expect("a folder can be made");
    work_dir
}

/// The logs in a folder that nobody else has.
pub(crate) fn open(folder: &Path, format: Format) -> Arc<dyn LogStore> {
    open_on(Arc::new(RealDisk), folder, format)
}

/// The same, with everything that the store does with files done by this disk.
pub(crate) fn open_on(disk: Arc<dyn Disk>, folder: &Path, format: Format) -> Arc<dyn LogStore> {
    let work_dir = work_dir(folder);
    let (lock, process) = (lock(&work_dir), std::process::id());
    let (claimant, sync) = (Claimant::Holder, SyncMode::Barrier);
    let claim = Claim { asked: format, claimant, sync, process };
    claim.make(&RealDisk, &work_dir).expect("this form");
    let parts = parts(disk, Some(lock));
    let files =
        |encoding| jsonl::Store::new(work_dir.clone(), parts.clone(), in_encoding(encoding));
    match format {
        Format::Jsonl => Arc::new(files(Encoding::Lines)),
        Format::JsonlZst => Arc::new(files(Encoding::Frames)),
        Format::Sqlite => Arc::new(sqlite::Store::new(work_dir, parts, sqlite::Options::default())),
    }
}

/// What a store works with.
pub(crate) fn parts(disk: Arc<dyn Disk>, lock: Option<InstanceLock>) -> Parts {
    let system = Arc::new(System::new());
    let clock = Arc::<System>::clone(&system);
    Parts { disk, clock, entropy: system, tasks: Tasks::new(), lock: lock.map(Arc::new) }
}

/// The lock on a folder that nobody else has.
fn lock(work_dir: &WorkDir) -> InstanceLock {
    let (clock, process) = (System::new(), std::process::id());
    let parent = rustix::process::getppid().map(|parent| parent.as_raw_nonzero().get());
    let ours = [Some(process), parent.and_then(|parent| u32::try_from(parent).ok())];
    loop {
        match InstanceLock::acquire(Arc::new(RealDisk), work_dir, process, clock.now()) {
            Ok(lock) => return lock,
            // What another test starts has what this process has open until it is another program.
            Err(LockError::Held { holder, .. })
                if ours.contains(&holder.process) && clock.elapsed() < PASSING =>
            {
                std::thread::yield_now();
            }
            Err(refused) => panic!("{refused}"),
        }
    }
}

/// The `number`th log: every second is a session's.
pub(crate) fn log_of(number: usize) -> LogId {
    log(if number.is_multiple_of(2) { LogKind::Turn } else { LogKind::Session }, number)
}

/// The record that stands at `at` in the log `number` when the round `round` has written it; no other
/// record is like it.
pub(crate) fn record(number: usize, at: u64, round: u64) -> Record {
    let seed = Seed::new((number as u64) << 48 ^ round << 32 ^ at);
    let words = match seed.below(300) {
        0 => 32_000,
        1..30 => seed.below(120),
        _ => seed.below(12),
    };
    let mut text = String::from("é\\n日本 ");
    for _ in 0..words {
        write!(text, "{:016x}", seed.below(usize::MAX)).expect("a string grows");
    }
    let line = format!(r#"{{"type":"x","log":{number},"n":{at},"round":{round},"text":"{text}"}}"#);
    Record::new(line).expect("an object")
}
