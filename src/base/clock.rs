//! Time and chance as arguments, so that whoever uses them can be run twice with the same result.

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::str::FromStr;
use std::time::{Duration, Instant};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A moment in UTC, in milliseconds since 1970. Written as RFC 3339 with three decimals and `Z`;
/// any RFC 3339 text is read and cut to milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

/// A text that is no RFC 3339 moment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an RFC 3339 time: {0:?}")]
pub struct MalformedTimestamp(String);

/// The last moment that can be written: a day before the end of the year 9999, where every zone
/// still has four digits for the year.
const MS_MAX: i64 = 253_402_207_199_999;

impl Timestamp {
    /// A moment by its milliseconds since 1970, held inside the years 1970 to 9999.
    #[must_use]
    pub fn from_ms(ms: i64) -> Self {
        Self(ms.clamp(0, MS_MAX))
    }

    /// The moment that a date and a time of day in UTC name; `None` if there is none.
    pub(super) fn of_utc(civil: &Civil) -> Option<Self> {
        let [month, day, hour, minute, second] = civil.rest.map(|part| i8::try_from(part).ok());
        let at = jiff::civil::DateTime::new(
            civil.year.try_into().ok()?,
            month?,
            day?,
            hour?,
            minute?,
            second?,
            civil.milliseconds.checked_mul(1_000_000)?.try_into().ok()?,
        );
        let at = jiff::tz::Offset::UTC.to_timestamp(at.ok()?).ok()?;
        Some(Self(at.as_millisecond()))
    }

    /// Milliseconds since 1970.
    #[must_use]
    pub fn ms(self) -> i64 {
        self.0
    }

    /// The moment that lies `span` later.
    #[must_use]
    pub fn after(self, span: Duration) -> Self {
        let ms = i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
        Self::from_ms(self.0.saturating_add(ms))
    }

    /// How long after `earlier` this is; zero if it is not.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0 - earlier.0).unwrap_or(0))
    }
}

/// A date and a time of day, by their digits alone.
pub(super) struct Civil {
    pub(super) year: u32,
    /// Month, day, hour, minute, second.
    pub(super) rest: [u32; 5],
    pub(super) milliseconds: u32,
}

impl Civil {
    /// Reads a text that is spelled as `picture` shows it: every `d` is a digit, all else is itself. The
    /// numbers are, in this order, those of a date and a time of day, and perhaps milliseconds.
    pub(super) fn pictured(text: &str, picture: &str) -> Option<Self> {
        if text.len() != picture.len() {
            return None;
        }
        let (mut numbers, mut at, mut inside) = ([0_u32; 7], 0, false);
        for (byte, wanted) in text.bytes().zip(picture.bytes()) {
            if wanted != b'd' {
                if byte != wanted {
                    return None;
                }
                at += usize::from(inside);
                inside = false;
            } else if byte.is_ascii_digit() {
                let number = numbers.get_mut(at)?;
                *number = *number * 10 + u32::from(byte - b'0');
                inside = true;
            } else {
                return None;
            }
        }
        let [year, month, day, hour, minute, second, milliseconds] = numbers;
        Some(Self { year, rest: [month, day, hour, minute, second], milliseconds })
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = jiff::Timestamp::from_millisecond(self.0).unwrap_or_default();
        write!(f, "{at:.3}")
    }
}

impl FromStr for Timestamp {
    type Err = MalformedTimestamp;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let malformed = || MalformedTimestamp(text.to_owned());
        // As we write it, which is nearly always.
        if let Some(civil) = Civil::pictured(text, "dddd-dd-ddTdd:dd:dd.dddZ")
            && let Some(at) = Self::of_utc(&civil)
        {
            return Ok(at);
        }
        // The parser takes other spellings of ISO 8601 too.
        let is_dated = text.as_bytes().get(..11).is_some_and(|date| {
            date.iter().zip(b"dddd-dd-ddT").all(|(byte, wanted)| match wanted {
                b'd' => byte.is_ascii_digit(),
                _ => byte.eq_ignore_ascii_case(wanted),
            })
        });
        if !is_dated || text.contains('[') {
            return Err(malformed());
        }
        let at: jiff::Timestamp = text.parse().map_err(|_| malformed())?;
        Ok(Self(at.as_millisecond()))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl de::Visitor<'_> for Text {
            type Value = Timestamp;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an RFC 3339 time")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Timestamp, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Text)
    }
}

/// Where the time comes from.
pub trait Clock: Send + Sync {
    /// The wall clock. It may jump, forwards and backwards.
    fn now(&self) -> Timestamp;
    /// Time since some fixed start; never goes backwards.
    fn elapsed(&self) -> Duration;
}

/// Where chance comes from (jitter, names of temporary files).
pub trait Entropy: Send + Sync {
    /// Sixty-four bits that nobody can foretell.
    fn bits(&self) -> u64;
}

/// The clock and the chance of the machine.
#[derive(Debug)]
pub struct System {
    start: Instant,
}

impl System {
    /// Starts counting [`Clock::elapsed`] now.
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the machine's clocks")]
    #[must_use]
    pub fn new() -> Self {
        Self { start: Instant::now() }
    }
}

impl Default for System {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for System {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the machine's clocks")]
    fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap_or(Duration::ZERO);
        Timestamp::from_ms(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }

    fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }
}

impl Entropy for System {
    fn bits(&self) -> u64 {
        // Each RandomState has keys of its own from the system's random source.
        RandomState::new().build_hasher().finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_written_with_milliseconds_and_read_back() {
        let at = Timestamp::from_ms(1_762_835_789_007);
        assert_eq!(at.to_string(), "2025-11-11T04:36:29.007Z");
        assert_eq!(at.to_string().parse(), Ok(at));
        assert_eq!(Timestamp::from_ms(0).to_string(), "1970-01-01T00:00:00.000Z");
    }

    #[test]
    fn other_spellings_of_a_moment_are_read() {
        let at = Timestamp::from_ms(1_762_835_789_000);
        for text in
            ["2025-11-11T04:36:29Z", "2025-11-11T05:36:29+01:00", "2025-11-11T04:36:29.0004Z"]
        {
            assert_eq!(text.parse(), Ok(at), "{text}");
        }
        for text in
            ["yesterday", "2025-11-11 04:36:29Z", "20251111T043629Z", "-002025-11-11T04:36:29Z"]
        {
            assert!(text.parse::<Timestamp>().is_err(), "{text}");
        }
        assert!("2025-11-11T04:36:29Z[UTC]".parse::<Timestamp>().is_err());
    }

    #[test]
    fn our_own_spelling_means_what_another_of_the_same_moment_means() {
        for stem in [
            "0001-01-01T00:00:00.000",
            "1969-12-31T23:59:59.999",
            "2024-02-29T12:00:00.001",
            "2025-11-11T04:36:29.999",
            "2025-06-30T23:59:60.000",
        ] {
            let ours: Timestamp = format!("{stem}Z").parse().expect("ours");
            let other: Timestamp = format!("{stem}+00:00").parse().expect("another");
            assert_eq!(ours, other, "{stem}");
        }
        for stem in
            ["2025-02-29T12:00:00.000", "2025-13-01T12:00:00.000", "2025-01-01T24:00:00.000"]
        {
            let ours = format!("{stem}Z").parse::<Timestamp>();
            assert_eq!(ours.is_err(), format!("{stem}+00:00").parse::<Timestamp>().is_err());
            assert!(ours.is_err(), "{stem}");
        }
    }

    #[test]
    fn every_moment_can_be_written_and_read() {
        for ms in [i64::MIN, 0, i64::MAX] {
            let at = Timestamp::from_ms(ms);
            assert_eq!(at.to_string().parse(), Ok(at));
        }
    }
}
