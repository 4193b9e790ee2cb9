//! Who has the focus, and what is left behind when it moves on.

use crate::tui::state::prompts::Stage;
use crate::tui::state::{Focus, State};
use crate::tui::update::{Effects, overlay, prompts};

/// Below this width the list takes the whole page while it has the focus (`design/experience.md`).
pub(super) const WIDE_COLS: u16 = 80;

/// The way around the panes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// To the next.
    Forwards,
    /// To the one before.
    Backwards,
}

/// Moves the focus. What lies over everything else closes; a prompt goes into its dock.
pub(super) fn go(state: &mut State, to: Focus, out: &mut Effects) {
    overlay::close(state, out);
    if to == Focus::Prompt {
        prompts::go(state, out);
        return;
    }
    state.prompts.stage = Stage::Docked;
    state.focus = to;
}

/// Moves the focus to the next pane. A text that was asked for keeps it: these keys are dead there.
pub(super) fn next(state: &mut State, way: Way, out: &mut Effects) {
    if state.overlay.as_mut().is_some_and(|overlay| overlay.field_mut().is_some()) {
        return;
    }
    let mut panes = vec![Focus::Timeline, Focus::Composer];
    if !state.list.settings.hidden || state.focus == Focus::List {
        panes.insert(0, Focus::List);
    }
    if !state.prompts.queue.is_empty() {
        panes.insert(panes.len() - 1, Focus::Prompt);
    }
    let at = panes.iter().position(|pane| *pane == state.focus).unwrap_or(0);
    let to = match way {
        Way::Forwards => (at + 1) % panes.len(),
        Way::Backwards => (at + panes.len() - 1) % panes.len(),
    };
    if let Some(pane) = panes.get(to) {
        go(state, *pane, out);
    }
}
