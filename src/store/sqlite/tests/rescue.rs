//! What is saved of a database that is damaged as a whole.

use super::*;
use crate::testing::disk::ENOSPC;

/// A page, as SQLite makes them.
const PAGE: usize = 4096;
const LOGS: usize = 12;

/// A database of some logs, one of them removed, of which nobody has anything open.
async fn some_logs(home: &Home) {
    let store = store(home);
    for number in 0..LOGS {
        let mut writer =
            store.create(&turn(number), &records(0..30 + number)).await.expect("created");
        writer.append(&records(30 + number..60), Durability::Written).await.expect("appended");
    }
    store.remove(&turn(0)).await.expect("removed");
}

/// Saves what can be read of a database, and opens the new one.
async fn rescued(home: &Home) -> Result<(Rescued, Home, Store), StoreError> {
    let new = Home::new();
    let to = new.work_dir().database();
    let rescued = store(home).rescue(to.clone()).await;
    let files: Vec<_> = tree(&new).into_keys().filter(|name| name.contains("storage")).collect();
    let expected = rescued.is_ok().then(|| to.display().to_string());
    assert_eq!(files, expected.into_iter().collect::<Vec<_>>(), "nothing is left beside it");
    let rescued = rescued?;
    let opened = store(&new);
    Ok((rescued, new, opened))
}

/// Checks that all is there.
async fn check_whole(rescued: Rescued, store: &Store) {
    let turns = LOGS as u64 - 1;
    let records_of_all = 60 * LOGS as u64;
    let expected =
        Rescued { sessions: 0, turns, removed: 1, records: records_of_all, incomplete: 0 };
    assert_eq!(rescued, expected);
    for number in 1..LOGS {
        let found = store.inspect(&turn(number)).await.expect("readable");
        assert_eq!(found.records, records(0..60), "the {number}th");
    }
    let removed = store.removed().await.expect("listed");
    let [removed] = removed.as_slice() else { panic!("{removed:?}") };
    store.restore(removed).await.expect("restored");
    assert_eq!(store.inspect(&turn(0)).await.expect("readable").records, records(0..60));
    assert!(LogStore::check(store).await.expect("looked at").is_empty());
    let mut writer = store.open(&turn(5)).await.expect("free");
    writer.append(&records(60..61), Durability::Barrier).await.expect("it can be used");
}

/// Writes over a part of the database.
fn damage(home: &Home, at: usize, bytes: &[u8]) {
    let path = home.work_dir().database();
    let mut database = fs::read(&path).expect("a database");
    database[at..at + bytes.len()].copy_from_slice(bytes);
    fs::write(&path, database).expect("damaged");
}

#[tokio::test]
async fn of_a_sound_database_all_is_saved() {
    let home = Home::new();
    some_logs(&home).await;
    let before = tree(&home);
    let (saved, _new, store) = rescued(&home).await.expect("it can be read");
    check_whole(saved, &store).await;
    assert!(tree(&home) == before, "something was changed");
}

#[tokio::test]
async fn without_its_first_page_all_is_saved() {
    // All of it, its header, its list of tables, and what that begins with.
    for (at, bytes) in [(0, PAGE), (0, 100), (100, PAGE - 100), (100, 8), (16, 2), (28, 4)] {
        let home = Home::new();
        some_logs(&home).await;
        damage(&home, at, &vec![0x5a; bytes]);
        let before = tree(&home);
        let (saved, _new, store) = rescued(&home).await.expect("it can be read");
        check_whole(saved, &store).await;
        assert!(tree(&home) == before, "{at} {bytes}: something was changed");
    }
}

#[tokio::test]
async fn what_is_in_the_journal_only_is_saved_too() {
    let home = Home::new();
    let store = store(&home);
    drop(store.create(&turn(0), &records(0..60)).await.expect("created"));
    let other = Home::new();
    for (path, bytes) in tree(&home) {
        let name = Path::new(&path).file_name().expect("a file");
        if ["turnstile.db", "turnstile.db-wal"].iter().any(|file| name == *file) {
            fs::write(other.work_dir().storage().join(name), bytes).expect("copied");
        }
    }
    damage(&other, 0, &[0; PAGE]);
    let (saved, _new, store) = rescued(&other).await.expect("it can be read");
    assert_eq!((saved.turns, saved.records), (1, 60));
    check_records(&store, &records(0..60)).await;
}

#[tokio::test]
async fn whatever_page_is_damaged_the_others_are_saved_and_no_record_is_another() {
    let size = {
        let home = Home::new();
        some_logs(&home).await;
        fs::metadata(home.work_dir().database()).expect("there").len()
    };
    let pages = usize::try_from(size).expect("small") / PAGE;
    let (mut least, mut sum) = (u64::MAX, 0);
    let whole = 60 * LOGS as u64;
    for page in 0..pages {
        let home = Home::new();
        some_logs(&home).await;
        damage(&home, page * PAGE, &[0x5a; PAGE]);
        let rescued = rescued(&home).await;
        let (saved, _new, store) = rescued.unwrap_or_else(|error| panic!("page {page}: {error}"));
        least = least.min(saved.records);
        sum += saved.records;
        let known = records(0..60);
        let mut there = 0;
        for log in store.list(LogKind::Turn).await.expect("listed") {
            let kept = Kept::There(log);
            for remnant in store.remnants(&kept).expect("readable") {
                let Remnant::Line(line) = remnant else { continue };
                assert!(known.iter().any(|record| record.as_bytes() == line), "page {page}");
                there += 1;
            }
        }
        assert!(there <= saved.records, "page {page}: {there} of {saved:?}");
        if saved.records < whole {
            assert!(saved.incomplete > 0 || saved.removed == 0, "page {page}: {saved:?}");
        }
        // What a page holds, and no more: but for that of the removal, which has sixty.
        assert!(saved.records + 60 >= whole, "page {page}: {saved:?}");
        let wrong = LogStore::check(&store).await.expect("looked at");
        assert!(wrong.is_empty(), "page {page}: {wrong:?}");
    }
    assert!(least < whole, "nothing was ever lost");
    assert!(sum * 100 > whole * pages as u64 * 97, "{sum} of {whole} in each of {pages}");
}

#[tokio::test]
async fn a_bit_that_is_another_in_the_first_page_costs_nothing() {
    let home = Home::new();
    some_logs(&home).await;
    let path = home.work_dir().database();
    let whole = fs::read(&path).expect("a database");
    let used = whole[..PAGE].iter().rposition(|byte| *byte != 0).expect("more than nothing");
    for at in (0..=used).step_by(13) {
        let mut damaged = whole.clone();
        damaged[at] ^= 1 << (at % 8);
        fs::write(&path, damaged).expect("damaged");
        let (saved, _new, _store) = rescued(&home).await.expect("it can be read");
        assert_eq!(saved.records, 60 * LOGS as u64, "byte {at}");
    }
}

/// Numbers and texts as damage makes them: none of them keeps the others from being saved.
#[tokio::test]
async fn rows_that_say_what_cannot_be_are_passed_over() {
    for sql in [
        "UPDATE records SET rowid = 0x7fffffffffffffff WHERE rowid = (SELECT max(rowid) FROM records)",
        "UPDATE records SET seq = 0x7ffffffffffffff0 WHERE rowid = 7",
        "UPDATE records SET seq = -1 WHERE rowid = 7",
        "UPDATE logs SET records = 0x7ffffffffffffff0 WHERE rowid = 2",
        "UPDATE logs SET first = '{}' WHERE rowid = 2",
        "DELETE FROM removed",
        "UPDATE removed SET key = '../../storage'",
        "UPDATE removed_records SET removal = 99 WHERE seq = 3",
        "PRAGMA ignore_check_constraints = 1; UPDATE logs SET log_kind = 'other' WHERE rowid = 2",
    ] {
        let home = Home::new();
        some_logs(&home).await;
        by_hand(&home, sql);
        let (saved, _new, store) = rescued(&home).await.expect("it can be read");
        assert!(saved.records + 60 >= 60 * LOGS as u64, "{sql}: {saved:?}");
        let wrong = LogStore::check(&store).await.expect("looked at");
        assert!(wrong.is_empty(), "{sql}: {wrong:?}");
        let removed = store.removed().await.expect("listed");
        assert!(removed.iter().all(|it| !it.key().contains('/')), "{sql}: {removed:?}");
    }
}

#[tokio::test]
async fn a_table_without_its_root_is_read_page_by_page() {
    let home = Home::new();
    some_logs(&home).await;
    let roots = {
        let connection = Connection::open(home.work_dir().database()).expect("a database");
        let mut roots = connection
            .prepare(
                "SELECT name, rootpage FROM sqlite_schema WHERE type = 'table' AND name <> 'store'",
            )
            .expect("tables");
        let roots = roots.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).expect("tables");
        roots.collect::<Result<Vec<(String, u32)>, _>>().expect("tables")
    };
    for (table, root) in roots {
        let home = Home::new();
        some_logs(&home).await;
        damage(&home, (root as usize - 1) * PAGE, &[0; PAGE]);
        let (saved, _new, _store) = rescued(&home).await.expect("it can be read");
        // The one removal is on the root itself.
        let lost = if table == "removed" { 60 } else { 0 };
        assert_eq!(saved.records + lost, 60 * LOGS as u64, "{table}: {saved:?}");
    }
}

#[tokio::test]
async fn what_never_was_a_database_gives_nothing() {
    for bytes in [Vec::new(), b"a letter\n".to_vec(), vec![0; 3 * PAGE], vec![0x5a; 20 * PAGE]] {
        let home = Home::new();
        fs::write(home.work_dir().database(), &bytes).expect("written");
        let refused = rescued(&home).await.expect_err("there is no record");
        assert!(refused.to_string().contains("nothing of it can be read"), "{refused}");
    }
}

#[tokio::test]
async fn nothing_is_written_over_and_of_a_failure_nothing_is_left() {
    let home = Home::new();
    some_logs(&home).await;
    let to = home.work_dir().storage().join("other.db");
    fs::write(&to, "somebody's").expect("written");
    let refused = store(&home).rescue(to.clone()).await.expect_err("it is there");
    assert!(refused.to_string().contains("other.db"), "{refused}");
    assert_eq!(fs::read(&to).expect("kept"), b"somebody's");
    fs::remove_file(&to).expect("there");
    let before = tree(&home);
    for from in 0.. {
        home.disk.fail(Plan { only: None, from, times: u64::MAX, fault: Fault::Error(ENOSPC) });
        let refused = store(&home).rescue(to.clone()).await;
        home.disk.heal();
        // Of a disk that is dead nothing can be deleted either.
        for path in tree(&home).into_keys().filter(|path| path.contains("/.turnstile.db.")) {
            fs::remove_file(path).expect("deleted");
        }
        if refused.is_ok() {
            assert!(from > 10, "{from} calls");
            break;
        }
        assert!(tree(&home) == before || to.exists(), "call {from}: {refused:?}");
        fs::remove_file(&to).ok();
    }
}

#[tokio::test]
async fn beside_the_journal_of_another_database_none_is_made() {
    let home = Home::new();
    some_logs(&home).await;
    let other = Home::new();
    let to = other.work_dir().database();
    let journal = to.with_file_name("turnstile.db-wal");
    fs::write(&journal, "somebody's").expect("written");
    let refused = store(&home).rescue(to.clone()).await.expect_err("it would be played in");
    assert!(refused.to_string().contains("turnstile.db-wal"), "{refused}");
    assert!(!to.exists());
    // Nor does a store begin there, which holds what was acknowledged last.
    let store = store(&other);
    let batch = records(0..1);
    for refused in [
        store.create(&turn(0), &batch).await.map(drop),
        store.list(LogKind::Turn).await.map(drop),
        store.inspect(&turn(0)).await.map(drop),
    ] {
        let refused = refused.expect_err("its database is gone").to_string();
        assert!(refused.contains("put the database back"), "{refused}");
    }
    assert_eq!(fs::read(&journal).expect("kept"), b"somebody's");
    fs::rename(&journal, journal.with_file_name("aside")).expect("moved away");
    store.create(&turn(0), &batch).await.expect("begun anew");
}
