//! Looking at a database writes nothing, and needs no right to write: whatever state it is in.

use super::*;
use crate::testing::folder;
use crate::testing::rights::within_permissions;
use std::os::unix::fs::MetadataExt as _;

/// Everything in the work directory, with its bytes and times.
fn found(home: &Home) -> Vec<(String, Vec<u8>, i64, i64)> {
    let mut found: Vec<_> = folder::tree(home.work_dir().root())
        .into_iter()
        .map(|(path, bytes)| {
            let metadata = fs::metadata(&path).expect("there");
            let time = (metadata.mtime(), metadata.mtime_nsec());
            (path.display().to_string(), bytes.unwrap_or_default(), time.0, time.1)
        })
        .collect();
    found.sort();
    found
}

/// Everything but what the connections of one process share, of which SQLite makes one here.
fn unshared(home: &Home) -> Vec<impl PartialEq + fmt::Debug> {
    let mut found = found(home);
    found.retain(|(path, ..)| !path.ends_with("-shm"));
    found
}

/// A home as a process leaves it that is killed after it has written so many records, with these files
/// beside the database.
async fn killed(count: usize, beside: &[&str]) -> Home {
    let home = Home::new();
    drop(a_log(&home).await);
    let store = store(&home);
    let mut writer = store.open(&turn(0)).await.expect("free");
    writer.append(&records(2..count), Durability::Barrier).await.expect("appended");
    let killed = Home::new();
    for suffix in [""].iter().chain(beside) {
        let name = |home: &Home| format!("{}{suffix}", home.work_dir().database().display());
        fs::copy(name(&home), name(&killed)).expect("copied");
    }
    killed
}

/// The states in which a database can be found, each with its records.
async fn states() -> Vec<(Home, usize)> {
    let closed = Home::new();
    drop(a_log(&closed).await);
    let emptied = killed(9, &[]).await;
    fs::write(emptied.work_dir().database().with_file_name("turnstile.db-wal"), "").expect("made");
    vec![
        (closed, 2),
        (emptied, 2),
        (killed(9, &["-wal", "-shm"]).await, 9),
        (killed(9, &["-wal"]).await, 9),
    ]
}

#[tokio::test]
async fn looking_leaves_no_trace_in_whatever_state_the_database_is() {
    for (home, count) in states().await {
        let before = found(&home);
        for _ in 0..2 {
            let store = store(&home);
            let read = look_at_everything(&store).await.expect("readable");
            assert_eq!(read, records(0..count));
            drop(store);
        }
        assert_eq!(found(&home), before);
        // And whoever writes goes on from there.
        let store = store(&home);
        check_records(&store, &records(0..count)).await;
        let mut writer = store.open(&turn(0)).await.expect("free");
        writer.append(&[record(count)], Durability::Barrier).await.expect("appended");
        check_records(&store, &records(0..count + 1)).await;
    }
}

#[tokio::test]
async fn the_holder_of_the_lock_goes_on_with_whatever_was_left() {
    for (home, count) in states().await {
        let store = locked(&home);
        check_records(&store, &records(0..count)).await;
        let mut writer = store.open(&turn(0)).await.expect("free");
        writer.append(&[record(count)], Durability::Barrier).await.expect("appended");
        check_records(&store, &records(0..count + 1)).await;
        drop((writer, store));
        check_records(&home.database(Options::default()), &records(0..count + 1)).await;
    }
}

/// Runs on threads of its own, like a process.
fn process<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(work)
}

#[test]
fn where_nothing_can_be_written_everything_can_be_looked_at() {
    for (home, count) in process(states()) {
        let (storage, database) = (home.work_dir().storage(), home.work_dir().database());
        let allow = |folder: u32, file: u32| {
            for entry in fs::read_dir(&storage).expect("listed") {
                let path = entry.expect("listed").path();
                let mode = if path.is_dir() { folder } else { file };
                fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("changed");
            }
            fs::set_permissions(&storage, fs::Permissions::from_mode(folder)).expect("changed");
        };
        allow(0o500, 0o400);
        let before = found(&home);
        within_permissions(|| {
            fs::write(storage.join("proof"), "").expect_err("nothing can be written");
            fs::OpenOptions::new().append(true).open(&database).expect_err("nor changed");
            process(async {
                let store = store(&home);
                let read = look_at_everything(&store).await.expect("readable");
                assert_eq!(read, records(0..count));
                let mut writer = store.open(&turn(0)).await.expect("opening writes nothing");
                let refused = writer.append(&[record(9)], Durability::Written).await;
                assert!(matches!(refused, Err(StoreError::Io(_))), "{refused:?}");
                check_records(&store, &records(0..count)).await;
            });
        });
        allow(0o700, 0o600);
        assert_eq!(found(&home), before);
    }
}

#[tokio::test]
async fn beside_a_process_that_writes_everything_is_seen_and_nothing_is_changed() {
    let home = Home::new();
    let onlooker = store(&home);
    assert_eq!(onlooker.list(LogKind::Turn).await.expect("listed"), []);
    let (ours, mut writer) = a_log(&home).await;
    for number in 2..20 {
        check_records(&onlooker, &records(0..number)).await;
        writer.append(&[record(number)], Durability::Written).await.expect("appended");
        let before = unshared(&home);
        check_records(&onlooker, &records(0..number + 1)).await;
        assert_eq!(onlooker.list(LogKind::Turn).await.expect("listed"), [turn(0)]);
        assert_eq!(unshared(&home), before);
    }
    drop((writer, ours));
    check_records(&onlooker, &records(0..20)).await;
    let (ours, before) = (store(&home), unshared(&home));
    check_records(&onlooker, &records(0..20)).await;
    assert_eq!(unshared(&home), before);
    let mut writer = ours.open(&turn(0)).await.expect("free");
    drop(onlooker);
    writer.append(&[record(20)], Durability::Barrier).await.expect("appended");
    drop((writer, ours));
    let files: Vec<_> = tree(&home).into_keys().filter(|name| name.contains("storage")).collect();
    assert_eq!(files, [home.work_dir().database().display().to_string()]);
}

#[tokio::test]
async fn what_was_seen_of_the_file_alone_is_seen_anew_once_somebody_has_changed_it() {
    let home = Home::new();
    drop(a_log(&home).await);
    let onlooker = store(&home);
    for number in 2..8 {
        check_records(&onlooker, &records(0..number)).await;
        let ours = store(&home);
        let mut writer = ours.open(&turn(0)).await.expect("free");
        writer.append(&[record(number)], Durability::Barrier).await.expect("appended");
        drop((writer, ours));
    }
    let mut writer = onlooker.open(&turn(0)).await.expect("free");
    writer.append(&[record(8)], Durability::Barrier).await.expect("one may write after looking");
    check_records(&onlooker, &records(0..9)).await;
}

#[tokio::test]
async fn a_look_that_somebody_s_beginning_and_end_falls_into_is_taken_again() {
    let home = Home::new();
    drop(a_log(&home).await);
    let onlooker = store(&home);
    let looks = std::cell::Cell::new(0);
    let counted = onlooker.0.database.read(|read| {
        looks.set(looks.get() + 1);
        if looks.get() == 1 {
            by_hand(&home, "INSERT INTO live_text VALUES ('a', 0, 1, 'x')");
        }
        Ok(read.query_row("SELECT count(*) FROM live_text", [], |row| row.get::<_, i64>(0))?)
    });
    assert_eq!((counted.expect("readable"), looks.get()), (Some(1), 2));
    let looked = onlooker.0.database.read(|_| {
        looks.set(looks.get() + 1);
        by_hand(&home, &format!("INSERT INTO live_text VALUES ('b', {}, 1, 'x')", looks.get()));
        Ok(())
    });
    assert!(matches!(looked, Err(StoreError::Io(_))), "{looked:?}");
}
