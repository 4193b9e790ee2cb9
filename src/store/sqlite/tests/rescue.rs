//! What is saved of a database that is damaged as a whole.

use super::*;

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
        if saved.records < 60 * LOGS as u64 {
            assert!(saved.incomplete > 0 || saved.removed == 0, "page {page}: {saved:?}");
        }
    }
    // One page is the root of all records, and those of the removed log.
    assert!(least < 60 * LOGS as u64, "nothing was ever lost");
    let whole = 60 * LOGS as u64 * pages as u64;
    assert!(sum * 10 > whole * 8, "{sum} of {whole} records were saved");
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
    for call in [Call::Read, Call::Write, Call::Sync] {
        home.disk.fail(always(call, EIO));
        store(&home).rescue(to.clone()).await.expect_err("the device fails");
        home.disk.heal();
        assert!(tree(&home) == before, "{call:?}");
    }
}
