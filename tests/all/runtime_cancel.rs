//! How a turn is ended from outside, wherever it stands (`design/turn-runtime.md` section 11).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;
use turnstile::base::id::TurnId;
use turnstile::domain::agent::{Execution, ToolDescriptor};
use turnstile::domain::json::Json;
use turnstile::domain::permission::plan::Plan;
use turnstile::domain::turn::event::ToolResultData;
use turnstile::domain::turn::status::TurnStatus;
use turnstile::runtime::api::{CreateConfig, CreateTurn, PermissionMode, StopSignal, TurnOutcome};
use turnstile::runtime::error::{AdvanceError, InputRefused};
use turnstile::runtime::execution::TurnExecution;
use turnstile::testing::checker::{Says, ScriptedClassifier, Thinks};
use turnstile::testing::fact::{
    calls, created, created_after, invoke, model, previous, request, request_in, tool,
};
use turnstile::testing::gate::Gate;
use turnstile::testing::log::Log;
use turnstile::testing::model::Reply;
use turnstile::testing::tools::{self, FakeTool};
use turnstile::testing::world::{Setting, World, allow, answer, cancel, options, stopped_by};
use turnstile::tools::input::InputError;
use turnstile::tools::tool::{Tool, ToolContext, ToolError};

const STOPPED: &str =
    r#"runtime error "The call was cancelled: the turn was stopped before it had a result.""#;

/// Starts a turn that `stop` ends.
async fn stoppable(world: &World) -> (TurnId, StopSignal, TurnExecution) {
    let (turn, stop) = (world.ask("Do it.").await, StopSignal::new());
    let execution = world.start_with(&turn, None, stopped_by(&stop));
    (turn, stop, execution)
}

#[tokio::test]
async fn a_suspended_turn_is_cancelled_with_a_result_for_each_open_call() {
    let tools = [FakeTool::sync("a"), FakeTool::outside("b")].map(Arc::new).into();
    let world = World::new(Setting { tools, ..Setting::default() });
    world.checker.say("a", Says::Ask);
    world.will_call("a b");
    let turn = world.ask("Do it.").await;
    world.run(&turn).await;
    let outcome = world.give(&turn, cancel("changed my mind")).await.expect("taken");
    assert!(matches!(outcome, TurnOutcome::Cancelled(_)));
    assert_eq!(
        world.log(&turn)[8..],
        [
            "turn_suspended permissions [#1] async [#2]".to_owned(),
            format!("tool_result #1 {STOPPED}"),
            format!("tool_result #2 {STOPPED}"),
            "turn_cancelled: changed my mind".to_owned(),
        ]
    );
    for late in [allow(&turn, 1), answer(&turn, 2, "late"), cancel("again")] {
        let refused = world.give(&turn, late).await;
        let ended = InputRefused::Ended { turn: turn.clone(), status: TurnStatus::Cancelled };
        assert!(matches!(refused, Err(AdvanceError::Refused(why)) if why == ended));
    }
    assert_eq!(world.advance(&turn).await.expect("it has ended"), outcome);
}

#[tokio::test]
async fn what_had_streamed_before_a_stop_is_kept() {
    let gate = Gate::new();
    let world = World::bare();
    let reply = Reply::new().reasoning("Hm.").text("Once upon").gate(&gate).text(" a time");
    world.model.then(reply.finish("stop"));
    let (turn, stop, execution) = stoppable(&world).await;
    gate.reached().await;
    stop.stop(Some("enough"));
    stop.stop(Some("too late for another reason"));
    let outcome = execution.outcome.await.expect("it rests");
    assert!(matches!(outcome, TurnOutcome::Cancelled(_)));
    assert_eq!(
        world.log(&turn)[2..],
        [
            "model_step_event 0 reasoning_start",
            r#"model_step_event 0 reasoning_end "Hm.""#,
            "model_step_event 0 text_start",
            r#"model_step_event 0 text_end "Once upon""#,
            "model_call_failed 0: cancelled",
            "turn_cancelled: enough",
        ]
    );
}

#[tokio::test]
async fn a_stop_reaches_every_running_tool_and_their_last_words_are_kept() {
    let gate = tools::Gate::new();
    let setting = Setting {
        tools: [
            FakeTool::sync("a"),
            FakeTool::sync("b").waiting_at(&gate),
            FakeTool::sync("c"),
            FakeTool::outside("d"),
        ]
        .map(Arc::new)
        .into(),
        ..Setting::default()
    };
    let world = World::new(setting);
    world.checker.say("c", Says::Ask);
    world.will_call("a b c d");
    let (turn, stop, execution) = stoppable(&world).await;
    gate.arrival().await;
    while world.log(&turn).len() < 13 {
        tokio::task::yield_now().await;
    }
    stop.stop(None);
    execution.outcome.await.expect("it rests");
    assert_eq!(
        world.log(&turn)[8..],
        [
            "tool_permission_required #3 c".to_owned(),
            "tool_invocation_requested #1 a sync {}".to_owned(),
            "tool_invocation_requested #2 b sync {}".to_owned(),
            "tool_invocation_requested #4 d async {}".to_owned(),
            r#"tool_result #1 sync "a done""#.to_owned(),
            r#"tool_result #2 sync error "the call was cancelled""#.to_owned(),
            format!("tool_result #3 {STOPPED}"),
            format!("tool_result #4 {STOPPED}"),
            "turn_cancelled".to_owned(),
        ]
    );
}

/// A tool that takes its time to end.
struct Slow {
    descriptor: ToolDescriptor,
    began: Gate,
    ends_after: Duration,
    dropped: Arc<AtomicBool>,
}

impl Slow {
    fn new(ends_after: Duration) -> Arc<Self> {
        let descriptor = tool("slow", Execution::Sync);
        Arc::new(Self { descriptor, began: Gate::new(), ends_after, dropped: Arc::default() })
    }
}

struct SetOnDrop(Arc<AtomicBool>);

impl Drop for SetOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[async_trait]
impl Tool for Slow {
    fn descriptor(&self) -> &ToolDescriptor {
        &self.descriptor
    }

    fn plan(&self, _: &Json) -> Result<Plan, InputError> {
        Ok(Plan::default())
    }

    async fn run(&self, _: &Json, context: &ToolContext) -> Result<ToolResultData, ToolError> {
        let _dropped = SetOnDrop(Arc::clone(&self.dropped));
        self.began.open();
        context.cancel.cancelled().await;
        tokio::time::sleep(self.ends_after).await;
        Ok(ToolResultData { output: Json::text("cleaned up"), is_error: false, metadata: None })
    }
}

/// Stops a turn whose tool ends so long after; gives the result of its call and how long it took.
async fn check_slow(ends_after: Duration, expected: &str) -> Duration {
    let slow = Slow::new(ends_after);
    let more_tools: Vec<Arc<dyn Tool>> = vec![Arc::<Slow>::clone(&slow)];
    let world = World::new(Setting { more_tools, ..Setting::default() });
    world.will_call("slow");
    let (turn, stop, execution) = stoppable(&world).await;
    slow.began.pass().await;
    let stopped = Instant::now();
    stop.stop(None);
    execution.outcome.await.expect("it rests");
    let log = world.log(&turn);
    assert_eq!(log[6..], [format!("tool_result #1 {expected}"), "turn_cancelled".to_owned()]);
    tokio::task::yield_now().await;
    assert!(slow.dropped.load(Ordering::SeqCst), "nothing of it runs on");
    stopped.elapsed()
}

#[tokio::test(start_paused = true)]
async fn tools_get_five_seconds_to_end_and_are_dropped_then() {
    let ended = check_slow(Duration::from_secs(4), r#"sync "cleaned up""#).await;
    assert_eq!(ended, Duration::from_secs(4));
    let dropped = check_slow(Duration::from_hours(1), STOPPED).await;
    assert_eq!(dropped, Duration::from_secs(5));
}

#[tokio::test]
async fn a_stop_ends_a_classifier_and_decides_nothing() {
    let gate = Gate::new();
    let setting = Setting {
        tools: vec![Arc::new(FakeTool::sync("a"))],
        classifier: Some(ScriptedClassifier::new([Thinks::Late(gate.clone())])),
        ..Setting::default()
    };
    let world = World::new(setting);
    world.checker.say("a", Says::Ask);
    world.will_call("a");
    let human = turnstile::runtime::api::Human::Unavailable;
    let config = CreateConfig { permission: PermissionMode::Auto, human, ..world.turn("").config };
    let turn = world.create(CreateTurn { config, ..world.turn("Do it.") }).await;
    let stop = StopSignal::new();
    let execution = world.start_with(&turn, None, stopped_by(&stop));
    gate.reached().await;
    stop.stop(None);
    execution.outcome.await.expect("it rests");
    assert_eq!(
        world.log(&turn)[5..],
        [
            "tool_permission_required #1 a".to_owned(),
            format!("tool_result #1 {STOPPED}"),
            "turn_cancelled".to_owned(),
        ]
    );
}

#[tokio::test]
async fn a_turn_can_be_ended_when_nothing_of_it_can_be_resolved() {
    let waiting = Log::turn(created())
        .then(request(0, "input"))
        .then(calls(0, "c1:deploy c2:read-file"))
        .then(invoke("c1:deploy"));
    // The turn before it is not there either.
    let orphan = Log::turn(created_after(previous())).then(request_in(&previous(), 0, "input"));
    for (log, expected) in [
        (waiting, vec![format!("tool_result c1 {STOPPED}"), format!("tool_result c2 {STOPPED}")]),
        (orphan, vec!["model_call_failed 0: cancelled".to_owned()]),
    ] {
        let world = World::bare();
        world.models.remove(&model());
        let turn = world.write(log.events()).await;
        assert!(world.advance(&turn).await.is_err(), "it cannot go on");
        let outcome = world.give(&turn, cancel("interrupted")).await.expect("taken");
        assert!(matches!(outcome, TurnOutcome::Cancelled(_)));
        let ending = &world.log(&turn)[log.events().len()..];
        assert_eq!(ending, [expected, vec!["turn_cancelled: interrupted".to_owned()]].concat());
    }
}

#[tokio::test]
async fn an_advance_that_is_stopped_before_it_starts_resolves_nothing() {
    let world = World::bare();
    let turn = world.ask("Hi.").await;
    world.models.remove(&model());
    let stop = StopSignal::new();
    stop.stop(Some("no"));
    let outcome = world.start_with(&turn, None, stopped_by(&stop)).outcome.await;
    assert!(matches!(outcome, Ok(TurnOutcome::Cancelled(_))));
    assert_eq!(world.log(&turn), ["turn_created", "turn_cancelled: no"]);
}

#[tokio::test]
async fn a_cancel_waits_for_the_advance_that_runs() {
    let gate = tools::Gate::new();
    let world = World::with_tools([FakeTool::sync("a").waiting_at(&gate), FakeTool::outside("b")]);
    world.will_call("a b");
    let turn = world.ask("Do it.").await;
    let running = world.start(&turn);
    gate.arrival().await;
    let cancelling = world.start_with(&turn, Some(cancel("stop")), options());
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(world.log(&turn).len(), 8, "nothing of it is recorded early");
    gate.let_pass();
    assert!(matches!(running.outcome.await, Ok(TurnOutcome::Suspended(_))));
    assert!(matches!(cancelling.outcome.await, Ok(TurnOutcome::Cancelled(_))));
    assert_eq!(
        world.log(&turn)[8..],
        [
            r#"tool_result #1 sync "a done""#.to_owned(),
            "turn_suspended permissions [] async [#2]".to_owned(),
            format!("tool_result #2 {STOPPED}"),
            "turn_cancelled: stop".to_owned(),
        ]
    );
}

#[tokio::test]
async fn an_advance_that_waits_for_its_turn_and_is_stopped_finds_the_turn_ended() {
    let gate = Gate::new();
    let world = World::bare();
    world.model.then(Reply::new().gate(&gate).text("Hi").finish("stop"));
    let (turn, stop, running) = stoppable(&world).await;
    gate.reached().await;
    let waiting = world.start_with(&turn, None, stopped_by(&stop));
    stop.stop(None);
    let ended = running.outcome.await.expect("it rests");
    assert!(matches!(ended, TurnOutcome::Cancelled(_)));
    assert_eq!(waiting.outcome.await.expect("it rests"), ended);
}
