//! The locks of the session layer: one on the work directory, which everything that writes shares, and
//! one for each session. They are taken in this order.

use std::sync::Arc;

use tokio::sync::{OwnedMutexGuard, OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

use crate::base::id::SessionId;
use crate::base::locks::KeyedLocks;

/// The locks. Nobody waits for an advance to rest, or takes another of them, while holding one.
#[derive(Debug, Default)]
pub(super) struct Locks {
    work_dir: Arc<RwLock<()>>,
    sessions: KeyedLocks<SessionId>,
}

/// A session, held: nobody else changes it, and nothing that it refers to is collected.
pub(super) struct Held {
    _session: OwnedMutexGuard<()>,
    _work_dir: OwnedRwLockReadGuard<()>,
}

impl Locks {
    /// Waits for a session and holds it until the guard is dropped.
    pub(super) async fn lock(&self, session: &SessionId) -> Held {
        let work_dir = self.share().await;
        Held { _session: self.sessions.lock(session).await, _work_dir: work_dir }
    }

    /// Waits until nobody holds all, and keeps it so until the guard is dropped: for whoever writes
    /// what belongs to no session.
    pub(super) async fn share(&self) -> OwnedRwLockReadGuard<()> {
        Arc::clone(&self.work_dir).read_owned().await
    }

    /// Waits until no session is held, and holds them all: for whoever destroys what nothing
    /// refers to.
    pub(super) async fn lock_all(&self) -> OwnedRwLockWriteGuard<()> {
        Arc::clone(&self.work_dir).write_owned().await
    }
}
