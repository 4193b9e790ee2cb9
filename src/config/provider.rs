//! A provider of models, as it is configured.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

use crate::config::credential::KeySource;
use crate::config::value::{self, BaseUrl, HeaderName, HeaderValue, Whole};

/// `[providers.<id>]`: a server that models are asked at.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub struct Provider {
    /// What it speaks.
    pub kind: ProviderKind,
    /// Where its paths begin.
    pub base_url: BaseUrl,
    /// Where its key comes from; without one, none is sent.
    pub key: Option<KeySource>,
    /// What is sent with every request beside what is always sent.
    #[serde(default, deserialize_with = "headers")]
    pub headers: Headers,
    /// The models of it that can be named without it; others can be named all the same.
    #[serde(default)]
    pub models: Vec<String>,
    /// How long is waited for it.
    #[serde(default)]
    pub timeouts: Timeouts,
}

/// Headers by their names.
pub type Headers = BTreeMap<HeaderName, HeaderValue>;

fn headers<'de, D: Deserializer<'de>>(from: D) -> Result<Headers, D::Error> {
    value::unquoted(from, "a table such as { X-Title = \"turnstile\" }")
}

/// What a server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProviderKind {
    /// Chat Completions, as many servers understand them.
    OpenaiCompatible,
}

/// How long is waited for a server, in seconds (`design/models.md`). There is no limit for the whole
/// of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Timeouts {
    /// For the connection.
    pub connect_s: Whole<1, TIMEOUT_S_MAX>,
    /// For the first byte of an answer.
    pub first_byte_s: Whole<1, TIMEOUT_S_MAX>,
    /// For the next byte of a stream.
    pub idle_s: Whole<1, TIMEOUT_S_MAX>,
}

/// A day: slow hardware may think for long, but a stream that is silent for longer is dead.
const TIMEOUT_S_MAX: u64 = 24 * 60 * 60;

impl Default for Timeouts {
    fn default() -> Self {
        Self { connect_s: Whole::new(10), first_byte_s: Whole::new(120), idle_s: Whole::new(120) }
    }
}
