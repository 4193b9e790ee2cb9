//! What a tool call wants, in one line for a person: for lists, docks and folded calls. Not what is
//! approved; that is the whole request.

use serde_json::{Map, Value};

use crate::base::text;
use crate::domain::json::Json;
use crate::domain::permission::plan::PermissionRequest;
use crate::domain::turn::state::ToolCall;

/// What most tools call the one argument that says what they will do, in the order in which two of
/// them are read.
const MAIN: [&str; 8] = ["command", "pattern", "query", "url", "path", "file", "title", "question"];
/// A longer value is not looked at for the one line.
const BRIEF_CHARS_MAX: usize = 400;
/// What a call wants to do: what its request names first, or what matters of its arguments.
#[must_use]
pub fn call(call: &ToolCall) -> String {
    let request = call.permission.as_ref().map(|permission| &permission.request);
    let request = request.and_then(|request| request.read::<PermissionRequest>().ok());
    let planned = request.and_then(|request| {
        let plan = request.plan;
        let paths = plan.writes.into_iter().chain(plan.reads).map(|path| path.path);
        plan.commands.into_iter().chain(paths).chain(plan.hosts).next()
    });
    planned.map_or_else(|| arguments(&call.arguments), |planned| first_line(&planned))
}

/// What matters of the arguments of a call, in one line.
#[must_use]
pub fn arguments(arguments: &Json) -> String {
    let Value::Object(fields) = arguments.to_value() else {
        return first_line(&arguments.to_model_text());
    };
    let main = MAIN.iter().filter_map(|name| Some((*name, fields.get(*name)?.as_str()?)));
    let main: Vec<String> = main
        .map(|(name, value)| format!("{}{}", first_line(value), range_of(name, &fields)))
        .collect();
    if !main.is_empty() {
        return main.join("  ");
    }
    if let Some(asked) = first_question(&fields) {
        return first_line(asked);
    }
    let pairs =
        fields.iter().map(|(name, value)| format!("{name}: {}", first_line(&written(value))));
    first_line(&pairs.collect::<Vec<_>>().join(", "))
}

/// The lines of the file that are meant.
fn range_of(name: &str, fields: &Map<String, Value>) -> String {
    if name != "path" {
        return String::new();
    }
    let line = |name: &str| fields.get(name).and_then(Value::as_u64);
    match (line("start_line"), line("end_line")) {
        (Some(start), Some(end)) => format!(":{start}-{end}"),
        (Some(start), None) => format!(":{start}-"),
        (None, Some(end)) => format!(":1-{end}"),
        (None, None) => String::new(),
    }
}

fn first_question(fields: &Map<String, Value>) -> Option<&str> {
    fields.get("questions")?.as_array()?.first()?.get("text")?.as_str()
}

fn first_line(text: &str) -> String {
    let mut lines = text.trim().lines();
    let first = text::beginning(lines.next().unwrap_or_default(), BRIEF_CHARS_MAX);
    if lines.next().is_some() { format!("{first} …") } else { first.to_owned() }
}

/// A text as it is, any other value as JSON.
fn written(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_brief(arguments: &str, expected: &str) {
        assert_eq!(super::arguments(&Json::parse(arguments).unwrap()), expected);
    }

    #[test]
    fn what_matters_of_arguments_is_known_by_their_names() {
        check_brief(r#"{"command":"cargo test\nls","timeout_seconds":5}"#, "cargo test …");
        check_brief(r#"{"path":"src","pattern":"fn main"}"#, "fn main  src");
        check_brief(r#"{"path":"a.rs","start_line":3,"end_line":9}"#, "a.rs:3-9");
        check_brief(r#"{"questions":[{"id":"a","text":"Which one?"}]}"#, "Which one?");
        check_brief(r#"{"depth":2,"deep":{"a":[1]}}"#, r#"depth: 2, deep: {"a":[1]}"#);
        check_brief(r#""no json at all""#, "no json at all");
        check_brief("{}", "");
    }
}
