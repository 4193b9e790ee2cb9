//! The text of an answer that streams survives the program (`design/turn-runtime.md` section 12).

use std::time::Duration;

use turnstile::base::id::TurnId;
use turnstile::domain::turn::event::{ModelStep, TurnFact};
use turnstile::domain::turn::live::{Delta, DeltaKind, OpenBlock, OpenCall};
use turnstile::domain::turn::step::StepEvent;
use turnstile::runtime::api::Turns as _;
use turnstile::store::live_text::LiveText as _;
use turnstile::store::log::LogId;
use turnstile::testing::fact::{created, request};
use turnstile::testing::gate::Gate;
use turnstile::testing::log::Log;
use turnstile::testing::model::Reply;
use turnstile::testing::world::{World, cancel};

fn log_id(turn: &TurnId) -> LogId {
    LogId::turn(turn).expect("valid")
}

fn delta(model_call_index: u64, block: u32, kind: DeltaKind, text: &str) -> Delta {
    Delta { model_call_index, kind, block, at: 0, text: text.to_owned() }
}

async fn kept(world: &World, turn: &TurnId) -> Option<OpenCall> {
    world.live_text.read(&log_id(turn)).await.expect("readable")
}

/// The log of a turn that was killed in its first call, after these steps.
fn killed(steps: impl IntoIterator<Item = StepEvent>) -> Log<TurnFact> {
    let step = |event| TurnFact::ModelStep(ModelStep { model_call_index: 0, event });
    let begun = Log::turn(created()).then(request(0, "input"));
    steps.into_iter().map(step).fold(begun, Log::then)
}

/// A world with such a turn and with this in its crash buffer.
async fn world_with(log: &Log<TurnFact>, buffer: &[Delta]) -> (World, TurnId) {
    let world = World::bare();
    let turn = world.write(log.events()).await;
    world.live_text.put(&log_id(&turn), buffer).await.expect("put");
    (world, turn)
}

#[tokio::test(start_paused = true)]
async fn what_streams_is_kept_within_a_tenth_of_a_second_until_its_call_is_settled() {
    let world = World::bare();
    let (first, second) = (Gate::new(), Gate::new());
    let reply = Reply::new().reasoning("hm").text("An").gate(&first).text("swer").gate(&second);
    world.model.then(reply.finish("stop"));
    let turn = world.ask("Why?").await;
    let running = world.start(&turn);
    first.reached().await;
    assert_eq!(kept(&world, &turn).await, None, "nothing is written on the way of the stream");
    tokio::time::sleep(Duration::from_millis(101)).await;
    let blocks = |text: &str| {
        let block = |block, kind, text: &str| OpenBlock { block, kind, text: text.to_owned() };
        vec![block(0, DeltaKind::Reasoning, "hm"), block(1, DeltaKind::Text, text)]
    };
    assert_eq!(kept(&world, &turn).await.expect("kept").blocks, blocks("An"));
    first.open();
    second.reached().await;
    tokio::time::sleep(Duration::from_millis(101)).await;
    assert_eq!(kept(&world, &turn).await.expect("kept").blocks, blocks("Answer"));
    let read = world.runtime.get_turn(&turn).await.expect("readable");
    assert_eq!(read.interrupted, None, "it runs");
    second.open();
    running.outcome.await.expect("it rests");
    assert_eq!(kept(&world, &turn).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_stopped_answer_leaves_no_crash_buffer() {
    let world = World::bare();
    let gate = Gate::new();
    world.model.then(Reply::new().text("An").gate(&gate).finish("stop"));
    let turn = world.ask("Why?").await;
    let stop = turnstile::runtime::api::StopSignal::new();
    let running = world.start_with(&turn, None, turnstile::testing::world::stopped_by(&stop));
    gate.reached().await;
    tokio::time::sleep(Duration::from_millis(101)).await;
    assert!(kept(&world, &turn).await.is_some());
    stop.stop(None);
    running.outcome.await.expect("it rests");
    assert_eq!(kept(&world, &turn).await, None);
    let log = world.log(&turn);
    assert!(log.contains(&"model_step_event 0 text_end \"An\"".to_owned()), "{log:#?}");
}

#[tokio::test]
async fn after_a_kill_the_text_is_shown_and_is_in_the_log_once_the_turn_goes_on() {
    let pieces = [delta(0, 0, DeltaKind::Reasoning, "hm"), delta(0, 1, DeltaKind::Text, "An")];
    let (world, turn) = world_with(&killed([]), &pieces).await;
    let shown = world.runtime.get_turn(&turn).await.expect("readable").interrupted;
    assert_eq!(shown, kept(&world, &turn).await);
    assert_eq!(shown.expect("kept").blocks.len(), 2);
    world.will_say("Done.");
    let log = world.run(&turn).await;
    assert_eq!(
        log[2..8],
        [
            "model_step_event 0 reasoning_start",
            "model_step_event 0 reasoning_end \"hm\"",
            "model_step_event 0 text_start",
            "model_step_event 0 text_end \"An\"",
            "model_call_failed 0: interrupted: the program ended while the model answered",
            "model_call_requested 1 []",
        ]
    );
    assert_eq!(kept(&world, &turn).await, None);
    assert_eq!(world.runtime.get_turn(&turn).await.expect("readable").interrupted, None);
}

#[tokio::test]
async fn after_a_kill_the_text_is_in_the_log_once_the_turn_is_closed() {
    let recorded = StepEvent::of_block(DeltaKind::Reasoning, "hm".to_owned());
    let pieces = [delta(0, 0, DeltaKind::Reasoning, "hm"), delta(0, 1, DeltaKind::Text, "An")];
    let (world, turn) = world_with(&killed(recorded), &pieces).await;
    world.give(&turn, cancel("closed")).await.expect("it ends");
    assert_eq!(
        world.log(&turn)[2..],
        [
            "model_step_event 0 reasoning_start",
            "model_step_event 0 reasoning_end \"hm\"",
            "model_step_event 0 text_start",
            "model_step_event 0 text_end \"An\"",
            "model_call_failed 0: cancelled",
            "turn_cancelled: closed",
        ],
        "what was whole is not recorded twice"
    );
    assert_eq!(kept(&world, &turn).await, None);
}

#[tokio::test]
async fn a_buffer_of_another_call_changes_nothing() {
    for index in [1, 7] {
        let pieces = [delta(index, 0, DeltaKind::Text, "stale")];
        let (world, turn) = world_with(&killed([]), &pieces).await;
        assert_eq!(world.runtime.get_turn(&turn).await.expect("readable").interrupted, None);
        world.give(&turn, cancel("closed")).await.expect("it ends");
        let expected = ["model_call_failed 0: cancelled", "turn_cancelled: closed"];
        assert_eq!(world.log(&turn)[2..], expected);
    }
}
