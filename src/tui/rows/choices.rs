//! What a person can do with a prompt, with its keys. None of it goes for want of width.

use crate::tui::action::{
    Action, AppAction, ComposerAction, DialogAction, PermissionAction, QuestionAction,
};
use crate::tui::keymap::context::Context;
use crate::tui::line::Line;
use crate::tui::state::State;
use crate::tui::state::keys::Arming;
use crate::tui::state::overlay::Rewrite;
use crate::tui::state::prompts::PromptKind;
use crate::tui::theme::Ui;
use crate::tui::words;

const PERMISSION: [Context; 2] = [Context::Permission, Context::Global];
const REWRITE: [Context; 3] = [Context::Rewrite, Context::Editing, Context::Global];
pub(in crate::tui) const INTERRUPTED: [Context; 2] = [Context::Interrupted, Context::Global];
const GAP_COLS: usize = 2;
const INDENT: usize = 1;
const DEAD: &str = " · keys work in a moment";

/// What can be done with a permission prompt.
#[must_use]
pub fn permission(state: &State, is_armed: bool, cols: usize) -> Vec<Line> {
    let choices = [
        (PermissionAction::AllowOnce, "allow once"),
        (PermissionAction::Deny, "deny"),
        (PermissionAction::DenyWithReason, "deny, say why"),
        (PermissionAction::FullView, "view all"),
        (PermissionAction::Later, "later"),
    ];
    let choices = choices.map(|(action, what)| (Action::Permission(action), what));
    row(state, &PERMISSION, &choices, is_armed, cols)
}

/// What can be done with a permission prompt in its full view.
#[must_use]
pub fn full_view(state: &State, is_armed: bool, cols: usize) -> Vec<Line> {
    let choices = [
        (PermissionAction::AllowOnce, "allow once"),
        (PermissionAction::Deny, "deny"),
        (PermissionAction::DenyWithReason, "deny, say why"),
        (PermissionAction::Later, "back"),
    ];
    let choices = choices.map(|(action, what)| (Action::Permission(action), what));
    row(state, &PERMISSION, &choices, is_armed, cols)
}

/// What can be done with a question.
#[must_use]
pub fn question(state: &State, is_armed: bool, cols: usize) -> Vec<Line> {
    let contexts = [Context::Question, Context::Global];
    let choices = [
        (QuestionAction::Toggle, "choose"),
        (QuestionAction::Next, "next field"),
        (QuestionAction::Answer, "answer"),
        (QuestionAction::Dismiss, "dismiss"),
        (QuestionAction::Later, "later"),
    ];
    let choices = choices.map(|(action, what)| (Action::Question(action), what));
    row(state, &contexts, &choices, is_armed, cols)
}

/// What can be done in a dialog. To go back works at once.
#[must_use]
pub fn dialog(
    state: &State,
    contexts: &[Context],
    (accept, arming): (&str, Arming),
    cancel: &str,
) -> Line {
    let is_armed = arming == Arming::Armed;
    let accept = choice(state, contexts, Action::Dialog(DialogAction::Accept), accept, is_armed);
    let cancel = choice(state, contexts, Action::App(AppAction::Escape), cancel, true);
    let line = accept.with_space(GAP_COLS).with_line(cancel);
    if is_armed { line } else { line.with(DEAD, Ui::Muted) }
}

/// What can be done with an interrupted turn before a message is sent.
#[must_use]
pub fn interrupted(state: &State, arming: Arming, cols: usize) -> Vec<Line> {
    let choices = [(DialogAction::Resume, "resume it"), (DialogAction::Accept, "close it")];
    let line = |(action, what)| {
        choice(state, &INTERRUPTED, Action::Dialog(action), what, arming == Arming::Armed)
    };
    choices.map(|choice| line(choice).cut(cols)).into()
}

/// What can be done with the text of a message that waits.
#[must_use]
pub fn rewrite(state: &State, rewrite: &Rewrite) -> Line {
    let is_changed = rewrite.changed().is_some();
    let keep = if is_changed { "keep it so" } else { "leave it so" };
    let line = dialog(state, &REWRITE, (keep, Arming::Armed), "back");
    let first = state.conversation.unsent.first();
    let has_before = first.is_some_and(|first| first.id != rewrite.event);
    if is_changed || !has_before {
        return line;
    }
    let before = Action::Composer(ComposerAction::EditWaiting);
    let before = choice(state, &REWRITE, before, "the one before", true);
    line.with_space(GAP_COLS).with_line(before)
}

/// How a dialog is left whose choices stand in it.
#[must_use]
pub fn back(state: &State, contexts: &[Context], arming: Arming, cancel: &str) -> Line {
    let cancel = choice(state, contexts, Action::App(AppAction::Escape), cancel, true);
    if arming == Arming::Armed { cancel } else { cancel.with(DEAD, Ui::Muted) }
}

/// Says how many more rows there are above and below those in sight, and how to see them.
#[must_use]
pub fn more(state: &State, kind: PromptKind, (above, below): (usize, usize)) -> Line {
    let text = match (above, below) {
        (0, below) => words::count(below, "more row"),
        (above, 0) => format!("{} above", words::count(above, "row")),
        (above, below) => format!("{above} above, {below} below"),
    };
    let line = Line::of(&format!("  … {text}"), Ui::Caution);
    let key =
        state.settings.keymap.hint(&PERMISSION, Action::Permission(PermissionAction::FullView));
    match (kind, key) {
        (PromptKind::Permission, Some(key)) => line
            .with(" · ", Ui::Muted)
            .with(&key.to_string(), Ui::Key)
            .with(" shows all", Ui::Muted),
        (PromptKind::Permission | PromptKind::Question, _) => line,
    }
}

/// Choices one beside the other, in as many rows as they take.
fn row(
    state: &State,
    contexts: &[Context],
    choices: &[(Action, &str)],
    is_armed: bool,
    cols: usize,
) -> Vec<Line> {
    let mut rows: Vec<Line> = Vec::new();
    for (action, what) in choices.iter().filter(|(action, _)| state.settings.access.allows(*action))
    {
        let choice = choice(state, contexts, *action, what, is_armed);
        match rows.last_mut() {
            Some(row) if row.width() + GAP_COLS + choice.width() <= cols => {
                let begun = std::mem::take(row);
                *row = begun.with_space(GAP_COLS).with_line(choice);
            }
            Some(_) | None => rows.push(choice.indented(INDENT)),
        }
    }
    rows
}

pub(super) fn choice(
    state: &State,
    contexts: &[Context],
    action: Action,
    what: &str,
    is_live: bool,
) -> Line {
    let key = state.settings.keymap.hint(contexts, action).map(ToString::to_string);
    let part = if is_live { Ui::Key } else { Ui::KeyDead };
    let text = if is_live { Ui::Plain } else { Ui::KeyDead };
    Line::of(key.as_deref().unwrap_or("(no key)"), part).with_space(1).with(what, text)
}
