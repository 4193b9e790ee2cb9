//! Dialogs: what is asked with yes and no, all that waits, code blocks to choose from.

use super::choices;
use crate::base::id::SessionId;
use crate::tui::action::{Action, AppAction, WaitingAction};
use crate::tui::keymap::context::Context;
use crate::tui::line::{Line, wrapped};
use crate::tui::mark::Mark;
use crate::tui::state::State;
use crate::tui::state::list::waiting::WaitingCall;
use crate::tui::state::overlay::About;
use crate::tui::theme::Ui;
use crate::tui::words;

/// As many sessions are named before they are deleted; the rest are counted.
const NAMED_MAX: usize = 6;
const WAITING: [Context; 3] = [Context::Waiting, Context::Moving, Context::Global];

/// A question with yes and no.
#[derive(Clone, Debug)]
pub struct Asked {
    /// What is asked.
    pub title: &'static str,
    /// What follows from yes.
    pub lines: Vec<Line>,
    /// What yes does.
    pub yes: &'static str,
}

/// What is asked with yes and no.
#[must_use]
pub fn confirm(state: &State, about: &About, cols: usize) -> Asked {
    let say = |text: &str| wrapped(text, Ui::Plain, cols);
    match about {
        About::Delete(sessions) => {
            let mut lines = say(&format!(
                "{} with all that was said:",
                words::count(sessions.len(), "session")
            ));
            let named = sessions.iter().take(NAMED_MAX).map(|session| {
                Line::of("  ", Ui::Plain).with(&title_of(state, session), Ui::Strong).cut(cols)
            });
            lines.extend(named);
            let rest = sessions.len().saturating_sub(NAMED_MAX);
            if rest > 0 {
                lines.push(Line::of(&format!("  … {} more", words::grouped(rest)), Ui::Muted));
            }
            lines.extend(wrapped("They can be restored for some days.", Ui::Muted, cols));
            Asked { title: "Delete?", lines, yes: "delete" }
        }
        About::Quit => {
            let count = state.activity.session_count();
            let running = words::count(count, "turn");
            let are = if count == 1 { "is" } else { "are" };
            let text = format!(
                "{running} {are} still running. What runs is left interrupted and can be resumed; \
                 nothing is lost."
            );
            Asked { title: "Quit?", lines: say(&text), yes: "quit" }
        }
        About::CloseAndSend(_) => {
            let text = "The last turn here was interrupted when the program ended. It has to be \
                        closed before another can begin.";
            Asked { title: "Close it and send?", lines: say(text), yes: "close and send" }
        }
        About::Stop(_) => {
            let text = "The turn waits for an answer. Stopped, it cannot go on any more.";
            Asked { title: "Stop the turn?", lines: say(text), yes: "stop it" }
        }
    }
}

/// The title of a session, or its id.
fn title_of(state: &State, session: &SessionId) -> String {
    let title = state.list.entry(session).and_then(|entry| entry.title.clone());
    title.unwrap_or_else(|| session.to_string())
}

/// Code blocks, each with its number and its first line.
#[must_use]
pub fn codes(blocks: &[String]) -> Vec<Line> {
    let line = |(number, block): (usize, &String)| {
        let first = block.lines().next().unwrap_or_default();
        let count = words::count(block.lines().count(), "line");
        Line::of(&format!("{number:>2}  "), Ui::Key)
            .with(first, Ui::Plain)
            .with(&format!("  ({count})"), Ui::Muted)
    };
    (1..).zip(blocks).map(line).collect()
}

/// The rows of what waits.
#[derive(Clone, Debug)]
pub struct WaitingRows {
    /// One for each call.
    pub lines: Vec<Line>,
    /// The row under the cursor.
    pub cursor: usize,
}

/// Calls that wait, one in each row.
#[must_use]
pub fn waiting(
    state: &State,
    calls: &[WaitingCall],
    cursor: Option<&WaitingCall>,
    cols: usize,
) -> WaitingRows {
    if calls.is_empty() {
        let lines = vec![Line::of("Nothing waits for you", Ui::Muted)];
        return WaitingRows { lines, cursor: 0 };
    }
    let cursor = cursor.and_then(|call| calls.iter().position(|known| known == call)).unwrap_or(0);
    let line = |(row, call): (usize, &WaitingCall)| {
        let what = if call.is_question { "question" } else { "permission" };
        let since = words::short_day(call.since, state.now.wall, &state.settings.zone);
        let left = Line::new().with_mark(Mark::Waiting).with_space(1);
        let left = left.with(&title_of(state, &call.session), Ui::Plain);
        let right = Line::of(&format!("{what} · {since}"), Ui::Muted);
        let line = left.beside(right, cols);
        let pad = cols.saturating_sub(line.width());
        if row == cursor { line.with_space(pad).repainted(Ui::Cursor) } else { line }
    };
    WaitingRows { lines: calls.iter().enumerate().map(line).collect(), cursor }
}

/// What can be done with what waits.
#[must_use]
pub fn waiting_hints(state: &State) -> Line {
    let jump = Action::Waiting(WaitingAction::Jump);
    let line = choices::choice(state, &WAITING, jump, "go there", true);
    let close = choices::choice(state, &WAITING, Action::App(AppAction::Escape), "close", true);
    line.with_space(3).with_line(close)
}
