//! The main scenarios of `spec/session-layer.md` section 13 again, on the real runtime with a scripted
//! model.

use std::path::PathBuf;
use std::sync::Arc;

use turnstile::base::id::{ToolCallId, TurnId};
use turnstile::domain::agent::RequestedAgent;
use turnstile::domain::message::UserMessage;
use turnstile::domain::session::entry::LatestTurnStatus;
use turnstile::domain::turn::event::{ContextRef, TurnContext};
use turnstile::domain::turn::live::{LiveEvent, News};
use turnstile::domain::turn::status::TurnStatus;
use turnstile::runtime::api::{StopSignal, TurnOutcome};
use turnstile::runtime::error::{AdvanceError, InputRefused};
use turnstile::runtime::headless::{HeadlessTurn, start_headless};
use turnstile::runtime::hub::{Interest, Received};
use turnstile::sessions::error::{SessionError, Standing};
use turnstile::store::jsonl;
use turnstile::store::seam::LogStore;
use turnstile::testing::agents::AGENT;
use turnstile::testing::fact::json;
use turnstile::testing::gate::Gate;
use turnstile::testing::store::Home;

use crate::sessions_real_world::{World, asks, copy, says, writes};

const COMPLETED: LatestTurnStatus = LatestTurnStatus::Turn(TurnStatus::Completed);
const SUSPENDED: LatestTurnStatus = LatestTurnStatus::Turn(TurnStatus::Suspended);
const CANCELLED: LatestTurnStatus = LatestTurnStatus::Turn(TurnStatus::Cancelled);

#[tokio::test]
async fn s13_3_turns_follow_one_another_on_the_real_runtime() {
    let world = World::new();
    let session = world.session().await;
    let first = world.run(&session, says("One.")).await;
    let second = world.run(&session, says("Two.")).await;
    let state = world.sessions.get_session(&session).await.expect("readable");
    let turns: Vec<_> = state.turns.iter().map(|turn| (&turn.id, turn.session_seq)).collect();
    assert_eq!(turns, [(&first, 1), (&second, 2)]);
    assert_eq!(state.title.as_deref(), Some("Look at the watcher."));
    let context = |turn| {
        let world = &world;
        async move { world.sessions.get_turn(turn).await.expect("readable").state }
    };
    assert_eq!(context(&first).await.definition.context, TurnContext::Inline(Vec::new()));
    let after = TurnContext::Previous(ContextRef { previous_turn_id: first.clone() });
    assert_eq!(context(&second).await.definition.context, after);
    let messages: Vec<_> = world.model.requests().iter().map(|it| it.messages.len()).collect();
    assert_eq!(messages, [1, 3], "the second request holds the first turn");
    assert_eq!(world.status(&session), COMPLETED);
}

#[tokio::test]
async fn s13_3_an_open_turn_refuses_a_message_on_the_real_runtime() {
    let world = World::new();
    let (session, gate) = (world.session().await, Gate::new());
    world.send(&session, says("One").gate(&gate).text(".")).await;
    gate.reached().await;
    let standing = |sent: Result<TurnId, SessionError>| match sent {
        Err(SessionError::TurnNotSettled { standing, .. }) => standing,
        other => panic!("{other:?}"),
    };
    assert_eq!(standing(world.try_send(&session).await), Standing::Running);
    gate.open();
    world.rested().await;
    world.run(&session, asks()).await;
    let suspended = Standing::Resting(TurnStatus::Suspended);
    assert_eq!(standing(world.try_send(&session).await), suspended);
}

#[tokio::test]
async fn s13_3_concurrent_sends_serialize_on_the_real_runtime() {
    let world = World::new();
    let (session, gate) = (world.session().await, Gate::new());
    world.model.then(says("One").gate(&gate).text(".").finish("stop"));
    let sent = futures_util::future::join_all((0..5).map(|_| world.try_send(&session))).await;
    assert_eq!(sent.iter().filter(|sent| sent.is_ok()).count(), 1);
    assert_eq!(world.turns.ids().await.expect("listed").len(), 1);
    gate.open();
    world.rested().await;
}

#[tokio::test]
async fn a_killed_answer_is_resumed_or_closed_on_the_real_runtime() {
    for resumes in [true, false] {
        let world = World::new();
        let (session, gate) = (world.session().await, Gate::new());
        let turn = world.send(&session, says("One").gate(&gate).text(".")).await;
        gate.reached().await;
        // The next process finds what a killed one left; the log's writer is gone with that.
        drop(gate);
        let kept = copy(&world).await;
        kept.sessions.scan().await.expect("scanned");
        assert_eq!(kept.status(&session), LatestTurnStatus::Turn(TurnStatus::Idle));
        assert_eq!(kept.model.requests().len(), 0, "nothing goes on by itself");
        if resumes {
            kept.model.then(says("One again.").finish("stop"));
            kept.sessions.resume_turn(&session).await.expect("resumed");
            kept.rested().await;
            assert_eq!(kept.status(&session), COMPLETED);
        } else {
            kept.sessions.close_interrupted(&session).await.expect("closed");
            assert_eq!(kept.status(&session), CANCELLED);
            let terminal = kept.sessions.get_turn(&turn).await.expect("readable").state.terminal;
            assert!(terminal.is_some_and(|it| it.is_closed_interruption()));
        }
        assert_eq!(kept.scanned().await, kept.sessions.list_sessions());
    }
}

#[tokio::test]
async fn s13_5_answers_reach_their_turns_on_the_real_runtime() {
    let world = World::new();
    let (one, two) = (world.session().await, world.session().await);
    let decided = world.run(&one, writes()).await;
    let answered = world.run(&two, asks()).await;
    assert_eq!((world.status(&one), world.status(&two)), (SUSPENDED, SUSPENDED));
    world.model.then(says("Written.").finish("stop"));
    world.allow(&decided).await.expect("decided");
    world.rested().await;
    assert_eq!((world.status(&one), world.status(&two)), (COMPLETED, SUSPENDED));
    world.model.then(says("Thank you.").finish("stop"));
    let call = ToolCallId::of_turn(&answered, 1);
    world.sessions.respond_to_ask_human(&answered, &call, "This").await.expect("answered");
    world.rested().await;
    assert_eq!(world.status(&two), COMPLETED);
    let state = world.sessions.get_turn(&answered).await.expect("readable").state;
    let result = state.tool_calls.get(&call).and_then(|call| call.result.clone());
    let output = result.expect("it has a result").data.output;
    assert_eq!(output, json(r#"{"outcome":"answered","answers":{"question":["This"]}}"#));

    let late = world.allow(&decided).await;
    let Err(SessionError::Advance(AdvanceError::Refused(refused))) = late else {
        panic!("{late:?}");
    };
    let ended = InputRefused::Ended { turn: decided, status: TurnStatus::Completed };
    assert_eq!(refused, ended);
}

#[tokio::test]
async fn s13_5_a_running_and_a_waiting_turn_are_stopped_on_the_real_runtime() {
    let world = World::new();
    let (one, two, gate) = (world.session().await, world.session().await, Gate::new());
    let running = world.send(&one, says("One").gate(&gate).text(".")).await;
    gate.reached().await;
    world.model.then(writes().finish("tool-calls"));
    let waiting = world.try_send(&two).await.expect("sent");
    while world.status(&two) != SUSPENDED {
        tokio::task::yield_now().await;
    }
    for turn in [&running, &waiting] {
        world.sessions.stop_turn(turn, Some("enough")).await.expect("stopped");
        world.sessions.stop_turn(turn, None).await.expect("again");
    }
    assert_eq!((world.status(&one), world.status(&two)), (CANCELLED, CANCELLED));
    assert_eq!(world.scanned().await, world.sessions.list_sessions());
}

#[tokio::test]
async fn s13_6_the_scan_finds_what_was_written_through_on_the_real_runtime() {
    let home = Home::new();
    let store: Arc<dyn LogStore> = Arc::new(home.store(jsonl::Options::default()));
    let world = World::over(store, 42);
    let gate = Gate::new();
    for reply in [says("Done."), writes(), asks()] {
        let session = world.session().await;
        world.run(&session, reply).await;
        world.sessions.set_title(&session, "Renamed").await.expect("named");
    }
    let session = world.session().await;
    world.send(&session, says("One").gate(&gate).text(".")).await;
    gate.reached().await;
    world.sessions.set_title(&session, "While it runs").await.expect("named");
    assert_eq!(world.scanned().await, world.sessions.list_sessions());
    gate.open();
    world.rested().await;
    assert_eq!(world.scanned().await, world.sessions.list_sessions());
}

#[tokio::test]
async fn s13_7_events_carry_their_session_and_count_on_over_a_rest_on_the_real_runtime() {
    let world = World::new();
    let all = world.runtime.hub().subscribe(Interest::Everything);
    let session = world.session().await;
    let turn = world.run(&session, writes()).await;
    world.model.then(says("Written.").finish("stop"));
    world.allow(&turn).await.expect("decided");
    world.rested().await;
    let mut offsets = Vec::new();
    let mut rests = 0;
    while let Some(received) = all.try_next() {
        let Received::Event(LiveEvent { session: of, turn: by, news }) = received else {
            panic!("nothing is missed in a short test");
        };
        assert_eq!((of.as_ref(), &by), (Some(&session), &turn));
        match news {
            News::Recorded { offset, .. } => offsets.push(offset),
            News::Rested => rests += 1,
            _ => {}
        }
    }
    let recorded = world.turns.read(&turn).await.expect("readable").events.len() as u64;
    assert_eq!((offsets, rests), ((1..=recorded).collect::<Vec<_>>(), 2));
    assert_eq!(world.status(&session), COMPLETED);
}

#[tokio::test]
async fn s13_8_a_turn_without_a_session_is_in_no_index() {
    let world = World::new();
    let turn = HeadlessTurn {
        agent: RequestedAgent::by_id(AGENT),
        context: Vec::new(),
        input: Arc::new(UserMessage::text("Look at the watcher.")),
        max_model_calls: Some(3),
        reasoning_effort: None,
        folder: PathBuf::from("/project"),
        now: turnstile::base::clock::Timestamp::default(),
    };
    world.model.then(writes().finish("tool-calls"));
    world.model.then(says("I may not.").finish("stop"));
    let run = start_headless(&world.runtime, turn, StopSignal::new()).await.expect("started");
    let id = run.turn.clone();
    let result = run.finish(&world.runtime).await.expect("it rests");
    assert!(matches!(result.outcome, TurnOutcome::Completed(_)));
    assert_eq!(result.text, "I may not.");
    let definition = &result.state.definition;
    assert_eq!(definition.session_id, None);
    let config = &definition.config;
    assert!(config.auto_permission && !config.human_available && config.max_model_calls == 3);
    assert_eq!(definition.context, TurnContext::Inline(Vec::new()));
    let call = result.state.tool_calls.get(&ToolCallId::of_turn(&id, 1));
    let denied = call.and_then(|call| call.result.as_ref()).expect("nobody was asked");
    assert!(denied.data.is_error);

    assert_eq!(world.sessions.list_sessions(), []);
    assert_eq!(world.scanned().await, []);
    assert_eq!(world.turns.ids().await.expect("listed"), std::slice::from_ref(&id));
    let answered = world.allow(&id).await;
    assert!(matches!(&answered, Err(SessionError::NoSession(turn)) if *turn == id), "{answered:?}");
    // It has ended, which is all that a stop wants.
    world.sessions.stop_turn(&id, None).await.expect("stopped");
}
