//! What a chat completions server sends, as far as it is read: borrowed from the event, and lenient
//! about shapes, since every server has its own.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::domain::json::has_lone_surrogate;
use crate::domain::usage::TurnUsage;

/// One event of a stream, or the whole answer of a server that does not stream.
#[derive(Debug, Deserialize)]
pub(super) struct Chunk<'a> {
    #[serde(borrow, default)]
    pub(super) id: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) model: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) choices: Option<Vec<Choice<'a>>>,
    #[serde(borrow, default)]
    pub(super) usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) error: Option<&'a RawValue>,
}

/// One of the answers; only the first is read.
#[derive(Debug, Deserialize)]
pub(super) struct Choice<'a> {
    #[serde(default)]
    pub(super) index: Option<u64>,
    #[serde(borrow, default)]
    pub(super) delta: Option<Delta<'a>>,
    /// The whole message, where nothing was streamed.
    #[serde(borrow, default)]
    pub(super) message: Option<Delta<'a>>,
    #[serde(borrow, default)]
    pub(super) finish_reason: Option<Text<'a>>,
}

/// What the answer grows by.
#[derive(Debug, Deserialize)]
pub(super) struct Delta<'a> {
    #[serde(borrow, default)]
    pub(super) content: Option<Content<'a>>,
    #[serde(borrow, default)]
    pub(super) refusal: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) reasoning_content: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) reasoning: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) reasoning_details: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) tool_calls: Option<Vec<Fragment<'a>>>,
}

/// A fragment of a tool call.
#[derive(Debug, Deserialize)]
pub(super) struct Fragment<'a> {
    #[serde(default)]
    pub(super) index: Option<u64>,
    #[serde(borrow, default)]
    pub(super) id: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) function: Option<Function<'a>>,
    /// What some providers want back with the call, such as the signature of the thought behind it.
    #[serde(borrow, default)]
    pub(super) extra_content: Option<&'a RawValue>,
}

/// What is called, in fragments.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Function<'a> {
    #[serde(borrow, default)]
    pub(super) name: Option<Text<'a>>,
    /// A string by the book; some servers send the object itself.
    #[serde(borrow, default)]
    pub(super) arguments: Option<&'a RawValue>,
}

/// A text; whatever is none reads as empty.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Text<'a>(pub(super) Cow<'a, str>);

/// A text, or a list of typed parts, of which text and thinking are read.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Content<'a> {
    pub(super) text: Cow<'a, str>,
    pub(super) thinking: String,
}

#[derive(Deserialize)]
struct Part {
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    thinking: Option<Vec<Part>>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Content::deserialize(deserializer).map(|content| Self(content.text))
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or a list of parts")
    }

    fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Content<'de>, E> {
        Ok(Content { text: Cow::Borrowed(text), thinking: String::new() })
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Content<'de>, E> {
        Ok(Content { text: Cow::Owned(text.to_owned()), thinking: String::new() })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Content<'de>, A::Error> {
        let (mut text, mut thinking) = (String::new(), String::new());
        while let Some(part) = seq.next_element::<Part>()? {
            text.push_str(&part.text.unwrap_or_default());
            let thoughts = part.thinking.into_iter().flatten();
            thinking.extend(thoughts.filter_map(|thought| thought.text));
        }
        Ok(Content { text: Cow::Owned(text), thinking })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Content<'de>, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Content::default())
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<Content<'de>, E> {
        Ok(Content::default())
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<Content<'de>, E> {
        Ok(Content::default())
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> Result<Content<'de>, E> {
        Ok(Content::default())
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<Content<'de>, E> {
        Ok(Content::default())
    }

    fn visit_unit<E: de::Error>(self) -> Result<Content<'de>, E> {
        Ok(Content::default())
    }
}

/// `json` with every lone half of a surrogate pair replaced. Servers that count in UTF-16 cut
/// characters in two between events, and half a character must not cost the answer.
pub(super) fn mended(json: &str) -> Cow<'_, str> {
    if !has_lone_surrogate(json) {
        return Cow::Borrowed(json);
    }
    let (mut whole, mut rest) = (String::with_capacity(json.len()), json);
    while let Some(at) = rest.find('\\') {
        let (before, escapes) = rest.split_at(at);
        let one = if escapes.starts_with("\\u") { 6 } else { 2 };
        let lone = |len: usize| escapes.get(..len).is_none_or(has_lone_surrogate);
        let len = if lone(one) && !lone(12) { 12 } else { one };
        let (escape, after) = escapes.split_at_checked(len).unwrap_or((escapes, ""));
        whole.push_str(before);
        whole.push_str(if lone(len) { "\\ufffd" } else { escape });
        rest = after;
    }
    whole.push_str(rest);
    Cow::Owned(whole)
}

/// What a server counted. Cached tokens stand in one of two places.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Usage {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    total_tokens: Option<u64>,
    prompt_tokens_details: Option<PromptDetails>,
    completion_tokens_details: Option<CompletionDetails>,
    prompt_cache_hit_tokens: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PromptDetails {
    cached_tokens: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct CompletionDetails {
    reasoning_tokens: Option<u64>,
}

impl From<Usage> for TurnUsage {
    fn from(usage: Usage) -> Self {
        let cached = usage.prompt_tokens_details.and_then(|details| details.cached_tokens);
        let reasoning =
            usage.completion_tokens_details.and_then(|details| details.reasoning_tokens);
        Self {
            input_tokens: usage.prompt_tokens,
            output_tokens: usage.completion_tokens,
            total_tokens: usage.total_tokens,
            reasoning_tokens: reasoning,
            cached_input_tokens: cached.or(usage.prompt_cache_hit_tokens),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_content(json: &str, text: &str, thinking: &str) {
        let content: Content<'_> = serde_json::from_str(json).expect(json);
        assert_eq!((content.text.as_ref(), content.thinking.as_str()), (text, thinking), "{json}");
    }

    #[test]
    fn content_is_read_in_every_shape() {
        check_content(r#""a\nb""#, "a\nb", "");
        check_content(
            r#"[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"a"},{"type":"image"}]"#,
            "a",
            "hm",
        );
        for nothing in ["null", "1", "-1", "1.5", "true", r#"{"a":[1]}"#, "[]"] {
            check_content(nothing, "", "");
        }
    }

    #[test]
    fn a_text_without_escapes_is_not_copied() {
        let content: Content<'_> = serde_json::from_str(r#""plain""#).expect("a text");
        assert!(matches!(content.text, Cow::Borrowed("plain")));
    }

    #[test]
    fn half_a_character_is_replaced_and_whole_ones_stay() {
        for (json, whole) in [
            (r#"{"a":"\ud83d"}"#, r#"{"a":"\ufffd"}"#),
            (r#""\ude00\ud83dx""#, r#""\ufffd\ufffdx""#),
            (r#""\ud83d\ud83d\ude00\n""#, r#""\ufffd\ud83d\ude00\n""#),
            (r#""\\ud83d\ude00""#, r#""\\ud83d\ufffd""#),
            (r#""\ud83d\ude00 \u00e9""#, r#""\ud83d\ude00 \u00e9""#),
        ] {
            assert_eq!(mended(json), whole);
            assert!(serde_json::from_str::<String>(whole).is_ok() || whole.starts_with('{'));
        }
    }
}
