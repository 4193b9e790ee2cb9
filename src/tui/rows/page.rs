//! What stands in the conversation where there is nothing to read: how to begin, or what is wrong.

use ratatui::layout::Rect;

use crate::tui::action::{Action, AppAction, ComposerAction};
use crate::tui::keymap::context::Context;
use crate::tui::line::{Line, led, wrapped};
use crate::tui::mark::Mark;
use crate::tui::state::State;
use crate::tui::state::settings::Access;
use crate::tui::state::status::LastRun;
use crate::tui::theme::Ui;
use crate::tui::words;

/// Where the composer has the focus, as it has on the empty page.
const COMPOSER: [Context; 3] = [Context::Composer, Context::Editing, Context::Global];
/// What a person who comes for the first time should know.
const ABOUT: &str = "Say what is to be done. You are asked before anything is changed or run, and \
                     nothing that you type is lost.";
const ABOUT_COLS: usize = 50;
/// As many interrupted sessions are named; the rest are counted.
const NAMED_MAX: usize = 4;

/// The empty page.
#[must_use]
pub fn new(state: &State, rect: Rect) -> Vec<Line> {
    let cols = usize::from(rect.width);
    let mut top = first_line(state, cols);
    let room = usize::from(rect.height).saturating_sub(top.len());
    let about = wrapped(ABOUT, Ui::Plain, cols.saturating_sub(2).min(ABOUT_COLS));
    let mut middle = vec![Line::of("turnstile", Ui::Assistant)];
    let keys = keys(state);
    if room > about.len() + keys.len() + 2 {
        middle.push(Line::new());
        middle.extend(about);
        middle.push(Line::new());
    }
    middle.extend(keys);
    middle.truncate(room);
    let above = room.saturating_sub(middle.len()) / 2;
    top.extend(std::iter::repeat_n(Line::new(), above));
    top.extend(middle.into_iter().map(|line| line.centred(cols)));
    top.truncate(usize::from(rect.height));
    top
}

/// How to begin.
fn keys(state: &State) -> Vec<Line> {
    let actions = [
        (Action::Composer(ComposerAction::Send), "send"),
        (Action::Composer(ComposerAction::Newline), "new line"),
        (Action::App(AppAction::ToggleList), "sessions"),
        (Action::App(AppAction::Help), "help"),
    ];
    let can_be_done = |(action, _): &(Action, &str)| {
        !matches!(action, Action::Composer(_)) || state.settings.access == Access::Full
    };
    let line = |(action, what): (Action, &str)| {
        let key = state.settings.keymap.hint(&COMPOSER, action)?.to_string();
        Some(Line::of(&format!("{key:>10}  "), Ui::Key).with(&format!("{what:<8}"), Ui::Muted))
    };
    actions.into_iter().filter(can_be_done).filter_map(line).collect()
}

/// What is said if the last run ended badly: which sessions have interrupted turns.
#[must_use]
pub fn ended_badly(state: &State) -> Option<String> {
    let LastRun::EndedBadly { interrupted } = &state.status.last_run else { return None };
    if interrupted.is_empty() {
        let text = "The last run ended badly; it interrupted no turn, and what waited for you \
                    still does";
        return Some(text.to_owned());
    }
    let titles = interrupted.iter().take(NAMED_MAX).map(|session| {
        let title = state.list.entry(session).and_then(|entry| entry.title.clone());
        title.unwrap_or_else(|| session.to_string())
    });
    let mut named = titles.collect::<Vec<_>>().join(" · ");
    let rest = interrupted.len().saturating_sub(NAMED_MAX);
    if rest > 0 {
        named = format!("{named} · {rest} more");
    }
    let turns = words::count(interrupted.len(), "interrupted turn");
    Some(format!("The last run ended badly and left {turns}: {named}"))
}

/// The line for it.
fn first_line(state: &State, cols: usize) -> Vec<Line> {
    let Some(text) = ended_badly(state) else { return Vec::new() };
    let head = Line::new().with_space(1).with_mark(Mark::Interrupted).with_space(1);
    let mut lines = led(head, &text, Ui::Strong, cols.saturating_sub(1));
    lines.push(Line::new());
    lines
}

/// A session that is being read.
#[must_use]
pub fn opening(rect: Rect) -> Vec<Line> {
    notice(Line::of("Opening…", Ui::Muted), rect)
}

/// A session without turns.
#[must_use]
pub fn without_turns(rect: Rect) -> Vec<Line> {
    notice(Line::of("Nothing was said here yet", Ui::Muted), rect)
}

/// A session that cannot be read.
#[must_use]
pub fn unreadable(why: &str, rect: Rect) -> Vec<Line> {
    let cols = usize::from(rect.width).saturating_sub(2);
    let head = Line::new().with_space(1).with_mark(Mark::Damaged).with_space(1);
    let mut lines = led(head, "This session cannot be read", Ui::Strong, cols);
    lines.extend(led(Line::new().with_space(3), why, Ui::Muted, cols));
    lines.truncate(usize::from(rect.height));
    lines
}

fn notice(line: Line, rect: Rect) -> Vec<Line> {
    let above = usize::from(rect.height.saturating_sub(1)) / 2;
    let blank = std::iter::repeat_n(Line::new(), above);
    let lines = blank.chain([line.centred(usize::from(rect.width))]);
    lines.take(usize::from(rect.height)).collect()
}
