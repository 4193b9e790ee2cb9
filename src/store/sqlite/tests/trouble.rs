//! Changes that the device, or somebody else, does not let happen at first.

use super::device::{self, Failing};
use super::*;
use crate::store::error::Trouble;
use crate::store::sqlite::writing::SHRINK_PAGES;
use std::fs::{File, FileTimes};
use std::time::{SystemTime, UNIX_EPOCH};

#[tokio::test]
async fn what_another_process_keeps_from_being_written_is_a_want_that_passes() {
    let home = Home::new();
    let (store, mut writer) = a_log(&home).await;
    with_connection(&store, |connection| connection.busy_timeout(Duration::ZERO)).await;
    let other = Connection::open(home.work_dir().database()).expect("a database");
    other.execute_batch("BEGIN IMMEDIATE").expect("begun");
    for _ in 0..2 {
        let refused = writer.append(&[record(2)], Durability::Barrier).await.expect_err("locked");
        assert_eq!(refused.trouble(), Some(Trouble::Want), "{refused}");
        assert!(refused.to_string().contains("database is locked"), "{refused}");
        check_records(&store, &records(0..2)).await;
    }
    other.execute_batch("ROLLBACK").expect("ended");
    writer.append(&[record(2)], Durability::Barrier).await.expect("appended");
    check_records(&store, &records(0..3)).await;
}

/// A log of two records after an append that the device refused to make safe, and that came to light
/// when the journal was read again.
async fn late(home: &Home, attempted: &[Record]) -> (Store, Box<dyn LogWriter>) {
    device::install();
    let (store, mut writer) = a_log(home).await;
    let failing = Failing::below(home.work_dir().root());
    let refused = writer.append(attempted, Durability::Barrier).await.expect_err("not safe");
    assert_eq!(refused.trouble(), Some(Trouble::Other), "{refused}");
    assert_eq!(writer.records(), 2);
    let found = store.inspect(&turn(0)).await.expect("readable").records.clone();
    assert_eq!(found, [&records(0..2), attempted].concat(), "the journal has it all the same");
    let refused = writer.append(attempted, Durability::Barrier).await;
    assert!(matches!(refused, Err(StoreError::Poisoned { .. })), "{refused:?}");
    drop(failing);
    (store, writer)
}

#[tokio::test]
async fn a_batch_that_comes_to_light_after_it_failed_is_not_written_twice() {
    for more in [2, 5] {
        let home = Home::new();
        let (store, mut writer) = late(&home, &records(2..4)).await;
        writer.append(&records(2..2 + more), Durability::Barrier).await.expect("it is there");
        assert_eq!(writer.records(), 2 + more as u64);
        check_records(&store, &records(0..2 + more)).await;
        writer.append(&[record(9)], Durability::Written).await.expect("appended");
        drop((writer, store));
        let expected = [records(0..2 + more), vec![record(9)]].concat();
        check_records(&home.database(Options::default()), &expected).await;
    }
}

#[tokio::test]
async fn a_batch_that_comes_to_light_and_is_given_up_goes() {
    let home = Home::new();
    let (store, mut writer) = late(&home, &records(2..5)).await;
    let before = store.revision(&turn(0)).await.expect("there");
    writer.append(&[record(7)], Durability::Barrier).await.expect("appended");
    assert_ne!(store.revision(&turn(0)).await.expect("there"), before);
    check_records(&store, &[records(0..2), vec![record(7)]].concat()).await;
    writer.append(&[record(8)], Durability::Barrier).await.expect("appended");
    assert_eq!(writer.records(), 4);
}

#[tokio::test]
async fn what_another_wrote_is_not_taken_for_the_batch_that_failed() {
    let home = Home::new();
    let (store, mut writer) = late(&home, &records(2..4)).await;
    store.flush(None).await.expect("nothing is owed");
    let theirs = home.database(Options::default());
    let mut their_writer = theirs.open(&turn(0)).await.expect("they do not know of us");
    their_writer.append(&[record(4)], Durability::Written).await.expect("appended");
    for batch in [records(2..4), records(2..5), vec![record(9)]] {
        let refused = writer.append(&batch, Durability::Barrier).await;
        assert!(matches!(refused, Err(StoreError::Overtaken { .. })), "{refused:?}");
    }
    let told = writer.append(&[record(9)], Durability::Barrier).await.expect_err("as before");
    assert!(told.to_string().ends_with("end that program and open the session again"), "{told}");
    check_records(&store, &records(0..5)).await;
}

#[tokio::test]
async fn room_is_given_back_in_steps_between_which_others_may_write() {
    let home = Home::new();
    let store = store(&home);
    let long = Record::new(format!(r#"{{"a":"{}"}}"#, "x".repeat(9_000_000))).expect("an object");
    drop(store.create(&turn(0), &[record(0), long]).await.expect("created"));
    store.remove(&turn(0)).await.expect("removed");
    with_connection(&store, |connection| {
        connection.execute_batch("DELETE FROM removed_records; DELETE FROM removed")
    })
    .await;
    let free = |connection: &Connection| {
        connection.query_row("PRAGMA freelist_count", [], |row| row.get::<_, i64>(0))
    };
    let before = with_connection(&store, free).await;
    assert!(before > 2 * SHRINK_PAGES, "{before} pages");
    let step = |_: &Arc<Logs>, writing: &mut writing::Writing| {
        Ok(writing.give_back().ok().expect("nobody else writes"))
    };
    assert_eq!(store.0.write(step).await.expect("done"), before - SHRINK_PAGES);
    let all = |_: &Arc<Logs>, writing: &mut writing::Writing| {
        writing.shrink();
        Ok(())
    };
    store.0.write(all).await.expect("done");
    assert_eq!(with_connection(&store, free).await, 0);
}

#[tokio::test]
async fn lists_read_no_record_but_the_first() {
    let home = Home::new();
    drop(a_log(&home).await);
    by_hand(&home, "DROP TABLE records");
    let store = store(&home);
    assert_eq!(store.list(LogKind::Turn).await.expect("listed"), [turn(0)]);
    let snapshots = store.snapshots(LogKind::Turn).await.expect("listed");
    assert_eq!(snapshots[0].as_ref().expect("readable").first, record(0));
    let refused = store.inspect(&turn(0)).await;
    assert!(matches!(refused, Err(StoreError::Damaged { .. })), "{refused:?}");
}

#[tokio::test]
async fn what_makings_left_that_a_crash_ended_goes_when_the_holder_of_the_lock_writes() {
    let home = Home::new();
    let folder = home.work_dir().storage();
    let left = |name: &str, hours: u64| {
        let path = folder.join(name);
        let file = File::create(&path).expect("made");
        let now = UNIX_EPOCH + Duration::from_millis(StillClock.now().ms().cast_unsigned());
        let made = now - Duration::from_hours(hours);
        file.set_times(FileTimes::new().set_modified(SystemTime::max(made, UNIX_EPOCH)))
            .expect("set");
        path
    };
    let old = [
        left(".turnstile.db.00000000000000aa.tmp", 2),
        left(".turnstile.db.00000000000000aa.tmp-journal", 2),
        left(".turnstile.db.00000000000000ab.tmp-wal", 30),
    ];
    let others = [
        left(".turnstile.db.00000000000000ac.tmp", 0),
        left(".turnstile.db.00000000000000ac.tmp-more", 2),
        left("notes.tmp", 2),
    ];
    drop(a_log(&home).await);
    assert!(old.iter().all(|path| path.exists()), "who has no lock leaves them");
    let store = locked(&home);
    store.inspect(&turn(0)).await.expect("readable");
    assert!(old.iter().all(|path| path.exists()), "looking changes nothing");
    drop(store.create(&turn(1), &records(0..1)).await.expect("created"));
    assert!(!old.iter().any(|path| path.exists()));
    assert!(others.iter().all(|path| path.exists()));
}
