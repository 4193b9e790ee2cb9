//! Ids: names of turns, sessions, tool calls and waiting messages, and the generators of new ones.

mod event;

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::base::clock::{Civil, Clock, Timestamp};

pub use event::EventIds;

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The id as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(Arc::from(text))
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(Arc::from(text))
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }
    };
}

text_id! {
    /// The id of a turn, as a log or a person wrote it. Its form is checked before a path is made
    /// of it ([`IdForm`]), not when it is read: a foreign log may name anything.
    TurnId
}
text_id! {
    /// The id of a session; see [`TurnId`] on its form.
    SessionId
}
text_id! {
    /// The id of a tool call. Ours are `<turnId>_<n>`; other implementations may use any text.
    ToolCallId
}

text_id! {
    /// The id of something that comes into a session from outside, such as a message that waits: a
    /// UUID of version 7 (`design/mailbox.md`). Its form is checked before a path is made of it.
    EventId
}

impl ToolCallId {
    /// The id that the loop gives to the `number`th call (from 1) of a turn.
    #[must_use]
    pub fn of_turn(turn: &TurnId, number: usize) -> Self {
        Self::from(format!("{turn}_{number}"))
    }
}

/// A text that has not the form of an id of ours.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a valid id: {text:?} ({why}); ids look like 2025-11-11T04-36-29Z-0001234-000")]
pub struct MalformedId {
    /// What was given, cut to a readable length.
    pub text: String,
    /// Which part of the form it breaks.
    pub why: &'static str,
}

/// The checked parts of an id: `YYYY-MM-DDTHH-MM-SSZ-<pid, at least 7 digits>-<sequence, 3 digits>`
/// (`design/turn-runtime.md` section 2). Only this may be made into a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IdForm {
    /// The second in which the id was made.
    pub second: Timestamp,
}

/// Longer than any id with a process id of 20 digits.
const ID_BYTES_MAX: usize = 48;

impl FromStr for IdForm {
    type Err = MalformedId;

    fn from_str(text: &str) -> Result<Self, MalformedId> {
        let malformed = |why| MalformedId { text: text.chars().take(ID_BYTES_MAX).collect(), why };
        if !text.is_ascii() || text.len() > ID_BYTES_MAX {
            return Err(malformed("wrong length or characters"));
        }
        let (stamp, rest) = text.split_at_checked(20).ok_or_else(|| malformed("too short"))?;
        let civil = Civil::pictured(stamp, "dddd-dd-ddTdd-dd-ddZ")
            .ok_or_else(|| malformed("no UTC second"))?;
        let mut parts = rest.strip_prefix('-').unwrap_or_default().split('-');
        let (pid, sequence) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""));
        if parts.next().is_some() || pid.len() < 7 || !all_digits(pid) {
            return Err(malformed("no process id of at least 7 digits"));
        }
        if sequence.len() != 3 || !all_digits(sequence) {
            return Err(malformed("no sequence of 3 digits"));
        }
        let second = Timestamp::of_utc(&civil);
        Ok(Self { second: second.ok_or_else(|| malformed("an impossible date or time"))? })
    }
}

fn all_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Makes ids that sort by time and never repeat or go backwards within a process.
pub trait IdSource: Send + Sync {
    /// The text of the next id, for a turn or a session.
    fn next(&self) -> String;
}

/// The ids of this process: its clock, its process id, a sequence within the second.
pub struct Ids {
    clock: Arc<dyn Clock>,
    process: u32,
    last: Mutex<(i64, u16)>,
}

/// The sequence has three digits; after it the next second is taken.
const SEQUENCE_MAX: u16 = 999;

impl Ids {
    /// Ids stamped with `clock` for the process `process`.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>, process: u32) -> Self {
        Self { clock, process, last: Mutex::new((i64::MIN, 0)) }
    }
}

impl IdSource for Ids {
    fn next(&self) -> String {
        let now = self.clock.now().ms().div_euclid(1000);
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        *last = match *last {
            (second, _) if now > second => (now, 0),
            (second, SEQUENCE_MAX) => (second + 1, 0),
            (second, sequence) => (second, sequence + 1),
        };
        let stamp = Timestamp::from_ms(last.0.saturating_mul(1000)).to_string();
        let stamp = stamp.get(..19).unwrap_or_default().replace(':', "-");
        format!("{stamp}Z-{:07}-{:03}", self.process, last.1)
    }
}

impl fmt::Debug for Ids {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ids").field("process", &self.process).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicI64, Ordering};
    use std::time::Duration;

    #[derive(Default)]
    struct Hand(AtomicI64);
    impl Clock for Hand {
        fn now(&self) -> Timestamp {
            Timestamp::from_ms(self.0.load(Ordering::Relaxed))
        }
        fn elapsed(&self) -> Duration {
            Duration::ZERO
        }
    }

    fn check_refused(text: &str) {
        assert!(text.parse::<IdForm>().is_err(), "{text:?} must be refused");
    }

    #[test]
    fn an_id_gives_its_second() {
        let form: IdForm = "2025-11-11T04-36-29Z-0001234-000".parse().expect("a good id");
        assert_eq!(form.second.to_string(), "2025-11-11T04:36:29.000Z");
        assert!("2025-11-11T04-36-29Z-12345678901-999".parse::<IdForm>().is_ok());
    }

    #[test]
    fn anything_that_is_not_an_id_is_refused() {
        for text in [
            "",
            "..",
            "2025-11-11T04-36-29Z-0001234-0000",
            "2025-11-11T04-36-29Z-123456-000",
            "2025-02-30T04-36-29Z-0001234-000",
            "2025-11-11T25-36-29Z-0001234-000",
            "2025-11-11T04:36:29Z-0001234-000",
            "../5-11-11T04-36-29Z-0001234-000",
            "2025-11-11T04-36-29Z-0001234-000/..",
            "2025-11-11T04-36-29Z-000123é-000",
            "2025-11-11T04-36-29Z--0001234-000",
            "2025-11-11T04-36-29Z-0001234-000-1",
        ] {
            check_refused(text);
        }
        check_refused(&"2".repeat(300));
    }

    #[test]
    fn ids_go_on_when_the_clock_goes_back_or_the_sequence_ends() {
        let clock = Arc::new(Hand::default());
        clock.0.store(1_762_835_789_000, Ordering::Relaxed);
        let ids = Ids::new(Arc::<Hand>::clone(&clock), 1234);
        let mut made = vec![ids.next()];
        assert_eq!(made, ["2025-11-11T04-36-29Z-0001234-000"]);
        clock.0.store(1_762_835_700_000, Ordering::Relaxed);
        made.extend((0..1_500).map(|_| ids.next()));
        assert_eq!(made.last().map(String::as_str), Some("2025-11-11T04-36-30Z-0001234-500"));
        assert!(made.is_sorted_by(|a, b| a < b));
        assert!(made.iter().all(|id| id.parse::<IdForm>().is_ok()));
    }
}
