//! Tool runs: invoked, on their way, finished, and what they bring.

use std::collections::HashSet;

use crate::base::clock::Timestamp;
use crate::base::id::ToolCallId;
use crate::domain::agent::Execution;
use crate::domain::turn::event::{
    Decision, InvocationRequested, ResultSource, ToolProgress, ToolResult, ToolsExtended,
};
use crate::domain::turn::refusal::{LifeRefusal, ToolRefusal, TurnRefusal};
use crate::domain::turn::state::{Invocation, Outcome, ToolCall, ToolExtension, TurnState};

pub(super) fn invoked(
    state: &mut TurnState,
    fact: &InvocationRequested,
    at: Timestamp,
) -> Result<(), TurnRefusal> {
    const KIND: &str = "tool_invocation_requested";
    let call = find(state, &fact.tool_call_id, KIND)?;
    if call.invocation.is_some() {
        return Err(ToolRefusal::InvokedTwice(call.id.clone()).into());
    }
    check_no_result(call, KIND)?;
    check_tool(call, KIND, &call.name, &fact.tool_name)?;
    let allowed = call.permission.as_ref().is_none_or(|permission| {
        permission.resolved.as_ref().is_some_and(|it| it.decision == Decision::Allow)
    });
    if !allowed {
        return Err(ToolRefusal::NotAllowed(call.id.clone()).into());
    }
    if let Some(tool_id) = &call.tool_id {
        check_tool(call, KIND, tool_id, &fact.tool_id)?;
    }
    if call.execution.is_some_and(|execution| execution != fact.execution) {
        return Err(ToolRefusal::WrongSource { kind: KIND, call: call.id.clone() }.into());
    }
    call.tool_id = Some(fact.tool_id.clone());
    call.execution = Some(fact.execution);
    call.invocation = Some(Invocation { input: fact.input.clone(), at });
    Ok(())
}

pub(super) fn progressed(state: &mut TurnState, fact: &ToolProgress) -> Result<(), TurnRefusal> {
    const KIND: &str = "tool_progress";
    let call = find(state, &fact.tool_call_id, KIND)?;
    check_invoked(call, KIND, fact.source)?;
    check_no_result(call, KIND)?;
    call.progress.push(fact.progress.clone());
    Ok(())
}

pub(super) fn finished(
    state: &mut TurnState,
    fact: &ToolResult,
    at: Timestamp,
) -> Result<(), TurnRefusal> {
    const KIND: &str = "tool_result";
    let call = find(state, &fact.tool_call_id, KIND)?;
    check_no_result(call, KIND)?;
    check_tool(call, KIND, &call.name, &fact.tool_name)?;
    match fact.source {
        ResultSource::Sync => check_invoked(call, KIND, Execution::Sync)?,
        ResultSource::Async => check_invoked(call, KIND, Execution::Async)?,
        ResultSource::Runtime => {}
    }
    call.result = Some(Outcome { source: fact.source, data: fact.result.clone(), at });
    Ok(())
}

pub(super) fn extended(state: &mut TurnState, fact: &ToolsExtended) -> Result<(), TurnRefusal> {
    const KIND: &str = "tools_extended";
    if state.open_call().is_some() {
        return Err(LifeRefusal::CallOpen(KIND).into());
    }
    let call = find(state, &fact.tool_call_id, KIND)?;
    if call.result.as_ref().is_none_or(|result| result.data.is_error) {
        return Err(ToolRefusal::NoSuccess(call.id.clone()).into());
    }
    let first_call = state.next_call_index();
    let mut names: HashSet<&str> = state
        .extended_tools(first_call)
        .chain(state.definition.agent.resolved.tools())
        .map(|tool| tool.name.as_str())
        .collect();
    for tool in &fact.tools {
        if !names.insert(&tool.name) {
            return Err(ToolRefusal::NameInUse(tool.name.clone()).into());
        }
    }
    state.extensions.push(ToolExtension {
        tool_call_id: fact.tool_call_id.clone(),
        source: fact.source.clone(),
        tools: fact.tools.clone(),
        first_call,
    });
    Ok(())
}

fn find<'a>(
    state: &'a mut TurnState,
    id: &ToolCallId,
    kind: &'static str,
) -> Result<&'a mut ToolCall, ToolRefusal> {
    let unknown = || ToolRefusal::UnknownCall { kind, call: id.clone() };
    state.tool_calls.get_mut(id).ok_or_else(unknown)
}

fn check_no_result(call: &ToolCall, kind: &'static str) -> Result<(), ToolRefusal> {
    match call.result {
        Some(_) => Err(ToolRefusal::AfterResult { kind, call: call.id.clone() }),
        None => Ok(()),
    }
}

fn check_tool(
    call: &ToolCall,
    kind: &'static str,
    expected: &str,
    found: &str,
) -> Result<(), ToolRefusal> {
    if expected == found {
        return Ok(());
    }
    let (expected, found) = (expected.to_owned(), found.to_owned());
    Err(ToolRefusal::OtherTool { kind, call: call.id.clone(), expected, found })
}

fn check_invoked(
    call: &ToolCall,
    kind: &'static str,
    source: Execution,
) -> Result<(), ToolRefusal> {
    if call.invocation.is_none() {
        return Err(ToolRefusal::NotInvoked { kind, call: call.id.clone() });
    }
    if call.execution != Some(source) {
        return Err(ToolRefusal::WrongSource { kind, call: call.id.clone() });
    }
    Ok(())
}
