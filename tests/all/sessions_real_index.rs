//! The index, by the numbers of `spec/session-layer.md` section 13, on the real runtime.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use turnstile::base::id::{SessionId, TurnId};
use turnstile::domain::session::entry::LatestTurnStatus;
use turnstile::domain::turn::status::TurnStatus;
use turnstile::models::error::Failure;
use turnstile::sessions::index::IndexChange;
use turnstile::store::jsonl::Options;
use turnstile::store::log::LogId;
use turnstile::testing::gate::Gate;
use turnstile::testing::model::Reply;
use turnstile::testing::store::Home;

use crate::sessions_real_world::{World, copy, says, writes};

#[tokio::test]
async fn s13_6_every_status_is_derived_from_the_latest_turn_on_the_real_runtime() {
    let world = World::new();
    let (session, gate) = (world.session().await, Gate::new());
    let check = |expected| assert_eq!(world.status(&session), expected);
    check(LatestTurnStatus::None);
    world.run(&session, says("Done.")).await;
    check(LatestTurnStatus::Turn(TurnStatus::Completed));
    world.model.then(Reply::new().fail(Failure::ServerError));
    world.try_send(&session).await.expect("sent");
    world.rested().await;
    check(LatestTurnStatus::Turn(TurnStatus::Failed));
    let turn = world.run(&session, writes()).await;
    check(LatestTurnStatus::Turn(TurnStatus::Suspended));
    world.sessions.stop_turn(&turn, None).await.expect("stopped");
    check(LatestTurnStatus::Turn(TurnStatus::Cancelled));
    world.send(&session, says("One").gate(&gate).text(".")).await;
    gate.reached().await;
    let next = copy(&world).await;
    next.sessions.scan().await.expect("scanned");
    assert_eq!(next.status(&session), LatestTurnStatus::Turn(TurnStatus::Idle));
}

#[tokio::test]
async fn s13_6_a_damaged_file_makes_an_errored_entry_on_the_real_runtime() {
    let home = Home::new();
    let world = World::over(Arc::new(home.store(Options::default())), 42);
    let mut all: Vec<(SessionId, TurnId)> = Vec::new();
    for _ in 0..3 {
        let session = world.session().await;
        let turn = world.run(&session, says("Done.")).await;
        all.push((session, turn));
    }
    let [(whole, _), (bad_session, _), (bad_turn, turn)] = &all[..] else { panic!("three") };
    let spoil = |path: &Path| {
        let text = fs::read_to_string(path).expect("there");
        fs::write(path, text.replacen("\"type\":\"", "\"type\":\"no_", 1)).expect("written");
    };
    spoil(&home.file(&LogId::session(bad_session).expect("valid")));
    spoil(&home.file(&LogId::turn(turn).expect("valid")));
    let next = World::over(Arc::new(home.store(Options::default())), 43);
    next.sessions.scan().await.expect("scanned");
    assert_eq!(next.sessions.list_sessions().len(), 3, "the scan goes on");
    let error = |session| next.sessions.index().get(session).expect("listed").error.clone();
    assert_eq!(error(whole), None);
    for session in [bad_session, bad_turn] {
        assert!(error(session).is_some_and(|why| why.contains("corrupt at line 1")), "{session}");
        assert!(next.try_send(session).await.is_err(), "nothing is built on it");
    }
    next.run(whole, says("Two.")).await;
    assert_eq!(next.status(whole), LatestTurnStatus::Turn(TurnStatus::Completed));
}

#[tokio::test]
async fn s13_6_mutations_are_told_and_deletion_removes_the_entry_on_the_real_runtime() {
    let world = World::new();
    let mut changes = world.sessions.index().follow();
    let mut last = |what: &str| {
        let mut last = None;
        while let Ok(IndexChange::Session { entry, .. }) = changes.try_recv() {
            last = Some(entry);
        }
        last.unwrap_or_else(|| panic!("{what} was not told"))
    };
    let session = world.session().await;
    let now = || world.sessions.index().get(&session);
    assert_eq!(last("the creation"), now());
    let turn = world.run(&session, writes()).await;
    assert_eq!(last("the turn and its rest"), now());
    world.sessions.set_title(&session, "Renamed").await.expect("named");
    assert_eq!(last("the new name"), now());
    world.sessions.stop_turn(&turn, None).await.expect("stopped");
    assert_eq!(last("the end"), now());
    world.sessions.delete_session(&session).await.expect("deleted");
    assert_eq!((last("the deletion"), now()), (None, None));
    assert_eq!(world.scanned().await, []);
    assert_eq!(world.turns.ids().await.expect("listed"), [turn], "its turns stay");
    world.sessions.restore_session(&session).await.expect("restored");
    assert_eq!(last("the restoration"), now());
    assert_eq!(world.scanned().await, world.sessions.list_sessions());
}
