//! What must hold in every world when it ends.
#![expect(clippy::panic, reason = "a test fails where the runtime breaks a rule")]

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::FutureExt as _;

use crate::base::id::TurnId;
use crate::domain::turn::event::{TurnEvent, TurnFact};
use crate::domain::turn::live::{LiveEvent, News};
use crate::domain::turn::state::TurnState;
use crate::models::model::Model as _;
use crate::models::request::ModelRequest;
use crate::runtime::compose::compose;
use crate::runtime::context::{ContextResolver, ReadTurn};
use crate::runtime::hub::Received;
use crate::store::error::StoreError;
use crate::store::turn_repo::{TurnKind, TurnRepo};
use crate::testing::lines::line;
use crate::testing::store::Kept;
use crate::testing::world::World;

/// What was told of the turns, in order: each event with its offset.
type Told = BTreeMap<TurnId, Vec<(u64, Arc<TurnEvent>)>>;
/// What the logs compose to, by the model.
type Composed = BTreeMap<String, Vec<String>>;

impl Drop for World {
    fn drop(&mut self) {
        // What a test that has failed already leaves behind is no second failure. A world that told
        // more than a subscriber keeps is too big to be checked.
        if std::thread::panicking() {
            return;
        }
        let Some(told) = told(self) else { return };
        let mut composed = Composed::new();
        for (turn, events) in &told {
            // Some tests damage their logs.
            let Ok(stored) = Kept::read(&self.turns, turn) else { continue };
            check_told(turn, events, &stored);
            compose_requests(self, events, &stored.state, &mut composed);
        }
        check_requests(self, composed);
        for tool in &self.tools {
            let runs = tool.runs();
            let calls: HashSet<_> = runs.iter().map(|run| &run.call).collect();
            assert_eq!(calls.len(), runs.len(), "a tool ran twice for one call: {runs:?}");
        }
    }
}

fn told(world: &World) -> Option<Told> {
    let mut told = Told::new();
    while let Some(received) = world.told.try_next() {
        match received {
            Received::Event(LiveEvent { turn, news: News::Recorded { offset, event }, .. }) => {
                told.entry(turn).or_default().push((offset, event));
            }
            Received::Event(_) => {}
            Received::Lagged => return None,
        }
    }
    Some(told)
}

/// What was told is the end of the log, in its order, and nothing was left out.
fn check_told(turn: &TurnId, told: &[(u64, Arc<TurnEvent>)], stored: &Kept<TurnKind>) {
    let first = told.first().map_or(1, |(offset, _)| *offset);
    let from = usize::try_from(first - 1).unwrap_or(usize::MAX);
    let recorded = (first..).zip(stored.events.get(from..).unwrap_or_default());
    let recorded: Vec<_> = recorded.map(|(offset, it)| (offset, Arc::clone(it))).collect();
    let lines = |events: &[(u64, Arc<TurnEvent>)]| {
        let lines = events.iter().map(|(offset, event)| format!("{offset} {}", line(event)));
        lines.collect::<Vec<_>>()
    };
    if *told != *recorded {
        assert_eq!(lines(told), lines(&recorded), "told of {turn}, and recorded");
        panic!("what was told of {turn} differs from what was recorded: {told:#?}, {recorded:#?}");
    }
}

/// What the log of a turn composes to for each model call that was requested in this world.
fn compose_requests(
    world: &World,
    told: &[(u64, Arc<TurnEvent>)],
    turn: &TurnState,
    composed: &mut Composed,
) {
    for (_, event) in told {
        if let TurnFact::ModelCallRequested(requested) = &event.fact {
            let request = recompose(world, turn, requested.model_call_index);
            let model = turn.definition.agent.resolved.model().to_string();
            composed.entry(model).or_default().push(json(&request));
        }
    }
}

/// Every model got exactly that.
fn check_requests(world: &World, mut composed: Composed) {
    for model in [&world.model, &world.other] {
        let model_name = model.descriptor().to_string();
        let mut composed = composed.remove(&model_name).unwrap_or_default();
        let mut received: Vec<_> = model.requests().iter().map(json).collect();
        composed.sort();
        received.sort();
        assert_eq!(received, composed, "{model_name} received, and its turns compose to");
    }
}

fn json(request: &ModelRequest) -> String {
    serde_json::to_string(request).expect("a request is JSON")
}

/// The request of a call as the log alone gives it, with nothing that anybody kept.
fn recompose(world: &World, turn: &TurnState, index: u64) -> ModelRequest {
    let (fresh, turns) = (ContextResolver::default(), Scanned(&world.turns));
    let resolved = fresh
        .resolve(&turn.id, &turn.definition, &turns)
        .now_or_never()
        .expect("scanning never waits");
    match resolved {
        Ok(surroundings) => compose(turn, &surroundings, index),
        Err(error) => panic!("the context of {} cannot be had again: {error}", turn.id),
    }
}

/// The turns as they lie in the store, read on this thread.
struct Scanned<'a>(&'a TurnRepo);

#[async_trait]
impl ReadTurn for Scanned<'_> {
    type Error = StoreError;

    async fn read_turn(&self, turn: &TurnId) -> Result<TurnState, StoreError> {
        self.0.scan(turn, drop)
    }
}
