//! What an advance does with a log that a crash cut, wherever it ends (`design/turn-runtime.md`
//! section 12).

use std::sync::Arc;

use turnstile::base::error::with_causes;
use turnstile::domain::agent::Execution;
use turnstile::domain::json::Json;
use turnstile::domain::permission::plan::{LocatedPlan, PermissionRequest, Preview};
use turnstile::domain::turn::event::{
    Classification, Decision, PermissionRequired, TurnConfig, TurnCreated, TurnFact,
};
use turnstile::domain::turn::status::TurnStatus;
use turnstile::runtime::api::{AdvanceOptions, TurnOutcome};
use turnstile::runtime::error::{AdvanceError, ReadError};
use turnstile::runtime::execution::Rejected;
use turnstile::store::error::StoreError;
use turnstile::store::log::{LogId, Record};
use turnstile::store::seam::LogStore as _;
use turnstile::testing::checker::Says;
use turnstile::testing::fact::{
    answer, ask, call_failed, calls, cancel, classify, complete, created, decide, extend, fail,
    invoke, progress, request, result, result_from, step, suspend, tool, turn, unclassified,
};
use turnstile::testing::log::{Log, TURN};
use turnstile::testing::store::memory_store;
use turnstile::testing::tools::FakeTool;
use turnstile::testing::world::{Setting, World, all_told};

/// A world with tools for what test logs call.
fn world() -> World {
    World::with_tools([
        FakeTool::sync("read_file"),
        FakeTool::sync("write_file"),
        FakeTool::outside("ask_human").for_humans(),
        FakeTool::outside("deploy"),
    ])
}

/// `tool_permission_required` as this program writes it.
fn ask_ours(call: &str) -> TurnFact {
    let TurnFact::PermissionRequired(fact) = ask(call) else { panic!("a question") };
    let request = PermissionRequest {
        plan: LocatedPlan { folder: "/p".to_owned(), ..LocatedPlan::default() },
        preview: Preview::None,
        base: Vec::new(),
        rule: "ask".to_owned(),
    };
    TurnFact::PermissionRequired(PermissionRequired { request: request.to_json(), ..fact })
}

/// Cuts a turn's log after `log` and advances it; gives what follows.
async fn recover(world: &World, log: Log<TurnFact>) -> Vec<String> {
    let turn = world.write(log.events()).await;
    world.will_say("Done.");
    let mut lines = world.run(&turn).await;
    lines.drain(..log.events().len());
    lines
}

async fn check(log: Log<TurnFact>, expected: &[&str]) {
    assert_eq!(recover(&world(), log).await, *expected);
}

/// A call of the model that answers and so ends the turn.
fn ending(index: usize, refs: &str) -> Vec<String> {
    vec![
        format!("model_call_requested {index} [{refs}]"),
        format!("model_step_event {index} text_start"),
        format!("model_step_event {index} text_end \"Done.\""),
        format!("model_step_event {index} finish_step stop"),
        format!("model_call_completed {index} \"Done.\""),
        "turn_completed \"Done.\" stop".to_owned(),
    ]
}

async fn check_goes_on(log: Log<TurnFact>, first: &[&str], index: usize, refs: &str) {
    let first = first.iter().map(|&line| line.to_owned());
    let expected: Vec<_> = first.chain(ending(index, refs)).collect();
    assert_eq!(recover(&world(), log).await, expected);
}

fn one_call(call: &str) -> Log<TurnFact> {
    Log::turn(created()).then(request(0, "input")).then(calls(0, call))
}

const INTERRUPTED_CALL: &str =
    "model_call_failed 0: interrupted: the program ended while the model answered";

fn interrupted(call: &str) -> String {
    format!(
        "tool_result {call} runtime error \"Interrupted: the program ended while this call ran. Its \
         outcome is unknown, and it was not repeated. Find out how things stand before you call it \
         again.\""
    )
}

#[tokio::test]
async fn a_turn_that_was_only_created_makes_its_first_model_call() {
    check_goes_on(Log::turn(created()), &[], 0, "input").await;
}

#[tokio::test]
async fn an_interrupted_model_call_is_failed_and_made_again() {
    let log = Log::turn(created()).then(request(0, "input"));
    check_goes_on(log.clone(), &[INTERRUPTED_CALL], 1, "").await;
    check_goes_on(log.then(step(0)), &[INTERRUPTED_CALL], 1, "").await;
}

#[tokio::test]
async fn a_failed_call_whose_turn_had_not_failed_yet_is_made_again() {
    let log = Log::turn(created()).then(request(0, "input")).then(call_failed(0));
    check_goes_on(log, &[], 1, "").await;
}

#[tokio::test]
async fn an_answer_without_calls_completes_the_turn() {
    let log = Log::turn(created()).then(request(0, "input")).then(answer(0, "Hello."));
    check(log, &[r#"turn_completed "Hello." stop"#]).await;
}

#[tokio::test]
async fn an_answer_with_calls_goes_on_with_permissions_and_tools() {
    let log = one_call("c1:read-file c2:made-up");
    let done = [
        r#"tool_result c2 runtime error "There is no tool \"made-up\". There are: read-file, write-file, ask-human, deploy.""#,
        r#"tool_invocation_requested c1 read-file sync {"path":"a"}"#,
        r#"tool_result c1 sync "read_file done""#,
    ];
    check_goes_on(log, &done, 1, "assistant:0 toolResult:c1 toolResult:c2").await;
}

#[tokio::test]
async fn permission_work_that_was_half_done_goes_on_with_what_is_open() {
    let world = world();
    world.checker.say("write_file", Says::Ask);
    let log = one_call("c1:write-file c2:write-file c3:read-file c4:read-file")
        .then(ask_ours("c1:write-file"))
        .then(ask_ours("c4:read-file"))
        .then(decide("c4", Decision::Deny));
    assert_eq!(
        recover(&world, log).await,
        [
            "tool_permission_required c2 write-file",
            r#"tool_result c4 runtime error "The person denied this call.""#,
            r#"tool_invocation_requested c3 read-file sync {"path":"a"}"#,
            r#"tool_result c3 sync "read_file done""#,
            "turn_suspended permissions [c1 c2] async []",
        ]
    );
    assert_eq!(world.checker.asked(), ["write_file", "read_file"], "the others were looked at");
}

#[tokio::test]
async fn a_classification_is_not_asked_for_again() {
    let config = TurnConfig { auto_permission: true, human_available: false, ..turn().config };
    let created = || TurnFact::Created(Arc::new(TurnCreated { config: config.clone(), ..turn() }));
    let log = || {
        Log::turn(created())
            .then(request(0, "input"))
            .then(calls(0, "c1:read-file"))
            .then(ask_ours("c1:read-file"))
    };
    check_goes_on(
        log().then(classify("c1", Classification::Allow)),
        &[
            "tool_permission_resolved c1 allow by classifier: looks harmless",
            r#"tool_invocation_requested c1 read-file sync {"path":"a"}"#,
            r#"tool_result c1 sync "read_file done""#,
        ],
        1,
        "assistant:0 toolResult:c1",
    )
    .await;
    let nobody = "nobody is there to ask, and no classifier model is configured";
    check_goes_on(
        log().then(unclassified("c1")),
        &[
            &format!("tool_permission_resolved c1 deny by human_unavailable: {nobody}"),
            &format!(r#"tool_result c1 runtime error "This call was denied: {nobody}""#),
        ],
        1,
        "assistant:0 toolResult:c1",
    )
    .await;
}

#[tokio::test]
async fn an_allowed_call_that_was_not_invoked_is_invoked() {
    let log = one_call("c1:read-file").then(ask_ours("c1:read-file"));
    check_goes_on(
        log.then(decide("c1", Decision::Allow)),
        &[
            r#"tool_invocation_requested c1 read-file sync {"path":"a"}"#,
            r#"tool_result c1 sync "read_file done""#,
        ],
        1,
        "assistant:0 toolResult:c1",
    )
    .await;
}

#[tokio::test]
async fn what_another_program_had_approved_in_its_own_words_is_asked_for_again_by_the_model() {
    let log = one_call("c1:read-file").then(ask("c1:read-file"));
    let result = r#"tool_result c1 runtime error "What was approved cannot be read by this program. Call it again.""#;
    check_goes_on(
        log.then(decide("c1", Decision::Allow)),
        &[result],
        1,
        "assistant:0 toolResult:c1",
    )
    .await;
}

#[tokio::test]
async fn sync_tools_that_were_running_get_error_results_and_are_not_repeated() {
    let world = world();
    let log = one_call("c1:read-file c2:write-file c3:read-file c4:write-file c5:deploy")
        .then(invoke("c1:read-file"))
        .then(invoke("c2:write-file"))
        .then(invoke("c3:read-file"))
        .then(progress("c1:read-file"))
        .then(result("c3:read-file"));
    assert_eq!(
        recover(&world, log).await,
        [
            interrupted("c1"),
            interrupted("c2"),
            r#"tool_invocation_requested c4 write-file sync {"path":"a"}"#.to_owned(),
            r#"tool_invocation_requested c5 deploy async {"path":"a"}"#.to_owned(),
            r#"tool_result c4 sync "write_file done""#.to_owned(),
            "turn_suspended permissions [] async [c5]".to_owned(),
        ]
    );
    assert_eq!(world.tool("read_file").runs(), []);
    assert_eq!(world.tool("write_file").runs().len(), 1);
}

#[tokio::test]
async fn an_async_call_without_a_result_stays_suspended() {
    let log =
        one_call("c1:deploy c2:read-file").then(invoke("c1:deploy")).then(invoke("c2:read-file"));
    let suspended = "turn_suspended permissions [] async [c1]";
    check(log, &[&interrupted("c2"), suspended]).await;
    let world = world();
    let rested = one_call("c1:deploy").then(invoke("c1:deploy"));
    let turn = world.write(rested.events()).await;
    assert_eq!(world.run(&turn).await[4..], [suspended]);
    assert_eq!(world.run(&turn).await[4..], [suspended], "it rests on that very snapshot");
}

#[tokio::test]
async fn a_snapshot_that_says_something_else_is_recorded_again() {
    let log = one_call("c1:deploy").then(ask_ours("c1:deploy")).then(suspend("c1:deploy", ""));
    let log = log.then(decide("c1", Decision::Allow));
    check(
        log,
        &[
            r#"tool_invocation_requested c1 deploy async {"path":"a"}"#,
            "turn_suspended permissions [] async [c1]",
        ],
    )
    .await;
}

#[tokio::test]
async fn once_all_results_are_in_the_model_is_called_again() {
    let log = one_call("c1:deploy c2:read-file")
        .then(invoke("c1:deploy"))
        .then(suspend("", "c1:deploy"))
        .then(result("c1:deploy"))
        .then(result_from("c2:read-file", turnstile::domain::turn::event::ResultSource::Runtime));
    check_goes_on(log, &[], 1, "assistant:0 toolResult:c1 toolResult:c2").await;
}

#[tokio::test]
async fn tools_that_a_result_brought_are_recorded_if_a_crash_came_between() {
    let TurnFact::ToolResult(mut fact) = result("c1:read-file") else { panic!("a result") };
    let brought = serde_json::json!({ "addTools": [tool("extra", Execution::Sync)] });
    fact.result.metadata = Some(Json::of(&brought));
    let log =
        one_call("c1:read-file").then(invoke("c1:read-file")).then(TurnFact::ToolResult(fact));
    let extended = "tools_extended c1 read-file [extra]";
    check_goes_on(log.clone(), &[extended], 1, "assistant:0 toolResult:c1").await;
    check_goes_on(log.then(extend("c1", "extra")), &[], 1, "assistant:0 toolResult:c1").await;
}

#[tokio::test]
async fn a_turn_that_has_ended_gives_its_outcome_and_nothing_is_written() {
    let answered = || Log::turn(created()).then(request(0, "input")).then(answer(0, "Done."));
    for (log, status) in [
        (answered().then(complete()), TurnStatus::Completed),
        (answered().then(fail()), TurnStatus::Failed),
        (Log::turn(created()).then(cancel()), TurnStatus::Cancelled),
    ] {
        let world = world();
        let turn = world.write(log.events()).await;
        let outcome = world.advance(&turn).await.expect("it has ended");
        assert_eq!(Some(outcome), TurnOutcome::recorded(&log.state()));
        assert_eq!(world.state(&turn), log.state());
        assert_eq!(log.state().status(), status);
        assert_eq!(world.model.requests(), []);
    }
}

#[tokio::test]
async fn a_log_that_cannot_be_read_rejects_and_stays_as_it_is() {
    let store = Arc::new(memory_store());
    let turn = Log::turn(created()).events()[0].id.clone();
    let id = LogId::turn(&turn).expect("well formed");
    let lines = [Log::turn(created()).events()[0].to_line(), r#"{"type":"unheard_of"}"#.to_owned()];
    let records = lines.map(|line| Record::new(line).expect("an object"));
    drop(store.create(&id, &records).await.expect("created"));
    let world =
        World::over(Arc::<turnstile::store::memory::Store>::clone(&store), Setting::default());
    let mut execution = world.start_with(&turn, None, AdvanceOptions::default());
    let outcome = std::mem::replace(&mut execution.outcome, Box::pin(std::future::pending()));
    let (told, rejected) = all_told(execution).await;
    let told: Vec<_> = told.iter().map(|event| format!("{:?}", event.news)).collect();
    assert_eq!(told, ["Started", "Rested"], "whoever follows it sees that it ended");
    let Err(error) = outcome.await else { panic!("there is nothing to advance") };
    assert!(
        matches!(&error, AdvanceError::Read(ReadError::Store(StoreError::Corrupt { line: 2, .. }))),
        "{error:?}"
    );
    assert_eq!(rejected, Some(Rejected(with_causes(&error))), "the stream, too");
    assert_eq!(store.inspect(&id).await.expect("there").records, records);
}

#[tokio::test]
async fn an_unknown_turn_rejects() {
    let world = world();
    let turn = Log::turn(created()).events()[0].id.clone();
    assert_eq!(turn.as_str(), TURN);
    let rejected = world.advance(&turn).await;
    assert!(matches!(rejected, Err(AdvanceError::Read(ReadError::Store(StoreError::NotFound(_))))));
}

#[tokio::test]
async fn calls_are_numbered_after_the_highest_number_in_the_log() {
    let world = world();
    let theirs = format!("{TURN}_7:read-file");
    let log = Log::turn(created())
        .then(request(0, "input"))
        .then(calls(0, &theirs))
        .then(result_from(&theirs, turnstile::domain::turn::event::ResultSource::Runtime));
    let turn = world.write(log.events()).await;
    world.will_call("read-file read-file");
    world.will_say("Done.");
    let log = world.run(&turn).await;
    assert_eq!(log[8], r#"model_call_completed 1 "" #8 read-file #9 read-file"#);
}
