//! The input of a tool: the schema that the model is shown and the check that goes by it both come
//! from one type.

use std::collections::HashMap;

use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform as _};
use schemars::{JsonSchema, Schema};
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::domain::json::Json;
use crate::tools::output;

/// An input that does not fit the schema of its tool.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InputError {
    /// One field does not fit.
    #[error("the input field `{field}` does not fit: {why}")]
    Field {
        /// The field.
        field: String,
        /// What is wrong with it.
        why: String,
    },
    /// A field is missing or unknown (which is said), or the input is no object.
    #[error("the input does not fit: {0}")]
    Form(String),
}

impl InputError {
    pub(crate) fn field(field: &str, why: impl Into<String>) -> Self {
        Self::Field { field: field.to_owned(), why: why.into() }
    }
}

/// Reads the input of a call.
pub(crate) fn read<T: DeserializeOwned>(input: &Json) -> Result<T, InputError> {
    input.read().map_err(|error| misfit(input, &error))
}

/// What the parser found wrong, with the name of the field that it is about.
pub(crate) fn misfit(input: &Json, error: &serde_json::Error) -> InputError {
    let place = format!(" at line {} column {}", error.line(), error.column());
    let why = error.to_string();
    let why = why.strip_suffix(&place).unwrap_or(&why);
    // The parser quotes what it found, however long that is.
    let why = output::clip_line(why.as_bytes(), why.len() as u64);
    match field_at(input.get(), error.column()) {
        Some(field) => {
            let field = output::clip_line(field.as_bytes(), field.len() as u64);
            InputError::Field { field, why }
        }
        None => InputError::Form(why),
    }
}

/// The outermost field in whose value the parser stopped. Stored JSON is one line, so the column
/// is a place in it.
fn field_at(json: &str, column: usize) -> Option<String> {
    let fields: HashMap<String, &RawValue> = serde_json::from_str(json).ok()?;
    let mut fields = fields.into_iter();
    let (name, _) = fields.find(|(_, value)| {
        let start = value.get().as_ptr().addr() - json.as_ptr().addr();
        (start..=start + value.get().len()).contains(&column)
    })?;
    Some(name)
}

/// The schema of an input, without what only costs tokens. The same bytes at every start, so that
/// what a provider has cached stays cached.
pub(crate) fn schema<T: JsonSchema>() -> Json {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.remove("title");
    schema.remove("description");
    RecursiveTransform(leave_out_noise).transform(&mut schema);
    Json::of(&schema)
}

fn leave_out_noise(schema: &mut Schema) {
    schema.remove("format");
    schema.remove("default");
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = text.replace('\n', " ");
    }
    // An optional field may be null for us; a model only needs to know that it may be left out.
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [one] = types.as_slice() {
            let one = one.clone();
            schema.insert("type".to_owned(), one);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use std::num::NonZeroU32;

    /// Not for the model.
    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Sample {
        /// A path
        /// of two lines.
        path: String,
        /// A line.
        line: Option<NonZeroU32>,
        #[serde(default)]
        names: Vec<String>,
    }

    fn check(input: &str, expected: &str) {
        let error = read::<Sample>(&Json::parse(input).unwrap()).unwrap_err();
        assert_eq!(error.to_string(), expected, "{input}");
    }

    #[test]
    fn what_does_not_fit_is_named_by_its_field() {
        check(
            r#"{"path":3}"#,
            "the input field `path` does not fit: invalid type: integer `3`, expected a string",
        );
        check(
            r#"{"line":"1","path":"a"}"#,
            "the input field `line` does not fit: invalid type: string \"1\", expected a nonzero u32",
        );
        check(
            r#"{"path":"a","line":0}"#,
            "the input field `line` does not fit: invalid value: integer `0`, expected a nonzero u32",
        );
        check(
            r#"{"path":"a","names":[ "b", {} ]}"#,
            "the input field `names` does not fit: invalid type: map, expected a string",
        );
        check(
            r#"{"path":[]}"#,
            "the input field `path` does not fit: invalid type: sequence, expected a string",
        );
        check(r#"{"line":1}"#, "the input does not fit: missing field `path`");
        check(
            r#"{"path":"a","file":"b"}"#,
            "the input does not fit: unknown field `file`, expected one of `path`, `line`, `names`",
        );
        check(
            r#""text""#,
            "the input does not fit: invalid type: string \"text\", expected struct Sample",
        );
    }

    #[test]
    fn a_long_value_is_not_quoted_whole() {
        let input = format!(r#"{{"line":"{}","path":"a"}}"#, "x".repeat(1_000_000));
        let error = read::<Sample>(&Json::parse(&input).unwrap()).unwrap_err().to_string();
        assert!(error.len() < 2_200 && error.ends_with("more bytes]"), "{error}");
    }

    #[test]
    fn an_optional_field_may_be_null() {
        let sample = read(&Json::parse(r#"{"path":"a","line":null}"#).unwrap());
        assert_eq!(sample, Ok(Sample { path: "a".to_owned(), line: None, names: Vec::new() }));
    }

    #[test]
    fn the_schema_says_no_more_than_a_model_needs() {
        assert_eq!(
            schema::<Sample>().get(),
            r#"{"type":"object","properties":{"path":{"description":"A path of two lines.","type":"string"},"line":{"description":"A line.","type":"integer","minimum":1},"names":{"type":"array","items":{"type":"string"}}},"additionalProperties":false,"required":["path"]}"#
        );
    }
}
