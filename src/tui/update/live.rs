//! The live stream of all turns: who runs, what was recorded, what streams.

use crate::app::command::Command;
use crate::base::id::TurnId;
use crate::domain::turn::event::TurnFact;
use crate::domain::turn::live::{LiveEvent, News};
use crate::tui::effect::Effect;
use crate::tui::state::State;
use crate::tui::state::activity::{Run, Work};
use crate::tui::state::conversation::Reading;
use crate::tui::state::keys::StepKind;
use crate::tui::state::turns::{Folded, ModelWait, Turns};
use crate::tui::update::{Effects, notify, prompts};

/// Takes in what a turn tells.
pub(super) fn take(state: &mut State, event: LiveEvent, out: &mut Effects) {
    let LiveEvent { session, turn, news } = event;
    let on_screen = session.is_some() && session.as_ref() == state.session();
    match news {
        News::Started => {
            let since = state.now.elapsed;
            state.activity.started(turn, Run { session, since });
        }
        News::Rested => rested(state, &turn),
        News::Recorded { offset, event } => {
            if let Some(session) = &session {
                notify::recorded(state, session, &event.fact, out);
            }
            if let TurnFact::PermissionResolved(resolved) = &event.fact {
                prompts::recorded(state, &resolved.tool_call_id, out);
            }
            if let TurnFact::ToolResult(result) = &event.fact {
                prompts::recorded(state, &result.tool_call_id, out);
            }
            if on_screen {
                fold(state, out, |turns| turns.record(&turn, offset, &event));
            }
        }
        News::Delta(delta) if on_screen => grow(state, out, |turns| turns.delta(&turn, &delta)),
        News::ModelWaiting { until, why } if on_screen => {
            state.conversation.turns.wait(&turn, ModelWait { until, why });
        }
        News::ToolTail { call, tail } if on_screen => {
            state.conversation.turns.tail(&turn, &call, tail);
        }
        News::Delta(_) | News::ModelWaiting { .. } | News::ToolTail { .. } => {}
    }
}

/// Folds something into the turns on screen; what is missing is asked for. What comes while the
/// person reads elsewhere is counted.
fn fold(state: &mut State, out: &mut Effects, fold: impl FnOnce(&mut Turns) -> Folded) {
    let before = state.conversation.turns.item_count();
    let folded = fold(&mut state.conversation.turns);
    let new = state.conversation.turns.item_count().saturating_sub(before);
    match state.conversation.reading {
        Reading::Follow => {}
        Reading::Pinned(_) => state.conversation.new_below += new,
    }
    match folded {
        Folded::Taken | Folded::Kept => {}
        Folded::Gap => {
            let session = state.session().cloned();
            out.extend(session.map(|session| Effect::App(Command::Open(session))));
        }
    }
}

/// Adds what streams to the turns on screen. It grows the last text, so that there is something new
/// below who reads elsewhere, even if no item is.
fn grow(state: &mut State, out: &mut Effects, grow: impl FnOnce(&mut Turns) -> Folded) {
    fold(state, out, grow);
    if state.conversation.reading != Reading::Follow {
        state.conversation.new_below = state.conversation.new_below.max(1);
    }
}

fn rested(state: &mut State, turn: &TurnId) {
    state.activity.rested(turn);
    state.status.rested(turn);
    state.conversation.turns.rest(turn);
    if matches!(&state.keys.step, Some(step) if step.kind == StepKind::Stop(Work::Turn(turn.clone())))
    {
        state.keys.step = None;
    }
}
