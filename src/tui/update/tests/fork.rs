//! Another way from an earlier place, and the way that was gone stays.

use std::sync::Arc;

use super::script::{Screen, commands, settings};
use super::world::{Session, ended};
use crate::app::command::{Command, Draft, DraftOf};
use crate::app::notice::Notice;
use crate::base::id::{SessionId, TurnId};
use crate::domain::message::UserMessage;
use crate::domain::turn::event::{InputAdded, TurnFact};
use crate::tui::state::Focus;
use crate::tui::state::item::{ItemId, Part};
use crate::tui::state::settings::{Access, Settings};

/// Two turns that have ended and one that has not, to which something was added.
fn session() -> Session {
    let mut session = ended("s1");
    session.begin("second\nmessage");
    session.turn().asks_model();
    session.turn().answers("Yes.", &[]);
    session.turn().completes();
    session.begin("third");
    let added = InputAdded { input_index: 1, message: Arc::new(UserMessage::text("also")) };
    session.turn().tell(TurnFact::InputAdded(added));
    session
}

fn turn(number: usize) -> TurnId {
    TurnId::from(format!("s1-t{number}"))
}

/// The effects of a key on a part of a turn.
fn pressed(screen: &mut Screen, key: &str, number: usize, part: Part) -> Vec<Command> {
    screen.state.focus = Focus::Timeline;
    screen.state.conversation.focus = Some(ItemId { turn: turn(number), part });
    screen.draw();
    commands(screen.keys(key))
}

fn forks(at: Option<usize>, text: &str) -> Vec<Command> {
    let draft = Draft { text: text.into(), caret: text.len(), pastes: vec![] };
    vec![Command::Fork { session: SessionId::from("s1"), at: at.map(turn), draft }]
}

#[test]
fn a_fork_begins_at_the_turn_that_has_the_focus_if_that_has_ended() {
    let mut screen = Screen::showing(&session());
    let answer = Part::Block { call: 0, block: 0 };
    assert_eq!(pressed(&mut screen, "f", 1, Part::Input), forks(Some(1), ""));
    assert_eq!(pressed(&mut screen, "f", 2, answer), forks(Some(2), ""));
    assert_eq!(pressed(&mut screen, "f", 3, Part::End), []);
    assert!(screen.toast().contains("has ended"), "{}", screen.toast());
}

#[test]
fn a_message_is_edited_in_a_fork_before_its_turn() {
    let mut screen = Screen::showing(&session());
    assert_eq!(pressed(&mut screen, "e", 1, Part::Input), forks(None, "hello"));
    assert_eq!(pressed(&mut screen, "e", 2, Part::Input), forks(Some(1), "second\nmessage"));
    assert_eq!(pressed(&mut screen, "e", 3, Part::Input), forks(Some(2), "third"));
}

#[test]
fn what_is_no_message_with_a_turn_of_its_own_is_not_edited() {
    let mut screen = Screen::showing(&session());
    assert_eq!(pressed(&mut screen, "e", 1, Part::Block { call: 0, block: 0 }), []);
    assert!(screen.toast().contains("message of yours"), "{}", screen.toast());
    assert_eq!(pressed(&mut screen, "e", 3, Part::Added(1)), []);
    assert!(screen.toast().contains("within a turn"), "{}", screen.toast());
}

#[test]
fn a_fork_opens_with_its_draft_unless_the_person_has_gone_elsewhere() {
    let (of, fork) = (SessionId::from("s1"), SessionId::from("s2"));
    let mut screen = Screen::showing(&session());
    let forked = Notice::Forked { of, session: fork.clone() };
    let effects = commands(screen.clone().tell(forked.clone()));
    let load = Command::LoadDraft(DraftOf::Session(fork.clone()));
    assert_eq!(effects, [load, Command::Open(fork)]);
    screen.open(&ended("s3"));
    assert_eq!(commands(screen.tell(forked)), []);
    assert_eq!(screen.state.session(), Some(&SessionId::from("s3")));
}

#[test]
fn reading_only_forks_nothing() {
    let mut screen = Screen::with(Settings { access: Access::ReadOnly, ..settings() });
    screen.open(&session());
    assert_eq!(pressed(&mut screen, "f", 1, Part::Input), []);
    assert_eq!(pressed(&mut screen, "e", 1, Part::Input), []);
    assert!(screen.toast().contains("--read-only"), "{}", screen.toast());
}
