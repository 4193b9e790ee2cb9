//! A request in the words of the chat completions interface. The same request is always the same
//! bytes, and a longer conversation begins with the bytes of the shorter one, so that a provider's
//! cache of prefixes works.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::base::id::ToolCallId;
use crate::domain::agent::ToolDescriptor;
use crate::domain::json::Json;
use crate::domain::message::{
    AssistantMessage, AssistantPart, Attachment, Content, Message, ToolCallPart, UserMessage,
    UserPart,
};
use crate::models::context_block;
use crate::models::openai_compatible::continuation::{
    CallOptions, ReasoningField, ReasoningOptions, kept,
};
use crate::models::request::ModelRequest;

/// The longest name of a tool that servers take.
const NAME_BYTES_MAX: usize = 64;

/// The body of a request to `model` of `provider`.
pub(super) fn body(provider: &str, model: &str, request: &ModelRequest) -> Vec<u8> {
    let mut ids = HashMap::new();
    let system = Some(request.system_prompt.as_ref()).filter(|prompt| !prompt.is_empty());
    let system = system.map(|content| Wire::System { content });
    let messages = request.messages.iter().map(|message| wire(provider, message, &mut ids));
    let body = Body {
        model,
        stream: true,
        stream_options: StreamOptions { include_usage: true },
        reasoning_effort: request.reasoning_effort(),
        tools: request.tools.iter().map(tool).collect(),
        messages: system.into_iter().chain(messages).collect(),
    };
    // Only maps with keys that are no text and failing writers are errors; there are neither.
    serde_json::to_vec(&body).unwrap_or_default()
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    stream: bool,
    stream_options: StreamOptions,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    messages: Vec<Wire<'a>>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    function: ToolFunction<'a>,
}

#[derive(Serialize)]
struct ToolFunction<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Json,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum Wire<'a> {
    System {
        content: &'a str,
    },
    User {
        content: UserContent<'a>,
    },
    Assistant {
        content: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning_content: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning: Option<String>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        reasoning_details: Vec<Json>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<Call<'a>>,
    },
    Tool {
        tool_call_id: String,
        content: &'a str,
    },
}

/// One text, which every server takes, unless there are images.
#[derive(Serialize)]
#[serde(untagged)]
enum UserContent<'a> {
    Text(String),
    Parts(Vec<Part<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    Text { text: Cow<'a, str> },
    ImageUrl { image_url: ImageUrl },
}

#[derive(Serialize)]
struct ImageUrl {
    url: String,
}

#[derive(Serialize)]
struct Call<'a> {
    id: String,
    r#type: &'static str,
    function: CallFunction<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra_content: Option<Json>,
}

#[derive(Serialize)]
struct CallFunction<'a> {
    name: Cow<'a, str>,
    arguments: Cow<'a, str>,
}

/// The provider's ids of the calls so far, by ours.
type Ids<'a> = HashMap<&'a ToolCallId, String>;

fn tool(tool: &ToolDescriptor) -> Tool<'_> {
    let ToolDescriptor { name, description, input_schema: parameters, .. } = tool;
    Tool { r#type: "function", function: ToolFunction { name, description, parameters } }
}

fn wire<'a>(provider: &str, message: &'a Message, ids: &mut Ids<'a>) -> Wire<'a> {
    match message {
        Message::User(message) => Wire::User { content: user(message) },
        Message::Assistant(message) => assistant(provider, message, ids),
        Message::Tool(message) => {
            let id = ids.get(&message.tool_call_id).cloned();
            let tool_call_id = id.unwrap_or_else(|| made_id(&message.tool_call_id));
            Wire::Tool { tool_call_id, content: &message.content }
        }
    }
}

fn user(message: &UserMessage) -> UserContent<'_> {
    let mut texts: Vec<Cow<'_, str>> =
        context_block::of(message).map(Cow::Owned).into_iter().collect();
    let mut parts = Vec::new();
    match &message.content {
        Content::Text(text) => texts.push(Cow::Borrowed(text)),
        Content::Parts(content) => {
            for part in content {
                match part {
                    UserPart::Text(part) => texts.push(Cow::Borrowed(&part.text)),
                    UserPart::Attachment(file) => texts.push(Cow::Owned(attached(file))),
                    UserPart::Image(image) => {
                        let texts = std::mem::take(&mut texts);
                        parts.extend(texts.into_iter().map(|text| Part::Text { text }));
                        let url = format!("data:{};base64,{}", image.media_type, image.data);
                        parts.push(Part::ImageUrl { image_url: ImageUrl { url } });
                    }
                }
            }
        }
    }
    if parts.is_empty() {
        return UserContent::Text(texts.join("\n\n"));
    }
    parts.extend(texts.into_iter().map(|text| Part::Text { text }));
    UserContent::Parts(parts)
}

/// A file that was not read when the message was sent, by its name.
fn attached(file: &Attachment) -> String {
    let Attachment { path, mime_type, line_number, .. } = file;
    let line = line_number.map_or_else(String::new, |line| format!(", line {line}"));
    format!("[attached file: {path} ({mime_type}){line}]")
}

fn assistant<'a>(provider: &str, message: &'a AssistantMessage, ids: &mut Ids<'a>) -> Wire<'a> {
    let (mut reasoning_content, mut reasoning) = (None::<String>, None::<String>);
    let (mut reasoning_details, mut tool_calls) = (Vec::new(), Vec::new());
    for part in message.content.parts() {
        match part {
            AssistantPart::Text(_) => {}
            AssistantPart::Reasoning(part) => {
                let options: ReasoningOptions = kept(provider, part.provider_options.as_ref());
                // Whoever sends details wants those back, and the text stands in them.
                let field = options.field.filter(|_| options.details.is_empty());
                reasoning_details.extend(options.details);
                let text = match field {
                    Some(ReasoningField::ReasoningContent) => &mut reasoning_content,
                    Some(ReasoningField::Reasoning) => &mut reasoning,
                    None => continue,
                };
                text.get_or_insert_default().push_str(&part.text);
            }
            AssistantPart::ToolCall(part) => tool_calls.push(call(provider, part, ids)),
        }
    }
    let text = message.plain_text();
    let content = (!text.is_empty() || tool_calls.is_empty()).then_some(text);
    Wire::Assistant { content, reasoning_content, reasoning, reasoning_details, tool_calls }
}

fn call<'a>(provider: &str, part: &'a ToolCallPart, ids: &mut Ids<'a>) -> Call<'a> {
    let options: CallOptions = kept(provider, part.provider_options.as_ref());
    let id = options.id.unwrap_or_else(|| made_id(&part.tool_call_id));
    ids.insert(&part.tool_call_id, id.clone());
    let function =
        CallFunction { name: tool_name(&part.tool_name), arguments: arguments(&part.arguments) };
    Call { id, r#type: "function", function, extra_content: options.extra_content }
}

/// An id that every server takes (one of them only nine letters and digits), for a call that has
/// none of this provider: it was made by another model, or the server gives none.
fn made_id(id: &ToolCallId) -> String {
    let digest = Sha256::digest(id.as_str());
    digest.iter().take(9).filter_map(|byte| char::from_digit(u32::from(byte % 36), 36)).collect()
}

/// The name that a model called, also one that it made up: servers refuse a whole conversation for
/// a letter that they do not allow in it.
fn tool_name(name: &str) -> Cow<'_, str> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.chars().all(allowed) {
        return Cow::Borrowed(name);
    }
    let name = if name.is_empty() { "unnamed" } else { name };
    let allowed = name.chars().map(|c| if allowed(c) { c } else { '_' });
    Cow::Owned(allowed.take(NAME_BYTES_MAX).collect())
}

/// Arguments are an object in the templates of many servers; what is none stands in one.
fn arguments(arguments: &Json) -> Cow<'_, str> {
    let json = arguments.get();
    if json.starts_with('{') {
        return Cow::Borrowed(json);
    }
    Cow::Owned(format!("{{\"unparsed\":{json}}}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::agent::Execution;

    fn json(text: &str) -> Json {
        Json::parse(text).expect(text)
    }

    /// A request whose messages are given in the JSON of our logs.
    fn request(tools: Vec<ToolDescriptor>, messages: &str, parameters: &str) -> ModelRequest {
        ModelRequest {
            system_prompt: "You help.".into(),
            tools: tools.into(),
            messages: serde_json::from_str(messages).expect(messages),
            parameters: json(parameters),
        }
    }

    fn read_file() -> ToolDescriptor {
        ToolDescriptor {
            tool_id: "read_file".to_owned(),
            name: "read-file".to_owned(),
            description: "Reads a file.".to_owned(),
            input_schema: json(r#"{"type":"object","properties":{"path":{"type":"string"}}}"#),
            execution: Execution::Sync,
            requires_human: false,
        }
    }

    fn check_golden(request: &ModelRequest, golden: &str) {
        let body = String::from_utf8(body("lab", "qwen3", request)).expect("text");
        assert_eq!(body, golden.trim_end());
    }

    #[test]
    fn a_first_message_with_its_circumstances() {
        let messages = r#"[{"role":"user","content":"hi","userMessageContext":{"cwd":"/home/x","currentDateTime":"2025-11-11T04:36:29Z"}}]"#;
        let request =
            request(Vec::new(), messages, r#"{"reasoningEffort":"low","elideOver":2500}"#);
        check_golden(
            &request,
            include_str!("../../../tests/golden/requests/openai-compatible-first.json"),
        );
    }

    #[test]
    fn tools_and_all_that_the_provider_wants_back() {
        let messages = r#"[
            {"role":"user","content":"look"},
            {"role":"assistant","content":[
                {"type":"reasoning","text":"hm","providerOptions":{"lab":{"field":"reasoning_content"}}},
                {"type":"text","text":"I look."},
                {"type":"tool-call","toolCallId":"t_1","toolName":"read-file","arguments":{"path":"a","n":1.50},"providerOptions":{"lab":{"id":"call_x","extra_content":{"google":{"s":"\u0041"}}}}},
                {"type":"tool-call","toolCallId":"t_2","toolName":"read-file","arguments":"{oops"}]},
            {"role":"tool","content":"A","toolCallId":"t_1","toolName":"read-file"},
            {"role":"tool","content":"not JSON: {oops","toolCallId":"t_2","toolName":"read-file"},
            {"role":"assistant","content":[
                {"type":"reasoning","text":"so","providerOptions":{"lab":{"field":"reasoning","details":[{"type":"reasoning.text","text":"so","signature":"c2\u002fn"}]}}},
                {"type":"tool-call","toolCallId":"t_3","toolName":"no such tool!","arguments":{}}]},
            {"role":"tool","content":"unknown tool","toolCallId":"t_3","toolName":"no such tool!"},
            {"role":"assistant","content":"It is A."}
        ]"#;
        check_golden(
            &request(vec![read_file()], messages, "{}"),
            include_str!("../../../tests/golden/requests/openai-compatible-tools.json"),
        );
    }

    #[test]
    fn images_attachments_and_what_other_models_left() {
        let messages = r#"[
            {"role":"tool","content":"of a call before this context","toolCallId":"gone_1","toolName":"t"},
            {"role":"user","content":[
                {"type":"text","text":"See"},
                {"type":"attachment","path":"/home/x/a.bin","filename":"a.bin","mimeType":"application/octet-stream","lineNumber":3},
                {"type":"image","data":"AAAA","mediaType":"image/png"},
                {"type":"text","text":"and this."}]},
            {"role":"user","content":[{"type":"text","text":"one"},{"type":"text","text":"two"}]},
            {"role":"assistant","content":[
                {"type":"reasoning","text":"secret","providerOptions":{"other":{"signature":"s"}}},
                {"type":"text","text":"a"},{"type":"text","text":"b"}]},
            {"role":"assistant","content":""}
        ]"#;
        check_golden(
            &request(Vec::new(), messages, "null"),
            include_str!("../../../tests/golden/requests/openai-compatible-parts.json"),
        );
    }

    #[test]
    fn a_longer_conversation_begins_with_the_bytes_of_the_shorter() {
        let turn = r#"{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"tool-call","toolCallId":"t_1","toolName":"f","arguments":{}}]}"#;
        let body = |messages: &str| body("lab", "m", &request(vec![read_file()], messages, "{}"));
        let shorter = body(&format!("[{turn}]"));
        let longer = body(&format!(
            r#"[{turn},{{"role":"tool","content":"r","toolCallId":"t_1","toolName":"f"}}]"#
        ));
        let prefix = shorter.strip_suffix(b"]}").expect("the end of the messages");
        assert!(longer.starts_with(prefix));
    }

    #[test]
    fn names_and_ids_are_what_every_server_takes() {
        assert_eq!(tool_name("read-file"), "read-file");
        assert_eq!(tool_name("functions.read file"), "functions_read_file");
        assert_eq!(tool_name(""), "unnamed");
        assert_eq!(tool_name(&"é".repeat(70)), "_".repeat(64));
        let id = made_id(&ToolCallId::from("2025-11-11T04-36-29Z-0001234-000_1"));
        assert_eq!(id.len(), 9);
        assert!(id.chars().all(|c| c.is_ascii_alphanumeric()));
        assert_ne!(id, made_id(&ToolCallId::from("2025-11-11T04-36-29Z-0001234-000_2")));
    }
}
