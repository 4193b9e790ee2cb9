//! What a session's log amounts to. Only [`SessionState::apply`](super::apply) changes it.

use std::collections::HashSet;
use std::sync::Arc;

use crate::base::clock::Timestamp;
use crate::base::id::{SessionId, TurnId};
use crate::domain::agent::ModelDescriptor;
use crate::domain::session::event::{Compacted, GrantAdded, SessionCreated};

/// A reduced session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionState {
    /// The session.
    pub id: SessionId,
    /// How it began: its header.
    pub header: Arc<SessionCreated>,
    /// The schema that its log has reached.
    pub schema_version: u64,
    /// Its name.
    pub title: Option<String>,
    /// Its turns, in order.
    pub turns: Vec<SessionTurn>,
    /// What is allowed in it.
    pub grants: Vec<GrantAdded>,
    /// Its compactions, in order.
    pub compactions: Vec<Compacted>,
    /// Whether it is put away.
    pub archived: bool,
    /// When it began.
    pub created_at: Timestamp,
    /// When its last event was recorded.
    pub updated_at: Timestamp,
    pub(super) turn_ids: HashSet<TurnId>,
}

/// A turn as its session knows it. The turn's own log is the truth about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionTurn {
    /// The turn.
    pub id: TurnId,
    /// Its place, from 1.
    pub session_seq: u64,
    /// Its agent.
    pub agent_id: String,
    /// Its model.
    pub model: ModelDescriptor,
    /// When it was added.
    pub at: Timestamp,
}

impl SessionState {
    /// The latest turn.
    #[must_use]
    pub fn latest(&self) -> Option<&SessionTurn> {
        self.turns.last()
    }

    /// When somebody last did something in it: the latest turn, else its beginning. Renaming does
    /// not count, so that it does not move a session up in the list.
    #[must_use]
    pub fn active_at(&self) -> Timestamp {
        self.latest().map_or(self.created_at, |turn| turn.at)
    }

    /// Whether it holds this turn.
    #[must_use]
    pub fn has_turn(&self, turn: &TurnId) -> bool {
        self.turn_ids.contains(turn)
    }
}
