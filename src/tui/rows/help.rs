//! The keys of a place and the marks, as a table.

use crate::tui::action::{Action, AppAction};
use crate::tui::keymap::context::Context;
use crate::tui::keymap::{Keymap, Row};
use crate::tui::line::{Line, folded, led};
use crate::tui::mark::Mark;
use crate::tui::theme::Ui;

/// Longer lists of keys push the words aside.
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
    let widest = all.map(|row| keys(row).len()).max().unwrap_or(0).min(KEYS_COLS_MAX).min(cols / 3);
    let mut lines = Vec::new();
    for (group, rows) in &groups {
        lines.push(Line::of(group, Ui::Strong).cut(cols));
        lines.extend(
            rows.iter().flat_map(|row| binding(&keys(row), row.action.label(), widest, cols)),
        );
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
