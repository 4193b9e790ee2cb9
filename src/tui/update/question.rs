//! Answering a form of questions. The one place that makes [`Command::Answer`], reached by a key alone
//! and only for the form that is armed.

use crate::app::command::Command;
use crate::domain::question::Answer;
use crate::tui::action::{MoveAction, QuestionAction};
use crate::tui::effect::Effect;
use crate::tui::state::form::{Filled, Form};
use crate::tui::state::prompts::Prompt;
use crate::tui::state::{Focus, State};
use crate::tui::update::{Effects, composer, drafts, hint, may_write, prompts, tell};

/// Does what an action says with the armed form.
pub(super) fn perform(state: &mut State, action: QuestionAction, out: &mut Effects) {
    if action == QuestionAction::Later {
        return prompts::put_off(state);
    }
    if action == QuestionAction::Toggle && armed(state).is_some() && !may_write(state) {
        return;
    }
    let Some((prompt, form)) = armed(state) else { return };
    match action {
        QuestionAction::Toggle => {
            form.toggle();
            drafts::prompt_changed(state, prompt.call);
        }
        QuestionAction::Next => form.go_on(),
        QuestionAction::Answer => answer(state, &prompt, out),
        QuestionAction::Dismiss => {
            let typed = form.typed();
            if send(state, &prompt, Answer::Dismissed, out) {
                composer::remember(state, &typed, out);
            }
        }
        QuestionAction::Later => {}
    }
}

/// Moves among the options.
pub(super) fn move_through(state: &mut State, action: MoveAction) {
    let Some((_, form)) = armed(state) else { return };
    match action {
        MoveAction::Up => form.move_by(-1),
        MoveAction::Down => form.move_by(1),
        MoveAction::Top | MoveAction::PageUp | MoveAction::HalfPageUp => form.move_by(isize::MIN),
        MoveAction::Bottom | MoveAction::PageDown | MoveAction::HalfPageDown => {
            form.move_by(isize::MAX);
        }
        MoveAction::ToList | MoveAction::ToTimeline | MoveAction::ToComposer => {}
    }
}

fn armed(state: &mut State) -> Option<(Prompt, &mut Form)> {
    if state.focus != Focus::Prompt || state.overlay.is_some() {
        return None;
    }
    let prompt = state.prompts.armed()?.clone();
    let form = state.prompts.forms.get_mut(&prompt.call)?;
    Some((prompt, form))
}

/// Sends the answers when every question has one; else goes to the next that has none. Nothing is
/// chosen by this key alone.
fn answer(state: &mut State, prompt: &Prompt, out: &mut Effects) {
    let Some(form) = state.prompts.forms.get_mut(&prompt.call) else { return };
    match form.filled() {
        Filled::All(answers) => {
            send(state, prompt, Answer::Answered(answers), out);
        }
        Filled::Missing(at) if form.is_untouched() && form.at == at => {
            let choose = hint::question(state, QuestionAction::Toggle);
            let send = hint::question(state, QuestionAction::Answer);
            tell(state, format!("Choose with {choose} or type an answer; {send} sends it"));
        }
        Filled::Missing(at) => {
            form.go_to(at);
            tell(state, "This question has no answer yet");
        }
    }
}

/// Whether the answer was sent.
fn send(state: &mut State, prompt: &Prompt, answer: Answer, out: &mut Effects) -> bool {
    if !may_write(state) {
        return false;
    }
    let (turn, call) = (prompt.turn.clone(), prompt.call.clone());
    out.push(Effect::App(Command::Answer { turn, call, answer }));
    prompts::answered(state, prompt);
    true
}
