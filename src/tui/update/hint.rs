//! The keys that messages name: those that are bound now, never the ones that were once the default.

use crate::tui::action::{
    Action, AppAction, ComposerAction, ListAction, QuestionAction, TurnAction,
};
use crate::tui::keymap::context::Context;
use crate::tui::state::State;

/// A key for something that works everywhere.
pub(super) fn anywhere(state: &State, action: AppAction) -> String {
    key(state, &[Context::Global], Action::App(action))
}

/// A key for something in the composer.
pub(super) fn composer(state: &State, action: ComposerAction) -> String {
    key(state, &[Context::Composer], Action::Composer(action))
}

/// A key for something in the session list.
pub(super) fn list(state: &State, action: ListAction) -> String {
    key(state, &[Context::List], Action::List(action))
}

/// A key for something about a turn of the conversation.
pub(super) fn timeline(state: &State, action: TurnAction) -> String {
    key(state, &[Context::Timeline], Action::Turn(action))
}

/// A key for something in a form of questions.
pub(super) fn question(state: &State, action: QuestionAction) -> String {
    key(state, &[Context::Question], Action::Question(action))
}

/// Where nothing is bound, the name by which it can be.
fn key(state: &State, contexts: &[Context], action: Action) -> String {
    let keys = state.settings.keymap.hint(contexts, action);
    keys.map_or_else(|| action.name().to_owned(), ToString::to_string)
}
