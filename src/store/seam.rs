//! The durability seam: what every backend promises, and how durable a batch must be.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use crate::store::error::{FlushError, StoreError};
use crate::store::log::{
    Inspection, Location, LogId, LogKind, LogText, Record, Removed, Revision, Snapshot, Strays,
};
use crate::store::remnant::{Kept, Remnant};

/// When what was written is made to survive a loss of power (`storage.sync`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SyncMode {
    /// At barriers: before an effect, at a person's decision, at suspension and at the end.
    #[default]
    Barrier,
    /// After every batch.
    Always,
    /// When the system pleases.
    Never,
}

/// What the caller needs of one batch before the append resolves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// It survives the death of the process. A later barrier of the same log covers it.
    Written,
    /// It and everything before it in this log survive a loss of power, as far as the
    /// [`SyncMode`] lets them.
    Barrier,
}

impl SyncMode {
    /// Whether a batch that must be durable in this way waits for the device.
    #[must_use]
    pub fn waits_for(self, durability: Durability) -> bool {
        match self {
            Self::Barrier => durability == Durability::Barrier,
            Self::Always => true,
            Self::Never => false,
        }
    }
}

/// A store of append-only logs. One contract suite (`testing::store_contract`) holds every backend
/// to it:
///
/// - [`create`](Self::create) is exclusive and whole or not at all, also over a crash.
/// - An append that failed in a living process left nothing, and the same batch may be given again.
///   After a crash a log holds what was acknowledged, and perhaps whole records that followed.
/// - A log has at most one writer in a process. Across processes the instance lock owns all logs.
/// - A log with a writer is **live**: it is read up to what was acknowledged, and never repaired.
/// - A read that starts after an append has resolved sees it.
/// - Reading never changes a revision. Dropping the future of a read ends only that wait: a read
///   that others share goes on.
/// - Appends whose future is dropped may still happen, before any later append of that log.
#[async_trait]
pub trait LogStore: fmt::Debug + Send + Sync {
    /// Where the log lies or would lie, without looking. `None` if it has no file of its own.
    fn locate(&self, log: &LogId) -> Option<Location>;

    /// Whether a writer of this process owns the log. Of a live log an open turn is under way; of
    /// any other it was interrupted.
    fn is_live(&self, log: &LogId) -> bool;

    /// Makes a log with its first records, and owns it.
    ///
    /// # Errors
    /// [`StoreError::AlreadyExists`], [`StoreError::NoFirstRecord`] for an empty batch, and `Io`.
    async fn create(&self, log: &LogId, batch: &[Record])
    -> Result<Box<dyn LogWriter>, StoreError>;

    /// Owns a log for writing. Records that a crash left torn are set aside first. While the writer
    /// lives, what [`inspect`](Self::inspect) gives changes only through it.
    ///
    /// # Errors
    /// [`StoreError::AlreadyOwned`] while another writer lives, `NotFound`, `Corrupt`, `Torn` in
    /// strict mode, and `Io`. The log is as free as before then.
    async fn open(&self, log: &LogId) -> Result<Box<dyn LogWriter>, StoreError>;

    /// Reads a log. Never writes. Reads of an unchanged log share one result.
    ///
    /// # Errors
    /// `NotFound`, `Corrupt`, `Torn` in strict mode, and `Io`.
    async fn inspect(&self, log: &LogId) -> Result<Arc<Inspection>, StoreError>;

    /// The text of a log, read on this thread and not kept: for a bounded pool of threads that goes
    /// over thousands of logs. What the lines say is left to whoever reads them as events, who
    /// checks more than that they are records.
    ///
    /// # Errors
    /// As [`inspect`](Self::inspect); `Corrupt` only where the lines themselves cannot be had.
    fn scan(&self, log: &LogId) -> Result<LogText, StoreError>;

    /// What can still be had of a log, damaged or not, removed or not, read on this thread. Takes no
    /// damage for granted: goes on behind it wherever something sound begins.
    ///
    /// # Errors
    /// `NotFound`, and `Io` where nothing can be read at all.
    fn remnants(&self, kept: &Kept) -> Result<Vec<Remnant>, StoreError>;

    /// How many bytes a log takes where it is kept, looked at on this thread and without reading it
    /// where that is possible.
    ///
    /// # Errors
    /// `NotFound` and `Io`.
    fn size(&self, log: &LogId) -> Result<u64, StoreError>;

    /// What is wrong with what all logs share, beyond what reading each of them tells; nothing, where
    /// they share nothing. Reads all of it.
    ///
    /// # Errors
    /// `Io`, and what keeps it from being looked at.
    async fn check(&self) -> Result<Vec<StoreError>, StoreError> {
        Ok(Vec::new())
    }

    /// The records from number `seq` (from 0) on; none if there are not so many.
    ///
    /// # Errors
    /// As [`inspect`](Self::inspect).
    async fn read_from(&self, log: &LogId, seq: u64) -> Result<Vec<Record>, StoreError> {
        let inspection = self.inspect(log).await?;
        let seq = usize::try_from(seq).unwrap_or(usize::MAX);
        Ok(inspection.records.get(seq..).unwrap_or_default().to_vec())
    }

    /// All logs of a kind, oldest first. Reads names only, so damaged logs are listed too.
    ///
    /// # Errors
    /// `Io` if any place that may hold logs cannot be read: a list is whole or refused.
    async fn list(&self, kind: LogKind) -> Result<Vec<LogId>, StoreError>;

    /// What stands among the logs of a kind and is none of them; nothing, where logs have no files.
    ///
    /// # Errors
    /// As [`list`](Self::list).
    async fn strays(&self, kind: LogKind) -> Result<Strays, StoreError>;

    /// The header and the revision of every log of a kind, in the order of [`list`](Self::list);
    /// decodes nothing beyond the first record. A damaged log is an error in its place.
    ///
    /// # Errors
    /// As [`list`](Self::list).
    async fn snapshots(
        &self,
        kind: LogKind,
    ) -> Result<Vec<Result<Snapshot, StoreError>>, StoreError>;

    /// The revision of a log, without reading it.
    ///
    /// # Errors
    /// `NotFound` and `Io`.
    async fn revision(&self, log: &LogId) -> Result<Revision, StoreError>;

    /// Takes a log, with all that stands beside it, out of the store, so that it can be restored.
    ///
    /// # Errors
    /// `NotFound`, `AlreadyOwned` while it has a writer, and `Io`.
    async fn remove(&self, log: &LogId) -> Result<Removed, StoreError>;

    /// What was removed and is still there, oldest removal first.
    ///
    /// # Errors
    /// `Io`.
    async fn removed(&self) -> Result<Vec<Removed>, StoreError>;

    /// Reads a removed log where it is kept.
    ///
    /// # Errors
    /// As [`inspect`](Self::inspect); `NotFound` if it is not there any more.
    async fn inspect_removed(&self, removed: &Removed) -> Result<Inspection, StoreError>;

    /// Puts a removed log back, byte for byte.
    ///
    /// # Errors
    /// `AlreadyExists` if the id is in use again, `NotFound` if it is not there any more, and `Io`.
    async fn restore(&self, removed: &Removed) -> Result<(), StoreError>;

    /// Takes a removal of another store over: a log of these records that was removed then, under the
    /// same key, so that what others keep for it is found.
    ///
    /// # Errors
    /// `AlreadyExists` if it is here already, [`StoreError::NoFirstRecord`], and `Io`.
    async fn take_over(&self, removed: &Removed, records: &[Record]) -> Result<(), StoreError>;

    /// Destroys a removed log for good, and with a turn the output of its tools.
    ///
    /// # Errors
    /// `NotFound` if it is not there any more, and `Io`.
    async fn destroy(&self, removed: &Removed) -> Result<(), StoreError>;

    /// Finishes destructions that broke off: of a removal whose log is destroyed nothing is left. What
    /// can be restored stays. Does nothing where a destruction cannot break off.
    ///
    /// # Errors
    /// `Io`; the rest is for the next time.
    async fn finish_destroying(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Makes everything acknowledged in `scope` (all logs for `None`) as durable as the
    /// [`SyncMode`] promises at a barrier, also of writers that were dropped before one.
    ///
    /// # Errors
    /// [`FlushError`] with every log that could not be made safe.
    async fn flush(&self, scope: Option<&LogId>) -> Result<(), FlushError>;
}

/// The one writer of a log. Dropping it frees the log at once and writes nothing.
#[async_trait]
pub trait LogWriter: fmt::Debug + Send + Sync {
    /// Which log this writes.
    fn log(&self) -> &LogId;

    /// How many records have been acknowledged; the next one gets this number.
    fn records(&self) -> u64;

    /// Adds records at the end, all or none. An empty batch does nothing.
    ///
    /// # Errors
    /// `Io` (nothing was written; the same batch may be given again), [`StoreError::Changed`] and
    /// [`StoreError::LockLost`] if somebody else interfered, [`StoreError::Poisoned`].
    async fn append(
        &mut self,
        batch: &[Record],
        durability: Durability,
    ) -> Result<Revision, StoreError>;

    /// A barrier, then the log is free.
    ///
    /// # Errors
    /// As [`append`](Self::append). The log is free, and what is not safe is kept for
    /// [`LogStore::flush`].
    async fn close(self: Box<Self>) -> Result<(), StoreError>;
}
