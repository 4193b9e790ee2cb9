//! Prompts: what waits, when its keys become live, and what a decision does.
//!
//! The one place that makes [`Command::Decide`]. It is reached by a key alone, and only for the
//! prompt that is armed.

use std::collections::BTreeSet;

use crate::app::command::{Command, Decide, Draft, DraftOf};
use crate::base::id::{ToolCallId, TurnId};
use crate::domain::turn::event::Decision;
use crate::domain::turn::state::ToolCall;
use crate::tui::action::{AppAction, PermissionAction};
use crate::tui::editor::{Editor, Shape};
use crate::tui::effect::Effect;
use crate::tui::layout::Layout;
use crate::tui::state::composer::Kept;
use crate::tui::state::form::Form;
use crate::tui::state::overlay::{Full, Overlay, Reason};
use crate::tui::state::prompts::{BUSY_WITHIN, Pace, Prompt, PromptKind, Room, Stage, outstanding};
use crate::tui::state::{Focus, State};
use crate::tui::update::{Effects, composer, drafts, hint, may_write, notify, overlay, tell};

/// Brings the prompts in line with what the session on screen waits for now.
pub(super) fn sync(state: &mut State, out: &mut Effects) {
    let found = waiting_now(state);
    if found == state.prompts.queue {
        return;
    }
    let known: BTreeSet<ToolCallId> =
        state.prompts.queue.iter().map(|prompt| prompt.call.clone()).collect();
    let before = std::mem::replace(&mut state.prompts.queue, found);
    for prompt in before {
        if state.prompts.prompt(&prompt.call).is_none() {
            closed(state, &prompt, out);
        }
    }
    let new = state.prompts.queue.iter().filter(|prompt| !known.contains(&prompt.call));
    let new: Vec<Prompt> = new.cloned().collect();
    for prompt in &new {
        appeared(state, prompt, out);
    }
    if known.is_empty() && !new.is_empty() && may_open(state) {
        open_first(state);
    }
    open_wanted(state);
}

/// Opens the prompt that the person came for, if nothing else has happened since.
fn open_wanted(state: &mut State) {
    let call = state
        .prompts
        .wanted
        .take_if(|call| state.prompts.queue.iter().any(|prompt| prompt.call == *call));
    let is_free = state.focus == Focus::Composer && state.overlay.is_none();
    if let Some(call) = call.filter(|_| is_free) {
        open(state, call);
    }
}

/// A prompt opens by itself only over a composer that nobody has just used and that is known to be empty:
/// a draft may be on its way from the disk.
fn may_open(state: &State) -> bool {
    let busy = state.keys.last_at.is_some_and(|last| state.now.elapsed < last + BUSY_WITHIN);
    let typing = state.focus == Focus::List
        && (state.list.rename.is_some()
            || state.list.filter.as_ref().is_some_and(|filter| filter.is_typed));
    let drafting = !is_composer_empty(state);
    !busy && !typing && !drafting && state.overlay.is_none()
}

fn is_composer_empty(state: &State) -> bool {
    state.composer.kept == Kept::Loaded && state.composer.editor.is_empty()
}

/// The draft has come from the disk. If there was none, what waits opens as it would have before.
pub(super) fn draft_loaded(state: &mut State) {
    if state.prompts.stage == Stage::Docked && may_open(state) {
        open_first(state);
    }
}

/// Opens the first prompt with dead keys. It gets the focus.
fn open_first(state: &mut State) {
    if let Some(call) = state.prompts.first().map(|first| first.call.clone()) {
        open(state, call);
    }
}

fn open(state: &mut State, call: ToolCallId) {
    state.prompts.stage = Stage::Opening { call, drawn_at: None };
    if state.focus != Focus::Prompt {
        state.prompts.came_from = Some(state.focus);
        state.focus = Focus::Prompt;
    }
}

/// Puts the prompt into its dock; the focus goes back to where it was.
fn dock(state: &mut State) {
    state.prompts.stage = Stage::Docked;
    if state.focus == Focus::Prompt {
        state.focus = state.prompts.came_from.take().unwrap_or(Focus::Composer);
    }
}

/// The person went to this call from elsewhere.
pub(super) fn want(state: &mut State, call: ToolCallId) {
    state.prompts.wanted = Some(call);
    open_wanted(state);
}

/// What the latest turn waits for, without what was answered already; what was put off comes last.
fn waiting_now(state: &State) -> Vec<Prompt> {
    let Some(slot) = state.conversation.turns.latest() else { return Vec::new() };
    let Some(turn) = slot.state() else { return Vec::new() };
    let pace = if state.activity.runs(&slot.id) { Pace::Runs } else { Pace::Rests };
    let prompts = &state.prompts;
    let open =
        outstanding(turn, pace).filter(|prompt| !prompts.answered.contains_key(&prompt.call));
    let mut open: Vec<Prompt> = open.collect();
    open.sort_by_key(|prompt| prompts.put_off.iter().position(|call| *call == prompt.call));
    open
}

fn appeared(state: &mut State, prompt: &Prompt, out: &mut Effects) {
    let needs_form =
        prompt.kind == PromptKind::Question && !state.prompts.forms.contains_key(&prompt.call);
    if let Some(call) = tool_call(state, prompt).filter(|_| needs_form) {
        let form = Form::new(call.invocation.as_ref().map_or(&call.arguments, |run| &run.input));
        state.prompts.forms.insert(prompt.call.clone(), form);
    }
    out.push(Effect::App(Command::LoadDraft(DraftOf::Prompt(prompt.call.clone()))));
    notify::prompt(state, prompt, out);
}

/// A prompt is not shown any more. If nobody waits for its answer, what was typed into it goes into
/// the history.
fn closed(state: &mut State, prompt: &Prompt, out: &mut Effects) {
    let above = state.overlay.as_ref().and_then(Overlay::prompt);
    let on_top = above.is_some_and(|above| above.call == prompt.call);
    if on_top {
        overlay::close(state, out);
    }
    let answered = state.prompts.answered.contains_key(&prompt.call);
    let waits = tool_call(state, prompt)
        .is_some_and(|call| call.awaits_permission() || call.awaits_async_result());
    if !answered && !waits {
        forget(state, &prompt.call, out);
        tell(state, format!("{} no longer waits for you", prompt.name));
    }
    let was_open = match &state.prompts.stage {
        Stage::Docked => false,
        Stage::Opening { call, .. } | Stage::Armed { call } => *call == prompt.call,
    };
    if was_open {
        dock(state);
        if answered {
            open_next(state);
        }
    }
}

/// After an answer the next prompt opens, unless there is a draft to go back to.
fn open_next(state: &mut State) {
    if is_composer_empty(state) && state.overlay.is_none() {
        open_first(state);
    }
}

/// Lets go of what was typed into a prompt; it is in the history from now on.
fn forget(state: &mut State, call: &ToolCallId, out: &mut Effects) {
    let form = state.prompts.forms.remove(call);
    let reason = state.prompts.reasons.remove(call);
    let typed = form.map(|form| form.typed()).unwrap_or_default();
    composer::remember(state, &typed, out);
    if let Some(reason) = reason {
        composer::remember(state, &Editor::with_draft(Shape::Line, &reason).text(), out);
    }
    remove_draft(state, call, out);
}

/// Removes what was kept of an answer or a reason.
fn remove_draft(state: &mut State, call: &ToolCallId, out: &mut Effects) {
    state.prompts.saves.remove(call);
    let of = DraftOf::Prompt(call.clone());
    drafts::keep(state, Command::SaveDraft { of, draft: Draft::default() }, out);
}

/// The session leaves the screen: its prompts do too, and what was typed into them is saved.
pub(super) fn leave(state: &mut State, out: &mut Effects) {
    drafts::flush_prompts(state, out);
    let prompts = &mut state.prompts;
    prompts.queue.clear();
    prompts.forms.clear();
    prompts.reasons.clear();
    prompts.put_off.clear();
    prompts.wanted = None;
    dock(state);
}

/// The frame that shows the open prompt is on the screen. In its full view it is shown once all of it
/// has been in sight.
pub(super) fn drawn(state: &mut State, layout: &Layout) {
    let now = state.now.elapsed;
    state.prompts.room = layout.prompt.as_ref().map_or(Room::Enough, |area| area.room);
    let below = layout.prompt.as_ref().filter(|area| area.is_open).map(|area| &area.call);
    let whole = match (&mut state.overlay, &layout.overlay) {
        (Some(Overlay::Full(full)), Some(area)) => {
            full.see(area.rows_in_sight, area.rows).then(|| full.prompt.call.clone())
        }
        _ => None,
    };
    let is_shown = |call: &ToolCallId| below == Some(call) || whole.as_ref() == Some(call);
    match &mut state.prompts.stage {
        Stage::Opening { call, drawn_at } if is_shown(call) => {
            drawn_at.get_or_insert(now);
        }
        // What a smaller screen does not show any more cannot be approved on it either.
        Stage::Opening { drawn_at, .. } => *drawn_at = None,
        Stage::Armed { call } if !is_shown(call) => {
            state.prompts.stage = Stage::Opening { call: call.clone(), drawn_at: None };
        }
        Stage::Docked | Stage::Armed { .. } => {}
    }
}

/// The rows of a full view are others now: it has to be seen again.
pub(super) fn resized(state: &mut State) {
    if let Some(Overlay::Full(full)) = &mut state.overlay {
        full.seen_rows = 0;
    }
}

/// Makes the keys of the open prompt live when it has been seen for long enough without a key.
pub(super) fn arm(state: &mut State) {
    let due = state.prompts.armed_at(&state.keys).is_some_and(|due| due <= state.now.elapsed);
    let Some(prompt) = state.prompts.open() else { return };
    let is_clear = match &state.overlay {
        None => state.focus == Focus::Prompt,
        Some(overlay) => {
            overlay.full_prompt() == Some(prompt) && state.prompts.room == Room::TooLittle
        }
    };
    if due && is_clear {
        state.prompts.stage = Stage::Armed { call: prompt.call.clone() };
    }
}

/// Opens the prompt that waits in the dock.
pub(super) fn go(state: &mut State, out: &mut Effects) {
    overlay::close(state, out);
    if state.prompts.queue.is_empty() {
        let list = hint::anywhere(state, AppAction::WaitingList);
        return match state.list.waiting().len() {
            0 => tell(state, "Nothing waits for you"),
            _ => tell(state, format!("Nothing waits for you here; {list} shows what does")),
        };
    }
    if state.prompts.stage == Stage::Docked {
        open_first(state);
    }
    let open = state.prompts.open().filter(|open| open.kind == PromptKind::Permission).cloned();
    if let (Some(prompt), Room::TooLittle) = (open, state.prompts.room) {
        state.overlay = Some(Overlay::Full(Full::new(prompt)));
    }
}

/// Puts the open prompt into its dock; with several, another one comes first from now on.
pub(super) fn put_off(state: &mut State) {
    if let Some(call) = state.prompts.open().map(|prompt| prompt.call.clone()) {
        state.prompts.put_off.retain(|put_off| *put_off != call);
        state.prompts.put_off.push(call);
    }
    dock(state);
}

/// Does what an action says with the armed prompt.
pub(super) fn perform(state: &mut State, action: PermissionAction, out: &mut Effects) {
    if action == PermissionAction::Later {
        if !overlay::close(state, out) {
            put_off(state);
        }
        return;
    }
    let Some(prompt) = armed_permission(state) else { return };
    match action {
        PermissionAction::AllowOnce => decide(state, &prompt, Decision::Allow, None, out),
        PermissionAction::Deny => decide(state, &prompt, Decision::Deny, None, out),
        PermissionAction::DenyWithReason => {
            if may_write(state) {
                let begun = state.prompts.reasons.get(&prompt.call).cloned().unwrap_or_default();
                let field = Editor::with_draft(Shape::Line, &begun);
                state.overlay = Some(Overlay::Reason(Reason { prompt, field }));
            }
        }
        PermissionAction::FullView => match &state.overlay {
            Some(Overlay::Full(_)) => drop(overlay::close(state, out)),
            Some(_) | None => {
                state.overlay = Some(Overlay::Full(Full::new(prompt)));
            }
        },
        PermissionAction::Later => {}
    }
}

/// Denies with the reason that was typed. Without one there is nothing to send.
pub(super) fn deny_with_reason(state: &mut State, out: &mut Effects) {
    let Some(Overlay::Reason(reason)) = &state.overlay else { return };
    let (prompt, text, draft) = (reason.prompt.clone(), reason.field.text(), reason.field.draft());
    if text.trim().is_empty() {
        let back = hint::anywhere(state, AppAction::Escape);
        return tell(state, format!("Type a reason, or go back with {back}"));
    }
    if !may_write(state) {
        return;
    }
    state.prompts.reasons.insert(prompt.call.clone(), draft);
    decide(state, &prompt, Decision::Deny, Some(text), out);
}

fn armed_permission(state: &State) -> Option<Prompt> {
    let prompt = state.prompts.armed().filter(|prompt| prompt.kind == PromptKind::Permission)?;
    let seen = match &state.overlay {
        None => state.focus == Focus::Prompt,
        Some(overlay) => overlay.full_prompt().is_some_and(|full| full.call == prompt.call),
    };
    seen.then(|| prompt.clone())
}

fn decide(
    state: &mut State,
    prompt: &Prompt,
    decision: Decision,
    reason: Option<String>,
    out: &mut Effects,
) {
    if !may_write(state) {
        return;
    }
    // A reason that was begun and not given is not lost.
    let begun = state.prompts.reasons.get(&prompt.call).filter(|_| reason.is_none());
    if let Some(begun) = begun.map(|begun| Editor::with_draft(Shape::Line, begun).text()) {
        composer::remember(state, &begun, out);
    }
    let (turn, call) = (prompt.turn.clone(), prompt.call.clone());
    out.push(Effect::App(Command::Decide(Decide { turn, call, decision, reason })));
    answered(state, prompt);
}

/// The person has answered, and the prompt goes. What was typed into it stays until the answer is
/// recorded.
pub(super) fn answered(state: &mut State, prompt: &Prompt) {
    state.prompts.answered.insert(prompt.call.clone(), prompt.turn.clone());
    state.overlay = None;
}

/// An answer to a call was recorded. If it was this person's, nothing of it has to be kept.
pub(super) fn recorded(state: &mut State, call: &ToolCallId, out: &mut Effects) {
    if state.prompts.answered.remove(call).is_some() {
        state.prompts.forms.remove(call);
        state.prompts.reasons.remove(call);
        remove_draft(state, call, out);
    }
}

/// Answers to a turn were refused: what still waits is asked again.
pub(super) fn refused(state: &mut State, turn: &TurnId) {
    state.prompts.answered.retain(|_, answered| answered != turn);
}

fn tool_call<'a>(state: &'a State, prompt: &Prompt) -> Option<&'a ToolCall> {
    let slot = state.conversation.turns.slot(&prompt.turn)?;
    slot.state()?.tool_calls.get(&prompt.call)
}
