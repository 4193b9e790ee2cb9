//! Any history, cut at every line, goes on: to an end or to a rest from which answers lead to an end.
//! `TURNSTILE_CASES=1000` tries so many histories. What fails is told as the smallest history and rules
//! that fail, and the line after which they were cut.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use proptest::prelude::*;
use turnstile::base::id::{ToolCallId, TurnId};
use turnstile::base::tasks::panic_message;
use turnstile::domain::event::Event;
use turnstile::domain::json::Json;
use turnstile::domain::turn::apply::reduce_turn;
use turnstile::domain::turn::event::{Decision, ToolResultData, TurnEvent, TurnSuspended};
use turnstile::domain::turn::state::TurnState;
use turnstile::runtime::api::{ExternalInput, TurnOutcome};
use turnstile::testing::checker::Says;
use turnstile::testing::fact::{answer, complete, created, request};
use turnstile::testing::log::{Log, PREVIOUS_TURN};
use turnstile::testing::strategy::turn_history;
use turnstile::testing::tools::FakeTool;
use turnstile::testing::world::World;

use crate::simulation::asked;

/// Enough for every kind of cut, few enough for a debug build; how many are tried where nothing is said.
const CASES: u64 = 8;
/// More answers than any turn of these waits for.
const ANSWERS_MAX: usize = 64;
const SYNC_TOOLS: [&str; 4] = ["read_file", "write_file", "extra_1", "extra_2"];

/// What the rules of one case say.
type Rules = [Says; 2];

fn rules() -> impl Strategy<Value = Rules> {
    let says =
        || prop_oneof![Just(Says::Allow), Just(Says::Ask), Just(Says::Deny), Just(Says::Nothing)];
    [says(), says()]
}

fn cases() -> u32 {
    let cases = asked("TURNSTILE_CASES").unwrap_or(CASES);
    u32::try_from(cases).expect("fewer cases will do")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_history_that_is_cut_anywhere_goes_on_and_no_tool_runs_twice(
        history in turn_history(),
        rules in rules(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        for cut in 1..=history.len() {
            let checked = catch_unwind(AssertUnwindSafe(|| {
                runtime.block_on(check(&history[..cut], rules));
            }));
            if let Err(panic) = checked {
                let why = panic_message(panic.as_ref());
                prop_assert!(false, "cut after {cut} of {} events: {why}", history.len());
            }
        }
    }
}

async fn check(events: &[TurnEvent], rules: Rules) {
    let tools = SYNC_TOOLS.map(FakeTool::sync).into_iter();
    let outside = ["ask_human", "deploy"].map(FakeTool::outside);
    let world = World::with_tools(tools.chain(outside));
    for (tool, says) in ["read_file", "write_file"].into_iter().zip(rules) {
        world.checker.say(tool, says);
    }
    world.will_call("read-file made-up deploy");
    world.will_call("write-file extra-1");
    // Messages that are in the history give it its calls again.
    for _ in 0..8 {
        world.will_say("Done.");
    }
    world.write(&previous()).await;
    let turn = world.write(events).await;
    let cut = reduce_turn(events).expect("a history is legal");
    let mut outcome = world.advance(&turn).await.expect("it comes to rest");
    for _ in 0..ANSWERS_MAX {
        let TurnOutcome::Suspended(suspended) = &outcome else {
            let end = world.state(&turn);
            assert_eq!(Some(outcome), TurnOutcome::recorded(&end));
            check_runs(&world, &cut, &end);
            return;
        };
        outcome = world.give(&turn, next_answer(suspended)).await.expect("it waits for that");
    }
    panic!("it never ends: {:#?}", world.log(&turn));
}

/// The turn before, which has ended.
fn previous() -> Vec<TurnEvent> {
    let log =
        Log::turn(created()).then(request(0, "input")).then(answer(0, "Done.")).then(complete());
    let id = TurnId::from(PREVIOUS_TURN);
    log.into_events().into_iter().map(|event| Event { id: id.clone(), ..event }).collect()
}

fn next_answer(suspended: &TurnSuspended) -> ExternalInput {
    if let Some(pending) = suspended.pending_permissions.first() {
        let call = pending.tool_call_id.clone();
        return ExternalInput::PermissionDecision {
            call,
            decision: Decision::Allow,
            metadata: None,
        };
    }
    let call = suspended.pending_async_tools[0].tool_call_id.clone();
    let result = ToolResultData { output: Json::text("yes"), is_error: false, metadata: None };
    ExternalInput::AsyncToolResult { call, result }
}

/// Only calls ran that were not running before the cut, each once and after its invocation.
fn check_runs(world: &World, cut: &TurnState, end: &TurnState) {
    let ran: Vec<_> = SYNC_TOOLS.iter().flat_map(|tool| world.tool(tool).runs()).collect();
    let calls: BTreeSet<&ToolCallId> = ran.iter().map(|run| &run.call).collect();
    assert_eq!(calls.len(), ran.len());
    for call in calls {
        let before = cut.tool_calls.get(call).and_then(|call| call.invocation.as_ref());
        assert_eq!(before, None, "{call} ran before the cut");
        let invoked = end.tool_calls.get(call).is_some_and(|call| call.invocation.is_some());
        assert!(invoked, "{call} ran without an invocation");
    }
}
