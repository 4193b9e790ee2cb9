//! Going on with a turn that a crash interrupted, closing it, and stopping turns
//! (`spec/session-layer.md` section 9.3).

use std::sync::Arc;

use crate::base::id::{SessionId, TurnId};
use crate::domain::session::entry::SessionIndexEntry;
use crate::domain::session::state::SessionState;
use crate::domain::turn::status::{INTERRUPTED, TurnStatus};
use crate::runtime::api::ExternalInput;
use crate::sessions::Sessions;
use crate::sessions::error::SessionError;
use crate::sessions::live::{Scope, Stopping};

impl Sessions {
    /// Goes on with the latest turn, which a crash interrupted.
    ///
    /// # Errors
    /// [`SessionError::NothingToResume`] if the latest turn was not interrupted.
    pub async fn resume_turn(&self, session: &SessionId) -> Result<(), SessionError> {
        let _lock = self.locks.lock(session).await;
        self.closing.check(session)?;
        let (state, turn) = self.interrupted(session).await?;
        self.make_safe(&state).await?;
        self.advance(&state, &turn, None);
        Ok(())
    }

    /// Ends the latest turn, which a crash interrupted, without going on.
    ///
    /// # Errors
    /// [`SessionError::NothingToResume`] if the latest turn was not interrupted.
    pub async fn close_interrupted(&self, session: &SessionId) -> Result<(), SessionError> {
        let closed = {
            let _lock = self.locks.lock(session).await;
            self.closing.check(session)?;
            let (state, turn) = self.interrupted(session).await?;
            let reason = Some(INTERRUPTED.to_owned());
            self.advance(&state, &turn, Some(ExternalInput::Cancel { reason }))
        };
        closed.outcome().await
    }

    /// The latest turn, which has not ended, waits for nobody and is not being advanced. Asked
    /// under the session's lock, so that none begins to be.
    async fn interrupted(
        &self,
        session: &SessionId,
    ) -> Result<(SessionState, TurnId), SessionError> {
        let state = self.get_session(session).await?;
        let nothing = || SessionError::NothingToResume { session: session.clone() };
        let turn = state.latest().ok_or_else(nothing)?.id.clone();
        let is_live = self.live.is_live(&turn);
        let status = self.parts.turns.get_turn(&turn).await?.state.status();
        if is_live || status != TurnStatus::Idle {
            return Err(nothing());
        }
        Ok((state, turn))
    }

    /// Stops a turn, whether it runs or rests. One that has ended counts as stopped, also when it
    /// ended by itself meanwhile. What waits behind it is held.
    ///
    /// # Errors
    /// What kept the turn from ending.
    pub async fn stop_turn(&self, turn: &TurnId, reason: Option<&str>) -> Result<(), SessionError> {
        let stopping = self.begin_stop(turn, reason).await;
        stopping.rested().await;
        let stopped = self.parts.turns.get_turn(turn).await?.state;
        if stopped.terminal.is_some() {
            return Ok(());
        }
        let reason = reason.map(str::to_owned);
        let cancelled =
            self.begin(&stopped, ExternalInput::Cancel { reason }).await?.outcome().await;
        match cancelled {
            Ok(()) => Ok(()),
            Err(error) => {
                let ended = self.parts.turns.get_turn(turn).await?.state.terminal.is_some();
                if ended { Ok(()) } else { Err(error) }
            }
        }
    }

    /// Stops what is live of a turn. What waits behind it is held before that, under the session's
    /// lock, so that nothing of it goes into the next turn. An answer that comes from now on finds
    /// itself stopped before it begins.
    async fn begin_stop(&self, turn: &TurnId, reason: Option<&str>) -> Stopping {
        let stop = || self.live.stop(Scope::Turn(turn.clone()), reason);
        let Some(session) = self.session_that_waits(turn).await else { return stop() };
        let _lock = self.locks.lock(&session).await;
        let is_latest = |entry: Arc<SessionIndexEntry>| entry.latest_turn_id.as_ref() == Some(turn);
        if self.index.get(&session).is_none_or(is_latest) {
            self.queue.hold(&session);
        }
        stop()
    }

    /// The session in which something may wait for a turn to go on: none for one that has ended and
    /// rests. One that cannot be read is stopped all the same.
    async fn session_that_waits(&self, turn: &TurnId) -> Option<SessionId> {
        if let Some(session) = self.live.session_of(turn) {
            return Some(session);
        }
        let state = self.parts.turns.get_turn(turn).await.ok()?.state;
        if state.terminal.is_some() {
            return None;
        }
        state.definition.session_id.clone()
    }
}
