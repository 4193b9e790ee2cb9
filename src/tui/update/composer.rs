//! Writing and sending a message.

use std::sync::Arc;

use crate::app::command::{Command, Draft, DraftOf, Send, SendSettings};
use crate::base::id::{SessionId, TurnId};
use crate::domain::message::UserMessage;
use crate::domain::session::entry::LatestTurnStatus;
use crate::domain::turn::status::TurnStatus;
use crate::store::lock::Holder;
use crate::tui::action::{ComposerAction, EditAction};
use crate::tui::editor::{Editor, Moved, RowMove, Shape};
use crate::tui::effect::Effect;
use crate::tui::layout::Layout;
use crate::tui::state::State;
use crate::tui::state::composer::Kept;
use crate::tui::state::conversation::{Conversation, Load, Page};
use crate::tui::state::history::Recalled;
use crate::tui::state::overlay::About;
use crate::tui::state::turns::Content;
use crate::tui::update::{
    Effects, drafts, focus, leave, may_write, overlay, problem, tell, text, unsent,
};
use crate::tui::words;

/// Does what an action says in the composer.
pub(super) fn perform(
    state: &mut State,
    layout: &Layout,
    action: ComposerAction,
    out: &mut Effects,
) {
    match action {
        ComposerAction::Send => send_or_break(state, out),
        ComposerAction::Newline => text::insert(state, "\n", out),
        ComposerAction::HistoryUp => {
            let cols = text::cols(state, layout);
            if state.composer.editor.move_by_row(RowMove::Up, cols) == Moved::AtTheEdge {
                let draft = state.composer.editor.draft();
                let recalled = state.composer.history.older(draft);
                show(state, recalled);
            }
        }
        ComposerAction::HistoryDown => {
            let cols = text::cols(state, layout);
            if state.composer.editor.move_by_row(RowMove::Down, cols) == Moved::AtTheEdge {
                let recalled = state.composer.history.newer();
                show(state, recalled);
            }
        }
        // There is nothing to complete yet, so the key moves on.
        ComposerAction::Complete => focus::next(state, focus::Way::Forwards, out),
        ComposerAction::TakeBack => unsent::take_back(state, out),
        ComposerAction::EditWaiting => unsent::edit(state, out),
        ComposerAction::SendWaiting => unsent::release(state, out),
        ComposerAction::DeleteOrQuit if state.composer.editor.is_empty() => leave::quit(state, out),
        ComposerAction::DeleteOrQuit => text::edit(state, layout, EditAction::DeleteForward, out),
    }
}

/// What follows from a change of the text: it has to go to the disk soon, and a text of the history
/// that was changed is the draft from now on. The draft that stood back becomes history.
pub(super) fn changed(state: &mut State, out: &mut Effects) {
    if let Some(draft) = state.composer.history.leave() {
        remember(state, &Editor::with_draft(Shape::Page, &draft).text(), out);
    }
    drafts::changed(state);
}

/// Takes the text out and into the history; a text of the history gives way to the draft.
pub(super) fn clear(state: &mut State, out: &mut Effects) {
    if let Some(draft) = state.composer.history.leave() {
        state.composer.editor = Editor::with_draft(Shape::Page, &draft);
        return;
    }
    let text = state.composer.editor.text();
    remember(state, &text, out);
    state.composer.editor.clear();
    drafts::changed(state);
}

/// Keeps a text in the history.
pub(super) fn remember(state: &mut State, text: &str, out: &mut Effects) {
    if text.trim().is_empty() {
        return;
    }
    state.composer.history.push(text);
    drafts::keep(state, Command::Remember(text.to_owned()), out);
}

/// A message was taken: its text goes, and what has been written since stays.
pub(super) fn sent(state: &mut State, from: &DraftOf, session: SessionId, out: &mut Effects) {
    let Some(sent) = state.composer.sending.remove(from) else { return };
    remember(state, &Editor::with_draft(Shape::Page, &sent).text(), out);
    if state.composer.of != *from {
        return;
    }
    take_out(state, &sent);
    state.conversation.follow();
    let rest = state.composer.draft();
    if *from == DraftOf::NewSession {
        if !rest.text.is_empty() {
            // It may have been kept under the old name while the message was on its way.
            let (of, draft) = (DraftOf::NewSession, Draft::default());
            drafts::keep(state, Command::SaveDraft { of, draft }, out);
        }
        state.composer.of = DraftOf::Session(session.clone());
        state.list.selected = Some(session.clone());
        state.conversation = Conversation::opening(session.clone());
        out.push(Effect::App(Command::Open(session)));
    }
    if !rest.text.is_empty() {
        drafts::changed(state);
    }
}

/// The turn that stood in the way has been closed: now the text goes.
pub(super) fn send_after_close(state: &mut State, out: &mut Effects) {
    let Some(session) = &state.composer.send_after_close else { return };
    if state.composer.of != DraftOf::Session(session.clone()) {
        state.composer.send_after_close = None;
        return;
    }
    if standing(state) == Standing::Free {
        state.composer.send_after_close = None;
        send(state, out);
    }
}

/// A backslash before the caret makes a new line of what would send.
fn send_or_break(state: &mut State, out: &mut Effects) {
    let (raw, caret) = (state.composer.editor.raw(), state.composer.editor.caret());
    if raw.get(..caret).is_some_and(|head| head.ends_with('\\')) {
        state.composer.editor.delete(caret - 1..caret);
        text::insert(state, "\n", out);
        return;
    }
    send(state, out);
}

pub(super) fn send(state: &mut State, out: &mut Effects) {
    if state.composer.editor.is_blank() || !may_write(state) {
        return;
    }
    if state.composer.is_sending() {
        return tell(state, "The message is on its way");
    }
    if state.composer.is_taking_back() {
        return tell(state, "The message is being taken back");
    }
    // Sending removes the draft on the disk, so that has to be here first.
    if state.composer.kept != Kept::Loaded {
        state.composer.kept = Kept::AskedToSend;
        return;
    }
    match standing(state) {
        // A message that cannot be delivered now waits.
        Standing::Free | Standing::Running | Standing::Waiting(_) => {}
        Standing::Opening => return tell(state, "The session is being opened; your text is kept"),
        Standing::Damaged => {
            return problem(state, "A damaged session cannot be written to; your text is kept");
        }
        Standing::Elsewhere(holder) => {
            let holder = words::holder(&holder);
            return tell(state, format!("The turn is open in {holder}; your text is kept"));
        }
        Standing::Interrupted(session) => {
            return overlay::ask(state, About::Interrupted(session), out);
        }
    }
    send_off(state, out);
}

/// Sends the text, however the session stands: what it cannot take yet waits.
pub(super) fn send_off(state: &mut State, out: &mut Effects) {
    let (of, editor) = (state.composer.of.clone(), &state.composer.editor);
    let (draft, text) = (editor.draft(), editor.text());
    drafts::flush_composer(state, out);
    state.composer.sending.insert(of.clone(), draft);
    let message = Arc::new(UserMessage::text(&text));
    let settings = SendSettings::default();
    out.push(Effect::App(Command::Send(Send { from: of, message, settings })));
}

/// Whether the session on screen can take a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    Free,
    Opening,
    Damaged,
    Running,
    Waiting(TurnId),
    Elsewhere(Holder),
    Interrupted(SessionId),
}

/// Whether the session on screen can take a message. What is not loaded yet is known from the list.
pub(super) fn standing(state: &State) -> Standing {
    let Page::Session { id, load } = &state.conversation.page else { return Standing::Free };
    let entry = state.list.entry(id);
    if entry.is_some_and(|entry| entry.error.is_some()) || matches!(load, Load::Unreadable(_)) {
        return Standing::Damaged;
    }
    if state.activity.turn_of(id).is_some() {
        return Standing::Running;
    }
    let latest = state.conversation.turns.latest();
    let (turn, status) = match (latest.map(|slot| (&slot.id, &slot.content)), load) {
        (Some((_, Content::Damaged(_))), _) => return Standing::Damaged,
        (Some((turn, Content::Loaded(loaded))), _) => (turn, loaded.state.status()),
        (None, Load::Open { .. }) => return Standing::Free,
        (Some((_, Content::Asked)) | None, _) => {
            let listed =
                entry.map(|entry| (entry.latest_turn_id.as_ref(), entry.latest_turn_status));
            match listed {
                Some((None, LatestTurnStatus::None)) => return Standing::Free,
                Some((Some(turn), LatestTurnStatus::Turn(status))) => (turn, status),
                Some(_) | None => return Standing::Opening,
            }
        }
    };
    match status {
        TurnStatus::Completed | TurnStatus::Failed | TurnStatus::Cancelled => Standing::Free,
        TurnStatus::Suspended => Standing::Waiting(turn.clone()),
        TurnStatus::Idle => idle(state, id),
    }
}

/// How a session stands whose turn does not run here and waits for nobody.
pub(super) fn idle(state: &State, session: &SessionId) -> Standing {
    let here = || Standing::Interrupted(session.clone());
    state.activity.elsewhere.map_or_else(here, Standing::Elsewhere)
}

/// Takes the sent text out of the composer, and nothing else.
fn take_out(state: &mut State, sent: &Draft) {
    let composer = &mut state.composer;
    let now = composer.editor.draft();
    let same = (&now.text, &now.pastes) == (&sent.text, &sent.pastes);
    if same {
        let draft = composer.history.leave().unwrap_or_default();
        composer.editor = Editor::with_draft(Shape::Page, &draft);
    } else if now.text.starts_with(&sent.text) && now.pastes.starts_with(&sent.pastes) {
        composer.editor.delete(0..sent.text.len());
        composer.editor.move_to(now.caret.saturating_sub(sent.text.len()));
    }
}

fn show(state: &mut State, recalled: Option<Recalled>) {
    match recalled {
        Some(Recalled::Text(text)) => {
            state.composer.editor = Editor::with_text(Shape::Page, &text);
        }
        Some(Recalled::Draft(draft)) => {
            state.composer.editor = Editor::with_draft(Shape::Page, &draft);
        }
        None => {}
    }
}
