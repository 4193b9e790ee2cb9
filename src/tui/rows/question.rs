//! A form of questions: the question that has the focus, its options and the free text.

use super::typed::Typed;
use crate::tui::line::{Line, led, wrapped};
use crate::tui::mark::Mark;
use crate::tui::state::form::{Field, Form, Spot};
use crate::tui::theme::Ui;

/// How far in the options stand.
const INDENT: usize = 2;
/// The sign of the cursor, and the box of an option.
const OPTION_COLS: usize = 6;

/// How wide the free text is, in a form that is so wide.
#[must_use]
pub fn text_cols(width: u16) -> u16 {
    let before = u16::try_from(OPTION_COLS).unwrap_or(0);
    width.saturating_sub(before + 1).max(1)
}

/// The rows of the form, and the row and column of its cursor.
#[must_use]
pub fn rows(form: &Form, width: u16) -> (Vec<Line>, (usize, u16)) {
    let cols = usize::from(width);
    let Some(field) = form.field() else { return (Vec::new(), (0, 0)) };
    let mut lines = Vec::new();
    if form.fields.len() > 1 {
        lines.push(progress(form).cut(cols));
    }
    let question = wrapped(&field.question.text, Ui::Strong, cols.saturating_sub(INDENT));
    lines.extend(question.into_iter().map(|line| line.indented(INDENT)));
    let mut cursor = (lines.len(), 0);
    for (place, option) in field.options().iter().enumerate() {
        let has_focus = form.spot == Spot::Option(place);
        if has_focus {
            cursor = (lines.len(), 2);
        }
        let head = sign(has_focus).with(tick(field, place), Ui::Key).with_space(1);
        let part = if has_focus { Ui::Strong } else { Ui::Plain };
        lines.extend(led(head, option, part, cols));
    }
    free_text(&mut lines, &mut cursor, form, field, width);
    (lines, cursor)
}

fn free_text(
    lines: &mut Vec<Line>,
    cursor: &mut (usize, u16),
    form: &Form,
    field: &Field,
    width: u16,
) {
    let has_focus = form.spot == Spot::Text;
    let text = Typed::new(&field.text, text_cols(width));
    let before = u16::try_from(OPTION_COLS).unwrap_or(0);
    if has_focus {
        let column = u16::try_from(text.caret().column).unwrap_or(u16::MAX);
        *cursor = (lines.len() + text.caret().row, before.saturating_add(column));
    }
    let hint =
        if field.options().is_empty() { "type your answer" } else { "or type your own answer" };
    for (row, line) in text.lines(0, usize::MAX).enumerate() {
        let line = if field.text.is_empty() { Line::of(hint, Ui::Placeholder) } else { line };
        lines.push(match row {
            0 => sign(has_focus).with(" ✎ ", Ui::Key).with_space(1).with_line(line),
            _ => line.indented(OPTION_COLS),
        });
    }
}

fn sign(has_focus: bool) -> Line {
    Line::of(if has_focus { "› " } else { "  " }, Ui::FocusBar)
}

fn tick(field: &Field, place: usize) -> &'static str {
    let is_chosen = field.chosen.contains(&place);
    match (field.question.multiple, is_chosen) {
        (true, true) => "[x]",
        (true, false) => "[ ]",
        (false, true) => "(•)",
        (false, false) => "( )",
    }
}

/// Which question of several this is, and which have an answer.
fn progress(form: &Form) -> Line {
    let count = form.fields.len();
    let line = Line::of(&format!("Question {} of {count}", form.at + 1), Ui::Muted).with_space(2);
    let answered = |field: &Field| !field.chosen.is_empty() || !field.text.is_blank();
    let line = form.fields.iter().fold(line, |line, field| {
        if answered(field) { line.with_mark(Mark::Done) } else { line.with("·", Ui::Muted) }
    });
    line.indented(INDENT)
}
