//! Turns without a session, for whoever has no person to ask.

use std::sync::Arc;

use turnstile::base::clock::Clock as _;
use turnstile::domain::agent::RequestedAgent;
use turnstile::domain::message::UserMessage;
use turnstile::domain::turn::event::{ReasoningEffort, TurnContext};
use turnstile::models::error::Failure;
use turnstile::runtime::api::{Human, PermissionMode, StopSignal, TurnOutcome};
use turnstile::runtime::error::CreateError;
use turnstile::runtime::headless::{HeadlessTurn, start_headless};
use turnstile::testing::agents::AGENT;
use turnstile::testing::checker::Says;
use turnstile::testing::model::Reply;
use turnstile::testing::sessions::SessionWorld;
use turnstile::testing::tools::FakeTool;
use turnstile::testing::turns::answering;
use turnstile::testing::world::{World, folder};

fn headless(world: &World, agent: &str) -> HeadlessTurn {
    HeadlessTurn {
        agent: RequestedAgent::by_id(agent),
        context: Vec::new(),
        input: Arc::new(UserMessage::text("Do it.")),
        max_model_calls: Some(3),
        reasoning_effort: Some(ReasoningEffort::Low),
        folder: folder(),
        now: world.clock.now(),
    }
}

#[tokio::test]
async fn a_headless_turn_has_an_id_at_once_and_its_text_at_the_end() {
    let world = World::with_tools([FakeTool::sync("a")]);
    world.checker.say("a", Says::Ask);
    world.will_call("a");
    world.will_say("I could not.");
    let turn = headless(&world, AGENT);
    let run = start_headless(&world.runtime, turn, StopSignal::new()).await.expect("created");
    let id = run.turn.clone();
    let result = run.finish(&world.runtime).await.expect("it rests");
    assert_eq!((result.text.as_str(), &result.state), ("I could not.", &world.state(&id)));
    let definition = &result.state.definition;
    assert_eq!((&definition.session_id, definition.config.max_model_calls), (&None, 3));
    assert_eq!(definition.config.reasoning_effort, Some(ReasoningEffort::Low));
    assert!(definition.config.auto_permission && !definition.config.human_available);
    assert!(world.log(&id)[6].starts_with("tool_permission_resolved #1 deny by human_unavailable"));
}

#[tokio::test]
async fn a_headless_turn_that_fails_has_the_text_that_had_come() {
    let world = World::bare();
    world.model.then(Reply::new().text("Once").fail(Failure::ServerError));
    let turn = headless(&world, AGENT);
    let run = start_headless(&world.runtime, turn, StopSignal::new()).await.expect("created");
    let result = run.finish(&world.runtime).await.expect("it rests");
    assert!(matches!(result.outcome, TurnOutcome::Failed(_)));
    assert_eq!(result.text, "Once");
}

#[tokio::test]
async fn a_headless_turn_of_an_unknown_agent_is_not_created() {
    let world = World::bare();
    let turn = headless(&world, "nobody");
    let refused = start_headless(&world.runtime, turn, StopSignal::new()).await;
    assert!(matches!(refused, Err(CreateError::Resolve(_))));
    assert_eq!(world.turns.ids().await.expect("listed"), []);
}

#[tokio::test]
async fn s13_8_a_standalone_turn_is_in_no_index_on_the_scripted_runtime() {
    let world = SessionWorld::new();
    let turn = HeadlessTurn {
        agent: RequestedAgent::by_id("assistant"),
        context: Vec::new(),
        input: Arc::new(UserMessage::text("Look at the watcher.")),
        max_model_calls: None,
        reasoning_effort: None,
        folder: folder(),
        now: world.clock.now(),
    };
    world.turns.then(answering("Done."));
    let run = start_headless(&world.turns, turn, StopSignal::new()).await.expect("started");
    let id = run.turn.clone();
    let result = run.finish(&world.turns).await.expect("it rests");
    assert_eq!(result.text, "Done.");
    let [created] = &world.turns.created()[..] else { panic!("one turn") };
    assert_eq!((&created.session_id, &created.context), (&None, &TurnContext::Inline(Vec::new())));
    let config = &created.config;
    let expected = (PermissionMode::Auto, Human::Unavailable);
    assert_eq!((config.permission, config.human), expected);
    assert_eq!(world.sessions.list_sessions(), []);
    assert_eq!(world.scanned().await, []);
    assert_eq!(world.turn_repo.ids().await.expect("listed"), [id]);
}
