//! What a lane holds: its batches, its writer when that rests, and what is wanted of both.

use std::collections::VecDeque;

use tokio::sync::oneshot;

use crate::store::error::{Place, StoreError};
use crate::store::log::{Record, Revision};
use crate::store::seam::{Durability, LogWriter};

pub(super) struct State {
    /// None while it is at work, and once the log is free.
    pub(super) writer: Option<Box<dyn LogWriter>>,
    pub(super) owner: Owner,
    /// How many records are acknowledged.
    pub(super) records: u64,
    pub(super) queue: VecDeque<Batch>,
    /// How many batches were ever put into the queue, and how many left it.
    pub(super) put: u64,
    pub(super) left: u64,
    /// What the disk said to the first batch, if that was tried and not written.
    pub(super) held: Option<StoreError>,
    /// How many tries were begun, and which of them, from 1, was the last that failed.
    pub(super) begun: u64,
    pub(super) failed: u64,
    pub(super) wanted: Wanted,
}

/// Who has the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// A writer that may have more to say.
    Writer,
    /// Nobody any more; what waits is still written.
    Nobody,
    /// Nobody, and it is free.
    Free,
}

/// What is to become of a batch that is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// It waits for its time, if it has one.
    Patience,
    /// It is to be tried now; again, if a try is under way that fails.
    Retry,
    /// It is not to be tried any more.
    GiveUp,
}

/// Records that belong together, and who waits for them.
pub(super) struct Batch {
    pub(super) records: Vec<Record>,
    pub(super) durability: Durability,
    pub(super) done: oneshot::Sender<Result<Revision, StoreError>>,
}

/// The batches that are written at once.
pub(super) struct Joined {
    pub(super) batches: usize,
    pub(super) records: Vec<Record>,
    pub(super) durability: Durability,
}

/// What becomes of a writer that has written.
pub(super) enum Next {
    /// More waits.
    More(Box<dyn LogWriter>),
    /// It rests.
    Rest,
    /// Nobody has the log, which is free once this is dropped.
    Free(Box<dyn LogWriter>),
}

impl State {
    /// What the lane of a writer holds that has written nothing yet.
    pub(super) fn new(writer: Box<dyn LogWriter>) -> Self {
        Self {
            owner: Owner::Writer,
            records: writer.records(),
            writer: Some(writer),
            queue: VecDeque::new(),
            put: 0,
            left: 0,
            held: None,
            begun: 0,
            failed: 0,
            wanted: Wanted::Patience,
        }
    }

    /// All that waits, which is tried now.
    pub(super) fn begin(&mut self) -> Joined {
        self.begun += 1;
        let all = &self.queue;
        let is_barrier = all.iter().any(|batch| batch.durability == Durability::Barrier);
        Joined {
            batches: all.len(),
            records: all.iter().flat_map(|batch| batch.records.iter().cloned()).collect(),
            durability: if is_barrier { Durability::Barrier } else { Durability::Written },
        }
    }

    /// The try that was begun last has failed.
    pub(super) fn fail(&mut self, error: &StoreError) {
        self.failed = self.begun;
        self.held = Some(error.clone());
    }

    /// Somebody wants what waits to be tried from now on.
    pub(super) fn want_retry(&mut self) {
        if !self.queue.is_empty() && self.wanted != Wanted::GiveUp {
            self.wanted = Wanted::Retry;
        }
    }

    /// Hands the writer on.
    pub(super) fn next(&mut self, writer: Box<dyn LogWriter>) -> Next {
        if !self.queue.is_empty() {
            return Next::More(writer);
        }
        match self.owner {
            Owner::Writer => {
                self.writer = Some(writer);
                Next::Rest
            }
            Owner::Nobody | Owner::Free => {
                self.owner = Owner::Free;
                Next::Free(writer)
            }
        }
    }

    pub(super) fn waiting_bytes(&self) -> usize {
        let records = self.queue.iter().flat_map(|batch| &batch.records);
        records.map(|record| record.as_bytes().len()).sum()
    }

    pub(super) fn waiting_records(&self) -> usize {
        self.queue.iter().map(|batch| batch.records.len()).sum()
    }

    pub(super) fn stalled(&self, place: &Place) -> Option<StoreError> {
        let cause = Box::new(self.held.clone()?);
        let records = self.waiting_records();
        Some(StoreError::Stalled { place: place.clone(), records, cause })
    }
}
