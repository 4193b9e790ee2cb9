//! What happens when a store does not take an event, and what is left when the program is killed.

use std::sync::Arc;

use turnstile::base::id::TurnId;
use turnstile::domain::event::Fact as _;
use turnstile::domain::turn::event::TurnEvent;
use turnstile::runtime::api::{TurnOutcome, Turns as _};
use turnstile::runtime::error::{AdvanceError, CreateError};
use turnstile::store::error::StoreError;
use turnstile::store::jsonl;
use turnstile::store::log::{LogId, Record};
use turnstile::store::seam::LogStore as _;
use turnstile::testing::checker::Says;
use turnstile::testing::disk::{Call, ENOSPC, Fault, Plan};
use turnstile::testing::fact::json;
use turnstile::testing::store::scripted::ScriptedStore;
use turnstile::testing::store::{Home, memory_store};
use turnstile::testing::tools::{FakeTool, Gate};
use turnstile::testing::world::{Setting, World, allow, answer, options};

fn setting() -> Setting {
    let tools = [
        FakeTool::sync("a").reporting(vec![json("1")]),
        FakeTool::sync("b"),
        FakeTool::outside("c"),
    ];
    Setting { tools: tools.map(Arc::new).into(), ..Setting::default() }
}

/// A world in which a turn reports, asks, waits for an answer and then ends.
fn eventful(store: &ScriptedStore) -> World {
    let world = World::over(Arc::new(store.clone()), setting());
    world.checker.say("b", Says::Ask);
    world.will_call("a b c");
    for _ in 0..4 {
        world.will_say("Done.");
    }
    world
}

/// Advances the turn, answers what it waits for, and so on until it has ended.
async fn live(world: &World, turn: &TurnId) -> Result<TurnOutcome, AdvanceError> {
    let mut outcome = world.advance(turn).await?;
    while let TurnOutcome::Suspended(suspended) = &outcome {
        let input = if suspended.pending_permissions.is_empty() {
            answer(turn, 3, "yes")
        } else {
            allow(turn, 2)
        };
        outcome = world.give(turn, input).await?;
    }
    Ok(outcome)
}

#[tokio::test]
async fn an_event_that_is_not_taken_rejects_the_advance_and_the_next_one_goes_on() {
    for kind in [
        "model_call_requested",
        "model_step_event",
        "model_call_completed",
        "tool_permission_required",
        "tool_permission_resolved",
        "tool_invocation_requested",
        "tool_result",
        "turn_suspended",
        "turn_completed",
    ] {
        let store = ScriptedStore::new(Arc::new(memory_store()));
        let world = eventful(&store);
        let turn = world.ask("Do it.").await;
        store.fail_at(&format!("{{\"type\":\"{kind}\""));
        let rejected = live(&world, &turn).await;
        assert!(matches!(rejected, Err(AdvanceError::Store(StoreError::Io(_)))), "{kind}");
        let left = world.log(&turn);
        assert!(left.iter().all(|line| !line.starts_with(kind)), "{kind}: {left:#?}");
        let ended = live(&world, &turn).await.expect("the device has room again");
        assert!(matches!(ended, TurnOutcome::Completed(_)), "{kind}: {ended:?}");
        assert_eq!(world.log(&turn)[..left.len()], left, "{kind}");
    }
}

#[tokio::test]
async fn what_somebody_acts_on_is_safe_on_the_device_before_they_do() {
    let store = ScriptedStore::new(Arc::new(memory_store()));
    let world = eventful(&store);
    let turn = world.ask("Do it.").await;
    live(&world, &turn).await.expect("it ends");
    let kinds = |batch: &[Record]| {
        let events = batch.iter().map(|record| TurnEvent::parse_line(record.as_bytes()));
        let kinds: Vec<_> = events.map(|event| event.expect("an event").fact.kind()).collect();
        kinds.join(" ")
    };
    let told: Vec<_> = store
        .batches()
        .iter()
        .map(|(batch, durability)| format!("{durability:?}: {}", kinds(batch)))
        .collect();
    let expected = [
        "Barrier: model_call_requested",
        "Written: model_step_event",
        "Written: model_step_event",
        "Written: model_step_event",
        "Written: model_step_event model_call_completed",
        "Written: tool_permission_required",
        "Barrier: tool_invocation_requested tool_invocation_requested",
        "Written: tool_progress",
        "Written: tool_result",
        "Barrier: turn_suspended",
        "Barrier: tool_permission_resolved",
        "Barrier: tool_invocation_requested",
        "Written: tool_result",
        "Barrier: turn_suspended",
        "Barrier: tool_result",
        "Barrier: model_call_requested",
        "Written: model_step_event model_step_event",
        "Barrier: model_step_event model_call_completed turn_completed",
    ];
    assert_eq!(told, expected);
}

#[tokio::test]
async fn a_report_that_is_not_taken_harms_nothing() {
    let store = ScriptedStore::new(Arc::new(memory_store()));
    let world = eventful(&store);
    let turn = world.ask("Do it.").await;
    store.fail_at("tool_progress");
    live(&world, &turn).await.expect("it goes on");
    let log = world.log(&turn);
    assert!(log.contains(&r#"tool_result #1 sync "a done""#.to_owned()), "{log:#?}");
    assert!(log.iter().all(|line| !line.starts_with("tool_progress")), "{log:#?}");
}

#[tokio::test]
async fn a_turn_that_cannot_be_written_is_not_created() {
    let home = Home::new();
    let world = World::over(Arc::new(home.store(jsonl::Options::default())), setting());
    let fault = Fault::Error(ENOSPC);
    home.disk.fail(Plan { only: Some(Call::Write), from: 0, times: 1, fault });
    let refused = world.runtime.create_turn(world.turn("Hi.")).await;
    assert!(matches!(refused, Err(CreateError::Store(StoreError::Io(_)))));
    assert_eq!(world.turns.ids().await.expect("listed"), []);
}

#[tokio::test]
async fn whichever_write_fails_on_a_real_disk_the_log_stays_whole_and_the_turn_goes_on() {
    let mut number = 0;
    loop {
        let home = Home::new();
        let store = ScriptedStore::new(Arc::new(home.store(jsonl::Options::default())));
        let world = eventful(&store);
        let turn = world.ask("Do it.").await;
        let fault = Fault::HalfThenError(ENOSPC);
        home.disk.fail(Plan { only: Some(Call::Write), from: number, times: 1, fault });
        let first = live(&world, &turn).await;
        home.disk.heal();
        let ended = live(&world, &turn).await.expect("the device has room again");
        assert!(matches!(ended, TurnOutcome::Completed(_)), "write {number}: {ended:?}");
        // Only a report may be lost without a word.
        let reported = world.log(&turn).iter().any(|line| line.starts_with("tool_progress"));
        if first.is_ok() && reported {
            assert!(number > 10, "every write was tried: {number}");
            return;
        }
        number += 1;
    }
}

#[tokio::test]
async fn an_event_that_a_crash_tore_is_as_if_it_had_never_been_begun() {
    let home = Home::new();
    let world = || World::over(Arc::new(home.store(jsonl::Options::default())), setting());
    let (first, second) = (world(), world());
    first.will_call("c");
    let turn = first.ask("Do it.").await;
    let log = first.run(&turn).await;
    assert_eq!(log.last().expect("it rests"), "turn_suspended permissions [] async [#1]");
    let file = home.file(&LogId::turn(&turn).expect("well formed"));
    let whole = std::fs::read(&file).expect("there");
    std::fs::write(&file, &whole[..whole.len() - 10]).expect("cut");
    let left = second.runtime.get_turn(&turn).await.expect("readable");
    assert_eq!(left.events.len(), log.len() - 1, "reading repairs nothing");
    assert_eq!(std::fs::read(&file).expect("there").len(), whole.len() - 10);
    assert_eq!(second.run(&turn).await, log);
}

#[tokio::test]
async fn a_decision_that_is_not_taken_is_refused_and_can_be_given_again() {
    let gate = Gate::new();
    let store = ScriptedStore::new(Arc::new(memory_store()));
    let tools = [FakeTool::sync("a").waiting_at(&gate), FakeTool::sync("b")].map(Arc::new).into();
    let world = World::over(Arc::new(store.clone()), Setting { tools, ..Setting::default() });
    world.checker.say("b", Says::Ask);
    world.will_call("a b");
    world.will_say("Done.");
    let turn = world.ask("Do it.").await;
    let running = world.start(&turn);
    gate.arrival().await;
    store.fail_at("tool_permission_resolved");
    let refused = world.give(&turn, allow(&turn, 2)).await;
    assert!(matches!(refused, Err(AdvanceError::Store(_))));
    let again = world.start_with(&turn, Some(allow(&turn, 2)), options());
    gate.let_pass();
    let outcome = running.outcome.await.expect("the other trouble is not its own");
    assert!(matches!(again.outcome.await, Ok(TurnOutcome::Completed(_))), "{outcome:?}");
}

#[tokio::test]
async fn the_log_of_a_turn_that_rests_is_free() {
    let store = ScriptedStore::new(Arc::new(memory_store()));
    let world = eventful(&store);
    let turn = world.ask("Do it.").await;
    let id = LogId::turn(&turn).expect("well formed");
    assert!(!store.is_live(&id), "it is created and nobody works on it");
    live(&world, &turn).await.expect("it ends");
    // A tool kept its progress beyond its end.
    world.tool("a").report_late(json("2")).await;
    assert!(!store.is_live(&id));
    let removed = world.turns.delete(&turn).await.expect("it is free");
    store.restore(&removed).await.expect("it is there");
}

#[test]
fn a_decision_is_still_there_when_the_program_is_killed_right_after() {
    let home = Home::new();
    let setting = || {
        let tools = [FakeTool::sync("a").waiting_at(&Gate::new()), FakeTool::sync("b")];
        Setting { tools: tools.map(Arc::new).into(), ..Setting::default() }
    };
    let process = || tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let killed = process();
    let turn = killed.block_on(async {
        let store = ScriptedStore::new(Arc::new(home.store(jsonl::Options::default())));
        let world = World::over(Arc::new(store.clone()), setting());
        world.checker.say("b", Says::Ask);
        world.will_call("a b");
        let turn = world.ask("Do it.").await;
        let running = world.start(&turn);
        while world.log(&turn).len() < 8 {
            tokio::task::yield_now().await;
        }
        let starting = store.stop_before("tool_invocation_requested");
        let decided = world.start_with(&turn, Some(allow(&turn, 2)), options());
        starting.reached().await;
        drop((running, decided));
        turn
    });
    drop(killed);
    process().block_on(async {
        let world = World::over(Arc::new(home.store(jsonl::Options::default())), setting());
        world.will_say("Done.");
        let before = world.log(&turn);
        assert_eq!(
            before[6..],
            [
                "tool_permission_required #2 b",
                "tool_invocation_requested #1 a sync {}",
                "tool_permission_resolved #2 allow by human",
            ]
        );
        let log = world.run(&turn).await;
        assert!(log[9].starts_with("tool_result #1 runtime error \"Interrupted:"), "{log:#?}");
        assert_eq!(
            log[10..12],
            ["tool_invocation_requested #2 b sync {}", r#"tool_result #2 sync "b done""#]
        );
        assert_eq!(log.last().expect("it ended"), r#"turn_completed "Done." stop"#);
    });
}
