//! Keys that nothing reads: found by comparing what was written with the schema, so that all of them
//! are told at once and each with the key that was probably meant.

use std::collections::BTreeMap;
use std::ops::Range;

use schemars::Schema;
use schemars::generate::SchemaSettings;
use serde_json::Value;
use toml::de::{DeTable, DeValue};

use crate::config::bindings;
use crate::config::schema::Config;

/// How alike two names must be, from 0 to 1, for one to be the other misspelt.
const LIKENESS_LEAST: f32 = 0.6;

/// A key that nothing reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UnknownKey {
    /// The key.
    pub name: String,
    /// The table in which it stands, with dots; empty for the file itself.
    pub table: String,
    /// The bytes of the file that are the key.
    pub span: Range<usize>,
    /// The keys that there are.
    pub known: Vec<String>,
}

impl UnknownKey {
    /// The key that was probably meant.
    pub(super) fn suggestion(&self) -> Option<&str> {
        let known: Vec<&str> = self.known.iter().map(String::as_str).collect();
        similar::get_close_matches(self.name.as_str(), &known, 1, LIKENESS_LEAST).first().copied()
    }
}

/// All keys of `document` that nothing reads.
pub(super) fn keys(document: &DeTable<'_>) -> Vec<UnknownKey> {
    let mut found = Vec::new();
    collect(schema().as_value(), document, "", &mut found);
    found
}

/// What can be configured, as a JSON schema without references. The key tables may say anything here.
pub(super) fn schema() -> Schema {
    let settings =
        SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<Config>();
    if let Some(Value::Object(tables)) = schema.get_mut("properties") {
        tables.insert(bindings::NAME.to_owned(), Value::Bool(true));
    }
    schema
}

/// What a schema says about the keys of a table.
#[derive(Default)]
pub(super) struct Keys<'a> {
    /// The keys with a name.
    pub named: BTreeMap<&'a str, &'a Value>,
    /// Whatever stands under names that the person chooses.
    pub chosen: Option<&'a Value>,
    closed: bool,
}

impl<'a> Keys<'a> {
    /// Reads a schema; of alternatives, the keys of all together.
    pub(super) fn of(schema: &'a Value) -> Self {
        let mut keys = Self::default();
        keys.add(schema);
        keys
    }

    fn add(&mut self, schema: &'a Value) {
        if let Some(named) = schema.get("properties").and_then(Value::as_object) {
            self.named.extend(named.iter().map(|(name, schema)| (name.as_str(), schema)));
        }
        match schema.get("additionalProperties") {
            Some(Value::Bool(false)) => self.closed = true,
            chosen => self.chosen = self.chosen.or(chosen),
        }
        for word in ["anyOf", "oneOf"] {
            for alternative in schema.get(word).and_then(Value::as_array).into_iter().flatten() {
                self.add(alternative);
            }
        }
    }
}

fn collect(schema: &Value, table: &DeTable<'_>, path: &str, found: &mut Vec<UnknownKey>) {
    let keys = Keys::of(schema);
    for (name, value) in table {
        match keys.named.get(name.get_ref().as_ref()).copied().or(keys.chosen) {
            Some(schema) => {
                if let DeValue::Table(inner) = value.get_ref() {
                    collect(schema, inner, &join(path, name.get_ref()), found);
                }
            }
            None if keys.closed => found.push(UnknownKey {
                name: name.get_ref().to_string(),
                table: path.to_owned(),
                span: name.span(),
                known: keys.named.keys().map(ToString::to_string).collect(),
            }),
            // A table where a plain value belongs: that is told when the value is read.
            None => {}
        }
    }
}

/// The dotted name of a key in a table, quoted where TOML wants it.
pub(super) fn join(table: &str, key: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let key =
        if !key.is_empty() && key.chars().all(bare) { key.to_owned() } else { format!("{key:?}") };
    if table.is_empty() { key } else { format!("{table}.{key}") }
}
