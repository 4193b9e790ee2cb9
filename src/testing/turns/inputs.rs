//! What an input amounts to in a scripted turn, refused as the runtime refuses it.

use std::sync::Arc;

use crate::base::id::ToolCallId;
use crate::domain::agent::Execution;
use crate::domain::message::UserMessage;
use crate::domain::turn::event::{
    DecisionSource, InputAdded, PermissionResolved, ResultSource, ToolProgress, ToolResult,
    TurnCancelled, TurnFact,
};
use crate::domain::turn::state::{ToolCall, TurnState};
use crate::runtime::api::ExternalInput;
use crate::runtime::error::InputRefused;
use crate::testing::fact::call_failed;
use crate::testing::turns::script::denied;

/// What an input is recorded as.
pub(super) fn accepted(
    state: &TurnState,
    input: &ExternalInput,
) -> Result<Vec<TurnFact>, InputRefused> {
    if state.terminal.is_some() {
        return Err(InputRefused::Ended { turn: state.id.clone(), status: state.status() });
    }
    let fact = match input.clone() {
        ExternalInput::PermissionDecision { call, decision, metadata } => {
            let pending = find(state, &call)?.awaits_permission();
            let (source, reason) = (DecisionSource::Human, None);
            let tool_call_id = pending.then(|| call.clone());
            let tool_call_id = tool_call_id.ok_or(InputRefused::NoDecisionPending(call))?;
            TurnFact::PermissionResolved(PermissionResolved {
                tool_call_id,
                decision,
                source,
                reason,
                metadata,
            })
        }
        ExternalInput::AsyncToolProgress { call, progress } => {
            let (tool_call_id, _) = awaiting(state, &call)?;
            let source = Execution::Async;
            TurnFact::ToolProgress(ToolProgress { tool_call_id, source, progress })
        }
        ExternalInput::AsyncToolResult { call, result } => {
            let (tool_call_id, tool_name) = awaiting(state, &call)?;
            let source = ResultSource::Async;
            TurnFact::ToolResult(ToolResult { tool_call_id, tool_name, source, result })
        }
        ExternalInput::Cancel { reason } => return Ok(cancelled(state, reason)),
    };
    Ok(vec![fact])
}

fn find<'a>(state: &'a TurnState, call: &ToolCallId) -> Result<&'a ToolCall, InputRefused> {
    let unknown = || InputRefused::UnknownCall { turn: state.id.clone(), call: call.clone() };
    state.tool_calls.get(call).ok_or_else(unknown)
}

fn awaiting(state: &TurnState, call: &ToolCallId) -> Result<(ToolCallId, String), InputRefused> {
    let found = find(state, call)?;
    let pending = found.awaits_async_result().then(|| (call.clone(), found.name.clone()));
    pending.ok_or_else(|| InputRefused::NoResultPending(call.clone()))
}

/// The facts that messages make which are taken in.
pub(super) fn added(state: &TurnState, messages: Vec<Arc<UserMessage>>) -> Vec<TurnFact> {
    let numbered = (state.inputs.len() as u64 + 1..).zip(messages);
    let added = |(input_index, message)| TurnFact::InputAdded(InputAdded { input_index, message });
    numbered.map(added).collect()
}

/// The facts that end a turn; none if it has ended.
pub(super) fn cancelled(state: &TurnState, reason: Option<String>) -> Vec<TurnFact> {
    if state.terminal.is_some() {
        return Vec::new();
    }
    let open = state.open_call().map(|_| call_failed(state.next_call_index() - 1));
    let results = state.unresolved().map(denied);
    let end = TurnFact::Cancelled(TurnCancelled { reason, usage: state.usage });
    open.into_iter().chain(results).chain([end]).collect()
}
