//! Destroying for good: what was deleted long ago and the turns that nothing reaches, or one session
//! at once (`design/sessions.md`, deleting).

use std::collections::{BTreeSet, HashSet};

use crate::base::id::{SessionId, TurnId};
use crate::sessions::Sessions;
use crate::sessions::error::SessionError;
use crate::store::error::StoreError;
use crate::store::log::{LogId, LogKind, Removed};

/// What can be destroyed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Garbage {
    /// What was removed and need not be kept.
    pub expired: Vec<Removed>,
    /// The turns that nothing reaches once that is gone.
    pub turns: Vec<TurnId>,
    /// Why it cannot be told which turns are reached; none is garbage then.
    pub unsure: Vec<String>,
}

impl Sessions {
    /// Looks for what can be destroyed; destroys nothing, and holds nobody up. Of what was removed
    /// that is what `is_expired` says, and what an earlier destruction left. A turn that is being
    /// added meanwhile may be among it; it is none any more when it is to be destroyed.
    ///
    /// # Errors
    /// [`StoreError`] if something cannot be listed.
    pub async fn find_garbage(
        &self,
        is_expired: impl Fn(&Removed) -> bool,
    ) -> Result<Garbage, StoreError> {
        let mut expired = self.parts.repo.store().removed().await?;
        expired.retain(|removed| removed.log.kind() == LogKind::Turn || is_expired(removed));
        Ok(match self.survey(&expired).await?.unreached() {
            Ok(turns) => Garbage { expired, turns, unsure: Vec::new() },
            Err(unsure) => Garbage { expired, turns: Vec::new(), unsure },
        })
    }

    /// Destroys what was found, as far as it still is garbage; gives what is gone.
    ///
    /// Finishes what broke off in earlier destructions, too.
    ///
    /// # Errors
    /// [`SessionError::Store`] or [`SessionError::Waiting`] if something cannot be destroyed. What was
    /// destroyed before it stays so.
    pub async fn destroy_garbage(&self, found: &Garbage) -> Result<Garbage, SessionError> {
        let _all = self.locks.lock_all().await;
        let mut expired = self.parts.repo.store().removed().await?;
        let found_expired: HashSet<_> = found.expired.iter().collect();
        expired.retain(|removed| found_expired.contains(removed));
        let unreached = self.survey(&expired).await?.unreached();
        for removed in &expired {
            self.destroy(removed).await?;
        }
        let (mut turns, unsure) = match unreached {
            Ok(turns) => (turns, Vec::new()),
            Err(unsure) => (Vec::new(), unsure),
        };
        let found_turns: HashSet<_> = found.turns.iter().collect();
        turns.retain(|turn| found_turns.contains(turn));
        self.destroy_turns(&turns).await?;
        self.finish_destroying().await?;
        Ok(Garbage { expired, turns, unsure })
    }

    /// Destroys a session at once, with the agents that were spawned in it and the turns that only
    /// they reach. Whatever runs in it is stopped. It cannot be taken back. It goes after the agents:
    /// when something breaks before that, it is still there to be purged again.
    ///
    /// # Errors
    /// [`SessionError::Entangled`] if it cannot be told which turns others reach: nothing is
    /// destroyed then. [`SessionError::Store`], [`SessionError::Waiting`].
    pub async fn purge_session(&self, session: &SessionId) -> Result<(), SessionError> {
        let family = self.family(session).await?;
        let _marks = self.close(&family).await?;
        let _all = self.locks.lock_all().await;
        let members: BTreeSet<_> = family.iter().cloned().collect();
        let turns = self.survey(&[]).await?.reached_only_by(&members).map_err(|unread| {
            let (session, why) = (session.clone(), unread.join("; "));
            SessionError::Entangled { session, why }
        })?;
        let purged = self.destroy_family(&family, &turns).await;
        if purged.is_err() {
            self.show_again(&family).await;
        }
        purged
    }

    /// Destroys sessions, of which the last is the one that leads to all others, and then the turns
    /// that nothing reaches any more: what a session refers to is there as long as it is.
    async fn destroy_family(
        &self,
        family: &[SessionId],
        turns: &[TurnId],
    ) -> Result<(), SessionError> {
        let Some((root, spawned)) = family.split_first() else { return Ok(()) };
        for member in spawned.iter().rev() {
            match self.destroy_session(member).await {
                Ok(()) | Err(SessionError::Store(StoreError::NotFound(_))) => {}
                Err(error) => return Err(error),
            }
        }
        self.destroy_session(root).await?;
        Ok(self.destroy_turns(turns).await?)
    }

    async fn destroy_session(&self, session: &SessionId) -> Result<(), SessionError> {
        let removed = self.take_out(session).await?;
        self.destroy(&removed).await
    }

    /// Destroys what was removed, and of a session what waits in it. It is gone as well when somebody
    /// else was faster.
    ///
    /// # Errors
    /// [`SessionError::Store`], [`SessionError::Waiting`]; it can be destroyed again then.
    pub async fn destroy_removed(&self, removed: &Removed) -> Result<(), SessionError> {
        match removed.log.kind() {
            LogKind::Session => {
                // Nobody restores it meanwhile.
                let _lock = self.locks.lock(&SessionId::from(removed.log.id())).await;
                self.destroy(removed).await
            }
            LogKind::Turn => {
                let _lock = self.locks.share().await;
                self.destroy(removed).await
            }
        }
    }

    /// Finishes destructions that broke off earlier.
    ///
    /// # Errors
    /// [`StoreError`]; the rest is for the next time.
    pub async fn finish_destroying(&self) -> Result<(), StoreError> {
        self.parts.repo.store().finish_destroying().await
    }

    /// The log goes first: as long as it is there the session can be restored, whole. So the messages
    /// are with it before that, also when they could not be set aside in time; without it nobody would
    /// find them again. Called under the lock on the session, or on all.
    async fn destroy(&self, removed: &Removed) -> Result<(), SessionError> {
        if removed.log.kind() == LogKind::Session {
            match self.parts.repo.store().revision(&removed.log).await {
                // It has come back, by a restoration that broke off. They are its own again.
                Ok(_) => {}
                Err(StoreError::NotFound(_)) => {
                    let session = SessionId::from(removed.log.id());
                    self.parts.waiting.set_aside(&session, removed).await?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(self.destroy_log(removed).await?)
    }

    /// A turn that was asked aside is destroyed under no lock, and perhaps by a collector first.
    async fn destroy_log(&self, removed: &Removed) -> Result<(), StoreError> {
        match self.parts.repo.store().destroy(removed).await {
            Ok(()) | Err(StoreError::NotFound(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn destroy_turns(&self, turns: &[TurnId]) -> Result<(), StoreError> {
        for turn in turns {
            self.destroy_turn(turn).await?;
        }
        Ok(())
    }

    /// Destroys the log of a turn, if it is there. What a crash leaves of this is what an earlier
    /// destruction left, or reached by nothing.
    pub(super) async fn destroy_turn(&self, turn: &TurnId) -> Result<(), StoreError> {
        match self.parts.repo.store().remove(&LogId::turn(turn)?).await {
            Ok(removed) => self.destroy_log(&removed).await,
            Err(StoreError::NotFound(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Shows sessions in the index as their logs are now.
    async fn show_again(&self, sessions: &[SessionId]) {
        for session in sessions {
            if let Some(found) = self.look_at(session).await {
                self.index.put(found.entry, found.offset);
            }
        }
    }
}
