//! Which session is on screen, and what is done with its interrupted turn.

use crate::app::command::{Command, DraftOf};
use crate::base::id::SessionId;
use crate::domain::session::entry::LatestTurnStatus;
use crate::domain::turn::status::TurnStatus;
use crate::tui::action::{AppAction, TurnAction};
use crate::tui::effect::Effect;
use crate::tui::state::conversation::{Conversation, Page};
use crate::tui::state::overlay::About;
use crate::tui::state::{Focus, State};
use crate::tui::update::composer::{Standing, idle, standing};
use crate::tui::update::{
    Effects, drafts, focus, hint, may_write, overlay, prompts, tell, tell_of,
};
use crate::tui::words;

/// Puts a session on screen, with the focus in its composer; one that is damaged can only be read.
pub(super) fn open(state: &mut State, session: &SessionId, out: &mut Effects) {
    let damaged = state.list.entry(session).is_some_and(|entry| entry.error.is_some());
    let to = if damaged { Focus::Timeline } else { Focus::Composer };
    focus::go(state, to, out);
    state.list.selected = Some(session.clone());
    if state.session() == Some(session) {
        return;
    }
    prompts::leave(state, out);
    drafts::switch(state, DraftOf::Session(session.clone()), out);
    state.conversation = Conversation::opening(session.clone());
    out.push(Effect::App(Command::Open(session.clone())));
}

/// Puts the empty page on screen. Nothing is made until its first message is sent.
pub(super) fn new_page(state: &mut State, out: &mut Effects) {
    focus::go(state, Focus::Composer, out);
    if state.conversation.page == Page::New {
        return;
    }
    drafts::switch(state, DraftOf::NewSession, out);
    show_new_page(state, out);
}

/// The session is gone. If it was on screen, the empty page is.
pub(super) fn gone(state: &mut State, session: &SessionId, out: &mut Effects) {
    state.list.remove(session);
    state.status.last_run.dealt_with(session);
    if state.session() != Some(session) {
        return;
    }
    overlay::close(state, out);
    drafts::abandon(state, out);
    show_new_page(state, out);
}

fn show_new_page(state: &mut State, out: &mut Effects) {
    prompts::leave(state, out);
    state.conversation = Conversation::default();
    out.push(Effect::App(Command::Close));
}

/// Goes on with an interrupted turn, or closes it.
pub(super) fn turn_action(state: &mut State, action: TurnAction, out: &mut Effects) {
    let session = match state.focus {
        Focus::List => state.list.cursor().map(|row| row.session),
        Focus::Timeline | Focus::Composer | Focus::Prompt => state.session().cloned(),
    };
    let Some(session) = session else { return };
    let standing = standing_of(state, &session);
    match (action, standing) {
        (TurnAction::Resume, Standing::Interrupted(..)) => {
            if may_write(state) {
                out.push(Effect::App(Command::Resume(session)));
            }
        }
        (TurnAction::Close, Standing::Interrupted(..)) => {
            if may_write(state) {
                out.push(Effect::App(Command::CloseInterrupted(session)));
            }
        }
        (TurnAction::Close, Standing::Waiting(turn)) => {
            overlay::ask(state, About::Stop(turn), out);
        }
        (TurnAction::Resume, Standing::Waiting(_)) => {
            let list = hint::anywhere(state, AppAction::WaitingList);
            tell(state, format!("The turn waits for an answer; {list} shows what for"));
        }
        (_, Standing::Elsewhere(holder)) => {
            tell(state, format!("The turn is open in {}", words::holder(&holder)));
        }
        (_, Standing::Running) => match state.activity.turn_of(&session).cloned() {
            Some(turn) => tell_of(state, turn, "The turn is running"),
            None => tell(state, "The turn is running"),
        },
        (_, Standing::Free | Standing::Opening | Standing::Damaged) => {
            tell(state, "No turn is interrupted here");
        }
    }
}

/// Sums up what was said in the session on screen.
pub(super) fn compact(state: &mut State, out: &mut Effects) {
    let session = state.session().cloned().filter(|_| state.conversation.turns.latest().is_some());
    let Some(session) = session else { return tell(state, "There is nothing to sum up yet") };
    match standing(state) {
        Standing::Free if state.activity.compacting.contains(&session) => {
            let stop = hint::anywhere(state, AppAction::Escape);
            let text = format!("It is being summed up; {stop} twice in the composer stops that");
            return tell(state, text);
        }
        Standing::Free => {}
        Standing::Damaged => return tell(state, "A damaged session cannot be summed up"),
        Standing::Running
        | Standing::Waiting(_)
        | Standing::Interrupted(_)
        | Standing::Elsewhere(_)
        | Standing::Opening => {
            return tell(state, "It can be summed up when the last turn has ended");
        }
    }
    if may_write(state) {
        // Nothing is said: the composer and the status line show it as long as it is under way.
        out.push(Effect::App(Command::Compact(session)));
    }
}

/// As [`standing`], for any session: what is not on screen is known from the list.
fn standing_of(state: &State, session: &SessionId) -> Standing {
    if state.session() == Some(session) {
        return standing(state);
    }
    let Some(entry) = state.list.entry(session) else { return Standing::Opening };
    if entry.error.is_some() {
        return Standing::Damaged;
    }
    if state.activity.turn_of(session).is_some() {
        return Standing::Running;
    }
    match (entry.latest_turn_status, &entry.latest_turn_id) {
        (LatestTurnStatus::Turn(TurnStatus::Idle), Some(_)) => idle(state, session),
        (LatestTurnStatus::Turn(TurnStatus::Suspended), Some(turn)) => {
            Standing::Waiting(turn.clone())
        }
        (LatestTurnStatus::Turn(_) | LatestTurnStatus::None, _) => Standing::Free,
    }
}
