//! Sending messages, by the numbers of `spec/session-layer.md` section 13, on the real runtime.

use std::sync::Arc;

use futures_util::FutureExt as _;
use turnstile::base::id::{SessionId, TurnId};
use turnstile::domain::event::Fact as _;
use turnstile::domain::session::entry::LatestTurnStatus;
use turnstile::domain::turn::event::{
    ContextRef, MODEL_CALL_LIMIT, ReasoningEffort, TurnConfig, TurnContext,
};
use turnstile::domain::turn::state::TerminalKind;
use turnstile::domain::turn::status::TurnStatus;
use turnstile::models::error::Failure;
use turnstile::runtime::api::{Human, PermissionMode};
use turnstile::sessions::api::SendMessageConfig;
use turnstile::sessions::error::{SessionError, Standing};
use turnstile::testing::gate::Gate;
use turnstile::testing::model::Reply;
use turnstile::testing::store::memory_store;
use turnstile::testing::store::scripted::ScriptedStore;

use crate::sessions_real_world::{World, asks, config, copy, says, writes};

async fn kinds(world: &World, session: &SessionId) -> Vec<&'static str> {
    let events = world.sessions.session_events(session).await.expect("readable");
    events.iter().map(|event| event.fact.kind()).collect()
}

async fn context(world: &World, turn: &TurnId) -> TurnContext {
    let turn = world.sessions.get_turn(turn).await.expect("readable");
    turn.state.definition.context.clone()
}

#[tokio::test]
async fn s13_3_a_conversation_goes_on_after_every_end_on_the_real_runtime() {
    let world = World::new();
    let session = world.session().await;
    world.model.then(Reply::new().text("Once").fail(Failure::ServerError));
    let failed = world.try_send(&session).await.expect("sent");
    world.rested().await;

    world.model.then(writes().finish("tool-calls"));
    let one_call = SendMessageConfig { max_model_calls: Some(1), ..config() };
    let exhausted = world.try_send_with(&session, one_call).await.expect("it goes on");
    world.rested().await;
    world.allow(&exhausted).await.expect("decided");
    world.rested().await;
    let end = world.sessions.get_turn(&exhausted).await.expect("readable").state.terminal;
    let Some(TerminalKind::Failed(end)) = end.map(|it| it.kind) else { panic!("it failed") };
    assert_eq!(end.code.as_deref(), Some(MODEL_CALL_LIMIT));

    let stopped = world.run(&session, asks()).await;
    world.sessions.stop_turn(&stopped, None).await.expect("stopped");
    let last = world.run(&session, says("At last.")).await;
    for (turn, before) in [(&exhausted, &failed), (&stopped, &exhausted), (&last, &stopped)] {
        let previous = ContextRef { previous_turn_id: before.clone() };
        assert_eq!(context(&world, turn).await, TurnContext::Previous(previous));
    }
    let status = LatestTurnStatus::Turn(TurnStatus::Completed);
    assert_eq!(world.status(&session), status);
    let sent = world.model.requests().pop().expect("it was asked").messages;
    let expected = 4 + 2 + 2; // questions; the exhausted and the stopped call with their results
    assert_eq!(sent.len(), expected, "what the failed call had said is not repeated");
}

#[tokio::test]
async fn s13_3_an_interrupted_turn_refuses_a_message_until_it_is_closed_on_the_real_runtime() {
    let world = World::new();
    let (session, gate) = (world.session().await, Gate::new());
    let turn = world.send(&session, says("One").gate(&gate).text(".")).await;
    gate.reached().await;
    let next = copy(&world).await;
    let refused = next.try_send(&session).await;
    let idle = Standing::Resting(TurnStatus::Idle);
    assert!(
        matches!(&refused, Err(SessionError::TurnNotSettled { turn: it, standing, .. })
            if *it == turn && *standing == idle),
        "{refused:?}"
    );
    next.sessions.close_interrupted(&session).await.expect("closed");
    next.run(&session, says("Two.")).await;
    assert_eq!(next.status(&session), LatestTurnStatus::Turn(TurnStatus::Completed));
}

#[tokio::test]
async fn s13_3_the_configuration_lands_on_the_turn_on_the_real_runtime() {
    let world = World::new();
    let session = world.session().await;
    world.model.then(says("Done.").finish("stop"));
    let config = SendMessageConfig {
        permission: PermissionMode::Auto,
        human: Human::Unavailable,
        max_model_calls: Some(3),
        reasoning_effort: Some(ReasoningEffort::High),
        ..config()
    };
    let turn = world.try_send_with(&session, config.clone()).await.expect("sent");
    world.rested().await;
    let definition = world.sessions.get_turn(&turn).await.expect("readable").state.definition;
    let expected = TurnConfig {
        auto_permission: true,
        human_available: false,
        max_model_calls: 3,
        reasoning_effort: Some(ReasoningEffort::High),
    };
    assert_eq!((&definition.config, &definition.agent.requested), (&expected, &config.agent));
    let events = world.sessions.session_events(&session).await.expect("readable");
    let appended = &events[1];
    assert_eq!(
        appended.to_line(),
        format!(
            r#"{{"type":"turn_appended","sessionId":"{session}","ts":"{}","turnId":"{turn}","sessionSeq":1,"agentId":"assistant","model":{{"provider":"lab","model":"tiny-1"}}}}"#,
            appended.ts
        )
    );
}

#[tokio::test]
async fn s13_4_a_turn_without_its_reference_is_an_orphan_on_the_real_runtime() {
    let store = ScriptedStore::new(Arc::new(memory_store()));
    let world = World::over(Arc::new(store.clone()), 42);
    let session = world.session().await;
    let referring = store.stop_before("turn_appended");
    {
        let send = world.try_send(&session);
        tokio::pin!(send);
        // The program is killed at the gate.
        tokio::select! {
            biased;
            _ = &mut send => panic!("nobody opened the gate"),
            () = referring.reached() => {}
        }
    }
    let [orphan] = &world.turns.ids().await.expect("listed")[..] else { panic!("one turn") };
    assert_eq!(world.turns.read(orphan).await.expect("readable").events.len(), 1, "it never ran");

    let next = world.restarted();
    next.sessions.scan().await.expect("scanned");
    assert_eq!(next.status(&session), LatestTurnStatus::None);
    assert_eq!(kinds(&next, &session).await, ["session_created"]);
    let turn = next.run(&session, says("Done.")).await;
    assert_ne!(turn, *orphan);
    assert_eq!(context(&next, &turn).await, TurnContext::Inline(Vec::new()));
    let state = next.sessions.get_session(&session).await.expect("readable");
    assert_eq!(state.turns.iter().map(|it| it.session_seq).collect::<Vec<_>>(), [1]);
    let events = next.turns.read(orphan).await.expect("readable").events.len();
    assert_eq!(events, 1, "nobody goes on with it");
}

#[tokio::test]
async fn s13_4_the_reference_stands_before_the_first_advance_on_the_real_runtime() {
    let store = ScriptedStore::new(Arc::new(memory_store()));
    let world = World::over(Arc::new(store.clone()), 42);
    let session = world.session().await;
    world.model.then(says("Done.").finish("stop"));
    let referring = store.stop_before("turn_appended");
    let advancing = store.stop_before("model_call_requested");
    let refer = async {
        referring.reached().await;
        // Time enough for an advance that does not wait for the reference.
        for _ in 0..1_000 {
            tokio::task::yield_now().await;
        }
        assert_eq!(advancing.reached().now_or_never(), None, "nothing is advanced yet");
        referring.open();
    };
    let (turn, ()) = tokio::join!(world.try_send(&session), refer);
    let turn = turn.expect("sent");
    // What the first advance writes first finds the reference in the session's log.
    advancing.reached().await;
    assert_eq!(
        kinds(&world, &session).await,
        ["session_created", "turn_appended", "title_changed"]
    );
    assert_eq!(world.model.requests(), []);
    advancing.open();
    world.rested().await;
    assert_eq!(world.turns.ids().await.expect("listed"), [turn]);
}
