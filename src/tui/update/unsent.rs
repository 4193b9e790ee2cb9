//! Messages that wait to be delivered: seen above the composer, taken back into it, let go.

use crate::app::command::{Command, Draft, DraftOf, Unsent};
use crate::app::notice::UnsentMessage;
use crate::base::id::{EventId, SessionId};
use crate::tui::action::{AppAction, ComposerAction};
use crate::tui::editor::{Editor, Shape};
use crate::tui::effect::Effect;
use crate::tui::state::State;
use crate::tui::state::composer::{Kept, TakingBack};
use crate::tui::update::composer::{Standing, standing};
use crate::tui::update::{Effects, composer, hint, may_write, tell};

/// What waits in a session is something else now.
pub(super) fn changed(state: &mut State, session: &SessionId, messages: Vec<UnsentMessage>) {
    if state.session() == Some(session) {
        state.conversation.unsent = messages;
    }
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
        Standing::Free if state.conversation.unsent.iter().any(|message| message.held) => {
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
    let composer = &mut state.composer;
    if composer.of != DraftOf::Session(session) || composer.history.draft().is_some() {
        return;
    }
    let now = composer.editor.draft();
    let Some(rest) = rest_of(&now, &text) else { return };
    composer.editor.delete(0..rest);
    composer.editor.move_to(now.caret.saturating_sub(rest));
    composer::changed(state, out);
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
            return tell(state, "The last turn was interrupted: resume it or close it first");
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
