//! Summing up: asked for between turns, and shown where it happened.

use std::collections::BTreeSet;

use super::live::shown;
use super::script::{Screen, commands};
use super::world::{Session, ended, running};
use crate::app::command::Command;
use crate::app::notice::{Came, Compaction, Notice};
use crate::tui::state::Focus;
use crate::tui::state::item::{ItemId, Part};
use crate::tui::state::turns::Turns;

/// A turn that has ended follows.
fn goes_on(session: &mut Session, text: &str) -> Vec<Notice> {
    let begun = session.begin(text);
    let turn = session.turn();
    vec![begun, turn.asks_model(), turn.answers("Yes.", &[]), turn.completes()]
}

/// How many items there are, counted one by one.
fn counted(screen: &Screen) -> usize {
    let items = screen.state.items();
    std::iter::successors(items.first(), |item| items.after(&item.id)).count()
}

fn check(screen: &Screen, expected: &[&str]) {
    assert_eq!(shown(screen), expected);
    assert_eq!(counted(screen), expected.len());
    assert_eq!(Turns::item_count(&screen.state.conversation.turns), expected.len());
    let items = screen.state.items();
    let back = std::iter::successors(items.last(), |item| items.before(&item.id)).count();
    assert_eq!(back, expected.len(), "backwards");
}

#[test]
fn a_summary_stands_behind_the_last_turn_until_the_next_begins_with_it() {
    let mut session = ended("s1");
    let mut screen = Screen::showing(&session);
    screen.tell(session.compacts("before"));
    check(&screen, &["> hello", "Hello there.", "end", "-- before"]);
    screen.tell_all(goes_on(&mut session, "more"));
    let all = ["> hello", "Hello there.", "end", "-- before", "> more", "Yes.", "end"];
    check(&screen, &all);
    let last = screen.state.conversation.turns.latest().expect("a turn");
    assert_eq!(last.beside().before.len(), 1);
    screen.tell_all(session.opened());
    check(&screen, &all);
    check(&Screen::showing(&session), &all);
}

#[test]
fn a_turn_that_began_before_the_summary_was_told_comes_behind_it() {
    let mut session = ended("s1");
    let mut screen = Screen::showing(&session);
    let compacted = session.compacts("before");
    screen.tell_all(goes_on(&mut session, "more"));
    screen.tell(compacted);
    check(&screen, &["> hello", "Hello there.", "end", "-- before", "> more", "Yes.", "end"]);
}

#[test]
fn a_summary_unfolds_is_found_and_is_copied() {
    let mut session = ended("s1");
    session.compacts("before");
    goes_on(&mut session, "more");
    let mut screen = Screen::showing(&session);
    let turn = session.turn().id.clone();
    let id = ItemId { turn, part: Part::Divider(0) };
    assert_eq!(screen.state.items().find(&id).map(|item| item.id), Some(id.clone()));
    screen.state.focus = Focus::Timeline;
    screen.state.conversation.focus = Some(id);
    screen.draw();
    screen.keys("Enter");
    assert_ne!(screen.state.conversation.folds, crate::tui::state::folds::Folds::default());
    let copied = crate::tui::effect::Effect::Copy { text: "before".into() };
    assert_eq!(screen.keys("y"), [copied]);
}

#[test]
fn a_conversation_is_summed_up_between_turns_only() {
    let session = ended("s1");
    let mut screen = Screen::showing(&session);
    assert_eq!(commands(screen.keys("Ctrl-X k")), [Command::Compact(session.id.clone())]);
    assert_eq!(screen.toast(), "", "what is under way is shown, and not said for seconds after it");
    screen.tell(Notice::Compaction(Compaction::Over { session: session.id, came: Came::Done }));
    assert!(screen.toast().contains("next turn"), "{}", screen.toast());
    let mut busy = running("s2");
    let mut screen = Screen::showing(&busy);
    assert_eq!(commands(screen.keys("Ctrl-X k")), [], "it was interrupted");
    screen.tell(busy.turn().started());
    assert_eq!(commands(screen.keys("Ctrl-X k")), [], "it runs");
    assert_eq!(commands(Screen::new().keys("Ctrl-X k")), [], "nothing was said");
}

/// A session on screen that is being summed up.
fn summing_up() -> (Screen, Session) {
    let session = ended("s1");
    let mut screen = Screen::showing(&session);
    screen.keys("Ctrl-X k");
    screen.tell(Notice::Compaction(Compaction::UnderWay(BTreeSet::from([session.id.clone()]))));
    (screen, session)
}

#[test]
fn summing_up_is_stopped_as_a_turn_is() {
    let (mut screen, session) = summing_up();
    let stop = Command::StopCompaction(session.id.clone());
    screen.state.focus = Focus::Composer;
    assert_eq!(commands(screen.keys("Esc")), []);
    assert_eq!(screen.state.focus, Focus::Composer, "it is armed");
    assert_eq!(commands(screen.keys("Esc")), std::slice::from_ref(&stop));
    assert_eq!(commands(screen.keys("Ctrl-C")), [stop]);
    screen.tell(Notice::Compaction(Compaction::UnderWay(BTreeSet::new())));
    screen.tell(Notice::Compaction(Compaction::Over { session: session.id, came: Came::Stopped }));
    assert!(screen.toast().contains("not summed up"), "{}", screen.toast());
    screen.keys("Esc");
    assert_eq!(screen.state.focus, Focus::Timeline, "nothing is left to be stopped");
}

#[test]
fn escape_for_a_summing_up_that_has_ended_meanwhile_stops_nothing() {
    let (mut screen, _) = summing_up();
    screen.state.focus = Focus::Composer;
    screen.keys("Esc");
    screen.tell(Notice::Compaction(Compaction::UnderWay(BTreeSet::new())));
    assert_eq!(screen.state.keys.step, None);
    assert_eq!(commands(screen.keys("Esc")), []);
}

#[test]
fn what_is_summed_up_already_is_not_asked_for_twice_and_another_session_goes_on() {
    let (mut screen, _) = summing_up();
    assert_eq!(commands(screen.keys("Ctrl-X k")), []);
    assert!(screen.toast().contains("being summed up"), "{}", screen.toast());
    let other = ended("s2");
    screen.open(&other);
    screen.keys("Esc");
    assert_eq!(screen.state.keys.step, None, "it is not this one");
}

#[test]
fn a_session_that_is_too_short_is_called_by_its_title() {
    let (mut screen, session) = summing_up();
    let told = || {
        Notice::Compaction(Compaction::Over {
            session: session.id.clone(),
            came: Came::NothingToSum,
        })
    };
    screen.tell(told());
    assert_eq!(screen.toast(), "This session is too short to be summed up");
    screen.open(&ended("s2"));
    screen.tell(told());
    let expected = "\u{201c}Session s1\u{201d} is too short to be summed up";
    assert_eq!(screen.toast(), expected);
}
