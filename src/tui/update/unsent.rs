//! Messages that wait to be delivered: seen above the composer, taken back into it, let go.

use crate::app::command::{Command, Draft, DraftOf, Unsent};
use crate::app::notice::UnsentMessage;
use crate::base::id::{EventId, SessionId};
use crate::tui::action::{AppAction, ComposerAction, TurnAction};
use crate::tui::editor::{Editor, Shape};
use crate::tui::effect::Effect;
use crate::tui::state::State;
use crate::tui::state::composer::{Kept, TakingBack};
use crate::tui::state::overlay::{Overlay, Rewrite, Safety};
use crate::tui::update::composer::{Standing, standing};
use crate::tui::update::{Effects, composer, drafts, hint, may_write, overlay, tell};

/// What waits in a session is something else now.
pub(super) fn changed(
    state: &mut State,
    session: &SessionId,
    messages: Vec<UnsentMessage>,
    out: &mut Effects,
) {
    if state.session() == Some(session) {
        state.conversation.unsent = messages;
        check_edited(state, out);
    }
}

/// A message that is being edited may have gone. What was written for it stays in the history.
fn check_edited(state: &mut State, out: &mut Effects) {
    let Some(Overlay::Rewrite(rewrite)) = &state.overlay else { return };
    if state.conversation.unsent.iter().any(|message| message.id == rewrite.event) {
        return;
    }
    let was_changed = rewrite.changed().is_some();
    overlay::close(state, out);
    let older = hint::composer(state, ComposerAction::HistoryUp);
    let how = if was_changed {
        format!("The message is on its way as it was; {older} brings back what you wrote")
    } else {
        "The message is on its way".to_owned()
    };
    tell(state, how);
}

/// A message was taken and waits.
pub(super) fn queued(state: &mut State, from: &DraftOf, session: SessionId, out: &mut Effects) {
    let is_shown = state.session() == Some(&session);
    composer::sent(state, from, session, out);
    if !is_shown {
        return;
    }
    match standing(state) {
        Standing::Waiting(_) => {
            let go = hint::anywhere(state, AppAction::GoToPrompt);
            let text = "It waits until the turn goes on, and is no answer to what is asked";
            tell(state, format!("{text}: {go} goes to that"));
        }
        Standing::Free | Standing::Running if state.conversation.holds_a_message() => {
            let all = hint::composer(state, ComposerAction::SendWaiting);
            tell(state, format!("It waits behind what is held; {all} sends all of it"));
        }
        Standing::Free
        | Standing::Running
        | Standing::Interrupted(_)
        | Standing::Opening
        | Standing::Damaged
        | Standing::Elsewhere(_) => {}
    }
}

/// Takes the last message that waits back: its text comes before what is being written.
pub(super) fn take_back(state: &mut State, out: &mut Effects) {
    let Some(session) = state.session().cloned() else { return nothing(state) };
    let Some(last) = state.conversation.unsent.last().cloned() else { return nothing(state) };
    if !may_write(state) {
        return;
    }
    if state.composer.taking_back.is_some() || state.composer.is_sending() {
        return tell(state, "Another message is on its way");
    }
    if state.composer.kept != Kept::Loaded {
        return tell(state, "Your draft is being read; it comes first");
    }
    let composer = &mut state.composer;
    if let Some(draft) = composer.history.leave() {
        composer.editor = Editor::with_draft(Shape::Page, &draft);
    }
    let taken = Editor::with_text(Shape::Page, &last.text).draft();
    let mut draft = taken.clone().followed_by(&composer.editor.draft());
    draft.caret = taken.text.len();
    composer.editor = Editor::with_draft(Shape::Page, &draft);
    composer.save_at = None;
    let event = last.id;
    let of = (session.clone(), event.clone());
    composer.taking_back = Some(TakingBack { session: of.0, event: of.1, text: taken });
    state.prompts.wanted = None;
    out.push(Effect::App(Command::Unsent(Unsent::TakeBack { session, event, draft })));
}

fn nothing(state: &mut State) {
    tell(state, "No message waits to be sent");
}

/// A message was taken back: it waits no more.
pub(super) fn taken_back(state: &mut State, session: &SessionId, event: &EventId) {
    end(state, event);
    if state.session() == Some(session) {
        state.conversation.unsent.retain(|message| message.id != *event);
    }
}

/// A message was not taken back: what it says goes out of the text again.
pub(super) fn not_taken_back(state: &mut State, event: &EventId, out: &mut Effects) {
    let Some(TakingBack { session, text, .. }) = end(state, event) else { return };
    let of = DraftOf::Session(session);
    let composer = &mut state.composer;
    if composer.of != of || composer.kept != Kept::Loaded {
        // It is in the draft on the disk, and goes out of that when it comes.
        composer.refused.insert(of.clone(), text);
        out.push(Effect::App(Command::LoadDraft(of)));
        return;
    }
    if let Some(draft) = composer.history.draft_mut() {
        if let Some(rest) = without(draft, &text) {
            *draft = rest;
            drafts::changed(state);
        }
        return;
    }
    let now = composer.editor.draft();
    let Some(rest) = rest_of(&now, &text) else { return };
    composer.editor.delete(0..rest);
    composer.editor.move_to(now.caret.saturating_sub(rest));
    composer::changed(state, out);
}

/// A draft without the text that it begins with; none if it begins with something else.
pub(super) fn without(draft: &Draft, text: &Draft) -> Option<Draft> {
    let rest = rest_of(draft, text)?;
    let behind = draft.text.get(rest..).unwrap_or_default().to_owned();
    let pastes = draft.pastes.get(text.pastes.len()..).unwrap_or_default().to_vec();
    Some(Draft { text: behind, caret: draft.caret.saturating_sub(rest), pastes })
}

/// How far a text goes that a draft begins with, with the end of its line.
fn rest_of(draft: &Draft, text: &Draft) -> Option<usize> {
    let behind = draft.text.strip_prefix(text.text.as_str())?;
    let is_whole = behind.is_empty() || behind.starts_with('\n');
    (is_whole && draft.pastes.starts_with(&text.pastes))
        .then(|| text.text.len() + usize::from(!behind.is_empty()))
}

fn end(state: &mut State, event: &EventId) -> Option<TakingBack> {
    state.composer.taking_back.take_if(|taking| taking.event == *event)
}

/// Opens the text of the last message that waits; of the one before, if that is open as it was.
pub(super) fn edit(state: &mut State, out: &mut Effects) {
    let Some(session) = state.session().cloned() else { return nothing(state) };
    if !may_write(state) {
        return;
    }
    let mut waits = state.conversation.unsent.iter().rev();
    if let Some(Overlay::Rewrite(rewrite)) = &state.overlay {
        if rewrite.changed().is_some() {
            let back = hint::anywhere(state, AppAction::Escape);
            return tell(state, format!("Keep what you changed first, or let it go with {back}"));
        }
        waits.find(|message| message.id == rewrite.event);
    }
    let taking = state.composer.taking_back.as_ref().map(|taking| &taking.event);
    let Some(message) = waits.find(|message| Some(&message.id) != taking).cloned() else {
        return match state.overlay {
            Some(_) => tell(state, "No message waits before this one"),
            None => nothing(state),
        };
    };
    let UnsentMessage { id: event, text: was, .. } = message;
    let (field, safety) = (Editor::with_text(Shape::Page, &was), Safety::default());
    overlay::show(state, Overlay::Rewrite(Rewrite { session, event, was, field, safety }), out);
}

/// The message is to say what was typed; it keeps its place.
pub(super) fn edited(state: &mut State, out: &mut Effects) {
    let Some(Overlay::Rewrite(rewrite)) = &state.overlay else { return };
    let text = rewrite.changed();
    if text.as_ref().is_some_and(|text| text.trim().is_empty()) {
        let back = hint::composer(state, ComposerAction::TakeBack);
        return tell(state, format!("Nothing cannot be sent; {back} takes the message back"));
    }
    let (session, event) = (rewrite.session.clone(), rewrite.event.clone());
    overlay::close(state, out);
    if let Some(text) = text {
        out.push(Effect::App(Command::Unsent(Unsent::Edit { session, event, text })));
    }
}

/// Lets go what is held.
pub(super) fn release(state: &mut State, out: &mut Effects) {
    let Some(session) = state.session().cloned() else { return nothing(state) };
    if state.conversation.unsent.is_empty() {
        return nothing(state);
    }
    if !may_write(state) {
        return;
    }
    match standing(state) {
        Standing::Interrupted(_) => {
            let resume = hint::timeline(state, TurnAction::Resume);
            let close = hint::timeline(state, TurnAction::Close);
            let what = "The last turn was interrupted; in the conversation";
            return tell(state, format!("{what} {resume} resumes it, and {close} closes it"));
        }
        Standing::Free
        | Standing::Running
        | Standing::Waiting(_)
        | Standing::Opening
        | Standing::Damaged
        | Standing::Elsewhere(_) => {}
    }
    out.push(Effect::App(Command::Unsent(Unsent::Release(session))));
}
