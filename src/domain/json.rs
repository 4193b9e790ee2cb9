//! JSON that must come back byte for byte.

mod shape;

use std::fmt;
use std::sync::Arc;

use serde::de::{self, DeserializeOwned};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

pub(crate) use self::shape::{
    Derived, Gathered, Tagged, Word, no_fields, object, strict, tagged, tagged_struct, word,
};
pub use self::shape::{nullable, present};

/// The deepest nesting of a value that is taken in from outside: well below what readers of a log
/// can take, who count the levels of the event around it too.
pub const DEPTH_MAX: usize = 64;
/// The deepest nesting of a value that is read from a file: the parser's own limit.
const READ_DEPTH_MAX: usize = 127;
/// Integers beyond this lose digits in readers that have only floating point (2^53).
const INTEGER_MAX: u64 = 1 << 53;

/// Any JSON value, kept as the text it came in, without the white space between its tokens:
/// numbers, strings and escapes stay as they were. Cheap to clone.
#[derive(Clone)]
pub struct Json(Arc<RawValue>);

/// Why a text is not taken in as a [`Json`].
#[derive(Debug, thiserror::Error)]
pub enum JsonError {
    /// It is no JSON.
    #[error("not JSON: {0}")]
    Syntax(#[from] serde_json::Error),
    /// It is nested too deeply.
    #[error("nested deeper than {0} levels")]
    Depth(usize),
    /// A string in it holds half of a surrogate pair, which no text can be.
    #[error("a string holds a lone surrogate")]
    Surrogate,
}

impl Json {
    /// Takes a text in from outside: from a model, a tool or a person.
    ///
    /// # Errors
    /// [`JsonError`]: no JSON, deeper than [`DEPTH_MAX`], or a lone surrogate.
    pub fn parse(text: &str) -> Result<Self, JsonError> {
        let raw: Box<RawValue> = serde_json::from_str(text)?;
        Self::checked(raw, DEPTH_MAX)
    }

    /// A value of our own.
    #[must_use]
    pub fn from_value(value: &Value) -> Self {
        Self::of(value)
    }

    /// The JSON of anything that can be written as JSON with text keys; `null` for what cannot.
    #[must_use]
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Self {
        let raw = serde_json::value::to_raw_value(value);
        Self(raw.map_or_else(|_| Arc::from(RawValue::NULL.to_owned()), Arc::from))
    }

    /// The JSON string of a text.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self::of(text)
    }

    /// The JSON text.
    #[must_use]
    pub fn get(&self) -> &str {
        self.0.get()
    }

    /// The value behind the text. Integers that fit in 64 bits keep all their digits; `null` if a
    /// number in it is beyond what floating point holds.
    #[must_use]
    pub fn to_value(&self) -> Value {
        serde_json::from_str(self.get()).unwrap_or(Value::Null)
    }

    /// Reads the value as a type of ours.
    ///
    /// # Errors
    /// What serde says when the value has another shape.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.get())
    }

    /// The text of a JSON string; `None` for every other value.
    #[must_use]
    pub fn as_text(&self) -> Option<String> {
        if self.get().starts_with('"') { serde_json::from_str(self.get()).ok() } else { None }
    }

    /// How a value is sent to a model: its string, else its compact JSON
    /// (`design/turn-runtime.md` section 4, encoding).
    #[must_use]
    pub fn to_model_text(&self) -> String {
        self.as_text().unwrap_or_else(|| self.get().to_owned())
    }

    /// The same value with integers beyond 2^53 as strings, so that no reader rounds them. All else
    /// keeps its spelling.
    #[must_use]
    pub fn with_safe_integers(self) -> Self {
        let mut quoted = String::with_capacity(self.get().len());
        let mut rest = self.get();
        while let Some(at) = rest.find(|c: char| matches!(c, '"' | '-' | '0'..='9')) {
            let (before, from) = rest.split_at(at);
            let (token, after) = from.split_at(token_len(from));
            let quote = if is_unsafe_integer(token) { "\"" } else { "" };
            quoted.extend([before, quote, token, quote]);
            rest = after;
        }
        quoted.push_str(rest);
        if quoted.len() == self.get().len() {
            return self;
        }
        RawValue::from_string(quoted).map_or(self, |raw| Self(Arc::from(raw)))
    }

    fn checked(raw: Box<RawValue>, depth_max: usize) -> Result<Self, JsonError> {
        if has_lone_surrogate(raw.get()) {
            return Err(JsonError::Surrogate);
        }
        // A string, which most long values are, has no levels and no tokens to look between.
        if !raw.get().starts_with('"') {
            let found = scan(raw.get().as_bytes());
            if found.depth > depth_max {
                return Err(JsonError::Depth(depth_max));
            }
            if found.spaces {
                return Ok(Self(Arc::from(RawValue::from_string(without_spaces(raw.get()))?)));
            }
        }
        Ok(Self(Arc::from(raw)))
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Eq for Json {}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Self::checked(raw, READ_DEPTH_MAX).map_err(de::Error::custom)
    }
}

/// The length of the string or number that `json` begins with.
fn token_len(json: &str) -> usize {
    match json.strip_prefix('"') {
        Some(string) => json.len() - after_string(string.as_bytes()).len(),
        None => json
            .find(|c: char| !matches!(c, '-' | '+' | '.' | 'e' | 'E' | '0'..='9'))
            .unwrap_or(json.len()),
    }
}

fn is_unsafe_integer(token: &str) -> bool {
    let digits = token.strip_prefix('-').unwrap_or(token);
    let is_integer = digits.bytes().all(|byte| byte.is_ascii_digit());
    is_integer && digits.parse::<u64>().map_or(true, |integer| integer > INTEGER_MAX)
}

struct Scan {
    depth: usize,
    spaces: bool,
}

/// Walks over valid JSON once: its deepest level, and whether white space stands between tokens.
fn scan(json: &[u8]) -> Scan {
    let (mut level, mut found) = (0_usize, Scan { depth: 0, spaces: false });
    let mut rest = json;
    while let [byte, tail @ ..] = rest {
        rest = tail;
        match byte {
            b'"' => rest = after_string(tail),
            b'{' | b'[' => {
                level += 1;
                found.depth = found.depth.max(level);
            }
            b'}' | b']' => level = level.saturating_sub(1),
            b' ' | b'\t' | b'\n' | b'\r' => found.spaces = true,
            _ => {}
        }
    }
    found
}

/// What follows the string whose opening quote has just been read.
fn after_string(mut rest: &[u8]) -> &[u8] {
    /// Up to here a plain loop finds the end sooner than a vector search is set up.
    const SHORT: usize = 16;
    loop {
        let is_end = |byte: &u8| matches!(byte, b'"' | b'\\');
        let near = rest.iter().take(SHORT).position(is_end);
        let Some(at) = near.or_else(|| memchr::memchr2(b'"', b'\\', rest)) else {
            return &[];
        };
        let escape = rest.get(at) == Some(&b'\\');
        rest = rest.get(at + 1 + usize::from(escape)..).unwrap_or_default();
        if !escape {
            return rest;
        }
    }
}

fn without_spaces(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = rest.find(['"', ' ', '\t', '\n', '\r']) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let tail = from.get(1..).unwrap_or_default();
        if from.starts_with('"') {
            let end = from.len() - after_string(tail.as_bytes()).len();
            let (string, after) = from.split_at(end);
            out.push_str(string);
            rest = after;
        } else {
            rest = tail;
        }
    }
    out.push_str(rest);
    out
}

/// Whether valid JSON holds an escape for half of a surrogate pair without its other half.
#[must_use]
pub fn has_lone_surrogate(json: &str) -> bool {
    // Most lines hold no escape at all, and the search for two letters is dear to set up.
    let Some(first) = memchr::memchr(b'\\', json.as_bytes()) else { return false };
    let from = json.as_bytes().get(first..).unwrap_or_default();
    let mut low_is_due_at = None;
    memchr::memmem::find_iter(from, b"\\u").map(|at| first + at).any(|at| {
        let before = json.as_bytes().get(..at).unwrap_or_default();
        let slashes = before.iter().rev().take_while(|&&byte| byte == b'\\').count();
        if slashes % 2 == 1 {
            return false; // an escaped backslash before a plain `u`
        }
        let next = at + 6;
        match code_at(json, at) {
            Some(0xD800..=0xDBFF) => {
                low_is_due_at = Some(next);
                !matches!(code_at(json, next), Some(0xDC00..=0xDFFF))
            }
            Some(0xDC00..=0xDFFF) => low_is_due_at != Some(at),
            Some(_) | None => false,
        }
    })
}

/// The code of the escape that stands here, if one does.
fn code_at(json: &str, at: usize) -> Option<u16> {
    let digits = json.get(at..)?.strip_prefix("\\u")?.get(..4)?;
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check_kept(text: &str, kept: &str) {
        assert_eq!(Json::parse(text).expect("valid").get(), kept);
    }

    #[test]
    fn only_the_space_between_tokens_goes() {
        check_kept(
            r#" { "a" : [ 1.50 , "x \" y" , "\u0041" ] } "#,
            r#"{"a":[1.50,"x \" y","\u0041"]}"#,
        );
        check_kept("12345678901234567890123", "12345678901234567890123");
        check_kept("1e400", "1e400");
    }

    #[test]
    fn what_is_too_deep_or_half_a_pair_is_refused() {
        let deep = "[".repeat(DEPTH_MAX + 1) + &"]".repeat(DEPTH_MAX + 1);
        assert!(matches!(Json::parse(&deep), Err(JsonError::Depth(DEPTH_MAX))));
        let allowed = "[".repeat(DEPTH_MAX) + &"]".repeat(DEPTH_MAX);
        assert!(Json::parse(&allowed).is_ok());
        for half in [r#""\ud83d""#, r#"{"a":["\ude00"]}"#, r#""\ud83dx\ude00""#, r#"{"\uD800":1}"#]
        {
            assert!(matches!(Json::parse(half), Err(JsonError::Surrogate)), "{half}");
        }
        check_kept(r#""\ud83d\ude00 \\ud83d""#, r#""\ud83d\ude00 \\ud83d""#);
    }

    #[test]
    fn big_integers_become_strings_and_the_rest_stays() {
        let json = Json::parse(
            r#"{"id":9007199254740993,"n":-9007199254740993,"f":1.0,"ok":9007199254740992}"#,
        );
        let safe = json.expect("valid").with_safe_integers();
        assert_eq!(
            safe.get(),
            r#"{"id":"9007199254740993","n":"-9007199254740993","f":1.0,"ok":9007199254740992}"#
        );
        let untouched = Json::parse("1.50").expect("valid").with_safe_integers();
        assert_eq!(untouched.get(), "1.50");
    }

    #[test]
    fn quoting_big_integers_changes_nothing_else() {
        let json = r#"[12345678901234567890123,-98765432109876543210,{"n":1.50,"n":1e400},"\"9007199254740993",9007199254740993.0,-9007199254740992]"#;
        let safe = Json::parse(json).expect("valid").with_safe_integers();
        assert_eq!(
            safe.get(),
            r#"["12345678901234567890123","-98765432109876543210",{"n":1.50,"n":1e400},"\"9007199254740993",9007199254740993.0,-9007199254740992]"#
        );
    }

    #[test]
    fn a_model_gets_the_string_or_the_compact_json() {
        assert_eq!(Json::text("a\nb").to_model_text(), "a\nb");
        assert_eq!(Json::parse("{ \"b\": 1 }").expect("valid").to_model_text(), r#"{"b":1}"#);
    }

    proptest! {
        #[test]
        fn compacting_keeps_the_value(value in any_value(), pretty in any::<bool>()) {
            let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
            let json = Json::parse(&text.expect("writes")).expect("reads");
            prop_assert_eq!(json.to_value(), value.clone());
            prop_assert_eq!(json.get(), serde_json::to_string(&value).expect("writes"));
        }
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            ".*".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::vec((".*", inner), 0..4)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }
}
