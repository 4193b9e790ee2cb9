//! The pieces of a model's answer that are kept in the log: whole texts, never single deltas.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, de};

use crate::domain::json::{self, Json, Tagged, no_fields, tagged};
use crate::domain::message::ToolCallPart;
use crate::domain::turn::live::DeltaKind;
use crate::domain::usage::TurnUsage;

/// A piece of a model's answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum StepEvent {
    /// A text began.
    TextStart,
    /// A text is whole, or was when the call ended.
    TextEnd {
        /// The text.
        text: Arc<str>,
    },
    /// Reasoning began.
    ReasoningStart,
    /// Reasoning is whole, or was when the call ended.
    ReasoningEnd {
        /// The text.
        text: Arc<str>,
    },
    /// A tool call is whole.
    ToolCall {
        /// The call.
        #[serde(rename = "toolCall")]
        tool_call: ToolCallPart,
    },
    /// The provider said that it is done.
    FinishStep(FinishStep),
    /// The provider said that it cannot go on.
    ProviderError {
        /// What it said.
        error: String,
    },
}

impl StepEvent {
    /// What is recorded of a whole block of an answer.
    #[must_use]
    pub fn of_block(kind: DeltaKind, text: String) -> [Self; 2] {
        let text = text.into();
        match kind {
            DeltaKind::Text => [Self::TextStart, Self::TextEnd { text }],
            DeltaKind::Reasoning => [Self::ReasoningStart, Self::ReasoningEnd { text }],
        }
    }
}

/// The end of a model's answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FinishStep {
    /// Why it ended.
    pub finish_reason: String,
    /// What it used.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "json::present")]
    pub usage: Option<TurnUsage>,
    /// Whatever else the provider said.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "json::present")]
    pub provider_metadata: Option<Json>,
}

impl<'de> Deserialize<'de> for StepEvent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        tagged(deserializer)
    }
}

#[derive(Deserialize)]
struct TextField {
    text: Arc<str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolCallField {
    tool_call: ToolCallPart,
}

#[derive(Deserialize)]
struct ErrorField {
    error: String,
}

impl Tagged for StepEvent {
    const TAG: &'static str = "type";
    const WHAT: &'static str = "a step event";

    fn from_fields<'de, D: Deserializer<'de>>(tag: &str, fields: D) -> Result<Self, D::Error> {
        const TAGS: &[&str] = &[
            "text_start",
            "text_end",
            "reasoning_start",
            "reasoning_end",
            "tool_call",
            "finish_step",
            "provider_error",
        ];
        Ok(match tag {
            "text_start" => no_fields(fields).map(|()| Self::TextStart)?,
            "text_end" => Self::TextEnd { text: TextField::deserialize(fields)?.text },
            "reasoning_start" => no_fields(fields).map(|()| Self::ReasoningStart)?,
            "reasoning_end" => Self::ReasoningEnd { text: TextField::deserialize(fields)?.text },
            "tool_call" => {
                Self::ToolCall { tool_call: ToolCallField::deserialize(fields)?.tool_call }
            }
            "finish_step" => Self::FinishStep(FinishStep::deserialize(fields)?),
            "provider_error" => {
                Self::ProviderError { error: ErrorField::deserialize(fields)?.error }
            }
            _ => return Err(de::Error::unknown_variant(tag, TAGS)),
        })
    }
}
