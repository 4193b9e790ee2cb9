//! What is kept for a chat completions provider in `providerOptions` under its name, and found
//! there again when the message is sent once more.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::domain::json::Json;
use crate::domain::message::ProviderOptions;

/// With a tool call.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CallOptions {
    /// The provider's id of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<String>,
    /// What it wants back with the call, as it came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) extra_content: Option<Json>,
}

/// With reasoning.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ReasoningOptions {
    /// The field in which its text came, and in which it goes back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) field: Option<ReasoningField>,
    /// Its `reasoning_details`, as they came.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) details: Vec<Json>,
}

/// The names that servers have for the text of reasoning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ReasoningField {
    /// Of `DeepSeek`, llama.cpp and many others.
    ReasoningContent,
    /// Of `OpenRouter`, vLLM and Ollama.
    Reasoning,
}

/// Puts `kept` under the provider's name; `None` for nothing.
pub(super) fn keep<T>(provider: &str, kept: &T) -> Option<ProviderOptions>
where
    T: Serialize + Default + PartialEq,
{
    if *kept == T::default() { None } else { ProviderOptions::of(provider, &Json::of(kept)).ok() }
}

/// What was kept under the provider's name; nothing for what another provider or program left.
pub(super) fn kept<T>(provider: &str, options: Option<&ProviderOptions>) -> T
where
    T: DeserializeOwned + Default,
{
    let own = options.and_then(|options| options.provider(provider));
    own.and_then(|json| json.read().ok()).unwrap_or_default()
}
