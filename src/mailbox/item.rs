//! The files of messages: one that waits is `{event_id, kind, source, created_at, text, …}`, what was
//! claimed is `{events: […]}` with the very bytes that waited.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::base::clock::Timestamp;
use crate::base::id::EventId;
use crate::domain::agent::RequestedAgent;
use crate::domain::message::{ProviderOptions, UserMessage, UserPart};
use crate::domain::turn::event::ReasoningEffort;
use crate::mailbox::folder::{CLAIM_BYTES_MAX, ITEM_BYTES_MAX};
use crate::runtime::api::{Human, PermissionMode};
use crate::sessions::api::SendMessageConfig;
use crate::sessions::waiting::{Item, Source};

/// The kind of an item that is a message.
const MESSAGE: &str = "message";
/// The source of what was typed.
const TERMINAL: &str = "terminal";

#[derive(Serialize, Deserialize)]
struct Fields {
    event_id: EventId,
    kind: String,
    source: String,
    created_at: Timestamp,
    text: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    attachments: Vec<UserPart>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    provider_options: Option<ProviderOptions>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    config: Option<Config>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Config {
    agent: RequestedAgent,
    #[serde(default)]
    auto_permission: bool,
    #[serde(default = "there_is_somebody")]
    human_available: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max_model_calls: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<ReasoningEffort>,
}

fn there_is_somebody() -> bool {
    true
}

/// What a file in the inbox holds.
pub(super) enum Found {
    Message(Box<Item>),
    /// An item of another kind, which is somebody else's to deliver.
    Other,
    /// No item, and why.
    Bad(String),
}

/// The bytes of a message that waits.
pub(super) fn encode(item: &Item) -> serde_json::Result<Vec<u8>> {
    serde_json::to_vec(&Fields {
        event_id: item.id.clone(),
        kind: MESSAGE.to_owned(),
        source: match &item.source {
            Source::Terminal => TERMINAL.to_owned(),
            Source::Other(name) => name.clone(),
        },
        created_at: item.created_at,
        text: item.message.plain_text(),
        attachments: item.message.attachments(),
        provider_options: item.message.provider_options.clone(),
        config: item.config.as_ref().map(Config::of),
    })
}

/// What the file of `event` holds.
pub(super) fn decode(event: &EventId, bytes: &[u8]) -> Found {
    #[derive(Deserialize)]
    struct Kind {
        kind: String,
    }
    if bytes.len() > ITEM_BYTES_MAX {
        return Found::Bad(format!("it is larger than {ITEM_BYTES_MAX} bytes"));
    }
    match serde_json::from_slice::<Kind>(bytes) {
        Ok(Kind { kind }) if kind != MESSAGE => return Found::Other,
        Ok(_) => {}
        Err(error) => return Found::Bad(error.to_string()),
    }
    match serde_json::from_slice::<Fields>(bytes) {
        Ok(fields) if fields.event_id != *event => {
            Found::Bad(format!("it names itself {}", fields.event_id))
        }
        Ok(fields) => Found::Message(Box::new(fields.into_item())),
        Err(error) => Found::Bad(error.to_string()),
    }
}

/// The bytes of a message with another text; fields that are not known here stay.
pub(super) fn with_text(bytes: &[u8], text: &str) -> serde_json::Result<Vec<u8>> {
    let mut fields: BTreeMap<String, Box<RawValue>> = serde_json::from_slice(bytes)?;
    fields.insert("text".to_owned(), serde_json::value::to_raw_value(text)?);
    serde_json::to_vec(&fields)
}

/// What was claimed together.
#[derive(Serialize, Deserialize)]
pub(super) struct Claim {
    events: Vec<Box<RawValue>>,
}

/// One message of a claim, with its bytes as they were.
pub(super) struct Event {
    pub(super) item: Item,
    pub(super) raw: Box<RawValue>,
}

impl Claim {
    /// A claim of the message with these bytes.
    pub(super) fn of(bytes: Vec<u8>) -> serde_json::Result<Self> {
        let text = String::from_utf8(bytes).map_err(serde::de::Error::custom)?;
        Ok(Self { events: vec![RawValue::from_string(text)?] })
    }

    /// The messages in the file of the claim with this first event, all of them, or why it is no
    /// claim.
    pub(super) fn decode(first: &EventId, bytes: &[u8]) -> Result<Vec<Event>, String> {
        if bytes.len() > CLAIM_BYTES_MAX {
            return Err(format!("it is larger than {CLAIM_BYTES_MAX} bytes"));
        }
        let claim: Self = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        let mut before: Option<EventId> = None;
        let events = claim.events.into_iter().map(|raw| {
            let fields: Fields =
                serde_json::from_str(raw.get()).map_err(|error| error.to_string())?;
            let event = &fields.event_id;
            // Paths are made of the ids. Those in front may have gone; the name stays.
            let in_order = before.as_ref().is_none_or(|before| before < event) && first <= event;
            if !(event.is_well_formed() && in_order) {
                return Err(format!("what it holds names itself {event}"));
            }
            before = Some(event.clone());
            Ok(Event { item: fields.into_item(), raw })
        });
        events.collect()
    }
}

impl FromIterator<Event> for Claim {
    fn from_iter<T: IntoIterator<Item = Event>>(events: T) -> Self {
        Self { events: events.into_iter().map(|event| event.raw).collect() }
    }
}

impl Fields {
    fn into_item(self) -> Item {
        let message = UserMessage::with_attachments(&self.text, self.attachments);
        let provider_options = self.provider_options;
        Item {
            id: self.event_id,
            source: match self.source.as_str() {
                TERMINAL => Source::Terminal,
                _ => Source::Other(self.source),
            },
            created_at: self.created_at,
            message: Arc::new(UserMessage { provider_options, ..message }),
            config: self.config.map(Config::into_config),
        }
    }
}

impl Config {
    fn of(config: &SendMessageConfig) -> Self {
        Self {
            agent: config.agent.clone(),
            auto_permission: config.permission == PermissionMode::Auto,
            human_available: config.human == Human::Available,
            max_model_calls: config.max_model_calls,
            reasoning_effort: config.reasoning_effort,
        }
    }

    fn into_config(self) -> SendMessageConfig {
        SendMessageConfig {
            agent: self.agent,
            permission: PermissionMode::of(self.auto_permission),
            human: Human::of(self.human_available),
            max_model_calls: self.max_model_calls,
            reasoning_effort: self.reasoning_effort,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::message::Attachment;

    const ID: &str = "019a7133-74c8-7000-8000-000000000000";

    fn check(bytes: &[u8]) -> Item {
        match decode(&EventId::from(ID), bytes) {
            Found::Message(item) => *item,
            Found::Other => panic!("another kind"),
            Found::Bad(why) => panic!("{why}"),
        }
    }

    #[test]
    fn a_message_is_written_with_all_that_goes_with_it_and_read_back() {
        let attachment = UserPart::Attachment(Attachment {
            path: "/work/a.png".to_owned(),
            filename: "a.png".to_owned(),
            mime_type: "image/png".to_owned(),
            size: None,
            line_number: None,
        });
        let item = Item {
            id: EventId::from(ID),
            source: Source::Terminal,
            created_at: Timestamp::from_ms(1_762_835_789_007),
            message: Arc::new(UserMessage::with_attachments("look", vec![attachment])),
            config: Some(SendMessageConfig {
                permission: PermissionMode::Auto,
                ..SendMessageConfig::of(RequestedAgent::by_id("assistant"))
            }),
        };
        let bytes = encode(&item).expect("JSON");
        let expected = format!(
            r#"{{"event_id":"{ID}","kind":"message","source":"terminal","created_at":"2025-11-11T04:36:29.007Z","text":"look","attachments":[{{"type":"attachment","path":"/work/a.png","filename":"a.png","mimeType":"image/png"}}],"config":{{"agent":{{"agentId":"assistant"}},"autoPermission":true,"humanAvailable":true}}}}"#
        );
        assert_eq!(String::from_utf8_lossy(&bytes), expected);
        assert_eq!(check(&bytes), item);
    }

    #[test]
    fn an_edit_keeps_what_it_does_not_know() {
        let bytes = format!(
            r#"{{"text":"a","event_id":"{ID}","kind":"message","source":"cron","created_at":"2025-11-11T04:36:29Z","x":1.50}}"#
        );
        let edited = with_text(bytes.as_bytes(), "b\n").expect("JSON");
        assert!(String::from_utf8_lossy(&edited).contains(r#""x":1.50"#));
        let item = check(&edited);
        assert_eq!(item.message.plain_text(), "b\n");
        assert_eq!((item.source, item.config), (Source::Other("cron".to_owned()), None));
    }

    #[test]
    fn what_is_no_message_is_told_apart_from_what_is_no_item() {
        let event = EventId::from(ID);
        assert!(matches!(decode(&event, br#"{"kind":"stop"}"#), Found::Other));
        for bad in ["", "[]", "{}", r#"{"kind":"message"}"#] {
            assert!(matches!(decode(&event, bad.as_bytes()), Found::Bad(_)), "{bad:?}");
        }
        let large = format!(r#"{{"kind":"stop","x":"{}"}}"#, "x".repeat(ITEM_BYTES_MAX));
        assert!(matches!(decode(&event, large.as_bytes()), Found::Bad(_)));
    }
}
