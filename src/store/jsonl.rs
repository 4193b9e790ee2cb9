//! The backend of files: one for each log, in dated folders; lines that people can grep, or the same
//! lines in compressed frames with checksums.
//!
//! `storage/{sessions,turns}/YYYY/MM/DD/<id>.jsonl` or `.jsonl.zst`, folders 0700, files 0600. A line
//! counts once its end is there, a frame once its checksum has been found right. Besides logs the folders
//! hold `<id>.live` (see [`live_text`](super::live_text)), `<id>.jsonl.torn-<hash>` (what was cut off a
//! log) and, after a crash in creation, temporary files with a leading dot; none of these is listed.
//!
//! The operations are plain functions over [`Disk`](crate::store::disk::Disk) that block; [`Store`] runs
//! them on threads that may. Who owns which log, and how an end is appended to, proven and taken back,
//! does not look into the bytes; what they mean is known to [`Encoding`] alone.

mod append;
mod create;
mod encoding;
mod files;
mod list;
mod live;
mod logs;
mod open;
mod options;
mod publish;
mod read;
mod remove;
mod writer;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use async_trait::async_trait;
use tokio::sync::broadcast;

pub use crate::store::parts::Parts;
pub use encoding::Encoding;
pub use options::{Options, TornTail};

use crate::store::blocking::blocking;
use crate::store::error::{FlushError, Place, StoreError};
use crate::store::frames::Decoders;
use crate::store::jsonl::append::Batch;
use crate::store::jsonl::files::Files;
use crate::store::jsonl::live::{Claim, Live, Taken};
use crate::store::jsonl::logs::{Left, Logs};
use crate::store::jsonl::writer::Writer;
use crate::store::log::{
    Inspection, Location, LogId, LogKind, LogText, Record, Removed, Revision, SetAside, Snapshot,
    Strays, join,
};
use crate::store::remnant::{Kept, Remnant};
use crate::store::seam::{LogStore, LogWriter};
use crate::store::work_dir::WorkDir;

/// The logs of a work directory. Clones share everything.
#[derive(Clone)]
pub struct Store(Arc<Logs>);

impl Store {
    /// The store in `work_dir`; touches nothing yet.
    #[must_use]
    pub fn new(work_dir: WorkDir, parts: Parts, options: Options) -> Self {
        let Parts { disk, clock, entropy, tasks, lock } = parts;
        let stamps = AtomicU64::new(entropy.bits());
        let unexclusive = AtomicBool::new(false);
        Self(Arc::new(Logs::new(Files {
            disk,
            work_dir,
            options,
            decoders: Decoders::default(),
            tasks,
            lock,
            clock,
            entropy,
            stamps,
            unexclusive,
            set_aside: files::set_aside_feed(),
        })))
    }

    /// The folders in which the logs of a kind lie, each with when a name last came to it or went, in
    /// nanoseconds since 1970: while they are the same, so is the list of logs. Far fewer than those.
    ///
    /// # Errors
    /// [`StoreError`] if one cannot be looked at.
    pub async fn folders(&self, kind: LogKind) -> Result<Vec<(PathBuf, u64)>, StoreError> {
        self.run(move |logs| Ok(list::folders(&logs.files, kind)?)).await
    }

    /// Follows the torn ends that are set aside from now on.
    #[must_use]
    pub fn follow_set_aside(&self) -> broadcast::Receiver<SetAside> {
        self.0.files.set_aside.subscribe()
    }

    /// Whether the file system could not promise that a new log replaces none, so that only the
    /// instance lock did. Worth a word to the person, once.
    #[must_use]
    pub fn relied_on_the_lock(&self) -> bool {
        self.0.files.unexclusive.load(Ordering::Relaxed)
    }

    /// Runs an operation on a thread that may block.
    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Logs) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let logs = Arc::clone(&self.0);
        blocking(&self.0.files.tasks, move || work(&logs)).await?
    }

    /// Takes a log that must not exist.
    fn reserve_new(&self, log: &LogId) -> Result<Claim, StoreError> {
        let place = || self.0.files.place(log);
        match self.0.registry.reserve(log) {
            Ok((claim, None)) => Ok(claim),
            Ok((_, Some(_))) | Err(Taken::Owned) => Err(StoreError::AlreadyExists(place())),
            Err(Taken::Reserved) => Err(StoreError::AlreadyOwned(place())),
        }
    }

    /// Takes a log that exists, with its end if an earlier writer left that unsettled.
    async fn reserve(&self, log: &LogId) -> Result<(Claim, Option<Left>), StoreError> {
        let (claim, left) = self
            .0
            .registry
            .reserve(log)
            .map_err(|_| StoreError::AlreadyOwned(self.0.files.place(log)))?;
        let Some(live) = left else { return Ok((claim, None)) };
        let tail = Arc::clone(&live.tail).lock_owned().await;
        Ok((claim, Some(Left { live, tail })))
    }
}

#[async_trait]
impl LogStore for Store {
    fn locate(&self, log: &LogId) -> Option<Location> {
        let files = &self.0.files;
        Some(Location { kind: files.options.encoding.name(), path: files.file(log) })
    }

    fn is_live(&self, log: &LogId) -> bool {
        self.0.registry.is_owned(log)
    }

    async fn create(
        &self,
        log: &LogId,
        batch: &[Record],
    ) -> Result<Box<dyn LogWriter>, StoreError> {
        if batch.is_empty() {
            return Err(StoreError::NoFirstRecord(self.0.files.place(log)));
        }
        let claim = self.reserve_new(log)?;
        let (lines, records) = (join(batch), batch.len() as u64);
        self.run(move |logs| {
            let bytes = logs.files.options.encoding.begin(lines);
            let bytes = bytes.map_err(|why| logs.files.unmade(claim.log(), 0, why))?;
            let batch = Batch { bytes: &bytes, records };
            let (tail, acked) = create::create(&logs.files, claim.log(), batch)?;
            let live = Arc::new(Live::new(tail, acked));
            Ok(Box::new(Writer::new(&logs.files, claim, live)) as Box<dyn LogWriter>)
        })
        .await
    }

    async fn open(&self, log: &LogId) -> Result<Box<dyn LogWriter>, StoreError> {
        let (claim, left) = self.reserve(log).await?;
        self.run(move |logs| {
            let writer = match left {
                Some(left) => logs.resume(claim, left),
                None => logs.open(claim),
            };
            Ok(Box::new(writer?) as Box<dyn LogWriter>)
        })
        .await
    }

    async fn inspect(&self, log: &LogId) -> Result<Arc<Inspection>, StoreError> {
        let log = log.clone();
        self.run(move |logs| logs.inspect(&log)).await
    }

    fn scan(&self, log: &LogId) -> Result<LogText, StoreError> {
        self.0.read(log, self.0.extent(log))
    }

    fn remnants(&self, kept: &Kept) -> Result<Vec<Remnant>, StoreError> {
        let files = &self.0.files;
        let path = match kept {
            Kept::There(log) => files.file(log),
            Kept::Removed(removed) => remove::log_in(files, removed),
        };
        read::remnants(files, &Place { log: kept.log().clone(), path: Some(path) })
    }

    fn size(&self, log: &LogId) -> Result<u64, StoreError> {
        read::size(&self.0.files, log)
    }

    async fn list(&self, kind: LogKind) -> Result<Vec<LogId>, StoreError> {
        self.run(move |logs| Ok(list::list(&logs.files, kind)?)).await
    }

    async fn check(&self) -> Result<Vec<StoreError>, StoreError> {
        self.run(|logs| remove::unreadable(&logs.files)).await
    }

    async fn strays(&self, kind: LogKind) -> Result<Strays, StoreError> {
        self.run(move |logs| Ok(list::strays(&logs.files, kind)?)).await
    }

    async fn snapshots(
        &self,
        kind: LogKind,
    ) -> Result<Vec<Result<Snapshot, StoreError>>, StoreError> {
        self.run(move |logs| {
            let ids = list::list(&logs.files, kind)?;
            Ok(ids.iter().map(|log| logs.snapshot(log)).collect())
        })
        .await
    }

    async fn revision(&self, log: &LogId) -> Result<Revision, StoreError> {
        let log = log.clone();
        self.run(move |logs| logs.revision(&log, logs.extent(&log))).await
    }

    async fn remove(&self, log: &LogId) -> Result<Removed, StoreError> {
        let (claim, left) = self.reserve(log).await?;
        self.run(move |logs| {
            // What cannot be made safe is no reason to keep it.
            if let Some(Err(error)) = left.map(|mut left| left.tail.settle(&logs.files)) {
                tracing::warn!(%error, "a log was not safe on the device when it was removed");
            }
            let removed = remove::remove(&logs.files, claim.log())?;
            claim.forget();
            Ok(removed)
        })
        .await
    }

    async fn removed(&self) -> Result<Vec<Removed>, StoreError> {
        self.run(|logs| remove::removed(&logs.files)).await
    }

    async fn inspect_removed(&self, removed: &Removed) -> Result<Inspection, StoreError> {
        let removed = removed.clone();
        self.run(move |logs| remove::inspect(&logs.files, &removed)).await
    }

    async fn restore(&self, removed: &Removed) -> Result<(), StoreError> {
        let claim = self.reserve_new(&removed.log);
        let removed = removed.clone();
        self.run(move |logs| {
            remove::find(&logs.files, &removed)?;
            let claim = claim?;
            let restored = remove::restore(&logs.files, &removed);
            // Held until here, so that nobody makes the log anew meanwhile.
            drop(claim);
            restored
        })
        .await
    }

    async fn take_over(&self, removed: &Removed, records: &[Record]) -> Result<(), StoreError> {
        if records.is_empty() {
            return Err(StoreError::NoFirstRecord(self.0.files.place(&removed.log)));
        }
        let (removed, lines) = (removed.clone(), join(records));
        self.run(move |logs| {
            let bytes = logs.files.options.encoding.begin(lines);
            let bytes = bytes.map_err(|why| logs.files.unmade(&removed.log, 0, why))?;
            remove::take_over(&logs.files, &removed, &bytes)
        })
        .await
    }

    async fn destroy(&self, removed: &Removed) -> Result<(), StoreError> {
        let removed = removed.clone();
        self.run(move |logs| remove::destroy(&logs.files, &removed)).await
    }

    async fn finish_destroying(&self) -> Result<(), StoreError> {
        self.run(|logs| remove::finish(&logs.files)).await
    }

    async fn flush(&self, scope: Option<&LogId>) -> Result<(), FlushError> {
        let registry = &self.0.registry;
        let logs = scope.map_or_else(|| registry.all(), |log| vec![log.clone()]);
        let mut failures = Vec::new();
        for log in logs {
            let Some(live) = registry.live(&log) else { continue };
            match writer::settle(&self.0.files, &live).await {
                Ok(()) => registry.sweep(&log),
                Err(error) => failures.push(error),
            }
        }
        FlushError::of(failures)
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("work_dir", &self.0.files.work_dir)
            .field("options", &self.0.files.options)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::clock::Clock as _;
    use crate::store::jsonl::read::Extent;
    use crate::store::log::Misplaced;
    use crate::testing::store::{Home, StillClock, records, turn};
    use std::collections::HashSet;
    use std::fs;
    use std::io::Write as _;
    use std::time::UNIX_EPOCH;

    #[tokio::test]
    async fn a_read_that_a_writer_overtakes_sees_no_torn_end() {
        let home = Home::new();
        let store = home.store(Options::default());
        let writer = store.create(&turn(0), &records(0..2)).await.expect("created");
        let mut file =
            fs::OpenOptions::new().append(true).open(home.file(&turn(0))).expect("there");
        file.write_all(b"{\"an append\":").expect("under way");
        // It began when nobody owned the log.
        let read = store.0.read(&turn(0), Extent::Cold).expect("readable");
        assert_eq!((read.records(), read.torn), (Ok(records(0..2)), None));
        drop(writer);
        assert!(store.0.read(&turn(0), Extent::Cold).expect("readable").torn.is_some());
    }

    #[tokio::test]
    async fn the_folders_of_logs_stay_the_same_until_a_log_comes() {
        let home = Home::new();
        let store = home.store(Options::default());
        let folders = async || store.folders(LogKind::Turn).await.expect("looked at");
        let before = folders().await;
        assert_eq!(folders().await, before);
        drop(store.create(&turn(0), &records(0..2)).await.expect("created"));
        let after = folders().await;
        assert_ne!(after, before);
        let day = home.file(&turn(0)).parent().map(std::path::Path::to_path_buf);
        assert_eq!(after.last().map(|(folder, _)| folder.clone()), day);
    }

    #[tokio::test]
    async fn a_torn_end_is_told_and_found_where_it_is_kept() {
        let home = Home::new();
        let store = home.store(Options::default());
        let mut told = store.follow_set_aside();
        drop(store.create(&turn(0), &records(0..2)).await.expect("created"));
        let file = home.file(&turn(0));
        let mut torn = fs::OpenOptions::new().append(true).open(&file).expect("there");
        torn.write_all(b"{\"cut").expect("torn");
        store.inspect(&turn(0)).await.expect("readable");
        assert!(told.try_recv().is_err(), "looking cuts nothing");
        drop(store.open(&turn(0)).await.expect("free"));
        let set_aside = told.try_recv().expect("told");
        assert_eq!((&set_aside.log, set_aside.bytes), (&turn(0), 5));
        assert_eq!(fs::read(&set_aside.path).expect("kept"), b"{\"cut");
        let strays = store.strays(LogKind::Turn).await.expect("listed");
        assert_eq!(strays, Strays { set_aside: vec![set_aside.path], misplaced: Vec::new() });
    }

    #[tokio::test]
    async fn a_log_in_a_wrong_folder_is_no_log_but_is_found() {
        let home = Home::new();
        let store = home.store(Options::default());
        for number in 0..3 {
            drop(store.create(&turn(number), &records(0..1)).await.expect("created"));
        }
        let move_to = |number: usize, folder: &str| {
            let belongs = home.file(&turn(number));
            let folder = home.work_dir().logs(LogKind::Turn).join(folder);
            let found = folder.join(belongs.file_name().expect("a name"));
            fs::create_dir_all(&folder).expect("a folder");
            fs::rename(&belongs, &found).expect("moved");
            Misplaced { log: turn(number), found, belongs }
        };
        let misplaced = vec![move_to(0, ""), move_to(1, "2025/12/31")];
        let copy = home.work_dir().logs(LogKind::Turn).join("2025");
        let file = home.file(&turn(2));
        fs::copy(&file, copy.join(file.file_name().expect("a name"))).expect("copied");
        assert_eq!(store.list(LogKind::Turn).await.expect("listed"), [turn(2)]);
        let strays = store.strays(LogKind::Turn).await.expect("listed");
        assert_eq!(strays, Strays { misplaced, set_aside: Vec::new() });
    }

    #[tokio::test]
    async fn what_is_no_file_is_a_damaged_log_and_nobody_waits_for_it() {
        let home = Home::new();
        let store = home.store(Options::default());
        let path = |number: usize| home.file(&turn(number));
        for number in 0..3 {
            fs::create_dir_all(path(number).parent().expect("a folder")).expect("made");
        }
        rustix::fs::mkfifoat(rustix::fs::CWD, path(0), rustix::fs::Mode::RWXU).expect("a pipe");
        drop(std::os::unix::net::UnixListener::bind(path(1)).expect("a socket"));
        fs::create_dir(path(2)).expect("a folder");
        let logs = [turn(0), turn(1), turn(2)];
        assert_eq!(store.list(LogKind::Turn).await.expect("listed"), logs);
        for log in &logs {
            for refused in [store.scan(log).map(drop), store.open(log).await.map(drop)] {
                assert!(matches!(refused, Err(StoreError::Io(_))), "{refused:?}");
            }
        }
        let why = store.scan(&turn(0)).expect_err("a pipe").to_string();
        assert!(why.ends_with("it is no regular file; move it away"), "{why}");
    }

    #[tokio::test]
    async fn new_logs_have_the_clock_s_time_and_no_two_the_same() {
        let home = Home::new();
        let store = home.store(Options::default());
        let mut seen = HashSet::new();
        for number in 0..20 {
            drop(store.create(&turn(number), &records(0..1)).await.expect("created"));
            let modified = fs::metadata(home.file(&turn(number))).and_then(|it| it.modified());
            let since = modified.expect("there").duration_since(UNIX_EPOCH).expect("later");
            assert_eq!(i64::try_from(since.as_millis()), Ok(StillClock.now().ms()));
            seen.insert(since);
        }
        assert_eq!(seen.len(), 20);
    }
}
