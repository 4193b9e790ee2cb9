//! Values of the configuration that are checked where they are read, so that a mistake is told with
//! its place. What may be a secret is never part of an error.

use std::fmt;
use std::marker::PhantomData;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, de};

use crate::base::secret::Secret;

/// A whole number from `MIN` to `MAX`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
pub struct Whole<const MIN: u64, const MAX: u64>(u64);

impl<const MIN: u64, const MAX: u64> Whole<MIN, MAX> {
    /// The number, held inside the limits.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(if number < MIN {
            MIN
        } else if number > MAX {
            MAX
        } else {
            number
        })
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl<'de, const MIN: u64, const MAX: u64> Deserialize<'de> for Whole<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WholeVisitor)
    }
}

struct WholeVisitor<const MIN: u64, const MAX: u64>;

impl<const MIN: u64, const MAX: u64> de::Visitor<'_> for WholeVisitor<MIN, MAX> {
    type Value = Whole<MIN, MAX>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a whole number from {MIN} to {MAX}")
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Self::Value, E> {
        let inside = u64::try_from(number).ok().filter(|number| (MIN..=MAX).contains(number));
        inside.map(Whole).ok_or_else(|| E::invalid_value(de::Unexpected::Signed(number), &self))
    }
}

/// Reads a table or a list where a person may have put a key by mistake: whatever else stands there is
/// not quoted.
pub(super) fn unquoted<'de, T, D>(deserializer: D, expected: &'static str) -> Result<T, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    deserializer.deserialize_any(UnquotedVisitor { expected, read: PhantomData })
}

struct UnquotedVisitor<T> {
    expected: &'static str,
    read: PhantomData<T>,
}

impl<'de, T: Deserialize<'de>> de::Visitor<'de> for UnquotedVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::deserialize(de::value::MapAccessDeserializer::new(map))
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, list: A) -> Result<T, A::Error> {
        T::deserialize(de::value::SeqAccessDeserializer::new(list))
    }

    fn visit_str<E: de::Error>(self, _text: &str) -> Result<T, E> {
        Err(E::invalid_type(de::Unexpected::Other("a text"), &self))
    }

    fn visit_i64<E: de::Error>(self, _number: i64) -> Result<T, E> {
        Err(E::invalid_type(de::Unexpected::Other("a number"), &self))
    }
}

/// Why a text is not the value that it should be. The text itself is left out: people put keys in
/// the wrong place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not {expected}")]
pub struct Malformed {
    expected: &'static str,
}

impl Malformed {
    /// A text that should have been `expected`, such as "a model".
    #[must_use]
    pub fn new(expected: &'static str) -> Self {
        Self { expected }
    }
}

macro_rules! checked_text {
    ($(#[$doc:meta])* $name:ident: $expected:literal, $check:expr) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
        #[serde(try_from = "String")]
        pub struct $name(String);

        impl $name {
            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = Malformed;

            fn try_from(text: String) -> Result<Self, Malformed> {
                let check: fn(&str) -> bool = $check;
                if check(&text) { Ok(Self(text)) } else { Err(Malformed::new($expected)) }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

checked_text! {
    /// The name of an environment variable.
    VariableName: "the name of an environment variable (letters, digits and _)", |text| {
        !text.starts_with(|first: char| first.is_ascii_digit()) && is_word(text, "_")
    }
}
checked_text! {
    /// The name of a provider, as it stands before the slash of `provider/model`.
    ProviderId: "a name for a provider (letters, digits, -, _ and .)", |text| is_word(text, "-_.")
}
checked_text! {
    /// Another name for a model. It has no slash, so that it is never taken for `provider/model`.
    Alias: "a short name for a model (no slash, no spaces)", |text| {
        !text.is_empty() && !text.contains(|c: char| c == '/' || c.is_whitespace() || c.is_control())
    }
}
checked_text! {
    /// The name of an HTTP header.
    HeaderName: "the name of an HTTP header", |text| is_word(text, "!#$%&'*+-.^_`|~")
}
checked_text! {
    /// Where the paths of a server begin: http or https, with a host, without user, query or
    /// fragment.
    BaseUrl: "a web address such as \"http://127.0.0.1:8080/v1\" (without user, ? or #)", |text| {
        url::Url::parse(text).is_ok_and(|url| {
            ["http", "https"].contains(&url.scheme())
                && url.has_host()
                && url.username().is_empty()
                && url.password().is_none()
                && url.query().is_none()
                && url.fragment().is_none()
        })
    }
}

fn is_word(text: &str, marks: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || marks.contains(c))
}

/// The value of an HTTP header. It may hold a key, so it never prints.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
pub struct HeaderValue(#[schemars(with = "String")] Secret);

impl HeaderValue {
    /// The text, for the place that sends it.
    #[must_use]
    pub fn secret(&self) -> &Secret {
        &self.0
    }
}

impl TryFrom<String> for HeaderValue {
    type Error = Malformed;

    fn try_from(text: String) -> Result<Self, Malformed> {
        let sendable = text.bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~'));
        if sendable {
            Ok(Self(Secret::new(&text)))
        } else {
            Err(Malformed::new("a text that an HTTP header can hold (printable ASCII)"))
        }
    }
}

impl PartialEq for HeaderValue {
    fn eq(&self, other: &Self) -> bool {
        self.0.expose() == other.0.expose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: TryFrom<String>>(good: &[&str], bad: &[&str]) {
        for text in good {
            assert!(T::try_from((*text).to_owned()).is_ok(), "{text:?} is good");
        }
        for text in bad {
            assert!(T::try_from((*text).to_owned()).is_err(), "{text:?} is bad");
        }
    }

    #[test]
    fn texts_are_checked() {
        check::<VariableName>(&["HOME", "_x1"], &["", "1X", "A B", "sk-123", "Ä"]);
        check::<ProviderId>(&["lab", "my.lab-2"], &["", "a/b", "a b", "é"]);
        check::<Alias>(&["work", "schnell-é"], &["", "a/b", "a b", "a\n"]);
        check::<HeaderName>(&["X-Title"], &["", "X Title", "X:", "é"]);
        check::<HeaderValue>(&["", "Bearer x"], &["a\nb", "é", "\u{7f}"]);
        check::<BaseUrl>(
            &["http://127.0.0.1:8123/v1", "https://example.com"],
            &[
                "",
                "localhost:8080",
                "ftp://example.com",
                "http://",
                "https://user:pass@example.com",
                "https://example.com/?key=1",
                "https://example.com/#a",
            ],
        );
    }

    #[test]
    fn a_number_is_held_inside_its_limits() {
        type Few = Whole<1, 5>;
        assert_eq!([0, 3, 9].map(|number| Few::new(number).get()), [1, 3, 5]);
    }

    #[test]
    fn a_header_value_never_prints() {
        let value = HeaderValue::try_from("Bearer sk-123".to_owned()).expect("a good value");
        assert_eq!(format!("{value:?}"), "HeaderValue([secret])");
    }
}
