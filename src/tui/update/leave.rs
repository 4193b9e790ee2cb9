//! Stopping and leaving: the ladders of Escape and Ctrl-C, and the way out.

use crate::app::command::Command;
use crate::base::id::TurnId;
use crate::tui::action::AppAction;
use crate::tui::effect::Effect;
use crate::tui::state::activity::Work;
use crate::tui::state::form::Spot;
use crate::tui::state::keys::{Arming, StepKind};
use crate::tui::state::overlay::{About, Confirm, Overlay};
use crate::tui::state::{Focus, State};
use crate::tui::update::{
    Effects, composer, drafts, events, focus, hint, list, may_write, overlay, prompts, tell,
    tell_of,
};

/// Ctrl-C: out of what lies on top; else with text, that goes into the history; else what runs in the
/// session stops; else a second one quits.
pub(super) fn interrupt(state: &mut State, out: &mut Effects) {
    let step = state.keys.take_step(state.now.elapsed);
    if let Some(Overlay::Confirm(Confirm { about: About::Quit, arming })) = &state.overlay {
        if *arming == Arming::Armed {
            leave(state, out);
        }
        return;
    }
    if overlay::close(state, out) || list::leave_text(state) || clear_text(state, out) {
        return;
    }
    if let Some(work) = state.work() {
        return stop_work(state, work, out);
    }
    match step {
        Some(StepKind::Quit) => quit(state, out),
        Some(StepKind::Stop(_)) | None => {
            state.keys.begin(StepKind::Quit, state.now.elapsed);
        }
    }
}

/// Escape closes what is on top. In the composer it arms the stop of what runs in the session, and a
/// second one stops it; text is never touched.
pub(super) fn escape(state: &mut State, out: &mut Effects) {
    let step = state.keys.take_step(state.now.elapsed);
    if events::back(state) || overlay::close(state, out) {
        return;
    }
    match state.focus {
        Focus::Prompt => prompts::put_off(state),
        Focus::List => list::escape(state, out),
        Focus::Timeline => state.status.toasts.clear(),
        Focus::Composer => match (state.work(), step) {
            (Some(work), Some(StepKind::Stop(armed))) if armed == work => {
                stop_work(state, work, out);
            }
            (Some(work), _) => {
                state.keys.begin(StepKind::Stop(work), state.now.elapsed);
            }
            (None, _) => focus::go(state, Focus::Timeline, out),
        },
    }
}

fn stop_work(state: &mut State, work: Work, out: &mut Effects) {
    match work {
        Work::Turn(turn) => stop(state, turn, out),
        Work::Compaction(session) => {
            if may_write(state) {
                out.push(Effect::App(Command::StopCompaction(session)));
            }
        }
    }
}

/// Ends a turn, whether it runs or waits.
pub(super) fn stop(state: &mut State, turn: TurnId, out: &mut Effects) {
    if may_write(state) {
        tell_of(state, turn.clone(), "Stopping the turn");
        out.push(Effect::App(Command::Stop(turn)));
    }
}

/// Quits if there is nothing in the composer.
pub(super) fn quit_if_empty(state: &mut State, out: &mut Effects) {
    if state.composer.editor.is_empty() {
        quit(state, out);
    } else {
        let clear = hint::anywhere(state, AppAction::Interrupt);
        tell(state, format!("There is text in the composer; {clear} there makes it history"));
    }
}

/// Quits, or says first what will happen to the turns that run and to what the disk has not taken.
pub(super) fn quit(state: &mut State, out: &mut Effects) {
    if state.activity.session_count() > 0 || !state.status.stalls.list.is_empty() {
        overlay::ask(state, About::Quit, out);
    } else {
        leave(state, out);
    }
}

/// Quits. Everything that was typed is kept first.
pub(super) fn leave(state: &mut State, out: &mut Effects) {
    drafts::leave(state, out);
    out.push(Effect::Quit { session: state.session().cloned() });
}

/// Takes the text out of what has the focus; whether there was any.
fn clear_text(state: &mut State, out: &mut Effects) -> bool {
    match state.focus {
        Focus::Composer if !state.composer.editor.is_empty() => {
            composer::clear(state, out);
            true
        }
        Focus::Prompt => {
            let Some(call) = state.prompts.armed().map(|prompt| prompt.call.clone()) else {
                return false;
            };
            let form = state.prompts.forms.get_mut(&call).filter(|form| form.spot == Spot::Text);
            let Some(field) = form.and_then(|form| form.text_mut()) else { return false };
            let text = field.text();
            if text.is_empty() {
                return false;
            }
            field.clear();
            composer::remember(state, &text, out);
            drafts::prompt_changed(state, call);
            true
        }
        Focus::Composer | Focus::List | Focus::Timeline => false,
    }
}
