//! What a turn's log amounts to. Only [`TurnState::apply`](super::apply) changes it.

use std::collections::HashMap;
use std::sync::Arc;

use crate::base::clock::Timestamp;
use crate::base::id::{ToolCallId, TurnId};
use crate::domain::agent::{Execution, ToolDescriptor};
use crate::domain::json::Json;
use crate::domain::message::{AssistantMessage, UserMessage};
use crate::domain::turn::event::{
    Classification, Decision, DecisionSource, ModelRequest, ResultSource, ToolResultData,
    TurnCancelled, TurnCompleted, TurnCreated, TurnFailed, TurnSuspended,
};
use crate::domain::turn::step::StepEvent;
use crate::domain::usage::TurnUsage;

/// A reduced turn. It has no status field: see [`TurnState::status`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnState {
    /// The turn.
    pub id: TurnId,
    /// When it began.
    pub created_at: Timestamp,
    /// How it began.
    pub definition: Arc<TurnCreated>,
    /// The model calls, by their index.
    pub model_calls: Vec<ModelCall>,
    /// The tool calls, in source order.
    pub tool_calls: ToolCalls,
    /// Tools that other tools brought.
    pub extensions: Vec<ToolExtension>,
    /// Messages added while it ran; the first has index 1.
    pub inputs: Vec<AddedInput>,
    /// The last snapshot of what it waited for.
    pub suspension: Option<Arc<TurnSuspended>>,
    /// How it ended, if it has.
    pub terminal: Option<Terminal>,
    /// The usage of all completed calls.
    pub usage: TurnUsage,
    /// When the last event was recorded.
    pub updated_at: Timestamp,
}

/// A model call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelCall {
    /// What was new in its request.
    pub request: ModelRequest,
    /// When it was requested.
    pub requested_at: Timestamp,
    /// The pieces of the answer that were whole.
    pub steps: Vec<StepEvent>,
    /// How it ended; none while it is open.
    pub settlement: Option<Settlement>,
}

impl ModelCall {
    /// The answer of a completed call.
    #[must_use]
    pub fn response(&self) -> Option<&Arc<AssistantMessage>> {
        match &self.settlement {
            Some(Settlement::Completed(response)) => Some(&response.message),
            Some(Settlement::Failed { .. }) | None => None,
        }
    }
}

/// How a model call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settlement {
    /// With an answer.
    Completed(Response),
    /// Without one.
    Failed {
        /// What went wrong.
        error: String,
        /// When.
        at: Timestamp,
    },
}

/// A model's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The message.
    pub message: Arc<AssistantMessage>,
    /// Why it ended.
    pub finish_reason: String,
    /// What it used.
    pub usage: TurnUsage,
    /// Whatever else the provider said.
    pub provider_metadata: Option<Json>,
    /// When it was whole.
    pub at: Timestamp,
}

/// Tool calls in source order, found by id in constant time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolCalls {
    calls: Vec<ToolCall>,
    places: HashMap<ToolCallId, usize>,
}

impl ToolCalls {
    /// The call with this id.
    #[must_use]
    pub fn get(&self, id: &ToolCallId) -> Option<&ToolCall> {
        self.places.get(id).and_then(|&place| self.calls.get(place))
    }

    /// All calls in source order.
    pub fn iter(&self) -> std::slice::Iter<'_, ToolCall> {
        self.calls.iter()
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.calls.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// The calls of one response, in source order. They are the last ones while any is unresolved,
    /// since no further request is legal before.
    #[must_use]
    pub fn batch(&self, model_call_index: u64) -> &[ToolCall] {
        let from = self.calls.partition_point(|call| call.model_call_index < model_call_index);
        let to = self.calls.partition_point(|call| call.model_call_index <= model_call_index);
        self.calls.get(from..to).unwrap_or_default()
    }

    pub(super) fn get_mut(&mut self, id: &ToolCallId) -> Option<&mut ToolCall> {
        self.places.get(id).and_then(|&place| self.calls.get_mut(place))
    }

    pub(super) fn push(&mut self, call: ToolCall) {
        self.places.insert(call.id.clone(), self.calls.len());
        self.calls.push(call);
    }
}

impl<'a> IntoIterator for &'a ToolCalls {
    type Item = &'a ToolCall;
    type IntoIter = std::slice::Iter<'a, ToolCall>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// A tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolCall {
    /// Its id.
    pub id: ToolCallId,
    /// The model call that asked for it.
    pub model_call_index: u64,
    /// Its place in that response, from 0.
    pub order: usize,
    /// The name that the model used.
    pub name: String,
    /// The arguments that the model gave.
    pub arguments: Json,
    /// The tool behind the name, once known.
    pub tool_id: Option<String>,
    /// How its result comes about, once known.
    pub execution: Option<Execution>,
    /// What was asked and decided, if anybody asked.
    pub permission: Option<Permission>,
    /// Its start, once it was to run.
    pub invocation: Option<Invocation>,
    /// What it reported on its way.
    pub progress: Vec<Json>,
    /// Its result.
    pub result: Option<Outcome>,
}

impl ToolCall {
    /// Whether somebody has yet to decide on it.
    #[must_use]
    pub fn awaits_permission(&self) -> bool {
        self.result.is_none()
            && self.permission.as_ref().is_some_and(|permission| permission.resolved.is_none())
    }

    /// Whether somebody outside has yet to answer it.
    #[must_use]
    pub fn awaits_async_result(&self) -> bool {
        self.result.is_none()
            && self.invocation.is_some()
            && self.execution == Some(Execution::Async)
    }
}

/// What was asked and decided about a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permission {
    /// What is shown and approved.
    pub request: Json,
    /// Why the checker could not answer, if it could not.
    pub checker_error: Option<String>,
    /// When it was asked.
    pub required_at: Timestamp,
    /// The classifier's opinion and its grounds.
    pub classified: Option<(Classification, String)>,
    /// Why the classifier had none.
    pub classification_failed: Option<String>,
    /// The decision.
    pub resolved: Option<Resolution>,
}

/// The decision on a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolution {
    /// Yes or no.
    pub decision: Decision,
    /// Who decided.
    pub source: DecisionSource,
    /// The person's words.
    pub reason: Option<String>,
    /// How it came about.
    pub metadata: Option<Json>,
    /// When.
    pub at: Timestamp,
}

/// The start of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invocation {
    /// What the tool was given.
    pub input: Json,
    /// When.
    pub at: Timestamp,
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Where it comes from.
    pub source: ResultSource,
    /// The result.
    pub data: ToolResultData,
    /// When.
    pub at: Timestamp,
}

/// Tools that a tool brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolExtension {
    /// The call whose result brought them.
    pub tool_call_id: ToolCallId,
    /// What they belong to.
    pub source: String,
    /// The tools.
    pub tools: Vec<ToolDescriptor>,
    /// The first model call that sees them.
    pub first_call: u64,
}

/// A message that was added while the turn ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddedInput {
    /// The message.
    pub message: Arc<UserMessage>,
    /// The first model call that carries it; the budget of calls starts again there.
    pub first_call: u64,
    /// When.
    pub at: Timestamp,
}

/// How a turn ended, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terminal {
    /// How.
    pub kind: TerminalKind,
    /// When.
    pub at: Timestamp,
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TerminalKind {
    /// With an answer.
    Completed(TurnCompleted),
    /// Without one.
    Failed(TurnFailed),
    /// From outside.
    Cancelled(TurnCancelled),
}

impl TurnState {
    /// The model call that has no settlement yet.
    #[must_use]
    pub fn open_call(&self) -> Option<&ModelCall> {
        self.model_calls.last().filter(|call| call.settlement.is_none())
    }

    /// The index of the model call that has no settlement yet.
    #[must_use]
    pub fn open_call_index(&self) -> Option<u64> {
        self.open_call().map(|_| self.next_call_index() - 1)
    }

    /// The index that the next model call will have.
    #[must_use]
    pub fn next_call_index(&self) -> u64 {
        self.model_calls.len() as u64
    }

    /// The tool calls of the last response; only they can be unresolved.
    #[must_use]
    pub fn last_batch(&self) -> &[ToolCall] {
        self.tool_calls.batch(self.next_call_index().saturating_sub(1))
    }

    /// The calls without a result, in source order.
    pub fn unresolved(&self) -> impl Iterator<Item = &ToolCall> {
        self.last_batch().iter().filter(|call| call.result.is_none())
    }

    /// The calls that somebody has yet to decide on.
    pub fn outstanding_permissions(&self) -> impl Iterator<Item = &ToolCall> {
        self.last_batch().iter().filter(|call| call.awaits_permission())
    }

    /// The calls that somebody outside has yet to answer.
    pub fn outstanding_async(&self) -> impl Iterator<Item = &ToolCall> {
        self.last_batch().iter().filter(|call| call.awaits_async_result())
    }

    /// Whether anything outside is outstanding.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.outstanding_permissions().next().is_some() || self.outstanding_async().next().is_some()
    }

    /// The tools that were added before the model call `model_call_index`.
    pub fn extended_tools(&self, model_call_index: u64) -> impl Iterator<Item = &ToolDescriptor> {
        self.extensions
            .iter()
            .filter(move |extension| extension.first_call <= model_call_index)
            .flat_map(|extension| &extension.tools)
    }

    /// How many model calls were requested since the last input was accepted.
    #[must_use]
    pub fn calls_since_input(&self) -> u64 {
        let since = self.inputs.last().map_or(0, |input| input.first_call);
        self.next_call_index().saturating_sub(since)
    }

    /// Whether another model call would be one too many.
    #[must_use]
    pub fn budget_is_spent(&self) -> bool {
        self.calls_since_input() >= self.definition.config.max_model_calls
    }
}
