//! Which calls run: rules, people and classifiers (`design/turn-runtime.md` section 8).

use std::sync::Arc;

use async_trait::async_trait;
use turnstile::base::id::ToolCallId;
use turnstile::domain::agent::{Execution, ToolDescriptor};
use turnstile::domain::json::Json;
use turnstile::domain::permission::plan::{FileBase, Plan, Preview};
use turnstile::domain::turn::event::{Decision, ToolResultData, TurnFact};
use turnstile::domain::turn::status::TurnStatus;
use turnstile::runtime::api::{AdvanceOptions, ExternalInput, TurnOutcome};
use turnstile::runtime::error::{AdvanceError, InputRefused};
use turnstile::testing::checker::Says;
use turnstile::testing::fact::{json, tool};
use turnstile::testing::tools::FakeTool;
use turnstile::testing::world::{Setting, World, allow, answer, deny, folder, options};
use turnstile::tools::input::InputError;
use turnstile::tools::tool::{Permit, PreviewContext, Tool, ToolContext, ToolError};

/// A world with the tools `a` and `b`, which ask.
fn asking() -> World {
    let world = World::with_tools(["a", "b"].map(FakeTool::sync));
    world.checker.say("a", Says::Ask);
    world.checker.say("b", Says::Ask);
    world
}

#[tokio::test]
async fn a_call_that_a_rule_denies_gets_an_error_result_that_names_the_rule() {
    let world = World::with_tools([FakeTool::sync("a")]);
    world.checker.say("a", Says::Deny);
    world.will_call("a");
    world.will_say("Done.");
    let turn = world.ask("Do it.").await;
    let log = world.run(&turn).await;
    assert_eq!(log[5], r#"tool_result #1 runtime error "Denied: not here.""#);
    assert_eq!(log[6], "model_call_requested 1 [assistant:0 toolResult:#1]");
    let TurnFact::ToolResult(result) = &world.facts(&turn)[5] else { panic!("{log:#?}") };
    let metadata = result.result.metadata.as_ref().expect("it says why");
    assert_eq!(metadata.get(), r#"{"deniedBy":"the rule about a"}"#);
}

#[tokio::test]
async fn what_is_shown_is_stored_and_what_was_approved_is_what_runs() {
    let plan = Plan { commands: vec!["make".to_owned()], ..Plan::default() };
    let preview = Preview::Text { text: "makes it".to_owned() };
    let base = vec![FileBase { path: "/p/Makefile".to_owned(), sha256: None }];
    let world = World::with_tools([FakeTool::sync("a").touching(plan).showing(preview, base)]);
    world.checker.say("a", Says::Ask);
    world.will_call("a");
    world.will_say("Done.");
    let turn = world.ask("Do it.").await;
    world.run(&turn).await;
    let state = world.state(&turn);
    let call = state.tool_calls.get(&ToolCallId::of_turn(&turn, 1)).expect("it is known");
    let request = &call.permission.as_ref().expect("it asks").request;
    let folder = Json::of(&folder().canonicalize().expect("there"));
    assert_eq!(
        request.get(),
        format!(
            r#"{{"plan":{{"folder":{},"commands":["make"]}},"preview":{{"kind":"text","text":"makes it"}},"base":[{{"path":"/p/Makefile"}}],"rule":"the rule about a"}}"#,
            folder.get()
        )
    );
    world.give(&turn, allow(&turn, 1)).await.expect("taken");
    let permit = Permit::Approved(request.read().expect("it is ours"));
    assert_eq!(world.tool("a").runs()[0].permit, permit);
}

#[tokio::test]
async fn a_checker_that_fails_asks_and_never_runs_the_tool_by_itself() {
    let world = World::with_tools([FakeTool::sync("a")]);
    world.checker.say("a", Says::Nothing);
    world.will_call("a");
    let turn = world.ask("Do it.").await;
    assert_eq!(
        world.run(&turn).await[5..],
        [
            "tool_permission_required #1 a (no verdict on this call: the rules are lost)",
            "turn_suspended permissions [#1] async []",
        ]
    );
    assert_eq!(world.tool("a").runs(), []);
}

#[tokio::test]
async fn each_decision_takes_effect_at_once_and_the_others_stay_pending() {
    let world = asking();
    world.will_call("a b a");
    world.will_say("Done.");
    let turn = world.ask("Do it.").await;
    let log = world.run(&turn).await;
    assert_eq!(
        log[7..],
        [
            "tool_permission_required #1 a",
            "tool_permission_required #2 b",
            "tool_permission_required #3 a",
            "turn_suspended permissions [#1 #2 #3] async []",
        ]
    );
    world.give(&turn, allow(&turn, 3)).await.expect("taken");
    world.give(&turn, deny(&turn, 1, "not on a Friday")).await.expect("taken");
    world.give(&turn, allow(&turn, 2)).await.expect("taken");
    assert_eq!(
        world.log(&turn)[11..22],
        [
            "tool_permission_resolved #3 allow by human",
            "tool_invocation_requested #3 a sync {}",
            r#"tool_result #3 sync "a done""#,
            "turn_suspended permissions [#1 #2] async []",
            "tool_permission_resolved #1 deny by human: not on a Friday",
            r#"tool_result #1 runtime error "The person denied this call: not on a Friday""#,
            "turn_suspended permissions [#2] async []",
            "tool_permission_resolved #2 allow by human",
            "tool_invocation_requested #2 b sync {}",
            r#"tool_result #2 sync "b done""#,
            "model_call_requested 1 [assistant:0 toolResult:#1 toolResult:#2 toolResult:#3]",
        ]
    );
}

#[tokio::test]
async fn allowed_calls_of_an_answer_run_while_others_ask() {
    let world = asking();
    world.checker.say("a", Says::Allow);
    world.will_call("b a");
    let turn = world.ask("Do it.").await;
    assert_eq!(
        world.run(&turn).await[6..],
        [
            "tool_permission_required #1 b",
            "tool_invocation_requested #2 a sync {}",
            r#"tool_result #2 sync "a done""#,
            "turn_suspended permissions [#1] async []",
        ]
    );
}

#[tokio::test]
async fn inputs_for_calls_that_do_not_wait_for_them_are_refused() {
    let tools = [FakeTool::sync("a"), FakeTool::outside("c")].map(Arc::new).into();
    let world = World::new(Setting { tools, ..Setting::default() });
    world.checker.say("a", Says::Ask);
    world.will_call("a a c");
    let turn = world.ask("Do it.").await;
    world.run(&turn).await;
    world.give(&turn, allow(&turn, 1)).await.expect("taken");
    let before = world.log(&turn);
    let call = |number| ToolCallId::of_turn(&turn, number);
    let progress = |call| ExternalInput::AsyncToolProgress { call, progress: json("1") };
    for (input, why) in [
        (allow(&turn, 1), InputRefused::NoDecisionPending(call(1))),
        (deny(&turn, 3, "no"), InputRefused::NoDecisionPending(call(3))),
        (allow(&turn, 9), InputRefused::UnknownCall { turn: turn.clone(), call: call(9) }),
        (answer(&turn, 1, "late"), InputRefused::NoResultPending(call(1))),
        (answer(&turn, 2, "early"), InputRefused::NoResultPending(call(2))),
        (progress(call(1)), InputRefused::NoResultPending(call(1))),
    ] {
        let refused = world.give(&turn, input.clone()).await;
        assert!(
            matches!(&refused, Err(AdvanceError::Refused(refused)) if *refused == why),
            "{input:?}: {refused:?}"
        );
    }
    assert_eq!(world.log(&turn), before, "nothing was recorded");
    world.give(&turn, progress(call(3))).await.expect("it waits for its result");
    assert_eq!(world.log(&turn)[before.len()..], ["tool_progress #3 async 1"]);
}

#[tokio::test]
async fn an_approved_call_of_a_tool_that_is_gone_gets_an_error_result() {
    let world = asking();
    world.will_call("a");
    let turn = world.ask("Do it.").await;
    world.run(&turn).await;
    let events = world.turns.read(&turn).await.expect("readable").events.clone();
    let events: Vec<_> = events.iter().map(|event| (**event).clone()).collect();
    // The program starts again without the tool.
    let world = World::bare();
    world.write(&events).await;
    world.will_say("Done.");
    world.give(&turn, allow(&turn, 1)).await.expect("taken");
    assert_eq!(
        world.log(&turn)[events.len()..][..2],
        [
            "tool_permission_resolved #1 allow by human",
            r#"tool_result #1 runtime error "The tool \"a\" is not available any more.""#,
        ]
    );
    assert_eq!(world.state(&turn).status(), TurnStatus::Completed);
}

/// A tool whose own part in the question of permission goes wrong.
struct Faulty {
    descriptor: ToolDescriptor,
    fault: Fault,
}

#[derive(PartialEq)]
enum Fault {
    PlanPanics,
    PreviewPanics,
    PreviewFails,
}

fn faulty(name: &str, fault: Fault) -> Arc<dyn Tool> {
    Arc::new(Faulty { descriptor: tool(name, Execution::Sync), fault })
}

#[async_trait]
impl Tool for Faulty {
    fn descriptor(&self) -> &ToolDescriptor {
        &self.descriptor
    }

    fn plan(&self, _: &Json) -> Result<Plan, InputError> {
        assert!(self.fault != Fault::PlanPanics, "no plan");
        Ok(Plan::default())
    }

    async fn preview(
        &self,
        _: &Json,
        _: &PreviewContext,
    ) -> Result<(Preview, Vec<FileBase>), ToolError> {
        assert!(self.fault != Fault::PreviewPanics, "no preview");
        Err(ToolError::ChangedSinceShown { path: "a.rs".to_owned() })
    }

    async fn run(&self, _: &Json, _: &ToolContext) -> Result<ToolResultData, ToolError> {
        Err(ToolError::OtherCommand)
    }
}

#[tokio::test]
async fn what_goes_wrong_in_a_tool_before_it_runs_costs_its_own_call_alone() {
    let more_tools = vec![
        faulty("plan-panics", Fault::PlanPanics),
        faulty("preview-panics", Fault::PreviewPanics),
        faulty("preview-fails", Fault::PreviewFails),
    ];
    let tools = vec![Arc::new(FakeTool::sync("a"))];
    let world = World::new(Setting { tools, more_tools, ..Setting::default() });
    world.checker.say("preview_panics", Says::Ask);
    world.checker.say("preview_fails", Says::Ask);
    world.will_call("plan-panics preview-panics preview-fails a");
    world.will_say("Done.");
    let turn = world.ask("Do it.").await;
    assert_eq!(
        world.run(&turn).await[8..14],
        [
            r#"tool_result #1 runtime error "The tool failed by a fault of its own: no plan""#,
            r#"tool_result #2 runtime error "The tool failed by a fault of its own: no preview""#,
            r#"tool_result #3 runtime error "a.rs has changed since the change was shown and approved; read it and call again""#,
            "tool_invocation_requested #4 a sync {}",
            r#"tool_result #4 sync "a done""#,
            "model_call_requested 1 [assistant:0 toolResult:#1 toolResult:#2 toolResult:#3 toolResult:#4]",
        ]
    );
}

#[tokio::test]
async fn a_checker_that_breaks_down_asks() {
    let world = World::with_tools([FakeTool::sync("a")]);
    world.checker.say("a", Says::Panic);
    world.will_call("a");
    let turn = world.ask("Do it.").await;
    let log = world.run(&turn).await;
    assert_eq!(log.last().map(String::as_str), Some("turn_suspended permissions [#1] async []"));
    let asked = world.facts(&turn).into_iter().find_map(|fact| match fact {
        TurnFact::PermissionRequired(required) => required.checker_error,
        _ => None,
    });
    let said = asked.expect("the call asks, and says why");
    assert!(said.starts_with("the checker panicked: "), "{said}");
    assert!(said.contains("the rules are mad"), "{said}");
}

#[tokio::test]
async fn the_words_and_the_way_of_a_decision_are_recorded() {
    let world = asking();
    world.will_call("a");
    world.will_say("Done.");
    let turn = world.ask("Do it.").await;
    world.run(&turn).await;
    let metadata = json(r#"{"reason":"go on","via":"grant","grantId":"g1"}"#);
    let call = ToolCallId::of_turn(&turn, 1);
    let input = ExternalInput::PermissionDecision {
        call: call.clone(),
        decision: Decision::Allow,
        metadata: Some(metadata.clone()),
    };
    let outcome = world.give(&turn, input).await.expect("taken");
    assert!(matches!(outcome, TurnOutcome::Completed(_)));
    let state = world.state(&turn);
    let permission = state.tool_calls.get(&call).and_then(|call| call.permission.clone());
    let resolved = permission.and_then(|permission| permission.resolved).expect("decided");
    assert_eq!((resolved.reason.as_deref(), resolved.metadata), (Some("go on"), Some(metadata)));
}

#[tokio::test]
async fn a_folder_that_is_gone_costs_its_calls_an_error_result() {
    let world = asking();
    world.will_call("a");
    world.will_say("Done.");
    let turn = world.ask("Do it.").await;
    let gone = folder().join("turnstile-test-folder-that-never-was");
    let options = AdvanceOptions { folder: gone.clone(), ..options() };
    world.start_with(&turn, None, options).outcome.await.expect("it rests");
    let why = format!(
        "the session's folder {} cannot be used; choose another: No such file or directory (os error 2)",
        gone.display()
    );
    assert_eq!(world.log(&turn)[5], format!("tool_result #1 runtime error {why:?}"));
}
