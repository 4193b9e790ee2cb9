//! Deleting sessions with the drafts that belong to them, taking it back, and destroying what cannot
//! be taken back any more.

use std::collections::BTreeMap;

use crate::app::App;
use crate::app::command::DraftOf;
use crate::app::keep::Keep;
use crate::app::notice::{Notice, Refused};
use crate::app::perform::refused;
use crate::base::clock::Timestamp;
use crate::base::id::SessionId;
use crate::domain::session::entry::waiting_calls;
use crate::sessions::error::SessionError;
use crate::sessions::gc::Garbage;
use crate::store::error::StoreError;
use crate::store::log::{LogKind, Removed};

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

impl App {
    /// Deletes a session, and what was half typed in it. It can be restored for as many days as are
    /// configured; for none, it is destroyed at once.
    ///
    /// # Errors
    /// As [`Sessions::delete_session`](crate::sessions::Sessions::delete_session).
    pub async fn delete_session(&self, session: &SessionId) -> Result<(), SessionError> {
        let drafts = self.drafts_of(session).await;
        let removed = self.graph.sessions.delete_session(session).await?;
        let session = session.clone();
        if self.graph.keep_deleted_days > 0 {
            let place = Some(removed);
            self.wait_for(|done| Keep::SetAside { session, drafts, place, done }).await;
            return Ok(());
        }
        self.wait_for(|done| Keep::SetAside { session, drafts, place: None, done }).await;
        self.graph.sessions.destroy_removed(&removed).await
    }

    /// Takes the last deletion of a session back.
    ///
    /// # Errors
    /// As [`Sessions::restore_session`](crate::sessions::Sessions::restore_session).
    pub async fn restore_session(&self, session: &SessionId) -> Result<(), SessionError> {
        let place = self.graph.sessions.last_deletion(session).await?;
        // The drafts first: nothing of a removal is found again once its log is back.
        let of = session.clone();
        self.wait_for(|done| Keep::BringBack { session: of, place, done }).await;
        self.graph.sessions.restore_session(session).await
    }

    /// The sessions that can still be restored, each with when it was last deleted.
    ///
    /// # Errors
    /// [`StoreError`] if they cannot be listed.
    pub async fn deleted_sessions(&self) -> Result<Vec<(SessionId, Timestamp)>, StoreError> {
        let mut last = BTreeMap::new();
        for removed in self.graph.storage.logs.removed().await? {
            if removed.log.kind() == LogKind::Session {
                let session = SessionId::from(removed.log.id());
                let at = last.entry(session).or_insert(removed.at);
                *at = removed.at.max(*at);
            }
        }
        Ok(last.into_iter().collect())
    }

    /// Whose drafts go with a session: its composer's, and those of the prompts that wait in it.
    async fn drafts_of(&self, session: &SessionId) -> Vec<DraftOf> {
        let sessions = &self.graph.sessions;
        let own = [DraftOf::Session(session.clone())].into_iter();
        let Ok(state) = sessions.get_session(session).await else { return own.collect() };
        let Some(latest) = state.latest() else { return own.collect() };
        let Ok(turn) = sessions.get_turn(&latest.id).await else { return own.collect() };
        let prompts = waiting_calls(&turn.state).into_iter();
        own.chain(prompts.map(|waiting| DraftOf::Prompt(waiting.call))).collect()
    }

    pub(super) async fn delete(&self, ids: Vec<SessionId>) {
        let mut deleted = Vec::new();
        for session in ids {
            match self.delete_session(&session).await {
                Ok(()) => deleted.push(session),
                Err(error) => self.tell(refused(Refused::Session(session), &error)).await,
            }
        }
        if !deleted.is_empty() {
            self.tell(Notice::Deleted(deleted)).await;
        }
    }

    pub(super) async fn restore(&self, ids: Vec<SessionId>) {
        let mut restored = Vec::new();
        for session in ids {
            match self.restore_session(&session).await {
                Ok(()) => restored.push(session),
                Err(error) => {
                    let what = match error {
                        SessionError::NotDeleted(_) => Refused::Session(session),
                        _ => Refused::Restore(session),
                    };
                    self.tell(refused(what, &error)).await;
                }
            }
        }
        if !restored.is_empty() {
            self.tell(Notice::Restored(restored)).await;
        }
    }

    /// Looks for what can be destroyed: what was deleted longer ago than it is kept, and the turns that
    /// nothing reaches then.
    ///
    /// # Errors
    /// As [`Sessions::find_garbage`](crate::sessions::Sessions::find_garbage).
    pub async fn find_garbage(&self) -> Result<Garbage, StoreError> {
        self.graph.sessions.find_garbage(|removed| self.is_expired(removed)).await
    }

    fn is_expired(&self, removed: &Removed) -> bool {
        let kept_ms = self.graph.keep_deleted_days.saturating_mul(DAY_MS);
        self.graph.clock.now().since(removed.at).as_millis() >= u128::from(kept_ms)
    }

    /// Destroys sessions, and what was half typed in them.
    pub(super) async fn purge(&self, ids: Vec<SessionId>) {
        for session in ids {
            if let Err(error) = self.purge_family(&session).await {
                self.tell(refused(Refused::Session(session), &error)).await;
            }
        }
    }

    /// The drafts go last, and what was half typed in a session goes with it, whoever's child it is.
    async fn purge_family(&self, session: &SessionId) -> Result<(), SessionError> {
        let mut family = Vec::new();
        for member in self.graph.sessions.family(session).await? {
            let drafts = self.drafts_of(&member).await;
            family.push((member, drafts));
        }
        self.graph.sessions.purge_session(session).await?;
        for (session, drafts) in family {
            self.wait_for(|done| Keep::SetAside { session, drafts, place: None, done }).await;
        }
        Ok(())
    }

    /// Destroys what was deleted longer ago than it is kept, and what is left of earlier destructions.
    pub(super) async fn destroy_expired(&self) {
        let removed = match self.graph.storage.logs.removed().await {
            Ok(removed) => removed,
            Err(error) => {
                tracing::warn!(%error, "the deleted sessions cannot be listed");
                return;
            }
        };
        for removed in removed.iter().filter(|removed| self.is_expired(removed)) {
            if let Err(error) = self.graph.sessions.destroy_removed(removed).await {
                tracing::warn!(%error, log = %removed.log, "a deleted session cannot be destroyed");
            }
        }
        if let Err(error) = self.graph.sessions.finish_destroying().await {
            tracing::warn!(%error, "something is left of what was destroyed");
        }
    }
}
