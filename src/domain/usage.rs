//! How many tokens a model call used, as far as its provider said.

use serde::{Deserialize, Serialize};

use crate::domain::json::{self, strict};

/// Token counts. A field is absent when no call reported it; absent is not zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase")]
pub struct TurnUsage {
    /// Tokens that went into the model, cached ones included.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "json::present")]
    pub input_tokens: Option<u64>,
    /// Tokens that came out, reasoning included.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "json::present")]
    pub output_tokens: Option<u64>,
    /// The provider's own sum.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "json::present")]
    pub total_tokens: Option<u64>,
    /// The part of the output that was reasoning.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "json::present")]
    pub reasoning_tokens: Option<u64>,
    /// The part of the input that came from the provider's cache.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "json::present")]
    pub cached_input_tokens: Option<u64>,
}

strict!(object: TurnUsage);

impl TurnUsage {
    /// Adds what another call reported; a field that neither has stays absent.
    pub fn add(&mut self, call: &Self) {
        add(&mut self.input_tokens, call.input_tokens);
        add(&mut self.output_tokens, call.output_tokens);
        add(&mut self.total_tokens, call.total_tokens);
        add(&mut self.reasoning_tokens, call.reasoning_tokens);
        add(&mut self.cached_input_tokens, call.cached_input_tokens);
    }
}

fn add(sum: &mut Option<u64>, part: Option<u64>) {
    if let Some(part) = part {
        *sum = Some(sum.unwrap_or(0).saturating_add(part));
    }
}
