//! How the way of a log's batches ends where it should not: the backend panics, the program ends
//! while something is held, what was held is given up for good.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;

use crate::base::tasks::Tasks;
use crate::store::coordinate::Coordinator;
use crate::store::error::StoreError;
use crate::store::jsonl::Options;
use crate::store::seam::{Durability, LogStore as _};
use crate::testing::disk::{EIO, ENOSPC};
use crate::testing::store::coordinated::{
    append, coordinated, created, ended, read, scripted, stalls, stuck,
};
use crate::testing::store::{Home, record, records, turn};

#[tokio::test]
async fn a_panic_in_a_backend_is_told_to_all_who_wait_and_the_log_is_free() {
    let (store, script) = scripted();
    let mut writer = created(&store, 0).await;
    let gate = script.stop_before(r#""n":1,"#);
    script.panic_at(r#""n":1,"#);
    let batch = [record(1)];
    assert!(writer.append(&batch, Durability::Written).now_or_never().is_none());
    gate.reached().await;
    let flush = store.flush(None);
    tokio::pin!(flush);
    assert!(flush.as_mut().now_or_never().is_none());
    gate.open();
    let told = flush.await.expect_err("it was not written");
    assert!(matches!(told.first, StoreError::WriterLost(_)), "{told}");
    let refused = writer.append(&[record(2)], Durability::Written).await;
    assert!(matches!(refused, Err(StoreError::WriterLost(_))), "{refused:?}");
    let closed = writer.close().await;
    assert!(matches!(closed, Err(StoreError::WriterLost(_))), "{closed:?}");
    let mut writer = store.open(&turn(0)).await.expect("it is free");
    writer.append(&[record(1)], Durability::Written).await.expect("written");
    assert_eq!(read(&store, 0).await, records(0..2));
}

#[tokio::test]
async fn a_panic_while_a_batch_is_held_holds_it_no_longer() {
    let (store, script) = scripted();
    let writer = created(&store, 0).await;
    script.fail_at(r#""n":1,"#);
    script.panic_at(r#""n":1,"#);
    let appended = append(writer, 1);
    stalls(&store, 1).await;
    store.retry();
    let (writer, lost) = ended(appended).await;
    assert!(matches!(lost, Err(StoreError::WriterLost(_))), "{lost:?}");
    assert_eq!(stalls(&store, 0).await, []);
    assert_eq!(store.give_up().len(), 0, "nothing is held");
    drop(writer);
    assert_eq!(store.open(&turn(0)).await.expect("it is free").records(), 1);
}

#[tokio::test]
async fn tasks_that_are_told_to_end_do_not_wait_for_what_is_held() {
    let (home, tasks) = (Home::new(), Tasks::new());
    let store = Coordinator::new(Arc::new(home.store(Options::default())), tasks.clone());
    let writer = created(&store, 0).await;
    stuck(&home, EIO);
    let appended = append(writer, 1);
    stalls(&store, 1).await;
    tasks.shut_down().await;
    let (mut writer, told) = ended(appended).await;
    assert!(matches!(told, Err(StoreError::Stalled { records: 1, .. })), "{told:?}");
    let again = writer.append(&[record(2)], Durability::Written).await;
    assert!(matches!(again, Err(StoreError::Stalled { records: 1, .. })), "{again:?}");
    assert_eq!(stalls(&store, 0).await, []);
    tasks.wait().await;
}

#[tokio::test(start_paused = true)]
async fn after_the_end_nothing_is_held_and_what_the_disk_takes_is_written() {
    let home = Home::new();
    let store = coordinated(&home);
    let writer = created(&store, 0).await;
    stuck(&home, ENOSPC);
    let appended = append(writer, 1);
    stalls(&store, 1).await;
    let held = store.end();
    assert!(matches!(&held[..], [StoreError::Stalled { records: 1, .. }]), "{held:?}");
    let (mut writer, told) = ended(appended).await;
    assert!(matches!(told, Err(StoreError::Stalled { .. })), "{told:?}");
    let began = tokio::time::Instant::now();
    let again = writer.append(&[record(1)], Durability::Written).await;
    assert!(matches!(again, Err(StoreError::Stalled { records: 1, .. })), "{again:?}");
    assert_eq!(began.elapsed(), Duration::ZERO, "it is not tried again");
    assert_eq!(stalls(&store, 0).await, []);
    home.disk.heal();
    writer.append(&[record(1)], Durability::Barrier).await.expect("written");
    assert_eq!(read(&store, 0).await, records(0..2));
    assert_eq!(store.end().len(), 0, "nothing is held");
}
