//! The circumstances of a message: when it was sent, from which folder, and the name under which it
//! waited.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use crate::base::clock::Timestamp;
use crate::base::id::EventId;
use crate::domain::json::Json;
use crate::domain::message::UserMessage;
use crate::sessions::waiting::Item;

/// `message` with the time (RFC 3339, with the offset of the zone) and the folder; one that has
/// circumstances already keeps them.
#[must_use]
pub(crate) fn with_circumstances(
    message: Arc<UserMessage>,
    now: Timestamp,
    zone: &TimeZone,
    folder: &Path,
) -> Arc<UserMessage> {
    if message.user_message_context.is_some() {
        return message;
    }
    placed(message, &Context::of(now, zone, folder))
}

/// A message that waited, as a turn gets it: with the circumstances of its delivery, and its name.
pub(super) fn delivered(
    item: &Item,
    now: Timestamp,
    zone: &TimeZone,
    folder: &Path,
) -> Arc<UserMessage> {
    let event_ids = vec![item.id.clone()];
    let context = Context { event_ids, ..Context::of(now, zone, folder) };
    placed(Arc::clone(&item.message), &context)
}

/// The names under which what a message carries had waited.
pub(crate) fn event_ids(message: &UserMessage) -> Vec<EventId> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Known {
        event_ids: Vec<EventId>,
    }
    let context = message.user_message_context.as_ref();
    context.and_then(|it| it.read::<Known>().ok()).map(|it| it.event_ids).unwrap_or_default()
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Context<'a> {
    current_date_time: String,
    cwd: Cow<'a, str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    event_ids: Vec<EventId>,
}

impl<'a> Context<'a> {
    fn of(now: Timestamp, zone: &TimeZone, folder: &'a Path) -> Self {
        let (current_date_time, cwd) = (local(now, zone), folder.to_string_lossy());
        Self { current_date_time, cwd, event_ids: Vec::new() }
    }
}

fn placed(message: Arc<UserMessage>, context: &Context<'_>) -> Arc<UserMessage> {
    let mut message = Arc::unwrap_or_clone(message);
    message.user_message_context = Some(Json::of(context));
    Arc::new(message)
}

fn local(now: Timestamp, zone: &TimeZone) -> String {
    // A moment that no calendar has is written as the log writes it.
    jiff::Timestamp::from_millisecond(now.ms()).map_or_else(
        |_| now.to_string(),
        |moment| {
            moment.to_zoned_datetime(zone.clone()).strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sessions::waiting::Source;

    #[test]
    fn a_message_says_when_and_where_unless_it_does_already() {
        let (now, zone) =
            (Timestamp::from_ms(1_762_835_789_007), TimeZone::fixed(jiff::tz::offset(-3)));
        let said = |message| with_circumstances(message, now, &zone, Path::new("/work"));
        let message = said(Arc::new(UserMessage::text("hello")));
        let context = message.user_message_context.as_ref().map(Json::get);
        let expected = r#"{"currentDateTime":"2025-11-11T01:36:29-03:00","cwd":"/work"}"#;
        assert_eq!(context, Some(expected));
        let later = Timestamp::from_ms(0);
        let again = with_circumstances(Arc::clone(&message), later, &zone, Path::new("/"));
        assert_eq!(again, message);
    }

    #[test]
    fn a_message_that_waited_says_when_it_was_delivered_and_its_name() {
        let item = Item {
            id: EventId::from("e1"),
            source: Source::Terminal,
            created_at: Timestamp::from_ms(0),
            message: Arc::new(UserMessage::text("hello")),
            config: None,
        };
        let now = Timestamp::from_ms(1_762_835_789_007);
        let message = delivered(&item, now, &TimeZone::UTC, Path::new("/work"));
        let context = message.user_message_context.as_ref().map(Json::get);
        let expected =
            r#"{"currentDateTime":"2025-11-11T04:36:29+00:00","cwd":"/work","eventIds":["e1"]}"#;
        assert_eq!(context, Some(expected));
        assert_eq!(event_ids(&message), [item.id]);
        assert_eq!(event_ids(&UserMessage::text("hello")), []);
    }
}
