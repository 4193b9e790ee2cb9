//! What a model call sent can be shown again, byte for byte (`design/turn-runtime.md` section 4).

use turnstile::base::id::TurnId;
use turnstile::models::request::ModelRequest;
use turnstile::runtime::error::AuditError;
use turnstile::testing::fact::{created, request};
use turnstile::testing::log::{Log, PREVIOUS_TURN};
use turnstile::testing::tools::FakeTool;
use turnstile::testing::world::World;

fn json(request: &ModelRequest) -> String {
    serde_json::to_string(request).expect("a request is JSON")
}

#[tokio::test]
async fn the_request_of_every_call_is_what_the_model_got() {
    let world = World::with_tools([FakeTool::sync("a")]);
    world.will_call("a");
    world.will_say("Done.");
    world.will_say("Yes.");
    let first = world.ask("Do it.").await;
    world.run(&first).await;
    let second = world.ask_after(&first, "Sure?").await;
    world.run(&second).await;
    let log = (world.log(&first), world.log(&second));
    let mut shown = Vec::new();
    for (turn, index) in [(&first, 0), (&first, 1), (&second, 0)] {
        let request = world.runtime.request_of(turn, index).await.expect("it was made");
        shown.push(json(&request));
    }
    let sent: Vec<_> = world.model.requests().iter().map(json).collect();
    assert_eq!(shown, sent);
    assert_eq!((world.log(&first), world.log(&second)), log, "showing writes nothing");
}

#[tokio::test]
async fn the_request_of_a_call_that_was_interrupted_is_what_the_log_has_of_it() {
    let world = World::bare();
    let turn = world.write(Log::turn(created()).then(request(0, "input")).events()).await;
    let request = world.runtime.request_of(&turn, 0).await.expect("it was made");
    assert_eq!(request.messages.len(), 1);
}

#[tokio::test]
async fn a_call_that_was_never_made_has_no_request() {
    let world = World::bare();
    world.will_say("Done.");
    let turn = world.ask("Do it.").await;
    world.run(&turn).await;
    let none = world.runtime.request_of(&turn, 1).await;
    assert!(matches!(none, Err(AuditError::NoSuchCall { model_call_index: 1, .. })), "{none:?}");
    let gone = world.runtime.request_of(&TurnId::from(PREVIOUS_TURN), 0).await;
    assert!(matches!(gone, Err(AuditError::Read(_))), "{gone:?}");
    let orphan = world.ask_after(&TurnId::from(PREVIOUS_TURN), "Hi.").await;
    let orphan = world.runtime.request_of(&orphan, 0).await;
    assert!(matches!(orphan, Err(AuditError::NoSuchCall { .. })), "{orphan:?}");
}
