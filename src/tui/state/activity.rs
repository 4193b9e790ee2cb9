//! What runs now, in all sessions: turns, known from the live stream alone, and the summing up of what
//! was said. Nothing runs when the program starts.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::base::id::{SessionId, TurnId};
use crate::store::lock::Holder;

/// What runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    turns: BTreeMap<TurnId, Run>,
    sessions: BTreeMap<SessionId, TurnId>,
    /// The sessions in which what was said is being summed up.
    pub compacting: BTreeSet<SessionId>,
    /// The other process that works in the folder, where this one only looks: a turn that has not
    /// ended is open there, and not interrupted.
    pub elsewhere: Option<Holder>,
}

/// A turn that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Its session; none for a standalone turn.
    pub session: Option<SessionId>,
    /// Since when it runs without a rest, on the clock of [`Now::elapsed`](super::Now::elapsed).
    pub since: Duration,
}

/// What a person can stop in a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Work {
    /// Its turn.
    Turn(TurnId),
    /// The summing up of what was said in it.
    Compaction(SessionId),
}

impl Activity {
    /// Notes that a turn runs now.
    pub fn started(&mut self, turn: TurnId, run: Run) {
        if let Some(session) = &run.session {
            self.sessions.insert(session.clone(), turn.clone());
        }
        self.turns.insert(turn, run);
    }

    /// Notes that it no longer does.
    pub fn rested(&mut self, turn: &TurnId) {
        let session = self.turns.remove(turn).and_then(|run| run.session);
        let Some(session) = session else { return };
        if self.sessions.get(&session) == Some(turn) {
            self.sessions.remove(&session);
        }
    }

    /// Whether this turn runs.
    #[must_use]
    pub fn runs(&self, turn: &TurnId) -> bool {
        self.turns.contains_key(turn)
    }

    /// Whether this turn runs, here or perhaps elsewhere, if it has not ended.
    #[must_use]
    pub fn may_run(&self, turn: &TurnId) -> bool {
        self.runs(turn) || self.elsewhere.is_some()
    }

    /// How this turn runs, if it does.
    #[must_use]
    pub fn run(&self, turn: &TurnId) -> Option<&Run> {
        self.turns.get(turn)
    }

    /// The turn that runs in a session.
    #[must_use]
    pub fn turn_of(&self, session: &SessionId) -> Option<&TurnId> {
        self.sessions.get(session)
    }

    /// What runs in a session.
    #[must_use]
    pub fn work_in(&self, session: &SessionId) -> Option<Work> {
        let turn = self.turn_of(session).cloned().map(Work::Turn);
        let compaction = || Work::Compaction(session.clone());
        turn.or_else(|| self.compacting.contains(session).then(compaction))
    }

    /// In how many sessions a turn runs.
    #[must_use]
    pub fn session_count(&self) -> usize {
        self.sessions.len()
    }
}
