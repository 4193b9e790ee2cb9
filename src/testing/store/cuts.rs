//! Logs in files, cut and flipped everywhere.

use std::fs;

use crate::store::error::StoreError;
use crate::store::jsonl::{Options, TornTail};
use crate::store::log::{LogKind, Record};
use crate::store::seam::{Durability, LogStore as _};
use crate::testing::disk::Call;
use crate::testing::store::{Home, record, records, turn};

/// A log of four records, and its bytes.
async fn a_log(home: &Home) -> Vec<u8> {
    let store = home.store(Options::default());
    drop(store.create(&turn(0), &records(0..4)).await.expect("created"));
    fs::read(home.file(&turn(0))).expect("there")
}

fn whole_lines(bytes: &[u8]) -> usize {
    bytes.split(|byte| *byte == b'\n').count() - 1
}

#[tokio::test]
async fn cut_at_any_byte_a_log_keeps_its_whole_records_and_the_rest_is_set_aside() {
    let home = Home::new();
    let bytes = a_log(&home).await;
    let path = home.file(&turn(0));
    for cut in 0..=bytes.len() {
        fs::write(&path, &bytes[..cut]).expect("cut");
        let whole = whole_lines(&bytes[..cut]);
        let store = home.store(Options::default());
        let (read, opened) = (store.inspect(&turn(0)).await, store.open(&turn(0)).await);
        if whole == 0 {
            assert!(matches!(read, Err(StoreError::Corrupt { line: 1, .. })), "{cut}: {read:?}");
            assert!(matches!(opened, Err(StoreError::Corrupt { line: 1, .. })), "{cut}");
            continue;
        }
        assert_eq!(read.expect("readable").records, records(0..whole), "cut at {cut}");
        let mut writer = opened.expect("can be opened");
        writer.append(&[record(9)], Durability::Barrier).await.expect("appended");
        let after = [records(0..whole), vec![record(9)]].concat();
        let reopened = home.store(Options::default()).inspect(&turn(0)).await.expect("readable");
        assert_eq!((&reopened.records, reopened.torn), (&after, None), "cut at {cut}");
        let end = bytes[..cut].iter().rposition(|byte| *byte == b'\n').expect("a line") + 1;
        check_set_aside(&path, &bytes[end..cut]);
    }
}

/// Exactly one file beside the log holds exactly `cut`; none if that is empty. Takes it away.
fn check_set_aside(log: &std::path::Path, cut: &[u8]) {
    let mut found = Vec::new();
    for entry in fs::read_dir(log.parent().expect("a folder")).expect("listed") {
        let path = entry.expect("listed").path();
        if path != log {
            found.push(fs::read(&path).expect("readable"));
            fs::remove_file(path).expect("removed");
        }
    }
    let expected: &[&[u8]] = if cut.is_empty() { &[] } else { &[cut] };
    assert_eq!(found, expected);
}

#[tokio::test]
async fn a_flipped_bit_is_told_or_stays_within_its_record() {
    let home = Home::new();
    let bytes = a_log(&home).await;
    let whole = records(0..4);
    for at in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << (at % 8);
        fs::write(home.file(&turn(0)), &flipped).expect("flipped");
        match home.store(Options::default()).inspect(&turn(0)).await {
            Err(StoreError::Corrupt { .. }) => {}
            Ok(read) if read.torn.is_some() => assert_eq!(read.records, whole[..3], "at {at}"),
            Ok(read) => {
                let differs = |(read, whole): &(&Record, &Record)| read != whole;
                let different = read.records.iter().zip(&whole).filter(differs).count();
                assert_eq!((read.records.len(), different), (4, 1), "at {at}");
            }
            Err(error) => panic!("at {at}: {error}"),
        }
    }
}

#[tokio::test]
async fn the_strict_reading_refuses_a_torn_end_and_leaves_it() {
    let home = Home::new();
    let mut bytes = a_log(&home).await;
    let whole = bytes.len() as u64;
    bytes.extend_from_slice(b"{\"n\":");
    fs::write(home.file(&turn(0)), &bytes).expect("torn");
    let store = home.store(Options { torn_tail: TornTail::Reject, ..Options::default() });
    for outcome in [store.inspect(&turn(0)).await.map(drop), store.open(&turn(0)).await.map(drop)] {
        let torn =
            matches!(outcome, Err(StoreError::Torn { offset, bytes: 5, .. }) if offset == whole);
        assert!(torn, "{outcome:?}");
    }
    assert_eq!(fs::read(home.file(&turn(0))).expect("there"), bytes);
}

#[tokio::test]
async fn a_list_looks_at_no_log_and_snapshots_read_only_the_beginning() {
    let home = Home::new();
    let store = home.store(Options::default());
    let big = format!("{{\"text\":\"{}\"}}", "x".repeat(1_000_000));
    let big = Record::new(big).expect("an object");
    for number in 0..20 {
        drop(store.create(&turn(number), &[record(0), big.clone()]).await.expect("created"));
    }
    let before = home.disk.calls().len();
    assert_eq!(store.list(LogKind::Turn).await.expect("listed").len(), 20);
    let calls = home.disk.calls().split_off(before);
    assert!(calls.iter().all(|call| *call == Call::Entries), "{calls:?}");
    let before = home.disk.bytes_read();
    assert_eq!(store.snapshots(LogKind::Turn).await.expect("listed").len(), 20);
    let read = home.disk.bytes_read() - before;
    assert!(read < 20 * 20_000, "{read} bytes of 20 logs");
}

#[tokio::test]
async fn a_header_of_any_length_is_found() {
    let home = Home::new();
    let store = home.store(Options::default());
    let header = format!("{{\"text\":\"{}\"}}", "x".repeat(300_000));
    let header = Record::new(header).expect("an object");
    drop(store.create(&turn(0), &[header.clone(), record(1)]).await.expect("created"));
    let snapshots = store.snapshots(LogKind::Turn).await.expect("listed");
    assert_eq!(snapshots[0].as_ref().expect("readable").first, header);
}

#[tokio::test]
async fn reads_of_an_unchanged_log_are_one_read() {
    let home = Home::new();
    let store = home.store(Options::default());
    drop(store.create(&turn(0), &records(0..4)).await.expect("created"));
    let reads = || home.disk.calls().iter().filter(|call| **call == Call::Read).count();
    let before = reads();
    let turn = turn(0);
    let all = futures_util::future::join_all((0..20).map(|_| store.inspect(&turn))).await;
    assert!(all.into_iter().all(|read| read.expect("read").records == records(0..4)));
    drop(store.open(&turn).await.expect("free"));
    store.inspect(&turn).await.expect("read");
    assert_eq!(reads() - before, 1);
}

#[tokio::test]
async fn what_has_no_log_s_name_or_lies_elsewhere_is_not_listed() {
    let home = Home::new();
    a_log(&home).await;
    let path = home.file(&turn(0));
    let folder = path.parent().expect("a folder");
    let id = turn(0).id().to_owned();
    for name in [
        format!("{id}.live"),
        format!("{id}.jsonl.torn-0123456789abcdef"),
        format!(".{id}.jsonl.0000000000000000.tmp"),
        format!("{id}.jsonl.zst"),
        "notes.jsonl".to_owned(),
        // Another day's log.
        format!("{}.jsonl", turn(1).id()),
    ] {
        fs::write(folder.join(name), "").expect("written");
    }
    fs::write(folder.parent().expect("a month").join("stray"), "").expect("written");
    let store = home.store(Options::default());
    assert_eq!(store.list(LogKind::Turn).await.expect("listed"), [turn(0)]);
}

#[tokio::test]
async fn what_stands_beside_a_log_goes_and_comes_back_with_it() {
    use std::os::unix::fs::MetadataExt as _;
    let home = Home::new();
    a_log(&home).await;
    let path = home.file(&turn(0));
    let live = path.with_extension("live");
    fs::write(&live, "streaming").expect("written");
    fs::write(path.with_extension("jsonl.torn-00"), "cut").expect("written");
    fs::write(path.with_extension("other"), "not ours").expect("written");
    let tree = |home: &Home| {
        let folder = home.file(&turn(0)).parent().expect("a folder").to_path_buf();
        let mut files: Vec<_> = fs::read_dir(folder)
            .expect("listed")
            .map(|entry| {
                let path = entry.expect("listed").path();
                let metadata = fs::metadata(&path).expect("there");
                let time = (metadata.mtime(), metadata.mtime_nsec());
                (path.clone(), fs::read(path).expect("readable"), time, metadata.mode())
            })
            .collect();
        files.sort();
        files
    };
    let before = tree(&home);
    let store = home.store(Options::default());
    let removed = store.remove(&turn(0)).await.expect("removed");
    assert_eq!(tree(&home).len(), 1, "only what is not ours stays");
    store.restore(&removed).await.expect("restored");
    assert_eq!(tree(&home), before);
    assert_eq!(fs::read_dir(home.work_dir().deleted()).expect("there").count(), 0);
}
