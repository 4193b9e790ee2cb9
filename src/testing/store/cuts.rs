//! Logs in files, cut and flipped everywhere.

use std::fmt::Debug;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::store::error::{Corruption, StoreError};
use crate::store::jsonl::{Encoding, Options, Store, TornTail};
use crate::store::log::{LogKind, Record, Torn};
use crate::store::seam::{Durability, LogStore as _};
use crate::testing::disk::Call;
use crate::testing::store::{ENCODINGS, Home, encoded, in_encoding, record, records, torn, turn};

/// A log of four records in three batches: its bytes, and where each batch ends with how many records.
struct Log {
    encoding: Encoding,
    home: Home,
    bytes: Vec<u8>,
    ends: Vec<(usize, usize)>,
}

impl Log {
    async fn new(encoding: Encoding) -> Self {
        let home = Home::new();
        let store = home.store(in_encoding(encoding));
        let size = || fs::read(home.file_in(encoding, &turn(0))).expect("there").len();
        let mut writer = store.create(&turn(0), &records(0..1)).await.expect("created");
        let mut ends = vec![(size(), 1)];
        for (from, to) in [(1, 2), (2, 4)] {
            writer.append(&records(from..to), Durability::Barrier).await.expect("appended");
            ends.push((size(), to));
        }
        let bytes = fs::read(home.file_in(encoding, &turn(0))).expect("there");
        Self { encoding, home, bytes, ends }
    }

    fn path(&self) -> PathBuf {
        self.home.file_in(self.encoding, &turn(0))
    }

    /// The store of a process that starts now and finds these bytes.
    fn store_of(&self, bytes: &[u8]) -> Store {
        fs::write(self.path(), bytes).expect("written");
        self.home.store(in_encoding(self.encoding))
    }

    /// How many whole records these first bytes hold, and where they end.
    fn whole(&self, bytes: &[u8]) -> (usize, usize) {
        match self.encoding {
            Encoding::Lines => {
                let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
                ends.fold((0, 0), |(lines, _), (end, _)| (lines + 1, end + 1))
            }
            Encoding::Frames => {
                let whole = self.ends.iter().rfind(|(end, _)| *end <= bytes.len());
                whole.map_or((0, 0), |(end, records)| (*records, *end))
            }
        }
    }
}

#[tokio::test]
async fn cut_at_any_byte_a_log_keeps_its_whole_records_and_the_rest_is_set_aside() {
    for encoding in ENCODINGS {
        let log = Log::new(encoding).await;
        for cut in 0..=log.bytes.len() {
            check_cut(&log, cut).await;
        }
    }
}

async fn check_cut(log: &Log, cut: usize) {
    let bytes = &log.bytes[..cut];
    let store = log.store_of(bytes);
    let (whole, end) = log.whole(bytes);
    let (read, opened) = (store.inspect(&turn(0)).await, store.open(&turn(0)).await);
    if whole == 0 {
        assert!(matches!(read, Err(StoreError::Corrupt { line: 1, .. })), "{cut}: {read:?}");
        assert!(matches!(opened, Err(StoreError::Corrupt { line: 1, .. })), "{cut}");
        return;
    }
    assert_eq!(read.expect("readable").records, records(0..whole), "cut at {cut}");
    let mut writer = opened.expect("can be opened");
    let kept = usize::try_from(writer.records()).expect("few");
    assert!((whole..=4).contains(&kept), "cut at {cut}");
    writer.append(&[record(9)], Durability::Barrier).await.expect("appended");
    let after = [records(0..kept), vec![record(9)]].concat();
    let reopened = log.home.store(in_encoding(log.encoding)).inspect(&turn(0)).await;
    let reopened = reopened.expect("readable");
    assert_eq!((&reopened.records, reopened.torn), (&after, None), "cut at {cut}");
    check_set_aside(&log.path(), &bytes[end..]);
}

/// Exactly one file beside the log holds exactly `cut`; none if that is empty. Takes it away.
fn check_set_aside(log: &Path, cut: &[u8]) {
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
async fn a_flipped_bit_of_a_line_is_told_or_stays_within_its_record() {
    let log = Log::new(Encoding::Lines).await;
    let whole = records(0..4);
    for at in 0..log.bytes.len() {
        let mut flipped = log.bytes.clone();
        flipped[at] ^= 1 << (at % 8);
        match log.store_of(&flipped).inspect(&turn(0)).await {
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
async fn a_flipped_bit_of_a_frame_is_told_or_tears_the_last_batch_and_never_changes_a_record() {
    let log = Log::new(Encoding::Frames).await;
    for bit in 0..log.bytes.len() * 8 {
        let mut flipped = log.bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let store = log.store_of(&flipped);
        match store.inspect(&turn(0)).await {
            Err(StoreError::Corrupt { why, .. }) => {
                assert!(matches!(*why, Corruption::Frame { .. }), "bit {bit}: {why}");
                continue;
            }
            Ok(read) if read.torn.is_some() => {
                assert_eq!(read.records, records(0..2), "bit {bit}");
            }
            Ok(read) => assert_eq!(read.records, records(0..4), "bit {bit}"),
            Err(error) => panic!("bit {bit}: {error}"),
        }
        drop(store.open(&turn(0)).await.expect("free"));
        let repaired = store.inspect(&turn(0)).await.expect("readable").records.clone();
        let is_right = repaired.len() >= 2 && records(0..4).starts_with(&repaired);
        assert!(is_right, "bit {bit}: {repaired:?}");
    }
}

#[tokio::test]
async fn zeros_and_half_a_batch_behind_a_log_are_torn() {
    for encoding in ENCODINGS {
        let log = Log::new(encoding).await;
        let lines = [record(4).as_bytes(), b"\n", record(5).as_bytes()].concat();
        let half = torn(encoding, &lines[..lines.len() / 2]);
        let alone = [1, 2, 3, 4, 512].map(|zeros| vec![0; zeros]);
        // A few zeros might be the end of the batch itself.
        let behind = [0, 4, 5, 512, 4096].map(|zeros| vec![0; zeros]);
        let heads = [&half[..half.len() / 2], &half[..]];
        let halves =
            heads.into_iter().flat_map(|head| behind.each_ref().map(|it| [head, it].concat()));
        for tail in alone.into_iter().chain(halves) {
            let store = log.store_of(&[&log.bytes[..], &tail].concat());
            let read = store.inspect(&turn(0)).await.expect("readable");
            let expected = Torn { offset: log.bytes.len() as u64, bytes: tail.len() as u64 };
            assert_eq!((&read.records, read.torn), (&records(0..4), Some(expected)));
            let mut writer = store.open(&turn(0)).await.expect("free");
            assert_eq!(writer.records(), 4);
            writer.append(&[record(4)], Durability::Barrier).await.expect("appended");
            let read = store.inspect(&turn(0)).await.expect("readable");
            assert_eq!(read.records, records(0..5));
            check_set_aside(&log.path(), &tail);
        }
    }
}

#[tokio::test]
async fn noise_behind_a_log_is_torn_or_told_and_never_a_record() {
    for encoding in ENCODINGS {
        let log = Log::new(encoding).await;
        let mut bits = 1_u64;
        for round in 0..300 {
            let tail: Vec<u8> = (0..=round % 40)
                .map(|_| {
                    bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    (bits >> 56) as u8
                })
                .collect();
            let store = log.store_of(&[&log.bytes[..], &tail].concat());
            match store.inspect(&turn(0)).await {
                Ok(read) => {
                    let torn = read.torn.map(|torn| torn.bytes);
                    assert_eq!((&read.records, torn), (&records(0..4), Some(tail.len() as u64)));
                }
                Err(StoreError::Corrupt { line: 5, .. }) => {}
                Err(error) => panic!("{tail:?}: {error}"),
            }
        }
    }
}

#[tokio::test]
async fn whole_lines_of_a_cut_frame_count_again_once_it_is_set_aside() {
    let log = Log::new(Encoding::Frames).await;
    let more = records(4..6_000);
    let lines: Vec<_> = more.iter().flat_map(|it| [it.as_bytes(), b"\n"].concat()).collect();
    let mut tail = encoded(Encoding::Frames, &lines);
    tail.truncate(tail.len() - 1);
    let store = log.store_of(&[&log.bytes[..], &tail].concat());
    assert_eq!(store.inspect(&turn(0)).await.expect("readable").records, records(0..4));
    let mut told = store.follow_set_aside();
    drop(store.open(&turn(0)).await.expect("free"));
    let read = store.inspect(&turn(0)).await.expect("readable");
    assert_eq!((&read.records, read.torn), (&records(0..6_000), None), "all but the checksum");
    let told = told.try_recv().expect("told");
    assert_eq!((told.bytes, told.recovered), (tail.len() as u64, 5_996));
    check_set_aside(&log.path(), &tail);
}

#[tokio::test]
async fn a_frame_that_is_damaged_is_named_by_its_line_and_byte_and_its_file() {
    let log = Log::new(Encoding::Frames).await;
    let mut damaged = log.bytes.clone();
    // The checksum of the second frame.
    damaged[log.ends[1].0 - 1] ^= 1;
    let store = log.store_of(&damaged);
    let expected = format!(
        "turn {} ({}) is corrupt at line 2: the frame at byte {}: its content is damaged: \
         Restored data doesn't match checksum; `turnstile storage salvage` saves what is \
         left of it",
        turn(0).id(),
        log.path().display(),
        log.ends[0].0
    );
    for refused in [
        store.inspect(&turn(0)).await.map(drop),
        store.scan(&turn(0)).map(drop),
        store.open(&turn(0)).await.map(drop),
    ] {
        assert_eq!(refused.expect_err("damaged").to_string(), expected);
    }
    let snapshots = store.snapshots(LogKind::Turn).await.expect("listed");
    assert_eq!(snapshots[0].as_ref().expect("its first frame is sound").first, record(0));
    assert_eq!(fs::read(log.path()).expect("there"), damaged, "nothing is repaired");
}

#[tokio::test]
async fn the_strict_reading_refuses_a_torn_end_and_leaves_it() {
    for encoding in ENCODINGS {
        let log = Log::new(encoding).await;
        let tail = torn(encoding, b"{\"n\":");
        let bytes = [&log.bytes[..], &tail].concat();
        fs::write(log.path(), &bytes).expect("torn");
        let options = Options { torn_tail: TornTail::Reject, ..in_encoding(encoding) };
        let store = log.home.store(options);
        let (whole, size) = (log.bytes.len() as u64, tail.len() as u64);
        let inspected = store.inspect(&turn(0)).await.map(drop);
        for outcome in [inspected, store.open(&turn(0)).await.map(drop)] {
            let torn = matches!(
                outcome,
                Err(StoreError::Torn { offset, bytes, .. }) if (offset, bytes) == (whole, size)
            );
            assert!(torn, "{outcome:?}");
        }
        assert_eq!(fs::read(log.path()).expect("there"), bytes);
    }
}

/// Text of so many bytes that no encoding makes short.
fn noise(bytes: usize) -> String {
    let mut bits = 1_u64;
    let digit = |_| {
        bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        char::from(b'#' + u8::try_from(bits >> 58).expect("six bits"))
    };
    let text: String = (0..bytes).map(digit).collect();
    text.replace('\\', "/")
}

#[tokio::test]
async fn a_list_looks_at_no_log_and_snapshots_read_only_the_beginning() {
    let big = Record::new(format!("{{\"text\":\"{}\"}}", noise(500_000))).expect("an object");
    for encoding in ENCODINGS {
        let home = Home::new();
        let store = home.store(in_encoding(encoding));
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
}

#[tokio::test]
async fn a_header_of_any_length_is_found() {
    let header = Record::new(format!("{{\"text\":\"{}\"}}", noise(300_000))).expect("an object");
    for encoding in ENCODINGS {
        let home = Home::new();
        let store = home.store(in_encoding(encoding));
        drop(store.create(&turn(0), &[header.clone(), record(1)]).await.expect("created"));
        let snapshots = store.snapshots(LogKind::Turn).await.expect("listed");
        assert_eq!(snapshots[0].as_ref().expect("readable").first, header);
    }
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
    for encoding in ENCODINGS {
        let log = Log::new(encoding).await;
        let path = log.path();
        let folder = path.parent().expect("a folder");
        let id = turn(0).id().to_owned();
        let other = ENCODINGS.into_iter().find(|other| *other != encoding).expect("there are two");
        let (own, other) = (encoding.suffix(), other.suffix());
        for name in [
            format!("{id}.live"),
            format!("{id}{own}.torn-0123456789abcdef"),
            format!(".{id}{own}.0000000000000000.tmp"),
            format!("{id}{other}"),
            format!("notes{own}"),
            // Another day's log.
            format!("{}{own}", turn(1).id()),
        ] {
            fs::write(folder.join(name), "").expect("written");
        }
        fs::write(folder.parent().expect("a month").join("stray"), "").expect("written");
        let store = log.home.store(in_encoding(encoding));
        assert_eq!(store.list(LogKind::Turn).await.expect("listed"), [turn(0)]);
    }
}

#[tokio::test]
async fn what_stands_beside_a_log_goes_and_comes_back_with_it() {
    for encoding in ENCODINGS {
        let log = Log::new(encoding).await;
        let id = turn(0).id().to_owned();
        let beside = |name: &str| log.path().with_file_name(format!("{id}{name}"));
        fs::write(beside(".live"), "streaming").expect("written");
        fs::write(beside(&format!("{}.torn-00", encoding.suffix())), "cut").expect("written");
        fs::write(beside(".other"), "not ours").expect("written");
        let before = tree(&log);
        let store = log.home.store(in_encoding(encoding));
        let removed = store.remove(&turn(0)).await.expect("removed");
        assert_eq!(tree(&log).len(), 1, "only what is not ours stays");
        store.restore(&removed).await.expect("restored");
        assert_eq!(tree(&log), before);
        assert_eq!(fs::read_dir(log.home.work_dir().deleted()).expect("there").count(), 0);
    }
}

/// The files in the folder of the log, with their bytes, times and modes.
fn tree(log: &Log) -> Vec<impl Ord + Debug> {
    let folder = log.path().parent().expect("a folder").to_path_buf();
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
}
