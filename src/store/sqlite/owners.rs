//! Who owns which log in this process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::store::log::LogId;

/// Why a log was not reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// Somebody is about to own or move it.
    Reserved,
    /// It has a writer, so it exists.
    Owned,
}

/// The owned logs.
#[derive(Default)]
pub(super) struct Owners {
    slots: Mutex<HashMap<LogId, Taken>>,
}

impl Owners {
    /// Takes a log for oneself.
    pub(super) fn reserve(self: &Arc<Self>, log: &LogId) -> Result<Claim, Taken> {
        let mut slots = self.lock();
        if let Some(taken) = slots.get(log) {
            return Err(*taken);
        }
        slots.insert(log.clone(), Taken::Reserved);
        Ok(Claim { owners: Arc::clone(self), log: log.clone() })
    }

    /// Whether a log has a writer.
    pub(super) fn is_owned(&self, log: &LogId) -> bool {
        self.lock().get(log) == Some(&Taken::Owned)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<LogId, Taken>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to one log; free when dropped.
pub(super) struct Claim {
    owners: Arc<Owners>,
    log: LogId,
}

impl Claim {
    pub(super) fn log(&self) -> &LogId {
        &self.log
    }

    /// From now on the log is live.
    pub(super) fn own(&self) {
        self.owners.lock().insert(self.log.clone(), Taken::Owned);
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.owners.lock().remove(&self.log);
    }
}
