//! What is held, by what keeps the disk from taking it.

use std::fs;
use std::io;
use std::sync::{Arc, Mutex};

use futures_util::FutureExt as _;

use crate::store::coordinate::Stall;
use crate::store::error::StoreError;
use crate::store::seam::{Durability, LogStore as _};
use crate::testing::disk::{Call, EIO, ENOSPC, Fault, Plan};
use crate::testing::store::coordinated::{
    append, coordinated, created, ended, read, scripted, stalls,
};
use crate::testing::store::{Home, record, records, turn};

fn always(only: Call, fault: Fault) -> Plan {
    Plan { only: Some(only), from: 0, times: u64::MAX, fault }
}

#[tokio::test]
async fn a_batch_that_cannot_be_synced_is_held_and_written_once() {
    let home = Home::new();
    let store = coordinated(&home);
    let mut writer = created(&store, 0).await;
    writer.append(&[record(1)], Durability::Written).await.expect("written");
    home.disk.fail(always(Call::Sync, Fault::Error(EIO)));
    let batch = [record(2)];
    assert!(writer.append(&batch, Durability::Barrier).now_or_never().is_none());
    let stall = stalls(&store, 1).await.remove(0);
    assert_eq!((stall.records, stall.retry_in), (1, None));
    assert!(stall.why.contains("is not safe on the device"), "{stall:?}");
    let failed = store.flush(None).await.expect_err("the device syncs nothing");
    assert!(matches!(&failed.first, StoreError::Stalled { records: 1, .. }), "{failed}");
    home.disk.heal();
    store.flush(None).await.expect("all is safe");
    assert_eq!(stalls(&store, 0).await, []);
    drop(writer);
    assert_eq!(read(&coordinated(&home), 0).await, records(0..3));
}

#[tokio::test]
async fn what_could_not_be_cut_is_completed_together_with_what_came_behind_it() {
    let home = Home::new();
    let store = coordinated(&home);
    let mut writer = created(&store, 0).await;
    home.disk.fail(always(Call::Write, Fault::HalfThenError(ENOSPC)));
    home.disk.fail(always(Call::Truncate, Fault::Error(EIO)));
    let first = records(1..3);
    assert!(writer.append(&first, Durability::Written).now_or_never().is_none());
    stalls(&store, 1).await;
    let second = [record(3)];
    assert!(writer.append(&second, Durability::Barrier).now_or_never().is_none());
    home.disk.heal();
    store.flush(None).await.expect("all is written");
    assert_eq!(writer.records(), 4);
    drop(writer);
    assert_eq!(read(&coordinated(&home), 0).await, records(0..4));
}

#[tokio::test]
async fn a_log_that_was_taken_away_goes_on_when_it_is_put_back() {
    let home = Home::new();
    let store = coordinated(&home);
    let writer = created(&store, 0).await;
    let (file, aside) = (home.file(&turn(0)), home.work_dir().root().join("aside"));
    // Renamed, it would still be the one that the writer has open.
    fs::copy(&file, &aside).expect("copied");
    fs::remove_file(&file).expect("deleted");
    let appended = append(writer, 1);
    let stall = stalls(&store, 1).await.remove(0);
    assert_eq!((stall.records, stall.retry_in), (1, None));
    fs::rename(&aside, &file).expect("moved back");
    store.retry();
    let (_writer, appended) = ended(appended).await;
    appended.expect("written");
    assert_eq!(read(&store, 0).await, records(0..2));
}

#[tokio::test]
async fn flushes_that_come_while_one_is_under_way_share_the_next_barrier() {
    let (store, script) = scripted();
    let gate = script.stop_before_flush();
    let first = store.flush(None);
    tokio::pin!(first);
    assert!(first.as_mut().now_or_never().is_none());
    gate.reached().await;
    let mut others: Vec<_> = (0..7).map(|_| Box::pin(store.flush(None))).collect();
    for other in &mut others {
        assert!(other.as_mut().now_or_never().is_none(), "the barrier began before it");
    }
    gate.open();
    first.await.expect("all is safe");
    for flushed in futures_util::future::join_all(others).await {
        flushed.expect("all is safe");
    }
    assert_eq!(script.flushes(), 2);
    store.flush(None).await.expect("all is safe");
    assert_eq!(script.flushes(), 3, "nobody shares a barrier that is over");
}

#[tokio::test]
async fn flushes_that_share_a_barrier_share_its_failure() {
    let home = Home::new();
    let (store, script) = scripted();
    let failed = {
        let broken = coordinated(&home);
        let mut writer = created(&broken, 0).await;
        writer.append(&[record(1)], Durability::Written).await.expect("written");
        drop(writer);
        home.disk.fail(always(Call::Sync, Fault::Error(EIO)));
        broken.flush(None).await.expect_err("the device syncs nothing")
    };
    let gate = script.stop_before_flush();
    let first = store.flush(None);
    tokio::pin!(first);
    assert!(first.as_mut().now_or_never().is_none());
    let mut others: Vec<_> = (0..3).map(|_| Box::pin(store.flush(None))).collect();
    for other in &mut others {
        assert!(other.as_mut().now_or_never().is_none());
    }
    gate.open();
    first.await.expect("the first is well");
    script.fail_flush(failed);
    for flushed in futures_util::future::join_all(others).await {
        let told = flushed.expect_err("the second fails");
        assert!(matches!(told.first, StoreError::Poisoned { .. }), "{told}");
    }
    store.flush(None).await.expect("the third is well");
    assert_eq!(script.flushes(), 3);
}

/// What was told to the log of the program.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<u8>>>);

impl io::Write for Told {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("nobody panics").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Told {
    fn lines_with(&self, text: &str) -> usize {
        let told = self.0.lock().expect("nobody panics");
        String::from_utf8_lossy(&told).lines().filter(|line| line.contains(text)).count()
    }
}

#[tokio::test(start_paused = true)]
async fn the_log_of_the_program_tells_of_a_stall_once_and_of_what_became_of_it() {
    let told = Told::default();
    let writer = told.clone();
    let log = tracing_subscriber::fmt().with_writer(move || writer.clone()).finish();
    let _log = tracing::subscriber::set_default(log);
    let home = Home::new();
    let store = coordinated(&home);
    let writer = created(&store, 0).await;
    home.disk.fail(always(Call::Write, Fault::Error(ENOSPC)));
    let appended = append(writer, 1);
    let mut followed = store.follow_stalls();
    let tried = |stalls: &Vec<Stall>| stalls.iter().any(|stall| stall.tries == 3);
    followed.wait_for(tried).await.expect("the store is there");
    assert_eq!(told.lines_with("what is to be written is held"), 1);
    assert_eq!(store.give_up().len(), 1);
    ended(appended).await.1.expect_err("it is given up");
    assert_eq!(told.lines_with("what was held is given up"), 1);
    assert_eq!(told.lines_with("No space left on device"), 2);
    let content = String::from_utf8_lossy(record(1).as_bytes()).into_owned();
    assert_eq!(told.lines_with(&content), 0, "nothing of what was said");
}
