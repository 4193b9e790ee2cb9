//! What every store does for those who look after it.

use crate::store::error::StoreError;
use crate::store::log::LogKind;
use crate::store::remnant::{Kept, Remnant};
use crate::store::seam::{Durability, LogStore};
use crate::testing::store::contract::{
    Subject, Tears, check_records, check_refused, check_removed, created,
};
use crate::testing::store::{log, record, records, turn};

/// The lines that can be had of a log without a doubt, and how much is lost or in doubt.
fn had(store: &dyn LogStore, kept: &Kept) -> (Vec<Vec<u8>>, usize) {
    let remnants = store.remnants(kept).expect("something can be had");
    let (mut lines, mut lost) = (Vec::new(), 0);
    for remnant in remnants {
        match remnant {
            Remnant::Line(line) => lines.push(line.to_vec()),
            Remnant::Unproven(_) | Remnant::Lost(_) => lost += 1,
        }
    }
    (lines, lost)
}

fn lines(numbers: std::ops::Range<usize>) -> Vec<Vec<u8>> {
    records(numbers).iter().map(|record| record.as_bytes().to_vec()).collect()
}

/// A log without damage is its own remnant, and grows by what is appended.
pub async fn all_of_a_sound_log_is_had_and_weighed(subject: &dyn Subject) {
    let store = subject.store();
    let mut writer = created(&store, &turn(0), &records(0..2)).await;
    let before = store.size(&turn(0)).expect("weighed");
    writer.append(&records(2..9), Durability::Barrier).await.expect("appended");
    assert_eq!(had(&*store, &Kept::There(turn(0))), (lines(0..9), 0));
    assert!(store.size(&turn(0)).expect("weighed") > before && before > 0);
    check_refused!(store.remnants(&Kept::There(turn(1))), StoreError::NotFound(_));
    check_refused!(store.size(&turn(1)), StoreError::NotFound(_));
}

/// What was removed can be had as long as it is kept.
pub async fn all_of_a_removed_log_is_had(subject: &dyn Subject) {
    let store = subject.store();
    drop(created(&store, &turn(0), &records(0..9)).await);
    let removed = store.remove(&turn(0)).await.expect("removed");
    drop(created(&store, &turn(0), &records(0..1)).await);
    let kept = Kept::Removed(removed.clone());
    assert_eq!(had(&*store, &kept), (lines(0..9), 0));
    assert_eq!(had(&*store, &Kept::There(turn(0))), (lines(0..1), 0), "another of its id");
    store.destroy(&removed).await.expect("destroyed");
    check_refused!(store.remnants(&kept), StoreError::NotFound(_));
}

/// What one store has removed another one can restore.
pub async fn a_removal_is_taken_over_under_its_key(subject: &dyn Subject) {
    let other = crate::testing::store::memory_store();
    let session = log(LogKind::Session, 1);
    drop(other.create(&session, &records(0..5)).await.expect("created"));
    let removed = other.remove(&session).await.expect("removed");
    let store = subject.store();
    let batch = records(0..5);
    check_refused!(store.take_over(&removed, &[]).await, StoreError::NoFirstRecord(_));
    check_removed(&store, &[]).await;
    store.take_over(&removed, &batch).await.expect("taken over");
    check_refused!(store.take_over(&removed, &batch).await, StoreError::AlreadyExists(_));
    check_removed(&store, std::slice::from_ref(&removed)).await;
    let there = store.inspect_removed(&removed).await.expect("readable");
    assert_eq!((there.records, &there.first), (batch.clone(), &record(0)));
    check_refused!(store.inspect(&session).await, StoreError::NotFound(_));
    store.restore(&removed).await.expect("restored");
    check_records(&store, &session, &batch).await;
    check_removed(&store, &[]).await;
}

/// Writing, removing and restoring leave nothing that is wrong.
pub async fn nothing_is_wrong_with_what_was_only_written(subject: &dyn Subject) {
    let store = subject.store();
    assert!(store.check().await.expect("looked at").is_empty());
    for number in 0..3 {
        created(&store, &turn(number), &records(0..4)).await;
    }
    let removed = store.remove(&turn(1)).await.expect("removed");
    store.remove(&turn(2)).await.expect("removed");
    store.restore(&removed).await.expect("restored");
    let wrong = store.check().await.expect("looked at");
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// Lines before and behind a damage, which is told, and a torn end, which is told too.
pub async fn of_a_damaged_log_all_else_is_had(subject: &dyn Tears) {
    let store = subject.store();
    drop(created(&store, &turn(0), &records(0..2)).await);
    subject.add(&turn(0), b"not a record\n");
    let behind: Vec<u8> =
        records(2..4).iter().flat_map(|it| [it.as_bytes(), b"\n"].concat()).collect();
    subject.add(&turn(0), &behind);
    subject.tear(&turn(0), record(4).as_bytes());
    let (found, lost) = had(&*store, &Kept::There(turn(0)));
    let mut expected = lines(0..4);
    expected.insert(2, b"not a record".to_vec());
    assert_eq!((found, lost), (expected, 1));
}
