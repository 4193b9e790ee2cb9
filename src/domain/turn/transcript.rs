//! What a turn adds to the conversation, and what of it may be sent to another model
//! (`design/turn-runtime.md` section 4).

use std::sync::Arc;

use crate::domain::message::{
    AssistantMessage, AssistantPart, Content, Message, TextPart, ToolCallPart, ToolMessage,
    UserMessage,
};
use crate::domain::turn::event::{ContextRef, TurnContext};
use crate::domain::turn::reference::MessageRef;
use crate::domain::turn::state::{ToolCall, TurnState};

impl TurnState {
    /// The context reference that the next model call carries: the turn's own, on call 0 only.
    #[must_use]
    pub fn next_context_ref(&self) -> Option<&ContextRef> {
        match &self.definition.context {
            TurnContext::Previous(reference) if self.model_calls.is_empty() => Some(reference),
            TurnContext::Previous(_) | TurnContext::Inline(_) => None,
        }
    }

    /// What the next model call would send that no call before it sent. Nothing while a call is
    /// open.
    #[must_use]
    pub fn next_message_refs(&self) -> Vec<MessageRef> {
        if self.open_call().is_some() {
            return Vec::new();
        }
        let next = self.next_call_index();
        let mut refs = match self.model_calls.last() {
            None => self.first_refs(),
            Some(last) if last.response().is_some() => {
                let results = self.last_batch().iter();
                let results = results.map(|call| MessageRef::ToolResult(call.id.clone()));
                std::iter::once(MessageRef::Assistant(next - 1)).chain(results).collect()
            }
            Some(_) => Vec::new(),
        };
        let added = (1..).zip(&self.inputs).filter(|(_, input)| input.first_call == next);
        refs.extend(added.map(|(index, _)| MessageRef::Added(index)));
        refs
    }

    fn first_refs(&self) -> Vec<MessageRef> {
        match &self.definition.context {
            TurnContext::Inline(messages) if !messages.is_empty() => {
                vec![MessageRef::Context, MessageRef::Input]
            }
            TurnContext::Inline(_) | TurnContext::Previous(_) => vec![MessageRef::Input],
        }
    }

    /// The messages that the request of a model call refers to, without what stands before the
    /// turn by reference. Empty for a call that was not requested.
    #[must_use]
    pub fn request_messages(&self, model_call_index: u64) -> Vec<Message> {
        let index = usize::try_from(model_call_index).unwrap_or(usize::MAX);
        let refs = self.model_calls.get(index).map(|call| call.request.messages.as_slice());
        refs.unwrap_or_default().iter().flat_map(|reference| self.resolve(reference)).collect()
    }

    /// The messages behind a reference; one, but for the context. Empty for a reference that leads
    /// nowhere, which the reducer has refused.
    #[must_use]
    pub fn resolve(&self, reference: &MessageRef) -> Vec<Message> {
        let at = |index: u64| usize::try_from(index).unwrap_or(usize::MAX);
        match reference {
            MessageRef::Context => match &self.definition.context {
                TurnContext::Inline(messages) => messages.clone(),
                TurnContext::Previous(_) => Vec::new(),
            },
            MessageRef::Input => vec![Message::User(Arc::clone(&self.definition.input))],
            MessageRef::Added(index) => {
                let input = self.inputs.get(at(index.saturating_sub(1)));
                input.map(|input| Message::User(Arc::clone(&input.message))).into_iter().collect()
            }
            MessageRef::Assistant(index) => {
                let response = self.model_calls.get(at(*index)).and_then(|call| call.response());
                response
                    .map(|message| Message::Assistant(Arc::clone(message)))
                    .into_iter()
                    .collect()
            }
            MessageRef::ToolResult(id) => {
                let message = self.tool_calls.get(id).and_then(result_message);
                message.map(|message| Message::Tool(Arc::new(message))).into_iter().collect()
            }
        }
    }

    /// What this turn adds to the conversation, without its context: its inputs where the model saw
    /// them, answers and tool results; failed calls add nothing, and an input that was never sent
    /// stands last. `None` while a tool call has no result.
    #[must_use]
    pub fn transcript(&self) -> Option<Vec<Message>> {
        if self.unresolved().next().is_some() {
            return None;
        }
        let sent = self.model_calls.iter().flat_map(|call| call.request.messages.iter().cloned());
        let refs = sent.chain(self.next_message_refs());
        let own = refs.filter(|reference| *reference != MessageRef::Context);
        Some(own.flat_map(|reference| self.resolve(&reference)).collect())
    }
}

/// The message that answers a tool call; `None` while it has no result.
#[must_use]
pub fn result_message(call: &ToolCall) -> Option<ToolMessage> {
    let result = call.result.as_ref()?;
    Some(ToolMessage {
        content: result.data.output.to_model_text().into(),
        tool_call_id: call.id.clone(),
        tool_name: call.name.clone(),
        provider_options: None,
    })
}

/// Messages as a model gets them that did not make them: without what a provider wanted back,
/// visible reasoning as plain text, hidden reasoning gone, a message left empty as `""`.
#[must_use]
pub fn strip_continuation(messages: &[Message]) -> Vec<Message> {
    messages.iter().map(stripped).collect()
}

fn stripped(message: &Message) -> Message {
    match message {
        Message::User(user) if user.provider_options.is_none() => message.clone(),
        Message::User(user) => Message::User(Arc::new(UserMessage {
            provider_options: None,
            ..UserMessage::clone(user)
        })),
        Message::Tool(tool) if tool.provider_options.is_none() => message.clone(),
        Message::Tool(tool) => Message::Tool(Arc::new(ToolMessage {
            provider_options: None,
            ..ToolMessage::clone(tool)
        })),
        Message::Assistant(assistant) => Message::Assistant(Arc::new(AssistantMessage {
            content: stripped_content(&assistant.content),
            provider_options: None,
        })),
    }
}

fn stripped_content(content: &Content<AssistantPart>) -> Content<AssistantPart> {
    let Content::Parts(parts) = content else {
        return content.clone();
    };
    let kept: Vec<_> = parts.iter().filter_map(stripped_part).collect();
    if kept.is_empty() { Content::from("") } else { Content::Parts(kept) }
}

fn stripped_part(part: &AssistantPart) -> Option<AssistantPart> {
    let text = |text: &Arc<str>| {
        AssistantPart::Text(TextPart { text: Arc::clone(text), provider_options: None })
    };
    match part {
        AssistantPart::Text(part) => Some(text(&part.text)),
        AssistantPart::Reasoning(part) if part.text.is_empty() => None,
        AssistantPart::Reasoning(part) => Some(text(&part.text)),
        AssistantPart::ToolCall(call) => {
            Some(AssistantPart::ToolCall(ToolCallPart { provider_options: None, ..call.clone() }))
        }
    }
}
