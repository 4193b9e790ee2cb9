//! What comes while a turn runs: messages, decisions, and the number of calls that it has left.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use turnstile::base::id::{EventId, ToolCallId, TurnId};
use turnstile::domain::json::Json;
use turnstile::domain::message::UserMessage;
use turnstile::domain::turn::event::{Decision, MODEL_CALL_LIMIT, TurnFact};
use turnstile::domain::turn::status::TurnStatus;
use turnstile::runtime::api::{
    AdvanceOptions, Claimed, CreateConfig, CreateTurn, ExternalInput, StopSignal, TakeInputs,
    TurnOutcome, Turns as _,
};
use turnstile::runtime::error::{AdvanceError, InputRefused};
use turnstile::testing::checker::Says;
use turnstile::testing::fact::{created, input, request};
use turnstile::testing::log::Log;
use turnstile::testing::store::memory_store;
use turnstile::testing::store::scripted::ScriptedStore;
use turnstile::testing::tools::{FakeTool, Gate};
use turnstile::testing::world::{Setting, World, allow, answer, options, stopped_by};

/// Messages that wait for a turn, one list for each boundary to come, and what became of them.
struct Waiting {
    boundaries: Mutex<VecDeque<Vec<&'static str>>>,
    told: Mutex<Vec<String>>,
}

impl Waiting {
    fn new(boundaries: impl IntoIterator<Item = Vec<&'static str>>) -> Arc<Self> {
        let boundaries = Mutex::new(boundaries.into_iter().collect());
        Arc::new(Self { boundaries, told: Mutex::default() })
    }

    fn left(&self) -> usize {
        self.boundaries.lock().expect("nobody panicked").len()
    }

    fn told(&self) -> Vec<String> {
        self.told.lock().expect("nobody panicked").clone()
    }

    fn tell(&self, what: &str, claimed: &[Claimed]) {
        let ids: Vec<_> = claimed.iter().map(|it| it.id.as_str()).collect();
        let line = format!("{what} {}", ids.join(" "));
        self.told.lock().expect("nobody panicked").push(line);
    }
}

/// A claimed message, whose id is its text.
fn claimed(text: &str) -> Claimed {
    Claimed { id: EventId::from(text), message: Arc::new(UserMessage::text(text)) }
}

#[async_trait]
impl TakeInputs for Waiting {
    async fn claim(&self, _: &TurnId) -> Vec<Claimed> {
        let boundary = self.boundaries.lock().expect("nobody panicked").pop_front();
        boundary.unwrap_or_default().into_iter().map(claimed).collect()
    }

    async fn confirm(&self, _: &TurnId, claimed: &[Claimed]) {
        self.tell("confirmed", claimed);
    }

    async fn give_back(&self, _: &TurnId, claimed: &[Claimed]) {
        self.tell("given back", claimed);
    }
}

fn steered_by(waiting: &Arc<Waiting>) -> AdvanceOptions {
    let take_inputs: Arc<dyn TakeInputs> = Arc::<Waiting>::clone(waiting);
    AdvanceOptions { take_inputs: Some(take_inputs), ..options() }
}

fn requests(log: &[String]) -> Vec<&str> {
    let is_of_interest =
        |line: &&str| line.starts_with("model_call_requested") || line.starts_with("input_added");
    log.iter().map(String::as_str).filter(is_of_interest).collect()
}

#[tokio::test]
async fn messages_are_taken_in_before_each_model_call_and_not_after_the_answer() {
    let waiting = Waiting::new([vec!["wait"], vec!["also", "and"], vec![], vec!["too late"]]);
    let world = World::with_tools([FakeTool::sync("a")]);
    world.will_call("a");
    world.will_call("a");
    world.will_say("Done.");
    let turn = world.ask("Do it.").await;
    world.start_with(&turn, None, steered_by(&waiting)).outcome.await.expect("it rests");
    assert_eq!(
        requests(&world.log(&turn)),
        [
            r#"input_added 1 "wait""#,
            "model_call_requested 0 [input input:1]",
            r#"input_added 2 "also""#,
            r#"input_added 3 "and""#,
            "model_call_requested 1 [assistant:0 toolResult:#1 input:2 input:3]",
            "model_call_requested 2 [assistant:1 toolResult:#2]",
        ]
    );
    assert_eq!(waiting.left(), 1, "it becomes the next turn");
    assert_eq!(waiting.told(), ["confirmed wait", "confirmed also and"]);
}

#[tokio::test]
async fn what_is_claimed_and_cannot_be_recorded_is_given_back() {
    let store = ScriptedStore::new(Arc::new(memory_store()));
    let world = World::over(Arc::new(store.clone()), Setting::default());
    let waiting = Waiting::new([vec!["wait", "and"]]);
    let turn = world.ask("Do it.").await;
    store.fail_at("input_added");
    let outcome = world.start_with(&turn, None, steered_by(&waiting)).outcome.await;
    assert!(matches!(outcome, Err(AdvanceError::Store(_))), "{outcome:?}");
    assert_eq!(waiting.told(), ["given back wait and"]);
    assert_eq!(world.log(&turn).len(), 1, "nothing was recorded");
}

#[tokio::test]
async fn a_suspended_turn_takes_messages_in_once_all_results_are_there() {
    let waiting = Waiting::new([vec!["by the way"]]);
    let world = World::with_tools([FakeTool::outside("b")]);
    world.will_call("b b");
    world.will_say("Done.");
    let turn = world.ask("Do it.").await;
    world.run(&turn).await;
    for number in [2, 1] {
        let input = Some(answer(&turn, number, "yes"));
        let execution = world.start_with(&turn, input, steered_by(&waiting));
        execution.outcome.await.expect("it rests");
    }
    assert_eq!(
        requests(&world.log(&turn))[1..],
        [
            r#"input_added 1 "by the way""#,
            "model_call_requested 1 [assistant:0 toolResult:#1 toolResult:#2 input:1]",
        ]
    );
}

#[tokio::test]
async fn a_stop_while_messages_are_taken_in_sends_nothing_and_keeps_them() {
    struct Stopping(StopSignal);
    #[async_trait]
    impl TakeInputs for Stopping {
        async fn claim(&self, _: &TurnId) -> Vec<Claimed> {
            self.0.stop(None);
            vec![claimed("wait")]
        }
        async fn confirm(&self, _: &TurnId, _: &[Claimed]) {}
        async fn give_back(&self, _: &TurnId, _: &[Claimed]) {}
    }
    let world = World::bare();
    let turn = world.ask("Do it.").await;
    let stop = StopSignal::new();
    let take_inputs: Option<Arc<dyn TakeInputs>> = Some(Arc::new(Stopping(stop.clone())));
    let options = AdvanceOptions { take_inputs, ..stopped_by(&stop) };
    world.start_with(&turn, None, options).outcome.await.expect("it rests");
    assert_eq!(world.log(&turn)[1..], [r#"input_added 1 "wait""#, "turn_cancelled"]);
    world.will_say("Done.");
    let next = world.ask_after(&turn, "Go on.").await;
    world.run(&next).await;
    let told: Vec<_> = world.model.requests()[0]
        .messages
        .iter()
        .map(|it| serde_json::to_string(it).expect("JSON"))
        .collect();
    assert_eq!(
        told,
        [
            r#"{"role":"user","content":"Do it."}"#,
            r#"{"role":"user","content":"wait"}"#,
            r#"{"role":"user","content":"Go on."}"#,
        ],
        "what was accepted closes the transcript"
    );
}

#[tokio::test]
async fn a_message_that_was_taken_in_before_a_crash_is_sent_by_the_next_request() {
    let world = World::bare();
    let log = Log::turn(created()).then(input(1, "wait")).then(input(2, "and"));
    let turn = world.write(log.events()).await;
    world.will_say("Done.");
    assert_eq!(world.run(&turn).await[3], "model_call_requested 0 [input input:1 input:2]");
}

/// A turn that may make `max` model calls and calls a tool in each.
async fn budgeted(world: &World, max: u64) -> TurnId {
    let config = CreateConfig { max_model_calls: Some(max), ..world.turn("").config };
    world.create(CreateTurn { config, ..world.turn("Do it.") }).await
}

#[tokio::test]
async fn the_last_call_of_the_budget_may_answer() {
    let world = World::with_tools([FakeTool::sync("a")]);
    world.will_call("a");
    world.will_say("Done.");
    let turn = budgeted(&world, 2).await;
    assert!(matches!(world.advance(&turn).await, Ok(TurnOutcome::Completed(_))));
}

#[tokio::test]
async fn tools_of_the_last_call_run_and_then_the_turn_fails() {
    let world = World::with_tools([FakeTool::sync("a")]);
    world.will_call("a");
    world.will_call("a");
    let turn = budgeted(&world, 2).await;
    let outcome = world.advance(&turn).await.expect("it rests");
    let TurnOutcome::Failed(failed) = outcome else { panic!("{outcome:?}") };
    assert_eq!(failed.code.as_deref(), Some(MODEL_CALL_LIMIT));
    let log = world.log(&turn);
    assert_eq!(
        log[log.len() - 2..],
        [
            r#"tool_result #2 sync "a done""#,
            "turn_failed model-call-limit: the turn used up its 2 model calls; send a message to go on",
        ]
    );
}

#[tokio::test]
async fn a_message_that_is_taken_in_gives_the_turn_all_its_calls_again() {
    let waiting = Waiting::new([vec![], vec![], vec!["go on"]]);
    let world = World::with_tools([FakeTool::sync("a")]);
    for _ in 0..4 {
        world.will_call("a");
    }
    let turn = budgeted(&world, 2).await;
    let outcome = world.start_with(&turn, None, steered_by(&waiting)).outcome.await;
    assert!(matches!(outcome, Ok(TurnOutcome::Failed(_))));
    assert_eq!(world.state(&turn).model_calls.len(), 4);
}

#[tokio::test]
async fn an_interrupted_call_counts_against_the_budget() {
    let world = World::bare();
    let log = Log::turn(created()).then(request(0, "input"));
    let turn = world.write(log.events()).await;
    for _ in 0..4 {
        world.will_say("Done.");
    }
    world.run(&turn).await;
    assert_eq!(world.state(&turn).calls_since_input(), 2);
}

#[tokio::test]
async fn a_turn_that_has_ended_takes_no_input_and_gives_its_outcome_again() {
    let world = World::with_tools([FakeTool::sync("a")]);
    world.checker.say("a", Says::Ask);
    world.will_call("a");
    world.will_say("Done.");
    let turn = world.ask("Do it.").await;
    world.run(&turn).await;
    let outcome = world.give(&turn, allow(&turn, 1)).await.expect("taken");
    let log = world.log(&turn);
    let refused = world.give(&turn, allow(&turn, 1)).await;
    let ended = InputRefused::Ended { turn: turn.clone(), status: TurnStatus::Completed };
    assert!(matches!(refused, Err(AdvanceError::Refused(why)) if why == ended));
    assert_eq!(world.advance(&turn).await.expect("it has ended"), outcome);
    assert_eq!(world.log(&turn), log, "nothing was written");
}

#[tokio::test]
async fn what_readers_of_a_log_could_not_take_is_made_fit_or_refused() {
    let world = World::with_tools([FakeTool::sync("a"), FakeTool::outside("b")]);
    world.checker.say("a", Says::Ask);
    world.will_call("a b");
    let turn = world.ask("Do it.").await;
    world.run(&turn).await;
    let of = |text: String| serde_json::from_str::<Json>(&text).expect("JSON");
    let inputs = |value: &dyn Fn() -> Json| {
        let (allowed, reporting) = (ToolCallId::of_turn(&turn, 1), ToolCallId::of_turn(&turn, 2));
        let decision = Decision::Allow;
        let metadata = Some(value());
        [
            ExternalInput::AsyncToolProgress { call: reporting, progress: value() },
            ExternalInput::PermissionDecision { call: allowed, decision, metadata },
        ]
    };
    let deep = || of("[".repeat(65) + &"]".repeat(65));
    let long = || Json::text(&"x".repeat(20 * 1024 * 1024));
    let before = world.log(&turn);
    for value in [&deep as &dyn Fn() -> Json, &long] {
        for input in inputs(value) {
            let refused = world.give(&turn, input).await;
            let unfit = matches!(refused, Err(AdvanceError::Refused(InputRefused::Unfit { .. })));
            assert!(unfit, "{refused:?}");
        }
    }
    assert_eq!(world.log(&turn), before, "nothing was recorded");
    for input in inputs(&|| of(r#"{"id":9007199254740993}"#.to_owned())) {
        world.give(&turn, input).await.expect("taken");
    }
    let facts = world.facts(&turn);
    let recorded: Vec<_> = facts
        .iter()
        .filter_map(|fact| match fact {
            TurnFact::ToolProgress(fact) => Some(fact.progress.get()),
            TurnFact::PermissionResolved(fact) => fact.metadata.as_ref().map(Json::get),
            _ => None,
        })
        .collect();
    assert_eq!(recorded, [r#"{"id":"9007199254740993"}"#; 2], "no reader rounds it");
}

/// Waits until the stored log has this line.
async fn recorded(world: &World, turn: &TurnId, expected: &str) {
    while !world.log(turn).iter().any(|line| line == expected) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_decision_is_recorded_at_once_and_its_tool_starts_although_a_sibling_runs() {
    let (slow, quick) = (Gate::new(), Gate::new());
    let tools = [FakeTool::sync("a").waiting_at(&slow), FakeTool::sync("b").waiting_at(&quick)];
    let world = World::with_tools(tools);
    world.checker.say("b", Says::Ask);
    world.will_call("a b");
    world.will_say("Done.");
    let turn = world.ask("Do it.").await;
    let running = world.start(&turn);
    slow.arrival().await;
    let deciding = world.start_with(&turn, Some(allow(&turn, 2)), options());
    quick.arrival().await;
    assert_eq!(
        world.log(&turn)[7..],
        [
            "tool_invocation_requested #1 a sync {}",
            "tool_permission_resolved #2 allow by human",
            "tool_invocation_requested #2 b sync {}",
        ]
    );
    // Reading waits for nobody.
    let read = world.runtime.get_turn(&turn).await.expect("readable");
    assert_eq!(read.events.len(), 10);
    let refused = world.give(&turn, allow(&turn, 2)).await;
    assert!(
        matches!(refused, Err(AdvanceError::Refused(InputRefused::NoDecisionPending(_)))),
        "what is decided already is refused at once"
    );
    quick.let_pass();
    recorded(&world, &turn, r#"tool_result #2 sync "b done""#).await;
    slow.let_pass();
    let outcome = running.outcome.await.expect("it rests");
    assert!(matches!(outcome, TurnOutcome::Completed(_)));
    assert_eq!(deciding.outcome.await.expect("it settles with what it finds"), outcome);
}

#[tokio::test]
async fn a_decision_that_comes_as_the_turn_is_about_to_rest_is_acted_on() {
    let store = ScriptedStore::new(Arc::new(memory_store()));
    let tools = [FakeTool::outside("a"), FakeTool::sync("b")].map(Arc::new).into();
    let world = World::over(Arc::new(store.clone()), Setting { tools, ..Setting::default() });
    world.checker.say("b", Says::Ask);
    world.will_call("a b");
    let turn = world.ask("Do it.").await;
    // While the advance writes the last thing before it rests, the decision queues for the log.
    let writing = store.stop_before("tool_invocation_requested");
    let running = world.start(&turn);
    writing.reached().await;
    let deciding = world.start_with(&turn, Some(allow(&turn, 2)), options());
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    writing.open();
    let first = running.outcome.await.expect("it rests");
    let log = world.log(&turn);
    assert_eq!(
        log[7..],
        [
            "tool_invocation_requested #1 a async {}",
            "tool_permission_resolved #2 allow by human",
            "tool_invocation_requested #2 b sync {}",
            r#"tool_result #2 sync "b done""#,
            "turn_suspended permissions [] async [#1]",
        ]
    );
    assert_eq!(deciding.outcome.await.expect("it rests"), first);
    assert_eq!(world.log(&turn), log, "what rests already is not recorded again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_decision_is_overlooked_however_it_falls() {
    let world = Arc::new(World::with_tools(["a", "b", "c"].map(FakeTool::sync)));
    for tool in ["a", "b", "c"] {
        world.checker.say(tool, Says::Ask);
    }
    for _ in 0..60 {
        world.will_call("a b c");
        world.will_say("Done.");
        let turn = world.ask("Do it.").await;
        let running = world.start(&turn);
        recorded(&world, &turn, "tool_permission_required #3 c").await;
        let decided = [2, 3, 1]
            .map(|number| world.start_with(&turn, Some(allow(&turn, number)), options()).outcome);
        running.outcome.await.expect("it rests");
        for outcome in decided {
            outcome.await.expect("every decision is taken");
        }
        let state = world.state(&turn);
        assert_eq!(state.status(), TurnStatus::Completed, "{:#?}", world.log(&turn));
    }
}
