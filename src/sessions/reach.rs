//! Which turns are still reached: by a session, by a deleted session that can be restored, or because
//! they belong to no session; and by what those go back to (`design/sessions.md`, deleting).

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use crate::base::id::{SessionId, TurnId};
use crate::domain::agent::AgentSnapshot;
use crate::domain::session::event::{Origin, SessionEvent, SessionFact};
use crate::domain::session::state::SessionState;
use crate::domain::turn::event::{TurnContext, TurnCreated, TurnEvent, TurnFact};
use crate::sessions::Sessions;
use crate::sessions::aside::is_aside;
use crate::store::error::{Ending, StoreError};
use crate::store::log::{LogKind, Removed, Snapshot};

/// What there is, and what leads where. Taken while no session is held it stays true; else what is
/// being made or destroyed meanwhile may be missing.
#[derive(Default)]
pub(super) struct Survey {
    /// The turns of each session.
    sessions: HashMap<SessionId, Vec<TurnId>>,
    /// The turns of sessions that were removed and can be restored.
    removed: Vec<TurnId>,
    turns: BTreeMap<TurnId, Header>,
    /// The turns in which the layer itself asks something now.
    asking: BTreeSet<TurnId>,
    /// What cannot be read, and may refer to any turn.
    unread: Vec<Unread>,
}

/// What the first event of a turn says of others.
struct Header {
    whose: Whose,
    goes_back_to: Vec<TurnId>,
}

/// Why there is a turn.
enum Whose {
    /// It belongs to a session, as long as that refers to it.
    Session(SessionId),
    /// It stands for itself.
    Itself,
    /// The layer itself asked something in it, and keeps it no longer than that.
    Aside,
}

/// What cannot be read.
struct Unread {
    what: Unreadable,
    why: String,
}

enum Unreadable {
    /// The log of a session.
    Session(SessionId),
    /// The log of a turn.
    Turn(TurnId),
    /// Something else.
    Other,
}

impl Survey {
    /// The turns that nothing reaches, oldest first; or why that cannot be told.
    pub(super) fn unreached(&self) -> Result<Vec<TurnId>, Vec<String>> {
        let unread: Vec<_> = self.unread.iter().map(|log| log.why.clone()).collect();
        if !unread.is_empty() {
            return Err(unread);
        }
        let sessions = self.sessions.values().flatten();
        let reached = self.closed(sessions.chain(&self.removed).chain(self.alone()));
        Ok(self.turns.keys().filter(|turn| !reached.contains(*turn)).cloned().collect())
    }

    /// The turns that only these sessions reach, oldest first; or why that cannot be told.
    pub(super) fn reached_only_by(
        &self,
        these: &BTreeSet<SessionId>,
    ) -> Result<Vec<TurnId>, Vec<String>> {
        let others = self.sessions.iter().filter(|(session, _)| !these.contains(*session));
        let others = others.flat_map(|(_, turns)| turns);
        let kept = self.closed(others.chain(&self.removed).chain(self.alone()));
        let theirs = these.iter().filter_map(|session| self.sessions.get(session)).flatten();
        // Those of a session whose log is damaged are known by what they say themselves.
        let said = self.turns.iter().filter(|(_, header)| {
            matches!(&header.whose, Whose::Session(session) if these.contains(session))
        });
        let theirs = self.closed(theirs.chain(said.map(|(turn, _)| turn)));
        let is_theirs = |turn: &&TurnId| theirs.contains(*turn) && !kept.contains(*turn);
        let is_other = |log: &&Unread| match &log.what {
            Unreadable::Session(session) => !these.contains(session),
            // Whose a damaged turn is, is known from the sessions that have it.
            Unreadable::Turn(turn) => !is_theirs(&turn),
            Unreadable::Other => true,
        };
        let unread: Vec<_> =
            self.unread.iter().filter(is_other).map(|log| log.why.clone()).collect();
        if !unread.is_empty() {
            return Err(unread);
        }
        let damaged = self.unread.iter().filter_map(|log| match &log.what {
            Unreadable::Turn(turn) => Some(turn),
            Unreadable::Session(_) | Unreadable::Other => None,
        });
        let all: BTreeSet<_> = self.turns.keys().chain(damaged).collect();
        Ok(all.into_iter().filter(is_theirs).cloned().collect())
    }

    /// The turns that are there for themselves.
    fn alone(&self) -> impl Iterator<Item = &TurnId> {
        let alone = self.turns.iter().filter(|(turn, header)| match header.whose {
            Whose::Session(_) => false,
            Whose::Itself => true,
            Whose::Aside => self.asking.contains(*turn),
        });
        alone.map(|(turn, _)| turn)
    }

    /// These turns and all that they go back to.
    fn closed<'a>(&'a self, turns: impl Iterator<Item = &'a TurnId>) -> HashSet<&'a TurnId> {
        let mut reached = HashSet::new();
        let mut left: Vec<_> = turns.collect();
        while let Some(turn) = left.pop() {
            if reached.insert(turn) {
                left.extend(self.turns.get(turn).into_iter().flat_map(|it| &it.goes_back_to));
            }
        }
        reached
    }

    fn add_session(&mut self, session: &SessionId, state: Result<&SessionState, &StoreError>) {
        match state {
            Ok(state) => drop(self.sessions.insert(session.clone(), turns_of(state))),
            Err(StoreError::NotFound(_)) => {}
            Err(error) => self.add_unread(Unreadable::Session(session.clone()), error),
        }
    }

    fn add_turn(&mut self, snapshot: Result<Snapshot, StoreError>) {
        let snapshot = match snapshot {
            Ok(snapshot) => snapshot,
            // It went meanwhile.
            Err(StoreError::NotFound(_)) => return,
            Err(error) => return self.add_unread(unreadable(&error), &error),
        };
        let damaged = || Unreadable::Turn(TurnId::from(snapshot.log.id()));
        match TurnEvent::parse_line(snapshot.first.as_bytes()) {
            Ok(TurnEvent { id, fact: TurnFact::Created(created), .. })
                if id.as_str() == snapshot.log.id() =>
            {
                self.turns.insert(id, Header::of(&created));
            }
            Ok(_) => {
                let why = format!("{} does not begin as a turn", snapshot.log);
                self.add_unread(damaged(), &why);
            }
            Err(error) => self.add_unread(damaged(), &format!("{}: {error}", snapshot.log)),
        }
    }

    fn add_unread(&mut self, what: Unreadable, why: &dyn ToString) {
        self.unread.push(Unread { what, why: why.to_string() });
    }
}

impl Header {
    fn of(created: &TurnCreated) -> Self {
        let context = match &created.context {
            TurnContext::Previous(context) => Some(context.previous_turn_id.clone()),
            TurnContext::Inline(_) => None,
        };
        let agent = match &created.agent.resolved {
            AgentSnapshot::Inherited(agent) => Some(agent.inherited_from.clone()),
            AgentSnapshot::Full(_) => None,
        };
        let goes_back_to = context.into_iter().chain(agent).collect();
        let whose = match &created.session_id {
            Some(session) => Whose::Session(session.clone()),
            None if is_aside(&created.agent.requested) => Whose::Aside,
            None => Whose::Itself,
        };
        Self { whose, goes_back_to }
    }
}

/// The turn whose log is damaged. What is not given for another reason may be whole.
fn unreadable(error: &StoreError) -> Unreadable {
    match error {
        StoreError::Corrupt { place, .. } if place.log.kind() == LogKind::Turn => {
            Unreadable::Turn(TurnId::from(place.log.id()))
        }
        _ => Unreadable::Other,
    }
}

fn turns_of(session: &SessionState) -> Vec<TurnId> {
    session.turns.iter().map(|turn| turn.id.clone()).collect()
}

impl Sessions {
    /// Looks at everything but these removals.
    pub(super) async fn survey(&self, without: &[Removed]) -> Result<Survey, StoreError> {
        let store = self.parts.repo.store();
        let ids = self.parts.repo.ids().await?;
        let headers = store.snapshots(LogKind::Turn).await?;
        let repo = self.parts.repo.clone();
        let asking = self.asides.under_way();
        let surveyed = self.parts.tasks.spawn_blocking(move || {
            let mut survey = Survey { asking, ..Survey::default() };
            for session in &ids {
                survey.add_session(session, repo.scan(session, drop).as_ref());
            }
            for header in headers {
                survey.add_turn(header);
            }
            survey
        });
        let mut survey = surveyed.await.map_err(|_| Ending)?;
        for removed in store.removed().await? {
            if removed.log.kind() == LogKind::Turn || without.contains(&removed) {
                continue;
            }
            match self.parts.repo.read_removed(&removed).await {
                Ok(stored) => survey.removed.extend(turns_of(&stored.state)),
                // It was restored or destroyed meanwhile.
                Err(StoreError::NotFound(_)) => {}
                Err(error) => survey.add_unread(Unreadable::Other, &error),
            }
        }
        for kind in [LogKind::Session, LogKind::Turn] {
            for stray in store.strays(kind).await?.misplaced {
                survey.add_unread(Unreadable::Other, &stray);
            }
        }
        Ok(survey)
    }

    /// A session with the agents that were spawned in it, and those that were spawned in them; each
    /// before those that it has spawned.
    ///
    /// # Errors
    /// [`StoreError`] if the sessions cannot be listed.
    pub async fn family(&self, session: &SessionId) -> Result<Vec<SessionId>, StoreError> {
        let headers = self.parts.repo.store().snapshots(LogKind::Session).await?;
        let spawned = headers.into_iter().filter_map(|header| {
            let event = SessionEvent::parse_line(header.ok()?.first.as_bytes()).ok()?;
            let SessionFact::Created(created) = &event.fact else { return None };
            let is_spawned = created.origin == Some(Origin::Subagent);
            Some((created.parent_session.clone().filter(|_| is_spawned)?, event.id))
        });
        let mut children: HashMap<SessionId, Vec<SessionId>> = HashMap::new();
        for (parent, child) in spawned {
            children.entry(parent).or_default().push(child);
        }
        let (mut family, mut left) = (Vec::new(), vec![session.clone()]);
        while let Some(member) = left.pop() {
            let spawned = children.remove(&member).unwrap_or_default();
            // A session that says that it was spawned by its own child is asked for once.
            left.extend(spawned.into_iter().filter(|child| child != session));
            family.push(member);
        }
        Ok(family)
    }
}
