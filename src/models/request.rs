//! What is sent to a model, before it is put into the words of its provider.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::domain::agent::ToolDescriptor;
use crate::domain::json::Json;
use crate::domain::message::Message;

/// A whole request: exactly what the composer made of the log, and all that a model gets to see.
/// Its JSON is what the audit view shows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelRequest {
    /// The one system prompt; empty for none.
    pub system_prompt: Arc<str>,
    /// The tools that the model may call.
    pub tools: Arc<[ToolDescriptor]>,
    /// The conversation, oldest first.
    pub messages: Vec<Message>,
    /// The parameters of the call, a JSON object; only those that this floor knows are sent on.
    pub parameters: Json,
}

impl ModelRequest {
    /// How hard the model is to think: the parameter `reasoningEffort`, if there is one.
    #[must_use]
    pub fn reasoning_effort(&self) -> Option<String> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Known {
            reasoning_effort: Option<String>,
        }
        self.parameters.read::<Known>().ok()?.reasoning_effort
    }
}
