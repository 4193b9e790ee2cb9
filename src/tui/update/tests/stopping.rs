//! Stopping and leaving: the ladders of Escape and Ctrl-C.

use super::script::{Screen, commands, settings};
use super::world::{ended, running};
use crate::app::command::Command;
use crate::app::notice::Notice;
use crate::tui::effect::{Effect, Note, NoteAbout};
use crate::tui::input::Input;
use crate::tui::state::Focus;
use crate::tui::state::keys::Arming;
use crate::tui::state::overlay::{About, Confirm, Overlay};
use crate::tui::state::settings::{Motion, NotifyWhen, Settings};

fn with_running_turn() -> (Screen, super::world::Session) {
    let mut session = running("s1");
    let mut screen = Screen::showing(&session);
    screen.tell(session.turn().started());
    (screen, session)
}

#[test]
fn escape_twice_within_two_seconds_stops_the_turn() {
    let (mut screen, mut session) = with_running_turn();
    screen.types("kept");
    assert_eq!(commands(screen.keys("Esc")), []);
    screen.wait(1_900);
    assert_eq!(commands(screen.keys("Esc")), [Command::Stop(session.turn().id.clone())]);
    assert_eq!((screen.text().as_str(), screen.state.focus), ("kept", Focus::Composer));
}

#[test]
fn escape_is_forgotten_after_two_seconds_and_after_any_other_key() {
    let (mut screen, _) = with_running_turn();
    screen.keys("Esc");
    screen.wait(2_100);
    assert_eq!(commands(screen.keys("Esc")), []);
    screen.types("x");
    assert_eq!(commands(screen.keys("Esc")), []);
    screen.pastes("x");
    assert_eq!(commands(screen.keys("Esc")), []);
    screen.keys("Left");
    assert_eq!(commands(screen.keys("Esc")), []);
}

#[test]
fn escape_closes_what_is_on_top_before_it_arms_anything() {
    let (mut screen, _) = with_running_turn();
    assert_eq!(commands(screen.keys("F1 Esc Ctrl-T Esc")), []);
    assert_eq!(screen.state.keys.step, None);
}

#[test]
fn escape_for_a_turn_that_has_ended_meanwhile_stops_nothing() {
    let (mut screen, mut session) = with_running_turn();
    screen.keys("Esc");
    let turn = session.turn();
    let notices = [turn.answers("done", &[]), turn.completes(), turn.rested()];
    screen.tell_all(notices);
    assert_eq!(commands(screen.keys("Esc")), []);
    assert_eq!(screen.state.focus, Focus::Timeline);
}

#[test]
fn ctrl_c_clears_then_stops_then_quits() {
    let (mut screen, mut session) = with_running_turn();
    screen.types("text");
    assert_eq!(commands(screen.keys("Ctrl-C")), [Command::Remember("text".into())]);
    let stop = Command::Stop(session.turn().id.clone());
    let effects = screen.keys("Ctrl-C");
    assert_eq!(commands(effects), [stop]);
    let turn = session.turn();
    let failed = crate::domain::turn::event::TurnFact::ModelCallFailed(
        crate::domain::turn::event::ModelCallFailed { model_call_index: 0, error: "x".into() },
    );
    let notices = [turn.tell(failed), turn.is_cancelled(), turn.rested()];
    screen.tell_all(notices);
    assert_eq!(screen.keys("Ctrl-C"), []);
    screen.wait(1_900);
    let session = Some(session.id.clone());
    assert_eq!(screen.keys("Ctrl-C"), [Effect::Quit { session }]);
}

#[test]
fn one_ctrl_c_alone_never_quits() {
    let mut screen = Screen::new();
    for _ in 0..3 {
        assert_eq!(screen.keys("Ctrl-C"), []);
        screen.wait(2_100);
    }
    screen.keys("Ctrl-C Left");
    assert_eq!(screen.keys("Ctrl-C"), []);
    assert_eq!(screen.keys("Ctrl-C"), [Effect::Quit { session: None }]);
}

#[test]
fn ctrl_d_quits_from_an_empty_composer_and_deletes_in_a_text() {
    let mut screen = Screen::showing(&ended("s1"));
    screen.types("ab");
    screen.keys("Home");
    assert_eq!(screen.keys("Ctrl-D"), []);
    assert_eq!(screen.text(), "b");
    screen.keys("Delete");
    let effects = screen.keys("Ctrl-D");
    let quit = Effect::Quit { session: screen.state.session().cloned() };
    assert_eq!(effects.last(), Some(&quit));
    assert_eq!(commands(effects).len(), 1, "the emptied draft is saved");
}

#[test]
fn quitting_with_turns_running_says_first_what_will_happen() {
    let mut other = running("s2");
    let mut screen = Screen::showing(&ended("s1"));
    screen.tell(other.turn().started());
    screen.types("draft");
    screen.keys("Esc Ctrl-C Ctrl-C");
    screen.wait(400);
    let ask = Overlay::Confirm(Confirm { about: About::Quit, arming: Arming::Armed });
    assert_eq!(screen.state.overlay, Some(ask));
    assert_eq!(screen.keys("n"), []);
    assert_eq!(screen.state.overlay, None);
    assert_eq!(screen.keys("Ctrl-C Ctrl-C Ctrl-C y"), []);
    let mut effects = screen.wait(400);
    effects.extend(screen.keys("y"));
    let quit = Effect::Quit { session: screen.state.session().cloned() };
    assert_eq!(effects.last(), Some(&quit));
    assert!(matches!(effects.first(), Some(Effect::App(Command::SaveDraft { .. }))), "{effects:?}");
}

#[test]
fn suspending_keeps_the_draft_first() {
    let mut screen = Screen::showing(&ended("s1"));
    screen.types("x");
    let effects = screen.keys("Ctrl-Z");
    assert!(matches!(effects.first(), Some(Effect::App(Command::SaveDraft { .. }))), "{effects:?}");
    assert_eq!(effects.last(), Some(&Effect::Suspend));
    assert_eq!(screen.keys("Ctrl-L"), [Effect::Redraw]);
}

#[test]
fn the_offer_of_a_second_key_is_taken_back_with_it() {
    let (mut screen, _) = with_running_turn();
    screen.keys("Esc");
    assert!(screen.state.keys.step.is_some());
    assert!(screen.state.status.toasts.is_empty(), "the status line says it as long as it is true");
    screen.wait(2_001);
    assert_eq!((&screen.state.keys.step, screen.toast()), (&None, ""));
}

#[test]
fn an_idle_program_has_no_deadline() {
    let mut session = running("s1");
    let mut screen = Screen::showing(&session);
    screen.wait(60_000);
    assert_eq!(screen.state.next_deadline(), None);
    screen.tell(session.turn().started());
    assert!(screen.state.next_deadline().is_some(), "a spinner turns");
    screen.input(Input::FocusLost);
    assert_eq!(screen.state.next_deadline(), None, "nobody looks");

    let mut still = Screen::with(Settings { motion: Motion::Reduced, ..settings() });
    still.open(&session);
    still.wait(60_000);
    assert_eq!(still.state.next_deadline(), None);
}

#[test]
fn a_spinner_turns_at_most_four_times_a_second() {
    let (screen, _) = with_running_turn();
    let mut state = screen.state.clone();
    state.keys.step = None;
    let mut frames = 0;
    let end = state.now.elapsed + std::time::Duration::from_secs(10);
    while let Some(next) = state.next_deadline().filter(|next| *next <= end) {
        state.now.elapsed = next;
        state.status.expire(next);
        frames += 1;
    }
    assert_eq!(frames, 40);
}

#[test]
fn a_turn_that_ends_is_told_once_and_only_when_nobody_looks() {
    let (mut screen, mut session) = with_running_turn();
    let mut unfocused = screen.state.clone();
    let turn = session.turn();
    let ends = [turn.answers("done", &[]), turn.completes(), turn.rested(), session.indexed()];
    assert_eq!(notes(screen.tell_all(ends.clone())), []);
    screen.state = {
        unfocused.status.window = crate::tui::state::status::Window::Unfocused;
        unfocused
    };
    let title = Some("Session s1".to_owned());
    let note = Note { session: session.id.clone(), title, about: NoteAbout::Completed };
    assert_eq!(notes(screen.tell_all(ends)), [note]);
}

#[test]
fn with_notices_always_on_what_is_on_screen_is_still_not_told() {
    let mut screen = Screen::with(Settings { notify: NotifyWhen::Always, ..settings() });
    let (mut here, mut there) = (running("s1"), running("s2"));
    screen.open(&here);
    screen.tell(there.indexed());
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for (session, notices) in [(&mut here, &mut first), (&mut there, &mut second)] {
        let turn = session.turn();
        notices.extend([turn.answers("x", &[]), turn.fails()]);
    }
    assert_eq!(notes(screen.tell_all(first)), []);
    assert_eq!(notes(screen.tell_all(second)).len(), 1);
    let mut never = Screen::with(Settings { notify: NotifyWhen::Never, ..settings() });
    never.input(Input::FocusLost);
    let mut session = running("s3");
    let turn = session.turn();
    let ends: Vec<Notice> = vec![turn.answers("x", &[]), turn.fails()];
    assert_eq!(notes(never.tell_all(ends)), []);
}

fn notes(effects: Vec<Effect>) -> Vec<Note> {
    let notes = effects.into_iter().filter_map(|effect| match effect {
        Effect::Notify(note) => Some(note),
        _ => None,
    });
    notes.collect()
}

#[test]
fn what_was_told_of_a_running_turn_goes_when_it_rests() {
    let (mut screen, mut session) = with_running_turn();
    screen.keys("Esc Esc");
    assert_eq!(screen.toast(), "Stopping the turn");
    screen.tell(session.turn().rested());
    assert_eq!(screen.toast(), "");
}
