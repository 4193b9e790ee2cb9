//! Facts of turns in as few words as a test needs. A tool call is written `id:name`
//! (`"c1:read-file"`), several with spaces between; the tools are those of [`tools`].

use std::sync::Arc;

use crate::base::id::{SessionId, ToolCallId, TurnId};
use crate::domain::agent::{
    AgentSnapshot, Execution, ModelDescriptor, RequestedAgent, ResolvedAgent, ToolDescriptor,
    TurnAgent,
};
use crate::domain::json::Json;
use crate::domain::message::{
    AssistantMessage, AssistantPart, Content, Message, ToolCallPart, UserMessage,
};
use crate::domain::turn::event::{
    Classification, ClassificationFailed, ContextRef, Decision, DecisionSource, InputAdded,
    InvocationRequested, ModelCallCompleted, ModelCallFailed, ModelCallRequested, ModelRequest,
    ModelStep, PendingAsyncTool, PendingPermission, PermissionClassified, PermissionRequired,
    PermissionResolved, ResultSource, TURN_SCHEMA_VERSION, ToolProgress, ToolResult,
    ToolResultData, ToolsExtended, TurnCancelled, TurnCompleted, TurnConfig, TurnContext,
    TurnCreated, TurnFact, TurnFailed, TurnSuspended,
};
use crate::domain::turn::step::StepEvent;
use crate::domain::usage::TurnUsage;
use crate::testing::log::{PREVIOUS_TURN, SESSION};

/// Two tools that the loop runs and two that somebody outside answers.
#[must_use]
pub fn tools() -> Vec<ToolDescriptor> {
    vec![
        tool("read-file", Execution::Sync),
        tool("write-file", Execution::Sync),
        tool("ask-human", Execution::Async),
        tool("deploy", Execution::Async),
    ]
}

/// A tool with this name.
#[must_use]
pub fn tool(name: &str, execution: Execution) -> ToolDescriptor {
    ToolDescriptor {
        tool_id: name.replace('-', "_"),
        name: name.to_owned(),
        description: format!("Does {name}."),
        input_schema: json(r#"{"type":"object"}"#),
        execution,
        requires_human: name == "ask-human",
    }
}

/// JSON that a test writes down.
///
/// # Panics
/// When it is none.
#[must_use]
pub fn json(text: &str) -> Json {
    Json::parse(text).expect("the test's JSON is JSON")
}

/// The model that test turns run on.
#[must_use]
pub fn model() -> ModelDescriptor {
    ModelDescriptor { provider: "lab".into(), model: "tiny-1".into() }
}

/// The usage that every answer here reports.
#[must_use]
pub fn usage() -> TurnUsage {
    TurnUsage { input_tokens: Some(10), output_tokens: Some(3), ..TurnUsage::default() }
}

/// A turn of [`SESSION`] with the tools of [`tools`], nothing said before, and five calls.
#[must_use]
pub fn turn() -> TurnCreated {
    TurnCreated {
        schema_version: TURN_SCHEMA_VERSION,
        session_id: Some(SessionId::from(SESSION)),
        agent: TurnAgent {
            requested: RequestedAgent::by_id("assistant"),
            resolved: AgentSnapshot::Full(ResolvedAgent {
                agent_id: "assistant".into(),
                system_prompt: "Be brief.".into(),
                model: model(),
                tools: tools().into(),
            }),
        },
        context: TurnContext::Inline(Vec::new()),
        input: Arc::new(UserMessage::text("Look at the watcher.")),
        config: TurnConfig {
            auto_permission: false,
            human_available: true,
            max_model_calls: 5,
            reasoning_effort: None,
        },
        analytics: None,
    }
}

/// `turn_created` for [`turn`].
#[must_use]
pub fn created() -> TurnFact {
    TurnFact::Created(Arc::new(turn()))
}

/// `turn_created` for [`turn`] with this said before.
#[must_use]
pub fn created_after(context: TurnContext) -> TurnFact {
    TurnFact::Created(Arc::new(TurnCreated { context, ..turn() }))
}

/// A context that is a reference to [`PREVIOUS_TURN`].
#[must_use]
pub fn previous() -> TurnContext {
    TurnContext::Previous(ContextRef { previous_turn_id: TurnId::from(PREVIOUS_TURN) })
}

/// A context of one question and its answer.
#[must_use]
pub fn inline() -> TurnContext {
    TurnContext::Inline(vec![
        Message::User(Arc::new(UserMessage::text("Before?"))),
        Message::Assistant(Arc::new(AssistantMessage::text("Before."))),
    ])
}

/// `model_call_requested` with these references, and the context's on call 0 if `context` has one.
///
/// # Panics
/// When a reference is malformed.
#[must_use]
pub fn request_in(context: &TurnContext, index: u64, refs: &str) -> TurnFact {
    let context_ref = match context {
        TurnContext::Previous(reference) if index == 0 => Some(reference.clone()),
        TurnContext::Previous(_) | TurnContext::Inline(_) => None,
    };
    let messages = refs.split_whitespace().map(|text| text.parse().expect("a reference"));
    TurnFact::ModelCallRequested(ModelCallRequested {
        model_call_index: index,
        request: ModelRequest { context_ref, messages: messages.collect(), parameters: json("{}") },
    })
}

/// `model_call_requested` in a turn without a reference to another.
#[must_use]
pub fn request(index: u64, refs: &str) -> TurnFact {
    request_in(&TurnContext::Inline(Vec::new()), index, refs)
}

/// `model_step_event`: a text began.
#[must_use]
pub fn step(index: u64) -> TurnFact {
    TurnFact::ModelStep(ModelStep { model_call_index: index, event: StepEvent::TextStart })
}

/// `model_call_completed` with a text.
#[must_use]
pub fn answer(index: u64, text: &str) -> TurnFact {
    completed(index, AssistantMessage::text(text), "stop")
}

/// `model_call_completed` with these tool calls.
#[must_use]
pub fn calls(index: u64, calls: &str) -> TurnFact {
    let parts = calls.split_whitespace().map(|call| {
        let (tool_call_id, tool_name) = named(call);
        AssistantPart::ToolCall(ToolCallPart {
            tool_call_id,
            tool_name,
            arguments: json(r#"{"path":"a"}"#),
            provider_options: None,
        })
    });
    let content = Content::Parts(parts.collect());
    completed(index, AssistantMessage { content, provider_options: None }, "tool-calls")
}

/// `model_call_completed` with this message.
#[must_use]
pub fn completed(index: u64, message: AssistantMessage, finish_reason: &str) -> TurnFact {
    TurnFact::ModelCallCompleted(ModelCallCompleted {
        model_call_index: index,
        message: Arc::new(message),
        finish_reason: finish_reason.to_owned(),
        usage: usage(),
        provider_metadata: None,
    })
}

/// `model_call_failed`.
#[must_use]
pub fn call_failed(index: u64) -> TurnFact {
    TurnFact::ModelCallFailed(ModelCallFailed { model_call_index: index, error: "reset".into() })
}

/// `tool_permission_required` for `id:name`.
#[must_use]
pub fn ask(call: &str) -> TurnFact {
    let (tool_call_id, tool_name) = named(call);
    let request = json(r#"{"rule":"ask"}"#);
    TurnFact::PermissionRequired(PermissionRequired {
        tool_call_id,
        tool_name,
        request,
        checker_error: None,
    })
}

/// `tool_permission_classified` for an id.
#[must_use]
pub fn classify(id: &str, decision: Classification) -> TurnFact {
    let reason = "looks harmless".to_owned();
    TurnFact::PermissionClassified(PermissionClassified {
        tool_call_id: ToolCallId::from(id),
        decision,
        reason,
    })
}

/// `tool_permission_classification_failed` for several ids.
#[must_use]
pub fn unclassified(ids: &str) -> TurnFact {
    TurnFact::ClassificationFailed(ClassificationFailed {
        tool_call_ids: ids.split_whitespace().map(ToolCallId::from).collect(),
        error: "no classifier".into(),
    })
}

/// `tool_permission_resolved` by a person, for an id.
#[must_use]
pub fn decide(id: &str, decision: Decision) -> TurnFact {
    TurnFact::PermissionResolved(PermissionResolved {
        tool_call_id: ToolCallId::from(id),
        decision,
        source: DecisionSource::Human,
        reason: None,
        metadata: None,
    })
}

/// `tool_invocation_requested` for `id:name`.
#[must_use]
pub fn invoke(call: &str) -> TurnFact {
    let (tool_call_id, tool_name) = named(call);
    TurnFact::InvocationRequested(InvocationRequested {
        tool_call_id,
        tool_id: tool_name.replace('-', "_"),
        execution: execution_of(&tool_name),
        tool_name,
        input: json(r#"{"path":"a"}"#),
    })
}

/// `tool_progress` for `id:name`.
#[must_use]
pub fn progress(call: &str) -> TurnFact {
    let (tool_call_id, tool_name) = named(call);
    TurnFact::ToolProgress(ToolProgress {
        tool_call_id,
        source: execution_of(&tool_name),
        progress: json("0.50"),
    })
}

/// `tool_result` for `id:name`, as its tool gives it.
#[must_use]
pub fn result(call: &str) -> TurnFact {
    let source = match execution_of(&named(call).1) {
        Execution::Sync => ResultSource::Sync,
        Execution::Async => ResultSource::Async,
    };
    result_from(call, source)
}

/// `tool_result` for `id:name` from this source; an error if it is the loop's own.
#[must_use]
pub fn result_from(call: &str, source: ResultSource) -> TurnFact {
    let (tool_call_id, tool_name) = named(call);
    let is_error = source == ResultSource::Runtime;
    let result = ToolResultData { output: Json::text("done"), is_error, metadata: None };
    TurnFact::ToolResult(ToolResult { tool_call_id, tool_name, source, result })
}

/// `tools_extended` by the call with this id, with sync tools of these names.
#[must_use]
pub fn extend(id: &str, names: &str) -> TurnFact {
    TurnFact::ToolsExtended(ToolsExtended {
        tool_call_id: ToolCallId::from(id),
        source: "skill".into(),
        tools: names.split_whitespace().map(|name| tool(name, Execution::Sync)).collect(),
    })
}

/// `input_added`.
#[must_use]
pub fn input(index: u64, text: &str) -> TurnFact {
    let message = Arc::new(UserMessage::text(text));
    TurnFact::InputAdded(InputAdded { input_index: index, message })
}

/// `turn_suspended` with these outstanding permissions and async tools, each `id:name`.
#[must_use]
pub fn suspend(permissions: &str, async_tools: &str) -> TurnFact {
    let permission = |call| {
        let (tool_call_id, tool_name) = named(call);
        PendingPermission { tool_call_id, tool_name, request: json(r#"{"rule":"ask"}"#) }
    };
    let async_tool = |call| {
        let (tool_call_id, tool_name) = named(call);
        let tool_id = tool_name.replace('-', "_");
        PendingAsyncTool { tool_call_id, tool_id, tool_name, input: json(r#"{"path":"a"}"#) }
    };
    TurnFact::Suspended(Arc::new(TurnSuspended {
        pending_permissions: permissions.split_whitespace().map(permission).collect(),
        pending_async_tools: async_tools.split_whitespace().map(async_tool).collect(),
        usage: usage(),
    }))
}

/// `turn_completed`.
#[must_use]
pub fn complete() -> TurnFact {
    complete_with("Done.")
}

/// `turn_completed` with this answer.
#[must_use]
pub fn complete_with(text: &str) -> TurnFact {
    TurnFact::Completed(TurnCompleted {
        output: Arc::new(AssistantMessage::text(text)),
        finish_reason: "stop".into(),
        usage: usage(),
    })
}

/// `turn_failed`.
#[must_use]
pub fn fail() -> TurnFact {
    TurnFact::Failed(TurnFailed { error: "no more".into(), code: None, usage: usage() })
}

/// `turn_cancelled`.
#[must_use]
pub fn cancel() -> TurnFact {
    TurnFact::Cancelled(TurnCancelled { reason: None, usage: usage() })
}

fn named(call: &str) -> (ToolCallId, String) {
    let (id, name) = call.split_once(':').expect("a call is written id:name");
    (ToolCallId::from(id), name.to_owned())
}

fn execution_of(name: &str) -> Execution {
    let known = tools().into_iter().find(|tool| tool.name == name);
    known.map_or(Execution::Sync, |tool| tool.execution)
}
