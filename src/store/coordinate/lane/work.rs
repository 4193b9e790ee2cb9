//! The work on the batches of one log: writing what waits, holding what the disk does not take, and
//! the end of it, after which the writer rests or the log is free.

use std::sync::Arc;
use std::time::Duration;

use crate::store::coordinate::board::Stall;
use crate::store::coordinate::lane::{Lane, Standing, State, UNWRITTEN_MAX, Wanted};
use crate::store::error::{StoreError, Trouble};
use crate::store::log::{Record, Revision};
use crate::store::seam::{Durability, LogWriter};

/// After how long a batch is tried again for the first time.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause between two tries: each is twice as long as the one before.
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// The work on a queue: it has the writer until nothing waits. Should it break off before, the log is
/// free, and whoever waits for it is told.
pub(super) struct AtWork {
    lane: Arc<Lane>,
    /// None as soon as it rests, or is gone.
    writer: Option<Box<dyn LogWriter>>,
}

/// The batches that are written at once.
struct Joined {
    batches: usize,
    records: Vec<Record>,
    durability: Durability,
}

/// What becomes of a batch that was held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    Again,
    GivenUp,
}

impl AtWork {
    pub(super) fn new(lane: Arc<Lane>, writer: Box<dyn LogWriter>) -> Self {
        Self { lane, writer: Some(writer) }
    }

    /// Writes until nothing waits.
    pub(super) async fn write(mut self) {
        let (mut pause, mut tries) = (FIRST_PAUSE, 0);
        while let Some(writer) = &mut self.writer {
            let joined = self.lane.lock().joined();
            let written = writer.append(&joined.records, joined.durability).await;
            match written {
                Err(error) if error.trouble().is_some() => {
                    tries += 1;
                    match self.lane.hold(&error, pause, tries).await {
                        Held::Again => pause = pause.saturating_mul(2).min(PAUSE_MAX),
                        Held::GivenUp => {
                            (pause, tries) = (FIRST_PAUSE, 0);
                            self.give_up(&error);
                        }
                    }
                }
                written => {
                    (pause, tries) = (FIRST_PAUSE, 0);
                    if let Err(error) = &written {
                        tracing::warn!(log = %self.lane.log(), %error, "a write was refused");
                    }
                    self.settle(joined.batches, &written);
                }
            }
        }
    }

    /// Nothing of what waits will be written.
    fn give_up(&mut self, error: &StoreError) {
        let (stalled, batches) = {
            let state = self.lane.lock();
            (state.stalled(&self.lane.place), state.queue.len())
        };
        let stalled = stalled.unwrap_or_else(|| error.clone());
        tracing::warn!(log = %self.lane.log(), error = %stalled, "what was held is given up");
        self.settle(batches, &Err(stalled));
    }

    /// What was tried is written, or never will be. When nothing else waits this is the end of the
    /// work.
    fn settle(&mut self, batches: usize, written: &Result<Revision, StoreError>) {
        let lane = Arc::clone(&self.lane);
        let mut state = lane.lock();
        if let Some(writer) = &self.writer {
            state.records = writer.records();
        }
        state.put_down(&lane);
        let done: Vec<_> = state.queue.drain(..batches).collect();
        if let Err(error) = written {
            let left = state.left;
            state.unwritten.push_back((left, error.clone()));
            if state.unwritten.len() > UNWRITTEN_MAX {
                state.unwritten.pop_front();
            }
        }
        state.left += done.len() as u64;
        if state.queue.is_empty() {
            let writer = self.writer.take();
            state.standing = match std::mem::replace(&mut state.standing, Standing::Free) {
                Standing::Works => writer.map_or(Standing::Free, Standing::Rests),
                // The writer goes before anybody can see that the log is free.
                Standing::Leaves | Standing::Rests(_) | Standing::Free | Standing::Lost => {
                    drop(writer);
                    Standing::Free
                }
            };
        }
        drop(state);
        for batch in done {
            // Nobody waiting for it is no error.
            batch.done.send(written.clone()).ok();
        }
        lane.tell();
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        let Some(writer) = self.writer.take() else { return };
        let mut state = self.lane.lock();
        drop(writer);
        state.standing = Standing::Lost;
        state.put_down(&self.lane);
        state.left = state.put;
        let lost = std::mem::take(&mut state.queue);
        drop(state);
        for batch in lost {
            batch.done.send(Err(self.lane.lost())).ok();
        }
        self.lane.tell();
    }
}

impl Lane {
    /// Keeps what was not written until it is to be tried again or not any more.
    async fn hold(&self, error: &StoreError, pause: Duration, tries: u32) -> Held {
        let retry_in = (error.trouble() == Some(Trouble::Want)).then_some(pause);
        let before = self.lock().held.replace(error.clone());
        if before.is_none_or(|before| before.to_string() != error.to_string()) {
            tracing::warn!(log = %self.log(), %error, "what is to be written is held");
        }
        let again = async {
            match retry_in {
                Some(pause) => tokio::time::sleep(pause).await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(again);
        let mut told = false;
        loop {
            let wanted = {
                let mut state = self.lock();
                std::mem::replace(&mut state.wanted, Wanted::Patience)
            };
            if wanted == Wanted::GiveUp || self.around.ending.is_cancelled() {
                return Held::GivenUp;
            }
            // Whoever asked while the try that has failed was under way did not mean that one.
            if wanted == Wanted::Retry {
                return Held::Again;
            }
            if !std::mem::replace(&mut told, true) {
                let (log, why) = (self.log().clone(), error.to_string());
                {
                    // What comes from here on counts itself.
                    let state = self.lock();
                    let (cause, records) = (error.cause(), state.waiting_records());
                    self.board.put(Stall { log, cause, why, records, retry_in, tries });
                }
                self.tell();
            }
            tokio::select! {
                biased;
                // All are safe to drop: a token keeps its state, a wish stays until it is heard, and
                // time goes on.
                () = self.around.ending.cancelled() => {}
                () = self.asked.notified() => {}
                () = &mut again => return Held::Again,
            }
        }
    }
}

impl State {
    /// All that waits.
    fn joined(&self) -> Joined {
        let all = &self.queue;
        let is_barrier = all.iter().any(|batch| batch.durability == Durability::Barrier);
        Joined {
            batches: all.len(),
            records: all.iter().flat_map(|batch| batch.records.iter().cloned()).collect(),
            durability: if is_barrier { Durability::Barrier } else { Durability::Written },
        }
    }
}
