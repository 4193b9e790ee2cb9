//! Stopping, resuming and closing turns, by the numbers of `spec/session-layer.md` section 13, and
//! the races around them, on a scripted runtime.

use turnstile::base::id::{SessionId, ToolCallId, TurnId};
use turnstile::domain::session::entry::LatestTurnStatus;
use turnstile::domain::turn::event::Decision;
use turnstile::domain::turn::state::{Terminal, TerminalKind};
use turnstile::domain::turn::status::TurnStatus;
use turnstile::runtime::api::ExternalInput;
use turnstile::runtime::error::{AdvanceError, InputRefused};
use turnstile::sessions::error::SessionError;
use turnstile::testing::gate::Gate;
use turnstile::testing::sessions::SessionWorld;
use turnstile::testing::turns::{Script, answering, asking};

fn c1() -> ToolCallId {
    ToolCallId::from("c1")
}

async fn terminal(world: &SessionWorld, turn: &TurnId) -> Option<Terminal> {
    world.sessions.get_turn(turn).await.expect("readable").state.terminal
}

/// Why the turn was cancelled.
async fn cancelled_by(world: &SessionWorld, turn: &TurnId) -> Option<String> {
    let terminal = terminal(world, turn).await.map(|terminal| terminal.kind);
    let Some(TerminalKind::Cancelled(cancelled)) = terminal else { panic!("{terminal:?}") };
    cancelled.reason
}

async fn allow(world: &SessionWorld, turn: &TurnId) -> Result<(), SessionError> {
    allow_call(world, turn, "c1").await
}

async fn allow_call(world: &SessionWorld, turn: &TurnId, call: &str) -> Result<(), SessionError> {
    let call = ToolCallId::from(call);
    world.sessions.respond_to_permission(turn, &call, Decision::Allow, None).await
}

fn check_status(world: &SessionWorld, session: &SessionId, status: TurnStatus) {
    let entry = world.entry(session);
    assert_eq!(entry.latest_turn_status, LatestTurnStatus::Turn(status));
    assert_eq!(entry.waiting.is_empty(), status != TurnStatus::Suspended);
}

fn cancels(world: &SessionWorld) -> usize {
    let advances = world.turns.advances().into_iter();
    advances.filter(|it| matches!(it.input, Some(ExternalInput::Cancel { .. }))).count()
}

#[tokio::test]
async fn s13_5_stopping_aborts_a_live_advance_and_sends_no_input() {
    let world = SessionWorld::new();
    let (session, gate) = (world.session().await, Gate::new());
    let turn = world.send(&session, Script::new().gate(&gate).answer("Done.")).await;
    gate.reached().await;
    world.sessions.stop_turn(&turn, Some("enough")).await.expect("stopped");
    assert!(!world.sessions.is_running(&turn));
    assert_eq!(cancelled_by(&world, &turn).await.as_deref(), Some("enough"));
    assert_eq!(cancels(&world), 0);
    check_status(&world, &session, TurnStatus::Cancelled);
}

#[tokio::test]
async fn s13_5_stopping_ends_a_turn_at_rest_by_an_input() {
    let world = SessionWorld::new();
    let session = world.session().await;
    let turn = world.run(&session, asking()).await;
    world.sessions.stop_turn(&turn, Some("enough")).await.expect("stopped");
    assert_eq!(cancelled_by(&world, &turn).await.as_deref(), Some("enough"));
    assert_eq!(cancels(&world), 1);
    check_status(&world, &session, TurnStatus::Cancelled);
}

#[tokio::test]
async fn s13_5_stopping_aborts_every_live_advance_of_a_turn() {
    let world = SessionWorld::new();
    let (session, gate) = (world.session().await, Gate::new());
    let script = Script::new()
        .calls("c1:write-file c2:write-file")
        .ask("c1:write-file")
        .ask("c2:write-file")
        .suspend();
    let turn = world.run(&session, script).await;
    world.turns.then(Script::new().run("c1").gate(&gate).result("c1"));
    allow(&world, &turn).await.expect("decided");
    gate.reached().await;
    // This one is recorded at once, and its advance waits for the first.
    allow_call(&world, &turn, "c2").await.expect("decided");
    world.sessions.stop_turn(&turn, None).await.expect("stopped");
    assert!(!world.sessions.is_running(&turn), "all have come to rest");
    assert_eq!(cancelled_by(&world, &turn).await, None);
    assert_eq!(cancels(&world), 0);
    check_status(&world, &session, TurnStatus::Cancelled);
}

#[tokio::test]
async fn s13_5_an_advance_that_rests_does_not_untrack_a_later_one() {
    let world = SessionWorld::new();
    let (session, first, second) = (world.session().await, Gate::new(), Gate::new());
    let script = Script::new()
        .calls("c1:write-file c2:write-file")
        .ask("c1:write-file")
        .ask("c2:write-file")
        .suspend();
    let turn = world.run(&session, script).await;
    world.turns.then(Script::new().run("c1").gate(&first).result("c1").suspend());
    world.turns.then(Script::new().run("c2").gate(&second).result("c2").answer("Done."));
    allow(&world, &turn).await.expect("decided");
    first.reached().await;
    let arrival = Gate::new();
    world.turns.stop_arrival(&arrival);
    let decided = allow_call(&world, &turn, "c2");
    let stopped = async {
        arrival.reached().await;
        first.open();
        // The first advance rests while the second has not begun.
        while world.turns.hub().is_running(&turn) {
            tokio::task::yield_now().await;
        }
        arrival.open();
        second.reached().await;
        assert!(world.sessions.is_running(&turn));
        world.sessions.stop_turn(&turn, Some("enough")).await
    };
    let (decided, stopped) = tokio::join!(decided, stopped);
    decided.expect("it was taken before the stop");
    stopped.expect("stopped");
    assert_eq!(cancelled_by(&world, &turn).await.as_deref(), Some("enough"));
    assert_eq!(cancels(&world), 0, "it was aborted, not asked");
}

#[tokio::test]
async fn s13_5_a_stop_that_lost_to_an_end_has_succeeded() {
    let world = SessionWorld::new();
    let (session, arrival) = (world.session().await, Gate::new());
    let turn = world.run(&session, asking()).await;
    world.turns.stop_arrival(&arrival);
    let (stopped, ()) = tokio::join!(world.sessions.stop_turn(&turn, Some("late")), async {
        arrival.reached().await;
        world.turns.end(&turn).await;
        arrival.open();
    });
    stopped.expect("an ended turn counts as stopped");
    assert_eq!(cancelled_by(&world, &turn).await, None, "by somebody else's hand");
    assert_eq!(cancels(&world), 1);
    world.sessions.stop_turn(&turn, None).await.expect("again");
    assert_eq!(cancels(&world), 1);
}

#[tokio::test]
async fn s13_5_a_stop_that_is_refused_for_another_reason_says_so() {
    let world = SessionWorld::new();
    let session = world.session().await;
    let turn = world.run(&session, asking()).await;
    let unknown = InputRefused::UnknownCall { turn: turn.clone(), call: c1() };
    world.turns.refuse_advance(unknown.clone().into());
    let stopped = world.sessions.stop_turn(&turn, None).await;
    let Err(SessionError::Advance(AdvanceError::Refused(refused))) = stopped else {
        panic!("{stopped:?}");
    };
    assert_eq!(refused, unknown);
    check_status(&world, &session, TurnStatus::Suspended);
    world.sessions.stop_turn(&turn, None).await.expect("stopped");
}

#[tokio::test]
async fn an_advance_that_broke_down_is_ended_by_an_input() {
    let world = SessionWorld::new();
    let (session, gate) = (world.session().await, Gate::new());
    let turn = world.send(&session, Script::new().hold(&gate)).await;
    gate.reached().await;
    // The stop finds it live, but it ends without an end of the turn.
    world.turns.refuse_advance(AdvanceError::NotEnded(turn.clone()));
    let (stopped, ()) = tokio::join!(world.sessions.stop_turn(&turn, None), async {
        gate.open();
    });
    stopped.expect("stopped");
    check_status(&world, &session, TurnStatus::Cancelled);
}

#[tokio::test]
async fn a_stop_waits_for_what_does_not_heed_it() {
    let world = SessionWorld::new();
    let (session, gate) = (world.session().await, Gate::new());
    let turn = world.send(&session, Script::new().hold(&gate).answer("Done.")).await;
    gate.reached().await;
    let stop = world.sessions.stop_turn(&turn, None);
    tokio::pin!(stop);
    let early = futures_util::poll!(&mut stop);
    assert!(early.is_pending());
    gate.open();
    stop.await.expect("stopped");
    check_status(&world, &session, TurnStatus::Cancelled);
}

#[tokio::test]
async fn an_answer_that_a_stop_outran_is_told_that_the_turn_has_ended() {
    let world = SessionWorld::new();
    let (session, arrival) = (world.session().await, Gate::new());
    let turn = world.run(&session, asking()).await;
    world.turns.stop_arrival(&arrival);
    let (decided, stopped) = tokio::join!(allow(&world, &turn), async {
        arrival.reached().await;
        let stop = world.sessions.stop_turn(&turn, None);
        tokio::pin!(stop);
        assert!(futures_util::poll!(&mut stop).is_pending());
        arrival.open();
        stop.await
    });
    stopped.expect("stopped");
    let Err(SessionError::Advance(AdvanceError::Refused(refused))) = decided else {
        panic!("{decided:?}");
    };
    assert_eq!(refused, InputRefused::Ended { turn: turn.clone(), status: TurnStatus::Cancelled });
    let state = world.sessions.get_turn(&turn).await.expect("readable").state;
    let permission = state.tool_calls.get(&c1()).and_then(|call| call.permission.clone());
    assert!(permission.is_some_and(|it| it.resolved.is_none()), "nothing was recorded");
    check_status(&world, &session, TurnStatus::Cancelled);
}

#[tokio::test]
async fn an_answer_that_comes_during_a_stop_starts_nothing() {
    let world = SessionWorld::new();
    let (session, arrival) = (world.session().await, Gate::new());
    let turn = world.run(&session, asking()).await;
    world.turns.stop_arrival(&arrival);
    let stop = world.sessions.stop_turn(&turn, None);
    let answer = async {
        // The stop's own input is under way; the answer overtakes it.
        arrival.reached().await;
        let decided = allow(&world, &turn).await;
        arrival.open();
        decided
    };
    let (stopped, decided) = tokio::join!(stop, answer);
    stopped.expect("stopped");
    assert!(decided.is_err(), "{decided:?}");
    assert_eq!(cancelled_by(&world, &turn).await, None);
    assert!(world.turns.advances().len() >= 2);
    check_status(&world, &session, TurnStatus::Cancelled);
}

#[tokio::test]
async fn a_stop_is_over_once_the_turn_has_ended() {
    let world = SessionWorld::new();
    let session = world.session().await;
    let turn = world.run(&session, asking()).await;
    world.sessions.stop_turn(&turn, None).await.expect("stopped");
    let next = world.run(&session, answering("Done.")).await;
    check_status(&world, &session, TurnStatus::Completed);
    assert!(terminal(&world, &next).await.is_some());
}

#[tokio::test]
async fn a_turn_that_a_crash_interrupted_goes_on_or_is_closed() {
    for resumes in [true, false] {
        let world = SessionWorld::new();
        let (session, gate) = (world.session().await, Gate::new());
        let turn = world.send(&session, Script::new().gate(&gate)).await;
        gate.reached().await;
        let running = world.sessions.resume_turn(&session).await;
        assert!(matches!(running, Err(SessionError::NothingToResume { .. })), "{running:?}");
        let running = world.sessions.close_interrupted(&session).await;
        assert!(matches!(running, Err(SessionError::NothingToResume { .. })), "{running:?}");

        let next = world.restarted();
        next.sessions.scan().await.expect("scanned");
        check_status(&next, &session, TurnStatus::Idle);
        assert_eq!(next.turns.advances(), [], "nothing is resumed by itself");
        if resumes {
            next.sessions.resume_turn(&session).await.expect("resumed");
            next.rested(&turn).await;
            check_status(&next, &session, TurnStatus::Completed);
        } else {
            next.sessions.close_interrupted(&session).await.expect("closed");
            assert_eq!(cancelled_by(&next, &turn).await.as_deref(), Some("interrupted"));
            let terminal = terminal(&next, &turn).await.expect("ended");
            assert!(terminal.is_closed_interruption());
            check_status(&next, &session, TurnStatus::Cancelled);
        }
        let nothing = next.sessions.resume_turn(&session).await;
        assert!(matches!(nothing, Err(SessionError::NothingToResume { .. })), "{nothing:?}");
    }
}

#[tokio::test]
async fn there_is_nothing_to_resume_in_a_session_that_waits_or_is_empty() {
    let world = SessionWorld::new();
    let (empty, waiting) = (world.session().await, world.session().await);
    world.run(&waiting, asking()).await;
    for session in [&empty, &waiting] {
        for refused in [
            world.sessions.resume_turn(session).await,
            world.sessions.close_interrupted(session).await,
        ] {
            let Err(SessionError::NothingToResume { session: named }) = refused else {
                panic!("{refused:?}");
            };
            assert_eq!(named, *session);
        }
    }
}

#[tokio::test]
async fn of_two_who_resume_one_does() {
    let world = SessionWorld::new();
    let (session, gate) = (world.session().await, Gate::new());
    let turn = world.send(&session, Script::new().gate(&gate)).await;
    gate.reached().await;
    let next = world.restarted();
    let again = Gate::new();
    next.turns.then(Script::new().gate(&again).answer("Done."));
    let (one, two) =
        tokio::join!(next.sessions.resume_turn(&session), next.sessions.resume_turn(&session));
    assert!(one.is_ok() != two.is_ok(), "{one:?} {two:?}");
    assert_eq!(next.turns.advances().len(), 1);
    again.open();
    next.rested(&turn).await;
}
