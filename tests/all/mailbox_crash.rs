//! A program that dies while messages wait, are taken into a turn and become one: whichever call of the
//! disk was its last, the next program delivers each of them once.

use turnstile::base::id::SessionId;
use turnstile::domain::session::entry::LatestTurnStatus;
use turnstile::domain::turn::status::TurnStatus;
use turnstile::sessions::api::NewSession;
use turnstile::testing::disk::{Call, EIO, Fault, Plan};
use turnstile::testing::gate::Gate;
use turnstile::testing::sessions::SessionWorld;
use turnstile::testing::store::Home;
use turnstile::testing::turns::Script;

/// Runs one program, which is gone with all it did in the background when this returns.
fn program<T>(life: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(life)
}

/// Goes on once somebody stands at the gate, or nothing runs any more.
async fn reached(world: &SessionWorld, gate: &Gate) {
    tokio::select! {
        biased;
        // Neither wait loses anything.
        () = gate.reached() => {}
        () = world.quiet() => {}
    }
}

/// A turn that takes in one message, and a second message that follows it. Gives the session, and
/// what the person was told is safe.
async fn first_life(home: &Home) -> Option<(SessionId, Vec<&'static str>)> {
    let world = SessionWorld::in_files(home);
    let (boundary, end) = (Gate::new(), Gate::new());
    let session = world.sessions.create_session(NewSession::default()).await.ok()?;
    world.turns.then(Script::new().gate(&boundary).boundary().gate(&end).answer("Done."));
    let mut told = Vec::new();
    for (text, gate, next) in
        [("first", &boundary, &boundary), ("second", &boundary, &end), ("third", &end, &end)]
    {
        if world.try_queue(&session, text).await.is_ok() {
            told.push(text);
        }
        reached(&world, gate).await;
        if text != "first" {
            gate.open();
            reached(&world, next).await;
        }
    }
    world.quiet().await;
    Some((session, told))
}

/// What the turns are about in the end, once the person has sent all that is held.
async fn second_life(home: &Home, session: &SessionId) -> Vec<String> {
    let world = SessionWorld::in_files(home);
    world.sessions.scan().await.expect("scanned");
    world.sessions.recover_queues().await.expect("recovered");
    let interrupted = LatestTurnStatus::Turn(TurnStatus::Idle);
    if world.entry(session).latest_turn_status == interrupted {
        world.sessions.close_interrupted(session).await.expect("closed");
    }
    while !world.waits(session).await.is_empty() {
        world.sessions.send_waiting(session).await.expect("sent");
        world.quiet().await;
    }
    let undelivered = world.waiting.look(session).await.expect("readable");
    assert_eq!(undelivered.count(), 0);
    world.said(session).await
}

/// Before each call that changes anything: what a program that dies between two of them leaves.
fn changes(calls: &[Call]) -> Vec<u64> {
    let reads = [Call::Open, Call::Entries, Call::Stat, Call::Read, Call::Lock, Call::SyncFolder];
    let changes = (0..).zip(calls).filter(|(_, call)| !reads.contains(call));
    changes.map(|(number, _)| number).collect()
}

#[test]
fn whenever_the_program_dies_each_message_is_delivered_once() {
    let whole = Home::new();
    let (_, told) = program(first_life(&whole)).expect("nothing is in the way");
    assert_eq!(told, ["first", "second", "third"]);
    let calls = changes(&whole.disk.calls());
    assert!(calls.len() > 50, "{calls:?}");
    for call in calls {
        let home = Home::new();
        let prepared = home.disk.calls().len() as u64;
        let from = call.saturating_sub(prepared);
        home.disk.fail(Plan { only: None, from, times: u64::MAX, fault: Fault::Error(EIO) });
        let lived = program(first_life(&home));
        home.disk.heal();
        let Some((session, told)) = lived else { continue };
        let said = program(second_life(&home, &session));
        let said: Vec<_> = said.iter().flat_map(|turn| turn.split(" + ")).collect();
        for text in ["first", "second", "third"] {
            let times = said.iter().filter(|it| **it == text).count();
            assert!(times <= 1, "call {call}: {text} is there {times} times: {said:?}");
            assert!(times == 1 || !told.contains(&text), "call {call}: {text} is lost");
        }
        assert!(said.is_sorted(), "call {call}: {said:?}");
    }
}
