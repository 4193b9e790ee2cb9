//! The circumstances of a message: when it was sent, and from which folder.

use std::path::Path;
use std::sync::Arc;

use jiff::tz::TimeZone;
use serde_json::json;

use crate::base::clock::Timestamp;
use crate::domain::json::Json;
use crate::domain::message::UserMessage;

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
    let context = json!({"currentDateTime": local(now, zone), "cwd": folder.to_string_lossy()});
    let mut message = Arc::unwrap_or_clone(message);
    message.user_message_context = Some(Json::of(&context));
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
}
