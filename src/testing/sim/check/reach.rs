//! What may be gone and what may not: a second account of which turns are needed, by what the logs say.

use std::collections::BTreeSet;

use crate::base::id::{SessionId, TurnId};
use crate::domain::agent::AgentSnapshot;
use crate::domain::turn::event::{TurnContext, TurnCreated, TurnEvent, TurnFact};
use crate::store::log::{LogId, LogKind, Record};
use crate::testing::sim::Sim;
use crate::testing::sim::check::Found;
use crate::testing::sim::life::Life;

impl Sim {
    /// Every log that was acknowledged is there or can be restored, unless somebody began to destroy
    /// it; and of a session that was destroyed at once, nothing is there that was only its own.
    pub(super) fn check_gone(&self, found: &Found) {
        let left = self.shared.lock();
        for (log, records) in self.storage.acknowledged() {
            if found.has(&log) {
                continue;
            }
            let session = session_of(&log, &records);
            // What was asked for a summary stays no longer than that takes.
            let was_aside = log.kind() == LogKind::Turn && session.is_none();
            let is_doomed = was_aside
                || session.is_some_and(|it| left.doomed.sessions.contains(&it))
                || left.doomed.turns.contains(&TurnId::from(log.id()));
            assert!(is_doomed, "{log} is gone, and nobody wanted that");
        }
        for (id, turn) in &found.turns {
            let session = turn.state.definition.session_id.as_ref();
            let is_purged = session.is_some_and(|it| left.purged.contains(it));
            assert!(!is_purged || self.seen.shared.contains(id), "{id} outlives its session");
        }
    }

    /// What is found to be garbage is what nothing needs; and what is needed is there.
    pub(super) async fn check_garbage(&self, life: &Life, found: &Found) {
        let mut needed = BTreeSet::new();
        let mut left: Vec<TurnId> = Vec::new();
        left.extend(found.sessions.values().flat_map(|it| &it.state.turns).map(|it| it.id.clone()));
        for removed in found.removed.iter().filter(|it| it.log.kind() == LogKind::Session) {
            let session = life.session_logs.read_removed(removed).await.expect("it can be read");
            left.extend(session.state.turns.iter().map(|it| it.id.clone()));
        }
        // Of no session are only the questions for titles and summaries, and nobody asks one now.
        while let Some(id) = left.pop() {
            if !needed.contains(&id) {
                left.extend(goes_back_to(&found.turn(&id).definition));
                needed.insert(id);
            }
        }
        let garbage = life.sessions.find_garbage(|_| false).await.expect("all can be listed");
        assert_eq!(garbage.unsure, Vec::<String>::new(), "all can be read");
        let not_needed: Vec<_> = found.turns.keys().filter(|it| !needed.contains(*it)).collect();
        assert_eq!(garbage.turns.iter().collect::<Vec<_>>(), not_needed, "garbage");
    }
}

/// The session that a log is, or whose turn it is; `None` for a question that the layer itself asked.
pub(super) fn session_of(log: &LogId, records: &[Record]) -> Option<SessionId> {
    match log.kind() {
        LogKind::Session => Some(SessionId::from(log.id())),
        LogKind::Turn => match TurnEvent::parse_line(records.first()?.as_bytes()).ok()?.fact {
            TurnFact::Created(created) => created.session_id.clone(),
            _ => None,
        },
    }
}

fn goes_back_to(turn: &TurnCreated) -> Vec<TurnId> {
    let mut turns = Vec::new();
    if let TurnContext::Previous(context) = &turn.context {
        turns.push(context.previous_turn_id.clone());
    }
    if let AgentSnapshot::Inherited(agent) = &turn.agent.resolved {
        turns.push(agent.inherited_from.clone());
    }
    turns
}
