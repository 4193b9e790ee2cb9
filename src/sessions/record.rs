//! Facts of a session that come from no turn: its name, what is allowed in it, whether it is put away.

use tokio::sync::broadcast;

use crate::base::id::SessionId;
use crate::domain::event::Event;
use crate::domain::session::entry::SessionIndexEntry;
use crate::domain::session::event::{
    Archived, GrantAdded, GrantRemoved, SessionFact, TitleChanged,
};
use crate::domain::session::state::SessionState;
use crate::sessions::Sessions;
use crate::sessions::api::FactsChanged;
use crate::sessions::error::SessionError;
use crate::store::seam::Durability;

impl Sessions {
    /// Names a session.
    ///
    /// # Errors
    /// [`SessionError::Store`]; [`SessionError::Read`] if the latest turn is damaged: such a session
    /// can only be looked at and deleted.
    pub async fn set_title(&self, session: &SessionId, title: &str) -> Result<(), SessionError> {
        let title = title.to_owned();
        self.say(session, |_| Some(SessionFact::TitleChanged(TitleChanged { title }))).await
    }

    /// Puts a session away, or takes it out again. One that is so already stays as it is.
    ///
    /// # Errors
    /// As [`Sessions::set_title`].
    pub async fn set_archived(
        &self,
        session: &SessionId,
        archived: bool,
    ) -> Result<(), SessionError> {
        let fact = SessionFact::Archived(Archived { archived });
        self.say(session, |state| (state.archived != archived).then_some(fact)).await
    }

    /// Allows calls of a tool in a session from now on: those that match the pattern, or all
    /// without one. Gives the id of the grant.
    ///
    /// # Errors
    /// As [`Sessions::set_title`].
    pub async fn add_grant(
        &self,
        session: &SessionId,
        tool_id: &str,
        pattern: Option<&str>,
    ) -> Result<String, SessionError> {
        let (tool_id, pattern) = (tool_id.to_owned(), pattern.map(str::to_owned));
        let grant_id = self.parts.ids.next();
        let grant = GrantAdded { grant_id: grant_id.clone(), tool_id, pattern };
        self.say(session, |_| Some(SessionFact::GrantAdded(grant))).await?;
        Ok(grant_id)
    }

    /// Takes a grant back.
    ///
    /// # Errors
    /// As [`Sessions::set_title`]; [`SessionError::Store`] if there is no such grant.
    pub async fn remove_grant(
        &self,
        session: &SessionId,
        grant_id: &str,
    ) -> Result<(), SessionError> {
        let grant_id = grant_id.to_owned();
        self.say(session, |_| Some(SessionFact::GrantRemoved(GrantRemoved { grant_id }))).await
    }

    /// Records what is to be said of a session as it is now, if anything is.
    pub(super) async fn say(
        &self,
        session: &SessionId,
        fact: impl FnOnce(&SessionState) -> Option<SessionFact>,
    ) -> Result<(), SessionError> {
        let _lock = self.locks.lock(session).await;
        self.closing.check(session)?;
        let state = self.get_session(session).await?;
        if let Some(fact) = fact(&state) {
            self.record(&state, vec![fact]).await?;
        }
        Ok(())
    }

    /// Records facts of a session, in the lowest schema that has them, and shows them in the index.
    /// Called under the session's lock.
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
        let events: Vec<_> = session.upgraded(facts).into_iter().map(event).collect();
        let state = self.parts.repo.append(&session.id, &events, Durability::Barrier).await?;
        let offset = latest.as_ref().map_or(0, |turn| turn.events.len() as u64);
        let entry = SessionIndexEntry::new(&state, latest.as_ref().map(|turn| &turn.state));
        self.index.put(entry, offset);
        // Nobody following is no error.
        drop(self.facts.send(FactsChanged { session: session.id.clone() }));
        Ok(state)
    }

    /// Follows what is recorded of sessions beside their turns, from now on. A follower that lagged
    /// looks again.
    #[must_use]
    pub fn follow_facts(&self) -> broadcast::Receiver<FactsChanged> {
        self.facts.subscribe()
    }
}
