//! Every rule of `design/turn-runtime.md` section 5 about permissions and tool runs.

use turnstile::domain::agent::Execution;
use turnstile::domain::event::Fact as _;
use turnstile::domain::turn::event::{Classification, Decision, ResultSource, TurnFact};
use turnstile::domain::turn::refusal::{PermissionRefusal, ToolRefusal};
use turnstile::testing::fact::{
    ask, calls, classify, created_after, decide, extend, invoke, previous, progress, request,
    request_in, result, result_from, unclassified,
};
use turnstile::testing::log::Log;

use crate::domain_refusals::{call_id, calling, check_refused};

fn reading() -> Log<TurnFact> {
    calling("c1:read-file")
}

fn asked() -> Log<TurnFact> {
    reading().then(ask("c1:read-file"))
}

fn running() -> Log<TurnFact> {
    reading().then(invoke("c1:read-file"))
}

fn ran() -> Log<TurnFact> {
    running().then(result("c1:read-file"))
}

fn given_up() -> TurnFact {
    result_from("c1:read-file", ResultSource::Runtime)
}

#[test]
fn permission_records_are_about_calls_of_the_turn() {
    for fact in [
        ask("c9:read-file"),
        classify("c9", Classification::Allow),
        unclassified("c1 c9"),
        decide("c9", Decision::Allow),
    ] {
        let kind = fact.kind();
        let refusal = PermissionRefusal::UnknownCall { kind, call: call_id("c9") };
        check_refused(&asked(), fact, refusal, &format!("{kind} for unknown tool call c9"));
    }
}

#[test]
fn a_permission_is_required_once_and_before_the_call_runs() {
    let told = "a second permission requirement for tool call c1";
    let twice = || PermissionRefusal::RequiredTwice(call_id("c1"));
    check_refused(&asked(), ask("c1:read-file"), twice(), told);
    let denied = asked().then(decide("c1", Decision::Deny));
    check_refused(&denied, ask("c1:read-file"), twice(), told);

    check_refused(
        &running(),
        ask("c1:read-file"),
        PermissionRefusal::RequiredAfterInvocation(call_id("c1")),
        "a permission requirement for tool call c1 after its invocation",
    );
    for over in [ran(), reading().then(given_up())] {
        check_refused(
            &over,
            ask("c1:read-file"),
            PermissionRefusal::AfterResult {
                kind: "tool_permission_required",
                call: call_id("c1"),
            },
            "tool_permission_required for tool call c1 after its result",
        );
    }
}

#[test]
fn only_what_was_asked_about_is_classified_and_decided() {
    for fact in
        [classify("c1", Classification::Defer), unclassified("c1"), decide("c1", Decision::Deny)]
    {
        let kind = fact.kind();
        for log in [reading(), running(), ran()] {
            let refusal = PermissionRefusal::NotRequired { kind, call: call_id("c1") };
            let told = format!("{kind} for tool call c1, which needs no permission");
            check_refused(&log, fact.clone(), refusal, &told);
        }
    }
}

#[test]
fn a_decision_is_final() {
    for fact in
        [classify("c1", Classification::Allow), unclassified("c1"), decide("c1", Decision::Allow)]
    {
        let kind = fact.kind();
        for decision in [Decision::Allow, Decision::Deny] {
            let refusal = PermissionRefusal::AfterResolution { kind, call: call_id("c1") };
            let told = format!("{kind} for tool call c1 after its resolution");
            check_refused(&asked().then(decide("c1", decision)), fact.clone(), refusal, &told);
        }
    }
}

#[test]
fn a_failed_classification_of_several_calls_is_refused_as_a_whole() {
    let two = calling("c1:read-file c2:read-file").then(ask("c1:read-file"));
    let kind = "tool_permission_classification_failed";
    check_refused(
        &two,
        unclassified("c1 c2"),
        PermissionRefusal::NotRequired { kind, call: call_id("c2") },
        "tool_permission_classification_failed for tool call c2, which needs no permission",
    );
}

#[test]
fn a_call_is_classified_once() {
    let classified = asked().then(classify("c1", Classification::Defer));
    check_refused(
        &classified,
        classify("c1", Classification::Allow),
        PermissionRefusal::ClassifiedTwice(call_id("c1")),
        "a second classification of tool call c1",
    );
}

#[test]
fn nothing_is_decided_after_the_result() {
    let kind = "tool_permission_resolved";
    check_refused(
        &asked().then(given_up()),
        decide("c1", Decision::Allow),
        PermissionRefusal::AfterResult { kind, call: call_id("c1") },
        "tool_permission_resolved for tool call c1 after its result",
    );
}

#[test]
fn tool_records_are_about_calls_of_the_turn() {
    for fact in [
        invoke("c9:read-file"),
        progress("c9:read-file"),
        result("c9:read-file"),
        result_from("c9:read-file", ResultSource::Runtime),
        extend("c9", "extra"),
    ] {
        let kind = fact.kind();
        let refusal = ToolRefusal::UnknownCall { kind, call: call_id("c9") };
        check_refused(&ran(), fact, refusal, &format!("{kind} for unknown tool call c9"));
    }
}

#[test]
fn a_call_runs_once() {
    let told = "a second invocation of tool call c1";
    for log in [running(), ran()] {
        let twice = ToolRefusal::InvokedTwice(call_id("c1"));
        check_refused(&log, invoke("c1:read-file"), twice, told);
    }
}

#[test]
fn nothing_follows_the_result_of_a_call() {
    let after = |kind| ToolRefusal::AfterResult { kind, call: call_id("c1") };
    let check = |log: &Log<TurnFact>, fact: TurnFact| {
        let kind = fact.kind();
        check_refused(log, fact, after(kind), &format!("{kind} for tool call c1 after its result"));
    };
    check(&ran(), progress("c1:read-file"));
    check(&ran(), result("c1:read-file"));
    check(&ran(), given_up());
    check(&reading().then(given_up()), invoke("c1:read-file"));
    check(&running().then(given_up()), result("c1:read-file"));
}

/// The fact, but about the tool `name` with the id `tool_id`.
fn renamed(fact: TurnFact, name: &str, tool_id: &str) -> TurnFact {
    match fact {
        TurnFact::InvocationRequested(mut fact) => {
            (fact.tool_name, fact.tool_id) = (name.to_owned(), tool_id.to_owned());
            TurnFact::InvocationRequested(fact)
        }
        TurnFact::ToolResult(mut fact) => {
            name.clone_into(&mut fact.tool_name);
            TurnFact::ToolResult(fact)
        }
        other => panic!("{other:?} names no tool"),
    }
}

#[test]
fn a_call_keeps_its_tool() {
    let other = |kind, expected: &str, found: &str| ToolRefusal::OtherTool {
        kind,
        call: call_id("c1"),
        expected: expected.to_owned(),
        found: found.to_owned(),
    };
    let kind = "tool_invocation_requested";
    check_refused(
        &reading(),
        renamed(invoke("c1:read-file"), "write-file", "read_file"),
        other(kind, "read-file", "write-file"),
        "tool_invocation_requested for tool call c1 names the tool write-file, not read-file",
    );
    check_refused(
        &reading(),
        renamed(invoke("c1:read-file"), "read-file", "write_file"),
        other(kind, "read_file", "write_file"),
        "tool_invocation_requested for tool call c1 names the tool write_file, not read_file",
    );
    for fact in [result("c1:read-file"), given_up()] {
        check_refused(
            &running(),
            renamed(fact, "write-file", ""),
            other("tool_result", "read-file", "write-file"),
            "tool_result for tool call c1 names the tool write-file, not read-file",
        );
    }
}

#[test]
fn a_tool_of_an_inherited_snapshot_is_known_from_its_invocation_on() {
    let log = Log::turn(created_after(previous()))
        .then(request_in(&previous(), 0, "input"))
        .then(calls(0, "c1:anything"));
    assert_eq!(log.state().tool_calls.get(&call_id("c1")).expect("there").tool_id, None);
    let invoked = log.then(invoke("c1:anything"));
    let state = invoked.state();
    let call = state.tool_calls.get(&call_id("c1")).expect("there");
    assert_eq!(call.tool_id.as_deref(), Some("anything"));
    assert_eq!(call.execution, Some(Execution::Sync));
}

#[test]
fn a_call_keeps_the_way_it_is_answered() {
    let wrong = |kind| ToolRefusal::WrongSource { kind, call: call_id("c1") };
    let told = |kind| format!("{kind} for tool call c1 from the wrong source");
    let flipped = match invoke("c1:read-file") {
        TurnFact::InvocationRequested(mut fact) => {
            fact.execution = Execution::Async;
            TurnFact::InvocationRequested(fact)
        }
        other => panic!("an invocation, not {other:?}"),
    };
    let kind = "tool_invocation_requested";
    check_refused(&reading(), flipped, wrong(kind), &told(kind));

    let late = match progress("c1:read-file") {
        TurnFact::ToolProgress(mut fact) => {
            fact.source = Execution::Async;
            TurnFact::ToolProgress(fact)
        }
        other => panic!("progress, not {other:?}"),
    };
    check_refused(&running(), late, wrong("tool_progress"), &told("tool_progress"));

    let arrived = result_from("c1:read-file", ResultSource::Async);
    check_refused(&running(), arrived, wrong("tool_result"), &told("tool_result"));
    let exposed = calling("c1:deploy").then(invoke("c1:deploy"));
    let returned = result_from("c1:deploy", ResultSource::Sync);
    check_refused(&exposed, returned, wrong("tool_result"), &told("tool_result"));
}

#[test]
fn a_call_runs_only_when_nobody_objects() {
    let denied = asked().then(decide("c1", Decision::Deny));
    for log in [asked(), asked().then(classify("c1", Classification::Allow)), denied] {
        check_refused(
            &log,
            invoke("c1:read-file"),
            ToolRefusal::NotAllowed(call_id("c1")),
            "an invocation of tool call c1, which is not allowed",
        );
    }
    let allowed = asked().then(decide("c1", Decision::Allow)).then(invoke("c1:read-file"));
    assert!(allowed.state().tool_calls.get(&call_id("c1")).expect("there").invocation.is_some());
}

#[test]
fn only_what_was_started_reports_and_returns() {
    for fact in [
        progress("c1:read-file"),
        result("c1:read-file"),
        result_from("c1:read-file", ResultSource::Async),
    ] {
        let kind = fact.kind();
        let refusal = ToolRefusal::NotInvoked { kind, call: call_id("c1") };
        let told = format!("{kind} for tool call c1, which was not invoked");
        check_refused(&reading(), fact, refusal, &told);
    }
    let given_up = reading().then(given_up()).state();
    assert!(given_up.unresolved().next().is_none(), "the loop itself may answer for a tool");
}

#[test]
fn only_a_success_brings_tools() {
    for log in [reading(), running(), running().then(given_up())] {
        check_refused(
            &log,
            extend("c1", "extra"),
            ToolRefusal::NoSuccess(call_id("c1")),
            "tools_extended by tool call c1, which has no successful result",
        );
    }
}

#[test]
fn a_new_tool_has_a_new_name() {
    let in_use = |name: &str| ToolRefusal::NameInUse(name.to_owned());
    let told = |name| format!("tools_extended with the name {name}, which is in use");
    check_refused(&ran(), extend("c1", "read-file"), in_use("read-file"), &told("read-file"));
    check_refused(&ran(), extend("c1", "extra extra"), in_use("extra"), &told("extra"));
    check_refused(&ran(), extend("c1", "extra deploy"), in_use("deploy"), &told("deploy"));
    let extended = ran()
        .then(extend("c1", "extra"))
        .then(request(1, "assistant:0 toolResult:c1"))
        .then(calls(1, "c2:extra"))
        .then(invoke("c2:extra"))
        .then(result("c2:extra"));
    check_refused(&extended, extend("c2", "extra"), in_use("extra"), &told("extra"));
}
