//! The envelope that turn and session events share, and how an event becomes a line and a line an
//! event.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{self, DeserializeSeed as _, MapAccess};
use serde::{Deserialize, Deserializer, Serialize};

use crate::base::clock::Timestamp;
use crate::domain::json::{Gathered, Word, has_lone_surrogate};

/// Something that happened: to what, when, and what it was. One line of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event<F: Fact> {
    /// The turn or session that it belongs to.
    pub id: F::Id,
    /// When it was recorded.
    pub ts: Timestamp,
    /// What happened.
    pub fact: F,
}

/// The kinds of facts that one sort of log holds.
pub trait Fact: Sized {
    /// The id of what the log is about.
    type Id: for<'de> Deserialize<'de> + fmt::Display;

    /// The JSON name of the id field.
    const ID_FIELD: &'static str;

    /// The value of the field `type`.
    fn kind(&self) -> &'static str;

    /// Reads the fields of a fact of this kind; `None` if the kind is unknown.
    ///
    /// # Errors
    /// What is wrong with the fields.
    fn from_fields<'de, D: Deserializer<'de>>(
        kind: &str,
        fields: D,
    ) -> Result<Option<Self>, D::Error>;

    /// The fields as a JSON object, without the envelope.
    ///
    /// # Errors
    /// Only if a value cannot be JSON, which none of the kinds holds.
    fn to_fields(&self) -> serde_json::Result<String>;

    /// The schema version that the fact states and this program does not read, if so.
    fn unsupported_version(&self) -> Option<u64>;
}

/// Why a line is no event. The place (file and line number) is added by whoever read it.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// It is no JSON object, or a field is missing or has the wrong type.
    #[error("{}", cause(.0))]
    Malformed(#[from] serde_json::Error),
    /// It is no text.
    #[error("not UTF-8")]
    Encoding(#[from] std::str::Utf8Error),
    /// A string in it holds half of a surrogate pair.
    #[error("a string holds a lone surrogate")]
    Surrogate,
    /// A newer program wrote it, or none did.
    #[error("unknown event type {0:?}; a newer version of this program may know it")]
    UnknownType(String),
    /// A newer program wrote it.
    #[error("unsupported schema version {0}; a newer version of this program may read it")]
    UnsupportedVersion(u64),
}

/// What the parser says, without its own count of lines, which would be taken for the log's.
fn cause(error: &serde_json::Error) -> String {
    let told = error.to_string();
    match told.rsplit_once(" at line ") {
        Some((cause, _)) => format!("{cause} at column {}", error.column()),
        None => told,
    }
}

impl<F: Fact> Event<F> {
    /// Reads one line (without its line end).
    ///
    /// # Errors
    /// [`LineError`] says what about the line is not as the contract has it. Unknown extra fields
    /// are no error.
    pub fn parse_line(line: &[u8]) -> Result<Self, LineError> {
        let text = std::str::from_utf8(line)?;
        // Looked for in the whole line: the parser passes over what it skips or keeps as it is.
        if has_lone_surrogate(text) {
            return Err(LineError::Surrogate);
        }
        let mut reader = serde_json::Deserializer::from_str(text);
        let parsed = EventVisitor::<F>(PhantomData).deserialize(&mut reader)?;
        reader.end()?;
        match parsed {
            Parsed::Unknown(kind) => Err(LineError::UnknownType(kind)),
            Parsed::Known(event) => match event.fact.unsupported_version() {
                Some(version) => Err(LineError::UnsupportedVersion(version)),
                None => Ok(event),
            },
        }
    }

    /// The line of this event, without its line end: `type`, the id, `ts`, then the fact's fields
    /// in the order of `design/turn-runtime.md` section 3.
    ///
    /// # Panics
    /// Never on data: every fact is made of values that are JSON.
    #[must_use]
    pub fn to_line(&self) -> String {
        #[expect(clippy::expect_used, reason = "facts hold text, numbers and checked JSON only")]
        let fields = self.fact.to_fields().expect("every fact is JSON");
        let id = serde_json::Value::from(self.id.to_string());
        let mut line =
            format!(r#"{{"type":"{}","{}":{id},"ts":"{}""#, self.fact.kind(), F::ID_FIELD, self.ts);
        match fields.strip_prefix('{') {
            Some("}") | None => line.push('}'),
            Some(rest) => {
                line.push(',');
                line.push_str(rest);
            }
        }
        line
    }
}

enum Parsed<F: Fact> {
    Known(Event<F>),
    Unknown(String),
}

struct EventVisitor<F>(PhantomData<F>);

impl<'de, F: Fact> de::DeserializeSeed<'de> for EventVisitor<F> {
    type Value = Parsed<F>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Parsed<F>, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, F: Fact> de::Visitor<'de> for EventVisitor<F> {
    type Value = Parsed<F>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event, which is a JSON object")
    }

    /// Where the envelope stands first, as we write it, the fields are read straight from the
    /// line; else the line is put in that order first.
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Parsed<F>, A::Error> {
        let mut envelope = Envelope::<'de, F> { kind: None, id: None, ts: None };
        let mut early = Gathered::default();
        while !envelope.is_whole() {
            let Some(Word(key)) = map.next_key()? else {
                return Err(de::Error::missing_field(envelope.missing()));
            };
            if !envelope.take(&key, &mut map)? {
                early.take(&key, &mut map)?;
            }
        }
        if early.is_empty() {
            return envelope.finish(MapAccessDeserializer::new(map));
        }
        let json = early.with_rest(map)?;
        envelope.finish(&mut serde_json::Deserializer::from_str(&json)).map_err(de::Error::custom)
    }
}

struct Envelope<'de, F: Fact> {
    kind: Option<Word<'de>>,
    id: Option<F::Id>,
    ts: Option<Timestamp>,
}

impl<'de, F: Fact> Envelope<'de, F> {
    fn is_whole(&self) -> bool {
        self.kind.is_some() && self.id.is_some() && self.ts.is_some()
    }

    fn missing(&self) -> &'static str {
        match (&self.kind, &self.id) {
            (None, _) => "type",
            (Some(_), None) => F::ID_FIELD,
            (Some(_), Some(_)) => "ts",
        }
    }

    /// Takes the value of `key` if it belongs to the envelope and is the first of its name.
    fn take<A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<bool, A::Error> {
        match key {
            "type" if self.kind.is_none() => self.kind = Some(map.next_value()?),
            "ts" if self.ts.is_none() => self.ts = Some(map.next_value()?),
            key if key == F::ID_FIELD && self.id.is_none() => self.id = Some(map.next_value()?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn finish<'f, D: Deserializer<'f>>(self, fields: D) -> Result<Parsed<F>, D::Error> {
        let Self { kind: Some(Word(kind)), id: Some(id), ts: Some(ts) } = self else {
            return Err(de::Error::missing_field(self.missing()));
        };
        Ok(match F::from_fields(&kind, fields)? {
            Some(fact) => Parsed::Known(Event { id, ts, fact }),
            None => Parsed::Unknown(kind.into_owned()),
        })
    }
}

/// Writes a struct's fields as a JSON object.
pub(crate) fn fields_of<T: Serialize>(fields: &T) -> serde_json::Result<String> {
    serde_json::to_string(fields)
}
