//! Which rows there are and in which order, whatever comes and goes.

use super::*;
use crate::base::clock::Timestamp;
use crate::domain::session::event::Origin;
use crate::tui::editor::Shape;
use proptest::prelude::*;

/// An entry whose activity and creation are `at` seconds after the beginning.
pub(in crate::tui) fn entry(id: &str, title: &str, at: i64) -> SessionIndexEntry {
    let at = Timestamp::from_ms(at * 1000);
    let mut entry = SessionIndexEntry::damaged(SessionId::from(id), at, String::new());
    entry.title = Some(title.to_owned());
    entry.error = None;
    entry
}

fn child(id: &str, of: &str) -> SessionIndexEntry {
    let parent_session = Some(SessionId::from(of));
    SessionIndexEntry { parent_session, origin: Some(Origin::Subagent), ..entry(id, id, 0) }
}

fn list(entries: Vec<SessionIndexEntry>) -> List {
    let mut list = List::default();
    for entry in entries {
        list.put(&Arc::new(entry));
    }
    list
}

fn ids(list: &List) -> Vec<String> {
    let rows = std::iter::successors(list.first(), |row| list.after(&row.session));
    rows.map(|row| format!("{}{}", " ".repeat(row.depth), row.session)).collect()
}

fn check_rows(list: &List, expected: &[&str]) {
    assert_eq!(ids(list), expected);
    let back = std::iter::successors(list.last(), |row| list.before(&row.session));
    let mut back: Vec<_> =
        back.map(|row| format!("{}{}", " ".repeat(row.depth), row.session)).collect();
    back.reverse();
    assert_eq!(back, expected, "backwards");
}

#[test]
fn the_order_is_by_activity_creation_or_title() {
    let mut older = entry("a", "Zebra", 1);
    older.active_at = Timestamp::from_ms(9000);
    let mut list = list(vec![older, entry("b", "apple", 3), entry("c", "Berry", 2)]);
    check_rows(&list, &["a", "b", "c"]);
    list.sort(SortBy::Creation);
    check_rows(&list, &["b", "c", "a"]);
    list.sort(SortBy::Title);
    check_rows(&list, &["b", "c", "a"]);
    list.put(&Arc::new(entry("b", "zz", 3)));
    check_rows(&list, &["c", "a", "b"]);
}

#[test]
fn child_sessions_stand_under_their_parent_whenever_they_come() {
    let mut list =
        list(vec![child("p2", "p1"), child("p3", "p2"), entry("z", "z", 9), child("p4", "p1")]);
    assert_eq!(ids(&list)[0], "z");
    list.put(&Arc::new(entry("p1", "parent", 5)));
    check_rows(&list, &["z", "p1", " p2", "  p3", " p4"]);
    list.remove(&SessionId::from("p2"));
    check_rows(&list, &["z", "p1", " p4", "p3"]);
    list.remove(&SessionId::from("p1"));
    check_rows(&list, &["z", "p3", "p4"]);
}

#[test]
fn sessions_that_name_each_other_as_parent_are_all_shown() {
    let list = list(vec![child("a", "b"), child("b", "a")]);
    check_rows(&list, &["a", " b"]);
}

#[test]
fn removing_the_selected_session_selects_its_neighbour() {
    let mut list = list(vec![entry("a", "", 3), entry("b", "", 2), entry("c", "", 1)]);
    list.selected = Some(SessionId::from("b"));
    list.remove(&SessionId::from("b"));
    assert_eq!(list.selected, Some(SessionId::from("c")));
    list.remove(&SessionId::from("c"));
    assert_eq!(list.selected, Some(SessionId::from("a")));
    list.remove(&SessionId::from("a"));
    assert_eq!((list.selected.clone(), list.cursor()), (None, None));
}

#[test]
fn what_is_put_away_takes_along_what_stands_under_it_and_leaves_the_cursor_behind() {
    let archived = |mut entry: SessionIndexEntry| {
        entry.archived = true;
        entry
    };
    let mut list = list(vec![entry("a", "", 3), entry("b", "", 2), child("b1", "b")]);
    list.put(&Arc::new(entry("c", "", 1)));
    list.selected = Some(SessionId::from("b"));
    list.put(&Arc::new(archived(entry("b", "", 2))));
    check_rows(&list, &["a", "c"]);
    assert_eq!(list.selected, Some(SessionId::from("c")));
    assert_eq!(list.row(&SessionId::from("b1")), None);
    list.show(Shown::Archived);
    check_rows(&list, &["b", " b1"]);
    list.put(&Arc::new(entry("b", "", 2)));
    check_rows(&list, &[]);
    list.show(Shown::Current);
    check_rows(&list, &["a", "b", " b1", "c"]);
}

#[test]
fn a_filter_loses_sight_of_what_comes_to_stand_under_something_that_is_put_away() {
    let mut away = entry("a", "", 3);
    away.archived = true;
    let mut list = list(vec![away, child("a1", "a"), child("a3", "a2")]);
    list.filter = Some(Filter::new());
    list.restart_filter();
    check_rows(&list, &["a3"]);
    list.put(&Arc::new(child("a2", "a1")));
    check_rows(&list, &[]);
    list.show(Shown::Archived);
    check_rows(&list, &["a", "a1", "a2", "a3"]);
}

fn any_entry() -> impl Strategy<Value = SessionIndexEntry> {
    let archived = prop::bool::weighted(0.3);
    (0..8u8, 0..4i64, "[ab]{0,2}", prop::option::of(0..8u8), archived).prop_map(
        |(id, at, title, parent, archived)| {
            let mut made = entry(&id.to_string(), &title, at);
            made.archived = archived;
            made.origin = parent.map(|_| Origin::Subagent);
            made.parent_session = parent.map(|parent| SessionId::from(parent.to_string()));
            made
        },
    )
}

proptest! {
    #[test]
    fn every_session_has_one_row_forwards_and_backwards_whatever_happened(
        steps in prop::collection::vec((any_entry(), any::<bool>()), 0..40),
        sort in prop::sample::select(vec![SortBy::Activity, SortBy::Creation, SortBy::Title]),
        pattern in prop::option::of("[ab]{1,2}"),
        view in prop::sample::select(vec![Shown::Current, Shown::Archived]),
    ) {
        let mut list = List::default();
        list.sort(sort);
        list.show(view);
        list.filter = pattern.as_deref().map(|pattern| {
            let mut filter = Filter::new();
            filter.field = Editor::with_text(Shape::Line, pattern);
            filter
        });
        list.restart_filter();
        let mut kept = BTreeSet::new();
        for (entry, gone) in steps {
            if gone {
                kept.remove(&entry.session_id);
                list.remove(&entry.session_id);
            } else {
                kept.insert(entry.session_id.clone());
                list.put(&Arc::new(entry));
            }
        }
        list.filter_more();
        let rows: Vec<_> =
            std::iter::successors(list.first(), |row| list.after(&row.session)).collect();
        let mut back: Vec<_> =
            std::iter::successors(list.last(), |row| list.before(&row.session)).collect();
        back.reverse();
        prop_assert_eq!(&rows, &back);
        let shown: BTreeSet<_> = rows.iter().map(|row| row.session.clone()).collect();
        prop_assert_eq!(shown.len(), rows.len());
        let matching = kept.into_iter().filter(|id| {
            let title = list.entry(id).and_then(|entry| entry.title.clone());
            let (title, wanted) = (title.unwrap_or_default(), pattern.as_deref().unwrap_or(""));
            let mut chars = title.chars();
            let top = list.entry(id).map(|entry| tree::shown_in(entry, &list.entries));
            top == Some(view) && wanted.chars().all(|c| chars.any(|found| found == c))
        });
        prop_assert_eq!(shown, matching.collect());
    }
}
