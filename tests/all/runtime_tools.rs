//! Tool calls: their order, what a tool may do wrong, what it reports and what it brings.

use std::sync::Arc;

use turnstile::base::id::ToolCallId;
use turnstile::domain::agent::{Execution, ToolDescriptor};
use turnstile::domain::json::Json;
use turnstile::domain::turn::event::ToolResultData;
use turnstile::domain::turn::live::{LiveEvent, News};
use turnstile::runtime::api::{CreateConfig, CreateTurn, ExternalInput, Human, TurnOutcome};
use turnstile::runtime::hub::Received;
use turnstile::testing::fact::{json, tool};
use turnstile::testing::model::Reply;
use turnstile::testing::tools::{FakeTool, Gate};
use turnstile::testing::world::{Setting, World, answer};

/// The end of a turn after its last batch of calls.
const ENDING: [&str; 5] = [
    "model_step_event 1 text_start",
    r#"model_step_event 1 text_end "Done.""#,
    "model_step_event 1 finish_step stop",
    r#"model_call_completed 1 "Done.""#,
    r#"turn_completed "Done." stop"#,
];

/// Runs a turn with one call of `tool` with `arguments`; gives the lines between the answer that
/// calls it and the next request.
async fn check_call(world: &World, name: &str, arguments: Json, expected: &[&str]) {
    world.model.then(Reply::new().call(name, arguments).finish("tool-calls"));
    world.will_say("Done.");
    let turn = world.ask("Do it.").await;
    let log = world.run(&turn).await;
    assert_eq!(log[5..log.len() - 6], *expected, "{log:#?}");
    assert_eq!(log[log.len() - 6], "model_call_requested 1 [assistant:0 toolResult:#1]");
    assert_eq!(log[log.len() - 5..], ENDING);
}

#[tokio::test]
async fn results_may_come_in_any_order_and_go_to_the_model_in_source_order() {
    let world = World::with_tools([
        FakeTool::sync("a"),
        FakeTool::outside("b"),
        FakeTool::sync("c"),
        FakeTool::outside("d"),
    ]);
    world.will_call("a b c d");
    world.will_say("Done.");
    let turn = world.ask("All four.").await;
    let log = world.run(&turn).await;
    assert_eq!(
        log[2..],
        [
            "model_step_event 0 tool_call #1 a",
            "model_step_event 0 tool_call #2 b",
            "model_step_event 0 tool_call #3 c",
            "model_step_event 0 tool_call #4 d",
            "model_step_event 0 finish_step tool-calls",
            r#"model_call_completed 0 "" #1 a #2 b #3 c #4 d"#,
            "tool_invocation_requested #1 a sync {}",
            "tool_invocation_requested #2 b async {}",
            "tool_invocation_requested #3 c sync {}",
            "tool_invocation_requested #4 d async {}",
            r#"tool_result #1 sync "a done""#,
            r#"tool_result #3 sync "c done""#,
            "turn_suspended permissions [] async [#2 #4]",
        ]
    );
    let first = world.give(&turn, answer(&turn, 4, "D")).await.expect("taken");
    assert!(matches!(first, TurnOutcome::Suspended(rest) if rest.pending_async_tools.len() == 1));
    let last = world.give(&turn, answer(&turn, 2, "B")).await.expect("taken");
    assert!(matches!(last, TurnOutcome::Completed(_)));
    assert_eq!(
        world.log(&turn)[15..19],
        [
            r#"tool_result #4 async "D""#,
            "turn_suspended permissions [] async [#2]",
            r#"tool_result #2 async "B""#,
            "model_call_requested 1 [assistant:0 toolResult:#1 toolResult:#2 toolResult:#3 toolResult:#4]",
        ]
    );
}

#[tokio::test]
async fn tools_of_one_answer_run_together_and_finish_in_any_order() {
    let (first, second) = (Gate::new(), Gate::new());
    let world = World::with_tools([
        FakeTool::sync("a").waiting_at(&first),
        FakeTool::sync("b").waiting_at(&second),
    ]);
    world.will_call("a b");
    world.will_say("Done.");
    let turn = world.ask("Both.").await;
    let mut execution = world.start(&turn);
    first.arrival().await;
    second.arrival().await;
    second.let_pass();
    loop {
        let told = execution.events.next().await.expect("it goes on").expect("it is well");
        if matches!(told, Received::Event(LiveEvent { news: News::Recorded { offset: 9, .. }, .. }))
        {
            break;
        }
    }
    first.let_pass();
    execution.outcome.await.expect("it rests");
    assert_eq!(
        world.log(&turn)[6..11],
        [
            "tool_invocation_requested #1 a sync {}",
            "tool_invocation_requested #2 b sync {}",
            r#"tool_result #2 sync "b done""#,
            r#"tool_result #1 sync "a done""#,
            "model_call_requested 1 [assistant:0 toolResult:#1 toolResult:#2]",
        ]
    );
}

#[tokio::test]
async fn a_tool_that_fails_or_panics_harms_only_its_own_call() {
    let world = World::with_tools([
        FakeTool::sync("fails").failing(),
        FakeTool::sync("panics").panicking(),
        FakeTool::sync("works"),
    ]);
    world.will_call("fails panics works");
    world.will_say("Done.");
    let turn = world.ask("All three.").await;
    let log = world.run(&turn).await;
    let mut results = log[10..13].to_vec();
    results.sort();
    assert_eq!(
        results,
        [
            r#"tool_result #1 sync error "fails is not among the paths that this call may touch""#,
            r#"tool_result #2 sync error "The tool failed by a fault of its own: panics panicked""#,
            r#"tool_result #3 sync "works done""#,
        ]
    );
    assert_eq!(log.last().expect("it ended"), r#"turn_completed "Done." stop"#);
}

#[tokio::test]
async fn a_tool_that_there_is_not_costs_its_call_an_error_result() {
    let world = World::with_tools([FakeTool::sync("a"), FakeTool::sync("b")]);
    let result = r#"tool_result #1 runtime error "There is no tool \"c\". There are: a, b.""#;
    check_call(&world, "c", json("{}"), &[result]).await;
    let bare = World::bare();
    let result = r#"tool_result #1 runtime error "There is no tool \"c\". There are: none.""#;
    check_call(&bare, "c", json("{}"), &[result]).await;
}

#[tokio::test]
async fn a_tool_that_is_gone_costs_its_call_an_error_result() {
    let world = World::with_tools([FakeTool::sync("a")]);
    // The turn began when there was another tool, and one that somebody outside answered.
    let tools = vec![tool("gone", Execution::Sync), tool("a", Execution::Async)];
    world.agents.change(|agent| agent.tools = tools.into());
    for name in ["gone", "a"] {
        let result = format!(
            r#"tool_result #1 runtime error "The tool \"{name}\" is not available any more.""#
        );
        check_call(&world, name, json("{}"), &[&result]).await;
    }
}

#[tokio::test]
async fn arguments_that_do_not_fit_cost_the_call_an_error_result() {
    let world = World::with_tools([FakeTool::sync("a")]);
    let result = r#"tool_result #1 runtime error "the input does not fit: it is no object""#;
    check_call(&world, "a", Json::text("{\"broken"), &[result]).await;
}

#[tokio::test]
async fn a_result_that_readers_could_not_take_is_made_fit_before_it_is_recorded() {
    let nested = format!("{}{}", "[".repeat(100), "]".repeat(100));
    let deep: Json = serde_json::from_str(&nested).expect("files hold what nests so deeply");
    let big = ToolResultData {
        output: json(r#"{"id":9007199254740993}"#),
        is_error: false,
        metadata: Some(json(r#"{"n":9007199254740993}"#)),
    };
    let deep = ToolResultData { output: deep, is_error: false, metadata: None };
    let world = World::with_tools([
        FakeTool::sync("big").returning(big.clone()),
        FakeTool::sync("deep").returning(deep.clone()),
        FakeTool::outside("outside"),
    ]);
    let fit = r#"{"id":"9007199254740993"}"#;
    let too_deep = r#""the result cannot be used: nested deeper than 64 levels""#;
    for (name, result) in [("big", fit), ("deep", &format!("error {too_deep}"))] {
        let invoked = format!("tool_invocation_requested #1 {name} sync {{}}");
        check_call(&world, name, json("{}"), &[&invoked, &format!("tool_result #1 sync {result}")])
            .await;
    }
    for (result, expected) in [(big, fit.to_owned()), (deep, format!("error {too_deep}"))] {
        world.will_call("outside");
        world.will_say("Done.");
        let turn = world.ask("Ask them.").await;
        world.run(&turn).await;
        let call = ToolCallId::of_turn(&turn, 1);
        world.give(&turn, ExternalInput::AsyncToolResult { call, result }).await.expect("taken");
        assert_eq!(world.log(&turn)[7], format!("tool_result #1 async {expected}"));
    }
}

#[tokio::test]
async fn an_error_from_outside_is_a_result_like_any_other() {
    let world = World::with_tools([FakeTool::outside("deploy")]);
    world.will_call("deploy");
    world.will_say("Done.");
    let turn = world.ask("Ship it.").await;
    world.run(&turn).await;
    let result =
        ToolResultData { output: Json::text("no such host"), is_error: true, metadata: None };
    let call = ToolCallId::of_turn(&turn, 1);
    world.give(&turn, ExternalInput::AsyncToolResult { call, result }).await.expect("taken");
    let log = world.log(&turn);
    assert_eq!(log[7], r#"tool_result #1 async error "no such host""#);
    assert_eq!(log.last().expect("it ended"), r#"turn_completed "Done." stop"#);
}

#[tokio::test]
async fn a_question_without_anybody_to_answer_gets_an_error_result_at_once() {
    let world = World::with_tools([FakeTool::outside("ask_human").for_humans()]);
    world.will_call("ask-human");
    world.will_say("Done.");
    let config = CreateConfig { human: Human::Unavailable, ..world.turn("").config };
    let turn = world.create(CreateTurn { config, ..world.turn("Ask me.") }).await;
    let log = world.run(&turn).await;
    assert_eq!(
        log[5],
        r#"tool_result #1 runtime error "Nobody is there to answer this. Go on without it, or say what is missing.""#
    );
    assert_eq!(log.last().expect("it ended"), r#"turn_completed "Done." stop"#);
}

#[tokio::test]
async fn a_question_suspends_the_turn_until_it_is_answered() {
    let world = World::with_tools([FakeTool::outside("ask_human").for_humans()]);
    world.will_call("ask-human");
    let turn = world.ask("Ask me.").await;
    let log = world.run(&turn).await;
    assert_eq!(
        log[5..],
        [
            "tool_invocation_requested #1 ask-human async {}",
            "turn_suspended permissions [] async [#1]",
        ]
    );
}

#[tokio::test]
async fn a_tool_can_bring_tools_which_the_next_call_sees() {
    let brought = serde_json::json!({
        "addTools": [
            tool("extra", Execution::Sync),
            tool("extra", Execution::Async),
            tool("skill", Execution::Sync),
        ]
    });
    let skill = FakeTool::sync("skill").returning(ToolResultData {
        output: Json::text("read it"),
        is_error: false,
        metadata: Some(Json::of(&brought)),
    });
    let setting = Setting {
        tools: vec![Arc::new(skill), Arc::new(FakeTool::sync("extra"))],
        ..Setting::default()
    };
    let world = World::new(setting);
    world.agents.change(|agent| {
        let tools: Vec<_> = agent.tools.iter().filter(|it| it.name == "skill").cloned().collect();
        agent.tools = tools.into();
    });
    world.will_call("skill extra");
    world.will_call("extra skill");
    world.will_say("Done.");
    let turn = world.ask("Learn it.").await;
    let log = world.run(&turn).await;
    assert_eq!(
        log[6..10],
        [
            r#"tool_result #2 runtime error "There is no tool \"extra\". There are: skill.""#,
            "tool_invocation_requested #1 skill sync {}",
            r#"tool_result #1 sync "read it""#,
            "tools_extended #1 skill [extra]",
        ]
    );
    let names = |call: usize| -> Vec<String> {
        let request = &world.model.requests()[call];
        request.tools.iter().map(|tool| tool.name.clone()).collect()
    };
    assert_eq!(
        [names(0), names(1), names(2)],
        [vec!["skill"], vec!["skill", "extra"], vec!["skill", "extra"]]
    );
    assert!(log.contains(&r#"tool_result #3 sync "extra done""#.to_owned()), "{log:#?}");
    assert_eq!(world.state(&turn).extensions.len(), 1, "each tool is brought once");
}

#[tokio::test]
async fn an_inherited_tool_is_not_brought_again() {
    let brought = serde_json::json!({ "addTools": [tool("skill", Execution::Sync)] });
    let world = World::with_tools([FakeTool::sync("skill").returning(ToolResultData {
        output: Json::text("read it"),
        is_error: false,
        metadata: Some(Json::of(&brought)),
    })]);
    world.will_say("Done.");
    let first = world.ask("Hi.").await;
    world.run(&first).await;
    let second = world.ask_after(&first, "Learn it.").await;
    world.will_call("skill");
    world.will_say("Done.");
    world.run(&second).await;
    let state = world.state(&second);
    assert!(state.definition.agent.resolved.tools().is_empty(), "it is inherited");
    assert_eq!(state.extensions, []);
}

#[tokio::test]
async fn a_result_from_outside_can_bring_tools_too() {
    let tools = [FakeTool::outside("hire"), FakeTool::sync("extra")].map(Arc::new).into();
    let world = World::new(Setting { tools, ..Setting::default() });
    let hire =
        |tools: &[ToolDescriptor]| tools.iter().filter(|it| it.name == "hire").cloned().collect();
    world.agents.change(|agent| agent.tools = hire(&agent.tools));
    world.will_call("hire");
    world.will_call("extra");
    world.will_say("Done.");
    let turn = world.ask("Hire somebody.").await;
    world.run(&turn).await;
    let brought = serde_json::json!({ "addTools": [tool("extra", Execution::Sync)] });
    let metadata = Some(Json::of(&brought));
    let result = ToolResultData { output: Json::text("hired"), is_error: false, metadata };
    let call = ToolCallId::of_turn(&turn, 1);
    world.give(&turn, ExternalInput::AsyncToolResult { call, result }).await.expect("taken");
    let log = world.log(&turn);
    assert_eq!(log[7..9], [r#"tool_result #1 async "hired""#, "tools_extended #1 hire [extra]"]);
    assert!(log.contains(&r#"tool_result #2 sync "extra done""#.to_owned()), "{log:#?}");
}
