//! Putting sessions away, seeing what is, and taking it back; and destroying them.

use std::sync::Arc;

use super::script::{Screen, commands, settings};
use super::world::listed;
use crate::app::command::Command;
use crate::app::notice::{Notice, Refused};
use crate::base::id::SessionId;
use crate::domain::session::entry::SessionIndexEntry;
use crate::domain::session::event::Origin;
use crate::domain::turn::status::TurnStatus;
use crate::tui::state::Focus;
use crate::tui::state::list::tree::Shown;
use crate::tui::state::settings::{Access, Deleted, Settings};

fn ids(ids: &[&str]) -> Vec<SessionId> {
    ids.iter().map(|id| SessionId::from(*id)).collect()
}

fn archive(sessions: &[&str], archived: bool) -> Command {
    Command::Archive { sessions: ids(sessions), archived }
}

/// The notices of sessions that were put away, or are back.
fn told(sessions: &[&str], archived: bool) -> Vec<Notice> {
    let changed = |id: &&str| {
        let mut entry = SessionIndexEntry::clone(&listed(id, TurnStatus::Completed));
        entry.archived = archived;
        Notice::IndexChanged { session: SessionId::from(*id), entry: Some(Arc::new(entry)) }
    };
    let done = Notice::Archived { sessions: ids(sessions), archived };
    sessions.iter().map(changed).chain([done]).collect()
}

/// The list of three sessions, which has the focus.
fn screen() -> Screen {
    let mut screen = Screen::new();
    for id in ["s1", "s2", "s3"] {
        let entry = Some(listed(id, TurnStatus::Completed));
        screen.tell(Notice::IndexChanged { session: SessionId::from(id), entry });
    }
    screen.keys("Esc h g");
    screen
}

fn shown(screen: &Screen) -> Vec<String> {
    let rows = screen.layout.list.as_ref().expect("drawn").rows.iter();
    rows.map(|row| row.session.to_string()).collect()
}

#[test]
fn what_is_put_away_leaves_the_list_and_stands_in_the_other_view() {
    let mut screen = screen();
    assert_eq!(commands(screen.keys("a")), [archive(&["s1"], true)]);
    screen.tell_all(told(&["s1"], true));
    assert_eq!(shown(&screen), ["s2", "s3"]);
    assert_eq!(screen.state.list.cursor().map(|row| row.session), Some(SessionId::from("s2")));
    screen.keys("A");
    assert_eq!(shown(&screen), ["s1"]);
    assert_eq!(commands(screen.keys("a")), [archive(&["s1"], false)], "there it is got back");
    screen.keys("Esc");
    assert_eq!((screen.state.list.shown, screen.state.focus), (Shown::Current, Focus::List));
}

#[test]
fn the_marked_sessions_are_put_away_together() {
    let mut screen = screen();
    assert_eq!(commands(screen.keys("Space Space a")), [archive(&["s1", "s2"], true)]);
    assert!(screen.state.list.marks.is_empty());
}

#[test]
fn putting_away_is_taken_back_like_a_deletion_the_last_first() {
    let mut screen = screen();
    screen.tell(Notice::Deleted(ids(&["gone"])));
    screen.tell_all(told(&["s1", "s2"], true));
    assert!(screen.toast().contains("u in the list"), "{}", screen.toast());
    assert_eq!(commands(screen.keys("u")), [archive(&["s1", "s2"], false)]);
    screen.tell_all(told(&["s1", "s2"], false));
    assert_eq!(shown(&screen), ["s1", "s2", "s3"]);
    assert_eq!(commands(screen.keys("u")), [Command::Restore(ids(&["gone"]))]);
}

#[test]
fn sessions_are_destroyed_by_typing_the_word_and_by_nothing_less() {
    let mut screen = screen();
    screen.keys("D");
    assert_eq!(commands(screen.keys("Enter y Enter")), []);
    assert!(screen.toast().contains("purge"), "{}", screen.toast());
    screen.keys("Ctrl-U");
    assert_eq!(commands(screen.types("purge")), []);
    let given_up = commands(screen.clone().keys("Esc Enter"));
    assert!(!given_up.iter().any(|command| matches!(command, Command::Purge(_))), "{given_up:?}");
    assert_eq!(commands(screen.keys("Enter")), [Command::Purge(ids(&["s1"]))]);
    assert_eq!(screen.state.overlay, None);
}

#[test]
fn what_is_destroyed_cannot_be_got_back() {
    let mut screen = screen();
    screen.tell_all(told(&["s1"], true));
    screen.keys("A D");
    screen.types("purge");
    screen.keys("Enter u");
    assert_eq!(screen.state.list.undo, []);
}

#[test]
fn reading_only_puts_nothing_away() {
    let mut screen = Screen::with(Settings { access: Access::ReadOnly, ..settings() });
    let entry = Some(listed("s1", TurnStatus::Completed));
    screen.tell(Notice::IndexChanged { session: SessionId::from("s1"), entry });
    assert_eq!(commands(screen.keys("Esc h a")), []);
    assert!(screen.toast().contains("--read-only"), "{}", screen.toast());
}

#[test]
fn what_cannot_be_restored_stands_in_the_way_of_nothing_else() {
    let mut screen = screen();
    screen.tell(Notice::Deleted(ids(&["g1"])));
    screen.tell(Notice::Deleted(ids(&["g2"])));
    assert_eq!(commands(screen.keys("u")), [Command::Restore(ids(&["g2"]))]);
    let (what, why) = (Refused::Restore(SessionId::from("g2")), "the disk is full".to_owned());
    screen.tell(Notice::Refused { what, why });
    assert_eq!(commands(screen.keys("u")), [Command::Restore(ids(&["g1"]))]);
    assert_eq!(commands(screen.keys("u")), [Command::Restore(ids(&["g2"]))], "once more");
    assert_eq!(commands(screen.keys("u")), []);
}

#[test]
fn where_nothing_that_is_deleted_is_kept_no_way_back_is_promised() {
    let mut screen = Screen::with(Settings { deleted: Deleted::Destroyed, ..settings() });
    screen.tell(Notice::Deleted(ids(&["gone"])));
    assert_eq!(screen.toast(), "Destroyed 1 session");
    assert_eq!(screen.state.list.undo, []);
}

#[test]
fn what_stands_under_another_session_is_put_away_with_that_one_alone() {
    let mut screen = screen();
    let mut child = SessionIndexEntry::clone(&listed("s2", TurnStatus::Completed));
    child.origin = Some(Origin::Subagent);
    child.parent_session = Some(SessionId::from("s1"));
    let session = child.session_id.clone();
    screen.tell(Notice::IndexChanged { session: session.clone(), entry: Some(Arc::new(child)) });
    screen.state.list.selected = Some(session.clone());
    assert_eq!(commands(screen.keys("a")), []);
    assert!(screen.toast().contains("the session above it"), "{}", screen.toast());
    screen.state.list.marks = [session, SessionId::from("s3")].into();
    assert_eq!(commands(screen.keys("a")), [archive(&["s3"], true)]);
}

#[test]
fn a_field_of_one_line_takes_no_text_that_is_too_long_for_it() {
    let mut screen = screen();
    screen.keys("r");
    screen.pastes(&"x".repeat(5_000));
    assert!(screen.toast().contains("Nothing was inserted"), "{}", screen.toast());
    screen.pastes(" and more");
    let renamed = commands(screen.keys("Enter"));
    let [Command::Rename { title, .. }] = &renamed[..] else { panic!("{renamed:?}") };
    assert!(title.ends_with(" and more") && title.len() < 100, "{title}");
    screen.keys("/");
    screen.pastes(&"x".repeat(5_000));
    let filter = screen.state.list.filter.as_ref().expect("it is typed");
    assert!(filter.field.is_empty());
}
