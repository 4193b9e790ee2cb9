//! Destroying for good: what was deleted long ago and the turns that nothing reaches, or one session
//! at once (`design/sessions.md`, deleting).

use crate::base::id::{SessionId, TurnId};
use crate::sessions::Sessions;
use crate::sessions::error::SessionError;
use crate::sessions::live::Scope;
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
    /// Looks for what can be destroyed; destroys nothing. Of what was removed that is what
    /// `is_expired` says, and what an earlier destruction left.
    ///
    /// # Errors
    /// [`StoreError`] if something cannot be listed.
    pub async fn find_garbage(
        &self,
        is_expired: impl Fn(&Removed) -> bool,
    ) -> Result<Garbage, StoreError> {
        let _all = self.locks.lock_all().await;
        let mut expired = self.parts.repo.store().removed().await?;
        expired.retain(|removed| removed.log.kind() == LogKind::Turn || is_expired(removed));
        Ok(match self.survey(&expired).await?.unreached() {
            Ok(turns) => Garbage { expired, turns, unsure: Vec::new() },
            Err(unsure) => Garbage { expired, turns: Vec::new(), unsure },
        })
    }

    /// Destroys what was found, as far as it still is garbage; gives what is gone.
    ///
    /// # Errors
    /// [`StoreError`] if something cannot be destroyed. What was destroyed before it stays so.
    pub async fn destroy_garbage(&self, found: &Garbage) -> Result<Garbage, StoreError> {
        let _all = self.locks.lock_all().await;
        let store = self.parts.repo.store();
        let mut expired = store.removed().await?;
        expired.retain(|removed| found.expired.contains(removed));
        let unreached = self.survey(&expired).await?.unreached();
        for removed in &expired {
            store.destroy(removed).await?;
        }
        let (mut turns, unsure) = match unreached {
            Ok(turns) => (turns, Vec::new()),
            Err(unsure) => (Vec::new(), unsure),
        };
        turns.retain(|turn| found.turns.contains(turn));
        self.destroy_turns(&turns).await?;
        Ok(Garbage { expired, turns, unsure })
    }

    /// Destroys a session at once, with the agents that were spawned in it and the turns that only
    /// they reach. Whatever runs in it is stopped. It cannot be taken back.
    ///
    /// # Errors
    /// [`SessionError::Entangled`] if it cannot be told which turns others reach: nothing is
    /// destroyed then. [`SessionError::Store`].
    pub async fn purge_session(&self, session: &SessionId) -> Result<(), SessionError> {
        let family = self.family(session).await?;
        let mut marks = Vec::with_capacity(family.len());
        for member in &family {
            let _lock = self.locks.lock(member).await;
            marks.push(self.closing.mark(member)?);
            self.queue.hold(member);
            self.compacting.stop(member);
        }
        // Nobody waits for an advance to rest while holding a lock.
        for member in &family {
            self.live.stop(Scope::Session(member.clone()), None).rested().await;
        }
        let _all = self.locks.lock_all().await;
        let survey = self.survey(&[]).await?;
        let turns = survey.reached_only_by(&family).map_err(|unread| {
            let (session, why) = (session.clone(), unread.join("; "));
            SessionError::Entangled { session, why }
        })?;
        let store = self.parts.repo.store();
        for member in &family {
            let removed = self.take_out(member).await?;
            store.destroy(&removed).await?;
        }
        self.destroy_turns(&turns).await?;
        Ok(())
    }

    /// What a crash leaves of this is what an earlier destruction left, or reached by nothing.
    async fn destroy_turns(&self, turns: &[TurnId]) -> Result<(), StoreError> {
        let store = self.parts.repo.store();
        for turn in turns {
            let removed = store.remove(&LogId::turn(turn)?).await?;
            store.destroy(&removed).await?;
        }
        Ok(())
    }
}
