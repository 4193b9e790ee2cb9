//! The session list: the cursor stays with the person, nothing is destroyed by one key.

use std::sync::Arc;

use super::script::{LIST_ROWS, Screen, commands, settings};
use super::world::{asking, ended, listed, running};
use crate::app::command::{Command, DraftOf, ListSettings, SortBy};
use crate::app::notice::Notice;
use crate::base::clock::Timestamp;
use crate::base::id::{SessionId, TurnId};
use crate::domain::session::entry::SessionIndexEntry;
use crate::domain::turn::status::TurnStatus;
use crate::store::lock::Holder;
use crate::tui::layout;
use crate::tui::mark::Mark;
use crate::tui::state::Focus;
use crate::tui::state::conversation::{Load, Page};
use crate::tui::state::keys::Arming;
use crate::tui::state::list::Scan;
use crate::tui::state::overlay::{About, Confirm, Overlay};
use crate::tui::state::settings::{Access, Settings};
use crate::tui::state::status::LastRun;

fn aged(id: &str, title: &str, at: i64) -> Arc<SessionIndexEntry> {
    let mut entry = SessionIndexEntry::clone(&listed(id, TurnStatus::Completed));
    entry.title = Some(title.to_owned());
    entry.active_at = Timestamp::from_ms(at);
    Arc::new(entry)
}

fn scanned(entries: Vec<Arc<SessionIndexEntry>>) -> Notice {
    let done = entries.len();
    Notice::Scanned { entries, done, total: 100 }
}

/// Five sessions, the newest first, and the focus in the list.
fn five() -> Screen {
    let mut screen = Screen::new();
    let entries = (1..=5).map(|n| aged(&format!("s{n}"), &format!("Title {n}"), 100 - n));
    screen.tell(scanned(entries.collect()));
    screen.keys("Shift-Tab Shift-Tab");
    assert_eq!(screen.state.focus, Focus::List);
    screen
}

fn selected(screen: &Screen) -> Option<&str> {
    screen.state.list.selected.as_ref().map(SessionId::as_str)
}

fn rows(screen: &Screen) -> Vec<&str> {
    let area = screen.layout.list.as_ref().expect("drawn");
    area.rows.iter().map(|row| row.session.as_str()).collect()
}

#[test]
fn the_cursor_moves_by_row_page_and_to_the_ends() {
    let mut screen = five();
    let mut seen = Vec::new();
    for keys in ["j", "j", "k", "G", "g", "PgDn", "Ctrl-U"] {
        screen.keys(keys);
        seen.push(selected(&screen).expect("a row").to_owned());
    }
    assert_eq!(seen, ["s2", "s3", "s2", "s5", "s1", "s5", "s1"]);
}

#[test]
fn sessions_that_stream_in_do_not_move_the_persons_row() {
    let mut screen = five();
    screen.keys("j j");
    let before = screen.state.list.selected_row;
    let newer: Vec<_> = (0..50).map(|n| aged(&format!("n{n:02}"), "new", 1_000 + n)).collect();
    screen.tell(scanned(newer));
    assert_eq!((selected(&screen), screen.state.list.selected_row), (Some("s3"), before));
    let area = screen.layout.list.as_ref().expect("drawn");
    let row = area.rows.iter().find(|row| row.session.as_str() == "s3").expect("in sight");
    assert_eq!(row.row, before);
    assert_eq!(screen.state.list.scan, Scan::Running { done: 50, total: 100 });
    screen.tell(Notice::ScanEnded { took_ms: 12, error: None });
    assert_eq!(screen.state.list.scan, Scan::Ended { took_ms: 12 });
}

#[test]
fn moving_over_the_edge_scrolls_by_one_row() {
    let mut screen = Screen::new();
    let entries = (10..40).map(|n| aged(&format!("s{n}"), "t", 100 - n)).collect();
    screen.tell(scanned(entries));
    screen.keys("Shift-Tab Shift-Tab");
    for _ in 0..LIST_ROWS {
        screen.keys("j");
    }
    assert_eq!((selected(&screen), rows(&screen)[0]), (Some("s18"), "s11"));
    screen.keys("k");
    assert_eq!((selected(&screen), rows(&screen)[0]), (Some("s17"), "s11"));
}

#[test]
fn the_filter_narrows_down_by_title_and_folder_while_it_is_typed() {
    let mut screen = five();
    let mut elsewhere = SessionIndexEntry::clone(&aged("s6", "Other", 1));
    elsewhere.cwd = Some("/home/me/watcher".into());
    screen.tell(scanned(vec![Arc::new(elsewhere), aged("s7", "Fix the watcher", 2)]));
    screen.keys("/");
    screen.types("watch");
    assert_eq!(rows(&screen), ["s7", "s6"]);
    screen.types(" fix");
    assert_eq!(rows(&screen), ["s7"]);
    screen.keys("Enter");
    let opened = commands(screen.keys("Enter"));
    assert!(opened.contains(&Command::Open(SessionId::from("s7"))), "{opened:?}");
    assert_eq!(screen.text(), "");
    screen.keys("Shift-Tab Shift-Tab Esc");
    assert_eq!(rows(&screen).len(), 7);
}

#[test]
fn letters_in_the_filter_and_in_a_title_are_text() {
    let mut screen = five();
    screen.keys("/");
    screen.types("dyuq?");
    assert_eq!(screen.state.overlay, None);
    screen.keys("Esc r Ctrl-U");
    screen.types("d y u q ?");
    assert_eq!(screen.state.overlay, None);
    let session = SessionId::from("s1");
    let title = "d y u q ?".to_owned();
    assert_eq!(commands(screen.keys("Enter")), [Command::Rename { session, title }]);
}

#[test]
fn a_filter_looks_at_a_bounded_number_of_sessions_between_two_keys() {
    let mut screen = Screen::new();
    let entries = (0..10_000).map(|n| aged(&format!("s{n:05}"), &format!("number {n}"), n));
    screen.tell(scanned(entries.collect()));
    screen.keys("Shift-Tab Shift-Tab /");
    screen.types("0000");
    let filter = screen.state.list.filter.as_ref().expect("a filter");
    assert!(filter.is_looking());
    let due = screen.state.next_deadline().expect("it goes on");
    assert!(due <= screen.state.now.elapsed, "at once");
    screen.wait(1);
    let filter = screen.state.list.filter.as_ref().expect("a filter");
    assert_eq!((filter.is_looking(), filter.found_count()), (false, 0));
    screen.keys("Backspace Backspace Backspace");
    screen.wait(1);
    assert!(screen.state.list.filter.as_ref().expect("a filter").found_count() > 2_000);
}

#[test]
fn sorting_goes_round_and_is_kept() {
    let mut screen = five();
    let kept = |sort| Command::SaveListSettings(ListSettings { sort, hidden: false });
    for sort in [SortBy::Creation, SortBy::Title, SortBy::Activity] {
        assert_eq!(commands(screen.keys("s")), [kept(sort)]);
    }
}

#[test]
fn deleting_asks_once_and_is_taken_back() {
    let mut screen = five();
    screen.keys("j");
    assert_eq!(commands(screen.keys("d")), []);
    let ids = vec![SessionId::from("s2")];
    let about = About::Delete(ids.clone());
    screen.wait(400);
    assert_eq!(
        screen.state.overlay,
        Some(Overlay::Confirm(Confirm { about, arming: Arming::Armed }))
    );
    assert_eq!(commands(screen.keys("Enter d Space")), []);
    assert_eq!(commands(screen.keys("y")), [Command::Delete(ids.clone())]);
    let gone = Notice::IndexChanged { session: ids[0].clone(), entry: None };
    screen.tell_all([gone, Notice::Deleted(ids.clone())]);
    assert_eq!(screen.toast(), "Deleted 1 session; u in the list takes it back");
    assert_eq!(selected(&screen), Some("s3"));
    assert_eq!(commands(screen.keys("u")), [Command::Restore(ids.clone())]);
    screen.tell_all([scanned(vec![aged("s2", "Title 2", 98)]), Notice::Restored(ids)]);
    assert_eq!(rows(&screen), ["s1", "s2", "s3", "s4", "s5"]);
    assert_eq!(commands(screen.keys("u")), []);
}

#[test]
fn a_deletion_that_was_not_seen_is_not_confirmed() {
    let mut screen = five();
    screen.is_drawn = false;
    assert_eq!(commands(screen.keys("d y")), []);
    assert_eq!(commands(screen.keys("n")), []);
}

#[test]
fn a_deletion_is_confirmed_only_when_nobody_has_pressed_a_key_for_a_while() {
    let mut screen = five();
    assert_eq!(commands(screen.keys("d y")), []);
    screen.wait(399);
    assert_eq!(commands(screen.keys("y")), []);
    screen.wait(400);
    assert_eq!(commands(screen.keys("y")), [Command::Delete(vec![SessionId::from("s1")])]);
    screen.keys("d");
    screen.wait(400);
    assert_eq!(screen.state.next_deadline(), None, "what is live waits for nothing");
}

#[test]
fn marked_sessions_are_deleted_together() {
    let mut screen = five();
    screen.keys("Space j Space d");
    let ids = vec![SessionId::from("s1"), SessionId::from("s3")];
    screen.wait(400);
    assert_eq!(commands(screen.keys("y")), [Command::Delete(ids)]);
    assert!(screen.state.list.marks.is_empty());
}

#[test]
fn a_damaged_session_is_looked_into_but_not_chatted_with() {
    let mut screen = five();
    let why = "line 3: not JSON".to_owned();
    let id = SessionId::from("s9");
    let damaged = SessionIndexEntry::damaged(id.clone(), Timestamp::from_ms(9_999), why.clone());
    screen.tell(scanned(vec![Arc::new(damaged)]));
    screen.keys("g r");
    assert_eq!(screen.state.list.rename, None);
    let effects = commands(screen.keys("Enter"));
    assert_eq!(effects.last(), Some(&Command::Open(id.clone())));
    assert_eq!(screen.state.focus, Focus::Timeline);
    screen.tell(Notice::SessionOpened { session: id.clone(), state: Err(why.clone()) });
    let load = Load::Unreadable(why);
    assert_eq!(screen.state.conversation.page, Page::Session { id: id.clone(), load });
    screen.keys("i");
    screen.types("hello");
    assert_eq!(commands(screen.keys("Enter")), []);
    assert!(screen.toast().contains("damaged"), "{}", screen.toast());
    screen.keys("Shift-Tab Shift-Tab d");
    screen.wait(400);
    assert_eq!(commands(screen.keys("y")), [Command::Delete(vec![id])]);
}

#[test]
fn opening_never_writes() {
    let mut screen = five();
    let effects = commands(screen.keys("j Enter"));
    let reads = |command: &Command| matches!(command, Command::Open(_) | Command::LoadDraft(_));
    assert!(effects.iter().all(reads), "{effects:?}");
}

#[test]
fn an_interrupted_turn_is_resumed_from_the_list_or_the_conversation() {
    let mut screen = five();
    screen.tell(scanned(vec![listed("s9", TurnStatus::Idle)]));
    screen.state.list.selected = Some(SessionId::from("s9"));
    assert_eq!(commands(screen.keys("C")), [Command::Resume(SessionId::from("s9"))]);
    screen.state.list.selected = Some(SessionId::from("s1"));
    assert_eq!(commands(screen.keys("C")), []);

    let mut session = running("s8");
    let mut screen = Screen::showing(&session);
    screen.keys("Esc");
    assert_eq!(commands(screen.keys("C")), [Command::Resume(session.id.clone())]);
    assert_eq!(commands(screen.keys("X")), [Command::CloseInterrupted(session.id.clone())]);
    screen.tell(session.turn().started());
    assert_eq!(commands(screen.keys("C X")), []);
}

#[test]
fn a_waiting_turn_is_closed_only_after_a_question() {
    let mut session = asking("s1", 1);
    let mut screen = Screen::showing(&session);
    screen.keys("Esc Esc");
    assert_eq!(screen.state.focus, Focus::Timeline);
    assert_eq!(commands(screen.keys("X")), []);
    screen.wait(400);
    assert_eq!(commands(screen.keys("y")), [Command::Stop(session.turn().id.clone())]);
}

#[test]
fn below_eighty_columns_the_list_comes_and_goes_with_the_focus() {
    let mut screen = five();
    screen.send(crate::tui::msg::Msg::Resize(ratatui::layout::Size::new(60, 20)));
    assert_eq!(commands(screen.keys("Ctrl-B")), []);
    assert_eq!(screen.state.focus, Focus::Composer);
    screen.keys("Ctrl-B");
    assert_eq!(screen.state.focus, Focus::List);
    screen.keys("Esc");
    assert_eq!(screen.state.focus, Focus::Timeline);
    screen.send(crate::tui::msg::Msg::Resize(ratatui::layout::Size::new(100, 20)));
    let hidden = ListSettings { sort: SortBy::Activity, hidden: true };
    assert_eq!(commands(screen.keys("Ctrl-B")), [Command::SaveListSettings(hidden)]);
}

#[test]
fn the_sessions_that_a_crash_interrupted_are_named_until_they_are_dealt_with() {
    let mut screen = Screen::new();
    let ids = vec![SessionId::from("s1"), SessionId::from("s2")];
    screen.tell(Notice::LastRunEndedBadly { interrupted: ids.clone() });
    let entry = Some(listed("s1", TurnStatus::Idle));
    screen.tell(Notice::IndexChanged { session: ids[0].clone(), entry });
    let left = |ids: &[SessionId]| LastRun::EndedBadly { interrupted: ids.to_vec() };
    assert_eq!(screen.state.status.last_run, left(&ids));
    let entry = Some(listed("s1", TurnStatus::Completed));
    screen.tell(Notice::IndexChanged { session: ids[0].clone(), entry });
    assert_eq!(screen.state.status.last_run, left(&ids[1..]));
    screen.tell(Notice::IndexChanged { session: ids[1].clone(), entry: None });
    assert_eq!(screen.state.status.last_run, LastRun::EndedWell);
}

#[test]
fn a_bad_end_is_told_in_an_open_session_too_and_when_it_interrupted_nothing() {
    let mut screen = Screen::new();
    screen.open(&asking("s1", 1));
    screen.tell(Notice::LastRunEndedBadly { interrupted: Vec::new() });
    assert!(screen.toast().contains("ended badly"), "{}", screen.toast());
    let (session, turn) = (SessionId::from("s1"), TurnId::from("t1"));
    screen.tell(Notice::Sent { from: DraftOf::Session(session.clone()), session, turn });
    assert_eq!(screen.state.status.last_run, LastRun::EndedWell, "the person has gone on");
}

#[test]
fn what_is_open_in_another_process_is_neither_interrupted_nor_offered_to_be_resumed() {
    let mut screen = Screen::with(Settings { access: Access::ReadOnly, ..settings() });
    let session = SessionId::from("s1");
    let entry = Some(listed("s1", TurnStatus::Idle));
    screen.tell(Notice::IndexChanged { session: session.clone(), entry });
    screen.keys("Shift-Tab Shift-Tab");
    screen.state.list.selected = Some(session.clone());
    let mark = |screen: &Screen| {
        let entry = screen.state.list.entry(&session).expect("it is listed");
        layout::list::mark(&screen.state, entry)
    };
    assert_eq!(mark(&screen), Some(Mark::Interrupted));
    let holder = Holder { process: Some(77), since: None };
    screen.tell(Notice::HeldBy(Some(holder)));
    assert_eq!(mark(&screen), Some(Mark::Running));
    assert_eq!(commands(screen.keys("C")), []);
    assert_eq!(screen.toast(), "The turn is open in process 77");
    screen.tell(Notice::HeldBy(None));
    assert_eq!(mark(&screen), Some(Mark::Interrupted));
}

#[test]
fn several_sessions_run_and_are_marked() {
    let mut screen = Screen::new();
    let (mut one, mut two) = (running("s1"), running("s2"));
    screen.tell_all([one.turn().started(), two.turn().started()]);
    let runs = |screen: &Screen, id: &SessionId| screen.state.activity.turn_of(id).is_some();
    assert!(runs(&screen, &one.id) && runs(&screen, &two.id));
    screen.tell(one.turn().rested());
    assert!(!runs(&screen, &one.id) && runs(&screen, &two.id));
}

#[test]
fn reading_only_refuses_everything_that_writes() {
    let mut screen = Screen::with(Settings { access: Access::ReadOnly, ..settings() });
    screen.tell_all([ended("s1").indexed(), running("s2").indexed(), asking("s3", 1).indexed()]);
    screen.keys("Shift-Tab Shift-Tab");
    let effects = commands(screen.keys("d y r Esc s Ctrl-B Ctrl-B"));
    assert_eq!(effects, []);
    screen.state.list.selected = Some(SessionId::from("s2"));
    assert_eq!(commands(screen.keys("C X")), []);
    assert!(screen.toast().contains("--read-only"), "{}", screen.toast());
    screen.open(&asking("s3", 1));
    screen.keys("Ctrl-Y");
    screen.wait(400);
    assert_eq!(commands(screen.keys("y n N")), []);
}

#[test]
fn a_stopped_session_with_messages_left_to_be_sent_is_marked_with_them() {
    let mut screen = Screen::new();
    let mark = |screen: &mut Screen, status: TurnStatus, unsent: usize| {
        let entry = SessionIndexEntry { unsent, ..SessionIndexEntry::clone(&listed("s1", status)) };
        let session = entry.session_id.clone();
        screen.tell(Notice::IndexChanged { session: session.clone(), entry: Some(entry.into()) });
        let entry = screen.state.list.entry(&session).expect("it is listed");
        layout::list::mark(&screen.state, entry)
    };
    assert_eq!(mark(&mut screen, TurnStatus::Completed, 1), Some(Mark::Unsent));
    assert_eq!(mark(&mut screen, TurnStatus::Cancelled, 0), Some(Mark::Stopped));
    assert_eq!(mark(&mut screen, TurnStatus::Cancelled, 1), Some(Mark::Unsent));
    assert_eq!(mark(&mut screen, TurnStatus::Failed, 1), Some(Mark::Failed));
}
