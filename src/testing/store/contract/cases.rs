//! What every store does, with files or without.

use futures_util::FutureExt as _;
use futures_util::future::join_all;

use crate::store::error::StoreError;
use crate::store::log::{LogKind, Record, Strays};
use crate::store::seam::Durability;
use crate::testing::store::contract::{
    Subject, check_list, check_records, check_refused, check_removed, created, read,
};
use crate::testing::store::{log, record, records, turn};

/// Case 1.
pub async fn what_is_appended_is_read_back_byte_for_byte(subject: &dyn Subject) {
    let (store, turn) = (subject.store(), turn(0));
    let mut writer = created(&store, &turn, &records(0..2)).await;
    assert_eq!((writer.log(), writer.records()), (&turn, 2));
    for durability in [Durability::Written, Durability::Barrier] {
        let next = usize::try_from(writer.records()).expect("few");
        writer.append(&records(next..next + 3), durability).await.expect("appended");
        check_records(&store, &turn, &records(0..next + 3)).await;
    }
    assert_eq!(writer.records(), 8);
    writer.close().await.expect("closed");
    check_records(&store, &turn, &records(0..8)).await;
    let spaced = Record::new("{ \"a\" :\t1 }\r").expect("an object");
    let mut writer = store.open(&turn).await.expect("free");
    writer.append(std::slice::from_ref(&spaced), Durability::Barrier).await.expect("appended");
    check_records(&store, &turn, &[records(0..8), vec![spaced]].concat()).await;
}

/// Case 2.
pub async fn a_log_is_created_once(subject: &dyn Subject) {
    let store = subject.store();
    let writer = created(&store, &turn(0), &records(0..1)).await;
    check_refused!(store.create(&turn(0), &records(5..6)).await, StoreError::AlreadyExists(_));
    drop(writer);
    check_refused!(store.create(&turn(0), &records(5..6)).await, StoreError::AlreadyExists(_));
    check_records(&store, &turn(0), &records(0..1)).await;

    let (raced, batch) = (turn(1), records(0..3));
    let outcomes = join_all((0..16).map(|_| store.create(&raced, &batch))).await;
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1);
    for lost in outcomes.iter().filter_map(|outcome| outcome.as_ref().err()) {
        let expected = matches!(lost, StoreError::AlreadyExists(_) | StoreError::AlreadyOwned(_));
        assert!(expected, "{lost}");
    }
    check_records(&store, &raced, &batch).await;
}

/// Case 3, of creation.
pub async fn a_log_begins_with_a_record(subject: &dyn Subject) {
    let store = subject.store();
    check_refused!(store.create(&turn(0), &[]).await, StoreError::NoFirstRecord(_));
    check_list(&store, &[]).await;
    created(&store, &turn(0), &records(0..1)).await;
}

/// Case 3.
pub async fn batches_have_any_size(subject: &dyn Subject) {
    let (store, turn) = (subject.store(), turn(0));
    let mut writer = created(&store, &turn, &records(0..1)).await;
    let before = store.revision(&turn).await.expect("there");
    let none = writer.append(&[], Durability::Barrier).await.expect("nothing to do");
    assert_eq!((none, writer.records()), (before, 1));
    assert_eq!(store.revision(&turn).await.expect("there"), before);
    writer.append(&records(1..1_001), Durability::Barrier).await.expect("appended");
    check_records(&store, &turn, &records(0..1_001)).await;
}

/// Case 4, without a torn end.
pub async fn reading_changes_nothing(subject: &dyn Subject) {
    let (store, turn) = (subject.store(), turn(0));
    drop(created(&store, &turn, &records(0..3)).await);
    let before = store.revision(&turn).await.expect("there");
    check_records(&store, &turn, &records(0..3)).await;
    store.read_from(&turn, 1).await.expect("read");
    store.snapshots(LogKind::Turn).await.expect("read");
    drop(store.open(&turn).await.expect("free"));
    store.open(&turn).await.expect("free").close().await.expect("closed");
    store.flush(None).await.expect("flushed");
    assert_eq!(store.revision(&turn).await.expect("there"), before);
    assert_eq!(read(&store, &turn).await.revision, before);
}

/// Case 5.
pub async fn a_suffix_is_read_by_its_number(subject: &dyn Subject) {
    let (store, turn) = (subject.store(), turn(0));
    drop(created(&store, &turn, &records(0..4)).await);
    for (from, expected) in
        [(0, records(0..4)), (2, records(2..4)), (4, vec![]), (5, vec![]), (u64::MAX, vec![])]
    {
        assert_eq!(store.read_from(&turn, from).await.expect("read"), expected, "from {from}");
    }
}

/// Case 6.
pub async fn revisions_tell_what_has_changed(subject: &dyn Subject) {
    let (store, turn) = (subject.store(), turn(0));
    let mut seen = Vec::new();
    for _ in 0..20 {
        let mut writer = created(&store, &turn, &records(0..1)).await;
        seen.push(store.revision(&turn).await.expect("there"));
        let appended = writer.append(&[record(1)], Durability::Written).await.expect("appended");
        assert_eq!(store.revision(&turn).await.expect("there"), appended);
        assert_eq!(read(&store, &turn).await.revision, appended);
        seen.push(appended);
        writer.close().await.expect("closed");
        assert_eq!(store.revision(&turn).await.expect("there"), appended);
        store.remove(&turn).await.expect("removed");
    }
    let different: std::collections::HashSet<_> = seen.iter().collect();
    assert_eq!(different.len(), seen.len(), "{seen:?}");
}

/// Case 7.
pub async fn lists_skip_nothing_and_are_sorted(subject: &dyn Subject) {
    let store = subject.store();
    let mut logs: Vec<_> = (0..30).map(|number| log(LogKind::Session, number)).collect();
    for (number, session) in logs.iter().enumerate() {
        drop(created(&store, session, &records(number..number + 2)).await);
    }
    drop(created(&store, &turn(7), &records(0..1)).await);
    let mut expected: Vec<_> = logs.iter().cloned().zip((0..).map(record)).collect();
    logs.sort();
    expected.sort_by(|(a, _), (b, _)| a.cmp(b));
    assert_eq!(store.list(LogKind::Session).await.expect("listed"), logs);
    check_list(&store, &[turn(7)]).await;
    let mut found = Vec::new();
    for snapshot in store.snapshots(LogKind::Session).await.expect("listed") {
        let snapshot = snapshot.expect("no log is damaged");
        let revision = store.revision(&snapshot.log).await.expect("there");
        assert_eq!(snapshot.revision, revision);
        found.push((snapshot.log, snapshot.first));
    }
    assert_eq!(found, expected);
}

/// Case 8.
pub async fn a_log_has_one_writer(subject: &dyn Subject) {
    let (store, turn) = (subject.store(), turn(0));
    let writer = created(&store, &turn, &records(0..1)).await;
    check_refused!(store.open(&turn).await, StoreError::AlreadyOwned(_));
    drop(writer);
    let mut writer = store.open(&turn).await.expect("freed by dropping");
    assert!(store.is_live(&turn));
    writer.append(&[record(1)], Durability::Written).await.expect("appended");
    check_refused!(store.open(&turn).await, StoreError::AlreadyOwned(_));
    check_refused!(store.remove(&turn).await, StoreError::AlreadyOwned(_));
    writer.close().await.expect("closed");
    assert!(!store.is_live(&turn));
    let writer = store.open(&turn).await.expect("freed by closing");
    assert_eq!(writer.records(), 2);
}

/// Case 8, of opening what is not there.
pub async fn a_failed_open_takes_nothing(subject: &dyn Subject) {
    let (store, missing) = (subject.store(), turn(0));
    for _ in 0..2 {
        check_refused!(store.open(&missing).await, StoreError::NotFound(_));
    }
    drop(created(&store, &missing, &records(0..1)).await);
}

/// Case 9.
pub async fn a_dropped_read_harms_nobody(subject: &dyn Subject) {
    let (store, turn, other) = (subject.store(), turn(0), turn(1));
    drop(created(&store, &turn, &records(0..3)).await);
    drop(created(&store, &other, &records(5..7)).await);
    let removed = store.remove(&other).await.expect("removed");
    drop(store.inspect(&turn));
    let waiting = store.inspect(&turn);
    // Polled once each, then dropped: what has begun goes on without them.
    drop(store.inspect(&turn).now_or_never());
    drop(store.read_from(&turn, 1).now_or_never());
    drop(store.list(LogKind::Turn).now_or_never());
    drop(store.snapshots(LogKind::Turn).now_or_never());
    drop(store.revision(&turn).now_or_never());
    drop(store.removed().now_or_never());
    drop(store.inspect_removed(&removed).now_or_never());
    for kind in [LogKind::Session, LogKind::Turn] {
        drop(store.strays(kind).now_or_never());
    }
    let found = store.inspect_removed(&removed).await.expect("it is still there");
    assert_eq!(found.records, records(5..7));
    assert_eq!(store.strays(LogKind::Turn).await.expect("listed"), Strays::default());
    store.restore(&removed).await.expect("nobody holds it");
    check_records(&store, &other, &records(5..7)).await;
    assert_eq!(waiting.await.expect("read").records, records(0..3));
    let mut writer = store.open(&turn).await.expect("free");
    writer.append(&[record(3)], Durability::Barrier).await.expect("appended");
    check_records(&store, &turn, &records(0..4)).await;
}

/// Appends happen in the order in which they were begun, also when nobody waits for them.
pub async fn a_dropped_append_keeps_the_order(subject: &dyn Subject) {
    let (store, turn) = (subject.store(), turn(0));
    let mut writer = created(&store, &turn, &records(0..1)).await;
    for number in 1..20 {
        drop(writer.append(&[record(number)], Durability::Written).now_or_never());
    }
    writer.append(&[record(20)], Durability::Barrier).await.expect("appended");
    let found = read(&store, &turn).await;
    assert_eq!(found.records.first(), Some(&record(0)));
    assert_eq!(found.records.last(), Some(&record(20)));
    let numbers: Vec<_> =
        (0..=20).filter(|number| found.records.contains(&record(*number))).collect();
    let ordered: Vec<_> = numbers.iter().map(|number| record(*number)).collect();
    assert_eq!(found.records, ordered);
    assert_eq!(writer.records(), found.records.len() as u64);
}

/// Case 10.
pub async fn a_live_log_is_read_as_far_as_acknowledged(subject: &dyn Subject) {
    let (store, turn) = (subject.store(), turn(0));
    assert!(!store.is_live(&turn));
    let mut writer = created(&store, &turn, &records(0..1)).await;
    assert!(store.is_live(&turn));
    for number in 1..30 {
        let batch = [record(number)];
        let (appended, seen) =
            futures_util::join!(writer.append(&batch, Durability::Written), store.inspect(&turn));
        appended.expect("appended");
        let seen = seen.expect("read");
        assert_eq!(seen.torn, None, "an append under way is not torn");
        let whole = [records(0..number), records(0..number + 1)];
        assert!(whole.contains(&seen.records), "{seen:?}");
        check_records(&store, &turn, &records(0..number + 1)).await;
    }
    drop(writer);
    assert!(!store.is_live(&turn));
    check_records(&store, &turn, &records(0..30)).await;
}

/// Case 12.
pub async fn removing_and_restoring_are_inverse(subject: &dyn Subject) {
    let (store, turn, other) = (subject.store(), turn(0), turn(1));
    drop(created(&store, &other, &records(0..1)).await);
    let mut writer = created(&store, &turn, &records(0..2)).await;
    writer.append(&[record(2)], Durability::Written).await.expect("appended");
    drop(writer);
    let removed = store.remove(&turn).await.expect("removed");
    assert_eq!(removed.log, turn);
    check_removed(&store, std::slice::from_ref(&removed)).await;
    check_list(&store, std::slice::from_ref(&other)).await;
    check_refused!(store.inspect(&turn).await, StoreError::NotFound(_));
    store.restore(&removed).await.expect("restored");
    check_removed(&store, &[]).await;
    check_list(&store, &[turn.clone(), other.clone()]).await;
    check_records(&store, &turn, &records(0..3)).await;
    let mut writer = store.open(&turn).await.expect("free");
    writer.append(&[record(3)], Durability::Barrier).await.expect("appended");
    check_records(&store, &turn, &records(0..4)).await;
    check_records(&store, &other, &records(0..1)).await;
}

/// Case 12, between the two.
pub async fn what_was_removed_is_read_where_it_is(subject: &dyn Subject) {
    let (store, turn) = (subject.store(), turn(0));
    drop(created(&store, &turn, &records(0..3)).await);
    let removed = store.remove(&turn).await.expect("removed");
    drop(created(&store, &turn, &records(5..6)).await);
    let found = store.inspect_removed(&removed).await.expect("it is still there");
    assert_eq!((found.records, found.torn), (records(0..3), None));
    assert_eq!(found.first, record(0));
    check_removed(&store, std::slice::from_ref(&removed)).await;
    store.destroy(&removed).await.expect("destroyed");
    check_refused!(store.inspect_removed(&removed).await, StoreError::NotFound(_));
    check_records(&store, &turn, &records(5..6)).await;
}

/// Case 12, of an id that is in use again.
pub async fn nothing_is_restored_over_a_log(subject: &dyn Subject) {
    let (store, turn) = (subject.store(), turn(0));
    drop(created(&store, &turn, &records(0..1)).await);
    let first = store.remove(&turn).await.expect("removed");
    drop(created(&store, &turn, &records(5..6)).await);
    check_refused!(store.restore(&first).await, StoreError::AlreadyExists(_));
    check_records(&store, &turn, &records(5..6)).await;
    let second = store.remove(&turn).await.expect("removed");
    assert_eq!(store.removed().await.expect("listed").len(), 2);
    store.restore(&first).await.expect("restored");
    check_records(&store, &turn, &records(0..1)).await;
    store.destroy(&second).await.expect("destroyed");
    check_removed(&store, &[]).await;
    for gone in [store.restore(&second).await, store.destroy(&second).await] {
        check_refused!(gone, StoreError::NotFound(_));
    }
}

/// Cases 5 and 8, of a missing log.
pub async fn what_is_not_there_is_not_found(subject: &dyn Subject) {
    let (store, turn) = (subject.store(), turn(0));
    check_list(&store, &[]).await;
    check_removed(&store, &[]).await;
    let outcomes = [
        store.inspect(&turn).await.map(drop),
        store.scan(&turn).map(drop),
        store.read_from(&turn, 0).await.map(drop),
        store.revision(&turn).await.map(drop),
        store.open(&turn).await.map(drop),
        store.remove(&turn).await.map(drop),
    ];
    for outcome in outcomes {
        check_refused!(outcome, StoreError::NotFound(_));
    }
    store.flush(Some(&turn)).await.expect("nothing to do");
}
