//! Promise 1: nothing typed is lost, and a message is sent once and whole.

use std::sync::Arc;

use super::script::{Screen, commands, settings};
use super::world::{ended, running};
use crate::app::command::{Command, Draft, DraftOf, ListSettings, Send, SendSettings};
use crate::app::notice::{Notice, Refused};
use crate::base::id::{SessionId, TurnId};
use crate::domain::message::UserMessage;
use crate::tui::input::Input;
use crate::tui::state::Focus;
use crate::tui::state::composer::Kept;
use crate::tui::state::conversation::Page;
use crate::tui::state::keys::Arming;
use crate::tui::state::overlay::{About, Confirm, Overlay};
use crate::tui::state::settings::{Access, Settings};
use crate::tui::update::end;

fn draft(text: &str) -> Draft {
    Draft { text: text.into(), caret: text.len(), pastes: vec![] }
}

fn saved(of: DraftOf, text: &str) -> Command {
    Command::SaveDraft { of, draft: draft(text) }
}

fn send(from: DraftOf, text: &str) -> Command {
    let message = Arc::new(UserMessage::text(text));
    Command::Send(Send { from, message, settings: SendSettings::default() })
}

fn of(id: &str) -> DraftOf {
    DraftOf::Session(SessionId::from(id))
}

fn sent(from: DraftOf, session: &str) -> Notice {
    let turn = TurnId::from("t");
    Notice::Sent { from, session: SessionId::from(session), turn }
}

#[test]
fn a_session_is_made_by_its_first_message_only() {
    let mut screen = Screen::new();
    assert_eq!(commands(screen.keys("Ctrl-N")), []);
    assert_eq!(commands(screen.types("hello")), []);
    let effects = commands(screen.keys("Enter"));
    assert_eq!(effects, [saved(DraftOf::NewSession, "hello"), send(DraftOf::NewSession, "hello")]);
    assert_eq!(screen.text(), "hello", "it stays until it is durable");
    let effects = commands(screen.tell(sent(DraftOf::NewSession, "s9")));
    let session = SessionId::from("s9");
    assert_eq!(effects, [Command::Remember("hello".into()), Command::Open(session.clone())]);
    assert_eq!(screen.text(), "");
    assert_eq!(screen.state.session(), Some(&session));
    assert_eq!(commands(screen.wait(2_000)), []);
}

#[test]
fn what_is_typed_while_a_message_is_on_its_way_stays() {
    let mut screen = Screen::showing(&ended("s1"));
    screen.types("one");
    screen.keys("Enter");
    screen.types(" two");
    assert_eq!(commands(screen.keys("Enter")), [], "a message is not sent twice");
    screen.tell(sent(of("s1"), "s1"));
    assert_eq!(screen.text(), " two");
    assert_eq!(commands(screen.wait(500)), [saved(of("s1"), " two")]);
}

#[test]
fn a_refused_message_stays_with_its_error() {
    let mut screen = Screen::showing(&ended("s1"));
    screen.types("one");
    screen.keys("Enter");
    let what = Refused::Send(of("s1"));
    screen.tell(Notice::Refused { what, why: "the disk is full".into() });
    assert_eq!((screen.text().as_str(), screen.toast()), ("one", "the disk is full"));
    assert_eq!(commands(screen.keys("Enter")), [send(of("s1"), "one")]);
}

#[test]
fn a_message_that_was_sent_before_switching_away_is_not_drafted_again() {
    let mut screen = Screen::showing(&ended("s1"));
    screen.types("one");
    screen.keys("Enter");
    let effects = commands(screen.open(&ended("s2")));
    assert!(!effects.iter().any(|command| matches!(command, Command::SaveDraft { .. })));
    let effects = commands(screen.tell(sent(of("s1"), "s1")));
    assert_eq!(effects, [Command::Remember("one".into())]);
    assert_eq!(screen.text(), "");
}

#[test]
fn a_draft_is_on_the_disk_half_a_second_after_the_first_change() {
    let mut screen = Screen::showing(&ended("s1"));
    screen.types("a");
    screen.wait(300);
    screen.types("b");
    assert_eq!(commands(screen.wait(199)), []);
    assert_eq!(commands(screen.wait(1)), [saved(of("s1"), "ab")]);
    assert_eq!(commands(screen.wait(10_000)), []);
}

#[test]
fn drafts_belong_to_their_sessions_and_are_saved_on_the_way_out() {
    let mut screen = Screen::showing(&ended("s1"));
    screen.types("mine");
    let effects = commands(screen.open(&ended("s2")));
    assert_eq!(
        effects,
        [
            saved(of("s1"), "mine"),
            Command::LoadDraft(of("s2")),
            Command::Open(SessionId::from("s2")),
        ]
    );
    assert_eq!(screen.text(), "");
    screen.types("other");
    let effects = commands(screen.keys("Ctrl-N"));
    assert_eq!(
        effects,
        [saved(of("s2"), "other"), Command::LoadDraft(DraftOf::NewSession), Command::Close]
    );
    screen.tell(Notice::Draft { of: DraftOf::NewSession, draft: draft("new") });
    assert_eq!(screen.text(), "new");
}

#[test]
fn what_is_typed_before_the_draft_comes_is_put_behind_it() {
    let mut screen = Screen::showing(&ended("s1"));
    screen.keys("Ctrl-N");
    assert_eq!(screen.state.composer.kept, Kept::Asked);
    screen.types("fast");
    assert_eq!(commands(screen.wait(1_000)), [], "the draft on the disk is not replaced");
    screen.tell(Notice::Draft { of: DraftOf::NewSession, draft: draft("slow") });
    assert_eq!(screen.text(), "slow\nfast");
    assert_eq!(commands(screen.wait(500)), [saved(DraftOf::NewSession, "slow\nfast")]);
}

#[test]
fn what_was_typed_before_the_draft_came_survives_switching_away_and_quitting() {
    let mut screen = Screen::showing(&ended("s1"));
    screen.keys("Ctrl-N");
    screen.types("stray");
    screen.open(&ended("s1"));
    let loaded = Notice::Draft { of: DraftOf::NewSession, draft: draft("kept") };
    let effects = commands(screen.tell(loaded));
    let [Command::SaveDraft { draft, .. }] = effects.as_slice() else { panic!("{effects:?}") };
    assert_eq!(draft.text, "kept\nstray");

    screen.keys("Ctrl-N");
    screen.types("again");
    let effects = commands(screen.keys("Ctrl-C Ctrl-C Ctrl-C"));
    assert_eq!(effects.first(), Some(&Command::Remember("again".into())));
}

#[test]
fn what_was_typed_before_the_draft_came_is_saved_where_there_is_none_and_one_came_back() {
    let mut screen = Screen::showing(&ended("s1"));
    screen.keys("Ctrl-N");
    screen.types("stray");
    screen.open(&ended("s1"));
    screen.keys("Ctrl-N");
    assert_eq!(screen.text(), "stray");
    screen.tell(Notice::Draft { of: DraftOf::NewSession, draft: Draft::default() });
    assert_eq!(commands(screen.wait(500)), [saved(DraftOf::NewSession, "stray")]);
}

#[test]
fn leaving_before_the_draft_came_puts_what_was_typed_behind_it() {
    let mut screen = Screen::showing(&ended("s1"));
    screen.keys("Ctrl-N");
    screen.types("stray");
    let appended = Command::AppendDraft { of: DraftOf::NewSession, typed: draft("stray") };
    assert_eq!(commands(end(&mut screen.state.clone())), std::slice::from_ref(&appended));
    screen.open(&ended("s1"));
    assert_eq!(commands(end(&mut screen.state)), [appended], "also from another page");
    assert_eq!(commands(end(&mut screen.state)), [], "it is saved once");
}

#[test]
fn enter_before_the_draft_came_sends_once_it_is_known_that_there_is_none() {
    let mut screen = Screen::showing(&ended("s1"));
    screen.keys("Ctrl-N");
    screen.types("go");
    assert_eq!(commands(screen.keys("Enter")), []);
    let none = Notice::Draft { of: DraftOf::NewSession, draft: Draft::default() };
    let effects = commands(screen.tell(none));
    assert_eq!(effects, [saved(DraftOf::NewSession, "go"), send(DraftOf::NewSession, "go")]);

    let mut screen = Screen::showing(&ended("s1"));
    screen.keys("Ctrl-N");
    screen.types("go");
    screen.keys("Enter");
    let some = Notice::Draft { of: DraftOf::NewSession, draft: draft("old") };
    assert_eq!(commands(screen.tell(some)), []);
    assert_eq!(screen.text(), "old\ngo");
}

#[test]
fn the_draft_is_the_newest_slot_of_the_history() {
    let mut screen = Screen::new();
    let history = vec!["first".to_owned(), "second\nline".to_owned()];
    screen.tell(Notice::Remembered { history, list: ListSettings::default() });
    screen.types("draft");
    let mut seen = Vec::new();
    for key in ["Up", "Up", "Up", "Up", "Down", "Down", "Down", "Down"] {
        screen.keys(key);
        seen.push(screen.text());
    }
    let (first, second) = ("first", "second\nline");
    assert_eq!(seen, [second, second, first, first, second, "draft", "draft", "draft"]);
    assert_eq!(commands(screen.wait(500)), [saved(DraftOf::NewSession, "draft")]);
}

#[test]
fn a_history_text_that_is_changed_is_the_draft_and_the_old_draft_is_history() {
    let mut screen = Screen::new();
    let history = vec!["sent".to_owned()];
    screen.tell(Notice::Remembered { history, list: ListSettings::default() });
    screen.types("draft");
    screen.keys("Up");
    assert_eq!(commands(screen.types("!")), [Command::Remember("draft".into())]);
    assert_eq!(screen.text(), "sent!");
    screen.keys("Up");
    assert_eq!(screen.text(), "draft");
}

#[test]
fn sending_a_history_text_brings_the_draft_back() {
    let mut screen = Screen::new();
    let history = vec!["again".to_owned()];
    screen.tell(Notice::Remembered { history, list: ListSettings::default() });
    screen.types("draft");
    screen.keys("Up");
    let effects = commands(screen.keys("Enter"));
    assert_eq!(effects.last(), Some(&send(DraftOf::NewSession, "again")));
    screen.tell(sent(DraftOf::NewSession, "s9"));
    assert_eq!(screen.text(), "draft");
    assert_eq!(commands(screen.wait(500)), [saved(of("s9"), "draft")]);
}

#[test]
fn a_paste_never_submits_and_is_sent_in_full() {
    let mut screen = Screen::showing(&ended("s1"));
    let long = "line\n".repeat(214);
    assert_eq!(commands(screen.pastes(&long)), []);
    screen.types("?");
    let effects = commands(screen.keys("Enter"));
    assert_eq!(effects.last(), Some(&send(of("s1"), &format!("{long}?"))));
    let Some(Command::SaveDraft { draft, .. }) = effects.first() else { panic!("no draft") };
    assert_eq!((draft.text.chars().count(), draft.pastes.as_slice()), (2, &[long][..]));
}

#[test]
fn committed_text_is_one_insertion() {
    let mut screen = Screen::showing(&ended("s1"));
    screen.input(Input::Text("日本語".into()));
    assert_eq!(screen.text(), "日本語");
    screen.keys("Ctrl-/");
    assert_eq!(screen.text(), "");
}

#[test]
fn new_lines_are_made_by_their_keys_and_by_a_trailing_backslash() {
    let mut screen = Screen::showing(&ended("s1"));
    screen.types("a");
    screen.keys("Alt-Enter");
    screen.types("b");
    screen.keys("Ctrl-J");
    screen.types("c\\");
    assert_eq!(commands(screen.keys("Enter")), []);
    assert_eq!(screen.text(), "a\nb\nc\n");
}

#[test]
fn an_empty_message_is_not_sent() {
    let mut screen = Screen::showing(&ended("s1"));
    assert_eq!(commands(screen.keys("Enter Space Enter Alt-Enter Enter")), []);
}

#[test]
fn an_interrupted_turn_is_closed_before_the_text_is_sent() {
    let mut session = running("s1");
    let mut screen = Screen::showing(&session);
    screen.types("go on");
    screen.keys("Enter");
    screen.wait(400);
    let about = About::Interrupted(session.id.clone());
    assert_eq!(
        screen.state.overlay,
        Some(Overlay::Confirm(Confirm { about, arming: Arming::Armed }))
    );
    let effects = commands(screen.keys("y"));
    assert_eq!(effects, [Command::CloseInterrupted(session.id.clone())]);
    let failed = crate::domain::turn::event::TurnFact::ModelCallFailed(
        crate::domain::turn::event::ModelCallFailed { model_call_index: 0, error: "x".into() },
    );
    let turn = session.turn();
    let notices = [turn.tell(failed), turn.is_cancelled()];
    let effects = commands(screen.tell_all(notices));
    assert_eq!(effects, [saved(of("s1"), "go on"), send(of("s1"), "go on")]);
}

#[test]
fn an_interrupted_turn_is_resumed_and_takes_the_text_in() {
    let session = running("s1");
    let mut screen = Screen::showing(&session);
    screen.types("go on");
    screen.keys("Enter");
    assert_eq!(commands(screen.clone().keys("r")), [], "nobody can have read it yet");
    screen.wait(400);
    assert_eq!(commands(screen.clone().keys("n")), []);
    let effects = commands(screen.keys("r"));
    let kept = saved(of("s1"), "go on");
    assert_eq!(effects, [Command::Resume(session.id), kept, send(of("s1"), "go on")]);
}

#[test]
fn going_on_typing_after_sending_closes_nothing_and_is_not_lost() {
    let mut screen = Screen::showing(&running("s1"));
    screen.types("go on");
    screen.keys("Enter");
    screen.wait(399);
    assert_eq!(commands(screen.types(" yes n")), []);
    assert_eq!((screen.state.overlay.as_ref(), screen.text().as_str()), (None, "go on yes n"));
    screen.keys("Enter");
    screen.input(Input::Text("ow".into()));
    assert_eq!((screen.state.overlay.as_ref(), screen.text().as_str()), (None, "go on yes now"));
}

#[test]
fn a_closing_that_is_refused_sends_nothing_later() {
    let mut session = running("s1");
    let mut screen = Screen::showing(&session);
    screen.types("go on");
    screen.keys("Enter");
    screen.wait(400);
    screen.keys("y");
    let what = Refused::Resume(session.id.clone());
    screen.tell(Notice::Refused { what, why: "no".into() });
    let failed = crate::domain::turn::event::TurnFact::ModelCallFailed(
        crate::domain::turn::event::ModelCallFailed { model_call_index: 0, error: "x".into() },
    );
    let turn = session.turn();
    let notices = [turn.tell(failed), turn.is_cancelled()];
    assert_eq!(commands(screen.tell_all(notices)), []);
    assert_eq!(screen.text(), "go on");
}

#[test]
fn ctrl_c_puts_the_text_into_the_history() {
    let mut screen = Screen::showing(&ended("s1"));
    screen.types("two hours of work");
    let effects = commands(screen.keys("Ctrl-C"));
    assert_eq!(effects, [Command::Remember("two hours of work".into())]);
    assert_eq!(screen.text(), "");
    screen.keys("Up");
    assert_eq!(screen.text(), "two hours of work");
}

#[test]
fn escape_never_touches_the_text() {
    let mut screen = Screen::showing(&ended("s1"));
    screen.types("kept");
    screen.keys("Esc Esc Esc");
    assert_eq!((screen.text().as_str(), screen.state.focus), ("kept", Focus::Timeline));
}

#[test]
fn a_paste_elsewhere_goes_into_the_draft() {
    let mut screen = Screen::showing(&ended("s1"));
    screen.keys("Esc");
    screen.pastes("pasted");
    assert_eq!((screen.text().as_str(), screen.state.focus), ("pasted", Focus::Composer));
}

#[test]
fn the_text_of_a_session_that_is_deleted_elsewhere_goes_into_the_history() {
    let mut screen = Screen::showing(&ended("s1"));
    screen.types("unsaved");
    let gone = Notice::IndexChanged { session: SessionId::from("s1"), entry: None };
    let effects = commands(screen.tell(gone));
    assert_eq!(
        effects,
        [
            Command::Remember("unsaved".into()),
            Command::LoadDraft(DraftOf::NewSession),
            Command::Close,
        ]
    );
    assert_eq!(screen.state.conversation.page, Page::New);
}

#[test]
fn reading_only_refuses_to_send_and_keeps_nothing() {
    let mut screen = Screen::with(Settings { access: Access::ReadOnly, ..settings() });
    screen.types("x");
    assert!(screen.toast().contains("not kept"), "{}", screen.toast());
    assert_eq!(commands(screen.keys("Enter")), []);
    assert!(screen.toast().contains("--read-only"), "{}", screen.toast());
    assert_eq!(commands(screen.wait(1_000)), []);
}
