//! Arguments of tools as people read them: what matters of them in one line, and all of them.

use serde_json::{Map, Value};

use super::{Look, Rows};
use crate::base::sanitize::{self, Policy};
use crate::base::text;
use crate::domain::json::Json;
use crate::tui::line::{Fade, Line};
use crate::tui::rich::plain;
use crate::tui::theme::Ui;

/// What most tools call the one argument that says what they will do, in the order in which two of
/// them are read.
const MAIN: [&str; 8] = ["command", "pattern", "query", "url", "path", "file", "title", "question"];
/// A longer value is not looked at for the one line.
const BRIEF_CHARS_MAX: usize = 400;
/// A name of an argument that is longer stands on a line of its own.
const NAME_COLS_MAX: usize = 16;

/// What matters of the arguments of a call, in one line of any length.
#[must_use]
pub(super) fn brief(arguments: &Json) -> String {
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
    let first: String = lines.next().unwrap_or_default().chars().take(BRIEF_CHARS_MAX).collect();
    if lines.next().is_some() { format!("{first} …") } else { first }
}

/// A text as it is, any other value as JSON.
fn written(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// All of a value: the fields of an object one below the other, texts as they are.
pub(super) fn whole(rows: &mut Rows, json: &Json, indent: u16, policy: Policy, look: &Look<'_>) {
    let Value::Object(fields) = json.to_value() else {
        let text = json.to_model_text();
        rows.text(plain::rows(&text, width(look, indent), policy), indent, Fade::Front);
        return;
    };
    let names = fields.keys().map(|name| text::width(&sanitize::for_line(name)));
    let name_cols = names.filter(|cols| *cols <= NAME_COLS_MAX).max().unwrap_or(0);
    for (name, value) in &fields {
        field(rows, (name, &written(value)), Place { indent, name_cols, policy }, look);
    }
}

#[derive(Clone, Copy)]
struct Place {
    indent: u16,
    name_cols: usize,
    policy: Policy,
}

fn field(rows: &mut Rows, (name, value): (&str, &str), place: Place, look: &Look<'_>) {
    let name = clean(name, place.policy);
    let indent = usize::from(place.indent);
    let head = Line::new().with_space(indent).with(&name, Ui::Muted);
    let pad = place.name_cols.saturating_sub(text::width(&name)) + 2;
    let line = head.clone().with_space(pad).with(&clean(value, place.policy), Ui::Plain);
    if !value.contains('\n') && line.width() <= look.cols(0) {
        rows.line(line);
        return;
    }
    rows.lines(crate::tui::line::folded(head, look.cols(0)));
    let inner = place.indent + 2;
    rows.text(plain::rows(value, width(look, inner), place.policy), inner, Fade::Front);
}

fn clean(value: &str, policy: Policy) -> String {
    sanitize::clean(value, policy).into_owned()
}

fn width(look: &Look<'_>, indent: u16) -> u16 {
    look.width.saturating_sub(indent).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_brief(arguments: &str, expected: &str) {
        assert_eq!(brief(&Json::parse(arguments).unwrap()), expected);
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
