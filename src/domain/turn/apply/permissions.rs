//! Permissions: required, classified, resolved.

use crate::base::clock::Timestamp;
use crate::base::id::ToolCallId;
use crate::domain::turn::event::{
    ClassificationFailed, PermissionClassified, PermissionRequired, PermissionResolved,
};
use crate::domain::turn::refusal::{PermissionRefusal, TurnRefusal};
use crate::domain::turn::state::{Permission, Resolution, ToolCall, TurnState};

pub(super) fn required(
    state: &mut TurnState,
    fact: &PermissionRequired,
    at: Timestamp,
) -> Result<(), TurnRefusal> {
    const KIND: &str = "tool_permission_required";
    let call = find(state, &fact.tool_call_id, KIND)?;
    if call.result.is_some() {
        let call = call.id.clone();
        return Err(PermissionRefusal::AfterResult { kind: KIND, call }.into());
    }
    if call.invocation.is_some() {
        return Err(PermissionRefusal::RequiredAfterInvocation(call.id.clone()).into());
    }
    if call.permission.is_some() {
        return Err(PermissionRefusal::RequiredTwice(call.id.clone()).into());
    }
    call.permission = Some(Permission {
        request: fact.request.clone(),
        checker_error: fact.checker_error.clone(),
        required_at: at,
        classified: None,
        classification_failed: None,
        resolved: None,
    });
    Ok(())
}

pub(super) fn classified(
    state: &mut TurnState,
    fact: &PermissionClassified,
) -> Result<(), TurnRefusal> {
    let permission = undecided(state, &fact.tool_call_id, "tool_permission_classified")?;
    if permission.classified.is_some() {
        return Err(PermissionRefusal::ClassifiedTwice(fact.tool_call_id.clone()).into());
    }
    permission.classified = Some((fact.decision, fact.reason.clone()));
    Ok(())
}

pub(super) fn not_classified(
    state: &mut TurnState,
    fact: &ClassificationFailed,
) -> Result<(), TurnRefusal> {
    const KIND: &str = "tool_permission_classification_failed";
    for id in &fact.tool_call_ids {
        undecided(state, id, KIND)?;
    }
    for id in &fact.tool_call_ids {
        undecided(state, id, KIND)?.classification_failed = Some(fact.error.clone());
    }
    Ok(())
}

pub(super) fn resolved(
    state: &mut TurnState,
    fact: &PermissionResolved,
    at: Timestamp,
) -> Result<(), TurnRefusal> {
    const KIND: &str = "tool_permission_resolved";
    let has_result = find(state, &fact.tool_call_id, KIND)?.result.is_some();
    let permission = undecided(state, &fact.tool_call_id, KIND)?;
    if has_result {
        let call = fact.tool_call_id.clone();
        return Err(PermissionRefusal::AfterResult { kind: KIND, call }.into());
    }
    permission.resolved = Some(Resolution {
        decision: fact.decision,
        source: fact.source,
        reason: fact.reason.clone(),
        metadata: fact.metadata.clone(),
        at,
    });
    Ok(())
}

fn find<'a>(
    state: &'a mut TurnState,
    id: &ToolCallId,
    kind: &'static str,
) -> Result<&'a mut ToolCall, PermissionRefusal> {
    let unknown = || PermissionRefusal::UnknownCall { kind, call: id.clone() };
    state.tool_calls.get_mut(id).ok_or_else(unknown)
}

/// The permission of a call that was asked about and not decided on.
fn undecided<'a>(
    state: &'a mut TurnState,
    id: &ToolCallId,
    kind: &'static str,
) -> Result<&'a mut Permission, PermissionRefusal> {
    let permission = find(state, id, kind)?.permission.as_mut();
    match permission {
        None => Err(PermissionRefusal::NotRequired { kind, call: id.clone() }),
        Some(permission) if permission.resolved.is_some() => {
            Err(PermissionRefusal::AfterResolution { kind, call: id.clone() })
        }
        Some(permission) => Ok(permission),
    }
}
