//! What an advance finds that a crash left behind, and how a turn is ended from outside: the open
//! ends are closed in the log, nothing is run (`design/turn-runtime.md` sections 11 and 12).

use crate::domain::agent::Execution;
use crate::domain::json::Json;
use crate::domain::tool::{Cut, ResultMetadata};
use crate::domain::turn::event::{
    ModelCallFailed, ModelStep, ResultSource, ToolResult, ToolResultData, TurnCancelled, TurnFact,
};
use crate::domain::turn::live::OpenCall;
use crate::domain::turn::state::{ToolCall, TurnState};
use crate::domain::turn::step::StepEvent;
use crate::tools::output;

/// The facts that close what was interrupted: a model call without its settlement, with what is
/// left of its answer, and tools that ran. The call is made again by the loop, the tools are not:
/// what they did is unknown.
pub(super) fn close_interrupted(state: &TurnState, left: Option<OpenCall>) -> Vec<TurnFact> {
    let error = "interrupted: the program ended while the model answered";
    let call = open_call_failed(state, left, error);
    let interrupted = state
        .unresolved()
        .filter(|call| call.invocation.is_some() && call.execution == Some(Execution::Sync));
    let results = interrupted.map(|call| {
        cut_off(
            call,
            Cut::Interrupted,
            "Interrupted: the program ended while this call ran. Its outcome is unknown, and it was \
             not repeated. Find out how things stand before you call it again.",
        )
    });
    call.into_iter().chain(results).collect()
}

/// The facts that end a turn, whatever it was doing; `left` is what a crash left of its answer.
pub(super) fn cancel(
    state: &TurnState,
    left: Option<OpenCall>,
    reason: Option<String>,
) -> Vec<TurnFact> {
    if state.terminal.is_some() {
        return Vec::new();
    }
    let call = open_call_failed(state, left, "cancelled");
    let results = state.unresolved().map(|call| {
        let text = "The call was cancelled: the turn was stopped before it had a result.";
        cut_off(call, Cut::Stopped, text)
    });
    let end = TurnFact::Cancelled(TurnCancelled { reason, usage: state.usage });
    call.into_iter().chain(results).chain([end]).collect()
}

/// The facts that settle the open call: the blocks of its answer that are not in the log, and its
/// failure.
fn open_call_failed(state: &TurnState, left: Option<OpenCall>, error: &str) -> Vec<TurnFact> {
    let Some(open) = state.open_call() else { return Vec::new() };
    let model_call_index = state.next_call_index() - 1;
    let recorded = open
        .steps
        .iter()
        .filter(|step| matches!(step, StepEvent::TextEnd { .. } | StepEvent::ReasoningEnd { .. }));
    let recorded = recorded.count();
    let blocks = left.into_iter().flat_map(|left| left.blocks);
    let missing = blocks.filter(|left| usize::try_from(left.block).is_ok_and(|it| it >= recorded));
    let step = |event| TurnFact::ModelStep(ModelStep { model_call_index, event });
    let failed = ModelCallFailed { model_call_index, error: error.to_owned() };
    let steps = missing.flat_map(|left| StepEvent::of_block(left.kind, left.text)).map(step);
    steps.chain([TurnFact::ModelCallFailed(failed)]).collect()
}

/// The result of a call that was ended before it had one of its own.
fn cut_off(call: &ToolCall, by: Cut, text: &str) -> TurnFact {
    let metadata = Some(ResultMetadata::cut(by).to_json());
    let output = Json::text(text);
    runtime_result(call, ToolResultData { output, is_error: true, metadata })
}

/// An error result of the loop's own.
pub(super) fn runtime_error(call: &ToolCall, text: &str) -> TurnFact {
    let output = Json::text(text);
    runtime_result(call, ToolResultData { output, is_error: true, metadata: None })
}

/// A result of the loop's own, in a size that a model can use.
pub(super) fn runtime_result(call: &ToolCall, result: ToolResultData) -> TurnFact {
    TurnFact::ToolResult(ToolResult {
        tool_call_id: call.id.clone(),
        tool_name: call.name.clone(),
        source: ResultSource::Runtime,
        result: output::fit(result, output::OUTPUT_BYTES),
    })
}
