//! What the program told.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::app::command::{Command, DraftOf};
use crate::app::notice::{Came, Compaction, LoadedTurn, Notice, Refused, Storage};
use crate::base::id::SessionId;
use crate::domain::session::entry::LatestTurnStatus;
use crate::domain::session::state::SessionState;
use crate::domain::turn::status::TurnStatus;
use crate::tui::action::ListAction;
use crate::tui::effect::Effect;
use crate::tui::rows::page;
use crate::tui::state::State;
use crate::tui::state::activity::{Run, Work};
use crate::tui::state::conversation::{Load, Page};
use crate::tui::state::keys::StepKind;
use crate::tui::state::list::{Scan, Undo};
use crate::tui::state::settings::Deleted;
use crate::tui::state::status::{ChosenModel, LastRun};
use crate::tui::state::turns::{Folded, Slot};
use crate::tui::update::{
    Effects, composer, drafts, events, fork, hint, live, problem, prompts, session, stalled, tell,
    unsent,
};
use crate::tui::words;

/// How much can be taken back one after the other.
const UNDOS_MAX: usize = 64;

/// Takes in what the program told.
pub(super) fn take(state: &mut State, notice: Notice, out: &mut Effects) {
    match notice {
        Notice::Scanned { entries, done, total } => {
            for entry in &entries {
                state.list.put(entry);
            }
            state.list.scan = Scan::Running { done, total };
        }
        Notice::ScanEnded { took_ms, error } => {
            state.list.scan = error.map_or(Scan::Ended { took_ms }, Scan::Failed);
        }
        Notice::IndexChanged { session, entry: Some(entry) } => {
            if entry.latest_turn_status != LatestTurnStatus::Turn(TurnStatus::Idle) {
                state.status.last_run.dealt_with(&session);
            }
            state.list.put(&entry);
        }
        Notice::IndexChanged { session, entry: None } => session::gone(state, &session, out),
        Notice::SessionOpened { session, state: opened } => self::opened(state, &session, opened),
        Notice::SessionChanged { session, state: now } => changed(state, &session, now),
        Notice::TurnsLoaded { session, turns, left } => loaded(state, &session, turns, left, out),
        Notice::Joined { turn, open_call } => state.conversation.turns.join(&turn, open_call),
        Notice::Live(event) => live::take(state, event, out),
        Notice::Sent { from, session, turn: _ } => {
            state.status.last_run.went_on();
            composer::sent(state, &from, session, out);
        }
        Notice::Queued { from, session } => unsent::queued(state, &from, session, out),
        Notice::UnsentChanged { session, messages } => {
            unsent::changed(state, &session, messages, out);
        }
        Notice::TakenBack { session, event } => unsent::taken_back(state, &session, &event),
        Notice::Inspected(inspected) => events::inspected(state, inspected),
        Notice::Compaction(Compaction::UnderWay(sessions)) => compacting(state, sessions),
        Notice::Compaction(Compaction::Over { session, came }) => compacted(state, &session, came),
        Notice::Forked { of, session } => fork::forked(state, &of, &session, out),
        Notice::Deleted(sessions) => match state.settings.deleted {
            Deleted::Kept => can_be_undone(state, "Deleted", Undo::Deleted(sessions)),
            Deleted::Destroyed => {
                tell(state, format!("Destroyed {}", words::count(sessions.len(), "session")));
            }
        },
        Notice::Restored(sessions) => is_back(state, "Restored", &sessions),
        Notice::Archived { sessions, archived: true } => {
            can_be_undone(state, "Put away", Undo::Archived(sessions));
        }
        Notice::Archived { sessions, archived: false } => is_back(state, "Got back", &sessions),
        Notice::Draft { of, draft } => drafts::loaded(state, of, &draft, out),
        Notice::Remembered { history, list } => {
            state.composer.history.begin_with(history);
            state.list.settings = list;
            state.list.restart_filter();
        }
        Notice::ModelChosen { model, why } => {
            state.status.model = Some(ChosenModel { model, why });
        }
        Notice::LastRunEndedBadly { interrupted } => {
            state.status.last_run = LastRun::EndedBadly { interrupted };
            // The empty page has a line for it.
            if let (Some(_), Some(text)) = (state.session(), page::ended_badly(state)) {
                problem(state, text);
            }
        }
        Notice::HeldBy(holder) => state.activity.elsewhere = holder,
        Notice::Storage(Storage::Stalled(stalls)) => stalled::changed(state, stalls, out),
        Notice::Storage(Storage::SetAside(set_aside)) => problem(state, set_aside.to_string()),
        Notice::Refused { what, why } => refused(state, &what, why, out),
    }
}

/// Where it has ended, a second key stops nothing any more.
fn compacting(state: &mut State, sessions: BTreeSet<SessionId>) {
    state.activity.compacting = sessions;
    let is_over = |kind: &StepKind| match kind {
        StepKind::Stop(Work::Compaction(session)) => !state.activity.compacting.contains(session),
        StepKind::Stop(Work::Turn(_)) | StepKind::Quit => false,
    };
    if state.keys.step.as_ref().is_some_and(|step| is_over(&step.kind)) {
        state.keys.step = None;
    }
}

fn compacted(state: &mut State, session: &SessionId, came: Came) {
    let of = match state.list.entry(session).and_then(|entry| entry.title.clone()) {
        _ if state.session() == Some(session) => "This session".to_owned(),
        Some(title) => format!("\u{201c}{title}\u{201d}"),
        None => "The other session".to_owned(),
    };
    tell(
        state,
        match came {
            Came::Done => format!("{of} is summed up; the next turn begins with the summary"),
            Came::NothingToSum => format!("{of} is too short to be summed up"),
            Came::Stopped => format!("{of} is not summed up: it was stopped"),
        },
    );
}

fn is_back(state: &mut State, did: &str, sessions: &[SessionId]) {
    state.list.undone(sessions);
    let what = words::count(sessions.len(), "session");
    tell(state, format!("{did} {what}"));
}

fn can_be_undone(state: &mut State, did: &str, undo: Undo) {
    let (Undo::Deleted(sessions) | Undo::Archived(sessions)) = &undo;
    let what = words::count(sessions.len(), "session");
    let key = hint::list(state, ListAction::Undo);
    let them = if sessions.len() == 1 { "it" } else { "them" };
    tell(state, format!("{did} {what}; {key} in the list takes {them} back"));
    if state.list.undo.len() == UNDOS_MAX {
        state.list.undo.remove(0);
    }
    state.list.undo.push(undo);
}

fn opened(state: &mut State, session: &SessionId, opened: Result<Arc<SessionState>, String>) {
    let Page::Session { id, load } = &mut state.conversation.page else { return };
    if id != session {
        return;
    }
    match opened {
        Ok(opened) => {
            state.conversation.turns.announce(&opened);
            let left = opened.turns.len();
            *load = Load::Open { state: opened, left };
        }
        Err(why) => *load = Load::Unreadable(why),
    }
}

/// Takes over what a session that is open amounts to now.
fn changed(state: &mut State, session: &SessionId, now: Arc<SessionState>) {
    let Page::Session { id, load: Load::Open { state: known, .. } } = &mut state.conversation.page
    else {
        return;
    };
    if id == session {
        state.conversation.turns.announce(&now);
        *known = now;
    }
}

fn loaded(
    state: &mut State,
    session: &SessionId,
    turns: Vec<LoadedTurn>,
    still: usize,
    out: &mut Effects,
) {
    if state.session() != Some(session) {
        return;
    }
    if let Page::Session { load: Load::Open { left, .. }, .. } = &mut state.conversation.page {
        *left = still;
    }
    let mut is_behind = false;
    for turn in turns {
        note_running(state, session, &turn);
        is_behind |= state.conversation.turns.load(turn) == Folded::Gap;
    }
    if is_behind {
        out.push(Effect::App(Command::Open(session.clone())));
    }
}

/// Takes over whether a loaded turn runs, unless the live stream has told of it since.
fn note_running(state: &mut State, session: &SessionId, turn: &LoadedTurn) {
    let Ok(view) = &turn.content else { return };
    let told = state.conversation.turns.slot(&turn.id).and_then(Slot::loaded);
    if told.is_some_and(|told| told.offset > view.offset) {
        return;
    }
    let runs = view.running && view.state.terminal.is_none();
    if runs && !state.activity.runs(&turn.id) {
        let (session, since) = (Some(session.clone()), state.now.elapsed);
        state.activity.started(turn.id.clone(), Run { session, since });
    } else if !runs {
        state.activity.rested(&turn.id);
    }
}

fn refused(state: &mut State, what: &Refused, why: String, out: &mut Effects) {
    match what {
        Refused::Send(from) => drop(state.composer.sending.remove(from)),
        Refused::TakeBack { event, .. } => unsent::not_taken_back(state, event, out),
        Refused::Respond(turn) => prompts::refused(state, turn),
        Refused::Resume(session) => {
            if state.composer.of == DraftOf::Session(session.clone()) {
                state.composer.send_after_close = None;
            }
        }
        // Not on top, so that it stands in the way of nothing else.
        Refused::Restore(session) => {
            state.list.undo.insert(0, Undo::Deleted(vec![session.clone()]));
        }
        Refused::Stop(_) | Refused::Session(_) | Refused::Keep | Refused::Advance(_) => {}
    }
    problem(state, why);
}
