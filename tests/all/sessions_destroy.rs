//! Destroying for good: nothing of what was said stays on the disk, whatever breaks and whoever else
//! destroys at the same time.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use turnstile::base::clock::Timestamp;
use turnstile::base::id::{EventId, SessionId, TurnId};
use turnstile::domain::message::UserMessage;
use turnstile::sessions::error::SessionError;
use turnstile::sessions::waiting::{Item, Source};
use turnstile::store::error::StoreError;
use turnstile::store::jsonl;
use turnstile::store::log::LogId;
use turnstile::store::seam::LogStore;
use turnstile::testing::disk::{Call, EIO, Fault, Plan};
use turnstile::testing::sessions::SessionWorld;
use turnstile::testing::store::scripted::{Change, ScriptedStore, Watch};
use turnstile::testing::store::{Home, memory_store, records, turn};
use turnstile::testing::turns::{answering, asking};

/// Stands in every message of the session that is destroyed, and nowhere else.
const SECRET: &str = "between us";

/// Destroys each log just before whoever asked for that does.
#[derive(Debug)]
struct Faster(Arc<dyn LogStore>);

#[async_trait]
impl Watch for Faster {
    async fn before(&self, log: &LogId, change: Change<'_>) {
        match change {
            Change::Destroy => {
                let removed = self.0.removed().await.expect("listed");
                let removed = removed.into_iter().rfind(|it| it.log == *log).expect("there");
                self.0.destroy(&removed).await.expect("destroyed");
            }
            Change::Create(_) | Change::Append(_) | Change::Remove | Change::Restore => {}
        }
    }

    async fn after(&self, _log: &LogId, _change: Change<'_>) {}

    async fn read(&self, _what: &str) {}
}

fn with_somebody_faster() -> SessionWorld {
    let store: Arc<dyn LogStore> = Arc::new(memory_store());
    let watch = Arc::new(Faster(Arc::clone(&store)));
    SessionWorld::over(Arc::new(ScriptedStore::new(store).watched_by(watch)))
}

async fn turns(world: &SessionWorld) -> BTreeSet<TurnId> {
    world.turn_repo.ids().await.expect("listed").into_iter().collect()
}

#[tokio::test]
async fn what_somebody_else_destroys_meanwhile_is_gone_and_holds_up_nothing() {
    let world = with_somebody_faster();
    let (session, other) = (world.session().await, world.session().await);
    for session in [&session, &other] {
        world.run(session, answering("One.")).await;
        world.sessions.delete_session(session).await.expect("deleted");
    }
    let found = world.sessions.find_garbage(|_| true).await.expect("listed");
    assert_eq!((found.expired.len(), found.turns.len()), (2, 2));
    let gone = world.sessions.destroy_garbage(&found).await.expect("nothing of it is left");
    assert_eq!(gone, found);
    assert_eq!(turns(&world).await, BTreeSet::new());
}

#[tokio::test]
async fn what_somebody_else_destroys_meanwhile_is_gone_in_a_purge_too() {
    let world = with_somebody_faster();
    let (session, other) = (world.session().await, world.session().await);
    world.run(&session, answering("One.")).await;
    world.run(&session, answering("Two.")).await;
    let kept = world.run(&other, answering("Three.")).await;
    world.sessions.purge_session(&session).await.expect("nothing of it is left");
    assert_eq!(turns(&world).await, BTreeSet::from([kept]));
}

/// A session in files in which something was answered, and something waits; with what stands beside
/// the logs after a crash.
async fn secretive(world: &SessionWorld, home: &Home) -> SessionId {
    let session = world.session().await;
    world.turns.then(answering(SECRET));
    let first = world.try_send(&session, SECRET).await.expect("sent");
    world.rested(&first).await;
    world.run(&session, asking()).await;
    world.queue(&session, SECRET).await;
    let logs = [LogId::session(&session), LogId::turn(&first)].map(|log| log.expect("valid"));
    for log in &logs {
        let torn = home.file(log).with_extension("jsonl.torn-0123456789abcdef");
        fs::write(torn, SECRET).expect("written");
    }
    let [_, turn] = &logs;
    fs::write(home.file(turn).with_extension("live"), SECRET).expect("written");
    session
}

/// The files that hold it, and what is left of removals.
fn left(home: &Home) -> Vec<PathBuf> {
    let mut left: Vec<_> = children(&home.work_dir().deleted());
    let mut folders = vec![home.work_dir().root().to_path_buf()];
    while let Some(folder) = folders.pop() {
        for path in children(&folder) {
            if path.is_dir() {
                folders.push(path);
            } else if holds_it(&path) {
                left.push(path);
            }
        }
    }
    left
}

fn children(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).expect("listed").map(|entry| entry.expect("listed").path()).collect()
}

fn holds_it(path: &Path) -> bool {
    String::from_utf8_lossy(&fs::read(path).expect("readable")).contains(SECRET)
}

#[tokio::test]
async fn wherever_the_disk_breaks_in_destroying_the_next_time_leaves_nothing() {
    for from in 0.. {
        let home = Home::new();
        let world = SessionWorld::in_files(&home);
        let session = secretive(&world, &home).await;
        world.sessions.delete_session(&session).await.expect("deleted");
        assert!(!left(&home).is_empty(), "it can be restored");
        let found = world.sessions.find_garbage(|_| true).await.expect("listed");
        let before = home.disk.calls().len() as u64;
        home.disk.fail(Plan { only: None, from, times: u64::MAX, fault: Fault::Error(EIO) });
        let done = world.sessions.destroy_garbage(&found).await;
        home.disk.heal();
        if home.disk.calls().len() as u64 - before <= from {
            assert!(from > 20, "it broke in {from} places");
            assert_eq!(left(&home), [""; 0].map(PathBuf::from));
            break;
        }

        let next = SessionWorld::in_files(&home);
        let found = next.sessions.find_garbage(|_| true).await.expect("listed");
        next.sessions.destroy_garbage(&found).await.expect("destroyed");
        assert_eq!(left(&home), [""; 0].map(PathBuf::from), "call {from}: {done:?}");
    }
}

#[tokio::test]
async fn wherever_the_disk_fails_once_in_a_purge_it_says_so_or_has_left_nothing() {
    for from in 0.. {
        let home = Home::new();
        let world = SessionWorld::in_files(&home);
        let session = secretive(&world, &home).await;
        let before = home.disk.calls().len() as u64;
        home.disk.fail(Plan { only: None, from, times: 1, fault: Fault::Error(EIO) });
        let purged = world.sessions.purge_session(&session).await;
        home.disk.heal();
        if purged.is_ok() {
            assert_eq!(left(&home), [""; 0].map(PathBuf::from), "call {from}");
        }
        if home.disk.calls().len() as u64 - before <= from {
            assert!(from > 20, "it broke in {from} places");
            break;
        }

        let next = SessionWorld::in_files(&home);
        let again = next.sessions.purge_session(&session).await;
        let is_gone = matches!(again, Err(SessionError::Store(StoreError::NotFound(_))));
        assert!(again.is_ok() || is_gone, "call {from}: {again:?}");
        let found = next.sessions.find_garbage(|_| true).await.expect("listed");
        next.sessions.destroy_garbage(&found).await.expect("destroyed");
        assert_eq!(left(&home), [""; 0].map(PathBuf::from), "call {from}: {purged:?}");
    }
}

#[tokio::test]
async fn what_waits_and_could_not_be_set_aside_is_destroyed_with_its_session() {
    let home = Home::new();
    let world = SessionWorld::in_files(&home);
    let session = secretive(&world, &home).await;
    let calls = home.disk.calls().len();
    world.sessions.delete_session(&session).await.expect("deleted");
    // The last renaming of a deletion is that of what waits.
    let renames = home.disk.calls().split_off(calls).into_iter().filter(|it| *it == Call::Rename);
    let last = renames.count() as u64 - 1;
    world.sessions.restore_session(&session).await.expect("restored");
    let fault = Fault::Error(EIO);
    home.disk.fail(Plan { only: Some(Call::Rename), from: last, times: u64::MAX, fault });
    world.sessions.delete_session(&session).await.expect("deleted");
    home.disk.heal();
    assert_eq!(children(&home.work_dir().runtime_state()).len(), 1, "it stands where it was");
    let found = world.sessions.find_garbage(|_| true).await.expect("listed");
    world.sessions.destroy_garbage(&found).await.expect("destroyed");
    assert_eq!(left(&home), [""; 0].map(PathBuf::from));
    assert_eq!(children(&home.work_dir().runtime_state()).len(), 0);
}

#[tokio::test]
async fn a_log_that_came_back_under_its_id_keeps_what_stands_beside_it() {
    let home = Home::new();
    let store = home.store(jsonl::Options::default());
    let log = turn(0);
    let create = async |numbers| {
        drop(store.create(&log, &records(numbers)).await.expect("created"));
    };
    create(0..2).await;
    let removed = store.remove(&log).await.expect("removed");
    create(0..1).await;
    let live = home.file(&log).with_extension("live");
    fs::write(&live, "streaming").expect("written");
    store.destroy(&removed).await.expect("destroyed");
    assert!(live.exists(), "it belongs to the new one");
}

#[tokio::test]
async fn what_another_program_puts_into_a_deleted_session_goes_with_it() {
    let home = Home::new();
    let world = SessionWorld::in_files(&home);
    let session = secretive(&world, &home).await;
    world.sessions.delete_session(&session).await.expect("deleted");
    let item = Item {
        id: EventId::from("019a7133-74c8-7000-8000-000000000001"),
        source: Source::Other("a script".to_owned()),
        created_at: Timestamp::from_ms(0),
        message: Arc::new(UserMessage::text(SECRET)),
        config: None,
    };
    world.waiting.put(&session, &item).await.expect("put");
    let found = world.sessions.find_garbage(|_| true).await.expect("listed");
    world.sessions.destroy_garbage(&found).await.expect("destroyed");
    assert_eq!(left(&home), [""; 0].map(PathBuf::from));
}

#[tokio::test]
async fn a_destruction_that_is_killed_before_the_log_goes_takes_no_message() {
    let home = Home::new();
    let world = SessionWorld::in_files(&home);
    let session = secretive(&world, &home).await;
    world.sessions.delete_session(&session).await.expect("deleted");
    let found = world.sessions.find_garbage(|_| true).await.expect("listed");
    // The first name that goes for good is that of the log.
    home.disk.fail(Plan {
        only: Some(Call::Unlink),
        from: 0,
        times: u64::MAX,
        fault: Fault::Error(EIO),
    });
    world.sessions.destroy_garbage(&found).await.expect_err("the log cannot go");
    home.disk.heal();
    let next = SessionWorld::in_files(&home);
    next.sessions.restore_session(&session).await.expect("restored");
    assert_eq!(next.waits(&session).await, [format!("[{SECRET}]")]);
}
