//! The one writer of a log: hands batches to the connection that writes, on a thread that may block.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use crate::store::error::StoreError;
use crate::store::log::{LogId, Record, Revision};
use crate::store::seam::{Durability, LogWriter, SyncMode};
use crate::store::sqlite::logs::{self, Logs};
use crate::store::sqlite::owners::Claim;
use crate::store::sqlite::rows::{self, End, Head};
use crate::store::sqlite::writing::{Change, Level, Writing};

pub(super) struct Writer {
    logs: Arc<Logs>,
    /// Shared with the append under way, so that the log is free only after it.
    claim: Arc<Claim>,
    end: Arc<Mutex<End>>,
}

impl Writer {
    /// The writer of a log that is live from now on.
    pub(super) fn new(logs: &Arc<Logs>, claim: Claim, head: Head) -> Self {
        claim.own();
        let end = End { head, attempted: Vec::new() };
        Self { logs: Arc::clone(logs), claim: Arc::new(claim), end: Arc::new(Mutex::new(end)) }
    }
}

#[async_trait]
impl LogWriter for Writer {
    fn log(&self) -> &LogId {
        self.claim.log()
    }

    fn records(&self) -> u64 {
        lock(&self.end).head.records
    }

    async fn append(
        &mut self,
        batch: &[Record],
        durability: Durability,
    ) -> Result<Revision, StoreError> {
        if batch.is_empty() {
            return Ok(lock(&self.end).head.revision);
        }
        let (batch, claim, end) = (batch.to_vec(), Arc::clone(&self.claim), Arc::clone(&self.end));
        let mode = self.logs.options.sync;
        let append = move |logs: &Arc<Logs>, writing: &mut Writing| {
            logs.database.check_lock()?;
            let (log, level, left) = (claim.log(), Level::of(mode, durability), lock(&end).clone());
            let change = Change { action: "append to", log, level };
            let mut added = None;
            let changed = writing.change(change, |rows| {
                let head = rows::append(rows, log, &left, &batch)?;
                added = Some(head);
                Ok(head)
            });
            if added.is_some() && changed.is_err() {
                // All that was missing is that it counts, which only the device knows.
                lock(&end).attempted = batch;
            }
            let head = changed?;
            if level == Level::Normal && mode != SyncMode::Never {
                writing.owe(log);
            }
            *lock(&end) = End { head, attempted: Vec::new() };
            Ok(head.revision)
        };
        self.logs.write(append).await
    }

    async fn close(self: Box<Self>) -> Result<(), StoreError> {
        let claim = Arc::clone(&self.claim);
        self.logs.write(move |_, writing| logs::settle(writing, claim.log())).await
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer")
            .field("log", self.claim.log())
            .field("acked", &lock(&self.end).head)
            .finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
