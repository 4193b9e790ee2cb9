//! What the contract does not say of a database: whose it is, what becomes of it when there is no
//! room, when pages are damaged, when its journal is gone or the device refuses.

mod device;
mod looking;
mod rescue;
mod trouble;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;

use super::header::{APPLICATION, VERSION};
use super::*;
use crate::base::clock::Clock as _;
use crate::base::id::TurnId;
use crate::base::tasks::{Ended, Tasks};
use crate::domain::turn::live::{Delta, DeltaKind};
use crate::store::coordinate::Coordinator;
use crate::store::error::{Corruption, Unsupported};
use crate::store::live_text::LiveText as _;
use crate::store::lock::InstanceLock;
use crate::store::turn_repo::TurnRepo;
use crate::testing::disk::{Call, EIO, EOPNOTSUPP, Fault, Plan};
use crate::testing::store::{Home, StillClock, log, record, records, turn};

fn store(home: &Home) -> Store {
    home.database(Options::default())
}

/// The store of a process that holds the lock.
fn locked(home: &Home) -> Store {
    let disk = Arc::new(home.disk.clone());
    let lock = InstanceLock::acquire(disk, &home.work_dir(), 7, StillClock.now()).expect("free");
    let parts = Parts { lock: Some(Arc::new(lock)), ..home.parts() };
    Store::new(home.work_dir(), parts, Options::default())
}

/// A store with a log of two records, and its writer.
async fn a_log(home: &Home) -> (Store, Box<dyn LogWriter>) {
    let store = store(home);
    let writer = store.create(&turn(0), &records(0..2)).await.expect("created");
    (store, writer)
}

async fn check_records(store: &Store, expected: &[Record]) {
    assert_eq!(store.inspect(&turn(0)).await.expect("readable").records, expected);
}

/// All files in the work directory, with what they hold.
fn tree(home: &Home) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![home.work_dir().root().to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("listed") {
            let path = entry.expect("listed").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.insert(path.display().to_string(), fs::read(&path).expect("readable"));
            }
        }
    }
    files
}

/// Changes the database by hand, while no store has it open.
fn by_hand(home: &Home, sql: &str) {
    let connection = Connection::open(home.work_dir().database()).expect("a database");
    connection.execute_batch(sql).expect("changed");
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("there").permissions().mode() & 0o777
}

fn always(call: Call, error: i32) -> Plan {
    Plan { only: Some(call), from: 0, times: u64::MAX, fault: Fault::Error(error) }
}

#[tokio::test]
async fn the_database_is_private_and_all_there_is() {
    let home = Home::new();
    let (store, mut writer) = a_log(&home).await;
    writer.append(&[record(2)], Durability::Written).await.expect("appended");
    let database = home.work_dir().database();
    let shared = database.with_file_name("turnstile.db-shm");
    for file in [&database, &store.0.database.wal(), &shared] {
        assert_eq!(mode(file), 0o600, "{}", file.display());
    }
    assert_eq!(mode(database.parent().expect("a folder")), 0o700);
    drop((writer, store));
    let files: Vec<_> = tree(&home).into_keys().filter(|name| name.contains("storage")).collect();
    assert_eq!(files, [database.display().to_string()]);
}

#[tokio::test]
async fn looking_makes_no_database() {
    let home = Home::new();
    let store = store(&home);
    let before = tree(&home);
    store.check().await.expect("nothing is wrong with none");
    assert_eq!(store.list(LogKind::Turn).await.expect("listed"), []);
    assert_eq!(store.removed().await.expect("listed"), []);
    let gone = Removed { log: turn(0), at: StillClock.now(), key: "turn".to_owned() };
    for outcome in [
        store.open(&turn(0)).await.map(drop),
        store.remove(&turn(0)).await.map(drop),
        store.restore(&gone).await,
        store.destroy(&gone).await,
    ] {
        assert!(matches!(outcome, Err(StoreError::NotFound(_))), "{outcome:?}");
    }
    assert_eq!(tree(&home), before);
}

#[tokio::test]
async fn what_has_no_form_of_an_id_is_refused_before_anything_is_made() {
    let home = Home::new();
    let before = tree(&home);
    let turns = TurnRepo::new(Arc::new(store(&home)), home.parts().tasks, CacheBounds::default());
    for id in ["", "..", "../2025", "2025-02-30T04-36-29Z-0001234-000", &"9".repeat(300), "é"] {
        let outcomes = [
            turns.read(&TurnId::from(id)).await.map(drop),
            turns.open(&TurnId::from(id)).await.map(drop),
            turns.create(&TurnId::from(id), &[]).await.map(drop),
        ];
        for outcome in outcomes {
            assert!(matches!(outcome, Err(StoreError::Id(_))), "{id:?}: {outcome:?}");
        }
    }
    assert_eq!(tree(&home), before);
    drop(a_log(&home).await);
    by_hand(&home, "INSERT INTO logs VALUES ('turn', '../2025', 1, 0, 1, '{}')");
    let store = store(&home);
    assert_eq!(store.list(LogKind::Turn).await.expect("listed"), [turn(0)]);
    assert_eq!(store.snapshots(LogKind::Turn).await.expect("listed").len(), 1);
}

/// Whatever is asked of a store over this file is refused for one reason, and nothing is written.
async fn check_unsupported(home: &Home, expected: Unsupported) {
    let (store, before) = (store(home), tree(home));
    let outcomes = [
        store.check().await,
        store.create(&turn(0), &records(0..1)).await.map(drop),
        store.open(&turn(0)).await.map(drop),
        store.inspect(&turn(0)).await.map(drop),
        store.scan(&turn(0)).map(drop),
        store.list(LogKind::Turn).await.map(drop),
        store.remove(&turn(0)).await.map(drop),
        store.removed().await.map(drop),
    ];
    for outcome in outcomes {
        let found = match &outcome {
            Err(StoreError::Unsupported { found, .. }) => Some(*found),
            _ => None,
        };
        assert_eq!(found, Some(expected), "{outcome:?}");
    }
    let told = store.check().await.expect_err("as before").to_string();
    let path = home.work_dir().database();
    assert!(told.starts_with(&path.display().to_string()) && told.contains(';'), "{told}");
    assert_eq!(tree(home), before);
}

#[tokio::test]
async fn what_is_not_ours_is_refused_and_left_as_it_is() {
    let of_another = |application: u32, version: u32| {
        let home = Home::new();
        by_hand(
            &home,
            &format!(
                "PRAGMA journal_mode = WAL; PRAGMA application_id = {application};
                 PRAGMA user_version = {version}; CREATE TABLE logs (a)"
            ),
        );
        home
    };
    check_unsupported(&of_another(7, VERSION), Unsupported::Foreign(7)).await;
    check_unsupported(&of_another(0, 0), Unsupported::Foreign(0)).await;
    check_unsupported(&of_another(APPLICATION, 2), Unsupported::Version(2)).await;
    check_unsupported(&of_another(APPLICATION, 0), Unsupported::Version(0)).await;
    for bytes in [&b""[..], b"{\"a\":1}\n", &[0; 200]] {
        let home = Home::new();
        fs::write(home.work_dir().database(), bytes).expect("written");
        check_unsupported(&home, Unsupported::NoDatabase).await;
    }
    let home = Home::new();
    fs::create_dir(home.work_dir().database()).expect("a folder");
    check_unsupported(&home, Unsupported::NoDatabase).await;
}

#[tokio::test]
async fn a_database_that_is_taken_away_or_replaced_is_written_no_more() {
    let home = Home::new();
    let (store, mut writer) = a_log(&home).await;
    let (database, away) = (home.work_dir().database(), home.work_dir().root().join("away"));
    fs::rename(&database, &away).expect("moved");
    for replaced in [false, true] {
        if replaced {
            fs::copy(&away, &database).expect("copied");
        }
        let outcomes = [
            writer.append(&[record(2)], Durability::Barrier).await.map(drop),
            store.create(&turn(1), &records(0..1)).await.map(drop),
            store.inspect(&turn(0)).await.map(drop),
        ];
        for outcome in outcomes {
            let found = match &outcome {
                Err(StoreError::Unsupported { found, .. }) => Some(*found),
                _ => None,
            };
            assert_eq!(found, Some(Unsupported::Replaced), "{outcome:?}");
        }
    }
    fs::rename(&away, &database).expect("moved back");
    writer.append(&[record(2)], Durability::Barrier).await.expect("it is the one again");
    check_records(&store, &records(0..3)).await;
}

#[tokio::test]
async fn a_log_that_another_process_has_changed_is_not_written_over() {
    let home = Home::new();
    let (ours, mut writer) = a_log(&home).await;
    let theirs = store(&home);
    let mut their_writer = theirs.open(&turn(0)).await.expect("they do not know of us");
    their_writer.append(&records(2..5), Durability::Written).await.expect("appended");
    let refused = writer.append(&[record(9)], Durability::Barrier).await;
    let counts = match &refused {
        Err(StoreError::Overtaken { expected, found, .. }) => Some((*expected, *found)),
        _ => None,
    };
    assert_eq!(counts, Some((2, 5)), "{refused:?}");
    drop(their_writer);
    let removed = theirs.remove(&turn(0)).await.expect("removed");
    let refused = writer.append(&[record(9)], Durability::Barrier).await;
    assert!(matches!(refused, Err(StoreError::NotFound(_))), "{refused:?}");
    drop(theirs.create(&turn(0), &records(0..2)).await.expect("the id is free"));
    let refused = writer.append(&[record(9)], Durability::Barrier).await;
    assert!(matches!(refused, Err(StoreError::Overtaken { .. })), "{refused:?}");
    check_records(&ours, &records(0..2)).await;
    let found = ours.inspect_removed(&removed).await.expect("kept");
    assert_eq!(found.records, records(0..5));
}

/// Does something with the connection that writes.
async fn with_connection<T: Send + 'static>(
    store: &Store,
    work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
) -> T {
    let work = move |_: &Arc<Logs>, writing: &mut writing::Writing| {
        let connection = writing.connection.as_ref().expect("something was written");
        Ok(work(connection).expect("the connection works"))
    };
    store.0.write(work).await.expect("done")
}

/// Lets the database grow to so many pages, from the next change on.
async fn limit_pages(store: &Store, pages: u32) {
    let limit = format!("PRAGMA max_page_count = {pages}");
    with_connection(store, move |connection| connection.query_row(&limit, [], |_| Ok(()))).await;
}

#[tokio::test]
async fn without_room_nothing_acknowledged_is_lost_and_the_batch_may_be_given_again() {
    for durability in [Durability::Written, Durability::Barrier] {
        let home = Home::new();
        let (store, mut writer) = a_log(&home).await;
        limit_pages(&store, 1).await; // SQLite takes this for as many as there are
        let mut acked = 2;
        let full = loop {
            match writer.append(&records(acked..acked + 7), durability).await {
                Ok(_) => acked += 7,
                Err(error) => break error,
            }
        };
        let StoreError::Io(failure) = &full else { panic!("{full:?}") };
        assert_eq!(failure.cause.kind(), std::io::ErrorKind::StorageFull);
        assert_eq!(failure.path, home.work_dir().database());
        assert!(full.to_string().contains("turnstile.db"), "{full}");
        assert_eq!(writer.records(), acked as u64);
        let other = Home::new();
        fs::copy(home.work_dir().database(), other.work_dir().database()).expect("no journal");
        check_records(&other.database(Options::default()), &records(0..acked)).await;
        check_records(&store, &records(0..acked)).await;
        let refused = store.create(&turn(1), &records(0..500)).await;
        assert!(matches!(refused, Err(StoreError::Io(_))), "{refused:?}");
        assert_eq!(store.list(LogKind::Turn).await.expect("listed"), [turn(0)]);

        limit_pages(&store, u32::MAX / 2).await;
        let batch = records(acked..acked + 7);
        writer.append(&batch, durability).await.expect("there is room again");
        check_records(&store, &records(0..acked + 7)).await;
        drop((writer, store));
        check_records(&home.database(Options::default()), &records(0..acked + 7)).await;
    }
}

#[tokio::test]
async fn what_a_full_database_does_not_take_is_held_and_written_once_there_is_room() {
    let home = Home::new();
    let store = store(&home);
    let coordinator = Coordinator::new(Arc::new(store.clone()), Tasks::new());
    let mut writer = coordinator.create(&turn(0), &records(0..2)).await.expect("created");
    limit_pages(&store, 1).await; // SQLite takes this for as many as there are
    let tasks = Tasks::new();
    let writing = tasks.spawn("write", async move {
        for from in (2..500).step_by(7) {
            let batch = records(from..from + 7);
            writer.append(&batch, Durability::Written).await.expect("written in the end");
        }
        writer.records()
    });
    let mut stalls = coordinator.follow_stalls();
    let stalled = stalls.wait_for(|stalls| !stalls.is_empty()).await.expect("there")[0].clone();
    let file = home.work_dir().database().display().to_string();
    let told = format!("cannot append to {file}: database or disk is full");
    assert_eq!((stalled.why, stalled.retry_in.is_some()), (told, true));
    let failed = coordinator.flush(None).await.expect_err("there is no room").to_string();
    assert!(failed.contains(&file), "{failed}");
    let held = store.inspect(&turn(0)).await.expect("readable").records.len();
    check_records(&store, &records(0..held)).await;

    limit_pages(&store, u32::MAX / 2).await;
    coordinator.retry();
    let Ended::Done(count) = writing.await.expect("it ends") else { panic!("it panicked") };
    assert!(usize::try_from(count).expect("few") > held);
    check_records(&store, &records(0..usize::try_from(count).expect("few"))).await;
    drop((coordinator, store));
    let found = home.database(Options::default());
    check_records(&found, &records(0..usize::try_from(count).expect("few"))).await;
    assert_eq!(found.open(&turn(0)).await.expect("it opens clean").records(), count);
}

#[tokio::test]
async fn without_its_journal_the_database_opens_clean_at_its_last_checkpoint() {
    let home = Home::new();
    drop(a_log(&home).await);
    let store = store(&home);
    let mut writer = store.open(&turn(0)).await.expect("free");
    writer.append(&records(2..9), Durability::Barrier).await.expect("appended");
    drop(store.create(&turn(1), &records(0..1)).await.expect("created"));
    let other = Home::new();
    fs::copy(home.work_dir().database(), other.work_dir().database()).expect("without journal");
    let found = other.database(Options::default());
    assert_eq!(found.list(LogKind::Turn).await.expect("listed"), [turn(0)]);
    check_records(&found, &records(0..2)).await;
    let mut again = found.open(&turn(0)).await.expect("free");
    again.append(&[record(2)], Durability::Barrier).await.expect("appended");
    check_records(&found, &records(0..3)).await;

    let killed = Home::new();
    for suffix in ["", "-wal"] {
        let name = |home: &Home| format!("{}{suffix}", home.work_dir().database().display());
        fs::copy(name(&home), name(&killed)).expect("with its journal");
    }
    check_records(&killed.database(Options::default()), &records(0..9)).await;
}

#[tokio::test]
async fn a_journal_that_is_cut_anywhere_gives_whole_batches() {
    let home = Home::new();
    drop(a_log(&home).await);
    let store = store(&home);
    let mut writer = store.open(&turn(0)).await.expect("free");
    for from in [2, 5, 8] {
        writer.append(&records(from..from + 3), Durability::Written).await.expect("appended");
    }
    let database = fs::read(home.work_dir().database()).expect("readable");
    let journal = fs::read(store.0.database.wal()).expect("readable");
    let mut seen = Vec::new();
    for cut in (0..=journal.len()).step_by(509).chain([journal.len()]) {
        let killed = Home::new();
        let path = killed.work_dir().database();
        fs::write(&path, &database).expect("copied");
        fs::write(path.with_file_name("turnstile.db-wal"), &journal[..cut]).expect("cut");
        let found = killed.database(Options::default());
        let read = found.inspect(&turn(0)).await.expect("readable");
        let whole = read.records.len();
        assert_eq!(read.records, records(0..whole), "cut at {cut}");
        seen.push(whole);
        let mut again = found.open(&turn(0)).await.expect("free");
        again.append(&[record(whole)], Durability::Barrier).await.expect("appended");
        check_records(&found, &records(0..whole + 1)).await;
    }
    seen.dedup();
    assert_eq!(seen, [2, 5, 8, 11]);
}

/// Reads everything; gives how the one log was found, if it was.
async fn look_at_everything(store: &Store) -> Result<Vec<Record>, StoreError> {
    drop(store.check().await);
    drop(store.list(LogKind::Turn).await);
    drop(store.snapshots(LogKind::Turn).await);
    drop(store.removed().await);
    drop(store.scan(&turn(0)).map(|text| text.records()));
    drop(store.live_text().read(&turn(0)).await);
    store.inspect(&turn(0)).await.map(|read| read.records.clone())
}

#[tokio::test]
async fn a_flipped_bit_anywhere_is_told_or_stays_within_its_record() {
    let home = Home::new();
    let (store, mut writer) = a_log(&home).await;
    writer.append(&records(2..60), Durability::Barrier).await.expect("appended");
    drop((writer, store));
    let path = home.work_dir().database();
    let bytes = fs::read(&path).expect("readable");
    let whole = records(0..60);
    let mut told = 0;
    for at in (0..bytes.len()).step_by(131) {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << (at % 8);
        fs::write(&path, &flipped).expect("flipped");
        let store = home.database(Options { sync: SyncMode::Never, ..Options::default() });
        match look_at_everything(&store).await {
            Ok(found) => {
                let differs = |(found, whole): &(&Record, &Record)| found != whole;
                let different = found.iter().zip(&whole).filter(differs).count();
                assert!(found.len() == 60 && different <= 1, "at {at}: {different} differ");
            }
            Err(
                StoreError::Corrupt { .. }
                | StoreError::Damaged { .. }
                | StoreError::NotFound(_)
                | StoreError::Unsupported { .. },
            ) => told += 1,
            Err(error) => panic!("at {at}: {error}"),
        }
        // What is damaged can be written to or not, but nothing panics.
        if at % 3 == 0 {
            if let Ok(mut writer) = store.open(&turn(0)).await {
                drop(writer.append(&[record(60)], Durability::Written).await);
            }
            drop(store.remove(&turn(0)).await);
        }
        drop(store);
        for suffix in ["-wal", "-shm"] {
            drop(fs::remove_file(format!("{}{suffix}", path.display())));
        }
    }
    assert!(told > 5, "only {told} were told");
}

#[tokio::test]
async fn a_page_of_nothing_is_told_and_nothing_panics() {
    let home = Home::new();
    let (store, mut writer) = a_log(&home).await;
    writer.append(&records(2..200), Durability::Barrier).await.expect("appended");
    drop((writer, store));
    let path = home.work_dir().database();
    let bytes = fs::read(&path).expect("readable");
    for page in 1..bytes.len() / 4096 {
        for filler in [0, 0xff] {
            let mut damaged = bytes.clone();
            damaged[page * 4096..(page + 1) * 4096].fill(filler);
            fs::write(&path, &damaged).expect("damaged");
            match look_at_everything(&home.database(Options::default())).await {
                Ok(found) => assert_eq!(found, records(0..200), "page {page}"),
                Err(StoreError::Corrupt { .. } | StoreError::Damaged { .. }) => {}
                Err(error) => panic!("page {page}: {error}"),
            }
        }
    }
    fs::write(&path, &bytes[..bytes.len() - 3 * 4096]).expect("cut");
    let cut = look_at_everything(&home.database(Options::default())).await;
    assert!(matches!(cut, Err(StoreError::Corrupt { .. } | StoreError::Damaged { .. })), "{cut:?}");
}

/// Changes rows by hand; gives the line that is corrupt then, and why.
async fn corrupted_by(sql: &str) -> Option<(u64, String)> {
    let home = Home::new();
    let (store, mut writer) = a_log(&home).await;
    writer.append(&records(2..6), Durability::Barrier).await.expect("appended");
    drop((writer, store));
    by_hand(&home, sql);
    let store = home.database(Options::default());
    let refused = store.open(&turn(0)).await.map(drop);
    let read = store.inspect(&turn(0)).await;
    assert_eq!(refused.is_ok(), read.is_ok(), "what cannot be read is not written");
    assert_eq!(store.list(LogKind::Turn).await.expect("listed"), [turn(0)]);
    let removed = store.remove(&turn(0)).await.expect("a damaged log can be removed");
    store.destroy(&removed).await.expect("and destroyed");
    match read {
        Err(StoreError::Corrupt { line, why, .. }) => Some((line, why.to_string())),
        Ok(_) => None,
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test]
async fn a_damaged_row_is_named_by_its_line() {
    let missing = Corruption::Missing.to_string();
    for (sql, expected) in [
        ("DELETE FROM records WHERE seq = 3", Some((4, missing.clone()))),
        ("DELETE FROM records WHERE seq = 5", Some((6, missing.clone()))),
        ("DELETE FROM records WHERE seq = 0", Some((1, missing.clone()))),
        ("DELETE FROM records", Some((1, missing.clone()))),
        ("UPDATE records SET seq = 9 WHERE seq = 5", Some((6, missing.clone()))),
        ("UPDATE logs SET records = 5", Some((6, missing))),
        ("UPDATE logs SET first = '{}'", Some((1, Corruption::Header.to_string()))),
        ("UPDATE records SET data = '[1]' WHERE seq = 2", Some((3, "not a JSON object".into()))),
        ("UPDATE records SET type = 'y', ts = 'z'", None),
    ] {
        assert_eq!(corrupted_by(sql).await, expected, "{sql}");
    }
}

#[tokio::test]
async fn a_first_record_that_is_none_is_an_error_in_its_place() {
    let home = Home::new();
    let (store, writer) = a_log(&home).await;
    drop(store.create(&turn(1), &records(0..1)).await.expect("created"));
    drop((writer, store));
    by_hand(&home, &format!("UPDATE logs SET first = '{{' WHERE log_id = '{}'", turn(0).id()));
    let snapshots = store_snapshots(&home).await;
    assert!(matches!(snapshots[..], [Err(StoreError::Corrupt { line: 1, .. }), Ok(_)]));
}

async fn store_snapshots(home: &Home) -> Vec<Result<Snapshot, StoreError>> {
    store(home).snapshots(LogKind::Turn).await.expect("listed")
}

#[tokio::test]
async fn type_and_time_of_a_record_have_columns_of_their_own() {
    let home = Home::new();
    let line = |line: &str| Record::new(line.to_owned()).expect("an object");
    let batch = [
        line(r#"{"type":"turn_\u0061sked","ts":"2025-11-11T04:36:29.000Z"}"#),
        line(r#"{"n":1}"#),
        line(r#"{"type":7}"#),
    ];
    drop(store(&home).create(&turn(0), &batch).await.expect("created"));
    let connection = Connection::open(home.work_dir().database()).expect("a database");
    let mut statement =
        connection.prepare("SELECT type, ts FROM records ORDER BY seq").expect("columns");
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).expect("rows");
    let rows: Vec<(Option<String>, Option<String>)> = rows.map(|row| row.expect("text")).collect();
    let asked = (Some("turn_asked".to_owned()), Some("2025-11-11T04:36:29.000Z".to_owned()));
    assert_eq!(rows, [asked, (None, None), (None, None)]);
}

/// The value of `synchronous` at the last change.
async fn synchronous(store: &Store) -> i64 {
    let ask =
        |connection: &Connection| connection.pragma_query_value(None, "synchronous", |r| r.get(0));
    with_connection(store, ask).await
}

#[tokio::test]
async fn the_sync_mode_says_what_waits_for_the_device() {
    let (normal, full) = (1, 2);
    for (sync, created, written, barrier) in [
        (SyncMode::Never, normal, normal, normal),
        (SyncMode::Barrier, full, normal, full),
        (SyncMode::Always, full, full, full),
    ] {
        let home = Home::new();
        let store = home.database(Options { sync, ..Options::default() });
        let mut writer = store.create(&turn(0), &records(0..1)).await.expect("created");
        assert_eq!(synchronous(&store).await, created, "{sync:?}");
        writer.append(&[record(1)], Durability::Written).await.expect("appended");
        assert_eq!(synchronous(&store).await, written, "{sync:?}");
        // What is owed at a barrier is synced by flush, and only that.
        home.disk.fail(always(Call::Sync, EIO));
        let before = home.disk.calls().len();
        store.flush(Some(&turn(1))).await.expect("nothing is owed of this log");
        assert!(!home.disk.calls()[before..].contains(&Call::Sync));
        store.flush(None).await.expect("at the worst it is written once more");
        let synced = home.disk.calls()[before..].contains(&Call::Sync);
        assert_eq!(synced, sync == SyncMode::Barrier, "{sync:?}");
        home.disk.heal();
        writer.append(&[record(2)], Durability::Barrier).await.expect("appended");
        assert_eq!(synchronous(&store).await, barrier, "{sync:?}");
    }
}

#[tokio::test]
async fn what_a_barrier_covered_is_owed_no_more() {
    let home = Home::new();
    let (store, mut writer) = a_log(&home).await;
    let mut other = store.create(&turn(1), &records(0..1)).await.expect("created");
    other.append(&[record(1)], Durability::Written).await.expect("appended");
    writer.append(&[record(2)], Durability::Barrier).await.expect("appended");
    let before = home.disk.calls().len();
    other.close().await.expect("closed");
    assert!(!home.disk.calls()[before..].contains(&Call::Sync), "one barrier covers all logs");
    writer.append(&[record(3)], Durability::Written).await.expect("appended");
    drop(writer);
    let before = home.disk.calls().len();
    store.flush(None).await.expect("flushed");
    assert!(home.disk.calls()[before..].contains(&Call::Sync), "also of a dropped writer");
}

#[tokio::test]
async fn after_a_failed_sync_everything_is_written_once_more_into_the_database() {
    let home = Home::new();
    let (store, mut writer) = a_log(&home).await;
    writer.append(&[record(2)], Durability::Written).await.expect("appended");
    home.disk.fail(always(Call::Sync, EIO));
    writer.close().await.expect("the database took it");
    let other = Home::new();
    fs::copy(home.work_dir().database(), other.work_dir().database()).expect("without journal");
    check_records(&other.database(Options::default()), &records(0..3)).await;
    let mut writer = store.open(&turn(0)).await.expect("free");
    writer.append(&[record(3)], Durability::Barrier).await.expect("appended");
    check_records(&store, &records(0..4)).await;
}

#[tokio::test]
async fn what_a_reader_keeps_from_being_written_once_more_is_told_until_it_is() {
    let home = Home::new();
    let (store, mut writer) = a_log(&home).await;
    writer.append(&[record(2)], Durability::Written).await.expect("appended");
    let mut reader = Connection::open(home.work_dir().database()).expect("a database");
    let reading = reader.transaction().expect("begun");
    reading.query_row("SELECT count(*) FROM logs", [], |_| Ok(())).expect("read");
    writer.append(&[record(3)], Durability::Written).await.expect("appended");
    home.disk.fail(always(Call::Sync, EIO));
    with_connection(&store, |connection| connection.busy_timeout(Duration::ZERO)).await;
    let refused = store.flush(None).await.expect_err("neither here nor there");
    assert!(matches!(refused.first, StoreError::Poisoned { .. }), "{refused}");
    let refused = writer.append(&[record(4)], Durability::Written).await;
    assert!(matches!(refused, Err(StoreError::Poisoned { .. })), "{refused:?}");
    check_records(&store, &records(0..4)).await;
    drop(reading);
    writer.append(&[record(4)], Durability::Written).await.expect("the reader is gone");
    check_records(&store, &records(0..5)).await;
}

#[tokio::test]
async fn the_journal_does_not_grow_without_end() {
    let home = Home::new();
    let (store, mut writer) = a_log(&home).await;
    let long = Record::new(format!(r#"{{"a":"{}"}}"#, "x".repeat(500_000))).expect("an object");
    for _ in 0..40 {
        writer.append(std::slice::from_ref(&long), Durability::Written).await.expect("appended");
    }
    let size = fs::metadata(store.0.database.wal()).expect("there").len();
    assert!(size < 8 * 1024 * 1024, "{size} bytes");
    assert_eq!(writer.records(), 42);
}

#[tokio::test]
async fn a_database_is_made_whole_or_not_at_all() {
    for from in 0.. {
        let home = Home::new();
        let store = store(&home);
        let before = home.disk.calls().len() as u64;
        home.disk.fail(Plan { only: None, from, times: 1, fault: Fault::Error(EIO) });
        let created = store.create(&turn(0), &records(0..2)).await;
        let calls = home.disk.calls().len() as u64 - before;
        home.disk.heal();
        let again = home.database(Options::default());
        if created.is_err() {
            let found = again.list(LogKind::Turn).await.expect("whole or none");
            assert_eq!(found, [], "call {from}");
            drop(store.create(&turn(0), &records(0..2)).await.expect("the disk works"));
        }
        check_records(&again, &records(0..2)).await;
        if calls <= from {
            break;
        }
    }
}

#[tokio::test]
async fn where_a_rename_may_replace_a_link_or_a_look_keeps_a_database_from_being_replaced() {
    for refused in [&[Call::RenameNew][..], &[Call::RenameNew, Call::Link]] {
        let home = Home::new();
        for call in refused {
            home.disk.fail(always(*call, EOPNOTSUPP));
        }
        drop(a_log(&home).await);
        check_records(&store(&home), &records(0..2)).await;
        let temporary =
            tree(&home).into_keys().filter(|name| name.contains("turnstile.db.")).count();
        assert_eq!(temporary, 0);
    }
}

#[tokio::test]
async fn who_has_lost_the_lock_writes_nothing_more() {
    let home = Home::new();
    let refused = Plan { times: 1, ..always(Call::Lock, EOPNOTSUPP) };
    home.disk.fail(refused);
    let store = locked(&home);
    let mut writer = store.create(&turn(0), &records(0..1)).await.expect("created");
    drop(store.create(&turn(1), &records(0..1)).await.expect("created"));
    let removed = store.remove(&turn(1)).await.expect("removed");
    fs::remove_file(home.work_dir().lock_file()).expect("deleted");
    let outcomes = [
        writer.append(&records(1..2), Durability::Written).await.map(drop),
        store.create(&turn(2), &records(0..1)).await.map(drop),
        store.restore(&removed).await,
        store.destroy(&removed).await,
    ];
    for outcome in outcomes {
        assert!(matches!(outcome, Err(StoreError::LockLost(_))), "{outcome:?}");
    }
    drop(writer);
    assert!(matches!(store.remove(&turn(0)).await, Err(StoreError::LockLost(_))));
    check_records(&store, &records(0..1)).await;
}

#[tokio::test]
async fn destroying_a_turn_destroys_what_stood_beside_it_and_gives_its_room_back() {
    let home = Home::new();
    let store = store(&home);
    let long = Record::new(format!(r#"{{"a":"{}"}}"#, "x".repeat(3_000_000))).expect("an object");
    drop(store.create(&turn(0), &[record(0), long]).await.expect("created"));
    drop(store.create(&log(LogKind::Session, 0), &records(0..1)).await.expect("created"));
    let output = home.work_dir().output_of(&turn(0)).expect("turns have one");
    fs::create_dir_all(output.join("deep")).expect("made");
    fs::write(output.join("deep/out"), "long").expect("written");
    let removed = store.remove(&turn(0)).await.expect("removed");
    assert!(output.exists(), "it can still be restored");
    let aside = home.work_dir().removal(&removed).join("inbox");
    fs::create_dir_all(&aside).expect("set aside by others");
    store.destroy(&removed).await.expect("destroyed");
    assert!(!output.exists() && !home.work_dir().removal(&removed).exists());
    drop(store);
    let size = fs::metadata(home.work_dir().database()).expect("there").len();
    assert!(size < 1_000_000, "{size} bytes");
}

#[tokio::test]
async fn streamed_text_survives_the_store_and_goes_and_comes_back_with_its_turn() {
    let home = Home::new();
    let (store, writer) = a_log(&home).await;
    drop(writer);
    let delta = |at: u64, text: &str| Delta {
        model_call_index: 0,
        kind: DeltaKind::Text,
        block: 0,
        at,
        text: text.to_owned(),
    };
    let live = store.live_text();
    assert_eq!(live.read(&turn(0)).await.expect("readable"), None);
    live.put(&turn(0), &[delta(0, "An\n")]).await.expect("put");
    live.put(&turn(0), &[delta(3, "swer"), delta(7, "!")]).await.expect("put");
    live.put(&turn(1), &[delta(0, "other")]).await.expect("put");
    drop((live, store));
    let store = home.database(Options::default());
    let live = store.live_text();
    let text = async |number: usize| {
        let call = live.read(&turn(number)).await.expect("readable")?;
        Some(call.blocks.iter().map(|block| block.text.clone()).collect::<String>())
    };
    assert_eq!(text(0).await.as_deref(), Some("An\nswer!"));
    let removed = store.remove(&turn(0)).await.expect("removed");
    assert_eq!(text(0).await, None);
    store.restore(&removed).await.expect("restored");
    assert_eq!(text(0).await.as_deref(), Some("An\nswer!"));
    live.drop_text(&turn(0)).await.expect("dropped");
    live.drop_text(&turn(0)).await.expect("dropped again");
    assert_eq!((text(0).await, text(1).await.as_deref()), (None, Some("other")));
}

#[tokio::test]
async fn streamed_text_beyond_any_answer_is_not_kept() {
    let home = Home::new();
    let live = store(&home).live_text();
    let piece =
        |text: String| Delta { model_call_index: 0, kind: DeltaKind::Text, block: 0, at: 0, text };
    live.put(&turn(0), &[piece("x".repeat(15 * 1024 * 1024))]).await.expect("put");
    live.put(&turn(0), &[piece("y".repeat(2 * 1024 * 1024))]).await.expect("put");
    live.put(&turn(0), &[piece("z".to_owned())]).await.expect("put");
    let call = live.read(&turn(0)).await.expect("readable").expect("kept");
    assert_eq!(call.len, 15 * 1024 * 1024 + 1);
}

/// Writes a log while it is read; whatever is seen is a beginning of it.
async fn check_written_and_read(store: &Store, number: usize) {
    let turn = turn(number);
    let mut writer = store.create(&turn, &records(0..1)).await.expect("created");
    for next in 1..30 {
        let batch = [record(next)];
        let durability = if next % 10 == 0 { Durability::Barrier } else { Durability::Written };
        let (appended, seen, listed) = futures_util::join!(
            writer.append(&batch, durability),
            store.inspect(&turn),
            store.snapshots(LogKind::Turn),
        );
        appended.expect("appended");
        let seen = seen.expect("readable");
        assert_eq!(seen.records, records(0..seen.records.len()));
        assert!(listed.expect("listed").iter().all(Result::is_ok));
        let text = store.scan(&turn).expect("readable");
        assert_eq!(text.records(), Ok(records(0..next + 1)));
    }
    writer.close().await.expect("closed");
}

#[tokio::test]
async fn two_processes_write_logs_of_their_own_while_all_are_read() {
    let home = Home::new();
    let (ours, theirs) = (store(&home), store(&home));
    let writing = (0..8).map(|number| {
        check_written_and_read(if number % 2 == 0 { &ours } else { &theirs }, number)
    });
    futures_util::future::join_all(writing).await;
    let logs: Vec<_> = (0..8).map(turn).collect();
    for store in [&ours, &theirs] {
        assert_eq!(store.list(LogKind::Turn).await.expect("listed"), logs);
        for log in &logs {
            assert_eq!(store.inspect(log).await.expect("readable").records, records(0..30));
        }
    }
}
