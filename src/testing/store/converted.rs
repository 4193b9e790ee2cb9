//! Copying all logs from every form into every other, broken off at every call.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::base::tasks::Tasks;
use crate::domain::turn::live::{Delta, DeltaKind, OpenCall};
use crate::store::convert::{Copied, Copier, CopyError};
use crate::store::format::Format;
use crate::store::jsonl::Encoding;
use crate::store::live_text::{self, LiveText};
use crate::store::log::{LogId, LogKind, Record, Removed};
use crate::store::progress::Progress;
use crate::store::seam::LogStore;
use crate::store::sqlite;
use crate::testing::disk::{ENOSPC, Fault};
use crate::testing::store::faults::once;
use crate::testing::store::{Home, in_encoding, log, records, turn};

struct Kept {
    logs: Arc<dyn LogStore>,
    live_text: Arc<dyn LiveText>,
}

fn kept(home: &Home, format: Format) -> Kept {
    let files = |encoding| -> Kept {
        let (disk, tasks) = (Arc::new(home.disk.clone()), Tasks::new());
        let live_text = Arc::new(live_text::Files::new(disk, home.work_dir(), tasks));
        Kept { logs: Arc::new(home.store(in_encoding(encoding))), live_text }
    };
    match format {
        Format::Jsonl => files(Encoding::Lines),
        Format::JsonlZst => files(Encoding::Frames),
        Format::Sqlite => {
            let store = home.database(sqlite::Options::default());
            let live_text = Arc::new(store.live_text());
            Kept { logs: Arc::new(store), live_text }
        }
    }
}

fn pairs() -> impl Iterator<Item = (Format, Format)> {
    let all = Format::ALL.into_iter();
    all.flat_map(|from| Format::ALL.map(|to| (from, to))).filter(|(from, to)| from != to)
}

/// Sessions and turns, some of them removed, and one turn that was streaming when it was killed.
async fn filled(home: &Home, format: Format) -> Kept {
    let kept = kept(home, format);
    for (number, size) in [1, 3, 70].into_iter().enumerate() {
        for kind in [LogKind::Session, LogKind::Turn] {
            let log = log(kind, number);
            drop(kept.logs.create(&log, &records(0..size)).await.expect("created"));
        }
    }
    drop(kept.logs.create(&log(LogKind::Session, 3), &records(3..9)).await.expect("created"));
    kept.logs.remove(&log(LogKind::Session, 3)).await.expect("removed");
    let pieces = [(DeltaKind::Reasoning, 0, 0, "why"), (DeltaKind::Text, 1, 3, "an answer")];
    for (kind, block, at, text) in pieces {
        let delta = Delta { model_call_index: 2, kind, block, at, text: text.to_owned() };
        kept.live_text.put(&turn(1), &[delta]).await.expect("kept");
    }
    kept
}

async fn copy(from: &Kept, to: &Kept) -> Result<Copied, CopyError> {
    let live_text = [Arc::clone(&from.live_text), Arc::clone(&to.live_text)];
    let copier = Copier {
        from: Arc::clone(&from.logs),
        to: Arc::clone(&to.logs),
        live_text: Some(live_text),
        tasks: Tasks::new(),
    };
    copier.run(&mut |_: Progress| {}).await
}

/// All that is kept.
#[derive(Debug, PartialEq)]
struct All {
    logs: BTreeMap<LogId, Vec<Record>>,
    removed: Vec<(Removed, Vec<Record>)>,
    streaming: Option<OpenCall>,
}

async fn all(kept: &Kept) -> All {
    let (mut logs, mut removed) = (BTreeMap::new(), Vec::new());
    for kind in [LogKind::Session, LogKind::Turn] {
        for log in kept.logs.list(kind).await.expect("listed") {
            let records = kept.logs.inspect(&log).await.expect("readable").records.clone();
            logs.insert(log, records);
        }
    }
    for one in kept.logs.removed().await.expect("listed") {
        let records = kept.logs.inspect_removed(&one).await.expect("readable").records;
        removed.push((one, records));
    }
    let streaming = kept.live_text.read(&turn(1)).await.expect("readable");
    All { logs, removed, streaming }
}

#[tokio::test]
async fn every_form_is_copied_into_every_other_with_all_that_belongs_to_it() {
    for (from, to) in pairs() {
        let (old, new) = (Home::new(), Home::new());
        let (source, target) = (filled(&old, from).await, kept(&new, to));
        let before = all(&source).await;
        let copied = copy(&source, &target).await.expect("copied");
        assert_eq!((copied.sessions, copied.turns, copied.removed), (3, 3, 1));
        assert!(copied.left.is_empty());
        assert_eq!(all(&target).await, before, "{from} to {to}");
        assert_eq!(all(&source).await, before, "{from} to {to}: the old one stays");
        // Once more is nothing new.
        let revision = target.logs.revision(&turn(2)).await.expect("there");
        copy(&source, &target).await.expect("copied again");
        assert_eq!(target.logs.revision(&turn(2)).await.expect("there"), revision);
        assert_eq!(all(&target).await, before);
    }
}

#[tokio::test]
async fn copying_that_breaks_off_anywhere_goes_on_from_there() {
    for (from, to) in [(Format::Sqlite, Format::Jsonl), (Format::Jsonl, Format::JsonlZst)] {
        let old = Home::new();
        let source = filled(&old, from).await;
        let before = all(&source).await;
        let mut broke_off = 0;
        for at in 0.. {
            let new = Home::new();
            let made_before = new.disk.calls().len() as u64;
            new.disk.fail(once(at, Fault::HalfThenError(ENOSPC)));
            let first = copy(&source, &kept(&new, to)).await;
            let made = new.disk.calls().len() as u64 - made_before;
            new.disk.heal();
            let target = kept(&new, to);
            copy(&source, &target).await.expect("the disk works again");
            assert_eq!(all(&target).await, before, "{from} to {to}, call {at}");
            broke_off += u32::from(first.is_err());
            if at > made {
                break;
            }
        }
        assert!(broke_off > 10, "{from} to {to}: {broke_off}");
    }
}

#[tokio::test]
async fn a_damaged_log_is_left_and_named_and_all_others_are_copied() {
    for encoding in [Encoding::Lines, Encoding::Frames] {
        let (old, new) = (Home::new(), Home::new());
        let from = match encoding {
            Encoding::Lines => Format::Jsonl,
            Encoding::Frames => Format::JsonlZst,
        };
        let (source, target) = (filled(&old, from).await, kept(&new, Format::Sqlite));
        let file = old.file_in(encoding, &turn(2));
        let mut bytes = std::fs::read(&file).expect("there");
        let middle = bytes.len() / 2;
        bytes.get_mut(middle..middle + 40).expect("long").fill(b'\n');
        std::fs::write(&file, &bytes).expect("damaged");
        let copied = copy(&source, &target).await.expect("copied");
        let left: Vec<_> = copied.left.iter().map(|left| left.name.clone()).collect();
        assert_eq!(left, [turn(2).to_string()]);
        assert_eq!((copied.sessions, copied.turns), (3, 2));
        assert_eq!(std::fs::read(&file).expect("there"), bytes, "it stays as it is");
    }
}

#[tokio::test]
async fn a_torn_end_is_set_aside_and_not_copied() {
    let (old, new) = (Home::new(), Home::new());
    let (source, target) = (filled(&old, Format::Jsonl).await, kept(&new, Format::Sqlite));
    let before = all(&source).await;
    let file = old.file(&turn(2));
    let mut bytes = std::fs::read(&file).expect("there");
    bytes.extend_from_slice(b"{\"cut");
    std::fs::write(&file, &bytes).expect("torn");
    copy(&source, &target).await.expect("copied");
    assert_eq!(all(&target).await, before);
    let strays = source.logs.strays(LogKind::Turn).await.expect("listed");
    let [kept] = strays.set_aside.as_slice() else { panic!("{strays:?}") };
    assert_eq!(std::fs::read(kept).expect("kept"), b"{\"cut");
}

#[tokio::test]
async fn copies_of_what_is_not_there_any_more_are_stale() {
    let (old, new) = (Home::new(), Home::new());
    let (source, target) = (filled(&old, Format::Jsonl).await, kept(&new, Format::Sqlite));
    copy(&source, &target).await.expect("copied");
    source.logs.remove(&turn(0)).await.expect("removed");
    let stale = copy(&source, &target).await;
    assert!(matches!(stale, Err(CopyError::Stale)), "{stale:?}");
    let removed = source.logs.removed().await.expect("listed");
    let last = removed.iter().find(|it| it.log == turn(0)).expect("removed");
    source.logs.restore(last).await.expect("restored");
    copy(&source, &target).await.expect("as it was");
    // Another log of the same id.
    source.logs.remove(&turn(0)).await.expect("removed");
    drop(source.logs.create(&turn(0), &records(5..8)).await.expect("created"));
    let stale = copy(&source, &target).await;
    assert!(matches!(stale, Err(CopyError::Stale)), "{stale:?}");
}
