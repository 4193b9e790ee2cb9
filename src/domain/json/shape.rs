//! How values are read whose form is freer or stricter than what serde derives: fields that may be
//! absent but not null, kinds that stand in a field of their own, objects that are no arrays.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{self, IgnoredAny, IntoDeserializer as _, MapAccess};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// Reads a field that may be absent but never null (use with `default`).
///
/// # Errors
/// What `T` says, also about null.
pub fn present<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(deserializer).map(Some)
}

/// Reads a field that must be there and may be null.
///
/// # Errors
/// What `T` says of anything but null.
pub fn nullable<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Option::deserialize(deserializer)
}

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
    deserializer.deserialize_map(TaggedVisitor(PhantomData))
}

struct TaggedVisitor<T>(PhantomData<T>);

impl<'de, T: Tagged> de::Visitor<'de> for TaggedVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::WHAT)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<T, A::Error> {
        let mut early = Gathered::default();
        let Word(tag) = loop {
            match map.next_key()? {
                None => return Err(de::Error::missing_field(T::TAG)),
                Some(Word(key)) if key == T::TAG => break map.next_value()?,
                Some(Word(key)) => early.take(&key, &mut map)?,
            }
        };
        if early.is_empty() {
            return T::from_fields(&tag, MapAccessDeserializer::new(map));
        }
        let json = early.with_rest(map)?;
        T::from_fields(&tag, &mut serde_json::Deserializer::from_str(&json))
            .map_err(de::Error::custom)
    }
}

/// A short string, such as the name of a field: borrowed where it is read from if it holds no escape.
pub(crate) struct Word<'de>(pub(crate) Cow<'de, str>);

impl<'de> Deserialize<'de> for Word<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Borrowed;
        impl<'de> de::Visitor<'de> for Borrowed {
            type Value = Word<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_borrowed_str<E: de::Error>(self, word: &'de str) -> Result<Word<'de>, E> {
                Ok(Word(Cow::Borrowed(word)))
            }
            fn visit_str<E: de::Error>(self, word: &str) -> Result<Word<'de>, E> {
                Ok(Word(Cow::Owned(word.to_owned())))
            }
        }
        deserializer.deserialize_str(Borrowed)
    }
}

/// The fields of an object that came before the one that says how to read them, every value byte
/// for byte.
#[derive(Default)]
pub(crate) struct Gathered {
    /// The object, not closed yet.
    json: String,
}

impl Gathered {
    /// Whether nothing came early.
    pub(crate) fn is_empty(&self) -> bool {
        self.json.is_empty()
    }

    /// Takes the value of `key`, which has been read.
    pub(crate) fn take<'de, A: MapAccess<'de>>(
        &mut self,
        key: &str,
        map: &mut A,
    ) -> Result<(), A::Error> {
        let value: Box<RawValue> = map.next_value()?;
        self.json.push(if self.is_empty() { '{' } else { ',' });
        self.json.push_str(&serde_json::to_string(key).map_err(de::Error::custom)?);
        self.json.push(':');
        self.json.push_str(value.get());
        Ok(())
    }

    /// The whole object: what came early, and all that follows.
    pub(crate) fn with_rest<'de, A: MapAccess<'de>>(
        mut self,
        mut map: A,
    ) -> Result<String, A::Error> {
        while let Some(Word(key)) = map.next_key()? {
            self.take(&key, &mut map)?;
        }
        self.json.push('}');
        Ok(self.json)
    }
}

/// A type with the `Deserialize` that serde derives for it (`#[serde(remote = "Self")]`) behind a
/// stricter one of its own ([`strict!`]).
pub(crate) trait Derived: Sized {
    /// Reads it as derived.
    fn derived<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error>;
}

/// Reads a struct from an object. As derived it would also be read from an array of its values.
pub(crate) fn object<'de, T: Derived, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    struct Object<T>(PhantomData<T>);
    impl<'de, T: Derived> de::Visitor<'de> for Object<T> {
        type Value = T;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
            T::derived(MapAccessDeserializer::new(map))
        }
    }
    deserializer.deserialize_map(Object(PhantomData))
}

/// Reads an enum without data from its word. As derived it would also be read from `{"word":null}`.
pub(crate) fn word<'de, T: Derived, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    struct Word<T>(PhantomData<T>);
    impl<T: Derived> de::Visitor<'_> for Word<T> {
        type Value = T;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a string")
        }
        fn visit_str<E: de::Error>(self, word: &str) -> Result<T, E> {
            T::derived(word.into_deserializer())
        }
    }
    deserializer.deserialize_str(Word(PhantomData))
}

/// Lets types that are derived with `#[serde(remote = "Self")]` be read as an `object` or a `word`
/// and nothing else, and be written as derived.
macro_rules! strict {
    ($form:ident: $($name:ident),+ $(,)?) => {$(
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                Self::serialize(self, serializer)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::domain::json::$form(deserializer)
            }
        }

        impl $crate::domain::json::Derived for $name {
            fn derived<'de, D: serde::Deserializer<'de>>(
                deserializer: D,
            ) -> Result<Self, D::Error> {
                Self::deserialize(deserializer)
            }
        }
    )+};
}
pub(crate) use strict;

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
                $crate::domain::json::tagged(deserializer)
            }
        }

        impl $crate::domain::json::Tagged for $name {
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
