//! What an input from outside amounts to, given what the turn waits for
//! (`design/turn-runtime.md` section 10).

use serde::Deserialize;

use crate::base::id::ToolCallId;
use crate::domain::agent::Execution;
use crate::domain::json::Json;
use crate::domain::question::ASK_HUMAN;
use crate::domain::turn::event::{
    DecisionSource, PermissionResolved, ResultSource, ToolProgress, ToolResult, ToolResultData,
    TurnFact,
};
use crate::domain::turn::state::{ToolCall, TurnState};
use crate::runtime::api::ExternalInput;
use crate::runtime::commit::Facts;
use crate::runtime::error::InputRefused;
use crate::runtime::progress::REPORT_BYTES_MAX;
use crate::tools::output::{self, METADATA_BYTES_MAX};

/// How long a person's answers to the questions of one call may be: what a model still takes in
/// beside all else, and far more than anybody types; the rest is pasted, and fits into a file.
const ANSWER_BYTES_MAX: usize = 256 * 1024;

/// The fact that an input makes; none for the end, which is not one fact. A program's result is cut
/// to what a model gets of a tool, like every other; a person's answer never is.
pub(super) fn facts(state: &TurnState, input: &ExternalInput, output_bytes_max: usize) -> Facts {
    if state.terminal.is_some() {
        return Err(InputRefused::Ended { turn: state.id.clone(), status: state.status() });
    }
    let fact = match input {
        ExternalInput::PermissionDecision { call, decision, metadata } => {
            if !find(state, call)?.awaits_permission() {
                return Err(InputRefused::NoDecisionPending(call.clone()));
            }
            let metadata = metadata.as_ref().map(|it| fit(call, it, METADATA_BYTES_MAX));
            let metadata = metadata.transpose()?;
            TurnFact::PermissionResolved(PermissionResolved {
                tool_call_id: call.clone(),
                decision: *decision,
                source: DecisionSource::Human,
                reason: metadata.as_ref().and_then(reason_in),
                metadata,
            })
        }
        ExternalInput::AsyncToolProgress { call, progress } => {
            awaiting(state, call)?;
            TurnFact::ToolProgress(ToolProgress {
                tool_call_id: call.clone(),
                source: Execution::Async,
                progress: fit(call, progress, REPORT_BYTES_MAX)?,
            })
        }
        ExternalInput::AsyncToolResult { call, result } => {
            let tool = awaiting(state, call)?;
            TurnFact::ToolResult(ToolResult {
                tool_call_id: call.clone(),
                tool_name: tool.name.clone(),
                source: ResultSource::Async,
                result: if tool.name == ASK_HUMAN {
                    whole(call, result)?
                } else {
                    output::fit(result.clone(), output_bytes_max)
                },
            })
        }
        ExternalInput::Cancel { .. } => return Ok(Vec::new()),
    };
    Ok(vec![fact])
}

fn find<'a>(state: &'a TurnState, call: &ToolCallId) -> Result<&'a ToolCall, InputRefused> {
    let unknown = || InputRefused::UnknownCall { turn: state.id.clone(), call: call.clone() };
    state.tool_calls.get(call).ok_or_else(unknown)
}

/// The call, which waits for the result of an async tool.
fn awaiting<'a>(state: &'a TurnState, call: &ToolCallId) -> Result<&'a ToolCall, InputRefused> {
    let tool = Some(find(state, call)?).filter(|tool| tool.awaits_async_result());
    tool.ok_or_else(|| InputRefused::NoResultPending(call.clone()))
}

/// A person's answer as it may be recorded, every word of it.
fn whole(call: &ToolCallId, answer: &ToolResultData) -> Result<ToolResultData, InputRefused> {
    let metadata = answer.metadata.as_ref().map(|it| fit(call, it, METADATA_BYTES_MAX));
    Ok(ToolResultData {
        output: fit(call, &answer.output, ANSWER_BYTES_MAX)?,
        is_error: answer.is_error,
        metadata: metadata.transpose()?,
    })
}

/// The value as it may be recorded. What does not fit is refused rather than cut: whoever gave it
/// would think that all of it is there.
fn fit(call: &ToolCallId, json: &Json, bytes_max: usize) -> Result<Json, InputRefused> {
    let unfit = |why: String| InputRefused::Unfit { call: call.clone(), why };
    let sound = output::sound(json).map_err(|error| unfit(error.to_string()))?;
    let bytes = sound.get().len();
    if bytes > bytes_max {
        return Err(unfit(format!("it has {bytes} bytes, and {bytes_max} fit")));
    }
    Ok(sound)
}

/// The person's words in the metadata of a decision.
fn reason_in(metadata: &Json) -> Option<String> {
    #[derive(Deserialize)]
    struct Known {
        reason: Option<String>,
    }
    metadata.read::<Known>().ok()?.reason
}
