//! The logs of sessions as their events (`spec/session-layer.md` section 4.3).

use crate::base::id::SessionId;
use crate::domain::session::event::{SessionEvent, SessionFact};
use crate::domain::session::state::SessionState;
use crate::store::error::{Corruption, StoreError};
use crate::store::log::LogKind;
use crate::store::repo::{EventLog, Kind, Repo, Stored};
use crate::store::seam::Durability;

/// Logs of sessions.
#[derive(Clone, Copy, Debug)]
pub struct SessionKind;

/// All sessions.
pub type SessionRepo = Repo<SessionKind>;
/// The one writer of a session.
pub type SessionLog = EventLog<SessionKind>;
/// A session as it was read.
pub type StoredSession = Stored<SessionKind>;

impl Kind for SessionKind {
    type Id = SessionId;
    type Fact = SessionFact;
    type State = SessionState;

    const KIND: LogKind = LogKind::Session;

    fn begin(event: &SessionEvent) -> Result<SessionState, Corruption> {
        Ok(SessionState::begin(event)?)
    }

    fn apply(state: &mut SessionState, event: &SessionEvent) -> Result<(), Corruption> {
        Ok(state.apply(event)?)
    }

    fn check_whole(state: &SessionState) -> Result<(), Corruption> {
        Ok(state.check_seed()?)
    }

    fn is_open(_state: &SessionState) -> bool {
        false
    }
}

impl SessionRepo {
    /// Adds events to a session, all or none, and gives the state after them. Owns the log only for
    /// this; callers of one session take turns by its lock.
    ///
    /// # Errors
    /// As [`Repo::open`]; [`StoreError::Refused`] if an event cannot follow.
    pub async fn append(
        &self,
        id: &SessionId,
        events: &[SessionEvent],
        durability: Durability,
    ) -> Result<SessionState, StoreError> {
        let (mut log, stored) = self.open(id).await?;
        let mut state = stored.state.clone();
        for (line, event) in (log.last_offset() + 1..).zip(events) {
            state.apply(event).map_err(|why| log.refusal(line, why.into()))?;
        }
        log.append(events, durability).await?;
        Ok(state)
    }
}
