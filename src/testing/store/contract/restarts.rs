//! What outlives a store, and what becomes of torn ends and damaged records.

use futures_util::FutureExt as _;

use crate::store::error::StoreError;
use crate::store::log::LogKind;
use crate::store::seam::Durability;
use crate::testing::store::contract::{
    Reopens, Tears, check_list, check_records, check_refused, check_removed, created, read,
};
use crate::testing::store::{record, records, turn};

/// Cases 6 and 12, over a restart.
pub async fn what_was_acknowledged_is_there_after_a_restart(subject: &dyn Reopens) {
    let (store, turn) = (subject.store(), turn(0));
    let mut writer = created(&store, &turn, &records(0..2)).await;
    let last = writer.append(&[record(2)], Durability::Barrier).await.expect("appended");
    drop((writer, store));
    let store = subject.reopened();
    assert_eq!(store.revision(&turn).await.expect("there"), last);
    check_records(&store, &turn, &records(0..3)).await;
}

/// Case 12, over a restart.
pub async fn what_was_removed_can_be_restored_after_a_restart(subject: &dyn Reopens) {
    let (store, turn) = (subject.store(), turn(0));
    drop(created(&store, &turn, &records(0..2)).await);
    let removed = store.remove(&turn).await.expect("removed");
    drop(store);
    let store = subject.reopened();
    check_removed(&store, std::slice::from_ref(&removed)).await;
    store.restore(&removed).await.expect("restored");
    check_records(&store, &turn, &records(0..2)).await;
}

/// Case 12, of appends under way.
pub async fn a_store_dropped_with_appends_under_way_loses_none_of_the_acknowledged(
    subject: &dyn Reopens,
) {
    let (store, turn) = (subject.store(), turn(0));
    let mut writer = created(&store, &turn, &records(0..1)).await;
    writer.append(&records(1..5), Durability::Written).await.expect("appended");
    drop(writer.append(&records(5..9), Durability::Barrier).now_or_never());
    drop((writer, store));
    let store = subject.reopened();
    let found = read(&store, &turn).await.records.clone();
    // The last batch may be there, in the middle of being written, or not there.
    let whole = records(0..9);
    assert!(found.len() >= 5 && whole.starts_with(&found), "{found:?}");
}

/// Case 4.
pub async fn a_torn_end_is_left_out_by_reading_and_cut_by_opening_once(subject: &dyn Tears) {
    let tails = [&b"{\"n\":"[..], b"{\"n\":1}", b"\0\0\0\0", b"\xff\xfe{", b" "];
    for (number, tail) in tails.into_iter().enumerate() {
        let (store, turn) = (subject.store(), turn(number));
        drop(created(&store, &turn, &records(0..2)).await);
        let bytes = subject.tear(&turn, tail);
        let found = read(&store, &turn).await;
        assert_eq!(found.records, records(0..2));
        assert_eq!(found.torn.map(|torn| torn.bytes), Some(bytes));
        let before = store.revision(&turn).await.expect("there");
        assert_eq!(before, found.revision, "reading repairs nothing");
        let mut writer = store.open(&turn).await.expect("free");
        assert_eq!(writer.records(), 2);
        let cut = store.revision(&turn).await.expect("there");
        assert_ne!(cut, before);
        check_records(&store, &turn, &records(0..2)).await;
        writer.append(&[record(2)], Durability::Barrier).await.expect("appended");
        drop(writer);
        let last = store.revision(&turn).await.expect("there");
        drop(store.open(&turn).await.expect("free"));
        assert_eq!(store.revision(&turn).await.expect("there"), last, "the second changes nothing");
        check_records(&store, &turn, &records(0..3)).await;
    }
}

/// Case 10, of repair.
pub async fn a_live_log_is_never_repaired(subject: &dyn Tears) {
    let (store, turn) = (subject.store(), turn(0));
    let writer = created(&store, &turn, &records(0..2)).await;
    subject.tear(&turn, b"{\"n\":");
    check_records(&store, &turn, &records(0..2)).await;
    check_refused!(store.open(&turn).await, StoreError::AlreadyOwned(_));
    drop(writer);
    assert!(read(&store, &turn).await.torn.is_some());
}

/// A whole line that is no record is never skipped.
pub async fn a_damaged_record_is_named_by_its_line(subject: &dyn Tears) {
    let damages = [&b"\n"[..], b"[1]\n", b"{\"a\":}\n", b"\0\0\0\n", b"{\"a\":\"\xff\"}\n"];
    for (number, damage) in damages.into_iter().enumerate() {
        let (store, turn) = (subject.store(), turn(number));
        drop(created(&store, &turn, &records(0..2)).await);
        subject.add(&turn, &[damage, record(3).as_bytes(), b"\n"].concat());
        subject.tear(&turn, b"{\"torn");
        let before = store.revision(&turn).await.expect("there");
        let outcomes = [
            store.inspect(&turn).await.map(drop),
            store.open(&turn).await.map(drop),
            store.open(&turn).await.map(drop),
        ];
        for outcome in outcomes {
            check_refused!(outcome, StoreError::Corrupt { line: 3, .. });
        }
        let text = store.scan(&turn).expect("a scan looks into no line");
        assert_eq!(text.records().map_err(|(line, _)| line), Err(3));
        assert_eq!(store.revision(&turn).await.expect("there"), before, "nothing is repaired");
    }
}

/// A crash in creation cannot leave such a log; somebody else may.
pub async fn a_log_without_its_first_record_is_corrupt(subject: &dyn Tears) {
    let store = subject.store();
    // Makes the folder in which the others lie.
    drop(created(&store, &turn(9), &records(0..1)).await);
    subject.add(&turn(0), b"");
    subject.tear(&turn(18), b"{\"n\":1}");
    subject.add(&turn(27), b"\n");
    for turn in [turn(0), turn(18), turn(27)] {
        for outcome in [store.inspect(&turn).await.map(drop), store.open(&turn).await.map(drop)] {
            check_refused!(outcome, StoreError::Corrupt { line: 1, .. });
        }
    }
}

/// Case 7, of damaged logs.
pub async fn a_damaged_log_is_listed_and_can_be_removed(subject: &dyn Tears) {
    let store = subject.store();
    drop(created(&store, &turn(0), &records(0..1)).await);
    drop(created(&store, &turn(1), &records(0..1)).await);
    subject.add(&turn(1), b"damage beyond the first record\n");
    subject.add(&turn(9), b"no record\n");
    let logs = [turn(0), turn(9), turn(1)];
    check_list(&store, &logs).await;
    let snapshots = store.snapshots(LogKind::Turn).await.expect("listed");
    let readable: Vec<_> = snapshots.iter().map(Result::is_ok).collect();
    assert_eq!(readable, [true, false, true], "{snapshots:?}");
    let removed = store.remove(&turn(9)).await.expect("removed");
    store.restore(&removed).await.expect("restored");
    check_list(&store, &logs).await;
}
