//! What a running tool reports: what is recorded, what is only told, and what comes too late.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use turnstile::base::id::ToolCallId;
use turnstile::domain::agent::{Execution, ToolDescriptor};
use turnstile::domain::json::Json;
use turnstile::domain::permission::plan::Plan;
use turnstile::domain::turn::event::ToolResultData;
use turnstile::domain::turn::live::News;
use turnstile::runtime::api::Turns as _;
use turnstile::testing::fact::{json, tool};
use turnstile::testing::gate::Gate as StoreGate;
use turnstile::testing::store::memory_store;
use turnstile::testing::store::scripted::ScriptedStore;
use turnstile::testing::tools::{FakeTool, Gate};
use turnstile::testing::world::{Setting, World, all_told};
use turnstile::tools::input::InputError;
use turnstile::tools::tool::{Tool, ToolContext, ToolError};

#[tokio::test]
async fn reports_are_recorded_before_they_return_but_not_more_than_four_a_second() {
    let reports = vec![json("0.1"), json("0.2")];
    let world = World::with_tools([FakeTool::sync("a").reporting(reports)]);
    world.will_call("a");
    world.will_say("Done.");
    let turn = world.ask("Go.").await;
    assert_eq!(
        world.run(&turn).await[5..8],
        [
            "tool_invocation_requested #1 a sync {}",
            "tool_progress #1 sync 0.1",
            r#"tool_result #1 sync "a done""#,
        ]
    );
}

#[tokio::test]
async fn a_call_records_reports_of_sixteen_kibibytes_in_all() {
    let half = Json::text(&"x".repeat(9_000));
    let gate = Gate::new();
    let world = World::with_tools([FakeTool::sync("a").waiting_at(&gate)]);
    world.will_call("a");
    world.will_say("Done.");
    let turn = world.ask("Go.").await;
    let execution = world.start(&turn);
    gate.arrival().await;
    for _ in 0..3 {
        world.tool("a").report_late(half.clone()).await;
        world.clock.pass(Duration::from_millis(250));
    }
    world.tool("a").report_late(json("\"short\"")).await;
    gate.let_pass();
    execution.outcome.await.expect("it rests");
    let log = world.log(&turn);
    let reports = log.iter().filter(|line| line.starts_with("tool_progress"));
    assert_eq!(reports.map(String::len).collect::<Vec<_>>(), [9_024, 29]);
}

#[tokio::test]
async fn a_report_after_the_result_never_reaches_the_log() {
    let gate = Gate::new();
    let world = World::with_tools([FakeTool::sync("a"), FakeTool::sync("b").waiting_at(&gate)]);
    world.will_call("a b");
    world.will_say("Done.");
    let turn = world.ask("Both.").await;
    let execution = world.start(&turn);
    gate.arrival().await;
    while world.log(&turn).len() < 9 {
        tokio::task::yield_now().await;
    }
    // Its sibling still runs, so the turn does, too.
    world.tool("a").report_late(json("1")).await;
    gate.let_pass();
    execution.outcome.await.expect("it rests");
    // The turn has ended.
    world.tool("b").report_late(json("1")).await;
    let log = world.log(&turn);
    assert!(log.iter().all(|line| !line.starts_with("tool_progress")), "{log:#?}");
}

#[tokio::test]
async fn the_tail_of_live_output_is_told_and_not_recorded() {
    let world = World::with_tools([FakeTool::sync("a").tailing(&["1 %", "2 %"])]);
    world.will_call("a");
    world.will_say("Done.");
    let turn = world.ask("Go.").await;
    let (told, _) = all_told(world.start(&turn)).await;
    let tails = told.into_iter().filter_map(|event| match event.news {
        News::ToolTail { call, tail } => Some((call, tail)),
        _ => None,
    });
    let first = (ToolCallId::of_turn(&turn, 1), "1 %".to_owned());
    assert_eq!(tails.collect::<Vec<_>>(), [first], "the second came too soon");
    assert!(world.log(&turn).iter().all(|line| !line.contains('%')));
}

/// A tool that reports, and gives up on its report once that stands at the gate, if it has one.
struct Reporter {
    descriptor: ToolDescriptor,
    impatient_at: Option<StoreGate>,
}

#[async_trait]
impl Tool for Reporter {
    fn descriptor(&self) -> &ToolDescriptor {
        &self.descriptor
    }

    fn plan(&self, _: &Json) -> Result<Plan, InputError> {
        Ok(Plan::default())
    }

    async fn run(&self, _: &Json, context: &ToolContext) -> Result<ToolResultData, ToolError> {
        match &self.impatient_at {
            None => context.progress.report(json("1")).await,
            Some(gate) => tokio::select! {
                biased;
                // To give up on a report is what is tested.
                () = context.progress.report(json("1")) => {}
                () = gate.reached() => gate.open(),
            },
        }
        Ok(ToolResultData { output: Json::text("reported"), is_error: false, metadata: None })
    }
}

/// Calls a tool that reports and one that waits at a gate; the report is stopped as it is written.
fn reporting(impatient: bool) -> (World, StoreGate, Arc<Gate>) {
    let store = ScriptedStore::new(Arc::new(memory_store()));
    let (writing, sibling) = (store.stop_before("tool_progress"), Gate::new());
    let impatient_at = impatient.then(|| writing.clone());
    let reporter = Reporter { descriptor: tool("a", Execution::Sync), impatient_at };
    let setting = Setting {
        tools: vec![Arc::new(FakeTool::sync("b").waiting_at(&sibling))],
        more_tools: vec![Arc::new(reporter)],
        ..Setting::default()
    };
    let world = World::over(Arc::new(store), setting);
    world.will_call("a b");
    world.will_say("Done.");
    (world, writing, sibling)
}

#[tokio::test(start_paused = true)]
async fn a_result_that_comes_while_a_report_is_written_waits_for_it_and_for_nothing_else() {
    let (world, writing, sibling) = reporting(false);
    let turn = world.ask("Both.").await;
    let running = world.start(&turn);
    writing.reached().await;
    sibling.let_pass();
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    writing.open();
    let rested = tokio::time::timeout(Duration::from_mins(1), running.outcome).await;
    rested.expect("nothing waits for itself").expect("it rests");
    assert!(world.log(&turn).contains(&"tool_progress #1 sync 1".to_owned()));
}

#[tokio::test]
async fn a_report_that_its_tool_gives_up_on_is_recorded_whole_or_not_at_all() {
    let (world, _, sibling) = reporting(true);
    let turn = world.ask("Both.").await;
    let running = world.start(&turn);
    sibling.arrival().await;
    while !world.log(&turn).contains(&r#"tool_result #1 sync "reported""#.to_owned()) {
        tokio::task::yield_now().await;
    }
    let read = world.runtime.get_turn(&turn).await.expect("readable");
    assert_eq!(read.state, world.state(&turn), "the memory and the log agree");
    sibling.let_pass();
    running.outcome.await.expect("it rests");
}
