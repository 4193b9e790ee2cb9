//! Objects whose kind stands in one of their own fields, read without losing a byte of what is opaque
//! in them: nothing is buffered as a parsed value.

use std::borrow::Cow;
use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{self, IgnoredAny, MapAccess};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// A value whose kind stands in one of its own fields. It is read without buffering, so that raw
/// values below it keep their bytes.
pub(crate) trait Tagged: Sized {
    /// The field that names the kind.
    const TAG: &'static str;
    /// What this is, for error messages.
    const WHAT: &'static str;

    /// Reads the other fields.
    fn from_fields<'de, D: Deserializer<'de>>(tag: &str, fields: D) -> Result<Self, D::Error>;
}

/// Reads a [`Tagged`] value; the tag may stand anywhere, first is fastest.
pub(crate) fn tagged<'de, T: Tagged, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    deserializer.deserialize_map(TaggedVisitor(std::marker::PhantomData))
}

struct TaggedVisitor<T>(std::marker::PhantomData<T>);

impl<'de, T: Tagged> de::Visitor<'de> for TaggedVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::WHAT)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<T, A::Error> {
        let Some(key) = map.next_key::<Cow<'de, str>>()? else {
            return Err(de::Error::missing_field(T::TAG));
        };
        if key == T::TAG {
            let tag: String = map.next_value()?;
            return T::from_fields(&tag, MapAccessDeserializer::new(map));
        }
        let fields = Gathered::from_map(&key, map)?;
        let tag = fields.text_of(T::TAG)?;
        let mut reader = serde_json::Deserializer::from_str(&fields.json);
        T::from_fields(&tag, &mut reader).map_err(de::Error::custom)
    }
}

/// The fields of an object whose leading ones were not where we write them, as one JSON text.
pub(crate) struct Gathered {
    /// The object, every value byte for byte.
    pub(crate) json: String,
}

impl Gathered {
    /// Gathers the value of `key`, which has been read, and all that follows.
    pub(crate) fn from_map<'de, A: MapAccess<'de>>(
        key: &str,
        mut map: A,
    ) -> Result<Self, A::Error> {
        let mut json = String::from("{");
        let mut key = Some(Cow::Borrowed(key));
        while let Some(name) = key {
            let value: Box<RawValue> = map.next_value()?;
            let name = serde_json::to_string(&*name).map_err(de::Error::custom)?;
            if json.len() > 1 {
                json.push(',');
            }
            json.push_str(&name);
            json.push(':');
            json.push_str(value.get());
            key = map.next_key::<String>()?.map(Cow::Owned);
        }
        json.push('}');
        Ok(Self { json })
    }

    /// The text in the field `name`.
    pub(crate) fn text_of<E: de::Error>(&self, name: &'static str) -> Result<String, E> {
        let fields: serde_json::Map<String, Value> =
            serde_json::from_str(&self.json).map_err(E::custom)?;
        match fields.get(name) {
            Some(Value::String(text)) => Ok(text.clone()),
            Some(_) => Err(E::custom(format_args!("field `{name}` is not a string"))),
            None => Err(E::missing_field(name)),
        }
    }
}

/// Reads the fields of a value that has none besides its tag; others are ignored.
pub(crate) fn no_fields<'de, D: Deserializer<'de>>(fields: D) -> Result<(), D::Error> {
    IgnoredAny::deserialize(fields).map(drop)
}

/// Gives a struct that is derived with `#[serde(remote = "Self", tag = …, rename = …)]` its
/// `Serialize` and `Deserialize`: the tag is written first, and checked when read.
macro_rules! tagged_struct {
    ($name:ident, $key:literal = $tag:literal) => {
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                Self::serialize(self, serializer)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::domain::json::tagged::tagged(deserializer)
            }
        }

        impl $crate::domain::json::tagged::Tagged for $name {
            const TAG: &'static str = $key;
            const WHAT: &'static str = concat!("an object whose ", $key, " is ", $tag);

            fn from_fields<'de, D: serde::Deserializer<'de>>(
                tag: &str,
                fields: D,
            ) -> Result<Self, D::Error> {
                if tag != $tag {
                    let found = serde::de::Unexpected::Str(tag);
                    return Err(serde::de::Error::invalid_value(found, &Self::WHAT));
                }
                Self::deserialize(fields)
            }
        }
    };
}
pub(crate) use tagged_struct;
