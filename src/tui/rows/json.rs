//! Arguments of tools as people read them, all of them.

use serde_json::Value;

use super::{Look, Rows};
use crate::base::sanitize::{self, Policy};
use crate::base::text;
use crate::domain::json::Json;
use crate::tui::line::{Fade, Line};
use crate::tui::rich::plain;
use crate::tui::theme::Ui;

/// A name of an argument that is longer stands on a line of its own.
const NAME_COLS_MAX: usize = 16;

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
