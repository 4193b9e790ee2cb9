//! What lies over everything else: opening, moving in it, accepting, closing.

use crate::app::command::Command;
use crate::tui::action::{MoveAction, WaitingAction};
use crate::tui::effect::Effect;
use crate::tui::layout::Layout;
use crate::tui::state::keys::Arming;
use crate::tui::state::overlay::{About, Confirm, Help, Overlay, PURGE_WORD, Reason, Waiting};
use crate::tui::state::prompts::Stage;
use crate::tui::state::{Focus, State};
use crate::tui::update::{
    Effects, composer, drafts, events, leave, list, may_write, prompts, session, stalled, tell,
    unsent,
};

/// Closes what lies on top; whether anything did. A reason that was begun is kept, and the keys of
/// a prompt below are dead until it has been seen again.
pub(super) fn close(state: &mut State, out: &mut Effects) -> bool {
    let Some(overlay) = state.overlay.take() else { return false };
    if let Overlay::Rewrite(rewrite) = &overlay {
        drafts::rewrite_left(state, rewrite, out);
    }
    if let Overlay::Reason(Reason { prompt, field }) = overlay {
        let draft = field.draft();
        if !draft.text.is_empty() || state.prompts.reasons.contains_key(&prompt.call) {
            state.prompts.reasons.insert(prompt.call.clone(), draft);
            if state.prompts.saves.contains_key(&prompt.call) {
                drafts::flush_prompts(state, out);
            }
        }
    }
    if let Stage::Armed { call } = &state.prompts.stage {
        state.prompts.stage = Stage::Opening { call: call.clone(), drawn_at: None };
    }
    true
}

/// Shows the keys of the place where the person is.
pub(super) fn help(state: &mut State, out: &mut Effects) {
    if matches!(state.overlay, Some(Overlay::Help(_))) {
        close(state, out);
        return;
    }
    let contexts = state.contexts();
    show(state, Overlay::Help(Help { contexts, scroll: 0 }), out);
}

/// Asks a question with yes and no.
pub(super) fn ask(state: &mut State, about: About, out: &mut Effects) {
    show(state, Overlay::Confirm(Confirm { about, arming: Arming::default() }), out);
}

/// The frame that shows the question is on the screen.
pub(super) fn drawn(state: &mut State, layout: &Layout) {
    let Some(Overlay::Confirm(confirm)) = &mut state.overlay else { return };
    match confirm.arming {
        // What a smaller screen does not show any more cannot be answered on it either.
        Arming::Seen(_) | Arming::Armed if layout.overlay.is_none() => {
            confirm.arming = Arming::Unseen;
        }
        Arming::Unseen if layout.overlay.is_some() => {
            confirm.arming = Arming::Seen(state.now.elapsed);
        }
        Arming::Unseen | Arming::Seen(_) | Arming::Armed => {}
    }
}

/// Makes the keys of the question live when it has been seen for long enough without a key.
pub(super) fn arm(state: &mut State) {
    let Some(Overlay::Confirm(confirm)) = &mut state.overlay else { return };
    if confirm.arming.due(&state.keys).is_some_and(|due| due <= state.now.elapsed) {
        confirm.arming = Arming::Armed;
    }
}

/// Whether a question whose keys are dead stands between a person and the text that they write.
pub(super) fn is_in_the_way(state: &State) -> bool {
    let is_dead = matches!(&state.overlay, Some(Overlay::Confirm(confirm)) if confirm.arming != Arming::Armed);
    is_dead && state.focus == Focus::Composer
}

/// Lists everything that waits.
pub(super) fn waiting(state: &mut State, out: &mut Effects) {
    if matches!(state.overlay, Some(Overlay::Waiting(_))) {
        close(state, out);
        return;
    }
    show(state, Overlay::Waiting(Waiting::default()), out);
}

/// Lays something over everything else, in place of what lies there.
pub(super) fn show(state: &mut State, overlay: Overlay, out: &mut Effects) {
    close(state, out);
    state.overlay = Some(overlay);
}

/// Goes to the session of the call under the cursor of the waiting list.
pub(super) fn jump(state: &mut State, action: WaitingAction, out: &mut Effects) {
    let WaitingAction::Jump = action;
    let Some(Overlay::Waiting(waiting)) = &state.overlay else { return };
    let found = state.list.waiting().cursor(waiting.selected.as_ref()).cloned();
    close(state, out);
    if let Some(call) = found {
        session::open(state, &call.session, out);
        prompts::want(state, call.call);
    }
}

/// Yes to a question, or done with a text that was asked for.
pub(super) fn accept(state: &mut State, out: &mut Effects) {
    match &state.overlay {
        Some(Overlay::Confirm(Confirm { about, arming: Arming::Armed })) => {
            let about = about.clone();
            close(state, out);
            confirmed(state, about, out);
        }
        Some(Overlay::Reason(_)) => prompts::deny_with_reason(state, out),
        Some(Overlay::Purge(purge)) if purge.is_meant() => {
            let sessions = purge.sessions.clone();
            close(state, out);
            list::purge(state, sessions, out);
        }
        Some(Overlay::Rewrite(_)) => unsent::edited(state, out),
        Some(Overlay::Purge(_)) => tell(state, format!("Type {PURGE_WORD}, or leave with Esc")),
        None if state.focus == Focus::List => list::accept(state, out),
        Some(
            Overlay::Confirm(Confirm { arming: Arming::Unseen | Arming::Seen(_), .. })
            | Overlay::Help(_)
            | Overlay::Full(_)
            | Overlay::Waiting(_)
            | Overlay::Codes(_)
            | Overlay::Events(_),
        )
        | None => {}
    }
}

fn confirmed(state: &mut State, about: About, out: &mut Effects) {
    match about {
        About::Quit => leave::leave(state, out),
        About::Stop(turn) => leave::stop(state, turn, out),
        About::GiveUp => stalled::give_up(state, out),
        About::Delete(sessions) => {
            if may_write(state) {
                state.list.marks.clear();
                out.push(Effect::App(Command::Delete(sessions)));
            }
        }
        About::Interrupted(session) => {
            if may_write(state) {
                let what = if state.conversation.holds_a_message() {
                    "Closing the interrupted turn"
                } else {
                    "Closing the interrupted turn; then your text is sent"
                };
                tell(state, what);
                state.composer.send_after_close = Some(session.clone());
                out.push(Effect::App(Command::CloseInterrupted(session)));
            }
        }
    }
}

/// Goes on with the interrupted turn that is asked about. The text waits for it at its next step.
pub(super) fn resume(state: &mut State, out: &mut Effects) {
    let Some(Overlay::Confirm(Confirm { about, arming: Arming::Armed })) = &state.overlay else {
        return;
    };
    let About::Interrupted(session) = about.clone() else { return };
    close(state, out);
    if may_write(state) {
        let what = if state.conversation.holds_a_message() {
            "Resuming the interrupted turn"
        } else {
            "Resuming the interrupted turn; it takes your text in"
        };
        tell(state, what);
        out.push(Effect::App(Command::Resume(session)));
        composer::send_off(state, out);
    }
}

/// Scrolls, or moves the cursor.
pub(super) fn move_through(state: &mut State, layout: &Layout, action: MoveAction) {
    let area = layout.overlay.as_ref();
    let page = area.map_or(1, |area| area.rows_in_sight).max(1);
    let last = area.map_or(0, |area| area.rows.saturating_sub(page));
    match &mut state.overlay {
        Some(Overlay::Help(help)) => help.scroll = scrolled(help.scroll, action, page, last),
        Some(Overlay::Full(full)) => full.scroll = scrolled(full.scroll, action, page, last),
        Some(Overlay::Waiting(_)) => move_in_waiting(state, action, page),
        Some(Overlay::Events(view)) => {
            events::move_through(view, action, (area.map_or(0, |area| area.rows), page));
        }
        Some(
            Overlay::Confirm(_)
            | Overlay::Reason(_)
            | Overlay::Codes(_)
            | Overlay::Purge(_)
            | Overlay::Rewrite(_),
        )
        | None => {}
    }
}

/// Where a move leads that scrolls.
pub(super) fn scrolled(scroll: usize, action: MoveAction, page: usize, last: usize) -> usize {
    let to = match action {
        MoveAction::Up => scroll.saturating_sub(1),
        MoveAction::Down => scroll + 1,
        MoveAction::PageUp => scroll.saturating_sub(page),
        MoveAction::PageDown => scroll + page,
        MoveAction::HalfPageUp => scroll.saturating_sub(page / 2),
        MoveAction::HalfPageDown => scroll + page / 2,
        MoveAction::Top => 0,
        MoveAction::Bottom => last,
        MoveAction::ToList | MoveAction::ToTimeline | MoveAction::ToComposer => scroll,
    };
    to.min(last)
}

fn move_in_waiting(state: &mut State, action: MoveAction, page: usize) {
    let Some(Overlay::Waiting(waiting)) = &state.overlay else { return };
    let calls = state.list.waiting();
    let Some(from) = calls.cursor(waiting.selected.as_ref()) else { return };
    let down = |steps: usize| {
        std::iter::successors(Some(from), |call| calls.after(call)).take(steps + 1).last()
    };
    let up = |steps: usize| {
        std::iter::successors(Some(from), |call| calls.before(call)).take(steps + 1).last()
    };
    let to = match action {
        MoveAction::Up => up(1),
        MoveAction::Down => down(1),
        MoveAction::PageUp => up(page),
        MoveAction::PageDown => down(page),
        MoveAction::HalfPageUp => up(page / 2),
        MoveAction::HalfPageDown => down(page / 2),
        MoveAction::Top => calls.iter().next(),
        MoveAction::Bottom => calls.iter().next_back(),
        MoveAction::ToList | MoveAction::ToTimeline | MoveAction::ToComposer => Some(from),
    };
    let selected = to.cloned();
    state.overlay = Some(Overlay::Waiting(Waiting { selected }));
}
