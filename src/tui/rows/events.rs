//! The events of a turn's log, a line each.

use crate::app::notice::EventLine;
use crate::tui::action::{Action, AppAction, InspectAction};
use crate::tui::keymap::context::Context;
use crate::tui::line::Line;
use crate::tui::rows::choices::choice;
use crate::tui::state::State;
use crate::tui::theme::Ui;
use crate::tui::words;

const EVENTS: [Context; 3] = [Context::Events, Context::Moving, Context::Global];

/// The line of an event.
#[must_use]
pub fn line(state: &State, event: &EventLine, is_chosen: bool, cols: usize) -> Line {
    let time = words::clock_seconds(event.at, &state.settings.zone);
    let about = match (event.model_call, &event.tool) {
        (Some(call), _) => format!("call {call}"),
        (None, Some(tool)) => tool.clone(),
        (None, None) => String::new(),
    };
    let offset = Line::of(&format!("{:>4}  ", event.offset), Ui::Muted);
    // What happened comes before when.
    let fits = offset.width() + time.len() + 2 + event.kind.len() <= cols;
    let line = if fits { offset.with(&time, Ui::Muted).with_space(2) } else { offset };
    let line = line.with(event.kind, Ui::Plain).with_space(2).with(&about, Ui::Muted).cut(cols);
    let pad = cols.saturating_sub(line.width());
    if is_chosen { line.with_space(pad).repainted(Ui::Cursor) } else { line }
}

/// What can be done with the event under the cursor.
#[must_use]
pub fn list_hints(state: &State, event: Option<&EventLine>) -> Line {
    let open = event.map(|_| (Action::Inspect(InspectAction::Open), "shows it"));
    let request = (Action::Inspect(InspectAction::Request), "what was sent");
    let request = event.and_then(|event| event.model_call).map(|_| request);
    let close = (Action::App(AppAction::Escape), "close");
    let choices: Vec<_> = open.into_iter().chain(request).chain([close]).collect();
    row(state, &choices)
}

/// What can be done with a text that is shown.
#[must_use]
pub fn text_hints(state: &State) -> Line {
    let choices =
        [(Action::Inspect(InspectAction::Copy), "copy"), (Action::App(AppAction::Escape), "back")];
    row(state, &choices)
}

/// How to leave where there is nothing to copy.
#[must_use]
pub fn note_hints(state: &State) -> Line {
    row(state, &[(Action::App(AppAction::Escape), "back")])
}

fn row(state: &State, choices: &[(Action, &str)]) -> Line {
    let drawn = choices.iter().map(|(action, what)| choice(state, &EVENTS, *action, what, true));
    drawn.reduce(|line, choice| line.with_space(2).with_line(choice)).unwrap_or_default()
}
