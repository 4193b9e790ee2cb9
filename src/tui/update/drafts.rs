//! What is typed, on its way to the disk and back.

use crate::app::command::{Command, Draft, DraftOf};
use crate::base::id::ToolCallId;
use crate::tui::action::ComposerAction;
use crate::tui::editor::{Editor, Shape};
use crate::tui::effect::Effect;
use crate::tui::state::State;
use crate::tui::state::composer::{Kept, SAVED_WITHIN};
use crate::tui::state::overlay::{Overlay, Rewrite, Safety};
use crate::tui::state::settings::Access;
use crate::tui::update::{Effects, composer, hint, overlay, prompts, tell, unsent};

/// The text of the composer is another.
pub(super) fn changed(state: &mut State) {
    if state.settings.access == Access::ReadOnly {
        tell(state, "Read only: what you type is not kept");
    }
    state.prompts.wanted = None;
    let due = state.now.elapsed + SAVED_WITHIN;
    let composer = &mut state.composer;
    composer.save_at.get_or_insert(due);
    if composer.kept == Kept::AskedToSend {
        composer.kept = Kept::Asked;
    }
}

/// The answer or the reason of a prompt is another.
pub(super) fn prompt_changed(state: &mut State, call: ToolCallId) {
    let due = state.now.elapsed + SAVED_WITHIN;
    state.prompts.saves.entry(call).or_insert(due);
}

/// What a message that waits is to say is another.
pub(super) fn rewrite_changed(state: &mut State) {
    let due = state.now.elapsed + SAVED_WITHIN;
    if let Some(Overlay::Rewrite(rewrite)) = &mut state.overlay {
        rewrite.safety = match rewrite.safety {
            Safety::DueAt(due) => Safety::DueAt(due),
            Safety::AsItWas | Safety::OnDisk => Safety::DueAt(due),
        };
    }
}

/// Saves what has waited long enough.
pub(super) fn save_due(state: &mut State, out: &mut Effects) {
    let now = state.now.elapsed;
    if state.composer.save_at.is_some_and(|due| due <= now) {
        flush_composer(state, out);
    }
    if matches!(&state.overlay, Some(Overlay::Rewrite(Rewrite { safety: Safety::DueAt(due), .. })) if *due <= now)
    {
        flush_rewrite(state, out);
    }
    let due = state.prompts.saves.iter().filter(|(_, due)| **due <= now);
    for call in due.map(|(call, _)| call.clone()).collect::<Vec<_>>() {
        flush_prompt(state, &call, out);
    }
}

/// Saves now what else would be saved soon.
pub(super) fn flush(state: &mut State, out: &mut Effects) {
    flush_composer(state, out);
    flush_rewrite(state, out);
    flush_prompts(state, out);
}

/// Saves everything for the last time; what lies over everything else closes for that. What was typed
/// before its draft came from the disk must not take its place there, and goes behind it.
pub(super) fn leave(state: &mut State, out: &mut Effects) {
    overlay::close(state, out);
    flush(state, out);
    let mut waiting = std::mem::take(&mut state.composer.strays);
    if state.composer.kept != Kept::Loaded && !state.composer.editor.is_empty() {
        waiting.insert(state.composer.of.clone(), state.composer.draft());
    }
    for (of, typed) in waiting {
        keep(state, Command::AppendDraft { of, typed }, out);
    }
}

/// Saves the text of the composer now, unless it is on the disk as it is. A text whose draft has not
/// come yet waits for it, and one that is on its way out has been saved.
pub(super) fn flush_composer(state: &mut State, out: &mut Effects) {
    if state.composer.kept != Kept::Loaded || state.composer.save_at.take().is_none() {
        return;
    }
    let (of, draft) = (state.composer.of.clone(), state.composer.draft());
    if state.composer.sending.get(&of) != Some(&draft) {
        keep(state, Command::SaveDraft { of, draft }, out);
    }
}

fn flush_rewrite(state: &mut State, out: &mut Effects) {
    let Some(Overlay::Rewrite(rewrite)) = &mut state.overlay else { return };
    if let Safety::DueAt(_) = rewrite.safety {
        rewrite.safety = Safety::OnDisk;
        let draft = rewrite.field.draft();
        keep(state, Command::SaveDraft { of: DraftOf::Rewrite, draft }, out);
    }
}

/// A message that waits is rewritten no more. What was not taken over is in the history, for nobody
/// else has it.
pub(super) fn rewrite_left(state: &mut State, rewrite: &Rewrite, out: &mut Effects) {
    composer::remember(state, &rewrite.changed().unwrap_or_default(), out);
    match rewrite.safety {
        Safety::AsItWas => {}
        Safety::DueAt(_) | Safety::OnDisk => {
            let draft = Draft::default();
            keep(state, Command::SaveDraft { of: DraftOf::Rewrite, draft }, out);
        }
    }
}

/// Saves all answers and reasons now.
pub(super) fn flush_prompts(state: &mut State, out: &mut Effects) {
    for call in state.prompts.saves.keys().cloned().collect::<Vec<_>>() {
        flush_prompt(state, &call, out);
    }
}

fn flush_prompt(state: &mut State, call: &ToolCallId, out: &mut Effects) {
    state.prompts.saves.remove(call);
    let draft = match (state.prompts.forms.get(call), &state.overlay) {
        (Some(form), _) => form.draft(),
        (None, Some(Overlay::Reason(reason))) if reason.prompt.call == *call => {
            reason.field.draft()
        }
        (None, _) => state.prompts.reasons.get(call).cloned().unwrap_or_default(),
    };
    let of = DraftOf::Prompt(call.clone());
    keep(state, Command::SaveDraft { of, draft }, out);
}

/// Asks for something to be kept; in read-only mode nothing is.
pub(super) fn keep(state: &State, command: Command, out: &mut Effects) {
    match state.settings.access {
        Access::Full => out.push(Effect::App(command)),
        Access::ReadOnly => {}
    }
}

/// Another session's text takes the place of this one's, which is saved.
pub(super) fn switch(state: &mut State, to: DraftOf, out: &mut Effects) {
    if state.composer.of == to {
        return;
    }
    flush_composer(state, out);
    let of = std::mem::replace(&mut state.composer.of, to.clone());
    let typed = state.composer.draft();
    if state.composer.kept != Kept::Loaded && !typed.text.is_empty() {
        state.composer.strays.insert(of, typed);
    }
    begin(state, to, out);
}

/// The session of this text is gone: what was typed goes into the history, and the empty page comes.
pub(super) fn abandon(state: &mut State, out: &mut Effects) {
    let text = Editor::with_draft(Shape::Page, &state.composer.draft()).text();
    composer::remember(state, &text, out);
    begin(state, DraftOf::NewSession, out);
}

fn begin(state: &mut State, of: DraftOf, out: &mut Effects) {
    let composer = &mut state.composer;
    composer.history.leave();
    composer.send_after_close = None;
    let stray = composer.strays.remove(&of).unwrap_or_default();
    let due = state.now.elapsed + SAVED_WITHIN;
    composer.save_at = (!stray.text.is_empty()).then_some(due);
    composer.editor = Editor::with_draft(Shape::Page, &stray);
    composer.kept = Kept::Asked;
    composer.of = of.clone();
    out.push(Effect::App(Command::LoadDraft(of)));
}

/// A draft came from the disk. What has been typed meanwhile comes behind it.
pub(super) fn loaded(state: &mut State, of: DraftOf, draft: &Draft, out: &mut Effects) {
    match &of {
        DraftOf::Prompt(call) => return prompt_loaded(state, call, draft),
        DraftOf::Rewrite => return rewrite_loaded(state, draft, out),
        DraftOf::NewSession | DraftOf::Session(_) => {}
    }
    let is_on_screen = state.composer.of == of;
    let is_known = is_on_screen && state.composer.kept == Kept::Loaded;
    let refused = state.composer.refused.remove(&of).filter(|_| !is_known);
    let rest = refused.and_then(|text| unsent::without(draft, &text));
    let was_changed = rest.is_some();
    let draft = rest.as_ref().unwrap_or(draft);
    if is_on_screen {
        composer_loaded(state, draft, out);
        if was_changed {
            changed(state);
        }
        return;
    }
    let typed = state.composer.strays.remove(&of);
    if was_changed || typed.is_some() {
        let draft = draft.clone().followed_by(&typed.unwrap_or_default());
        keep(state, Command::SaveDraft { of, draft }, out);
    }
}

/// What was being written for a message that waits when the program was killed: as when it is left,
/// it is in the history from now on.
fn rewrite_loaded(state: &mut State, draft: &Draft, out: &mut Effects) {
    // Where nothing is kept, it may be somebody's who is still writing it.
    if draft.text.is_empty() || state.settings.access == Access::ReadOnly {
        return;
    }
    let text = Editor::with_draft(Shape::Page, draft).text();
    composer::remember(state, &text, out);
    keep(state, Command::SaveDraft { of: DraftOf::Rewrite, draft: Draft::default() }, out);
    let older = hint::composer(state, ComposerAction::HistoryUp);
    let what = "What you were writing for a waiting message when the program ended";
    tell(state, format!("{what} is in the history; {older} brings it back"));
}

fn composer_loaded(state: &mut State, draft: &Draft, out: &mut Effects) {
    let was = std::mem::replace(&mut state.composer.kept, Kept::Loaded);
    if was == Kept::Loaded {
        return;
    }
    if draft.text.is_empty() {
        if was == Kept::AskedToSend {
            composer::send(state, out);
        }
        prompts::draft_loaded(state);
        return;
    }
    let typed = state.composer.draft();
    state.composer.history.leave();
    let is_typed = !typed.text.is_empty();
    let whole = if is_typed { &draft.clone().followed_by(&typed) } else { draft };
    state.composer.editor = Editor::with_draft(Shape::Page, whole);
    if is_typed {
        changed(state);
    }
    if was == Kept::AskedToSend {
        let send = hint::composer(state, ComposerAction::Send);
        tell(state, format!("Your last draft came back above what you typed; {send} sends both"));
    }
}

fn prompt_loaded(state: &mut State, call: &ToolCallId, draft: &Draft) {
    if draft.text.is_empty() {
        return;
    }
    if let Some(form) = state.prompts.forms.get_mut(call) {
        return form.restore(draft);
    }
    if state.prompts.prompt(call).is_none() {
        return;
    }
    match &mut state.overlay {
        Some(Overlay::Reason(reason)) if reason.prompt.call == *call => {
            if reason.field.is_empty() {
                reason.field = Editor::with_draft(Shape::Line, draft);
            }
        }
        Some(_) | None => {
            state.prompts.reasons.entry(call.clone()).or_insert_with(|| draft.clone());
        }
    }
}
