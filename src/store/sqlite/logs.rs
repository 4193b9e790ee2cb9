//! The logs as a whole: their rows, who owns which, and what was read of them lately.

use std::sync::Arc;

use tokio::sync::Mutex as AsyncMutex;

use crate::store::blocking::blocking;
use crate::store::cache::Memo;
use crate::store::error::{FlushError, StoreError};
use crate::store::log::{Inspection, LogId, LogText, Revision};
use crate::store::sqlite::Options;
use crate::store::sqlite::database::Database;
use crate::store::sqlite::owners::Owners;
use crate::store::sqlite::rows::{self, place};
use crate::store::sqlite::writing::Writing;

pub(super) struct Logs {
    pub(super) options: Options,
    pub(super) database: Arc<Database>,
    pub(super) owners: Arc<Owners>,
    /// Held while something is written. Waiters are served in order, so that appends whose futures
    /// were dropped still happen before later ones.
    writing: Arc<AsyncMutex<Writing>>,
    cache: Memo<Inspection>,
}

impl Logs {
    pub(super) fn new(database: Database, options: Options) -> Self {
        let database = Arc::new(database);
        let writing = Arc::new(AsyncMutex::new(Writing::new(Arc::clone(&database))));
        let cache = Memo::new(options.cache);
        Self { options, database, owners: Arc::default(), writing, cache }
    }

    /// Runs an operation on a thread that may block.
    pub(super) async fn run<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Arc<Self>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let logs = Arc::clone(self);
        blocking(&self.database.parts.tasks, move || work(&logs)).await?
    }

    /// The same, of an operation that writes: one at a time, in the order in which they were asked
    /// for.
    pub(super) async fn write<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Arc<Self>, &mut Writing) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let mut writing = Arc::clone(&self.writing).lock_owned().await;
        self.run(move |logs| work(logs, &mut writing)).await
    }

    pub(super) fn revision(&self, log: &LogId) -> Result<Revision, StoreError> {
        let head = self.database.read(|read| Ok(rows::head(read, log)?))?.flatten();
        head.map(|head| head.revision).ok_or_else(|| StoreError::NotFound(place(log)))
    }

    pub(super) fn inspect(&self, log: &LogId) -> Result<Arc<Inspection>, StoreError> {
        let revision = self.revision(log)?;
        self.cache.get_or_read(log, revision, || self.read(log)?.inspection(log))
    }

    pub(super) fn scan(&self, log: &LogId) -> Result<LogText, StoreError> {
        Ok(self.read(log)?.text)
    }

    fn read(&self, log: &LogId) -> Result<rows::Read, StoreError> {
        let found = self.database.read(|read| rows::read(read, log))?.flatten();
        found.ok_or_else(|| StoreError::NotFound(place(log)))
    }
}

/// Makes safe what was written of a log, if it is not.
pub(super) fn settle(writing: &mut Writing, log: &LogId) -> Result<(), StoreError> {
    if !writing.unsafe_logs().contains(log) {
        return Ok(());
    }
    writing.sync().map_err(|cause| StoreError::Poisoned { place: place(log), cause })
}

/// Makes safe what was written of all logs in `scope`; all logs for `None`.
pub(super) fn flush(writing: &mut Writing, scope: Option<&LogId>) -> Result<(), FlushError> {
    let unsafe_logs = writing.unsafe_logs().iter();
    let owed: Vec<_> =
        unsafe_logs.filter(|log| scope.is_none_or(|scope| scope == *log)).cloned().collect();
    let Some((first, more)) = owed.split_first() else { return Ok(()) };
    writing.sync().map_err(|cause| {
        let failed = |log: &LogId| StoreError::Poisoned { place: place(log), cause: cause.clone() };
        FlushError { first: failed(first), more: more.iter().map(failed).collect() }
    })
}
