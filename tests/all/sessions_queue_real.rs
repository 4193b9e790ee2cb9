//! Messages that wait, on the real runtime with a scripted model.

use std::sync::Arc;

use turnstile::base::id::SessionId;
use turnstile::domain::agent::RequestedAgent;
use turnstile::domain::message::UserMessage;
use turnstile::sessions::api::{SendMessageConfig, Sent};
use turnstile::testing::agents::AGENT;
use turnstile::testing::gate::Gate;
use turnstile::testing::model::Reply;

use crate::sessions_real_world::{World, says, writes};

async fn queue(world: &World, session: &SessionId, text: &str) {
    let config = SendMessageConfig::of(RequestedAgent::by_id(AGENT));
    let message = Arc::new(UserMessage::text(text));
    let sent = world.sessions.send_or_queue(session, message, config).await.expect("it waits");
    assert!(matches!(sent, Sent::Waits(_)), "{sent:?}");
}

/// The messages of the `number`th request, by their roles and texts.
fn request(world: &World, number: usize) -> Vec<String> {
    let requests = world.model.requests();
    let shown = requests[number].messages.iter().map(|message| {
        let message = serde_json::to_value(message).expect("JSON");
        let content = message["content"].as_str().unwrap_or("…").to_owned();
        format!("{}: {content}", message["role"].as_str().unwrap_or_default())
    });
    shown.collect()
}

#[tokio::test]
async fn what_is_typed_while_a_turn_waits_goes_into_its_next_request() {
    let world = World::new();
    let session = world.session().await;
    let turn = world.run(&session, writes()).await;
    queue(&world, &session, "And the tests.").await;
    queue(&world, &session, "And the docs.").await;
    world.model.then(says("Done.").finish("stop"));
    world.allow(&turn).await.expect("decided");
    world.rested().await;
    assert_eq!(
        request(&world, 1)[2..],
        ["tool: write_file done", "user: And the tests.", "user: And the docs."]
    );
    let state = world.sessions.get_session(&session).await.expect("readable");
    assert_eq!(state.turns.len(), 1);
    assert!(world.sessions.waiting_messages(&session).await.expect("readable").is_empty());
}

#[tokio::test]
async fn what_waits_when_the_answer_is_whole_has_turns_of_its_own() {
    let (world, gate) = (World::new(), Gate::new());
    let session = world.session().await;
    world.send(&session, Reply::new().text("One.").gate(&gate)).await;
    gate.reached().await;
    for (typed, answer) in [("Second.", "Two."), ("Third.", "Three.")] {
        queue(&world, &session, typed).await;
        world.model.then(says(answer).finish("stop"));
    }
    gate.open();
    world.rested().await;
    assert_eq!(world.model.requests().len(), 3);
    assert_eq!(
        request(&world, 2),
        [
            "user: Look at the watcher.",
            "assistant: One.",
            "user: Second.",
            "assistant: Two.",
            "user: Third."
        ]
    );
}
