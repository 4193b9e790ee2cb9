//! The batches of one log, in order: those that arrive while one is being written go together after
//! it. A batch that was not written stays the first until it is, or is given up.

mod work;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::base::tasks::Tasks;
use crate::store::coordinate::board::Board;
use crate::store::coordinate::lane::work::AtWork;
use crate::store::error::{Place, StoreError};
use crate::store::log::{LogId, Record, Revision};
use crate::store::seam::{Durability, LogWriter};

/// How much of a log waits to be written, in bytes; whoever has more to say waits until there is room.
const WAITING_BYTES_MAX: usize = 16 * 1024 * 1024;

/// How many refusals are remembered for those who drain a lane: more than come while one of them waits.
const UNWRITTEN_MAX: usize = 16;

/// The way of a log's batches to the disk.
pub(super) struct Lane {
    place: Place,
    board: Board,
    around: Around,
    state: Mutex<State>,
    /// How often something was tried, and whether it was written or not.
    tries: watch::Sender<u64>,
    /// Somebody wants something of a batch that is held.
    asked: Notify,
}

/// What all lanes share.
#[derive(Clone)]
pub(super) struct Around {
    /// Who does the writing.
    pub(super) tasks: Tasks,
    /// From when on nothing is held: whoever could say what is to become of it is gone.
    pub(super) ending: CancellationToken,
}

struct State {
    standing: Standing,
    /// How many records are acknowledged.
    records: u64,
    queue: VecDeque<Batch>,
    /// How many batches were ever put into the queue, and how many left it.
    put: u64,
    left: u64,
    /// Which of them, from 0, left it without being written, and why: the last few, each for all that left
    /// with it.
    unwritten: VecDeque<(u64, StoreError)>,
    /// What the disk said to the first batch, if that was tried and not written.
    held: Option<StoreError>,
    wanted: Wanted,
}

/// Where the writer is. It changes together with the queue, under one lock: the writer rests or the
/// log is free before anybody hears that the last batch is settled.
enum Standing {
    /// Here. Nothing waits.
    Rests(Box<dyn LogWriter>),
    /// At work, for somebody who may have more to say.
    Works,
    /// At work, for nobody any more: what waits is still written, and then the log is free.
    Leaves,
    /// Gone, as it should: the log is free.
    Free,
    /// Gone: the work broke off. The log is free.
    Lost,
}

/// What is to become of a batch that is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    /// It waits for its time, if it has one.
    Patience,
    /// It is to be tried now.
    Retry,
    /// It is not to be tried any more.
    GiveUp,
}

/// Records that belong together, and who waits for them.
struct Batch {
    records: Vec<Record>,
    durability: Durability,
    done: oneshot::Sender<Result<Revision, StoreError>>,
}

impl Lane {
    pub(super) fn new(
        place: Place,
        writer: Box<dyn LogWriter>,
        board: Board,
        around: Around,
    ) -> Arc<Self> {
        let state = State {
            records: writer.records(),
            standing: Standing::Rests(writer),
            queue: VecDeque::new(),
            put: 0,
            left: 0,
            unwritten: VecDeque::new(),
            held: None,
            wanted: Wanted::Patience,
        };
        let (state, tries) = (Mutex::new(state), watch::Sender::default());
        Arc::new(Self { place, board, around, state, tries, asked: Notify::new() })
    }

    pub(super) fn log(&self) -> &LogId {
        &self.place.log
    }

    pub(super) fn records(&self) -> u64 {
        self.lock().records
    }

    /// Whether the log is free and nothing waits.
    pub(super) fn is_over(&self) -> bool {
        match self.lock().standing {
            Standing::Free | Standing::Lost => true,
            Standing::Rests(_) | Standing::Works | Standing::Leaves => false,
        }
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
        let rested = {
            let mut state = self.lock();
            let rested = match std::mem::replace(&mut state.standing, Standing::Works) {
                Standing::Rests(writer) => Some(writer),
                Standing::Works => None,
                gone @ (Standing::Leaves | Standing::Free | Standing::Lost) => {
                    state.standing = gone;
                    return Err(self.lost());
                }
            };
            state.put += 1;
            state.queue.push_back(Batch { records: batch.to_vec(), durability, done });
            self.board.count(self.log(), state.waiting_records());
            rested
        };
        if let Some(writer) = rested {
            // Made here: should the task never begin, this is dropped all the same.
            let at_work = AtWork::new(Arc::clone(self), writer);
            drop(self.around.tasks.spawn("write a log", at_work.write()));
        }
        heard.await.unwrap_or_else(|_| Err(self.lost()))
    }

    fn lost(&self) -> StoreError {
        StoreError::WriterLost(self.place.clone())
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
        self.want(Wanted::Retry);
    }

    /// Gives up what is held; says what that is.
    pub(super) fn give_up(&self) -> Option<StoreError> {
        self.want(Wanted::GiveUp)
    }

    /// Returns when what waits now is written.
    ///
    /// # Errors
    /// [`StoreError::Stalled`] if it was tried from now on and the disk did not take it, or if it was
    /// given up; [`StoreError::WriterLost`] if the work on it broke off.
    pub(super) async fn drain(&self) -> Result<(), StoreError> {
        let mut tries = self.tries.subscribe();
        let before = *tries.borrow_and_update();
        let waits = {
            let state = self.lock();
            state.left..state.put
        };
        self.retry();
        loop {
            {
                let state = self.lock();
                if matches!(state.standing, Standing::Lost) {
                    return Err(self.lost());
                }
                if state.left >= waits.end {
                    let ours = state.unwritten.iter().find(|(first, _)| waits.contains(first));
                    return ours.map_or(Ok(()), |(_, error)| Err(error.clone()));
                }
                if let Some(error) = state.stalled(&self.place).filter(|_| *tries.borrow() > before)
                {
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
        // With nothing left to write the writer rests here.
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
        let (standing, writer) = match std::mem::replace(&mut state.standing, Standing::Free) {
            Standing::Rests(writer) => (Standing::Free, Some(writer)),
            Standing::Works | Standing::Leaves => (Standing::Leaves, None),
            gone @ (Standing::Free | Standing::Lost) => (gone, None),
        };
        state.standing = standing;
        writer
    }

    fn want(&self, wanted: Wanted) -> Option<StoreError> {
        let mut state = self.lock();
        let stalled = state.stalled(&self.place);
        // A first try that is under way may fail, and is then made again.
        let is_at_work = matches!(state.standing, Standing::Works | Standing::Leaves);
        if stalled.is_some() || (is_at_work && wanted == Wanted::Retry) {
            state.wanted = wanted;
            self.asked.notify_one();
        }
        stalled
    }

    fn tell(&self) {
        self.tries.send_modify(|tries| *tries += 1);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Nothing is held any more.
    fn put_down(&mut self, lane: &Lane) {
        self.wanted = Wanted::Patience;
        if self.held.take().is_some() {
            lane.board.clear(lane.log());
        }
    }

    fn waiting_bytes(&self) -> usize {
        let records = self.queue.iter().flat_map(|batch| &batch.records);
        records.map(|record| record.as_bytes().len()).sum()
    }

    fn waiting_records(&self) -> usize {
        self.queue.iter().map(|batch| batch.records.len()).sum()
    }

    fn stalled(&self, place: &Place) -> Option<StoreError> {
        let cause = Box::new(self.held.clone()?);
        let records = self.waiting_records();
        Some(StoreError::Stalled { place: place.clone(), records, cause })
    }
}
