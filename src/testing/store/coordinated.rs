//! The coordinator: order, joining, what it keeps of what the disk does not take, and when it gives
//! that up.

mod endings;
mod held;
mod races;

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;

use crate::base::tasks::{Ended, Tasks};
use crate::store::coordinate::{Coordinator, Stall};
use crate::store::error::StoreError;
use crate::store::jsonl::{Encoding, Options};
use crate::store::log::{LogKind, Record};
use crate::store::seam::{Durability, LogStore, LogWriter};
use crate::store::sqlite;
use crate::testing::disk::{Call, EIO, ENOSPC, Fault, Plan};
use crate::testing::gate::Gate;
use crate::testing::store::contract::{Reopens, Subject};
use crate::testing::store::scripted::ScriptedStore;
use crate::testing::store::{Home, in_encoding, memory_store, record, records, turn};

impl Subject for Coordinator {
    fn store(&self) -> Arc<dyn LogStore> {
        Arc::new(self.clone())
    }
}

mod over_memory {
    use super::*;
    use crate::store_contract;
    store_contract!(every Coordinator::new(Arc::new(memory_store()), Tasks::new()));
}

/// What a home is to a store.
#[derive(Clone, Copy)]
enum Form {
    Files(Encoding),
    Database,
}

struct Durable(Home, Form);

impl Subject for Durable {
    fn store(&self) -> Arc<dyn LogStore> {
        let Self(home, form) = self;
        let store: Arc<dyn LogStore> = match form {
            Form::Files(encoding) => Arc::new(home.store(in_encoding(*encoding))),
            Form::Database => Arc::new(home.database(sqlite::Options::default())),
        };
        Arc::new(Coordinator::new(store, Tasks::new()))
    }
}

impl Reopens for Durable {
    fn reopened(&self) -> Arc<dyn LogStore> {
        self.store()
    }
}

mod over_lines {
    use super::*;
    use crate::store_contract;
    store_contract!(every Durable(Home::new(), Form::Files(Encoding::Lines)));
    store_contract!(reopens Durable(Home::new(), Form::Files(Encoding::Lines)));
}

mod over_frames {
    use super::*;
    use crate::store_contract;
    store_contract!(every Durable(Home::new(), Form::Files(Encoding::Frames)));
    store_contract!(reopens Durable(Home::new(), Form::Files(Encoding::Frames)));
}

mod over_sqlite {
    use super::*;
    use crate::store_contract;
    store_contract!(every Durable(Home::new(), Form::Database));
    store_contract!(reopens Durable(Home::new(), Form::Database));
}

fn coordinated(home: &Home) -> Coordinator {
    Coordinator::new(Arc::new(home.store(Options::default())), Tasks::new())
}

/// A coordinator over a store with a script.
fn scripted() -> (Coordinator, ScriptedStore) {
    let script = ScriptedStore::new(Arc::new(memory_store()));
    (Coordinator::new(Arc::new(script.clone()), Tasks::new()), script)
}

/// A disk that takes no more writes, for this reason.
fn stuck(home: &Home, error: i32) {
    let (only, fault) = (Some(Call::Write), Fault::Error(error));
    home.disk.fail(Plan { only, from: 0, times: u64::MAX, fault });
}

async fn created(store: &Coordinator, number: usize) -> Box<dyn LogWriter> {
    store.create(&turn(number), &records(0..1)).await.expect("created")
}

async fn read(store: &Coordinator, number: usize) -> Vec<Record> {
    store.inspect(&turn(number)).await.expect("readable").records.clone()
}

/// A writer, and what became of its append.
type Appended = (Box<dyn LogWriter>, Result<(), StoreError>);

/// Appends a record in the background.
fn append(mut writer: Box<dyn LogWriter>, number: usize) -> JoinHandle<Ended<Appended>> {
    Tasks::new().spawn("append", async move {
        let appended = writer.append(&[record(number)], Durability::Written).await;
        (writer, appended.map(drop))
    })
}

async fn ended(appended: JoinHandle<Ended<Appended>>) -> Appended {
    match appended.await.expect("it ends") {
        Ended::Done(appended) => appended,
        Ended::Panicked(why) => panic!("{why}"),
    }
}

/// Waits until so many logs are stalled; gives them.
async fn stalls(store: &Coordinator, count: usize) -> Vec<Stall> {
    let mut stalls = store.follow_stalls();
    stalls.wait_for(|stalls| stalls.len() == count).await.expect("the store is there").clone()
}

#[tokio::test]
async fn batches_that_arrive_while_one_is_written_go_together_after_it() {
    let (store, script) = scripted();
    let mut writer = created(&store, 0).await;
    let gate = script.stop_before(r#""n":1,"#);
    // Whoever appended them waits no more: their batches do.
    for number in 1..4 {
        let batch = [record(number)];
        let waits = writer.append(&batch, Durability::Written);
        assert!(futures_util::FutureExt::now_or_never(waits).is_none());
        if number == 1 {
            gate.reached().await;
        }
    }
    gate.open();
    writer.append(&[record(4)], Durability::Barrier).await.expect("written");
    let batches = script.batches();
    let expected = [(records(1..2), Durability::Written), (records(2..5), Durability::Barrier)];
    assert_eq!(batches, expected);
    assert_eq!((read(&store, 0).await, writer.records()), (records(0..5), 5));
}

#[tokio::test(start_paused = true)]
async fn what_a_full_disk_did_not_take_is_kept_and_tried_again_by_itself() {
    let home = Home::new();
    let store = coordinated(&home);
    let writer = created(&store, 0).await;
    stuck(&home, ENOSPC);
    let appended = append(writer, 1);
    let [stall] = &stalls(&store, 1).await[..] else { panic!("one log is stalled") };
    assert_eq!((&stall.log, stall.records, stall.tries), (&turn(0), 1, 1));
    assert!(stall.why.contains("No space left on device"), "{stall:?}");
    assert_eq!(stall.retry_in, Some(Duration::from_secs(1)));
    let mut told = store.follow_stalls();
    let again = told.wait_for(|stalls| stalls.iter().any(|it| it.tries == 3)).await;
    let again = again.expect("the store is there").clone();
    assert_eq!(again[0].retry_in, Some(Duration::from_secs(4)), "each pause is longer");
    assert_eq!(read(&store, 0).await, records(0..1));
    home.disk.heal();
    let (writer, appended) = ended(appended).await;
    appended.expect("written in the end");
    assert_eq!(stalls(&store, 0).await, []);
    drop(writer);
    assert_eq!(read(&coordinated(&home), 0).await, records(0..2));
}

#[tokio::test(start_paused = true)]
async fn a_failed_device_is_tried_when_somebody_asks() {
    let home = Home::new();
    let store = coordinated(&home);
    let writer = created(&store, 0).await;
    stuck(&home, EIO);
    let appended = append(writer, 1);
    assert_eq!(stalls(&store, 1).await[0].retry_in, None);
    home.disk.heal();
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert!(!appended.is_finished(), "it does not look by itself whether it is well again");
    store.retry();
    let (_writer, appended) = ended(appended).await;
    appended.expect("written");
    assert_eq!(read(&store, 0).await, records(0..2));
    assert_eq!(stalls(&store, 0).await, []);
}

#[tokio::test]
async fn a_flush_tries_what_is_held_once_and_says_what_is_not_written() {
    let home = Home::new();
    let store = coordinated(&home);
    let (first, second) = (created(&store, 0).await, created(&store, 1).await);
    stuck(&home, EIO);
    let appends = [append(first, 1), append(second, 1)];
    stalls(&store, 2).await;
    let failed = store.flush(None).await.expect_err("the device is broken");
    let all = [&[failed.first][..], &failed.more].concat();
    let names: Vec<_> = all.iter().map(ToString::to_string).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    for (number, said) in names.iter().enumerate() {
        let file = home.file(&turn(number));
        let expected = format!(
            "1 record of {} ({}) not written: cannot append to {}: ",
            turn(number),
            file.display(),
            file.display()
        );
        assert!(said.starts_with(&expected), "{said}");
    }
    assert_eq!(store.flush(Some(&turn(1))).await.expect_err("still").more.len(), 0);
    home.disk.heal();
    store.flush(None).await.expect("all is well");
    for appended in appends {
        ended(appended).await.1.expect("written");
    }
    assert_eq!((read(&store, 0).await, read(&store, 1).await), (records(0..2), records(0..2)));
}

/// A log whose second try to write is under way and will fail, as the first one did; the third is good.
/// Gives what waits for it, and what the second try waits for.
async fn failing_twice() -> (Coordinator, JoinHandle<Ended<Appended>>, Gate) {
    let (store, script) = scripted();
    let writer = created(&store, 0).await;
    script.fail_at(r#""n":1,"#);
    script.fail_at(r#""n":1,"#);
    let appended = append(writer, 1);
    stalls(&store, 1).await;
    let gate = script.stop_before(r#""n":1,"#);
    store.retry();
    gate.reached().await;
    (store, appended, gate)
}

#[tokio::test(start_paused = true)]
async fn a_retry_that_is_asked_for_while_one_is_under_way_comes_after_it_at_once() {
    let (store, appended, gate) = failing_twice().await;
    store.retry();
    let asked = tokio::time::Instant::now();
    gate.open();
    ended(appended).await.1.expect("the third try is good");
    assert_eq!(asked.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_flush_does_not_take_for_its_own_a_try_that_was_under_way() {
    let (store, appended, gate) = failing_twice().await;
    let mut flush = Box::pin(store.flush(None));
    assert!(futures_util::FutureExt::now_or_never(flush.as_mut()).is_none());
    gate.open();
    flush.await.expect("the third try is good");
    ended(appended).await.1.expect("written");
}

#[tokio::test]
async fn one_stuck_log_holds_up_no_other() {
    let (store, script) = scripted();
    let stuck = created(&store, 0).await;
    let mut other = created(&store, 1).await;
    let gate = script.stop_before(r#""n":1,"#);
    let appended = append(stuck, 1);
    gate.reached().await;
    for number in 2..5 {
        other.append(&[record(number)], Durability::Barrier).await.expect("written");
    }
    assert!(!appended.is_finished());
    gate.open();
    ended(appended).await.1.expect("written");
}

#[tokio::test]
async fn what_is_given_up_is_not_written_and_whoever_waits_is_told() {
    let home = Home::new();
    let store = coordinated(&home);
    let writer = created(&store, 0).await;
    stuck(&home, ENOSPC);
    let appended = append(writer, 1);
    stalls(&store, 1).await;
    let given_up = store.give_up();
    assert!(matches!(&given_up[..], [StoreError::Stalled { records: 1, .. }]), "{given_up:?}");
    let (mut writer, refused) = ended(appended).await;
    assert!(matches!(refused, Err(StoreError::Stalled { records: 1, .. })), "{refused:?}");
    assert_eq!(stalls(&store, 0).await, []);
    home.disk.heal();
    writer.append(&[record(2)], Durability::Barrier).await.expect("there is room again");
    assert_eq!(read(&store, 0).await, [record(0), record(2)]);
    assert_eq!(store.give_up().len(), 0, "nothing is held");
}

#[tokio::test]
async fn a_flush_says_what_is_given_up_while_it_waits() {
    let (store, appended, gate) = failing_twice().await;
    let mut flush = Box::pin(store.flush(None));
    assert!(futures_util::FutureExt::now_or_never(flush.as_mut()).is_none());
    // The try that is under way fails, and then there is nobody who waits for another.
    drop(store.end());
    gate.open();
    let failed = flush.await.expect_err("it is not written");
    assert!(matches!(&failed.first, StoreError::Stalled { records: 1, .. }), "{failed}");
    let (_writer, refused) = ended(appended).await;
    assert!(matches!(refused, Err(StoreError::Stalled { .. })), "{refused:?}");
    store.flush(None).await.expect("nothing waits any more");
}

#[tokio::test(start_paused = true)]
async fn what_waits_behind_a_batch_that_is_held_is_counted_with_it() {
    let home = Home::new();
    let store = coordinated(&home);
    let mut writer = created(&store, 0).await;
    stuck(&home, ENOSPC);
    for number in 1..4 {
        let batch = [record(number)];
        let waits = writer.append(&batch, Durability::Written);
        assert!(futures_util::FutureExt::now_or_never(waits).is_none());
        let mut told = store.follow_stalls();
        let counted = told.wait_for(|stalls| stalls.iter().any(|it| it.records == number)).await;
        assert_eq!(counted.expect("the store is there")[0].tries, 1);
    }
    home.disk.heal();
    writer.append(&[record(4)], Durability::Written).await.expect("written");
    assert_eq!(read(&store, 0).await, records(0..5));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_is_free_once_its_writer_is_closed_or_dropped_with_nothing_under_way() {
    let store = Coordinator::new(Arc::new(memory_store()), Tasks::new());
    drop(created(&store, 0).await);
    for number in 1..3_000 {
        let mut writer = store.open(&turn(0)).await.expect("free");
        writer.append(&[record(number)], Durability::Written).await.expect("written");
        if number % 2 == 0 {
            writer.close().await.expect("closed");
        }
    }
}

#[tokio::test]
async fn a_log_whose_writer_was_dropped_is_free_once_what_waited_is_written() {
    let (store, script) = scripted();
    let mut writer = created(&store, 0).await;
    let gate = script.stop_before(r#""n":1,"#);
    let batch = [record(1)];
    assert!(
        futures_util::FutureExt::now_or_never(writer.append(&batch, Durability::Written)).is_none()
    );
    gate.reached().await;
    drop(writer);
    let taken = store.open(&turn(0)).await;
    assert!(matches!(taken, Err(StoreError::AlreadyOwned(_))), "{taken:?}");
    gate.open();
    store.flush(Some(&turn(0))).await.expect("written");
    while store.is_live(&turn(0)) {
        tokio::task::yield_now().await;
    }
    let writer = store.open(&turn(0)).await.expect("it is free");
    assert_eq!((writer.records(), read(&store, 0).await), (2, records(0..2)));
}

#[tokio::test]
async fn a_refusal_that_is_none_of_the_disk_is_told_at_once() {
    let home = Home::new();
    let store = coordinated(&home);
    let mut writer = created(&store, 0).await;
    std::fs::write(home.file(&turn(0)), "somebody else's\n").expect("written");
    let refused = writer.append(&[record(1)], Durability::Written).await;
    assert!(matches!(refused, Err(StoreError::Changed { .. })), "{refused:?}");
    assert_eq!(stalls(&store, 0).await, []);
    assert_eq!(store.list(LogKind::Turn).await.expect("listed"), [turn(0)]);
}

#[tokio::test]
async fn a_queue_is_bounded_and_goes_on_when_there_is_room() {
    let (store, script) = scripted();
    let mut writer = created(&store, 0).await;
    let gate = Gate::clone(&script.stop_before(r#""n":1,"#));
    let big = |number| {
        let text = format!(r#"{{"n":{number},"text":"{}"}}"#, "x".repeat(9 * 1024 * 1024));
        Record::new(text).expect("a record")
    };
    for number in 1..4 {
        let batch = [big(number)];
        let waits = writer.append(&batch, Durability::Written);
        assert!(futures_util::FutureExt::now_or_never(waits).is_none());
        if number == 1 {
            gate.reached().await;
        }
    }
    gate.open();
    store.flush(None).await.expect("written");
    // The third found no room, and its place was given up before there was any.
    assert_eq!(read(&store, 0).await.len(), 3);
}
