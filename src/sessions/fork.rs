//! Forks: a new session whose first turns are another one's (`design/sessions.md`, forking). The logs
//! of those turns are shared, not copied.

use std::sync::Arc;

use crate::base::id::{SessionId, TurnId};
use crate::domain::event::Event;
use crate::domain::session::event::{SESSION_SCHEMA_VERSION, SessionCreated, SessionFact};
use crate::sessions::Sessions;
use crate::sessions::error::SessionError;
use crate::store::session_repo::StoredSession;

impl Sessions {
    /// Forks a session after one of its turns; without one, before its first. The fork goes on by
    /// itself: what is allowed in the other session is not allowed in it, and it is not put away.
    ///
    /// # Errors
    /// [`SessionError::TurnNotSettled`] at a turn that has not ended: two sessions must not share a
    /// live turn; [`SessionError::NotInSession`]; [`SessionError::Read`] if that turn is damaged.
    /// Nothing is created then.
    pub async fn fork_session(
        &self,
        session: &SessionId,
        at: Option<&TurnId>,
    ) -> Result<SessionId, SessionError> {
        let _lock = self.locks.lock(session).await;
        self.closing.check(session)?;
        let source = self.parts.repo.read(session).await?;
        let (kept, last) = match at {
            None => (0, None),
            Some(turn) => {
                let (session, turn) = (session.clone(), turn.clone());
                let Some(place) = source.state.place_of(&turn) else {
                    return Err(SessionError::NotInSession { session, turn });
                };
                self.check_ended(&session, &turn).await?;
                (place + 1, Some(self.parts.turns.get_turn(&turn).await?))
            }
        };
        let facts = inherited(&source, kept);
        let ts = self.parts.clock.now();
        let events = |id: SessionId| {
            let event = |fact| Event { id: id.clone(), ts, fact };
            Ok(facts.iter().cloned().map(event).collect())
        };
        self.create_log(last.as_ref(), events).await
    }
}

/// What a fork says of the first `kept` turns of a session: its header, those turns, and the
/// compactions up to the turn after them.
fn inherited(source: &StoredSession, kept: usize) -> Vec<SessionFact> {
    let (mut turns, mut facts) = (0, Vec::new());
    for event in &source.events {
        match &event.fact {
            SessionFact::TurnAppended(_) if turns == kept => break,
            SessionFact::TurnAppended(_) => {
                turns += 1;
                facts.push(event.fact.clone());
            }
            SessionFact::Compacted(_) => facts.push(event.fact.clone()),
            SessionFact::Created(_)
            | SessionFact::TitleChanged(_)
            | SessionFact::SchemaUpgraded(_)
            | SessionFact::GrantAdded(_)
            | SessionFact::GrantRemoved(_)
            | SessionFact::Archived(_) => {}
        }
    }
    let versions = facts.iter().map(SessionFact::needs_version);
    let header = SessionCreated {
        schema_version: versions.fold(SESSION_SCHEMA_VERSION, u64::max),
        // Without a turn of the other one it is about what is said in it first.
        title: source.state.title.clone().filter(|_| kept > 0),
        cwd: source.state.header.cwd.clone(),
        parent_session: Some(source.state.id.clone()),
        seed_length: (kept > 0).then_some(kept as u64),
        // A fork is a person's conversation, whatever the other one was.
        origin: None,
        delegation_depth: None,
    };
    facts.insert(0, SessionFact::Created(Arc::new(header)));
    facts
}
