//! Facts of a session that come from no turn: its name.

use crate::base::id::SessionId;
use crate::domain::event::Event;
use crate::domain::session::entry::SessionIndexEntry;
use crate::domain::session::event::{SessionFact, TitleChanged};
use crate::domain::session::state::SessionState;
use crate::sessions::Sessions;
use crate::sessions::error::SessionError;
use crate::store::seam::Durability;

impl Sessions {
    /// Names a session.
    ///
    /// # Errors
    /// [`SessionError::Store`]; [`SessionError::Read`] if the latest turn is damaged: such a session
    /// can only be looked at and deleted.
    pub async fn set_title(&self, session: &SessionId, title: &str) -> Result<(), SessionError> {
        let _lock = self.locks.lock(session).await;
        self.closing.check(session)?;
        let state = self.get_session(session).await?;
        let fact = SessionFact::TitleChanged(TitleChanged { title: title.to_owned() });
        self.record(&state, vec![fact]).await?;
        Ok(())
    }

    /// Records facts of a session and shows them in the index. Called under the session's lock.
    pub(super) async fn record(
        &self,
        session: &SessionState,
        facts: Vec<SessionFact>,
    ) -> Result<SessionState, SessionError> {
        let latest = match session.latest() {
            Some(latest) => Some(self.parts.turns.get_turn(&latest.id).await?),
            None => None,
        };
        let ts = self.parts.clock.now();
        let event = |fact| Event { id: session.id.clone(), ts, fact };
        let events: Vec<_> = facts.into_iter().map(event).collect();
        let state = self.parts.repo.append(&session.id, &events, Durability::Barrier).await?;
        let offset = latest.as_ref().map_or(0, |turn| turn.events.len() as u64);
        let entry = SessionIndexEntry::new(&state, latest.as_ref().map(|turn| &turn.state));
        self.index.put(entry, offset);
        Ok(state)
    }
}
