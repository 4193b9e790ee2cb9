//! Who owns which log in this process, and what is known of logs that have a writer or were left by
//! one before everything was safe.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Mutex as AsyncMutex;

use crate::store::jsonl::append::Tail;
use crate::store::jsonl::read::Acked;
use crate::store::log::LogId;

/// A log whose end is known.
pub(super) struct Live {
    /// Held while the end is being written. Waiters are served in order, so that appends whose
    /// futures were dropped still happen before later ones.
    pub(super) tail: Arc<AsyncMutex<Tail>>,
    acked: Mutex<Acked>,
}

impl Live {
    pub(super) fn new(tail: Tail, acked: Acked) -> Self {
        Self { tail: Arc::new(AsyncMutex::new(tail)), acked: Mutex::new(acked) }
    }

    pub(super) fn acked(&self) -> Acked {
        *lock(&self.acked)
    }

    pub(super) fn acknowledge(&self, acked: Acked) {
        *lock(&self.acked) = acked;
    }
}

/// The owned logs. One of a store, because a store is one process's view of a work directory.
#[derive(Default)]
pub(super) struct Registry {
    slots: Mutex<HashMap<LogId, Slot>>,
}

enum Slot {
    /// Being created, opened or moved.
    Reserved,
    /// Has a writer.
    Owned(Arc<Live>),
    /// Its writer went before all it wrote was safe; the next writer or a flush takes that over.
    Left(Arc<Live>),
}

/// Why a log was not reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// Somebody is about to own or move it.
    Reserved,
    /// It has a writer, so it exists.
    Owned,
}

impl Registry {
    /// Takes a log for oneself; gives what an earlier writer left.
    pub(super) fn reserve(
        self: &Arc<Self>,
        log: &LogId,
    ) -> Result<(Claim, Option<Arc<Live>>), Taken> {
        let mut slots = lock(&self.slots);
        let left = match slots.get(log) {
            Some(Slot::Reserved) => return Err(Taken::Reserved),
            Some(Slot::Owned(_)) => return Err(Taken::Owned),
            Some(Slot::Left(live)) => Some(Arc::clone(live)),
            None => None,
        };
        let slot = left.as_ref().map_or(Slot::Reserved, |live| Slot::Owned(Arc::clone(live)));
        slots.insert(log.clone(), slot);
        Ok((Claim { registry: Arc::clone(self), log: log.clone() }, left))
    }

    /// What is known of a log that has, or had, a writer.
    pub(super) fn live(&self, log: &LogId) -> Option<Arc<Live>> {
        match lock(&self.slots).get(log)? {
            Slot::Reserved => None,
            Slot::Owned(live) | Slot::Left(live) => Some(Arc::clone(live)),
        }
    }

    /// Whether a log has a writer.
    pub(super) fn is_owned(&self, log: &LogId) -> bool {
        matches!(lock(&self.slots).get(log), Some(Slot::Owned(_)))
    }

    /// All of them, sorted.
    pub(super) fn all(&self) -> Vec<LogId> {
        let mut logs: Vec<_> = lock(&self.slots).keys().cloned().collect();
        logs.sort_unstable();
        logs
    }

    /// Forgets a log that was left, once nothing remains to be done for it.
    pub(super) fn sweep(&self, log: &LogId) {
        let mut slots = lock(&self.slots);
        if let Some(Slot::Left(live)) = slots.get(log)
            && live.tail.try_lock().is_ok_and(|tail| !tail.is_unsettled())
        {
            slots.remove(log);
        }
    }

    fn release(&self, log: &LogId) {
        let mut slots = lock(&self.slots);
        let Some(Slot::Owned(live)) = slots.remove(log) else { return };
        // Busy means that a flush has it, which sweeps when it is done.
        let unsettled = live.tail.try_lock().map_or(true, |mut tail| {
            tail.rest();
            tail.is_unsettled()
        });
        if unsettled {
            slots.insert(log.clone(), Slot::Left(live));
        }
    }
}

/// The right to one log; free when dropped.
pub(super) struct Claim {
    registry: Arc<Registry>,
    log: LogId,
}

impl Claim {
    pub(super) fn log(&self) -> &LogId {
        &self.log
    }

    /// From now on the log is live.
    pub(super) fn own(&self, live: &Arc<Live>) {
        lock(&self.registry.slots).insert(self.log.clone(), Slot::Owned(Arc::clone(live)));
    }

    /// From now on nothing is known of it.
    pub(super) fn forget(&self) {
        lock(&self.registry.slots).insert(self.log.clone(), Slot::Reserved);
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.registry.release(&self.log);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
