//! The keys of a place and the marks, as a table.

use crate::tui::action::{Action, AppAction};
use crate::tui::keymap::context::Context;
use crate::tui::keymap::{Keymap, Row};
use crate::tui::line::{Line, folded, led};
use crate::tui::mark::Mark;
use crate::tui::theme::Ui;

/// From here on there is room for the names of the actions, as `[keys]` takes them: a window of 60
/// columns.
const NAMED_COLS_MIN: usize = 56;
/// Longer lists of keys push the words aside; with names beside them they have a quarter of the room.
const KEYS_COLS_MAX: usize = 26;
const MARKS: [(Mark, &str); 8] = [
    (Mark::Running, "runs"),
    (Mark::Waiting, "waits for you"),
    (Mark::Done, "done"),
    (Mark::Failed, "failed, or denied"),
    (Mark::Stopped, "stopped, or dismissed"),
    (Mark::Interrupted, "interrupted when the program ended"),
    (Mark::Damaged, "cannot be read"),
    (Mark::Unsent, "messages wait to be sent"),
];

/// The keys that work where these contexts have the focus, group by group, and the marks.
#[must_use]
pub fn rows(keymap: &Keymap, contexts: &[Context], cols: usize) -> Vec<Line> {
    let mut groups: Vec<(&str, Vec<Row<'_>>)> = Vec::new();
    for row in keymap.rows(contexts) {
        let group = row.action.group();
        match groups.iter_mut().find(|(known, _)| *known == group) {
            Some((_, rows)) => rows.push(row),
            None => groups.push((group, vec![row])),
        }
    }
    let all = groups.iter().flat_map(|(_, rows)| rows);
    let keys_cols_max = if cols < NAMED_COLS_MIN { KEYS_COLS_MAX.min(cols / 3) } else { cols / 4 };
    let widest = all.map(|row| keys(row).len()).max().unwrap_or(0).min(keys_cols_max);
    let mut lines = Vec::new();
    for (group, rows) in &groups {
        lines.push(Line::of(group, Ui::Strong).cut(cols));
        lines.extend(rows.iter().flat_map(|row| named_binding(row, widest, cols)));
        lines.push(Line::new());
    }
    lines.push(Line::of("Marks", Ui::Strong));
    lines.extend(MARKS.map(|(mark, means)| {
        let sign = Line::new().with_space(2).with_mark(mark);
        sign.with_space(widest.saturating_sub(1) + 2).with(means, Ui::Plain).cut(cols)
    }));
    lines
}

fn keys(row: &Row<'_>) -> String {
    let keys: Vec<String> = row.keys.iter().map(ToString::to_string).collect();
    keys.join(", ")
}

/// Keys and what they do, and to the right the name under which a person can bind others to it.
fn named_binding(row: &Row<'_>, widest: usize, cols: usize) -> Vec<Line> {
    let label = row.action.label();
    if cols < NAMED_COLS_MIN {
        return binding(&keys(row), label, widest, cols);
    }
    let name = Line::of(row.action.name(), Ui::Muted);
    let mut lines = binding(&keys(row), label, widest, cols.saturating_sub(name.width() + 2));
    if let Some(first) = lines.first_mut() {
        *first = std::mem::take(first).beside(name, cols);
    }
    lines
}

/// Keys and what they do; beneath them where there is no room beside.
fn binding(keys: &str, label: &str, widest: usize, cols: usize) -> Vec<Line> {
    let keys = Line::of(keys, Ui::Key);
    let pad = widest.saturating_sub(keys.width()) + 2;
    let beside = keys.width() <= widest || keys.width() + label.len() + 4 <= cols;
    let keys = keys.indented(2);
    if beside {
        return led(keys.with_space(pad), label, Ui::Plain, cols);
    }
    let below = led(Line::new().with_space(widest + 4), label, Ui::Plain, cols);
    folded(keys, cols).into_iter().chain(below).collect()
}

/// How to leave the help.
#[must_use]
pub fn hints(keymap: &Keymap) -> Line {
    let contexts = [Context::Help, Context::Moving, Context::Global];
    match keymap.hint(&contexts, Action::App(AppAction::Escape)) {
        Some(key) => Line::of(&key.to_string(), Ui::Key).with(" closes", Ui::Muted),
        None => Line::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACES: [&[Context]; 9] = [
        &[Context::List, Context::Moving, Context::Global],
        &[Context::Timeline, Context::Moving, Context::Global],
        &[Context::Composer, Context::Editing, Context::Global],
        &[Context::Permission, Context::Moving, Context::Global],
        &[Context::Question, Context::Global],
        &[Context::Answer, Context::Editing, Context::Global],
        &[Context::Waiting, Context::Moving, Context::Global],
        &[Context::Events, Context::Moving, Context::Global],
        &[Context::Interrupted, Context::Global],
    ];

    fn drawn(line: &Line) -> String {
        line.spans().iter().map(|span| span.text.as_ref()).collect()
    }

    #[test]
    fn where_there_is_room_the_name_of_every_action_stands_to_the_right() {
        let keymap = Keymap::new(None).expect("the defaults are right");
        for (contexts, cols) in PLACES.into_iter().flat_map(|it| [(it, NAMED_COLS_MIN), (it, 72)]) {
            let lines = rows(&keymap, contexts, cols);
            assert!(lines.iter().all(|line| line.width() <= cols));
            let lines: Vec<_> = lines.iter().map(drawn).collect();
            for row in keymap.rows(contexts) {
                let name = format!("  {}", row.action.name());
                let is_named = lines.iter().any(|line| line.ends_with(&name));
                assert!(is_named, "{name} in {cols} columns: {lines:#?}");
            }
        }
    }

    #[test]
    fn where_there_is_none_the_words_have_it() {
        let keymap = Keymap::new(None).expect("the defaults are right");
        let lines = rows(&keymap, PLACES[0], NAMED_COLS_MIN - 1);
        assert!(lines.iter().all(|line| !drawn(line).contains("open-session")));
    }
}
