//! What happens between and after the work: added inputs, suspension, the end.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::base::clock::Timestamp;
use crate::base::id::ToolCallId;
use crate::domain::turn::event::{
    InputAdded, TurnCancelled, TurnCompleted, TurnFailed, TurnSuspended,
};
use crate::domain::turn::refusal::{LifeRefusal, TurnRefusal};
use crate::domain::turn::state::{AddedInput, Terminal, TerminalKind, TurnState};

pub(super) fn input_added(
    state: &mut TurnState,
    fact: &InputAdded,
    at: Timestamp,
) -> Result<(), TurnRefusal> {
    check_settled(state, "input_added")?;
    let expected = state.inputs.len() as u64 + 1;
    if fact.input_index != expected {
        return Err(LifeRefusal::InputIndex { expected, found: fact.input_index }.into());
    }
    let first_call = state.next_call_index();
    state.inputs.push(AddedInput { message: Arc::clone(&fact.message), first_call, at });
    Ok(())
}

pub(super) fn suspended(
    state: &mut TurnState,
    fact: &Arc<TurnSuspended>,
) -> Result<(), TurnRefusal> {
    check_no_open_call(state, "turn_suspended")?;
    let permissions: Vec<_> = state.outstanding_permissions().map(|call| &call.id).collect();
    let asynchronous: Vec<_> = state.outstanding_async().map(|call| &call.id).collect();
    if permissions.is_empty() && asynchronous.is_empty() {
        return Err(LifeRefusal::NothingOutstanding.into());
    }
    let claimed = fact.pending_permissions.iter().map(|pending| &pending.tool_call_id);
    if !same_calls(&permissions, claimed.collect()) {
        return Err(LifeRefusal::PermissionsDiffer.into());
    }
    let claimed = fact.pending_async_tools.iter().map(|pending| &pending.tool_call_id);
    if !same_calls(&asynchronous, claimed.collect()) {
        return Err(LifeRefusal::AsyncToolsDiffer.into());
    }
    state.suspension = Some(Arc::clone(fact));
    Ok(())
}

/// Whether both name the same calls, each once, in any order.
fn same_calls(due: &[&ToolCallId], claimed: Vec<&ToolCallId>) -> bool {
    due.len() == claimed.len()
        && due.iter().copied().collect::<BTreeSet<_>>() == claimed.into_iter().collect()
}

pub(super) fn completed(
    state: &mut TurnState,
    fact: &TurnCompleted,
    at: Timestamp,
) -> Result<(), TurnRefusal> {
    check_settled(state, "turn_completed")?;
    let response = state.model_calls.last().and_then(|call| call.response());
    match response {
        None => return Err(LifeRefusal::NoResponse.into()),
        Some(response) if response.tool_calls().next().is_some() => {
            return Err(LifeRefusal::ResponseHasCalls.into());
        }
        Some(_) => {}
    }
    state.terminal = Some(Terminal { kind: TerminalKind::Completed(fact.clone()), at });
    Ok(())
}

pub(super) fn failed(
    state: &mut TurnState,
    fact: &TurnFailed,
    at: Timestamp,
) -> Result<(), TurnRefusal> {
    check_settled(state, "turn_failed")?;
    state.terminal = Some(Terminal { kind: TerminalKind::Failed(fact.clone()), at });
    Ok(())
}

pub(super) fn cancelled(
    state: &mut TurnState,
    fact: &TurnCancelled,
    at: Timestamp,
) -> Result<(), TurnRefusal> {
    check_settled(state, "turn_cancelled")?;
    state.terminal = Some(Terminal { kind: TerminalKind::Cancelled(fact.clone()), at });
    Ok(())
}

fn check_settled(state: &TurnState, kind: &'static str) -> Result<(), LifeRefusal> {
    check_no_open_call(state, kind)?;
    check_tools_resolved(state, kind)
}

fn check_no_open_call(state: &TurnState, kind: &'static str) -> Result<(), LifeRefusal> {
    match state.open_call() {
        Some(_) => Err(LifeRefusal::CallOpen(kind)),
        None => Ok(()),
    }
}

pub(super) fn check_tools_resolved(
    state: &TurnState,
    kind: &'static str,
) -> Result<(), LifeRefusal> {
    match state.unresolved().next() {
        Some(call) => Err(LifeRefusal::ToolOpen { kind, call: call.id.clone() }),
        None => Ok(()),
    }
}
