//! Model calls: requested, stepped, settled.

use std::collections::HashSet;
use std::sync::Arc;

use crate::base::clock::Timestamp;
use crate::domain::turn::event::{
    ModelCallCompleted, ModelCallFailed, ModelCallRequested, ModelStep,
};
use crate::domain::turn::reference::MessageRef;
use crate::domain::turn::refusal::{CallRefusal, LifeRefusal, TurnRefusal};
use crate::domain::turn::state::{ModelCall, Response, Settlement, ToolCall, TurnState};

pub(super) fn requested(
    state: &mut TurnState,
    fact: &ModelCallRequested,
    at: Timestamp,
) -> Result<(), TurnRefusal> {
    let (index, expected) = (fact.model_call_index, state.next_call_index());
    if index != expected {
        return Err(CallRefusal::Index { expected, found: index }.into());
    }
    if state.open_call().is_some() {
        return Err(LifeRefusal::CallOpen("model_call_requested").into());
    }
    super::rest::check_tools_resolved(state, "model_call_requested")?;
    if state.budget_is_spent() {
        let max = state.definition.config.max_model_calls;
        return Err(CallRefusal::Budget { index, max }.into());
    }
    check_references(state, fact)?;
    state.model_calls.push(ModelCall {
        request: fact.request.clone(),
        requested_at: at,
        steps: Vec::new(),
        settlement: None,
    });
    Ok(())
}

fn check_references(state: &TurnState, fact: &ModelCallRequested) -> Result<(), CallRefusal> {
    let index = fact.model_call_index;
    let due = state.next_context_ref();
    let found = fact.request.context_ref.as_ref();
    if due != found {
        let spell = |reference: Option<&crate::domain::turn::event::ContextRef>| {
            reference.map_or("none".to_owned(), |context| context.previous_turn_id.to_string())
        };
        return Err(CallRefusal::ContextRef { index, expected: spell(due), found: spell(found) });
    }
    let due = state.next_message_refs();
    if due != fact.request.messages {
        let spell = |refs: &[MessageRef]| {
            refs.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        };
        let (expected, found) = (spell(&due), spell(&fact.request.messages));
        return Err(CallRefusal::References { index, expected, found });
    }
    Ok(())
}

pub(super) fn stepped(state: &mut TurnState, fact: &ModelStep) -> Result<(), TurnRefusal> {
    let call = open(state, fact.model_call_index, "model_step_event")?;
    call.steps.push(fact.event.clone());
    Ok(())
}

pub(super) fn completed(
    state: &mut TurnState,
    fact: &ModelCallCompleted,
    at: Timestamp,
) -> Result<(), TurnRefusal> {
    let index = fact.model_call_index;
    open(state, index, "model_call_completed")?;
    let mut seen = HashSet::new();
    for part in fact.message.tool_calls() {
        let id = &part.tool_call_id;
        if !seen.insert(id) || state.tool_calls.get(id).is_some() {
            return Err(CallRefusal::ToolCallIdTwice(id.clone()).into());
        }
    }
    for (order, part) in fact.message.tool_calls().enumerate() {
        // Added tools first: their descriptors always stand in this log, the others may be
        // inherited and are then known only once the tool is invoked.
        let descriptor = state
            .extended_tools(index)
            .chain(state.definition.agent.resolved.tools())
            .find(|tool| tool.name == part.tool_name);
        let (tool_id, execution) =
            descriptor.map(|tool| (tool.tool_id.clone(), tool.execution)).unzip();
        state.tool_calls.push(ToolCall {
            id: part.tool_call_id.clone(),
            model_call_index: index,
            order,
            name: part.tool_name.clone(),
            arguments: part.arguments.clone(),
            tool_id,
            execution,
            permission: None,
            invocation: None,
            progress: Vec::new(),
            result: None,
        });
    }
    open(state, index, "model_call_completed")?.settlement =
        Some(Settlement::Completed(Response {
            message: Arc::clone(&fact.message),
            finish_reason: fact.finish_reason.clone(),
            usage: fact.usage,
            provider_metadata: fact.provider_metadata.clone(),
            at,
        }));
    state.usage.add(&fact.usage);
    Ok(())
}

pub(super) fn failed(
    state: &mut TurnState,
    fact: &ModelCallFailed,
    at: Timestamp,
) -> Result<(), TurnRefusal> {
    let call = open(state, fact.model_call_index, "model_call_failed")?;
    call.settlement = Some(Settlement::Failed { error: fact.error.clone(), at });
    Ok(())
}

/// The open call, if it has this index.
fn open<'a>(
    state: &'a mut TurnState,
    index: u64,
    kind: &'static str,
) -> Result<&'a mut ModelCall, CallRefusal> {
    let is_last = index.checked_add(1) == Some(state.next_call_index());
    state
        .model_calls
        .last_mut()
        .filter(|call| is_last && call.settlement.is_none())
        .ok_or(CallRefusal::NotOpen { kind, index })
}
