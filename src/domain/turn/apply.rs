//! The reducer: which event may follow what a log holds already, and what it changes.
//!
//! Every event is checked whole before anything changes, so that a refused event leaves the state
//! as it was: the same fold serves replay, the append gate and the live view.

mod calls;
mod permissions;
mod rest;
mod tools;

use std::sync::Arc;

use crate::base::clock::Timestamp;
use crate::domain::agent::AgentSnapshot;
use crate::domain::event::Fact as _;
use crate::domain::turn::event::{TurnContext, TurnCreated, TurnEvent, TurnFact};
use crate::domain::turn::refusal::{LifeRefusal, TurnCorruption, TurnRefusal};
use crate::domain::turn::state::{ToolCalls, TurnState};
use crate::domain::usage::TurnUsage;

/// Reduces a whole log.
///
/// # Errors
/// [`TurnCorruption`] names the first event that cannot follow those before it, and the rule.
pub fn reduce_turn(events: &[TurnEvent]) -> Result<TurnState, TurnCorruption> {
    let refused = |number| move |refusal| TurnCorruption { number, refusal };
    let Some((first, rest)) = events.split_first() else {
        return Err(refused(1)(LifeRefusal::Empty.into()));
    };
    let mut state = TurnState::begin(first).map_err(refused(1))?;
    for (at, event) in rest.iter().enumerate() {
        state.apply(event).map_err(refused(at + 2))?;
    }
    Ok(state)
}

impl TurnState {
    /// The state after the first event of a log.
    ///
    /// # Errors
    /// A [`TurnRefusal`] if it is not `turn_created`, is of another schema, or inherits a snapshot
    /// wrongly.
    pub fn begin(event: &TurnEvent) -> Result<Self, TurnRefusal> {
        let TurnFact::Created(created) = &event.fact else {
            return Err(LifeRefusal::NotCreated(event.fact.kind()).into());
        };
        if let Some(version) = event.fact.unsupported_version() {
            return Err(LifeRefusal::UnsupportedVersion(version).into());
        }
        check_inheritance(created)?;
        Ok(Self {
            id: event.id.clone(),
            created_at: event.ts,
            definition: Arc::clone(created),
            model_calls: Vec::new(),
            tool_calls: ToolCalls::default(),
            extensions: Vec::new(),
            inputs: Vec::new(),
            suspension: None,
            terminal: None,
            usage: TurnUsage::default(),
            updated_at: event.ts,
        })
    }

    /// Takes the next event in.
    ///
    /// # Errors
    /// A [`TurnRefusal`] if the event cannot follow; the state is then as it was.
    pub fn apply(&mut self, event: &TurnEvent) -> Result<(), TurnRefusal> {
        if event.id != self.id {
            let (expected, found) = (self.id.clone(), event.id.clone());
            return Err(LifeRefusal::ForeignTurn { expected, found }.into());
        }
        if self.terminal.is_some() {
            return Err(LifeRefusal::AfterEnd(event.fact.kind()).into());
        }
        self.apply_fact(&event.fact, event.ts)?;
        self.updated_at = event.ts;
        Ok(())
    }

    fn apply_fact(&mut self, fact: &TurnFact, at: Timestamp) -> Result<(), TurnRefusal> {
        match fact {
            TurnFact::Created(_) => Err(LifeRefusal::CreatedTwice.into()),
            TurnFact::ModelCallRequested(fact) => calls::requested(self, fact, at),
            TurnFact::ModelStep(fact) => calls::stepped(self, fact),
            TurnFact::ModelCallCompleted(fact) => calls::completed(self, fact, at),
            TurnFact::ModelCallFailed(fact) => calls::failed(self, fact, at),
            TurnFact::PermissionRequired(fact) => permissions::required(self, fact, at),
            TurnFact::PermissionClassified(fact) => permissions::classified(self, fact),
            TurnFact::ClassificationFailed(fact) => permissions::not_classified(self, fact),
            TurnFact::PermissionResolved(fact) => permissions::resolved(self, fact, at),
            TurnFact::InvocationRequested(fact) => tools::invoked(self, fact, at),
            TurnFact::ToolProgress(fact) => tools::progressed(self, fact),
            TurnFact::ToolResult(fact) => tools::finished(self, fact, at),
            TurnFact::ToolsExtended(fact) => tools::extended(self, fact),
            TurnFact::InputAdded(fact) => rest::input_added(self, fact, at),
            TurnFact::Suspended(fact) => rest::suspended(self, fact),
            TurnFact::Completed(fact) => rest::completed(self, fact, at),
            TurnFact::Failed(fact) => rest::failed(self, fact, at),
            TurnFact::Cancelled(fact) => rest::cancelled(self, fact, at),
        }
    }
}

fn check_inheritance(created: &TurnCreated) -> Result<(), LifeRefusal> {
    let AgentSnapshot::Inherited(agent) = &created.agent.resolved else {
        return Ok(());
    };
    match &created.context {
        TurnContext::Inline(_) => Err(LifeRefusal::InheritedInline),
        TurnContext::Previous(context) if context.previous_turn_id != agent.inherited_from => {
            Err(LifeRefusal::InheritedElsewhere {
                from: agent.inherited_from.clone(),
                previous: context.previous_turn_id.clone(),
            })
        }
        TurnContext::Previous(_) => Ok(()),
    }
}
