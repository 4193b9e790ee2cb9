//! Dialogs: what is asked with yes and no, all that waits, code blocks to choose from.

use super::choices;
use crate::base::id::SessionId;
use crate::tui::action::{Action, AppAction, ListAction, WaitingAction};
use crate::tui::keymap::context::Context;
use crate::tui::line::{Line, wrapped};
use crate::tui::mark::Mark;
use crate::tui::state::State;
use crate::tui::state::list::waiting::WaitingCall;
use crate::tui::state::overlay::{About, Confirm, PURGE_WORD, Purge};
use crate::tui::state::settings::Deleted;
use crate::tui::theme::Ui;
use crate::tui::words;

/// As many sessions are named before they are deleted, where there is room; the rest are counted.
const NAMED_MAX: usize = 6;
const LIST: [Context; 3] = [Context::List, Context::Moving, Context::Global];
const WAITING: [Context; 3] = [Context::Waiting, Context::Moving, Context::Global];

/// A question with yes and no.
#[derive(Clone, Debug)]
pub struct Asked {
    /// What is asked.
    pub title: &'static str,
    /// What has to be read, whatever the room.
    pub lines: Vec<Line>,
    /// What is good to know, where there is room.
    pub details: Vec<Line>,
    /// What yes does.
    pub yes: &'static str,
}

/// What is asked with yes and no, in a frame of so many columns and rows.
#[must_use]
pub fn confirm(state: &State, confirm: &Confirm, (cols, rows): (usize, usize)) -> Asked {
    let say = |text: &str| wrapped(text, Ui::Plain, cols);
    let also = |text: &str| wrapped(text, Ui::Muted, cols);
    match &confirm.about {
        About::Delete(sessions) => {
            let lines = named(state, sessions, (cols, rows));
            let text = after_deletion(state);
            Asked { title: "Delete?", lines, details: also(&text), yes: "delete" }
        }
        About::Quit => {
            let count = state.activity.session_count();
            let running = words::count(count, "turn");
            let (runs, it) = if count == 1 { ("runs", "It is") } else { ("run", "They are") };
            let held = state.status.stalls.records();
            let (lines, details) = if held > 0 {
                let held = words::count(held, "event");
                let lines = say(&format!("The disk does not take {held}, which will be lost."));
                let details = "Leaving tries for some seconds more. With room on the disk they are \
                               written by themselves.";
                (lines, also(details))
            } else {
                let lines = say(&format!("{running} {runs}. {it} left interrupted."));
                (lines, also("What is interrupted can be resumed; nothing is lost."))
            };
            Asked { title: "Quit?", lines, details, yes: "quit" }
        }
        About::Interrupted(_) => {
            let lines = choices::interrupted(state, confirm.arming, cols);
            let is_held = state.conversation.holds_a_message();
            let details = also(if is_held {
                "The last turn ended with the program. Closed, it stays as it is. Your text waits \
                 behind what is held."
            } else {
                "The last turn ended with the program. Resumed, it takes your text in; closed, it \
                 stays as it is, and your text begins the next one."
            });
            Asked { title: "Interrupted", lines, details, yes: "close" }
        }
        About::Stop(_) => {
            let lines = say("It waits for an answer. Stopped, it cannot go on.");
            Asked { title: "Stop the turn?", lines, details: Vec::new(), yes: "stop it" }
        }
        About::GiveUp => {
            let held = words::count(state.status.stalls.records(), "event");
            let lines = say(&format!("{held} will never be written, and what waits breaks off."));
            let details = also(
                "Everything before that is safe. With room on the disk it is written by itself.",
            );
            Asked { title: "Give it up?", lines, details, yes: "give it up" }
        }
    }
}

/// What becomes of what is deleted.
fn after_deletion(state: &State) -> String {
    let action = Action::List(ListAction::Undo);
    let undo = state.settings.keymap.hint(&LIST, action);
    let undo = undo.map_or_else(|| action.to_string(), ToString::to_string);
    match state.settings.deleted {
        Deleted::Kept => format!(
            "All that was said goes with it. {undo} in the list takes it back until you quit, and \
             for some days `turnstile sessions restore` does."
        ),
        Deleted::Destroyed => {
            "All that was said goes with it, and nothing brings it back: what is \
                               deleted is kept for no days here."
                .to_owned()
        }
    }
}

/// What would be destroyed, and what has to be typed for it. The word stands there at any size.
#[must_use]
pub fn purge(state: &State, purge: &Purge, (cols, rows): (usize, usize)) -> Vec<Line> {
    let asks = Line::of(&format!("Type {PURGE_WORD}:"), Ui::Caution).cut(cols);
    let mut lines = named(state, &purge.sessions, (cols, rows.saturating_sub(1)));
    let warning = "It goes at once, with all that was said there and nowhere else, and cannot be \
                   taken back.";
    let warning = wrapped(warning, Ui::Plain, cols);
    if lines.len() + warning.len() < rows {
        lines.extend(warning);
    }
    lines.push(asks);
    lines.split_off(lines.len().saturating_sub(rows))
}

/// The titles of sessions, as many as there is room for, and how many more there are.
fn named(state: &State, sessions: &[SessionId], (cols, rows): (usize, usize)) -> Vec<Line> {
    let most = NAMED_MAX.min(rows.max(1));
    let shown = if sessions.len() > most { most - 1 } else { sessions.len() };
    let name = |session| Line::of(&title_of(state, session), Ui::Strong).cut(cols);
    let mut lines: Vec<Line> = sessions.iter().take(shown).map(name).collect();
    if sessions.len() > shown {
        let gap = if shown == 0 { "" } else { "… " };
        let more = if shown == 0 { "" } else { " more" };
        let rest = words::count(sessions.len() - shown, "session");
        lines.push(Line::of(&format!("{gap}{rest}{more}"), Ui::Caution).cut(cols));
    }
    lines
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
    /// [`WAITING_ROWS`] for each call.
    pub lines: Vec<Line>,
    /// The first row of the call under the cursor.
    pub cursor: usize,
}

/// How many rows a call takes that waits: where and since when, and what it wants.
pub const WAITING_ROWS: usize = 2;

/// Calls that wait, one below the other.
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
    let drawn = |line: Line, is_chosen: bool| {
        let pad = cols.saturating_sub(line.width());
        if is_chosen { line.with_space(pad).repainted(Ui::Cursor) } else { line }
    };
    let lines = calls.iter().enumerate().flat_map(|(at, call)| {
        let since = words::short_day(call.since, state.now.wall, &state.settings.zone);
        let place = Line::new().with_mark(Mark::Waiting).with_space(1);
        let place = place.with(&title_of(state, &call.session), Ui::Strong);
        let wants = Line::new().with_space(2);
        let wants = if call.is_question {
            wants.with("asks: ", Ui::Muted).with(&call.wants, Ui::Plain)
        } else {
            wants.with(&call.tool, Ui::Plain).with_space(1).with(&call.wants, Ui::Muted)
        };
        let lines = [place.beside(Line::of(&since, Ui::Muted), cols), wants.cut(cols)];
        lines.map(|line| drawn(line, at == cursor))
    });
    WaitingRows { lines: lines.collect(), cursor: cursor * WAITING_ROWS }
}

/// What can be done with what waits.
#[must_use]
pub fn waiting_hints(state: &State) -> Line {
    let close = choices::choice(state, &WAITING, Action::App(AppAction::Escape), "close", true);
    if state.list.waiting().is_empty() {
        return close;
    }
    let jump = Action::Waiting(WaitingAction::Jump);
    let line = choices::choice(state, &WAITING, jump, "go there", true);
    line.with_space(3).with_line(close)
}
