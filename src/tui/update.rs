//! What every message changes and wants done: the one place where the state of the screen changes.
//!
//! Pure: the same state, layout and message always give the same state and effects. Nothing here is
//! proportional to the number of sessions, turns or items.
//!
//! What the shell owes it: [`Msg::Tick`] before a message of another moment and at
//! [`State::next_deadline`]; a frame after every message but [`Msg::Drawn`], and after that one too
//! when [`Effect::Draw`] asks for it; [`Msg::Drawn`] only for frames that reached the terminal.

mod action;
mod clipboard;
mod composer;
mod drafts;
mod events;
mod focus;
mod fork;
mod hint;
mod input;
mod leave;
mod list;
mod live;
mod mouse;
mod notice;
mod notify;
mod overlay;
mod prompts;
mod question;
mod reading;
mod session;
mod stalled;
mod text;
mod timeline;
mod unsent;

use crate::app::command::{Command, DraftOf};
use crate::base::id::{SessionId, TurnId};
use crate::tui::effect::Effect;
use crate::tui::layout::Layout;
use crate::tui::msg::Msg;
use crate::tui::state::conversation::Reading;
use crate::tui::state::settings::Access;
use crate::tui::state::status::Tone;
use crate::tui::state::{Now, State};

/// What an update wants done, in order.
type Effects = Vec<Effect>;

/// What is wanted at the start: the draft of the empty page, what a killed program left, or a session to
/// begin with.
pub fn start(state: &mut State, session: Option<SessionId>) -> Vec<Effect> {
    let drafts = [DraftOf::NewSession, DraftOf::Rewrite];
    let mut out = Vec::from(drafts.map(|of| Effect::App(Command::LoadDraft(of))));
    if let Some(session) = session {
        session::open(state, &session, &mut out);
    }
    out
}

/// What is wanted to go on with a session while the empty page is on screen.
pub fn go_on(state: &mut State, session: &SessionId) -> Vec<Effect> {
    let mut out = Vec::new();
    session::open(state, session, &mut out);
    out
}

/// What is wanted when the program is ended from outside: everything typed is kept.
pub fn end(state: &mut State) -> Vec<Effect> {
    let mut out = Vec::new();
    drafts::leave(state, &mut out);
    out
}

/// Takes a message in. `layout` is that of the last frame, for page moves, pins and clicks.
pub fn update(state: &mut State, layout: &Layout, msg: Msg) -> Vec<Effect> {
    let mut out = Vec::new();
    match msg {
        Msg::Tick(now) => tick(state, now, &mut out),
        Msg::Input(input) => input::take(state, layout, input, &mut out),
        Msg::Resize(size) => {
            reading::hold_source(state, layout);
            state.size = size;
            prompts::resized(state);
        }
        Msg::Notice(notice) => notice::take(state, notice, &mut out),
        Msg::Drawn => drawn(state, layout, &mut out),
        Msg::Trouble(why) => problem(state, why),
        Msg::Copied(copied) => clipboard::copied(state, copied),
    }
    prompts::sync(state, &mut out);
    composer::send_after_close(state, &mut out);
    out
}

fn tick(state: &mut State, now: Now, out: &mut Effects) {
    state.now = now;
    state.status.expire(now.elapsed);
    state.keys.expire(now.elapsed);
    state.list.filter_more();
    prompts::arm(state);
    overlay::arm(state);
    drafts::save_due(state, out);
}

/// The frame of this layout is on the screen.
fn drawn(state: &mut State, layout: &Layout, out: &mut Effects) {
    state.status.spinner_in_sight = layout.has_spinner;
    prompts::drawn(state, layout);
    overlay::drawn(state, layout);
    let bottom = layout
        .timeline
        .as_ref()
        .is_some_and(|area| area.is_at_bottom && area.reading == state.conversation.reading);
    if bottom && state.conversation.reading != Reading::Follow {
        state.conversation.reading = Reading::Follow;
        state.conversation.new_below = 0;
        out.push(Effect::Draw);
    }
}

/// Whether anything may be changed; if not, the person is told.
fn may_write(state: &mut State) -> bool {
    match state.settings.access {
        Access::Full => true,
        Access::ReadOnly => {
            problem(state, "Nothing can be changed in a --read-only view");
            false
        }
    }
}

fn tell(state: &mut State, text: impl Into<String>) {
    state.status.toast(Tone::Plain, text, state.now.elapsed);
}

/// As [`tell`], of a turn that runs: what is told is over when it rests.
fn tell_of(state: &mut State, turn: TurnId, text: impl Into<String>) {
    state.status.toast_of(turn, text, state.now.elapsed);
}

fn problem(state: &mut State, text: impl Into<String>) {
    state.status.toast(Tone::Problem, text, state.now.elapsed);
}

#[cfg(test)]
mod tests;
