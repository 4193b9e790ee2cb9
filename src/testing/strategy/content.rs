//! The contents of random histories: texts, JSON in odd spellings, messages, usage.

use std::sync::Arc;

use crate::base::id::ToolCallId;
use crate::domain::json::Json;
use crate::domain::message::{
    AssistantMessage, AssistantPart, Attachment, Content, Image, Message, ProviderOptions,
    ReasoningPart, TextPart, ToolCallPart, ToolMessage, UserMessage, UserPart, UserText,
};
use crate::domain::usage::TurnUsage;
use crate::testing::fact::json;

use super::Choices;

const TEXTS: &[&str] =
    &["", "yes", "two\nlines", "\"quoted\\\"", "näive 🦀", "\u{1}\u{7f}\u{2028}"];

/// JSON that only an exact copy keeps.
const JSONS: &[&str] = &[
    "null",
    "1.50",
    "1e2",
    "-0",
    "12345678901234567890",
    r#""A🦀\/""#,
    r#"{"b":1.0,"a":[{}],"b":2}"#,
    "[]",
];

const OBJECTS: &[&str] =
    &["{}", r#"{"signature":"c2ln\/","n":1.50}"#, r#"{"id":12345678901234567890}"#];

pub(super) fn text(choices: &mut Choices<'_>) -> String {
    choices.of(TEXTS).to_owned()
}

pub(super) fn any_json(choices: &mut Choices<'_>) -> Json {
    json(choices.of(JSONS))
}

pub(super) fn object(choices: &mut Choices<'_>) -> Json {
    json(choices.of(OBJECTS))
}

pub(super) fn usage(choices: &mut Choices<'_>) -> TurnUsage {
    let count = |choices: &mut Choices<'_>| choices.below(1_000) as u64;
    TurnUsage {
        input_tokens: choices.maybe(count),
        output_tokens: choices.maybe(count),
        total_tokens: choices.maybe(count),
        reasoning_tokens: choices.maybe(count),
        cached_input_tokens: choices.maybe(count),
    }
}

fn options(choices: &mut Choices<'_>) -> ProviderOptions {
    ProviderOptions::of("lab", &object(choices)).expect("an object")
}

pub(super) fn user(choices: &mut Choices<'_>) -> Arc<UserMessage> {
    let content = if choices.one_in(3) {
        let parts = (0..=choices.below(3)).map(|_| user_part(choices));
        Content::Parts(parts.collect())
    } else {
        Content::from(text(choices).as_str())
    };
    Arc::new(UserMessage {
        content,
        user_message_context: choices.maybe(any_json),
        provider_options: choices.maybe(options),
    })
}

fn user_part(choices: &mut Choices<'_>) -> UserPart {
    match choices.below(3) {
        0 => UserPart::Text(UserText { text: text(choices) }),
        1 => UserPart::Attachment(Attachment {
            path: "/p/a.txt".into(),
            filename: "a.txt".into(),
            mime_type: "text/plain".into(),
            size: choices.maybe(|choices| choices.below(9) as u64),
            line_number: choices.maybe(|choices| choices.below(9) as u64),
        }),
        _ => UserPart::Image(Image { data: "aGk=".into(), media_type: "image/png".into() }),
    }
}

/// An answer that calls no tool.
pub(super) fn answer(choices: &mut Choices<'_>) -> AssistantMessage {
    if choices.one_in(2) {
        return AssistantMessage::text(&text(choices));
    }
    let parts = (0..choices.below(4)).map(|_| spoken(choices));
    let content = Content::Parts(parts.collect());
    AssistantMessage { content, provider_options: choices.maybe(options) }
}

/// An answer that calls these tools, with words between.
pub(super) fn calling(
    choices: &mut Choices<'_>,
    calls: &[(ToolCallId, String)],
) -> AssistantMessage {
    let mut parts = Vec::new();
    for (id, name) in calls {
        if choices.one_in(3) {
            parts.push(spoken(choices));
        }
        parts.push(AssistantPart::ToolCall(call(choices, id.clone(), name)));
    }
    AssistantMessage { content: Content::Parts(parts), provider_options: choices.maybe(options) }
}

pub(super) fn call(choices: &mut Choices<'_>, id: ToolCallId, name: &str) -> ToolCallPart {
    ToolCallPart {
        tool_call_id: id,
        tool_name: name.to_owned(),
        arguments: any_json(choices),
        provider_options: choices.maybe(options),
    }
}

fn spoken(choices: &mut Choices<'_>) -> AssistantPart {
    let (text, provider_options) = (text(choices).into(), choices.maybe(options));
    if choices.one_in(2) {
        AssistantPart::Text(TextPart { text, provider_options })
    } else {
        AssistantPart::Reasoning(ReasoningPart { text, provider_options })
    }
}

/// What an inline context may hold, also an answered tool call.
pub(super) fn context(choices: &mut Choices<'_>) -> Vec<Message> {
    let id = ToolCallId::from("before_1");
    let called = calling(choices, &[(id.clone(), "read-file".into())]);
    let all = [
        Message::User(user(choices)),
        Message::Assistant(Arc::new(called)),
        Message::Tool(Arc::new(ToolMessage {
            content: text(choices).into(),
            tool_call_id: id,
            tool_name: "read-file".into(),
            provider_options: choices.maybe(options),
        })),
        Message::Assistant(Arc::new(answer(choices))),
    ];
    all.into_iter().take(choices.below(5)).collect()
}
