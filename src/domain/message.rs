//! Messages: what a person says, what a model answers, what a tool gave back. Their JSON is that of
//! `design/turn-runtime.md` section 3.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use serde::de::IgnoredAny;
use serde::de::value::SeqAccessDeserializer;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::base::id::ToolCallId;
use crate::domain::json::{self, Json, Tagged, tagged, tagged_struct};

/// What a provider wants back verbatim, as `{provider: {key: value}}`: thinking signatures,
/// encrypted reasoning, ids of its own. Kept byte for byte.
#[derive(Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct ProviderOptions(Json);

/// A value that is no `{provider: {key: value}}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("provider options are not of the form {{provider: {{key: value}}}}")]
pub struct MalformedOptions;

impl ProviderOptions {
    /// One provider's options; `fields` is a JSON object with what it wants back.
    ///
    /// # Errors
    /// [`MalformedOptions`] when `fields` is no object.
    pub fn of(provider: &str, fields: &Json) -> Result<Self, MalformedOptions> {
        let name = serde_json::to_string(provider).map_err(|_| MalformedOptions)?;
        let json = Json::parse(&format!("{{{name}:{}}}", fields.get()));
        Self::try_from(json.map_err(|_| MalformedOptions)?)
    }

    /// What `provider` left, as the JSON object it was.
    #[must_use]
    pub fn provider(&self, provider: &str) -> Option<Json> {
        let mut all: HashMap<String, Json> = self.0.read().ok()?;
        all.remove(provider)
    }

    /// The whole as JSON.
    #[must_use]
    pub fn json(&self) -> &Json {
        &self.0
    }
}

impl TryFrom<Json> for ProviderOptions {
    type Error = MalformedOptions;

    fn try_from(json: Json) -> Result<Self, MalformedOptions> {
        match json.read::<HashMap<String, HashMap<String, IgnoredAny>>>() {
            Ok(_) => Ok(Self(json)),
            Err(_) => Err(MalformedOptions),
        }
    }
}

impl fmt::Debug for ProviderOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl<'de> Deserialize<'de> for ProviderOptions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::try_from(Json::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

/// The content of a message: one text, or parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content<P> {
    /// One text.
    Text(Arc<str>),
    /// Parts, in their order.
    Parts(Vec<P>),
}

impl<P> Content<P> {
    /// The parts; none for one text.
    #[must_use]
    pub fn parts(&self) -> &[P] {
        match self {
            Self::Text(_) => &[],
            Self::Parts(parts) => parts,
        }
    }
}

impl<P> From<&str> for Content<P> {
    fn from(text: &str) -> Self {
        Self::Text(Arc::from(text))
    }
}

impl<P: Serialize> Serialize for Content<P> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::Parts(parts) => parts.serialize(serializer),
        }
    }
}

impl<'de, P: Deserialize<'de>> Deserialize<'de> for Content<P> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextOrParts<P>(std::marker::PhantomData<P>);
        impl<'de, P: Deserialize<'de>> de::Visitor<'de> for TextOrParts<P> {
            type Value = Content<P>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a list of parts")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Content<P>, E> {
                Ok(Content::Text(Arc::from(text)))
            }
            fn visit_seq<A: de::SeqAccess<'de>>(self, seq: A) -> Result<Content<P>, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(seq)).map(Content::Parts)
            }
        }
        deserializer.deserialize_any(TextOrParts(std::marker::PhantomData))
    }
}

/// What a person (or a program in a person's place) says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", tag = "role", rename = "user", rename_all = "camelCase")]
pub struct UserMessage {
    /// The text, attachments and images.
    pub content: Content<UserPart>,
    /// Circumstances: the time, the folder, notices. Only the keys named in
    /// `design/turn-runtime.md` section 4 reach the model.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "json::present")]
    pub user_message_context: Option<Json>,
    /// For the provider, verbatim.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "json::present")]
    pub provider_options: Option<ProviderOptions>,
}

impl UserMessage {
    /// A message of one text.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self { content: Content::from(text), user_message_context: None, provider_options: None }
    }

    /// A message of a text and what goes with it.
    #[must_use]
    pub fn with_attachments(text: &str, attachments: Vec<UserPart>) -> Self {
        let message = Self::text(text);
        if attachments.is_empty() {
            return message;
        }
        let text = UserPart::Text(UserText { text: text.to_owned() });
        Self { content: Content::Parts([text].into_iter().chain(attachments).collect()), ..message }
    }

    /// This message with another text; what goes with it stays.
    #[must_use]
    pub fn with_text(&self, text: &str) -> Self {
        let Self { content, .. } = Self::with_attachments(text, self.attachments());
        Self { content, ..self.clone() }
    }

    /// What goes with the text: files and images.
    #[must_use]
    pub fn attachments(&self) -> Vec<UserPart> {
        let is_no_text = |part: &&UserPart| !matches!(part, UserPart::Text(_));
        self.content.parts().iter().filter(is_no_text).cloned().collect()
    }

    /// All texts of the message, joined by line ends.
    #[must_use]
    pub fn plain_text(&self) -> String {
        match &self.content {
            Content::Text(text) => text.to_string(),
            Content::Parts(parts) => {
                let texts = parts.iter().filter_map(|part| match part {
                    UserPart::Text(part) => Some(part.text.as_str()),
                    UserPart::Attachment(_) | UserPart::Image(_) => None,
                });
                texts.collect::<Vec<_>>().join("\n")
            }
        }
    }
}

/// A part of a user message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum UserPart {
    /// A text.
    Text(UserText),
    /// A file by its path.
    Attachment(Attachment),
    /// An image, inline.
    Image(Image),
}

/// A text in a user message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", tag = "type", rename = "text")]
pub struct UserText {
    /// The text.
    pub text: String,
}

/// A file that goes with a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", tag = "type", rename = "attachment", rename_all = "camelCase")]
pub struct Attachment {
    /// Its absolute path.
    pub path: String,
    /// The name to show.
    pub filename: String,
    /// Its media type.
    pub mime_type: String,
    /// Its size in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "json::present")]
    pub size: Option<u64>,
    /// The line that is meant, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "json::present")]
    pub line_number: Option<u64>,
}

/// An image that goes with a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", tag = "type", rename = "image", rename_all = "camelCase")]
pub struct Image {
    /// The bytes, in base 64.
    pub data: Arc<str>,
    /// Its media type.
    pub media_type: String,
}

/// What a model answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", tag = "role", rename = "assistant", rename_all = "camelCase")]
pub struct AssistantMessage {
    /// Text, reasoning and tool calls, in the order in which they came.
    pub content: Content<AssistantPart>,
    /// For the provider, verbatim.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "json::present")]
    pub provider_options: Option<ProviderOptions>,
}

impl AssistantMessage {
    /// A message of one text.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self { content: Content::from(text), provider_options: None }
    }

    /// The tool calls, in source order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCallPart> {
        self.content.parts().iter().filter_map(|part| match part {
            AssistantPart::ToolCall(call) => Some(call),
            AssistantPart::Text(_) | AssistantPart::Reasoning(_) => None,
        })
    }

    /// All text of the answer, without reasoning, joined by blank lines.
    #[must_use]
    pub fn plain_text(&self) -> String {
        match &self.content {
            Content::Text(text) => text.to_string(),
            Content::Parts(parts) => {
                let texts = parts.iter().filter_map(|part| match part {
                    AssistantPart::Text(part) => Some(part.text.as_ref()),
                    AssistantPart::Reasoning(_) | AssistantPart::ToolCall(_) => None,
                });
                texts.collect::<Vec<&str>>().join("\n\n")
            }
        }
    }
}

/// A part of an assistant message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum AssistantPart {
    /// Text of the answer.
    Text(TextPart),
    /// Reasoning before the answer.
    Reasoning(ReasoningPart),
    /// A call of a tool.
    ToolCall(ToolCallPart),
}

/// Text of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", tag = "type", rename = "text", rename_all = "camelCase")]
pub struct TextPart {
    /// The text.
    pub text: Arc<str>,
    /// For the provider, verbatim.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "json::present")]
    pub provider_options: Option<ProviderOptions>,
}

/// Reasoning before an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", tag = "type", rename = "reasoning", rename_all = "camelCase")]
pub struct ReasoningPart {
    /// The text; empty when the provider hides it.
    pub text: Arc<str>,
    /// For the provider, verbatim.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "json::present")]
    pub provider_options: Option<ProviderOptions>,
}

/// A call of a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", tag = "type", rename = "tool-call", rename_all = "camelCase")]
pub struct ToolCallPart {
    /// The id of the call; ours in our own logs.
    pub tool_call_id: ToolCallId,
    /// The name that the model used.
    pub tool_name: String,
    /// The arguments; what was no JSON is one JSON string.
    pub arguments: Json,
    /// For the provider, verbatim; its own id of the call stands here.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "json::present")]
    pub provider_options: Option<ProviderOptions>,
}

/// What a tool gave back, as the model gets it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", tag = "role", rename = "tool", rename_all = "camelCase")]
pub struct ToolMessage {
    /// The result as text.
    pub content: Arc<str>,
    /// The call it answers.
    pub tool_call_id: ToolCallId,
    /// The name of the tool.
    pub tool_name: String,
    /// For the provider, verbatim.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "json::present")]
    pub provider_options: Option<ProviderOptions>,
}

/// A message of a conversation. There are no system messages: the agent owns the one system prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Message {
    /// From a person.
    User(Arc<UserMessage>),
    /// From the model.
    Assistant(Arc<AssistantMessage>),
    /// From a tool.
    Tool(Arc<ToolMessage>),
}

tagged_struct!(UserMessage, "role" = "user");
tagged_struct!(AssistantMessage, "role" = "assistant");
tagged_struct!(ToolMessage, "role" = "tool");
tagged_struct!(UserText, "type" = "text");
tagged_struct!(Attachment, "type" = "attachment");
tagged_struct!(Image, "type" = "image");
tagged_struct!(TextPart, "type" = "text");
tagged_struct!(ReasoningPart, "type" = "reasoning");
tagged_struct!(ToolCallPart, "type" = "tool-call");

macro_rules! tagged_enum {
    ($name:ident, $key:literal, $what:literal, $($tag:literal => $variant:ident($inner:ty)),+) => {
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                tagged(deserializer)
            }
        }

        impl Tagged for $name {
            const TAG: &'static str = $key;
            const WHAT: &'static str = $what;

            fn from_fields<'de, D: Deserializer<'de>>(
                tag: &str,
                fields: D,
            ) -> Result<Self, D::Error> {
                match tag {
                    $($tag => <$inner as Tagged>::from_fields(tag, fields)
                        .map(|value| Self::$variant(value.into())),)+
                    _ => Err(de::Error::unknown_variant(tag, &[$($tag),+])),
                }
            }
        }
    };
}

tagged_enum!(UserPart, "type", "a part of a user message",
    "text" => Text(UserText), "attachment" => Attachment(Attachment), "image" => Image(Image));
tagged_enum!(AssistantPart, "type", "a part of an assistant message",
    "text" => Text(TextPart), "reasoning" => Reasoning(ReasoningPart),
    "tool-call" => ToolCall(ToolCallPart));
tagged_enum!(Message, "role", "a message of a user, an assistant or a tool",
    "user" => User(UserMessage), "assistant" => Assistant(AssistantMessage), "tool" => Tool(ToolMessage));

#[cfg(test)]
mod tests {
    use super::*;

    fn check_exact<T: Serialize + de::DeserializeOwned>(json: &str) {
        let value: T = serde_json::from_str(json).expect(json);
        assert_eq!(serde_json::to_string(&value).expect("writes"), json);
    }

    #[test]
    fn messages_come_back_byte_for_byte() {
        check_exact::<Message>(
            r#"{"role":"user","content":"hi","userMessageContext":{"cwd":"\u002f"}}"#,
        );
        check_exact::<Message>(
            r#"{"role":"assistant","content":[{"type":"reasoning","text":"","providerOptions":{"lab":{"s":1.50}}},{"type":"tool-call","toolCallId":"c","toolName":"t","arguments":{"n":1e2}}]}"#,
        );
        check_exact::<Message>(r#"{"role":"tool","content":"r","toolCallId":"c","toolName":"t"}"#);
    }

    #[test]
    fn the_kind_may_stand_anywhere() {
        let late = r#"{"content":[{"text":"x","providerOptions":{"lab":{"n":1.0}},"type":"text"}],"role":"assistant"}"#;
        let message: Message = serde_json::from_str(late).expect("reads");
        assert_eq!(
            serde_json::to_string(&message).expect("writes"),
            r#"{"role":"assistant","content":[{"type":"text","text":"x","providerOptions":{"lab":{"n":1.0}}}]}"#
        );
    }

    #[test]
    fn what_is_no_message_is_refused() {
        for json in [
            r#"{"role":"system","content":"x"}"#,
            r#"{"content":"x"}"#,
            r#"{"role":"user"}"#,
            r#"{"role":"user","content":null}"#,
            r#"{"role":"user","content":"x","providerOptions":null}"#,
            r#"{"role":"user","content":"x","providerOptions":{"lab":1}}"#,
            r#"{"role":"user","content":[{"type":"sound","data":"x"}]}"#,
            r#"{"role":"assistant","content":[{"type":"tool-call","toolCallId":"c","toolName":"t"}]}"#,
        ] {
            assert!(serde_json::from_str::<Message>(json).is_err(), "{json}");
        }
        assert!(
            serde_json::from_str::<UserMessage>(r#"{"role":"assistant","content":"x"}"#).is_err()
        );
    }

    #[test]
    fn a_provider_finds_its_own_options() {
        let options = ProviderOptions::of("lab", &Json::parse(r#"{"id":1.0}"#).expect("json"));
        let options = options.expect("an object");
        assert_eq!(options.json().get(), r#"{"lab":{"id":1.0}}"#);
        assert_eq!(options.provider("lab").expect("there").get(), r#"{"id":1.0}"#);
        assert_eq!(options.provider("other"), None);
        assert_eq!(ProviderOptions::of("lab", &Json::text("x")), Err(MalformedOptions));
    }
}
