//! What the terminal told: keys become actions where the focus is, everything else becomes text.
//!
//! Only a key can decide anything. Text of an input method, pastes and clicks never do.

use crate::tui::action::{Action, AppAction};
use crate::tui::input::{Input, Reply};
use crate::tui::key::{Key, KeyCode};
use crate::tui::keymap::Lookup;
use crate::tui::layout::Layout;
use crate::tui::state::keys::StepKind;
use crate::tui::state::prompts::Room;
use crate::tui::state::status::Window;
use crate::tui::state::{Focus, State};
use crate::tui::update::{Effects, action, hint, mouse, overlay, tell, text};

/// Takes in what the terminal told.
pub(super) fn take(state: &mut State, layout: &Layout, input: Input, out: &mut Effects) {
    match input {
        Input::Key(key) => {
            press(state, layout, key, out);
            state.keys.last_at = Some(state.now.elapsed);
        }
        Input::Text(typed) => {
            forget_steps(state);
            commit(state, layout, &typed, out);
            state.keys.last_at = Some(state.now.elapsed);
        }
        Input::Paste(pasted) => {
            forget_steps(state);
            text::paste(state, &pasted, out);
            state.keys.last_at = Some(state.now.elapsed);
        }
        Input::Mouse(event) => mouse::take(state, layout, event, out),
        Input::FocusGained => {
            state.status.window = Window::Focused;
            state.keys.window_focused_at = Some(state.now.elapsed);
        }
        Input::FocusLost => {
            state.status.window = Window::Unfocused;
            forget_steps(state);
        }
        Input::Reply(reply) => learn(state, reply),
    }
}

fn press(state: &mut State, layout: &Layout, key: Key, out: &mut Effects) {
    // What asks and is not armed takes nothing away from what is being written.
    if let Some(c) = key.text().filter(|_| give_way(state, out)) {
        forget_steps(state);
        return text::insert(state, c.encode_utf8(&mut [0; 4]), out);
    }
    let contexts = state.contexts();
    if state.keys.pending_in != contexts {
        state.keys.pending.clear();
    }
    state.keys.pending.push(key);
    match state.settings.keymap.lookup(contexts, &state.keys.pending) {
        Lookup::Action(action) => {
            state.keys.pending.clear();
            keep_step_for(state, action);
            action::perform(state, layout, action, out);
        }
        Lookup::Pending => state.keys.pending_in = contexts,
        Lookup::Unbound => {
            let is_alone = state.keys.pending.len() == 1;
            forget_steps(state);
            if let Some(c) = key.text().filter(|_| is_alone) {
                text::insert(state, c.encode_utf8(&mut [0; 4]), out);
            }
        }
    }
}

/// Whether what is typed goes into the draft, past something that asks and has dead keys.
fn give_way(state: &mut State, out: &mut Effects) -> bool {
    if overlay::is_in_the_way(state) {
        return overlay::close(state, out);
    }
    let at_prompt = state.overlay.is_none() && state.focus == Focus::Prompt;
    let is_past = at_prompt && state.prompts.armed().is_none();
    if is_past {
        let back = hint::anywhere(state, AppAction::GoToPrompt);
        let text = match state.prompts.room {
            Room::Enough => {
                format!("That went into your text: the prompt was not ready. {back} goes back")
            }
            // Where there is no room for it there is none for more words either.
            Room::TooLittle => format!("{back} shows it"),
        };
        tell(state, text);
    }
    is_past
}

/// Several characters at once. Where no text is typed they may be keys over a slow line, so the moves
/// among them are made, and nothing else.
fn commit(state: &mut State, layout: &Layout, typed: &str, out: &mut Effects) {
    give_way(state, out);
    for (at, c) in typed.char_indices() {
        // One of the characters may have moved to where text is typed.
        if text::is_taken(state) {
            text::insert(state, typed.get(at..).unwrap_or_default(), out);
            return;
        }
        let key = Key::plain(KeyCode::Char(c));
        let found = state.settings.keymap.lookup(state.contexts(), &[key]);
        if let Lookup::Action(Action::Move(action)) = found {
            action::perform(state, layout, Action::Move(action), out);
        }
    }
}

/// What a second key would do is over when another key comes between.
fn keep_step_for(state: &mut State, action: Action) {
    let wanted = match state.keys.step.as_ref().map(|step| &step.kind) {
        Some(StepKind::Stop(_)) => Action::App(AppAction::Escape),
        Some(StepKind::Quit) => Action::App(AppAction::Interrupt),
        None => return,
    };
    if action != wanted {
        state.keys.step = None;
    }
}

fn forget_steps(state: &mut State) {
    state.keys.step = None;
    state.keys.pending.clear();
}

fn learn(state: &mut State, reply: Reply) {
    match reply {
        Reply::Foreground(colour) => state.status.colours.foreground = Some(colour),
        Reply::Background(colour) => state.status.colours.background = Some(colour),
        // The shell asked these for itself.
        Reply::DeviceAttributes | Reply::KeyboardFlags(_) => {}
    }
}
