//! Destroying for good: what is garbage, what is not, what cannot be told, and one session at once.

use std::collections::BTreeSet;
use std::fs;
use std::slice;
use std::sync::Arc;

use turnstile::base::id::{SessionId, TurnId};
use turnstile::domain::agent::RequestedAgent;
use turnstile::domain::message::UserMessage;
use turnstile::domain::session::event::Origin;
use turnstile::domain::turn::event::{ContextRef, TurnContext};
use turnstile::runtime::api::{CreateTurn, StopSignal, Turns as _};
use turnstile::runtime::headless::{HeadlessTurn, start_headless};
use turnstile::sessions::Options;
use turnstile::sessions::api::NewSession;
use turnstile::sessions::error::{BeingDeleted, SessionError};
use turnstile::sessions::gc::Garbage;
use turnstile::store::error::StoreError;
use turnstile::store::jsonl;
use turnstile::store::log::{LogId, LogKind, Removed};
use turnstile::store::work_dir::WorkDir;
use turnstile::testing::disk::{EIO, Fault, Plan};
use turnstile::testing::gate::Gate;
use turnstile::testing::sessions::SessionWorld;
use turnstile::testing::store::Home;
use turnstile::testing::turns::{Script, answering, asking};

use crate::sessions_real_world::{World, says};

fn over(home: &Home) -> SessionWorld {
    SessionWorld::over(Arc::new(home.store(jsonl::Options::default())))
}

/// What is garbage if nothing that was deleted is to be kept.
async fn garbage(world: &SessionWorld) -> Garbage {
    world.sessions.find_garbage(|_| true).await.expect("listed")
}

/// What is garbage if all that was deleted is to be kept.
async fn unreached(world: &SessionWorld) -> Vec<TurnId> {
    let found = world.sessions.find_garbage(|_| false).await.expect("listed");
    assert_eq!((found.expired, found.unsure), (Vec::new(), Vec::<String>::new()));
    found.turns
}

async fn turns(world: &SessionWorld) -> BTreeSet<TurnId> {
    world.turn_repo.ids().await.expect("listed").into_iter().collect()
}

async fn delete(world: &SessionWorld, session: &SessionId) -> Removed {
    world.sessions.delete_session(session).await.expect("deleted")
}

async fn fork(world: &SessionWorld, session: &SessionId, at: &TurnId) -> SessionId {
    world.sessions.fork_session(session, Some(at)).await.expect("forked")
}

/// How many removals have left anything on the disk.
fn kept_of_removals(home: &Home) -> usize {
    fs::read_dir(home.work_dir().deleted()).expect("there").count()
}

#[tokio::test]
async fn what_sessions_reach_is_no_garbage() {
    let world = SessionWorld::new();
    let session = world.session().await;
    assert_eq!(garbage(&world).await, Garbage::default());
    world.run(&session, answering("One.")).await;
    world.run(&session, asking()).await;
    assert_eq!(garbage(&world).await, Garbage::default());
}

#[tokio::test]
async fn the_turns_of_a_deleted_session_are_kept_as_long_as_it_can_be_restored() {
    let world = SessionWorld::new();
    let (session, other) = (world.session().await, world.session().await);
    let first = world.run(&session, answering("One.")).await;
    let second = world.run(&session, answering("Two.")).await;
    let kept = world.run(&other, answering("Other.")).await;
    let removed = delete(&world, &session).await;
    assert_eq!(unreached(&world).await, []);

    let found = garbage(&world).await;
    let expected =
        Garbage { expired: vec![removed], turns: vec![first, second], unsure: Vec::new() };
    assert_eq!(found, expected);
    assert_eq!(turns(&world).await.len(), 3, "looking destroys nothing");
    assert_eq!(world.sessions.destroy_garbage(&found).await.expect("destroyed"), expected);
    assert_eq!(turns(&world).await, BTreeSet::from([kept]));
    let over = world.sessions.restore_session(&session).await;
    assert!(matches!(over, Err(SessionError::NotDeleted(_))), "{over:?}");
    assert_eq!(garbage(&world).await, Garbage::default());
}

#[tokio::test]
async fn what_the_layer_asked_aside_is_garbage_once_nobody_asks_any_more() {
    let world = SessionWorld::new().with(Options { auto_title: true, ..Options::default() });
    let session = world.session().await;
    let gate = Gate::new();
    world.turns.then(answering("One."));
    world.turns.then(Script::new().gate(&gate).answer("A name"));
    let turn = world.try_send(&session, "One?").await.expect("sent");
    gate.reached().await;
    let asked = world.turns.advances().pop().expect("the question").turn;
    assert_eq!(unreached(&world).await, [], "it is being asked");

    // The next process, after the first was killed.
    let next = world.restarted();
    assert_eq!(unreached(&next).await, slice::from_ref(&asked));
    let found = garbage(&next).await;
    next.sessions.destroy_garbage(&found).await.expect("destroyed");
    assert_eq!(turns(&next).await, BTreeSet::from([turn]));
}

#[tokio::test]
async fn a_fork_keeps_what_it_inherited_and_still_opens() {
    let world = SessionWorld::new();
    let session = world.session().await;
    let first = world.run(&session, answering("One.")).await;
    let second = world.run(&session, answering("Two.")).await;
    let fork = fork(&world, &session, &first).await;
    delete(&world, &session).await;
    let found = garbage(&world).await;
    assert_eq!(found.turns, [second]);
    world.sessions.destroy_garbage(&found).await.expect("destroyed");
    let third = world.run(&fork, answering("Three.")).await;
    let state = world.sessions.get_session(&fork).await.expect("readable");
    for turn in &state.turns {
        world.sessions.get_turn(&turn.id).await.expect("it is there");
    }
    assert_eq!(turns(&world).await, BTreeSet::from([first, third]));
    assert_eq!(garbage(&world).await, Garbage::default());
}

#[tokio::test]
async fn what_a_reached_turn_goes_back_to_is_reached() {
    let world = SessionWorld::new();
    let session = world.session().await;
    let first = world.run(&session, answering("One.")).await;
    let second = world.run(&session, answering("Two.")).await;
    let third = world.run(&session, answering("Three.")).await;
    // A turn without a session that goes on from the second one, which goes on from the first.
    let created = world.turns.created().pop().expect("created");
    let reference = ContextRef { previous_turn_id: second.clone() };
    let context = TurnContext::Previous(reference);
    let alone = CreateTurn { session_id: None, context, ..created };
    let alone = world.turns.create_turn(alone).await.expect("created");
    delete(&world, &session).await;
    let found = garbage(&world).await;
    assert_eq!(found.turns, [third]);
    world.sessions.destroy_garbage(&found).await.expect("destroyed");
    assert_eq!(turns(&world).await, BTreeSet::from([first, second, alone]));
}

#[tokio::test]
async fn a_turn_without_a_session_is_never_garbage_and_one_that_was_never_added_is() {
    let world = SessionWorld::new();
    let turn = HeadlessTurn {
        agent: RequestedAgent::by_id("assistant"),
        context: Vec::new(),
        input: Arc::new(UserMessage::text("Alone.")),
        max_model_calls: None,
        folder: "/project".into(),
        now: turnstile::base::clock::Timestamp::from_ms(0),
        reasoning_effort: None,
    };
    let run = start_headless(&world.turns, turn, StopSignal::new()).await.expect("started");
    let alone = run.turn.clone();
    run.finish(&world.turns).await.expect("answered");
    // As if the program had been killed before the turn was added to its session.
    let session = world.session().await;
    world.run(&session, answering("One.")).await;
    let created = world.turns.created().pop().expect("created");
    let orphan = world.turns.create_turn(created).await.expect("created");
    let found = garbage(&world).await;
    assert_eq!(found.turns, [orphan]);
    world.sessions.destroy_garbage(&found).await.expect("destroyed");
    assert!(turns(&world).await.contains(&alone));
}

#[tokio::test]
async fn what_cannot_be_read_may_need_any_turn() {
    for harm in [Harm::Damaged, Harm::Misplaced] {
        for kind in [LogKind::Session, LogKind::Turn] {
            let home = Home::new();
            let world = over(&home);
            let (session, other) = (world.session().await, world.session().await);
            world.run(&session, answering("One.")).await;
            let turn = world.run(&other, answering("Two.")).await;
            delete(&world, &session).await;
            let log = match kind {
                LogKind::Session => LogId::session(&other).expect("valid"),
                LogKind::Turn => LogId::turn(&turn).expect("valid"),
            };
            match harm {
                Harm::Damaged => damage(&home, &log),
                Harm::Misplaced => misplace(&home, &log),
            }

            let next = over(&home);
            let found = garbage(&next).await;
            assert_eq!((found.expired.len(), &found.turns), (1, &Vec::new()), "{harm:?} {log}");
            let [unsure] = &found.unsure[..] else { panic!("{log}: {:?}", found.unsure) };
            assert!(unsure.contains(log.id()), "{harm:?} {log}: {unsure}");
            let gone = next.sessions.destroy_garbage(&found).await.expect("destroyed");
            assert_eq!((gone.expired.len(), gone.turns.len()), (1, 0), "{harm:?} {log}");
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Harm {
    Damaged,
    Misplaced,
}

fn misplace(home: &Home, log: &LogId) {
    let (file, folder) = (home.file(log), home.work_dir().logs(log.kind()));
    let name = file.file_name().expect("a name");
    fs::rename(&file, folder.join(name)).expect("moved");
}

fn damage(home: &Home, log: &LogId) {
    fs::write(home.file(log), "{}\n").expect("written");
}

#[tokio::test]
async fn a_deleted_session_that_cannot_be_read_keeps_all_turns_until_it_expires() {
    let home = Home::new();
    let world = over(&home);
    let session = world.session().await;
    world.run(&session, answering("One.")).await;
    damage(&home, &LogId::session(&session).expect("valid"));
    let world = over(&home);
    delete(&world, &session).await;
    let kept = world.sessions.find_garbage(|_| false).await.expect("listed");
    assert_eq!((kept.turns.len(), kept.unsure.len()), (0, 1), "{:?}", kept.unsure);
    let found = garbage(&world).await;
    assert_eq!((found.expired.len(), found.turns.len(), found.unsure.len()), (1, 1, 0));
}

#[tokio::test]
async fn only_what_is_still_garbage_is_destroyed() {
    let world = SessionWorld::new();
    let (session, other) = (world.session().await, world.session().await);
    let turn = world.run(&session, answering("One.")).await;
    world.run(&other, answering("Two.")).await;
    delete(&world, &session).await;
    delete(&world, &other).await;
    let found = garbage(&world).await;
    world.sessions.restore_session(&session).await.expect("restored");
    let gone = world.sessions.destroy_garbage(&found).await.expect("destroyed");
    assert_eq!((gone.expired.len(), gone.turns.len()), (1, 1));
    assert_eq!(turns(&world).await, BTreeSet::from([turn]));
    world.run(&session, answering("Three.")).await;
}

#[tokio::test]
async fn with_a_turn_goes_all_that_belongs_to_it() {
    let home = Home::new();
    let world = over(&home);
    let session = world.session().await;
    let turn = world.run(&session, answering("One.")).await;
    let log = LogId::turn(&turn).expect("valid");
    let (file, output) =
        (home.file(&log), home.work_dir().output_of(&log).expect("a turn has one"));
    assert_eq!(output, home.work_dir().root().join(WorkDir::OUTPUT).join(turn.as_str()));
    let beside = ["live", "jsonl.torn-0123456789abcdef"].map(|end| file.with_extension(end));
    fs::create_dir_all(&output).expect("a folder");
    for path in beside.iter().chain([&output.join("call.txt")]) {
        fs::write(path, "something").expect("written");
    }
    delete(&world, &session).await;
    let found = garbage(&world).await;
    world.sessions.destroy_garbage(&found).await.expect("destroyed");
    for path in beside.iter().chain([&file, &output]) {
        assert!(!path.exists(), "{} is there", path.display());
    }
    assert_eq!(kept_of_removals(&home), 0);
}

#[tokio::test]
async fn wherever_the_disk_breaks_in_destroying_the_next_time_does_the_rest() {
    let fault = Fault::Error(EIO);
    let mut broken = 0;
    for from in 0.. {
        let home = Home::new();
        let world = over(&home);
        let (session, other) = (world.session().await, world.session().await);
        world.run(&session, answering("One.")).await;
        let kept = world.run(&other, answering("Two.")).await;
        delete(&world, &session).await;
        let found = garbage(&world).await;
        home.disk.fail(Plan { only: None, from, times: u64::MAX, fault });
        let done = world.sessions.destroy_garbage(&found).await;
        home.disk.heal();

        let next = over(&home);
        let left = garbage(&next).await;
        assert_eq!(left.unsure, Vec::<String>::new());
        next.sessions.destroy_garbage(&left).await.expect("destroyed");
        assert_eq!(turns(&next).await, BTreeSet::from([kept.clone()]));
        assert_eq!(garbage(&next).await, Garbage::default());
        assert_eq!(kept_of_removals(&home), 0, "call {from}");
        next.run(&other, answering("Three.")).await;
        if done.is_ok() {
            broken = from;
            break;
        }
    }
    assert!(broken > 5, "it broke in {broken} places");
}

#[tokio::test]
async fn a_turn_that_is_being_added_is_not_garbage() {
    let world = SessionWorld::new();
    let session = world.session().await;
    let gate = Gate::new();
    world.turns.stop_after_create(&gate);
    world.turns.then(answering("One."));
    let message = world.try_send(&session, "Hi.");
    let collect = async {
        gate.reached().await;
        // Who only looks waits for nobody.
        let found = garbage(&world).await;
        let mut destroyed = Box::pin(world.sessions.destroy_garbage(&found));
        for _ in 0..10_000 {
            let early = futures_util::poll!(&mut destroyed);
            assert!(early.is_pending(), "it waits until the turn is in its session: {early:?}");
            tokio::task::yield_now().await;
        }
        gate.open();
        destroyed.await.expect("nothing to destroy")
    };
    let (sent, destroyed) = tokio::join!(message, collect);
    assert_eq!(destroyed, Garbage::default());
    let turn = sent.expect("sent");
    world.rested(&turn).await;
    assert_eq!(turns(&world).await, BTreeSet::from([turn]));
}

#[tokio::test]
async fn a_purge_takes_the_session_and_the_turns_that_only_it_reaches_at_once() {
    let home = Home::new();
    let world = over(&home);
    let (session, other) = (world.session().await, world.session().await);
    let shared = world.run(&session, answering("One.")).await;
    let own = world.run(&session, answering("Two.")).await;
    let kept = world.run(&other, answering("Other.")).await;
    let fork = fork(&world, &session, &shared).await;
    world.sessions.purge_session(&session).await.expect("purged");
    assert_eq!(turns(&world).await, BTreeSet::from([shared.clone(), kept.clone()]));
    assert!(!home.file(&LogId::turn(&own).expect("valid")).exists());
    assert_eq!(world.repo.store().removed().await.expect("listed"), []);
    let restored = world.sessions.restore_session(&session).await;
    assert!(matches!(restored, Err(SessionError::NotDeleted(_))), "{restored:?}");
    assert_eq!(world.scanned().await, world.sessions.list_sessions());
    world.run(&fork, answering("Instead.")).await;

    // The last one that reaches an inherited turn takes it along.
    world.sessions.purge_session(&fork).await.expect("purged");
    assert_eq!(turns(&world).await, BTreeSet::from([kept]));
    assert_eq!(garbage(&world).await, Garbage::default());
}

#[tokio::test]
async fn a_purge_follows_the_agents_that_were_spawned_and_no_forks() {
    let world = SessionWorld::new();
    let session = world.session().await;
    let spawned = |parent: &SessionId, origin| NewSession {
        parent_session: Some(parent.clone()),
        origin,
        ..NewSession::default()
    };
    let sessions = &world.sessions;
    let create = |new| async move { sessions.create_session(new).await.expect("created") };
    let child = create(spawned(&session, Some(Origin::Subagent))).await;
    let grandchild = create(spawned(&child, Some(Origin::Subagent))).await;
    let job = create(spawned(&session, Some(Origin::Job))).await;
    let mut kept = BTreeSet::new();
    for id in [&session, &child, &grandchild, &job] {
        let turn = world.run(id, answering("Done.")).await;
        if *id == job {
            kept.insert(turn);
        }
    }
    world.sessions.purge_session(&session).await.expect("purged");
    assert_eq!(turns(&world).await, kept);
    let left: Vec<_> = sessions.list_sessions().iter().map(|it| it.session_id.clone()).collect();
    assert_eq!(left, [job]);
}

#[tokio::test]
async fn wherever_the_disk_breaks_in_a_purge_it_can_be_made_again() {
    let fault = Fault::Error(EIO);
    for from in 0.. {
        let home = Home::new();
        let world = over(&home);
        let (session, other) = (world.session().await, world.session().await);
        world.run(&session, answering("One.")).await;
        let kept = world.run(&other, answering("Two.")).await;
        let spawned = NewSession {
            parent_session: Some(session.clone()),
            origin: Some(Origin::Subagent),
            ..NewSession::default()
        };
        let spawned = world.sessions.create_session(spawned).await.expect("created");
        world.run(&spawned, answering("Three.")).await;
        home.disk.fail(Plan { only: None, from, times: u64::MAX, fault });
        let purged = world.sessions.purge_session(&session).await;
        home.disk.heal();
        if purged.is_ok() {
            assert!(from > 20, "it broke in {from} places");
            break;
        }

        let next = over(&home);
        let again = next.sessions.purge_session(&session).await;
        let is_gone = matches!(again, Err(SessionError::Store(StoreError::NotFound(_))));
        assert!(again.is_ok() || is_gone, "call {from}: {again:?}");
        assert_eq!(next.repo.ids().await.expect("listed"), [other], "call {from}");
        let left = garbage(&next).await;
        assert_eq!(left.unsure.len(), 0, "call {from}");
        next.sessions.destroy_garbage(&left).await.expect("destroyed");
        assert_eq!(turns(&next).await, BTreeSet::from([kept]), "call {from}");
        assert_eq!(garbage(&next).await, Garbage::default(), "call {from}");
        assert_eq!(kept_of_removals(&home), 0, "call {from}");
    }
}

#[tokio::test]
async fn a_purge_stops_what_runs_and_nothing_starts_meanwhile() {
    let world = SessionWorld::new();
    let session = world.session().await;
    let (begun, held) = (Gate::new(), Gate::new());
    let turn = world.send(&session, Script::new().gate(&begun).hold(&held).answer("No.")).await;
    begun.reached().await;
    begun.open();
    held.reached().await;
    let work = async {
        let refused = loop {
            match world.sessions.set_title(&session, "x").await {
                Ok(()) => tokio::task::yield_now().await,
                Err(error) => break error,
            }
        };
        assert!(matches!(refused, SessionError::BeingDeleted(BeingDeleted(_))), "{refused:?}");
        held.open();
    };
    let (purged, ()) = tokio::join!(world.sessions.purge_session(&session), work);
    purged.expect("purged");
    assert!(!world.sessions.is_running(&turn));
    assert_eq!((turns(&world).await, world.scanned().await), (BTreeSet::new(), Vec::new()));
}

#[tokio::test]
async fn a_purge_that_might_take_what_others_need_takes_nothing() {
    let home = Home::new();
    let world = over(&home);
    let (session, other) = (world.session().await, world.session().await);
    world.run(&session, answering("One.")).await;
    world.run(&other, answering("Two.")).await;
    damage(&home, &LogId::session(&other).expect("valid"));
    let world = over(&home);
    world.sessions.scan().await.expect("scanned");
    let refused = world.sessions.purge_session(&session).await.expect_err("not told");
    assert!(matches!(refused, SessionError::Entangled { .. }), "{refused:?}");
    assert!(refused.to_string().contains(other.as_str()), "{refused}");
    assert_eq!((turns(&world).await.len(), world.scanned().await.len()), (2, 2));
    world.run(&session, answering("It goes on.")).await;

    // The damaged one itself can go, with the turns that say they are its own.
    world.sessions.purge_session(&other).await.expect("purged");
    assert_eq!((turns(&world).await.len(), world.scanned().await.len()), (2, 1));
    let missing = world.sessions.purge_session(&other).await;
    assert!(matches!(missing, Err(SessionError::Store(StoreError::NotFound(_)))), "{missing:?}");
}

#[tokio::test]
async fn a_purge_takes_a_damaged_turn_that_no_other_session_has() {
    let home = Home::new();
    let world = over(&home);
    let (session, other) = (world.session().await, world.session().await);
    world.run(&session, answering("One.")).await;
    let turn = world.run(&session, answering("Two.")).await;
    let kept = world.run(&other, answering("Other.")).await;
    let fork = fork(&world, &session, &turn).await;
    damage(&home, &LogId::turn(&turn).expect("valid"));
    let world = over(&home);
    world.sessions.scan().await.expect("scanned");
    for shared in [&session, &other] {
        let refused = world.sessions.purge_session(shared).await.expect_err("not told");
        assert!(matches!(refused, SessionError::Entangled { .. }), "{refused:?}");
        assert!(refused.to_string().contains(turn.as_str()), "{refused}");
    }
    let fork = delete(&world, &fork).await;
    let refused = world.sessions.purge_session(&session).await;
    assert!(matches!(refused, Err(SessionError::Entangled { .. })), "{refused:?}");
    world.repo.store().destroy(&fork).await.expect("destroyed");
    world.sessions.purge_session(&session).await.expect("purged");
    assert_eq!(turns(&world).await, BTreeSet::from([kept]));
}

#[tokio::test]
async fn a_purge_on_the_real_runtime_leaves_no_turn_behind() {
    let world = World::new();
    let (session, other) = (world.session().await, world.session().await);
    world.run(&session, says("One.")).await;
    world.run(&session, says("Two.")).await;
    let kept = world.run(&other, says("Other.")).await;
    world.sessions.purge_session(&session).await.expect("purged");
    assert_eq!(world.turns.ids().await.expect("listed"), [kept]);
    assert_eq!(world.scanned().await, world.sessions.list_sessions());
}
