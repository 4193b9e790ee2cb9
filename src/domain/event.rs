//! The envelope that turn and session events share, and how an event becomes a line and a line an
//! event.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{self, DeserializeSeed as _, MapAccess};
use serde::{Deserialize, Deserializer, Serialize};

use crate::base::clock::Timestamp;
use crate::domain::json::has_lone_surrogate;
use crate::domain::json::tagged::Gathered;

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
    #[error("{0}")]
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

impl<F: Fact> Event<F> {
    /// Reads one line (without its line end).
    ///
    /// # Errors
    /// [`LineError`] says what about the line is not as the contract has it. Unknown extra fields
    /// are no error.
    pub fn parse_line(line: &[u8]) -> Result<Self, LineError> {
        let text = std::str::from_utf8(line)?;
        let mut reader = serde_json::Deserializer::from_str(text);
        let parsed = EventVisitor::<F>(PhantomData).deserialize(&mut reader)?;
        reader.end()?;
        let escapes = memchr::memmem::find(line, b"\\u").is_some();
        if escapes && has_lone_surrogate(text) {
            return Err(LineError::Surrogate);
        }
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
        let mut envelope = Envelope::<F> { kind: None, id: None, ts: None };
        while !envelope.is_whole() {
            let Some(key) = map.next_key::<String>()? else {
                return Err(de::Error::missing_field(envelope.missing()));
            };
            if !envelope.take(&key, &mut map)? {
                let rest = Gathered::from_map(&key, map)?;
                return envelope.finish_from(&rest).map_err(de::Error::custom);
            }
        }
        envelope.finish(MapAccessDeserializer::new(map))
    }
}

struct Envelope<F: Fact> {
    kind: Option<String>,
    id: Option<F::Id>,
    ts: Option<Timestamp>,
}

impl<F: Fact> Envelope<F> {
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
    fn take<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<bool, A::Error> {
        match key {
            "type" if self.kind.is_none() => self.kind = Some(map.next_value()?),
            "ts" if self.ts.is_none() => self.ts = Some(map.next_value()?),
            key if key == F::ID_FIELD && self.id.is_none() => self.id = Some(map.next_value()?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn finish_from(self, rest: &Gathered) -> Result<Parsed<F>, serde_json::Error> {
        #[derive(Deserialize)]
        struct Late {
            #[serde(rename = "type")]
            kind: Option<String>,
            ts: Option<Timestamp>,
        }
        let late: Late = serde_json::from_str(&rest.json)?;
        let id = match self.id {
            Some(id) => Some(id),
            None => FieldOf::<F>::read(&rest.json)?,
        };
        let envelope = Self { kind: self.kind.or(late.kind), id, ts: self.ts.or(late.ts) };
        if !envelope.is_whole() {
            return Err(de::Error::missing_field(envelope.missing()));
        }
        envelope.finish(&mut serde_json::Deserializer::from_str(&rest.json))
    }

    fn finish<'de, D: Deserializer<'de>>(self, fields: D) -> Result<Parsed<F>, D::Error> {
        let Self { kind: Some(kind), id: Some(id), ts: Some(ts) } = self else {
            return Err(de::Error::missing_field(self.missing()));
        };
        Ok(match F::from_fields(&kind, fields)? {
            Some(fact) => Parsed::Known(Event { id, ts, fact }),
            None => Parsed::Unknown(kind),
        })
    }
}

/// Reads the one field that holds the id, whose name depends on the sort of log.
struct FieldOf<F>(PhantomData<F>);

impl<F: Fact> FieldOf<F> {
    fn read(json: &str) -> Result<Option<F::Id>, serde_json::Error> {
        use serde_json::value::RawValue;
        let fields: std::collections::HashMap<String, Box<RawValue>> = serde_json::from_str(json)?;
        fields.get(F::ID_FIELD).map(|raw| serde_json::from_str(raw.get())).transpose()
    }
}

/// Writes a struct's fields as a JSON object.
pub(crate) fn fields_of<T: Serialize>(fields: &T) -> serde_json::Result<String> {
    serde_json::to_string(fields)
}
