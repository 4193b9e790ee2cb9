//! Deleting sessions, and taking it back (`spec/session-layer.md` section 9.4, `design/sessions.md`).

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use crate::base::id::SessionId;
use crate::sessions::Sessions;
use crate::sessions::error::{BeingDeleted, SessionError};
use crate::sessions::live::Scope;
use crate::store::error::StoreError;
use crate::store::log::{LogKind, Removed};

/// The sessions that are being deleted: nothing new starts in them.
#[derive(Clone, Default)]
pub(super) struct Closing(Arc<Mutex<HashSet<SessionId>>>);

/// A session is being deleted, until this is dropped.
pub(super) struct Mark {
    closing: Closing,
    session: SessionId,
}

impl Closing {
    /// Refuses what would start something in a session that is being deleted. Asked under the
    /// session's lock.
    pub(super) fn check(&self, session: &SessionId) -> Result<(), BeingDeleted> {
        let marked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if marked.contains(session) {
            return Err(BeingDeleted(session.clone()));
        }
        Ok(())
    }

    /// Nothing new starts in a session from now on. Called under its lock.
    pub(super) fn mark(&self, session: &SessionId) -> Result<Mark, BeingDeleted> {
        let mut marked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !marked.insert(session.clone()) {
            return Err(BeingDeleted(session.clone()));
        }
        Ok(Mark { closing: self.clone(), session: session.clone() })
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        let mut marked = self.closing.0.lock().unwrap_or_else(PoisonError::into_inner);
        marked.remove(&self.session);
    }
}

impl Sessions {
    /// Deletes a session: whatever runs in it is stopped, its log is taken out of the store, its entry
    /// goes, and what waits in it is set aside with it. Its turns stay.
    /// [`Sessions::restore_session`] takes it back, until what this gives is destroyed. A damaged
    /// session can be deleted too.
    ///
    /// # Errors
    /// [`SessionError::Store`] if there is none or it cannot be removed.
    pub async fn delete_session(&self, session: &SessionId) -> Result<Removed, SessionError> {
        let _marks = self.close(std::slice::from_ref(session)).await?;
        let _lock = self.locks.lock(session).await;
        Ok(self.take_out(session).await?)
    }

    /// Stops all that runs in sessions, and waits until it rests. Nothing new starts in them as long
    /// as the marks live. Called without a lock: nobody waits for an advance to rest while holding
    /// one.
    pub(super) async fn close(&self, sessions: &[SessionId]) -> Result<Vec<Mark>, BeingDeleted> {
        let (mut marks, mut stopping) = (Vec::new(), Vec::new());
        for session in sessions {
            let _lock = self.locks.lock(session).await;
            marks.push(self.closing.mark(session)?);
            self.queue.hold(session);
            self.compacting.stop(session);
            stopping.push(self.live.stop(Scope::Session(session.clone()), None));
        }
        for stopping in &stopping {
            stopping.rested().await;
        }
        Ok(marks)
    }

    /// Takes a session out of the store and the index, in which nothing runs any more, and what waits
    /// in it aside. Called under its lock.
    pub(super) async fn take_out(&self, session: &SessionId) -> Result<Removed, StoreError> {
        let removed = self.parts.repo.delete(session).await?;
        {
            let _queue = self.queue.lock(session).await;
            if let Err(error) = self.parts.waiting.set_aside(session, &removed).await {
                // It stands where a restored session finds it, too.
                tracing::warn!(%session, %error, "what waits was not set aside");
            }
            self.queue.forget(session);
        }
        self.index.remove(session);
        Ok(removed)
    }

    /// The last deletion of a session, if it can be taken back.
    ///
    /// # Errors
    /// [`SessionError::NotDeleted`] if there is none, or its days are over.
    pub async fn last_deletion(&self, session: &SessionId) -> Result<Removed, SessionError> {
        let removed = self.parts.repo.store().removed().await?;
        let last = removed.into_iter().rev().find(|removed| is_log_of(removed, session));
        last.ok_or_else(|| SessionError::NotDeleted(session.clone()))
    }

    /// Takes the last deletion of a session back, byte for byte.
    ///
    /// # Errors
    /// As [`Sessions::last_deletion`]; [`SessionError::Store`] if it cannot be put back.
    pub async fn restore_session(&self, session: &SessionId) -> Result<(), SessionError> {
        let _lock = self.locks.lock(session).await;
        let last = self.last_deletion(session).await?;
        self.put_back(session, &last).await?;
        self.settle_restored(session).await;
        if let Some(found) = self.look_at(session).await {
            self.index.put(found.entry, found.offset);
        }
        Ok(())
    }

    async fn put_back(&self, session: &SessionId, removed: &Removed) -> Result<(), SessionError> {
        let _queue = self.queue.lock(session).await;
        // The messages first: nothing of a removal is found again once its log is back.
        self.parts.waiting.bring_back(session, removed).await?;
        if let Err(error) = self.parts.repo.store().restore(removed).await {
            if let Err(error) = self.parts.waiting.set_aside(session, removed).await {
                tracing::warn!(%session, %error, "what waits was not set aside again");
            }
            return Err(error.into());
        }
        Ok(())
    }

    /// What was claimed when the session went may be what an earlier process had claimed.
    async fn settle_restored(&self, session: &SessionId) {
        self.unsettle(session);
        let queue = self.lock_queue(session).await;
        if let Err(error) = &queue {
            tracing::warn!(%session, %error, "what was claimed is not settled");
        }
        self.queue_changed(session).await;
    }
}

fn is_log_of(removed: &Removed, session: &SessionId) -> bool {
    removed.log.kind() == LogKind::Session && removed.log.id() == session.as_str()
}
