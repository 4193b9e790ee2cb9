//! Requests by reference: what a model call sends that the call before did not
//! (`design/turn-runtime.md` section 4).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::base::id::ToolCallId;

/// A message that a request sends, named by where it stands in the turn's own log.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum MessageRef {
    /// The turn's inline context.
    Context,
    /// The message that the turn began with.
    Input,
    /// A message that was added later, by its number from 1.
    Added(u64),
    /// The answer of a model call, by its number from 0.
    Assistant(u64),
    /// The result of a tool call.
    ToolResult(ToolCallId),
}

/// A text that refers to nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed message reference {0:?}")]
pub struct MalformedRef(String);

impl fmt::Display for MessageRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Context => f.write_str("context"),
            Self::Input => f.write_str("input"),
            Self::Added(index) => write!(f, "input:{index}"),
            Self::Assistant(index) => write!(f, "assistant:{index}"),
            Self::ToolResult(call) => write!(f, "toolResult:{call}"),
        }
    }
}

impl FromStr for MessageRef {
    type Err = MalformedRef;

    fn from_str(text: &str) -> Result<Self, MalformedRef> {
        let parsed = match text.split_once(':') {
            None if text == "context" => Some(Self::Context),
            None if text == "input" => Some(Self::Input),
            Some(("input", number)) => {
                plain_number(number).filter(|&index| index > 0).map(Self::Added)
            }
            Some(("assistant", number)) => plain_number(number).map(Self::Assistant),
            Some(("toolResult", id)) if !id.is_empty() => {
                Some(Self::ToolResult(ToolCallId::from(id)))
            }
            _ => None,
        };
        parsed.ok_or_else(|| MalformedRef(text.to_owned()))
    }
}

/// A number in its one spelling: digits, no sign, no leading zero.
fn plain_number(text: &str) -> Option<u64> {
    let number: u64 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

impl Serialize for MessageRef {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for MessageRef {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_read_in_their_one_spelling() {
        for text in ["context", "input", "input:1", "assistant:0", "assistant:12", "toolResult:a:b"]
        {
            let reference: MessageRef = text.parse().expect(text);
            assert_eq!(reference.to_string(), text);
        }
        for text in [
            "",
            "inputs",
            "input:0",
            "input:01",
            "input:",
            "assistant:-1",
            "assistant:+1",
            "toolResult:",
            "context:0",
        ] {
            assert!(text.parse::<MessageRef>().is_err(), "{text}");
        }
    }
}
