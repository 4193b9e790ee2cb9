//! What a session's log amounts to. Only [`SessionState::apply`](super::apply) changes it.

use std::collections::HashSet;
use std::sync::Arc;

use crate::base::clock::Timestamp;
use crate::base::id::{SessionId, TurnId};
use crate::domain::agent::ModelDescriptor;
use crate::domain::session::event::{
    Compacted, GrantAdded, SchemaUpgraded, SessionCreated, SessionFact,
};

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
    pub compactions: Vec<Compaction>,
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

/// A compaction, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compaction {
    /// What was recorded.
    pub fact: Compacted,
    /// How many turns the session had when it was recorded; the next one begins with it.
    pub after_turns: usize,
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

    /// Where a turn stands among the turns, from 0.
    #[must_use]
    pub fn place_of(&self, turn: &TurnId) -> Option<usize> {
        self.turns.iter().position(|known| known.id == *turn)
    }

    /// The compaction that the next turn begins with: the last one, if no turn has come since.
    #[must_use]
    pub fn pending_compaction(&self) -> Option<&Compaction> {
        self.compactions.last().filter(|last| last.after_turns == self.turns.len())
    }

    /// These facts as they can follow in the log: with an upgrade of the schema before the first
    /// one that needs it. A session stays at the lowest version that can hold what it has to say,
    /// and a reader of the version before fails at that line.
    #[must_use]
    pub fn upgraded(&self, mut facts: Vec<SessionFact>) -> Vec<SessionFact> {
        let mut version = self.schema_version;
        let needs = facts.iter().position(|fact| {
            if let SessionFact::SchemaUpgraded(upgraded) = fact {
                version = version.max(upgraded.schema_version);
            }
            fact.needs_version() > version
        });
        if let Some(at) = needs {
            let schema_version =
                facts.iter().map(SessionFact::needs_version).max().unwrap_or(version);
            facts.insert(at, SessionFact::SchemaUpgraded(SchemaUpgraded { schema_version }));
        }
        facts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::session::event::SessionEvent;
    use crate::testing::log::{Log, PREVIOUS_TURN, TURN};
    use crate::testing::session_fact::{
        appended, archived, compacted, granted, header, titled, upgraded,
    };
    use crate::testing::strategy::session_history;
    use proptest::prelude::*;

    fn check_upgraded(
        before: &Log<SessionFact>,
        facts: Vec<SessionFact>,
        expected: &[SessionFact],
    ) {
        assert_eq!(before.state().upgraded(facts), expected);
    }

    #[test]
    fn the_first_newer_fact_of_an_older_session_is_preceded_by_an_upgrade() {
        let plain = Log::session(header()).then(appended(1, TURN));
        let (name, away, grant) = (|| titled("A"), || archived(true), || granted("g1"));
        check_upgraded(&plain, Vec::new(), &[]);
        check_upgraded(&plain, vec![name()], &[name()]);
        let expected = [name(), upgraded(2), away(), grant()];
        check_upgraded(&plain, vec![name(), away(), grant()], &expected);
        let said = [upgraded(2), away()];
        check_upgraded(&plain, said.to_vec(), &said);
        check_upgraded(&plain.then(upgraded(2)), vec![away()], &[away()]);
        let begun_newer = Log::session(SessionCreated { schema_version: 2, ..header() });
        check_upgraded(&begun_newer, vec![grant()], &[grant()]);
    }

    #[test]
    fn a_compaction_is_pending_until_a_turn_has_come() {
        let plain = Log::session(header()).then(appended(1, PREVIOUS_TURN));
        assert_eq!(plain.state().pending_compaction(), None);
        let compacted = plain.then(upgraded(2)).then(compacted("k1", PREVIOUS_TURN));
        let state = compacted.state();
        assert_eq!(state.pending_compaction(), state.compactions.first());
        assert_eq!(state.compactions[0].after_turns, 1);
        let gone_on = compacted.then(appended(2, TURN)).state();
        assert_eq!(gone_on.pending_compaction(), None);
        assert_eq!(gone_on.place_of(&TurnId::from(TURN)), Some(1));
        assert_eq!(gone_on.place_of(&TurnId::from("t9")), None);
    }

    /// The facts of a history after its header, as somebody would write them who knows no versions.
    fn facts_of(history: &[SessionEvent]) -> Vec<SessionFact> {
        let facts = history.iter().skip(1).map(|event| event.fact.clone());
        facts.filter(|fact| !matches!(fact, SessionFact::SchemaUpgraded(_))).collect()
    }

    proptest! {
        #[test]
        fn whatever_is_to_be_said_can_follow_once_it_is_upgraded(history in session_history()) {
            let mut log = Log::session(header());
            let facts = facts_of(&history);
            let is_plain = facts.iter().all(|fact| fact.needs_version() == 1);
            let written = log.state().upgraded(facts.clone());
            prop_assert_eq!(written == facts, is_plain);
            for fact in written {
                log.push(fact);
            }
            let upgrades = log.events().iter();
            let upgrades = upgrades.filter(|event| matches!(event.fact, SessionFact::SchemaUpgraded(_)));
            prop_assert_eq!(upgrades.count(), usize::from(!is_plain));
            prop_assert_eq!(log.state().schema_version, if is_plain { 1 } else { 2 });
        }
    }
}
