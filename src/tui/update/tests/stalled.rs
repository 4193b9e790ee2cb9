//! Writes that the disk does not take: told as long as it is so, tried again and given up by keys.

use std::time::Duration;

use super::script::{Screen, commands};
use super::world::ended;
use crate::app::command::{Command, StalledWish};
use crate::app::notice::{Notice, Storage};
use crate::store::coordinate::Stall;
use crate::store::log::{LogId, LogKind};
use crate::tui::effect::Effect;

fn stall(retry_in_s: Option<u64>) -> Notice {
    let log = LogId::new(LogKind::Turn, "2026-03-04T05-06-07Z-0000042-000").expect("an id");
    Notice::Storage(Storage::Stalled(vec![Stall {
        log,
        cause: "No space left on device".to_owned(),
        why: "cannot append to /a/b: No space left on device".to_owned(),
        records: 3,
        retry_in: retry_in_s.map(Duration::from_secs),
        tries: 1,
    }]))
}

#[test]
fn the_seconds_to_the_next_try_are_counted_down_and_then_nothing_is_waited_for() {
    let mut screen = Screen::showing(&ended("s1"));
    screen.wait(60_000);
    screen.tell(stall(Some(2)));
    let left = |screen: &Screen| screen.state.status.stalls.retry_in_s(screen.state.now.elapsed);
    assert_eq!(left(&screen), Some(2));
    screen.wait(1_001);
    assert_eq!(left(&screen), Some(1));
    let Notice::Storage(Storage::Stalled(mut more)) = stall(Some(2)) else { unreachable!() };
    more[0].records += 1;
    screen.tell(Notice::Storage(Storage::Stalled(more)));
    assert_eq!(left(&screen), Some(1), "what waits behind it changes nothing");
    screen.wait(2_000);
    assert_eq!(left(&screen), Some(0));
    // The notice of its reason goes by itself.
    screen.wait(12_000);
    assert_eq!(screen.state.next_deadline(), None);
    screen.tell(stall(None));
    assert_eq!((left(&screen), screen.state.next_deadline()), (None, None));
}

#[test]
fn it_is_tried_again_by_a_key_and_the_end_is_told() {
    let mut screen = Screen::showing(&ended("s1"));
    assert_eq!(commands(screen.keys("Ctrl-X r")), []);
    assert_eq!(screen.toast(), "The disk has taken everything");
    screen.wait(60_000);
    screen.tell(stall(Some(2)));
    assert_eq!(commands(screen.keys("Ctrl-X r")), [Command::Stalled(StalledWish::Retry)]);
    screen.tell(Notice::Storage(Storage::Stalled(Vec::new())));
    assert_eq!(screen.toast(), "The disk takes what is written again");
}

#[test]
fn it_is_given_up_after_a_question_only_and_not_once_it_is_over() {
    let mut screen = Screen::showing(&ended("s1"));
    screen.tell(stall(None));
    assert_eq!(commands(screen.keys("Ctrl-X g")), []);
    assert_eq!(commands(screen.keys("y")), [], "too soon to be meant: it is text");
    assert_eq!((screen.text().as_str(), &screen.state.overlay), ("y", &None));
    screen.keys("Backspace Ctrl-X g");
    screen.wait(400);
    assert_eq!(commands(screen.keys("y")), [Command::Stalled(StalledWish::GiveUp)]);
    assert!(screen.state.overlay.is_none());

    screen.keys("Ctrl-X g");
    assert!(screen.state.overlay.is_some());
    screen.tell(Notice::Storage(Storage::Stalled(Vec::new())));
    assert!(screen.state.overlay.is_none(), "there is nothing to give up any more");
}

#[test]
fn the_reason_is_told_once_and_what_is_given_up_is_not_said_to_be_written() {
    let mut screen = Screen::showing(&ended("s1"));
    screen.tell(stall(Some(2)));
    assert_eq!(screen.toast(), "The disk does not take what is written: No space left on device");
    screen.wait(60_000);
    screen.tell(stall(Some(4)));
    assert!(screen.state.status.toasts.is_empty(), "it is the same");
    screen.keys("Ctrl-X g");
    screen.wait(400);
    screen.keys("y");
    screen.tell(Notice::Storage(Storage::Stalled(Vec::new())));
    assert_eq!(screen.toast(), "What was held is given up");
    screen.tell(stall(Some(2)));
    screen.tell(Notice::Storage(Storage::Stalled(Vec::new())));
    assert_eq!(screen.toast(), "The disk takes what is written again");
}

#[test]
fn nobody_leaves_what_is_held_without_having_been_asked() {
    let mut screen = Screen::showing(&ended("s1"));
    screen.tell(stall(Some(2)));
    screen.wait(1_000);
    let quits = |effects: &[Effect]| effects.iter().any(|it| matches!(it, Effect::Quit { .. }));
    assert!(!quits(&screen.keys("Ctrl-D")), "events are held");
    screen.wait(400);
    assert!(quits(&screen.keys("y")));
}
