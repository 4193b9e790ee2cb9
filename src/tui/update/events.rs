//! The event view of a turn: its log, event by event, and the exact request of each model call.

use crate::app::command::{Command, Inspect, InspectWhat, TextOf};
use crate::app::notice::Inspected;
use crate::tui::action::{InspectAction, MoveAction};
use crate::tui::effect::Effect;
use crate::tui::layout::Layout;
use crate::tui::state::State;
use crate::tui::state::overlay::{EventPage, Events, Fetched, Overlay};
use crate::tui::update::overlay::scrolled;
use crate::tui::update::{Effects, overlay, reading, tell};

/// Shows the events of the turn that has the focus.
pub(super) fn show(state: &mut State, layout: &Layout, out: &mut Effects) {
    let Some(focus) = reading::focus(state, layout) else { return tell(state, "No turn is here") };
    let turn = focus.turn;
    let events = Events { turn: turn.clone(), lines: Fetched::Asked, selected: 0, page: None };
    overlay::show(state, Overlay::Events(events), out);
    out.push(Effect::App(Command::Inspect(Inspect { turn, what: InspectWhat::Events })));
}

/// Does what an action says with the event under the cursor, or with the text that is shown.
pub(super) fn perform(state: &mut State, action: InspectAction, out: &mut Effects) {
    let Some(Overlay::Events(events)) = &state.overlay else { return };
    let line = match &events.lines {
        Fetched::There(lines) => lines.get(events.selected),
        Fetched::Asked | Fetched::Failed(_) => None,
    };
    let call = line.and_then(|line| line.model_call);
    match (action, &events.page) {
        (InspectAction::Copy, Some(EventPage { text: Fetched::There(text), .. })) => {
            out.push(Effect::Copy { text: text.text().to_owned() });
        }
        (InspectAction::Copy, _) => tell(state, "Nothing is shown that could be copied"),
        (InspectAction::Open, _) => match line.map(|line| line.offset) {
            Some(offset) => turn_to(state, TextOf::Event(offset), out),
            None => tell(state, "No event is here"),
        },
        (InspectAction::Request, _) => match call {
            Some(call) => turn_to(state, TextOf::Request(call), out),
            None => tell(state, "No model call belongs to this event"),
        },
    }
}

fn turn_to(state: &mut State, what: TextOf, out: &mut Effects) {
    let Some(Overlay::Events(events)) = &mut state.overlay else { return };
    if events.page.as_ref().is_some_and(|page| page.what == what) {
        return tell(state, "This is it");
    }
    events.page = Some(EventPage { what, text: Fetched::Asked, scroll: 0 });
    let (turn, what) = (events.turn.clone(), InspectWhat::Text(what));
    out.push(Effect::App(Command::Inspect(Inspect { turn, what })));
}

/// What was asked for came; nobody may want it any more.
pub(super) fn inspected(state: &mut State, inspected: Inspected) {
    let Some(Overlay::Events(shown)) = &mut state.overlay else { return };
    match inspected {
        Inspected::Events { turn, events } if turn == shown.turn => {
            shown.lines = Fetched::of(events);
        }
        Inspected::Text { turn, what, text } if turn == shown.turn => {
            if let Some(page) = shown.page.as_mut().filter(|page| page.what == what) {
                page.text = Fetched::of(text);
            }
        }
        Inspected::Events { .. } | Inspected::Text { .. } => {}
    }
}

/// From a text back to the events; whether one was shown.
pub(super) fn back(state: &mut State) -> bool {
    match &mut state.overlay {
        Some(Overlay::Events(events)) => events.page.take().is_some(),
        Some(_) | None => false,
    }
}

/// Moves the cursor, or scrolls the text.
pub(super) fn move_through(
    events: &mut Events,
    action: MoveAction,
    (rows, in_sight): (usize, usize),
) {
    if let Some(page) = &mut events.page {
        let last = rows.saturating_sub(in_sight);
        page.scroll = scrolled(page.scroll, action, in_sight, last);
    } else {
        let last = rows.saturating_sub(1);
        events.selected = scrolled(events.selected, action, in_sight, last);
    }
}
