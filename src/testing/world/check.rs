//! What must hold in every world when it ends.
#![expect(clippy::panic, reason = "a test fails where the runtime breaks a rule")]

use std::collections::{BTreeMap, HashSet};

use async_trait::async_trait;
use futures_util::FutureExt as _;

use crate::base::id::TurnId;
use crate::domain::turn::event::TurnFact;
use crate::domain::turn::state::TurnState;
use crate::models::model::Model as _;
use crate::models::request::ModelRequest;
use crate::runtime::compose::compose;
use crate::runtime::context::{ContextResolver, ReadTurn};
use crate::store::error::StoreError;
use crate::store::turn_repo::TurnRepo;
use crate::testing::store::Kept;
use crate::testing::told::{Told, ToldEvent};
use crate::testing::world::World;

/// What the logs compose to, by the model.
type Composed = BTreeMap<String, Vec<String>>;

impl Drop for World {
    fn drop(&mut self) {
        // What a test that has failed already leaves behind is no second failure. A world that told
        // more than a subscriber keeps is too big to be checked.
        if std::thread::panicking() {
            return;
        }
        let mut told = Told::default();
        if told.hear(&self.told).is_err() {
            return;
        }
        let mut composed = Composed::new();
        for (turn, events) in told.turns() {
            // Some tests damage their logs.
            let Ok(stored) = Kept::read(&self.turns, turn) else { continue };
            let first = events.first().map_or(1, |(offset, _)| *offset);
            let known = usize::try_from(first - 1).unwrap_or(usize::MAX);
            told.check_whole(turn, known, &stored.events);
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

/// What the log of a turn composes to for each model call that was requested in this world.
fn compose_requests(world: &World, told: &[ToldEvent], turn: &TurnState, composed: &mut Composed) {
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
