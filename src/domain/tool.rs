//! What a tool's result tells programs besides its output: the metadata keys that our tools write
//! and the screen reads.

use serde::{Deserialize, Serialize};

use crate::domain::json::{self, Json};

/// The metadata of a result. Every key may be absent, and results of other implementations hold
/// other keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResultMetadata {
    /// The result in a few words, for the one line of a folded call: `212 lines`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "json::present")]
    pub summary: Option<String>,
    /// What was changed in a file, as a unified diff.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "json::present")]
    pub diff: Option<String>,
    /// The code with which a command ended; absent when a signal ended it.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "json::present")]
    pub exit_code: Option<i32>,
    /// The signal that ended a command.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "json::present")]
    pub signal: Option<i32>,
    /// The file that holds the whole of an output of which the model got head and tail.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "json::present")]
    pub whole_output: Option<String>,
    /// The rule that denied the call.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "json::present")]
    pub denied_by: Option<String>,
    /// What ended the call before it had a result of its own.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "json::present")]
    pub cut: Option<Cut>,
}

/// What ends a call before it has a result of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cut {
    /// The turn was stopped.
    Stopped,
    /// The program ended while the call ran.
    Interrupted,
}

impl ResultMetadata {
    /// Only a summary.
    #[must_use]
    pub fn summary(text: impl Into<String>) -> Self {
        Self { summary: Some(text.into()), ..Self::default() }
    }

    /// Only what ended the call.
    #[must_use]
    pub fn cut(by: Cut) -> Self {
        Self { cut: Some(by), ..Self::default() }
    }

    /// Reads what is known of a result's metadata; empty if it has another form.
    #[must_use]
    pub fn read(metadata: Option<&Json>) -> Self {
        metadata.and_then(|json| json.read().ok()).unwrap_or_default()
    }

    /// As it is stored.
    #[must_use]
    pub fn to_json(&self) -> Json {
        Json::of(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_keys_are_read_and_others_left_alone() {
        let json = Json::parse(r#"{"exitCode":2,"summary":"exit 2","addTools":[]}"#).unwrap();
        let expected = ResultMetadata { exit_code: Some(2), ..ResultMetadata::summary("exit 2") };
        assert_eq!(ResultMetadata::read(Some(&json)), expected);
        assert_eq!(expected.to_json().get(), r#"{"summary":"exit 2","exitCode":2}"#);
    }

    #[test]
    fn what_cut_a_call_off_is_kept() {
        let cut = ResultMetadata::cut(Cut::Stopped).to_json();
        assert_eq!(cut.get(), r#"{"cut":"stopped"}"#);
        assert_eq!(ResultMetadata::read(Some(&cut)).cut, Some(Cut::Stopped));
    }

    #[test]
    fn metadata_of_another_form_tells_nothing() {
        for json in ["[]", r#"{"summary":7}"#, "null"] {
            let json = Json::parse(json).unwrap();
            assert_eq!(ResultMetadata::read(Some(&json)), ResultMetadata::default());
        }
        assert_eq!(ResultMetadata::read(None), ResultMetadata::default());
    }
}
