//! Deleting sessions and taking it back: what goes, what stays, and what races it.

use std::fs;
use std::sync::Arc;

use turnstile::base::id::ToolCallId;
use turnstile::domain::session::entry::LatestTurnStatus;
use turnstile::domain::turn::event::Decision;
use turnstile::domain::turn::status::TurnStatus;
use turnstile::sessions::error::SessionError;
use turnstile::store::jsonl::Options;
use turnstile::store::log::{LogId, LogKind};
use turnstile::testing::folder::tree;
use turnstile::testing::gate::Gate;
use turnstile::testing::sessions::SessionWorld;
use turnstile::testing::store::Home;
use turnstile::testing::turns::{Script, answering, asking};

fn home_and_world() -> (Home, SessionWorld) {
    let home = Home::new();
    let world = SessionWorld::in_files(&home);
    (home, world)
}

#[tokio::test]
async fn deleting_takes_one_log_out_of_storage_and_restoring_leaves_all_as_it_was() {
    let (home, world) = home_and_world();
    let (session, other) = (world.session().await, world.session().await);
    world.run(&session, answering("Done.")).await;
    world.run(&session, asking()).await;
    world.queue(&session, "And then?").await;
    world.run(&other, answering("Done.")).await;
    let file = home.file(&LogId::session(&session).expect("valid"));
    let torn = file.with_extension("jsonl.torn-0123456789abcdef");
    fs::write(&torn, "{\"half\":").expect("written");
    let root = home.work_dir().root().to_owned();
    let (before, list) = (tree(&root), world.sessions.list_sessions());

    world.sessions.delete_session(&session).await.expect("deleted");
    let between = tree(&root);
    let storage = root.join("storage");
    let missing = before.keys().filter(|path| !between.contains_key(*path));
    let (missing, beside): (Vec<_>, Vec<_>) = missing.partition(|it| it.starts_with(&storage));
    assert_eq!(missing, [&file, &torn], "exactly one log, with what was cut off it");
    let runtime_state = home.work_dir().runtime_state();
    assert!(beside.iter().all(|path| path.starts_with(&runtime_state)), "{beside:?}");
    assert_eq!(tree(&runtime_state).len(), 0, "and what waits in its session");
    let added = between.keys().filter(|path| !before.contains_key(*path));
    assert!(added.into_iter().all(|path| !path.starts_with(&storage)));
    assert_eq!(world.sessions.list_sessions().len(), 1);
    let unread = world.sessions.get_session(&session).await;
    assert!(matches!(unread, Err(SessionError::Store(_))), "{unread:?}");

    world.sessions.restore_session(&session).await.expect("restored");
    assert_eq!(tree(&root), before);
    assert_eq!(world.sessions.list_sessions(), list);
    assert_eq!(world.scanned().await, list);
}

#[tokio::test]
async fn a_deletion_can_be_taken_back_by_the_next_process_too() {
    let (home, world) = home_and_world();
    let session = world.session().await;
    let turn = world.run(&session, asking()).await;
    let (before, list) = (tree(home.work_dir().root()), world.sessions.list_sessions());
    world.sessions.delete_session(&session).await.expect("deleted");
    let next = SessionWorld::over(Arc::new(home.store(Options::default())));
    next.sessions.scan().await.expect("scanned");
    assert_eq!(next.sessions.list_sessions(), []);
    next.sessions.restore_session(&session).await.expect("restored");
    assert_eq!(tree(home.work_dir().root()), before);
    assert_eq!(next.sessions.list_sessions(), list);
    // It waits for the same decision as before.
    next.turns.then(Script::new().deny("c1").answer("Done."));
    let call = ToolCallId::from("c1");
    let decided = next.sessions.respond_to_permission(&turn, &call, Decision::Deny, None).await;
    decided.expect("decided");
    next.rested(&turn).await;
}

#[tokio::test]
async fn only_what_was_deleted_and_is_still_there_can_be_restored() {
    let (_home, world) = home_and_world();
    let session = world.session().await;
    let never = world.sessions.restore_session(&session).await;
    assert!(matches!(&never, Err(SessionError::NotDeleted(named)) if *named == session));
    let removed = world.sessions.delete_session(&session).await.expect("deleted");
    assert_eq!(world.sessions.last_deletion(&session).await.expect("there"), removed);
    world.repo.store().destroy(&removed).await.expect("destroyed");
    let over = world.sessions.restore_session(&session).await;
    assert!(matches!(&over, Err(SessionError::NotDeleted(named)) if *named == session));
}

#[tokio::test]
async fn of_several_deletions_the_last_is_taken_back() {
    let (_home, world) = home_and_world();
    let session = world.session().await;
    for title in ["one", "two"] {
        world.sessions.set_title(&session, title).await.expect("named");
        world.sessions.delete_session(&session).await.expect("deleted");
        world.sessions.restore_session(&session).await.expect("restored");
    }
    assert_eq!(world.entry(&session).title.as_deref(), Some("two"));
}

#[tokio::test]
async fn what_runs_in_a_session_is_stopped_before_it_goes() {
    let (home, world) = home_and_world();
    let (session, gate) = (world.session().await, Gate::new());
    let turn = world.send(&session, Script::new().gate(&gate).answer("Done.")).await;
    gate.reached().await;
    world.sessions.delete_session(&session).await.expect("deleted");
    assert!(!world.sessions.is_running(&turn));
    assert!(home.file(&LogId::turn(&turn).expect("valid")).exists(), "turns stay");
    assert_eq!(world.sessions.list_sessions(), []);
    world.sessions.restore_session(&session).await.expect("restored");
    let stopped = LatestTurnStatus::Turn(TurnStatus::Cancelled);
    assert_eq!(world.entry(&session).latest_turn_status, stopped);
}

#[tokio::test]
async fn what_runs_is_stopped_although_the_scan_has_not_come_to_the_session() {
    let (_home, world) = home_and_world();
    let session = world.session().await;
    let turn = world.run(&session, asking()).await;
    let (next, gate) = (world.restarted(), Gate::new());
    assert_eq!(next.sessions.list_sessions(), []);
    next.turns.then(Script::new().gate(&gate));
    let call = ToolCallId::from("c1");
    let decided = next.sessions.respond_to_permission(&turn, &call, Decision::Allow, None).await;
    decided.expect("decided");
    next.sessions.delete_session(&session).await.expect("deleted");
    assert!(!next.sessions.is_running(&turn));
}

#[tokio::test]
async fn nothing_starts_in_a_session_that_is_being_deleted() {
    let (_home, world) = home_and_world();
    let (session, hold) = (world.session().await, Gate::new());
    let script = Script::new()
        .calls("c1:write-file c2:read-file")
        .ask("c1:write-file")
        .run("c2")
        .hold(&hold);
    let turn = world.send(&session, script).await;
    hold.reached().await;
    let delete = world.sessions.delete_session(&session);
    tokio::pin!(delete);
    assert!(futures_util::poll!(&mut delete).is_pending(), "it waits for the turn");
    let call = ToolCallId::from("c1");
    let refusals = [
        world.sessions.respond_to_permission(&turn, &call, Decision::Allow, None).await,
        world.try_send(&session, "Go.").await.map(drop),
        world.sessions.set_title(&session, "x").await,
        world.sessions.resume_turn(&session).await,
        world.sessions.close_interrupted(&session).await,
        world.sessions.delete_session(&session).await.map(drop),
    ];
    for refused in refusals {
        assert!(matches!(refused, Err(SessionError::BeingDeleted(_))), "{refused:?}");
    }
    hold.open();
    delete.await.expect("deleted");
    assert_eq!(world.sessions.list_sessions(), []);
    let late = world.try_send(&session, "Go.").await;
    assert!(matches!(late, Err(SessionError::Store(_))), "{late:?}");
    world.sessions.restore_session(&session).await.expect("restored");
    world.run(&session, answering("Done.")).await;
}

#[tokio::test]
async fn a_late_rest_never_brings_a_deleted_session_back() {
    let (_home, world) = home_and_world();
    let (session, late) = (world.session().await, Gate::new());
    let turn = world.run(&session, asking()).await;
    world.turns.stop_arrival(&late);
    let call = ToolCallId::from("c1");
    let answer = world.sessions.respond_to_permission(&turn, &call, Decision::Allow, None);
    let delete = async {
        late.reached().await;
        let delete = world.sessions.delete_session(&session);
        tokio::pin!(delete);
        assert!(futures_util::poll!(&mut delete).is_pending(), "it waits for the answer's rest");
        late.open();
        delete.await
    };
    let (answered, deleted) = tokio::join!(answer, delete);
    deleted.expect("deleted");
    assert!(answered.is_err(), "{answered:?}");
    assert_eq!(world.sessions.list_sessions(), []);
    // Nothing is left to answer in.
    let gone = world.sessions.respond_to_permission(&turn, &call, Decision::Allow, None).await;
    assert!(gone.is_err());
    assert_eq!(world.sessions.list_sessions(), []);
    assert_eq!(world.scanned().await, []);
}

#[tokio::test]
async fn one_session_s_deletion_touches_no_other() {
    let (_home, world) = home_and_world();
    let (session, other, gate) = (world.session().await, world.session().await, Gate::new());
    world.run(&session, answering("Done.")).await;
    let turn = world.send(&other, Script::new().gate(&gate).answer("Done.")).await;
    gate.reached().await;
    world.sessions.delete_session(&session).await.expect("deleted");
    assert!(world.sessions.is_running(&turn));
    gate.open();
    world.rested(&turn).await;
    assert_eq!(world.sessions.list_sessions(), [Arc::new(world.entry(&other))]);
    assert_eq!(world.turn_repo.ids().await.expect("listed").len(), 2);
    let sessions = world.repo.store().list(LogKind::Session).await.expect("listed");
    assert_eq!(sessions, [LogId::session(&other).expect("valid")]);
}
