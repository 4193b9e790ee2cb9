//! What had come about, seen in the end: what never did was not tried.

use std::collections::BTreeMap;

use crate::domain::turn::event::{ResultSource, TurnFact};
use crate::domain::turn::state::TurnState;
use crate::sessions::circumstances::event_ids;
use crate::store::log::LogId;
use crate::store::turn_repo::TurnKind;
use crate::testing::sim::Sim;
use crate::testing::sim::check::Found;
use crate::testing::sim::check::reach::session_of;
use crate::testing::store::Kept;

impl Sim {
    /// How the turns and the sessions stand in the end, and what had happened to them on the way.
    pub(super) fn count(&self, found: &Found) {
        let (mut turns, mut met) = (BTreeMap::new(), BTreeMap::new());
        let mut count = |what, times: usize| *met.entry(what).or_insert(0) += times;
        for turn in found.turns.values() {
            *turns.entry(turn.state.status().to_string()).or_insert(0) += 1;
            let TurnState { definition, inputs, .. } = &turn.state;
            count("a message that waited began a turn", event_ids(&definition.input).len());
            count("a message was taken in", inputs.len());
            count("a model call was interrupted", interrupted_calls(turn));
            count("a tool was interrupted", interrupted_tools(turn));
        }
        for session in found.sessions.values() {
            let used = session.state.compactions.iter();
            let used = used.filter(|it| it.after_turns < session.state.turns.len());
            count("a turn began with a summary", used.count());
            count("a fork had turns", usize::from(session.state.header.seed_length.is_some()));
        }
        let mut left = self.shared.lock();
        let acknowledged = self.storage.acknowledged();
        let gone = acknowledged.keys().filter(|log| !found.has(log));
        count("a log was destroyed", gone.count());
        let collected = left.collected.iter().filter_map(|turn| LogId::turn(turn).ok());
        let asides = collected.filter(|log| {
            acknowledged.get(log).is_some_and(|records| session_of(log, records).is_none())
        });
        count("a question that a crash left was collected", asides.count());
        let waiting = found.undelivered.values().map(|it| it.waiting.len());
        count("a message was held", waiting.sum());
        count("a batch was torn", left.torn);
        met.retain(|_, times| *times > 0);
        (left.played.turns, left.played.met) = (turns, met);
    }
}

fn interrupted_calls(turn: &Kept<TurnKind>) -> usize {
    let is_one = |fact: &TurnFact| match fact {
        TurnFact::ModelCallFailed(failed) => failed.error.starts_with("interrupted"),
        _ => false,
    };
    turn.events.iter().filter(|event| is_one(&event.fact)).count()
}

fn interrupted_tools(turn: &Kept<TurnKind>) -> usize {
    let is_one = |fact: &TurnFact| match fact {
        TurnFact::ToolResult(result) if result.source == ResultSource::Runtime => {
            result.result.output.as_text().is_some_and(|text| text.starts_with("Interrupted"))
        }
        _ => false,
    };
    turn.events.iter().filter(|event| is_one(&event.fact)).count()
}
