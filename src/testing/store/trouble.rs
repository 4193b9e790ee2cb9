//! Logs in files in trouble of one certain kind: syncs that fail, ends that cannot be cut, somebody
//! else's hands on the file.

use std::fs;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::sync::Arc;

use crate::base::clock::Clock as _;
use crate::store::error::StoreError;
use crate::store::jsonl::{Encoding, Options, Parts, Store};
use crate::store::lock::InstanceLock;
use crate::store::log::LogKind;
use crate::store::seam::{Durability, LogStore as _, SyncMode};
use crate::testing::disk::{Call, EIO, ENOSPC, ENOSYS, EOPNOTSUPP, EPERM, Fault, FaultyDisk, Plan};
use crate::testing::store::faults::{Run, once};
use crate::testing::store::{
    ENCODINGS, Home, StillClock, encoded, in_encoding, record, records, turn,
};

fn calls_of(disk: &FaultyDisk, call: Call) -> usize {
    disk.calls().iter().filter(|made| **made == call).count()
}

#[tokio::test]
async fn what_a_failed_sync_covered_is_written_again_and_synced() {
    for encoding in ENCODINGS {
        let mut run = Run::of(encoding);
        run.create().await.expect("created");
        run.append(2, Durability::Written).await.expect("appended");
        let inode = fs::metadata(run.file()).expect("there").ino();
        let writes = calls_of(&run.home.disk, Call::Write);
        run.home.disk.fail(Plan { only: Some(Call::Sync), ..once(0, Fault::Error(EIO)) });
        run.append(1, Durability::Barrier).await.expect("the second sync is good");
        assert_eq!(calls_of(&run.home.disk, Call::Write) - writes, 2);
        assert_eq!(fs::metadata(run.file()).expect("there").ino(), inode);
        run.check_acked().await;
        run.check_restart(0).await;
    }
}

#[tokio::test]
async fn what_cannot_be_synced_in_its_file_moves_to_a_new_one() {
    for encoding in ENCODINGS {
        let mut run = Run::of(encoding);
        run.create().await.expect("created");
        run.append(2, Durability::Written).await.expect("appended");
        let inode = fs::metadata(run.file()).expect("there").ino();
        run.home.disk.fail(Plan { only: Some(Call::Sync), times: 2, ..once(0, Fault::Error(EIO)) });
        run.append(1, Durability::Barrier).await.expect("the third sync is good");
        assert_ne!(fs::metadata(run.file()).expect("there").ino(), inode);
        run.check_acked().await;
        run.append(1, Durability::Barrier).await.expect("appended");
        run.check_acked().await;
        let folder = run.file().parent().expect("a folder").to_path_buf();
        assert_eq!(fs::read_dir(folder).expect("listed").count(), 1);
        run.check_restart(0).await;
    }
}

#[tokio::test]
async fn a_device_that_syncs_nothing_poisons_the_log_until_it_does() {
    for encoding in ENCODINGS {
        let mut run = Run::of(encoding);
        run.create().await.expect("created");
        run.append(2, Durability::Written).await.expect("appended");
        let broken = Plan { only: Some(Call::Sync), times: u64::MAX, ..once(0, Fault::Error(EIO)) };
        run.home.disk.fail(broken);
        for durability in [Durability::Barrier, Durability::Written] {
            let refused = run.append(1, durability).await;
            assert!(matches!(refused, Err(StoreError::Poisoned { .. })), "{refused:?}");
            run.check_acked().await;
        }
        // The poison outlives the writer.
        drop(run.writer.take());
        let failed = run.store.flush(None).await.expect_err("not safe");
        let poisoned =
            matches!(failed.first, StoreError::Poisoned { .. }) && failed.more.is_empty();
        assert!(poisoned, "{failed}");
        run.writer = Some(run.store.open(&turn(0)).await.expect("free"));
        assert!(matches!(
            run.append(1, Durability::Written).await,
            Err(StoreError::Poisoned { .. })
        ));
        run.home.disk.heal();
        let writes = calls_of(&run.home.disk, Call::Write);
        run.store.flush(Some(&turn(0))).await.expect("safe now");
        assert_eq!(calls_of(&run.home.disk, Call::Write), writes + 1, "all of it is written again");
        run.append(1, Durability::Written).await.expect("appended");
        run.check_acked().await;
        run.check_restart(0).await;
    }
}

#[tokio::test]
async fn a_dropped_writer_leaves_to_flush_what_no_barrier_covered() {
    for encoding in ENCODINGS {
        let mut run = Run::of(encoding);
        run.create().await.expect("created");
        run.append(2, Durability::Written).await.expect("appended");
        let syncs = calls_of(&run.home.disk, Call::Sync);
        drop(run.writer.take());
        assert_eq!(calls_of(&run.home.disk, Call::Sync), syncs, "dropping does nothing");
        run.store.flush(None).await.expect("flushed");
        assert_eq!(calls_of(&run.home.disk, Call::Sync), syncs + 1);
        run.store.flush(None).await.expect("nothing to do");
        assert_eq!(calls_of(&run.home.disk, Call::Sync), syncs + 1);
    }
}

#[tokio::test]
async fn much_that_is_not_safe_is_a_barrier_by_itself() {
    let mut run = Run::new();
    run.create().await.expect("created");
    let syncs = calls_of(&run.home.disk, Call::Sync);
    run.append(5_000, Durability::Written).await.expect("appended");
    assert_eq!(calls_of(&run.home.disk, Call::Sync), syncs);
    run.append(10_000, Durability::Written).await.expect("appended");
    assert_eq!(calls_of(&run.home.disk, Call::Sync), syncs + 1);
}

#[tokio::test]
async fn the_sync_mode_says_what_waits_for_the_device() {
    for (sync, syncs) in [(SyncMode::Barrier, 1), (SyncMode::Always, 2), (SyncMode::Never, 0)] {
        let mut run = Run::new();
        run.store = run.home.store(Options { sync, ..Options::default() });
        run.create().await.expect("created");
        let before = calls_of(&run.home.disk, Call::Sync);
        run.append(1, Durability::Written).await.expect("appended");
        run.append(1, Durability::Barrier).await.expect("appended");
        run.store.flush(None).await.expect("flushed");
        assert_eq!(calls_of(&run.home.disk, Call::Sync) - before, syncs, "{sync:?}");
    }
}

/// An append of two records fails half way, and what it wrote cannot be cut.
async fn run_with_leftover(encoding: Encoding) -> Run {
    let mut run = Run::of(encoding);
    run.create().await.expect("created");
    let disk = run.home.disk.clone();
    disk.fail(Plan { only: Some(Call::Write), ..once(0, Fault::HalfThenError(ENOSPC)) });
    disk.fail(Plan { only: Some(Call::Truncate), times: u64::MAX, ..once(0, Fault::Error(EIO)) });
    run.append(2, Durability::Barrier).await.expect_err("no room");
    run.check_acked().await;
    run
}

#[tokio::test]
async fn what_could_not_be_cut_is_completed_when_the_batch_is_given_again() {
    for encoding in ENCODINGS {
        let mut run = run_with_leftover(encoding).await;
        run.append(2, Durability::Barrier).await.expect("nothing has to be cut");
        run.check_acked().await;
        run.check_restart(0).await;
    }
}

#[tokio::test]
async fn what_could_not_be_cut_is_cut_before_another_batch() {
    for encoding in ENCODINGS {
        let mut run = run_with_leftover(encoding).await;
        let other = [record(7)];
        let writer = run.writer.as_mut().expect("created");
        writer.append(&other, Durability::Barrier).await.expect_err("it still cannot be cut");
        run.home.disk.heal();
        writer.append(&other, Durability::Barrier).await.expect("appended");
        run.acked.extend(other);
        run.check_acked().await;
        let restarted = run.home.store(in_encoding(encoding));
        assert_eq!(restarted.inspect(&turn(0)).await.expect("readable").records, run.acked);
    }
}

#[tokio::test]
async fn another_program_s_bytes_are_never_written_over() {
    for encoding in ENCODINGS {
        let mut run = Run::of(encoding);
        run.create().await.expect("created");
        let path = run.file();
        let mut foreign = fs::OpenOptions::new().append(true).open(&path).expect("there");
        foreign.write_all(&encoded(encoding, b"{\"foreign\":1}\n")).expect("written");
        let whole = fs::read(&path).expect("there");
        for _ in 0..2 {
            let refused = run.append(1, Durability::Barrier).await;
            assert!(matches!(refused, Err(StoreError::Changed { .. })), "{refused:?}");
        }
        assert_eq!(fs::read(&path).expect("there"), whole);
        drop(run.writer.take());
        run.writer = Some(run.store.open(&turn(0)).await.expect("free"));
        assert_eq!(run.writer.as_ref().expect("open").records(), 3);
        fs::OpenOptions::new().write(true).open(&path).expect("there").set_len(10).expect("cut");
        let refused = run.append(1, Durability::Barrier).await;
        assert!(matches!(refused, Err(StoreError::Changed { .. })), "{refused:?}");
        fs::remove_file(&path).expect("deleted");
        let refused = run.append(1, Durability::Barrier).await;
        assert!(matches!(refused, Err(StoreError::NotFound(_))), "{refused:?}");
    }
}

#[tokio::test]
async fn where_links_are_refused_a_rename_that_replaces_nothing_publishes() {
    for refusals in [&[Call::Link][..], &[Call::Link, Call::RenameNew]] {
        let mut run = Run::new();
        for (call, number) in refusals.iter().zip([EPERM, ENOSYS]) {
            let refused =
                Plan { only: Some(*call), from: 0, times: u64::MAX, fault: Fault::Error(number) };
            run.home.disk.fail(refused);
        }
        run.create().await.expect("created");
        run.append(1, Durability::Barrier).await.expect("appended");
        run.check_acked().await;
        let other = run.home.store(Options::default());
        let again = other.create(&turn(0), &records(5..6)).await;
        assert!(matches!(again, Err(StoreError::AlreadyExists(_))), "{again:?}");
        run.check_restart(0).await;
        assert_eq!(run.store.relied_on_the_lock(), refusals.len() == 2);
        let folder = run.home.file(&turn(0)).parent().expect("a folder").to_path_buf();
        assert_eq!(fs::read_dir(folder).expect("listed").count(), 1);
    }
}

#[tokio::test]
async fn a_removal_or_restoration_that_fails_changes_nothing() {
    let cases = (0..).flat_map(|from| ENCODINGS.map(|encoding| (from, encoding)));
    for (from, encoding) in cases {
        let mut run = Run::of(encoding);
        run.create().await.expect("created");
        drop(run.writer.take());
        let live = run.file().with_file_name(format!("{}.live", turn(0).id()));
        fs::write(&live, "streaming").expect("written");
        run.home.disk.fail(once(from, Fault::Error(EIO)));
        let removed = run.store.remove(&turn(0)).await;
        let listed = run.store.list(LogKind::Turn).await;
        run.home.disk.heal();
        let Ok(removed) = removed else {
            run.check_acked().await;
            assert!(live.exists(), "call {from}");
            assert_eq!(run.store.removed().await.expect("listed"), [], "call {from}");
            continue;
        };
        run.home.disk.fail(once(from, Fault::Error(EIO)));
        let restored = run.store.restore(&removed).await;
        run.home.disk.heal();
        if restored.is_err() {
            assert_eq!(run.store.removed().await.expect("listed"), std::slice::from_ref(&removed));
            assert!(!live.exists(), "call {from}");
            run.store.restore(&removed).await.expect("the fault is over");
        }
        run.check_acked().await;
        assert!(live.exists(), "call {from}");
        if listed.is_ok() && restored.is_ok() && from > 30 {
            break;
        }
    }
}

#[tokio::test]
async fn a_restoration_that_breaks_off_anywhere_leaves_the_log_in_one_place() {
    for refusals in [&[][..], &[Call::RenameNew]] {
        for from in 0.. {
            let mut run = Run::new();
            run.create().await.expect("created");
            drop(run.writer.take());
            let removed = run.store.remove(&turn(0)).await.expect("removed");
            for call in refusals {
                let refused = Plan { only: Some(*call), ..once(0, Fault::Error(ENOSYS)) };
                run.home.disk.fail(Plan { times: u64::MAX, ..refused });
            }
            run.home.disk.fail(Plan { times: u64::MAX, ..once(from, Fault::Error(EIO)) });
            let went_well = run.store.restore(&removed).await.is_ok();
            run.home.disk.heal();
            run.store = run.home.store(Options::default());
            let here = run.store.list(LogKind::Turn).await.expect("listed").len();
            let there = run.store.removed().await.expect("listed");
            assert_eq!(here + there.len(), 1, "call {from}: {there:?}");
            if let [removed] = &there[..] {
                run.store.restore(removed).await.expect("the device works");
            }
            run.store.finish_destroying().await.expect("the device works");
            run.check_acked().await;
            assert_eq!(run.store.removed().await.expect("listed"), [], "call {from}");
            let links = fs::metadata(run.home.file(&turn(0))).expect("there").nlink();
            assert_eq!(links, 1, "call {from}");
            if went_well && from > 20 {
                break;
            }
        }
    }
}

#[tokio::test]
async fn who_has_lost_the_lock_writes_nothing_more() {
    let home = Home::new();
    let refused = Plan { only: Some(Call::Lock), ..once(0, Fault::Error(EOPNOTSUPP)) };
    home.disk.fail(refused);
    let disk = Arc::new(home.disk.clone());
    let lock = InstanceLock::acquire(disk, &home.work_dir(), 7, StillClock.now()).expect("free");
    let parts = Parts { lock: Some(Arc::new(lock)), ..home.parts() };
    let store = Store::new(home.work_dir(), parts, Options::default());
    let mut writer = store.create(&turn(0), &records(0..1)).await.expect("created");
    writer.append(&records(1..2), Durability::Barrier).await.expect("appended");
    fs::remove_file(home.work_dir().lock_file()).expect("deleted");
    let outcomes = [
        writer.append(&records(2..3), Durability::Written).await.map(drop),
        store.create(&turn(1), &records(0..1)).await.map(drop),
    ];
    for outcome in outcomes {
        assert!(matches!(outcome, Err(StoreError::LockLost(_))), "{outcome:?}");
    }
    assert_eq!(store.inspect(&turn(0)).await.expect("readable").records, records(0..2));
}

#[tokio::test]
async fn a_log_that_is_more_than_memory_holds_is_not_taken_for_damaged() {
    let mut run = Run::of(Encoding::Frames);
    run.create().await.expect("created");
    drop(run.writer.take());
    let bytes = [fs::read(run.file()).expect("there"), swollen_frames()].concat();
    fs::write(run.file(), &bytes).expect("written");
    let turn = turn(0);
    for refused in [run.store.inspect(&turn).await.map(drop), run.store.open(&turn).await.map(drop)]
    {
        let Err(StoreError::Io(failure)) = &refused else { panic!("{refused:?}") };
        assert_eq!(failure.cause.kind(), ErrorKind::OutOfMemory);
        assert_eq!(failure.path, run.file());
        assert!(failure.to_string().contains("more than the 1073741824 of a log"), "{failure}");
    }
    assert!(run.store.snapshots(LogKind::Turn).await.expect("listed")[0].is_ok());
    assert_eq!(fs::read(run.file()).expect("there"), bytes);
}

/// Frames of a few kilobytes, each of which says to hold 128 MiB of one byte repeated.
fn swollen_frames() -> Vec<u8> {
    let (blocks, block_bytes) = (1_024_u32, 128_u32 * 1024);
    let mut frame = 0xFD2F_B528_u32.to_le_bytes().to_vec();
    frame.push(0b1010_0100);
    frame.extend((blocks * block_bytes).to_le_bytes());
    for block in 1..=blocks {
        let header = block_bytes << 3 | 0b10 | u32::from(block == blocks);
        frame.extend([&header.to_le_bytes()[..3], b"x"].concat());
    }
    frame.extend([0; 4]);
    frame.repeat(8)
}
