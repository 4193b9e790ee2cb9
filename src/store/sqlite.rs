//! The backend in a database: all logs in one file, `storage/turnstile.db`, mode 0600.
//!
//! One row for each record, one for each log with its first record; what was removed is in tables of
//! its own. One connection writes, for one change at a time; every reader has its own and sees the
//! state after the last change. What is committed is acknowledged: readers see no more and no less.
//!
//! The file is looked at before SQLite opens it, so that nothing of another program or version is
//! ever touched. It is made with the first log. A process that has not written it leaves no trace by
//! looking, and needs no right to write. While a process has it open, it must not be opened
//! and closed by any other way in the same process: that would take SQLite's locks away.

mod database;
mod failure;
mod header;
mod live_text;
mod logs;
mod making;
mod owners;
mod pages;
mod remnants;
mod removal;
mod rescue;
mod rows;
#[cfg(test)]
mod tests;
mod view;
mod writer;
mod writing;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;

pub use crate::store::parts::Parts;
pub(super) use database::beside;
pub use live_text::LiveRows;
pub(super) use making::BESIDE;
pub use rescue::Rescued;

use crate::store::cache::CacheBounds;
use crate::store::destroy;
use crate::store::error::{FlushError, StoreError};
use crate::store::log::{
    Inspection, Location, LogId, LogKind, LogText, Record, Removed, Revision, Snapshot, Strays,
};
use crate::store::remnant::{Kept, Remnant};
use crate::store::seam::{Durability, LogStore, LogWriter, SyncMode};
use crate::store::sqlite::database::Database;
use crate::store::sqlite::logs::Logs;
use crate::store::sqlite::owners::{Claim, Taken};
use crate::store::sqlite::rows::place;
use crate::store::sqlite::writer::Writer;
use crate::store::sqlite::writing::{Change, Level};
use crate::store::work_dir::WorkDir;

/// The configuration of a store in a database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// When to wait for the device.
    pub sync: SyncMode,
    /// How much to keep of what was read.
    pub cache: CacheBounds,
}

/// The logs of a work directory. Clones share everything. Dropping the last one moves the journal
/// into the database.
#[derive(Clone)]
pub struct Store(Arc<Logs>);

impl Store {
    /// The store in `work_dir`; touches nothing yet.
    #[must_use]
    pub fn new(work_dir: WorkDir, parts: Parts, options: Options) -> Self {
        Self(Arc::new(Logs::new(Database::new(work_dir, parts), options)))
    }

    /// Whether the database, if there is one, is one that this version can use. For a word to the
    /// person at the start; every operation looks, too.
    ///
    /// # Errors
    /// [`StoreError::Unsupported`], [`StoreError::Damaged`] and `Io`.
    pub async fn check(&self) -> Result<(), StoreError> {
        let check = |logs: &Arc<Logs>| logs.database.read(|read| Ok(rows::check(read)?));
        self.0.run(check).await.map(drop)
    }

    /// The file, and its journal, which changes first, each with when that was, in nanoseconds since 1970;
    /// for whoever wants to know whether anything came or went.
    ///
    /// # Errors
    /// The program is ending.
    pub async fn files(&self) -> Result<Vec<(PathBuf, u64)>, StoreError> {
        let look = |logs: &Arc<Logs>| {
            let Database { parts, path, .. } = &*logs.database;
            let changed = |path: PathBuf| {
                let stat = parts.disk.stat(&path).ok()?;
                Some((path, stat.modified_ns))
            };
            Ok([path.clone(), logs.database.wal()].into_iter().filter_map(changed).collect())
        };
        self.0.run(look).await
    }

    /// Saves what can still be read of a database that is damaged as a whole in a new one, the file `to`.
    /// Changes nothing else; nobody may be writing meanwhile.
    ///
    /// # Errors
    /// `Io` if the database cannot be read or the new one not be written, also because there is such a
    /// file already. Nothing is left of the new one then.
    pub async fn rescue(&self, to: PathBuf) -> Result<Rescued, StoreError> {
        let rescue = move |logs: &Arc<Logs>| {
            let Database { parts, path, .. } = &*logs.database;
            rescue::rescue(parts, path, &to)
        };
        self.0.run(rescue).await
    }

    /// The crash buffers of the turns in this database.
    #[must_use]
    pub fn live_text(&self) -> LiveRows {
        LiveRows(self.clone())
    }

    /// Takes a log that must not exist.
    fn reserve_new(&self, log: &LogId) -> Result<Claim, StoreError> {
        self.0.owners.reserve(log).map_err(|taken| match taken {
            Taken::Owned => StoreError::AlreadyExists(place(log)),
            Taken::Reserved => StoreError::AlreadyOwned(place(log)),
        })
    }

    /// Takes a log that exists.
    fn reserve(&self, log: &LogId) -> Result<Claim, StoreError> {
        self.0.owners.reserve(log).map_err(|_| StoreError::AlreadyOwned(place(log)))
    }

    /// How far creations and removals wait.
    fn level(&self) -> Level {
        Level::of(self.0.options.sync, Durability::Barrier)
    }
}

#[async_trait]
impl LogStore for Store {
    fn locate(&self, _log: &LogId) -> Option<Location> {
        None
    }

    fn is_live(&self, log: &LogId) -> bool {
        self.0.owners.is_owned(log)
    }

    async fn create(
        &self,
        log: &LogId,
        batch: &[Record],
    ) -> Result<Box<dyn LogWriter>, StoreError> {
        if batch.is_empty() {
            return Err(StoreError::NoFirstRecord(place(log)));
        }
        let claim = self.reserve_new(log)?;
        let (batch, level) = (batch.to_vec(), self.level());
        let create = move |logs: &Arc<Logs>, writing: &mut writing::Writing| {
            logs.database.check_lock()?;
            let (log, incarnation) = (claim.log(), logs.database.parts.entropy.bits());
            let change = Change { action: "make a log in", log, level };
            let head =
                writing.change(change, |rows| rows::create(rows, log, &batch, incarnation))?;
            Ok(Box::new(Writer::new(logs, claim, head)) as Box<dyn LogWriter>)
        };
        self.0.write(create).await
    }

    async fn open(&self, log: &LogId) -> Result<Box<dyn LogWriter>, StoreError> {
        let claim = self.reserve(log)?;
        let open = move |logs: &Arc<Logs>| {
            let head = rows::Head::at_end_of(&*logs.inspect(claim.log())?);
            logs.database.check_lock()?;
            Ok(Box::new(Writer::new(logs, claim, head)) as Box<dyn LogWriter>)
        };
        self.0.run(open).await
    }

    async fn inspect(&self, log: &LogId) -> Result<Arc<Inspection>, StoreError> {
        let log = log.clone();
        self.0.run(move |logs| logs.inspect(&log)).await
    }

    fn scan(&self, log: &LogId) -> Result<LogText, StoreError> {
        self.0.scan(log)
    }

    fn remnants(&self, kept: &Kept) -> Result<Vec<Remnant>, StoreError> {
        let found = self.0.database.read(|read| remnants::of(read, kept))?.flatten();
        found.ok_or_else(|| StoreError::NotFound(place(kept.log())))
    }

    fn size(&self, log: &LogId) -> Result<u64, StoreError> {
        let found = self.0.database.read(|read| Ok(remnants::size(read, log)?))?.flatten();
        found.ok_or_else(|| StoreError::NotFound(place(log)))
    }

    async fn check(&self) -> Result<Vec<StoreError>, StoreError> {
        let check = |logs: &Arc<Logs>| {
            let found = logs.database.read(|read| Ok(remnants::check(read)))?;
            let path = &logs.database.path;
            let damaged = |why| StoreError::Damaged { path: path.clone(), why };
            Ok(found.unwrap_or_default().into_iter().map(damaged).collect())
        };
        self.0.run(check).await
    }

    async fn list(&self, kind: LogKind) -> Result<Vec<LogId>, StoreError> {
        let list = move |logs: &Arc<Logs>| logs.database.read(|read| rows::list(read, kind));
        Ok(self.0.run(list).await?.unwrap_or_default())
    }

    async fn strays(&self, _kind: LogKind) -> Result<Strays, StoreError> {
        // Rows stand where their ids say.
        Ok(Strays::default())
    }

    async fn snapshots(
        &self,
        kind: LogKind,
    ) -> Result<Vec<Result<Snapshot, StoreError>>, StoreError> {
        let list = move |logs: &Arc<Logs>| logs.database.read(|read| rows::snapshots(read, kind));
        Ok(self.0.run(list).await?.unwrap_or_default())
    }

    async fn revision(&self, log: &LogId) -> Result<Revision, StoreError> {
        let log = log.clone();
        self.0.run(move |logs| logs.revision(&log)).await
    }

    async fn remove(&self, log: &LogId) -> Result<Removed, StoreError> {
        let claim = self.reserve(log)?;
        let level = self.level();
        let remove = move |logs: &Arc<Logs>, writing: &mut writing::Writing| {
            let (parts, log) = (&logs.database.parts, claim.log());
            logs.database.check_lock()?;
            // Without a database there is nothing to remove, and none is made for it.
            logs.revision(log)?;
            let key = format!("{}-{}-{:016x}", log.kind().as_str(), log.id(), parts.entropy.bits());
            let removed = Removed { log: log.clone(), at: parts.clock.now(), key };
            let change = Change { action: "remove a log from", log, level };
            writing.change(change, |rows| removal::remove(rows, &removed))?;
            Ok(removed)
        };
        self.0.write(remove).await
    }

    async fn removed(&self) -> Result<Vec<Removed>, StoreError> {
        let list = |logs: &Arc<Logs>| logs.database.read(removal::removed);
        Ok(self.0.run(list).await?.unwrap_or_default())
    }

    async fn inspect_removed(&self, removed: &Removed) -> Result<Inspection, StoreError> {
        let removed = removed.clone();
        let inspect = move |logs: &Arc<Logs>| {
            let found = logs.database.read(|read| removal::inspect(read, &removed))?;
            found.ok_or_else(|| StoreError::NotFound(place(&removed.log)))
        };
        self.0.run(inspect).await
    }

    async fn restore(&self, removed: &Removed) -> Result<(), StoreError> {
        let claim = self.reserve_new(&removed.log);
        let (removed, level) = (removed.clone(), self.level());
        let restore = move |logs: &Arc<Logs>, writing: &mut writing::Writing| {
            find(logs, &removed)?;
            // Held to the end, so that nobody makes the log anew meanwhile.
            let _claim = claim?;
            logs.database.check_lock()?;
            let change = Change { action: "put a log back into", log: &removed.log, level };
            writing.change(change, |rows| removal::restore(rows, &removed))?;
            // What others had set aside there has been taken out by them, or stays.
            let folder = logs.database.work_dir.removal(&removed);
            drop(logs.database.parts.disk.remove_folder(&folder));
            Ok(())
        };
        self.0.write(restore).await
    }

    async fn take_over(&self, removed: &Removed, records: &[Record]) -> Result<(), StoreError> {
        if records.is_empty() {
            return Err(StoreError::NoFirstRecord(place(&removed.log)));
        }
        let (removed, records, level) = (removed.clone(), records.to_vec(), self.level());
        let take = move |logs: &Arc<Logs>, writing: &mut writing::Writing| {
            logs.database.check_lock()?;
            let incarnation = logs.database.parts.entropy.bits();
            let change = Change { action: "take a removal over into", log: &removed.log, level };
            writing.change(change, |rows| removal::take_over(rows, &removed, &records, incarnation))
        };
        self.0.write(take).await
    }

    async fn destroy(&self, removed: &Removed) -> Result<(), StoreError> {
        let (removed, level) = (removed.clone(), self.level());
        let destroy = move |logs: &Arc<Logs>, writing: &mut writing::Writing| {
            let (disk, work_dir) = (&*logs.database.parts.disk, &logs.database.work_dir);
            logs.database.check_lock()?;
            find(logs, &removed)?;
            // Before the rows: without them nobody would find it again.
            destroy::output(disk, work_dir, &removed.log)?;
            destroy::folder(disk, &work_dir.removal(&removed))?;
            let change = Change { action: "destroy a log in", log: &removed.log, level };
            writing.change(change, |rows| removal::destroy(rows, &removed))?;
            writing.shrink();
            Ok(())
        };
        self.0.write(destroy).await
    }

    async fn flush(&self, scope: Option<&LogId>) -> Result<(), FlushError> {
        let scope = scope.cloned();
        let flushed = self.0.write(move |_, writing| Ok(logs::flush(writing, scope.as_ref())));
        match flushed.await {
            Ok(flushed) => flushed,
            Err(first) => Err(FlushError { first, more: Vec::new() }),
        }
    }
}

/// Whether a removal is still there.
fn find(logs: &Logs, removed: &Removed) -> Result<(), StoreError> {
    match logs.database.read(|read| removal::find(read, removed))? {
        Some(_) => Ok(()),
        None => Err(StoreError::NotFound(place(&removed.log))),
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("path", &self.0.database.path)
            .field("options", &self.0.options)
            .finish_non_exhaustive()
    }
}
