//! What an advance of a scripted turn does, step by step.

use std::sync::Arc;

use crate::base::id::ToolCallId;
use crate::domain::agent::Execution;
use crate::domain::json::Json;
use crate::domain::message::{AssistantMessage, AssistantPart, Content, ToolCallPart};
use crate::domain::turn::event::{
    InvocationRequested, PendingAsyncTool, PendingPermission, ResultSource, TurnContext, TurnFact,
    TurnFailed, TurnSuspended,
};
use crate::domain::turn::state::{ToolCall, TurnState};
use crate::testing::fact::{
    answer, ask, call_failed, complete_with, completed, json, request_in, result, result_from,
    tools, usage,
};
use crate::testing::gate::Gate;

/// The steps of one advance. A tool call is written `id:name`, several with spaces between; the
/// tools are those of [`tools`](crate::testing::fact::tools).
#[derive(Clone, Debug, Default)]
pub struct Script(pub(super) Vec<Step>);

/// One step.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// The model answers, and calls these tools with these arguments.
    Calls(Vec<(ToolCallId, String, Json)>),
    /// A permission is required.
    Ask(String),
    /// An async tool is exposed.
    Expose(ToolCallId),
    /// A tool of the loop's own runs, from here to its result.
    Run(ToolCallId),
    Result(ToolCallId),
    /// A call gets a result of the loop's own, without having run.
    Deny(ToolCallId),
    DenyUnresolved,
    Suspend,
    Answer(String),
    Fail(Option<String>),
    /// Messages that wait are taken in.
    TakeInputs,
    /// Stops until the gate is open or the turn is stopped.
    Gate(Gate),
    /// Stops until the gate is open, whoever stops the turn.
    Hold(Gate),
    /// Trouble of the program's own.
    Break,
}

impl Script {
    /// An advance that does nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The model calls these tools. Of a question it asks `Which?`.
    #[must_use]
    pub fn calls(self, calls: &str) -> Self {
        let calls = calls.split_whitespace().map(|call| {
            let (id, name) = named(call);
            let arguments = match name.as_str() {
                "ask-human" => r#"{"questions":[{"id":"which","text":"Which?"}]}"#,
                _ => r#"{"path":"a"}"#,
            };
            (id, name, json(arguments))
        });
        let calls = calls.collect();
        self.then(Step::Calls(calls))
    }

    /// The model calls one tool with these arguments.
    #[must_use]
    pub fn calls_with(self, call: &str, arguments: &str) -> Self {
        let (id, name) = named(call);
        self.then(Step::Calls(vec![(id, name, json(arguments))]))
    }

    /// A person has to decide on this call.
    #[must_use]
    pub fn ask(self, call: &str) -> Self {
        self.then(Step::Ask(call.to_owned()))
    }

    /// Somebody outside has to answer the call with this id.
    #[must_use]
    pub fn expose(self, id: &str) -> Self {
        self.then(Step::Expose(ToolCallId::from(id)))
    }

    /// The call with this id begins to run.
    #[must_use]
    pub fn run(self, id: &str) -> Self {
        self.then(Step::Run(ToolCallId::from(id)))
    }

    /// It has run.
    #[must_use]
    pub fn result(self, id: &str) -> Self {
        self.then(Step::Result(ToolCallId::from(id)))
    }

    /// The call with this id is not run.
    #[must_use]
    pub fn deny(self, id: &str) -> Self {
        self.then(Step::Deny(ToolCallId::from(id)))
    }

    /// No call that has no result yet is run.
    #[must_use]
    pub fn deny_unresolved(self) -> Self {
        self.then(Step::DenyUnresolved)
    }

    /// The advance rests on what is outstanding.
    #[must_use]
    pub fn suspend(self) -> Self {
        self.then(Step::Suspend)
    }

    /// The model answers, and the turn ends.
    #[must_use]
    pub fn answer(self, text: &str) -> Self {
        self.then(Step::Answer(text.to_owned()))
    }

    /// The model fails, and the turn with it.
    #[must_use]
    pub fn fail(self) -> Self {
        self.then(Step::Fail(None))
    }

    /// The turn fails with this code.
    #[must_use]
    pub fn fail_with(self, code: &str) -> Self {
        self.then(Step::Fail(Some(code.to_owned())))
    }

    /// Takes in the messages that wait, as before a model call.
    #[must_use]
    pub fn boundary(self) -> Self {
        self.then(Step::TakeInputs)
    }

    /// Stops here until the gate is open, or the turn is stopped.
    #[must_use]
    pub fn gate(self, gate: &Gate) -> Self {
        self.then(Step::Gate(gate.clone()))
    }

    /// Stops here until the gate is open, whoever stops the turn: what a stop has to wait for.
    #[must_use]
    pub fn hold(self, gate: &Gate) -> Self {
        self.then(Step::Hold(gate.clone()))
    }

    /// The advance ends by trouble of the program's own.
    #[must_use]
    pub fn break_down(self) -> Self {
        self.then(Step::Break)
    }

    /// These steps, and then those.
    #[must_use]
    pub fn and(mut self, more: Self) -> Self {
        self.0.extend(more.0);
        self
    }

    fn then(mut self, step: Step) -> Self {
        self.0.push(step);
        self
    }
}

/// An answer with this text.
#[must_use]
pub fn answering(text: &str) -> Script {
    Script::new().answer(text)
}

/// An answer that asks for a permission for the call `c1`, and rests on it.
#[must_use]
pub fn asking() -> Script {
    Script::new().calls("c1:write-file").ask("c1:write-file").suspend()
}

/// An answer that asks a person the question `c1`, and rests on it.
#[must_use]
pub fn questioning() -> Script {
    Script::new().calls("c1:ask-human").expose("c1").suspend()
}

impl Step {
    /// The facts that a step records; none for one that waits or breaks.
    pub(super) fn facts(&self, state: &TurnState) -> Vec<TurnFact> {
        let index = state.next_call_index();
        match self {
            Self::Calls(calls) => {
                let parts = calls.iter().map(|(id, name, arguments)| {
                    AssistantPart::ToolCall(ToolCallPart {
                        tool_call_id: id.clone(),
                        tool_name: name.clone(),
                        arguments: arguments.clone(),
                        provider_options: None,
                    })
                });
                let content = Content::Parts(parts.collect());
                let message = AssistantMessage { content, provider_options: None };
                vec![requested(state), completed(index, message, "tool-calls")]
            }
            Self::Ask(call) => vec![ask(call)],
            Self::Expose(id) | Self::Run(id) => vec![invoked(call(state, id))],
            Self::Result(id) => {
                let call = call(state, id);
                vec![result(&format!("{id}:{}", call.name))]
            }
            Self::Deny(id) => vec![denied(call(state, id))],
            Self::DenyUnresolved => state.unresolved().map(denied).collect(),
            Self::Suspend => vec![TurnFact::Suspended(Arc::new(outstanding(state)))],
            Self::Answer(text) => vec![requested(state), answer(index, text), complete_with(text)],
            Self::Fail(code) => {
                let (error, code) = ("no more".to_owned(), code.clone());
                let failed = TurnFact::Failed(TurnFailed { error, code, usage: usage() });
                vec![requested(state), call_failed(index), failed]
            }
            Self::TakeInputs | Self::Gate(_) | Self::Hold(_) | Self::Break => Vec::new(),
        }
    }
}

/// What a turn waits for.
pub(super) fn outstanding(state: &TurnState) -> TurnSuspended {
    let permissions = state.outstanding_permissions().filter_map(|call| {
        Some(PendingPermission {
            tool_call_id: call.id.clone(),
            tool_name: call.name.clone(),
            request: call.permission.as_ref()?.request.clone(),
        })
    });
    let asynchronous = state.outstanding_async().filter_map(|call| {
        Some(PendingAsyncTool {
            tool_call_id: call.id.clone(),
            tool_id: call.tool_id.clone()?,
            tool_name: call.name.clone(),
            input: call.invocation.as_ref()?.input.clone(),
        })
    });
    TurnSuspended {
        pending_permissions: permissions.collect(),
        pending_async_tools: asynchronous.collect(),
        usage: state.usage,
    }
}

/// The next request, with the references that it has to have.
fn requested(state: &TurnState) -> TurnFact {
    let index = state.next_call_index();
    let mut refs = Vec::new();
    if index == 0 {
        if matches!(&state.definition.context, TurnContext::Inline(before) if !before.is_empty()) {
            refs.push("context".to_owned());
        }
        refs.push("input".to_owned());
    } else if state.model_calls.last().is_some_and(|call| call.response().is_some()) {
        refs.push(format!("assistant:{}", index - 1));
        refs.extend(state.last_batch().iter().map(|call| format!("toolResult:{}", call.id)));
    }
    let added = (1..).zip(&state.inputs).filter(|(_, input)| input.first_call == index);
    refs.extend(added.map(|(number, _)| format!("input:{number}")));
    request_in(&state.definition.context, index, &refs.join(" "))
}

/// A result of the loop's own.
pub(super) fn denied(call: &ToolCall) -> TurnFact {
    result_from(&format!("{}:{}", call.id, call.name), ResultSource::Runtime)
}

fn invoked(call: &ToolCall) -> TurnFact {
    let known = tools().into_iter().find(|tool| tool.name == call.name);
    TurnFact::InvocationRequested(InvocationRequested {
        tool_call_id: call.id.clone(),
        tool_id: call.name.replace('-', "_"),
        tool_name: call.name.clone(),
        execution: known.map_or(Execution::Sync, |tool| tool.execution),
        input: call.arguments.clone(),
    })
}

fn call<'a>(state: &'a TurnState, id: &ToolCallId) -> &'a ToolCall {
    state.tool_calls.get(id).expect("the script has made this call")
}

fn named(call: &str) -> (ToolCallId, String) {
    let (id, name) = call.split_once(':').expect("a call is written id:name");
    (ToolCallId::from(id), name.to_owned())
}
