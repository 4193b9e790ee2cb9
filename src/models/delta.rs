//! The pieces of an answer as they come, and the answer once it is whole.

use std::sync::Arc;

use crate::base::clock::Timestamp;
use crate::base::id::ToolCallId;
use crate::domain::json::Json;
use crate::domain::message::{
    AssistantMessage, AssistantPart, Content, ProviderOptions, ReasoningPart, TextPart,
    ToolCallPart,
};
use crate::domain::usage::TurnUsage;

/// A piece of an answer on its way. The order of the pieces is part of the seam, see
/// [`Model`](crate::models::model::Model).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelDelta {
    /// The client waits before it asks again. Only before the first piece of the answer.
    Waiting {
        /// Until when.
        until: Timestamp,
        /// Why, in words.
        why: String,
    },
    /// A text begins.
    TextStart,
    /// It grows; never by nothing.
    Text(Arc<str>),
    /// It is whole.
    TextEnd,
    /// Reasoning begins.
    ReasoningStart,
    /// It grows; never by nothing.
    Reasoning(Arc<str>),
    /// It is whole; without text if the provider hides it.
    ReasoningEnd,
    /// A tool call is whole.
    ToolCall(ProviderToolCall),
    /// What the call used, as far as the provider says; the last one counts.
    Usage(TurnUsage),
    /// The answer is whole; the last piece.
    Finish(Box<Answer>),
}

/// A tool call as its provider made it: without an id of ours, which only the turn can give.
///
/// The id travels like this: the loop numbers the calls of an answer and names each
/// ([`ToolCallId::of_turn`]); the provider's own id, if it gave one, stands in `provider_options`
/// under the provider's name; when the call and its result are sent again, the provider's edge finds
/// its id there, and where there is none it makes one of ours that the provider accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderToolCall {
    /// The name of the tool, as the model wrote it.
    pub name: String,
    /// The arguments. What was no JSON, nested too deeply or no text at all is one JSON string;
    /// integers beyond 2^53 are strings (`design/turn-runtime.md` section 3, limits).
    pub arguments: Json,
    /// For the provider, verbatim.
    pub provider_options: Option<ProviderOptions>,
}

impl ProviderToolCall {
    /// The call under its id of ours.
    #[must_use]
    pub fn into_part(self, id: ToolCallId) -> ToolCallPart {
        ToolCallPart {
            tool_call_id: id,
            tool_name: self.name,
            arguments: self.arguments,
            provider_options: self.provider_options,
        }
    }
}

/// A whole answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Text, reasoning and tool calls, in the order in which they came.
    pub parts: Vec<AnswerPart>,
    /// For the provider, verbatim, about the answer as a whole.
    pub provider_options: Option<ProviderOptions>,
    /// Why it ended: `stop`, `tool-calls`, `length`, `content-filter`, or a word of the provider's.
    pub finish_reason: String,
    /// What it used.
    pub usage: TurnUsage,
    /// What else the provider said about it, for people and programs.
    pub metadata: Option<Json>,
}

impl Answer {
    /// The message of the answer. `id` names its tool calls by their number in it, from 0.
    #[must_use]
    pub fn into_message(self, id: impl Fn(usize) -> ToolCallId) -> AssistantMessage {
        let mut calls = 0..;
        let parts = self.parts.into_iter().map(|part| match part {
            AnswerPart::Text(part) => AssistantPart::Text(part),
            AnswerPart::Reasoning(part) => AssistantPart::Reasoning(part),
            AnswerPart::ToolCall(call) => {
                AssistantPart::ToolCall(call.into_part(id(calls.next().unwrap_or_default())))
            }
        });
        let parts: Vec<_> = parts.collect();
        let content = match parts.as_slice() {
            [] => Content::from(""),
            [AssistantPart::Text(TextPart { text, provider_options: None })] => {
                Content::Text(Arc::clone(text))
            }
            _ => Content::Parts(parts),
        };
        AssistantMessage { content, provider_options: self.provider_options }
    }
}

/// A part of a whole answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerPart {
    /// Text.
    Text(TextPart),
    /// Reasoning.
    Reasoning(ReasoningPart),
    /// A call of a tool.
    ToolCall(ProviderToolCall),
}
