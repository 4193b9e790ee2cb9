//! Text that comes in: who gets it, and what follows from a change.

use crate::base::id::ToolCallId;
use crate::tui::action::EditAction;
use crate::tui::editor::expand::Expanded;
use crate::tui::editor::{Edited, Editor};
use crate::tui::layout::{Layout, OverlayArea};
use crate::tui::state::form::{Form, Spot};
use crate::tui::state::overlay::Overlay;
use crate::tui::state::{Focus, State};
use crate::tui::update::{Effects, clipboard, composer, drafts, focus, tell};
use crate::tui::words;

/// As much stands in a field of one line: far more than a title, a filter or a reason takes, and
/// little enough to be laid out anew with every key.
const FIELD_BYTES_MAX: usize = 4 * 1024;

/// Who gets what is typed.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Owner {
    Composer,
    Filter,
    Title,
    Purge,
    Rewrite,
    Reason(ToolCallId),
    Answer(ToolCallId),
}

/// Whether somebody gets what is typed.
pub(super) fn is_taken(state: &State) -> bool {
    owner(state).is_some() || (state.overlay.is_none() && state.focus == Focus::Prompt)
}

/// Inserts what was typed or committed.
pub(super) fn insert(state: &mut State, typed: &str, out: &mut Effects) {
    if let Some(Overlay::Codes(_)) = &state.overlay {
        return clipboard::pick(state, typed, out);
    }
    if is_taken(state) {
        make_room(state, out);
        if has_no_room(state, typed) {
            return;
        }
        change(state, out, |editor| editor.insert(typed));
    }
}

/// Inserts what was pasted: into the text that is being typed, else into the draft.
pub(super) fn paste(state: &mut State, pasted: &str, out: &mut Effects) {
    make_room(state, out);
    if has_no_room(state, pasted) {
        return;
    }
    change(state, out, |editor| editor.paste(pasted));
}

/// Whether a text is too long for the field that it is for; the person is told. All of it is refused:
/// a part of it would look like all.
fn has_no_room(state: &mut State, text: &str) -> bool {
    let known = match owner(state) {
        Some(owner @ (Owner::Filter | Owner::Title | Owner::Purge | Owner::Reason(_))) => {
            editor(state, &owner).map(|field| field.text().len())
        }
        Some(Owner::Composer | Owner::Rewrite | Owner::Answer(_)) | None => None,
    };
    let has_none = known.is_some_and(|known| known + text.len() > FIELD_BYTES_MAX);
    if has_none {
        let most = words::bytes(FIELD_BYTES_MAX as u64);
        tell(state, format!("Nothing was inserted: a field of one line takes {most}"));
    }
    has_none
}

/// Moves the focus to a text. On the options of a question, what is typed is a free answer; in every
/// other place without a text it is for the draft, and a prompt that is open gives way to it.
fn make_room(state: &mut State, out: &mut Effects) {
    if let Some(form) = armed_form(state) {
        form.go_to_text();
    }
    if owner(state).is_none() {
        focus::go(state, Focus::Composer, out);
    }
}

/// Does what an action says in the text that is being typed.
pub(super) fn edit(state: &mut State, layout: &Layout, action: EditAction, out: &mut Effects) {
    if action == EditAction::ExpandPaste {
        return expand(state, out);
    }
    let cols = cols(state, layout);
    change(state, out, |editor| editor.edit(action, cols));
}

fn expand(state: &mut State, out: &mut Effects) {
    let mut done = Expanded::NoBlock;
    change(state, out, |editor| {
        done = editor.expand();
        if done == Expanded::Written { Edited::Changed } else { Edited::Kept }
    });
    match done {
        Expanded::Written => {}
        Expanded::TooLong => tell(state, "Too long to be edited here; it is sent in full as it is"),
        Expanded::NoBlock => tell(state, "No pasted block stands beside the caret"),
    }
}

/// How wide the text is that is being typed.
pub(super) fn cols(state: &State, layout: &Layout) -> usize {
    let known = match owner(state) {
        Some(Owner::Composer) => layout.composer.map(|area| area.cols),
        Some(Owner::Answer(_)) => layout.prompt.as_ref().map(|area| area.text_cols),
        Some(Owner::Rewrite) => layout.overlay.as_ref().map(OverlayArea::text_cols),
        Some(Owner::Filter | Owner::Title | Owner::Purge | Owner::Reason(_)) | None => None,
    };
    known.unwrap_or_else(|| usize::from(state.size.width).max(1))
}

fn owner(state: &State) -> Option<Owner> {
    match &state.overlay {
        Some(Overlay::Reason(reason)) => return Some(Owner::Reason(reason.prompt.call.clone())),
        Some(Overlay::Purge(_)) => return Some(Owner::Purge),
        Some(Overlay::Rewrite(_)) => return Some(Owner::Rewrite),
        Some(
            Overlay::Help(_)
            | Overlay::Confirm(_)
            | Overlay::Full(_)
            | Overlay::Waiting(_)
            | Overlay::Codes(_)
            | Overlay::Events(_),
        ) => return None,
        None => {}
    }
    match state.focus {
        Focus::Composer => Some(Owner::Composer),
        Focus::List if state.list.rename.is_some() => Some(Owner::Title),
        Focus::List => {
            state.list.filter.as_ref().filter(|filter| filter.is_typed).map(|_| Owner::Filter)
        }
        Focus::Timeline => None,
        Focus::Prompt => {
            let form = state.prompts.armed_form().filter(|form| form.spot == Spot::Text);
            let call = form.and_then(|_| state.prompts.armed()).map(|prompt| prompt.call.clone());
            call.map(Owner::Answer)
        }
    }
}

fn armed_form(state: &mut State) -> Option<&mut Form> {
    if state.overlay.is_some() || state.focus != Focus::Prompt {
        return None;
    }
    let call = state.prompts.armed()?.call.clone();
    state.prompts.forms.get_mut(&call)
}

/// Changes the text that is being typed, and does what follows from it.
fn change(state: &mut State, out: &mut Effects, change: impl FnOnce(&mut Editor) -> Edited) {
    let Some(owner) = owner(state) else { return };
    let Some(editor) = editor(state, &owner) else { return };
    if change(editor) == Edited::Kept {
        return;
    }
    match owner {
        Owner::Composer => composer::changed(state, out),
        Owner::Filter => state.list.restart_filter(),
        Owner::Title | Owner::Purge => {}
        Owner::Rewrite => drafts::rewrite_changed(state),
        Owner::Reason(call) | Owner::Answer(call) => drafts::prompt_changed(state, call),
    }
}

fn editor<'a>(state: &'a mut State, owner: &Owner) -> Option<&'a mut Editor> {
    match owner {
        Owner::Composer => Some(&mut state.composer.editor),
        Owner::Filter => state.list.filter.as_mut().map(|filter| &mut filter.field),
        Owner::Title => state.list.rename.as_mut().map(|rename| &mut rename.field),
        Owner::Purge | Owner::Rewrite | Owner::Reason(_) => state.overlay.as_mut()?.field_mut(),
        Owner::Answer(call) => state.prompts.forms.get_mut(call)?.text_mut(),
    }
}
