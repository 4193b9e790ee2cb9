//! What waits to be delivered, above the text of the composer.

use super::choices::choice;
use crate::app::notice::UnsentMessage;
use crate::tui::action::{Action, ComposerAction};
use crate::tui::keymap::context::Context;
use crate::tui::line::Line;
use crate::tui::mark::Mark;
use crate::tui::state::State;
use crate::tui::state::settings::Access;
use crate::tui::theme::Ui;
use crate::tui::words;

/// As many messages are shown, the last ones; the rest are counted.
const SHOWN_MAX: usize = 3;
const COMPOSER: [Context; 3] = [Context::Composer, Context::Editing, Context::Global];

/// The messages that wait, in at most so many rows, and what can be done with them.
#[must_use]
pub fn rows(state: &State, width: u16, rows_max: u16) -> Vec<Line> {
    let taking = state.composer.taking_back.as_ref().map(|taking| &taking.event);
    let waits = state.conversation.unsent.iter().filter(|message| Some(&message.id) != taking);
    let waits: Vec<&UnsentMessage> = waits.collect();
    let (cols, rows_max) = (usize::from(width), usize::from(rows_max));
    if waits.is_empty() || rows_max == 0 {
        return Vec::new();
    }
    // A view can change nothing, and does not know what another process holds.
    let keys = (state.settings.access == Access::Full).then(|| hints(state, &waits));
    let rest = rows_max - usize::from(keys.is_some());
    let trouble = trouble(state).filter(|_| rest > 1).map(|line| line.cut(cols));
    let room = (rest - usize::from(trouble.is_some())).min(SHOWN_MAX);
    let shown = if waits.len() > room { room.saturating_sub(1) } else { waits.len() };
    let keys = keys.unwrap_or_default();
    let mut lines = Vec::new();
    if shown == 0 {
        let are_held = waits.iter().any(|message| message.held) && keys.width() > 0;
        let verb = match (are_held, waits.len()) {
            (true, 1) => "is held",
            (true, _) => "are held",
            (false, 1) => "waits",
            (false, _) => "wait",
        };
        let text = format!("{} {verb}", words::count(waits.len(), "message"));
        let count = start().with(&text, Ui::Plain);
        if room == 0 {
            return vec![count.with_space(2).with_line(keys).cut(cols)];
        }
        lines.push(count.cut(cols));
    }
    let (hidden, shown) = waits.split_at(waits.len() - shown);
    if !hidden.is_empty() && !shown.is_empty() {
        let more = format!("… {}", words::count(hidden.len(), "more message"));
        lines.push(Line::of(&more, Ui::Muted).indented(3).cut(cols));
    }
    lines.extend(shown.iter().map(|message| one(state, message, cols)));
    lines.extend(trouble);
    if keys.width() > 0 {
        lines.push(keys.indented(3).cut(cols));
    }
    lines
}

/// The first line of a message, and why it is not sent.
fn one(state: &State, message: &UnsentMessage, cols: usize) -> Line {
    let mut lines = message.text.lines();
    let first = lines.find(|line| !line.trim().is_empty()).unwrap_or_default();
    let more = if lines.next().is_some() { " …" } else { "" };
    let is_held = message.held && state.settings.access == Access::Full;
    let why = if is_held { Line::of("held ", Ui::Caution) } else { Line::of("waits ", Ui::Muted) };
    start().with(first, Ui::Plain).with(more, Ui::Muted).beside(why, cols)
}

/// Why the last one that was to be delivered was not.
fn trouble(state: &State) -> Option<Line> {
    let entry = state.list.entry(state.session()?)?;
    let why = entry.last_error.as_deref()?.lines().next()?;
    Some(Line::of(&format!("not delivered: {why}"), Ui::Caution).indented(3))
}

fn start() -> Line {
    Line::new().with_space(1).with_mark(Mark::Unsent).with_space(1)
}

fn hints(state: &State, waits: &[&UnsentMessage]) -> Line {
    let key = |action, what| choice(state, &COMPOSER, Action::Composer(action), what, true);
    let back = key(ComposerAction::TakeBack, "takes back");
    let back = back.with_space(3).with_line(key(ComposerAction::EditWaiting, "edits"));
    if waits.iter().any(|message| message.held) {
        return key(ComposerAction::SendWaiting, "sends").with_space(3).with_line(back);
    }
    back
}
