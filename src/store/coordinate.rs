//! Stands between everything that writes and a backend, so that no trouble of the disk loses a batch:
//! what it did not take is kept in order and tried again, the log's later batches wait behind it, and
//! no other log waits for that (`design/storage.md`, writing).

mod board;
mod lane;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use tokio::sync::{Mutex as AsyncMutex, watch};

use crate::base::tasks::Tasks;
use crate::store::coordinate::board::Board;
use crate::store::coordinate::lane::{Around, Lane};
use crate::store::error::{FlushError, Place, StoreError};
use crate::store::log::{
    Inspection, Location, LogId, LogKind, LogText, Record, Removed, Revision, Snapshot, Strays,
};
use crate::store::remnant::{Kept, Remnant};
use crate::store::seam::{Durability, LogStore, LogWriter};

pub use board::Stall;

/// A store whose writers do not give up. Clones share everything.
#[derive(Clone)]
pub struct Coordinator(Arc<Inner>);

struct Inner {
    store: Arc<dyn LogStore>,
    around: Around,
    board: Board,
    lanes: Mutex<HashMap<LogId, Arc<Lane>>>,
    barrier: AsyncMutex<Barrier>,
}

/// The last barrier over all logs.
#[derive(Default)]
struct Barrier {
    /// How many had asked for one when it began: it is theirs.
    covers: u64,
    outcome: Option<Result<(), FlushError>>,
}

impl Coordinator {
    /// A coordinator over `store`; `tasks` owns its writing, and when they are told to end nothing is
    /// held any longer.
    #[must_use]
    pub fn new(store: Arc<dyn LogStore>, tasks: Tasks) -> Self {
        let (board, lanes) = (Board::default(), Mutex::default());
        let around = Around { ending: tasks.cancel_token().child_token(), tasks };
        Self(Arc::new(Inner { store, around, board, lanes, barrier: AsyncMutex::default() }))
    }

    /// What the disk has not taken, and every change of that.
    #[must_use]
    pub fn follow_stalls(&self) -> watch::Receiver<Vec<Stall>> {
        self.0.board.follow()
    }

    /// Tries everything that is held again, now.
    pub fn retry(&self) {
        self.0.all_of(None).iter().for_each(|lane| lane.retry());
    }

    /// Gives up everything that is held: none of it is written any more, and whoever waits for it gets
    /// [`StoreError::Stalled`]. Gives what that is.
    #[must_use]
    pub fn give_up(&self) -> Vec<StoreError> {
        self.0.all_of(None).iter().filter_map(|lane| lane.give_up()).collect()
    }

    /// Gives up everything that is held, and from now on whatever the disk does not take at once: nobody
    /// is there any more who could ask for it. What it takes is written as before. Gives what was held.
    #[must_use]
    pub fn end(&self) -> Vec<StoreError> {
        let given_up = self.give_up();
        self.0.around.ending.cancel();
        given_up
    }
}

impl Inner {
    fn lanes(&self) -> MutexGuard<'_, HashMap<LogId, Arc<Lane>>> {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        lanes.retain(|_, lane| !lane.is_over());
        lanes
    }

    fn all_of(&self, scope: Option<&LogId>) -> Vec<Arc<Lane>> {
        let lanes = self.lanes();
        let mut all: Vec<_> = lanes
            .values()
            .filter(|lane| scope.is_none_or(|log| lane.log() == log))
            .cloned()
            .collect();
        all.sort_unstable_by(|a, b| a.log().cmp(b.log()));
        all
    }

    /// Puts a writer into a lane of its own.
    fn take(&self, writer: Box<dyn LogWriter>) -> Box<dyn LogWriter> {
        let log = writer.log().clone();
        let path = self.store.locate(&log).map(|location| location.path);
        let place = Place { log, path };
        let lane = Lane::new(place, writer, self.board.clone(), self.around.clone());
        self.lanes().insert(lane.log().clone(), Arc::clone(&lane));
        Box::new(Writer(lane))
    }

    /// A barrier over all logs, shared by all who asked before it began.
    async fn all_safe(&self) -> Result<(), FlushError> {
        let ticket = self.board.ticket();
        let mut barrier = self.barrier.lock().await;
        if barrier.covers >= ticket
            && let Some(outcome) = &barrier.outcome
        {
            return outcome.clone();
        }
        barrier.covers = self.board.tickets();
        barrier.outcome = None;
        let outcome = self.store.flush(None).await;
        barrier.outcome = Some(outcome.clone());
        outcome
    }
}

#[async_trait]
impl LogStore for Coordinator {
    fn locate(&self, log: &LogId) -> Option<Location> {
        self.0.store.locate(log)
    }

    fn is_live(&self, log: &LogId) -> bool {
        self.0.store.is_live(log)
    }

    /// What the disk does not take is not kept: there is no log yet, and whoever wants one has it all.
    async fn create(
        &self,
        log: &LogId,
        batch: &[Record],
    ) -> Result<Box<dyn LogWriter>, StoreError> {
        Ok(self.0.take(self.0.store.create(log, batch).await?))
    }

    async fn open(&self, log: &LogId) -> Result<Box<dyn LogWriter>, StoreError> {
        Ok(self.0.take(self.0.store.open(log).await?))
    }

    async fn inspect(&self, log: &LogId) -> Result<Arc<Inspection>, StoreError> {
        self.0.store.inspect(log).await
    }

    fn scan(&self, log: &LogId) -> Result<LogText, StoreError> {
        self.0.store.scan(log)
    }

    fn remnants(&self, kept: &Kept) -> Result<Vec<Remnant>, StoreError> {
        self.0.store.remnants(kept)
    }

    fn size(&self, log: &LogId) -> Result<u64, StoreError> {
        self.0.store.size(log)
    }

    async fn check(&self) -> Result<Vec<StoreError>, StoreError> {
        self.0.store.check().await
    }

    async fn read_from(&self, log: &LogId, seq: u64) -> Result<Vec<Record>, StoreError> {
        self.0.store.read_from(log, seq).await
    }

    async fn list(&self, kind: LogKind) -> Result<Vec<LogId>, StoreError> {
        self.0.store.list(kind).await
    }

    async fn strays(&self, kind: LogKind) -> Result<Strays, StoreError> {
        self.0.store.strays(kind).await
    }

    async fn snapshots(
        &self,
        kind: LogKind,
    ) -> Result<Vec<Result<Snapshot, StoreError>>, StoreError> {
        self.0.store.snapshots(kind).await
    }

    async fn revision(&self, log: &LogId) -> Result<Revision, StoreError> {
        self.0.store.revision(log).await
    }

    async fn remove(&self, log: &LogId) -> Result<Removed, StoreError> {
        self.0.store.remove(log).await
    }

    async fn removed(&self) -> Result<Vec<Removed>, StoreError> {
        self.0.store.removed().await
    }

    async fn inspect_removed(&self, removed: &Removed) -> Result<Inspection, StoreError> {
        self.0.store.inspect_removed(removed).await
    }

    async fn restore(&self, removed: &Removed) -> Result<(), StoreError> {
        self.0.store.restore(removed).await
    }

    async fn take_over(&self, removed: &Removed, records: &[Record]) -> Result<(), StoreError> {
        self.0.store.take_over(removed, records).await
    }

    async fn destroy(&self, removed: &Removed) -> Result<(), StoreError> {
        self.0.store.destroy(removed).await
    }

    async fn finish_destroying(&self) -> Result<(), StoreError> {
        self.0.store.finish_destroying().await
    }

    /// Also tries what is held in the scope, once.
    async fn flush(&self, scope: Option<&LogId>) -> Result<(), FlushError> {
        let mut failures = Vec::new();
        let lanes = self.0.all_of(scope);
        // All at once: one stuck log holds up no other.
        for lane in futures_util::future::join_all(lanes.iter().map(|lane| lane.drain())).await {
            failures.extend(lane.err());
        }
        let safe = match scope {
            Some(_) => self.0.store.flush(scope).await,
            None => self.0.all_safe().await,
        };
        if let Err(FlushError { first, more }) = safe {
            failures.push(first);
            failures.extend(more);
        }
        FlushError::of(failures)
    }
}

impl fmt::Debug for Coordinator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Coordinator").field("store", &self.0.store).finish_non_exhaustive()
    }
}

/// Hands batches to the lane of its log.
struct Writer(Arc<Lane>);

#[async_trait]
impl LogWriter for Writer {
    fn log(&self) -> &LogId {
        self.0.log()
    }

    fn records(&self) -> u64 {
        self.0.records()
    }

    async fn append(
        &mut self,
        batch: &[Record],
        durability: Durability,
    ) -> Result<Revision, StoreError> {
        self.0.append(batch, durability).await
    }

    async fn close(self: Box<Self>) -> Result<(), StoreError> {
        self.0.close().await
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.0.release();
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").field("log", self.log()).field("records", &self.records()).finish()
    }
}
