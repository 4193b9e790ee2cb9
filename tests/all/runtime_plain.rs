//! Answers without tools: what is recorded, what is only told, and how a model fails.

use turnstile::domain::agent::RequestedAgent;
use turnstile::domain::turn::event::{ReasoningEffort, TurnFact};
use turnstile::domain::turn::live::{Delta, DeltaKind, LiveEvent, News};
use turnstile::models::error::Failure;
use turnstile::runtime::CONTEXT_OVERFLOW;
use turnstile::runtime::api::{CreateConfig, CreateTurn, TurnOutcome, Turns as _};
use turnstile::runtime::error::{CreateError, ResolveError};
use turnstile::runtime::hub::{Interest, Received};
use turnstile::testing::lines::line;
use turnstile::testing::model::Reply;
use turnstile::testing::world::{World, all_told};

#[tokio::test]
async fn a_plain_answer_is_recorded_as_exactly_these_events() {
    let world = World::bare();
    world.model.then(Reply::new().reasoning("Hm.").text("Hel").text("lo.").finish("stop"));
    let turn = world.ask("Hi.").await;
    let outcome = world.advance(&turn).await.expect("it rests");
    assert_eq!(
        world.log(&turn),
        [
            "turn_created",
            "model_call_requested 0 [input]",
            "model_step_event 0 reasoning_start",
            r#"model_step_event 0 reasoning_end "Hm.""#,
            "model_step_event 0 text_start",
            r#"model_step_event 0 text_end "Hello.""#,
            "model_step_event 0 finish_step stop",
            r#"model_call_completed 0 "Hello.""#,
            r#"turn_completed "Hello." stop"#,
        ]
    );
    let recorded = TurnOutcome::recorded(&world.state(&turn));
    assert_eq!(Some(outcome), recorded);
}

#[tokio::test]
async fn deltas_are_told_to_those_who_watch_and_never_recorded() {
    let world = World::bare();
    world.model.then(Reply::new().text("Hel").text("lo.").finish("stop"));
    let turn = world.ask("Hi.").await;
    let (told, rejected) = all_told(world.start(&turn)).await;
    assert_eq!(rejected, None, "it ends, and that is all");
    let told = told.into_iter().map(|event| match event.news {
        News::Recorded { offset, event } => {
            format!("{offset} {}", line(&event))
        }
        News::Delta(delta) => {
            assert_eq!((delta.model_call_index, delta.kind), (0, DeltaKind::Text));
            let Delta { block, at, text, .. } = delta;
            format!("delta {block} {at} {text:?}")
        }
        news => format!("{news:?}"),
    });
    assert_eq!(
        told.collect::<Vec<_>>(),
        [
            "Started",
            "2 model_call_requested 0 [input]",
            // Pieces that wait are joined.
            r#"delta 0 0 "Hello.""#,
            "3 model_step_event 0 text_start",
            r#"4 model_step_event 0 text_end "Hello.""#,
            "5 model_step_event 0 finish_step stop",
            r#"6 model_call_completed 0 "Hello.""#,
            r#"7 turn_completed "Hello." stop"#,
            "Rested",
        ]
    );
    assert!(world.log(&turn).iter().all(|line| !line.contains("delta")));
}

#[tokio::test]
async fn what_was_asked_of_a_turn_is_recorded_resolved() {
    let world = World::bare();
    let config =
        CreateConfig { reasoning_effort: Some(ReasoningEffort::High), ..world.turn("").config };
    let turn = world.create(CreateTurn { config, ..world.turn("Hi.") }).await;
    world.model.then(Reply::new().text("Hello.").finish("length"));
    let log = world.run(&turn).await;
    assert_eq!(log.last().expect("it ended"), r#"turn_completed "Hello." length"#);
    let state = world.state(&turn);
    assert_eq!(state.definition.config.max_model_calls, 10, "the configured number");
    assert_eq!(
        state.model_calls[0].request.parameters.get(),
        r#"{"reasoningEffort":"high","elideOver":2500}"#
    );
}

#[tokio::test]
async fn an_agent_that_cannot_be_resolved_leaves_no_log() {
    let world = World::bare();
    let agent = RequestedAgent::by_id("nobody");
    let refused = world.runtime.create_turn(CreateTurn { agent, ..world.turn("Hi.") }).await;
    let unknown = ResolveError::UnknownAgent { agent: "nobody".into(), known: "assistant".into() };
    assert!(matches!(refused, Err(CreateError::Resolve(error)) if error == unknown));
    assert_eq!(world.turns.ids().await.expect("listed"), []);
}

#[tokio::test]
async fn an_id_that_is_on_the_disk_already_is_skipped() {
    let world = World::bare();
    let first = world.ask("Hi.").await;
    let events = world.turns.read(&first).await.expect("readable").events.clone();
    let world = World::bare();
    world.write(&[turnstile::domain::turn::event::TurnEvent::clone(&events[0])]).await;
    let next = world.ask("Hi again.").await;
    assert_ne!(first, next);
    assert_eq!(world.turns.ids().await.expect("listed"), [first, next]);
}

#[tokio::test]
async fn a_failed_model_call_fails_the_turn_and_keeps_what_had_come() {
    let world = World::bare();
    world.model.then(Reply::new().text("Once upon").fail(Failure::ServerError));
    let turn = world.ask("A story.").await;
    let why = "lab/tiny-1: the server failed; what came is kept; send the message again";
    assert_eq!(
        world.run(&turn).await[2..],
        [
            "model_step_event 0 text_start".to_owned(),
            r#"model_step_event 0 text_end "Once upon""#.to_owned(),
            format!("model_step_event 0 provider_error {why}"),
            format!("model_call_failed 0: {why}"),
            format!("turn_failed: {why}"),
        ]
    );
    assert_eq!(world.model.requests().len(), 1, "the loop does not try again");
}

#[tokio::test]
async fn a_conversation_that_does_not_fit_fails_with_a_code() {
    let world = World::bare();
    world.model.then(Reply::new().fail(Failure::ContextOverflow));
    let turn = world.ask("All of it.").await;
    world.advance(&turn).await.expect("it rests");
    let facts = world.facts(&turn);
    let Some(TurnFact::Failed(failed)) = facts.last() else { panic!("{facts:?}") };
    assert_eq!(failed.code.as_deref(), Some(CONTEXT_OVERFLOW));
}

#[tokio::test]
async fn a_stream_without_an_end_fails_the_turn() {
    let world = World::bare();
    world.model.then(Vec::new());
    let turn = world.ask("Hi.").await;
    let log = world.run(&turn).await;
    assert_eq!(
        log.last().expect("it ended"),
        "turn_failed: the model's stream ended without an end"
    );
}

#[tokio::test]
async fn a_model_that_says_cancelled_by_itself_has_failed() {
    let world = World::bare();
    world.model.then(Reply::new().text("I").fail(Failure::Cancelled));
    let turn = world.ask("Hi.").await;
    let log = world.run(&turn).await;
    assert_eq!(
        log[4..],
        [
            "model_step_event 0 provider_error lab/tiny-1: cancelled",
            "model_call_failed 0: lab/tiny-1: cancelled",
            "turn_failed: lab/tiny-1: cancelled",
        ]
    );
}

#[tokio::test]
async fn nobody_has_to_listen() {
    let world = World::bare();
    world.will_say("Hello.");
    let turn = world.ask("Hi.").await;
    let everything = world.runtime.hub().subscribe(Interest::Everything);
    drop(world.start(&turn));
    let rested =
        |received| matches!(received, Received::Event(LiveEvent { news: News::Rested, .. }));
    while !rested(everything.next().await) {}
    assert!(world.state(&turn).terminal.is_some());
}
