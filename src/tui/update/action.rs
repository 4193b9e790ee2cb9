//! Which part does what an action says.

use crate::tui::action::{Action, AppAction, DialogAction, MoveAction};
use crate::tui::effect::Effect;
use crate::tui::layout::Layout;
use crate::tui::state::overlay::Overlay;
use crate::tui::state::{Focus, State};
use crate::tui::update::{
    Effects, composer, drafts, events, focus, leave, list, overlay, prompts, question, session,
    stalled, text, timeline,
};

/// Does what an action says, where the focus is.
pub(super) fn perform(state: &mut State, layout: &Layout, action: Action, out: &mut Effects) {
    match action {
        Action::App(action) => anywhere(state, layout, action, out),
        Action::Move(action) => move_through(state, layout, action, out),
        Action::List(action) => list::perform(state, layout, action, out),
        Action::Turn(action) => session::turn_action(state, action, out),
        Action::Timeline(action) => timeline::perform(state, layout, action, out),
        Action::Permission(action) => prompts::perform(state, action, out),
        Action::Question(action) => question::perform(state, action, out),
        Action::Waiting(action) => overlay::jump(state, action, out),
        Action::Composer(action) => composer::perform(state, layout, action, out),
        Action::Edit(action) => text::edit(state, layout, action, out),
        Action::Inspect(action) => events::perform(state, action, out),
        Action::Dialog(DialogAction::Accept) => overlay::accept(state, out),
        Action::Dialog(DialogAction::Resume) => overlay::resume(state, out),
    }
}

fn anywhere(state: &mut State, layout: &Layout, action: AppAction, out: &mut Effects) {
    match action {
        AppAction::Interrupt => leave::interrupt(state, out),
        AppAction::Escape => leave::escape(state, out),
        AppAction::Quit => leave::quit_if_empty(state, out),
        AppAction::Help => overlay::help(state, out),
        AppAction::NextPane => focus::next(state, focus::Way::Forwards, out),
        AppAction::PreviousPane => focus::next(state, focus::Way::Backwards, out),
        AppAction::GoToPrompt => prompts::go(state, out),
        AppAction::WaitingList => overlay::waiting(state, out),
        AppAction::NewSession => session::new_page(state, out),
        AppAction::ToggleList => list::toggle(state, layout, out),
        AppAction::Compact => session::compact(state, out),
        AppAction::RetryWrites => stalled::retry(state, out),
        AppAction::GiveUpWrites => stalled::ask(state, out),
        AppAction::Redraw => out.push(Effect::Redraw),
        AppAction::Suspend => {
            drafts::flush(state, out);
            out.push(Effect::Suspend);
        }
    }
}

fn move_through(state: &mut State, layout: &Layout, action: MoveAction, out: &mut Effects) {
    match action {
        MoveAction::ToList => return focus::go(state, Focus::List, out),
        MoveAction::ToTimeline => return focus::go(state, Focus::Timeline, out),
        MoveAction::ToComposer => return focus::go(state, Focus::Composer, out),
        MoveAction::Up
        | MoveAction::Down
        | MoveAction::PageUp
        | MoveAction::PageDown
        | MoveAction::HalfPageUp
        | MoveAction::HalfPageDown
        | MoveAction::Top
        | MoveAction::Bottom => {}
    }
    match &state.overlay {
        Some(Overlay::Help(_) | Overlay::Full(_) | Overlay::Waiting(_) | Overlay::Events(_)) => {
            overlay::move_through(state, layout, action);
        }
        Some(
            Overlay::Confirm(_)
            | Overlay::Reason(_)
            | Overlay::Codes(_)
            | Overlay::Purge(_)
            | Overlay::Rewrite(_),
        ) => {}
        None => match state.focus {
            Focus::List => list::move_through(state, layout, action),
            Focus::Timeline => timeline::move_through(state, layout, action),
            Focus::Composer => timeline::scroll(state, layout, action),
            Focus::Prompt => question::move_through(state, action),
        },
    }
}
