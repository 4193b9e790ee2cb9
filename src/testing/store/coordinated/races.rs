//! Many threads at one coordinator: whoever hears that something is done finds it done.

use std::time::Duration;

use crate::base::tasks::{Ended, Tasks};
use crate::store::coordinate::Coordinator;
use crate::store::seam::{Durability, LogStore as _};
use crate::testing::store::coordinated::{read, scripted};
use crate::testing::store::{record, records, turn};

/// How many logs are written at once.
const LOGS: usize = 4;
/// How often each of them is opened and let go.
const ROUNDS: usize = 400;
/// Far longer than all of it takes.
const HANG: Duration = Duration::from_mins(1);

/// Opens a log, writes to it and lets it go, again and again.
async fn write_on(store: Coordinator, log: usize) {
    for round in 0..ROUNDS {
        let opened = store.open(&turn(log)).await;
        let mut writer = opened.expect("whoever let it go has let it go");
        for number in 0..3 {
            let batch = [record(3 * round + number + 1)];
            writer.append(&batch, Durability::Written).await.expect("the disk takes it");
        }
        if round % 2 == 0 {
            writer.close().await.expect("all is written");
        } else {
            drop(writer);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_log_is_free_once_its_writer_is_and_no_batch_is_lost_between_two_threads() {
    let (store, script) = scripted();
    for log in 0..LOGS {
        drop(store.create(&turn(log), &records(0..1)).await.expect("created"));
    }
    let tasks = Tasks::new();
    let write = |log| tasks.spawn("write", write_on(store.clone(), log));
    let writing = futures_util::future::join_all((0..LOGS).map(write));
    let ended = tokio::time::timeout(HANG, writing).await.expect("nobody waits for ever");
    for ended in ended {
        assert_eq!(ended.expect("it ends"), Ended::Done(()));
    }
    for log in 0..LOGS {
        assert_eq!(read(&store, log).await, records(0..3 * ROUNDS + 1));
    }
    assert_eq!(script.closes(), LOGS * ROUNDS / 2, "a close is a barrier");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn flushes_from_many_threads_find_what_was_written_before_them() {
    let (store, _script) = scripted();
    for log in 0..LOGS {
        drop(store.create(&turn(log), &records(0..1)).await.expect("created"));
    }
    let tasks = Tasks::new();
    let write = |log| tasks.spawn("write", write_on(store.clone(), log));
    let flush = |_| {
        let store = store.clone();
        tasks.spawn("flush", async move {
            for _ in 0..ROUNDS {
                store.flush(None).await.expect("the disk takes everything");
            }
        })
    };
    let all = (0..LOGS).map(write).chain((0..2).map(flush));
    let all = futures_util::future::join_all(all.collect::<Vec<_>>());
    for ended in tokio::time::timeout(HANG, all).await.expect("nobody waits for ever") {
        assert_eq!(ended.expect("it ends"), Ended::Done(()));
    }
}
