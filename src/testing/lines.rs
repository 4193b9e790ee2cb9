//! A turn's log as short lines of text, so that a test compares whole sequences at a glance. A tool
//! call of the turn's own is written `#<number>`.

use std::fmt::Write as _;

use crate::base::id::ToolCallId;
use crate::domain::event::Fact as _;
use crate::domain::json::Json;
use crate::domain::message::AssistantMessage;
use crate::domain::turn::event::{
    ClassificationFailed, ModelCallCompleted, ModelCallRequested, ModelStep, PermissionResolved,
    ToolResult, TurnEvent, TurnFact, TurnFailed, TurnSuspended,
};
use crate::domain::turn::step::StepEvent;

/// The line of an event: its type, then what matters of it.
#[must_use]
pub fn line(event: &TurnEvent) -> String {
    let kind = event.fact.kind();
    match &event.fact {
        TurnFact::Created(_) => kind.to_owned(),
        TurnFact::ModelCallRequested(fact) => format!("{kind} {}", requested(fact)),
        TurnFact::ModelStep(fact) => format!("{kind} {}", stepped(fact)),
        TurnFact::ModelCallCompleted(fact) => format!("{kind} {}", completed(fact)),
        TurnFact::ModelCallFailed(fact) => {
            format!("{kind} {}: {}", fact.model_call_index, fact.error)
        }
        TurnFact::PermissionRequired(fact) => {
            let error = fact.checker_error.as_ref().map(|error| format!(" ({error})"));
            let call = short(&fact.tool_call_id);
            format!("{kind} {call} {}{}", fact.tool_name, error.unwrap_or_default())
        }
        TurnFact::PermissionClassified(fact) => {
            let decision = word(&fact.decision);
            format!("{kind} {} {decision}: {}", short(&fact.tool_call_id), fact.reason)
        }
        TurnFact::ClassificationFailed(fact) => format!("{kind} {}", unclassified(fact)),
        TurnFact::PermissionResolved(fact) => format!("{kind} {}", resolved(fact)),
        TurnFact::InvocationRequested(fact) => {
            let (call, execution) = (short(&fact.tool_call_id), word(&fact.execution));
            format!("{kind} {call} {} {execution} {}", fact.tool_name, fact.input.get())
        }
        TurnFact::ToolProgress(fact) => {
            let (call, source) = (short(&fact.tool_call_id), word(&fact.source));
            format!("{kind} {call} {source} {}", fact.progress.get())
        }
        TurnFact::ToolResult(fact) => format!("{kind} {}", result(fact)),
        TurnFact::ToolsExtended(fact) => {
            let names = fact.tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>();
            format!("{kind} {} {} [{}]", short(&fact.tool_call_id), fact.source, names.join(" "))
        }
        TurnFact::InputAdded(fact) => {
            format!("{kind} {} {:?}", fact.input_index, fact.message.plain_text())
        }
        TurnFact::Suspended(fact) => format!("{kind} {}", suspended(fact)),
        TurnFact::Completed(fact) => {
            format!("{kind} {:?} {}", fact.output.plain_text(), fact.finish_reason)
        }
        TurnFact::Failed(TurnFailed { error, code, .. }) => {
            let code = code.as_ref().map(|code| format!(" {code}"));
            format!("{kind}{}: {error}", code.unwrap_or_default())
        }
        TurnFact::Cancelled(fact) => {
            let reason = fact.reason.as_ref().map(|reason| format!(": {reason}"));
            format!("{kind}{}", reason.unwrap_or_default())
        }
    }
}

/// A call's number if the id is of ours, else the id.
fn short(call: &ToolCallId) -> String {
    match call.as_str().rsplit_once('_') {
        Some((_, number)) => format!("#{number}"),
        None => call.to_string(),
    }
}

fn list<'a>(calls: impl Iterator<Item = &'a ToolCallId>) -> String {
    format!("[{}]", calls.map(short).collect::<Vec<_>>().join(" "))
}

/// The word that stands for a value in JSON.
fn word<T: serde::Serialize>(value: &T) -> String {
    Json::of(value).to_model_text()
}

fn requested(fact: &ModelCallRequested) -> String {
    let refs = fact.request.messages.iter().map(|reference| {
        let text = reference.to_string();
        match text.split_once(':') {
            Some(("toolResult", id)) => format!("toolResult:{}", short(&ToolCallId::from(id))),
            _ => text,
        }
    });
    let refs = refs.collect::<Vec<_>>().join(" ");
    let context = fact.request.context_ref.as_ref().map(|_| " after the previous turn");
    format!("{} [{refs}]{}", fact.model_call_index, context.unwrap_or_default())
}

fn stepped(fact: &ModelStep) -> String {
    let step = match &fact.event {
        StepEvent::TextStart => "text_start".to_owned(),
        StepEvent::TextEnd { text } => format!("text_end {text:?}"),
        StepEvent::ReasoningStart => "reasoning_start".to_owned(),
        StepEvent::ReasoningEnd { text } => format!("reasoning_end {text:?}"),
        StepEvent::ToolCall { tool_call } => {
            format!("tool_call {} {}", short(&tool_call.tool_call_id), tool_call.tool_name)
        }
        StepEvent::FinishStep(finish) => format!("finish_step {}", finish.finish_reason),
        StepEvent::ProviderError { error } => format!("provider_error {error}"),
    };
    format!("{} {step}", fact.model_call_index)
}

fn completed(fact: &ModelCallCompleted) -> String {
    let message: &AssistantMessage = &fact.message;
    let mut line = format!("{} {:?}", fact.model_call_index, message.plain_text());
    for call in message.tool_calls() {
        write!(line, " {} {}", short(&call.tool_call_id), call.tool_name).ok();
    }
    line
}

fn unclassified(fact: &ClassificationFailed) -> String {
    format!("{}: {}", list(fact.tool_call_ids.iter()), fact.error)
}

fn resolved(fact: &PermissionResolved) -> String {
    let (decision, source) = (word(&fact.decision), word(&fact.source));
    let reason = fact.reason.as_ref().map(|reason| format!(": {reason}"));
    format!("{} {decision} by {source}{}", short(&fact.tool_call_id), reason.unwrap_or_default())
}

fn result(fact: &ToolResult) -> String {
    let error = if fact.result.is_error { " error" } else { "" };
    let (call, source) = (short(&fact.tool_call_id), word(&fact.source));
    format!("{call} {source}{error} {}", fact.result.output.get())
}

fn suspended(fact: &TurnSuspended) -> String {
    let permissions = list(fact.pending_permissions.iter().map(|it| &it.tool_call_id));
    let asynchronous = list(fact.pending_async_tools.iter().map(|it| &it.tool_call_id));
    format!("permissions {permissions} async {asynchronous}")
}
