//! The batches of one log, in order: those that arrive while one is being written go together after
//! it. A batch that was not written stays the first until it is, or is given up.

mod state;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, oneshot, watch};

use crate::base::tasks::Tasks;
use crate::store::coordinate::board::{Board, Stall};
use crate::store::coordinate::lane::state::{Batch, Next, Owner, State, Wanted};
use crate::store::error::{Ending, Place, StoreError, Trouble};
use crate::store::log::{LogId, Record, Revision};
use crate::store::seam::{Durability, LogWriter};

/// How much of a log waits to be written, in bytes; whoever has more to say waits until there is room.
const WAITING_BYTES_MAX: usize = 16 * 1024 * 1024;
/// After how long a batch is tried again for the first time.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause between two tries: each is twice as long as the one before.
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// The way of a log's batches to the disk.
pub(super) struct Lane {
    place: Place,
    board: Board,
    tasks: Tasks,
    state: Mutex<State>,
    /// How often something was tried, and whether it was written or not.
    tries: watch::Sender<u64>,
    /// Somebody wants something of a batch that is held.
    asked: Notify,
}

/// The work on a queue. Should it break off, nobody waits for it any longer.
struct AtWork<'a>(&'a Lane);

impl AtWork<'_> {
    /// The queue was worked off; whatever the lane is by now is another work's.
    fn end(self) {
        std::mem::forget(self);
    }
}

impl Drop for AtWork<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.owner = Owner::Free;
        state.left = state.put;
        // Whoever waits hears that it is over by the end of this.
        state.queue.clear();
    }
}

impl Lane {
    pub(super) fn new(
        place: Place,
        writer: Box<dyn LogWriter>,
        board: Board,
        tasks: Tasks,
    ) -> Arc<Self> {
        let (state, tries) = (Mutex::new(State::new(writer)), watch::Sender::default());
        Arc::new(Self { place, board, tasks, state, tries, asked: Notify::new() })
    }

    pub(super) fn log(&self) -> &LogId {
        &self.place.log
    }

    pub(super) fn records(&self) -> u64 {
        self.lock().records
    }

    /// Whether the log is free and nothing waits.
    pub(super) fn is_over(&self) -> bool {
        self.lock().owner == Owner::Free
    }

    /// Returns when the batch is written, or given up. When nobody waits for that any more it is
    /// written all the same.
    pub(super) async fn append(
        self: &Arc<Self>,
        batch: &[Record],
        durability: Durability,
    ) -> Result<Revision, StoreError> {
        self.room().await;
        let (done, heard) = oneshot::channel();
        let writer = {
            let mut state = self.lock();
            state.put += 1;
            state.queue.push_back(Batch { records: batch.to_vec(), durability, done });
            state.writer.take()
        };
        if let Some(writer) = writer {
            let lane = Arc::clone(self);
            drop(self.tasks.spawn("write a log", async move { lane.work(writer).await }));
        }
        heard.await.unwrap_or(Err(StoreError::Ending(Ending)))
    }

    /// Waits until what waits is little enough that more may.
    async fn room(&self) {
        let mut tries = self.tries.subscribe();
        while self.lock().waiting_bytes() > WAITING_BYTES_MAX {
            // The sender is ours.
            tries.changed().await.ok();
        }
    }

    /// Tries what is held now.
    pub(super) fn retry(&self) {
        self.lock().want_retry();
        self.asked.notify_one();
    }

    /// Gives up what is held; says what that is.
    pub(super) fn give_up(&self) -> Option<StoreError> {
        let mut state = self.lock();
        let stalled = state.stalled(&self.place)?;
        state.wanted = Wanted::GiveUp;
        self.asked.notify_one();
        Some(stalled)
    }

    /// Returns when what waits now is written or given up.
    ///
    /// # Errors
    /// [`StoreError::Stalled`] if it was tried from now on and the disk did not take it.
    pub(super) async fn drain(&self) -> Result<(), StoreError> {
        let mut tries = self.tries.subscribe();
        let (until, before) = {
            let mut state = self.lock();
            state.want_retry();
            (state.put, state.begun)
        };
        self.asked.notify_one();
        loop {
            tries.mark_unchanged();
            {
                let state = self.lock();
                if state.left >= until {
                    return Ok(());
                }
                // A try that was under way says nothing of what the disk takes now.
                if let Some(error) = state.stalled(&self.place).filter(|_| state.failed > before) {
                    return Err(error);
                }
            }
            // The sender is ours.
            tries.changed().await.ok();
        }
    }

    /// Frees the log when all that waits is written, and makes it safe. What the disk does not take
    /// now is tried on.
    pub(super) async fn close(&self) -> Result<(), StoreError> {
        let drained = self.drain().await;
        let writer = self.let_go();
        drained?;
        match writer {
            Some(writer) => writer.close().await,
            None => Ok(()),
        }
    }

    /// Frees the log, when all that waits is written.
    pub(super) fn release(&self) {
        drop(self.let_go());
    }

    fn let_go(&self) -> Option<Box<dyn LogWriter>> {
        let mut state = self.lock();
        let writer = state.writer.take();
        state.owner = match (state.owner, &writer) {
            (Owner::Free, _) | (_, Some(_)) => Owner::Free,
            (Owner::Writer | Owner::Nobody, None) => Owner::Nobody,
        };
        writer
    }

    /// Writes until nothing waits.
    async fn work(&self, mut writer: Box<dyn LogWriter>) {
        let at_work = AtWork(self);
        let (mut pause, mut tries) = (FIRST_PAUSE, 0);
        loop {
            let joined = self.lock().begin();
            let written = writer.append(&joined.records, joined.durability).await;
            let settled = match written {
                Err(error) if error.trouble().is_some() => {
                    tries += 1;
                    self.hold(error, pause, tries).await
                }
                written => Some((joined.batches, written)),
            };
            let Some((batches, outcome)) = settled else {
                pause = pause.saturating_mul(2).min(PAUSE_MAX);
                continue;
            };
            (pause, tries) = (FIRST_PAUSE, 0);
            match self.settle(batches, &outcome, writer) {
                Some(at_hand) => writer = at_hand,
                None => return at_work.end(),
            }
        }
    }

    /// What was tried is written, or never will be. Gives the writer back if more waits; else it rests,
    /// or the log is free, before anybody hears of it: who does may close the log at once.
    fn settle(
        &self,
        batches: usize,
        outcome: &Result<Revision, StoreError>,
        writer: Box<dyn LogWriter>,
    ) -> Option<Box<dyn LogWriter>> {
        let mut state = self.lock();
        state.records = writer.records();
        if state.held.take().is_some() {
            self.board.clear(self.log());
        }
        state.wanted = Wanted::Patience;
        let done: Vec<_> = state.queue.drain(..batches).collect();
        state.left += done.len() as u64;
        let next = state.next(writer);
        drop(state);
        let more = match next {
            Next::More(writer) => Some(writer),
            Next::Rest => None,
            Next::Free(writer) => {
                drop(writer);
                None
            }
        };
        for batch in done {
            // Nobody waiting for it is no error.
            batch.done.send(outcome.clone()).ok();
        }
        self.tell();
        more
    }

    /// Keeps what was not written until it is to be tried again; or gives it up, with all behind it.
    async fn hold(
        &self,
        error: StoreError,
        pause: Duration,
        tries: u32,
    ) -> Option<(usize, Result<Revision, StoreError>)> {
        let retry_in = (error.trouble() == Some(Trouble::Want)).then_some(pause);
        self.lock().fail(&error);
        match self.wait(&error, retry_in, tries).await {
            Wanted::Patience | Wanted::Retry => None,
            Wanted::GiveUp => {
                let state = self.lock();
                let stalled = state.stalled(&self.place).unwrap_or(error);
                Some((state.queue.len(), Err(stalled)))
            }
        }
    }

    async fn wait(&self, error: &StoreError, retry_in: Option<Duration>, tries: u32) -> Wanted {
        let again = async {
            match retry_in {
                Some(pause) => tokio::time::sleep(pause).await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(again);
        self.tell_of(error, retry_in, tries);
        loop {
            match std::mem::replace(&mut self.lock().wanted, Wanted::Patience) {
                Wanted::Patience => {}
                wanted @ (Wanted::Retry | Wanted::GiveUp) => return wanted,
            }
            tokio::select! {
                biased;
                // Both are safe to drop: a wish stays until it is heard, and time goes on.
                () = self.asked.notified() => {}
                () = &mut again => return Wanted::Retry,
            }
        }
    }

    /// Puts on the board that a try failed, unless that is to be given up anyway.
    fn tell_of(&self, error: &StoreError, retry_in: Option<Duration>, tries: u32) {
        let records = {
            let state = self.lock();
            if state.wanted == Wanted::GiveUp {
                return;
            }
            state.waiting_records()
        };
        let (log, why) = (self.log().clone(), error.to_string());
        self.board.put(Stall { log, cause: error.cause(), why, records, retry_in, tries });
        self.tell();
    }

    fn tell(&self) {
        self.tries.send_modify(|tries| *tries += 1);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
