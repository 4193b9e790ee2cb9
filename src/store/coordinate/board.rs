//! What is stalled, for whoever shows it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::watch;

use crate::store::log::LogId;

/// A log of which the disk did not take everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stall {
    /// Which log.
    pub log: LogId,
    /// What the disk said, in its own words.
    pub cause: String,
    /// The same with what was tried, and where.
    pub why: String,
    /// How many records are held.
    pub records: usize,
    /// After how long they are tried again, from when this was told; on a word of a person's, if not
    /// by themselves.
    pub retry_in: Option<Duration>,
    /// How often that was tried.
    pub tries: u32,
}

/// The board on which lanes tell of their stalls. Clones are the same.
#[derive(Clone, Default)]
pub(super) struct Board {
    stalls: watch::Sender<Vec<Stall>>,
    tickets: Arc<AtomicU64>,
}

impl Board {
    pub(super) fn follow(&self) -> watch::Receiver<Vec<Stall>> {
        self.stalls.subscribe()
    }

    /// A log is stalled, or stalled anew.
    pub(super) fn put(&self, stall: Stall) {
        self.stalls.send_modify(|stalls| {
            stalls.retain(|it| it.log != stall.log);
            stalls.push(stall);
            stalls.sort_unstable_by(|a, b| a.log.cmp(&b.log));
        });
    }

    /// A stalled log holds so many records now.
    pub(super) fn count(&self, log: &LogId, records: usize) {
        self.stalls.send_if_modified(|stalls| {
            let stall = stalls.iter_mut().find(|it| it.log == *log && it.records != records);
            stall.map(|stall| stall.records = records).is_some()
        });
    }

    /// A log is stalled no more.
    pub(super) fn clear(&self, log: &LogId) {
        self.stalls.send_if_modified(|stalls| {
            let before = stalls.len();
            stalls.retain(|it| it.log != *log);
            stalls.len() < before
        });
    }

    /// Another one asks for a barrier; gives its number, from 1. Whoever counts it sees what was written
    /// before it.
    pub(super) fn ticket(&self) -> u64 {
        self.tickets.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// How many have asked.
    pub(super) fn tickets(&self) -> u64 {
        self.tickets.load(Ordering::Acquire)
    }
}
