//! The session reducer: which event may follow, and what it changes (`spec/session-layer.md`
//! section 6).

use std::collections::HashSet;
use std::sync::Arc;

use thiserror::Error;

use crate::base::id::{SessionId, TurnId};
use crate::domain::event::Fact as _;
use crate::domain::session::event::{SessionEvent, SessionFact, TurnAppended};
use crate::domain::session::state::{Compaction, SessionState, SessionTurn};

/// A log that no session can have written.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("event {number}: {refusal}")]
pub struct SessionCorruption {
    /// The first event that is refused, from 1; 1 for an empty log.
    pub number: usize,
    /// Why.
    #[source]
    pub refusal: SessionRefusal,
}

/// Why an event cannot follow those before it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SessionRefusal {
    /// There is no event.
    #[error("the log is empty")]
    Empty,
    /// The first event is another.
    #[error("the first event is {0}, not session_created")]
    NotCreated(&'static str),
    /// The session is created a second time.
    #[error("a second session_created")]
    CreatedTwice,
    /// The event belongs to another session.
    #[error("the event belongs to session {found}, not to {expected}")]
    ForeignSession {
        /// The session of this log.
        expected: SessionId,
        /// The session that the event names.
        found: SessionId,
    },
    /// A turn has the wrong place.
    #[error("turn {turn} has sessionSeq {found}; {expected} would be next")]
    Place {
        /// The turn.
        turn: TurnId,
        /// The next place.
        expected: u64,
        /// The place found.
        found: u64,
    },
    /// A turn is added again.
    #[error("turn {0} is in the session already")]
    TurnTwice(TurnId),
    /// The event belongs to a schema that the session has not been upgraded to.
    #[error("{kind} needs schema version {needed}, and the session has version {version}")]
    VersionTooLow {
        /// The event.
        kind: &'static str,
        /// What it needs.
        needed: u64,
        /// What the session has.
        version: u64,
    },
    /// The session begins with a schema, or is upgraded to one, that this program does not write.
    #[error("unsupported schema version {0}")]
    UnsupportedVersion(u64),
    /// The schema is upgraded to one that it has already.
    #[error("an upgrade to schema version {0}, which the session has already")]
    NoUpgrade(u64),
    /// A grant is added under an id that is in use.
    #[error("grant {0} exists already")]
    GrantTwice(String),
    /// There is no such grant.
    #[error("no grant {0} to remove")]
    NoGrant(String),
    /// A compaction is recorded again.
    #[error("compaction {0} exists already")]
    CompactionTwice(String),
    /// A compaction keeps a turn that the session does not have.
    #[error("a compaction keeps turn {0}, which is not in the session")]
    KeptTurnUnknown(TurnId),
    /// A fork does not hold what it says that it inherited.
    #[error("the session inherited {seed} turns, and holds {turns}")]
    SeedMissing {
        /// How many turns its header says it inherited.
        seed: u64,
        /// How many it has.
        turns: usize,
    },
}

/// Reduces a whole log.
///
/// # Errors
/// [`SessionCorruption`] names the first event that cannot follow those before it, and the rule.
pub fn reduce_session(events: &[SessionEvent]) -> Result<SessionState, SessionCorruption> {
    let refused = |number| move |refusal| SessionCorruption { number, refusal };
    let Some((first, rest)) = events.split_first() else {
        return Err(refused(1)(SessionRefusal::Empty));
    };
    let mut state = SessionState::begin(first).map_err(refused(1))?;
    for (at, event) in rest.iter().enumerate() {
        state.apply(event).map_err(refused(at + 2))?;
    }
    Ok(state)
}

impl SessionState {
    /// The state after the first event of a log.
    ///
    /// # Errors
    /// A [`SessionRefusal`] if it is not `session_created`, or of another schema.
    pub fn begin(event: &SessionEvent) -> Result<Self, SessionRefusal> {
        let SessionFact::Created(header) = &event.fact else {
            return Err(SessionRefusal::NotCreated(event.fact.kind()));
        };
        check_supported(&event.fact)?;
        Ok(Self {
            id: event.id.clone(),
            header: Arc::clone(header),
            schema_version: header.schema_version,
            title: header.title.clone(),
            turns: Vec::new(),
            grants: Vec::new(),
            compactions: Vec::new(),
            archived: false,
            created_at: event.ts,
            updated_at: event.ts,
            turn_ids: HashSet::new(),
        })
    }

    /// Takes the next event in.
    ///
    /// # Errors
    /// A [`SessionRefusal`] if the event cannot follow; the state is then as it was.
    pub fn apply(&mut self, event: &SessionEvent) -> Result<(), SessionRefusal> {
        if event.id != self.id {
            let (expected, found) = (self.id.clone(), event.id.clone());
            return Err(SessionRefusal::ForeignSession { expected, found });
        }
        self.check_version(&event.fact)?;
        match &event.fact {
            SessionFact::Created(_) => return Err(SessionRefusal::CreatedTwice),
            SessionFact::TurnAppended(turn) => self.append(turn, event)?,
            SessionFact::TitleChanged(changed) => self.title = Some(changed.title.clone()),
            SessionFact::SchemaUpgraded(upgraded) => self.schema_version = upgraded.schema_version,
            SessionFact::GrantAdded(grant) => {
                if self.grants.iter().any(|known| known.grant_id == grant.grant_id) {
                    return Err(SessionRefusal::GrantTwice(grant.grant_id.clone()));
                }
                self.grants.push(grant.clone());
            }
            SessionFact::GrantRemoved(removed) => {
                let place = self.grants.iter().position(|known| known.grant_id == removed.grant_id);
                let Some(place) = place else {
                    return Err(SessionRefusal::NoGrant(removed.grant_id.clone()));
                };
                self.grants.remove(place);
            }
            SessionFact::Compacted(compacted) => {
                let id = &compacted.compaction_id;
                if self.compactions.iter().any(|known| known.fact.compaction_id == *id) {
                    return Err(SessionRefusal::CompactionTwice(id.clone()));
                }
                if !self.has_turn(&compacted.first_kept_turn_id) {
                    let turn = compacted.first_kept_turn_id.clone();
                    return Err(SessionRefusal::KeptTurnUnknown(turn));
                }
                let (fact, after_turns) = (compacted.clone(), self.turns.len());
                self.compactions.push(Compaction { fact, after_turns });
            }
            SessionFact::Archived(fact) => self.archived = fact.archived,
        }
        self.updated_at = event.ts;
        Ok(())
    }

    /// Whether a whole log holds the turns that its header says it inherited. Not asked while
    /// folding: each beginning of a fork's log is legal, and other readers ignore the field.
    ///
    /// # Errors
    /// [`SessionRefusal::SeedMissing`].
    pub fn check_seed(&self) -> Result<(), SessionRefusal> {
        let (seed, turns) = (self.header.seed_length.unwrap_or(0), self.turns.len());
        if seed > turns as u64 {
            return Err(SessionRefusal::SeedMissing { seed, turns });
        }
        Ok(())
    }

    fn check_version(&self, fact: &SessionFact) -> Result<(), SessionRefusal> {
        check_supported(fact)?;
        if let SessionFact::SchemaUpgraded(upgraded) = fact {
            return if upgraded.schema_version > self.schema_version {
                Ok(())
            } else {
                Err(SessionRefusal::NoUpgrade(upgraded.schema_version))
            };
        }
        let (needed, version) = (fact.needs_version(), self.schema_version);
        if needed > version {
            return Err(SessionRefusal::VersionTooLow { kind: fact.kind(), needed, version });
        }
        Ok(())
    }

    fn append(&mut self, turn: &TurnAppended, event: &SessionEvent) -> Result<(), SessionRefusal> {
        let expected = self.turns.len() as u64 + 1;
        if turn.session_seq != expected {
            let (turn, found) = (turn.turn_id.clone(), turn.session_seq);
            return Err(SessionRefusal::Place { turn, expected, found });
        }
        if !self.turn_ids.insert(turn.turn_id.clone()) {
            return Err(SessionRefusal::TurnTwice(turn.turn_id.clone()));
        }
        self.turns.push(SessionTurn {
            id: turn.turn_id.clone(),
            session_seq: turn.session_seq,
            agent_id: turn.agent_id.clone(),
            model: turn.model.clone(),
            at: event.ts,
        });
        Ok(())
    }
}

fn check_supported(fact: &SessionFact) -> Result<(), SessionRefusal> {
    fact.unsupported_version()
        .map_or(Ok(()), |version| Err(SessionRefusal::UnsupportedVersion(version)))
}
