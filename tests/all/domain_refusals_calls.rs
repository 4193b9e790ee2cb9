//! Every rule of `design/turn-runtime.md` section 5 about model calls, with the references of
//! section 4.

use std::sync::Arc;

use turnstile::base::id::TurnId;
use turnstile::domain::event::Fact as _;
use turnstile::domain::turn::apply::reduce_turn;
use turnstile::domain::turn::event::{ContextRef, TurnConfig, TurnContext, TurnCreated, TurnFact};
use turnstile::domain::turn::refusal::CallRefusal;
use turnstile::testing::fact::{
    answer, call_failed, calls, created_after, inline, input, invoke, previous, request,
    request_in, result, step, turn,
};
use turnstile::testing::log::{Log, PREVIOUS_TURN};

use crate::domain_refusals::{answered, asking, begun, call_id, calling, check_refused};

#[test]
fn model_calls_are_numbered_from_zero_without_gaps() {
    let out_of = |expected, found| CallRefusal::Index { expected, found };
    let told = "model call 1 out of order; 0 would be next";
    check_refused(&begun(), request(1, "input"), out_of(0, 1), told);
    let failed = asking().then(call_failed(0));
    check_refused(
        &failed,
        request(0, ""),
        out_of(1, 0),
        "model call 0 out of order; 1 would be next",
    );
    check_refused(
        &failed,
        request(2, ""),
        out_of(1, 2),
        "model call 2 out of order; 1 would be next",
    );
    check_refused(
        &failed,
        request(u64::MAX, ""),
        out_of(1, u64::MAX),
        "model call 18446744073709551615 out of order; 1 would be next",
    );
}

fn with_calls(max_model_calls: u64) -> Log<TurnFact> {
    let config = TurnConfig { max_model_calls, ..turn().config };
    Log::turn(TurnFact::Created(Arc::new(TurnCreated { config, ..turn() })))
}

#[test]
fn the_budget_counts_every_call_since_the_last_input() {
    let spent = with_calls(2)
        .then(request(0, "input"))
        .then(call_failed(0))
        .then(request(1, ""))
        .then(call_failed(1));
    let beyond = |index| CallRefusal::Budget { index, max: 2 };
    let told = "model call 2 is beyond the budget of 2 calls";
    check_refused(&spent, request(2, ""), beyond(2), told);

    let steered = spent
        .then(input(1, "Go on."))
        .then(request(2, "input:1"))
        .then(call_failed(2))
        .then(request(3, ""))
        .then(call_failed(3));
    assert!(steered.state().budget_is_spent());
    let told = "model call 4 is beyond the budget of 2 calls";
    check_refused(&steered, request(4, ""), beyond(4), told);
}

/// A request with other references than those that are due.
fn check_refs(log: &Log<TurnFact>, index: u64, found: &str, due: &str) {
    let listed = |refs: &str| refs.split_whitespace().collect::<Vec<_>>().join(", ");
    let (expected, found_list) = (listed(due), listed(found));
    let told = format!("model call {index} refers to [{found_list}]; due is [{expected}]");
    let refusal = CallRefusal::References { index, expected, found: found_list };
    check_refused(log, request(index, found), refusal, &told);
    let legal = log.clone().then(request(index, due));
    assert!(reduce_turn(legal.events()).is_ok(), "{due} is due");
}

#[test]
fn the_first_request_sends_the_context_and_the_input() {
    for found in ["", "context input", "input input", "input:1", "assistant:0"] {
        check_refs(&begun(), 0, found, "input");
    }
    let after = Log::turn(created_after(inline()));
    for found in ["", "input", "context", "input context"] {
        check_refs(&after, 0, found, "context input");
    }
}

#[test]
fn a_request_after_an_answer_sends_it_and_its_results_in_source_order() {
    let ran = calling("c1:read-file c2:write-file")
        .then(invoke("c2:write-file"))
        .then(result("c2:write-file"))
        .then(invoke("c1:read-file"))
        .then(result("c1:read-file"));
    for found in [
        "",
        "assistant:0",
        "assistant:0 toolResult:c1",
        "assistant:0 toolResult:c2 toolResult:c1",
        "toolResult:c1 toolResult:c2",
        "assistant:1 toolResult:c1 toolResult:c2",
        "input assistant:0 toolResult:c1 toolResult:c2",
        "assistant:0 toolResult:c1 toolResult:c2 input:1",
    ] {
        check_refs(&ran, 1, found, "assistant:0 toolResult:c1 toolResult:c2");
    }
}

#[test]
fn a_request_after_a_failed_call_sends_nothing_again() {
    for found in ["input", "assistant:0"] {
        check_refs(&asking().then(call_failed(0)), 1, found, "");
    }
    let later = calling("c1:read-file")
        .then(invoke("c1:read-file"))
        .then(result("c1:read-file"))
        .then(request(1, "assistant:0 toolResult:c1"))
        .then(call_failed(1));
    check_refs(&later, 2, "assistant:0 toolResult:c1", "");
}

#[test]
fn added_inputs_are_sent_once_and_last() {
    let before = begun().then(input(1, "x")).then(input(2, "y"));
    for found in ["input", "input input:1", "input input:2 input:1", "input:1 input:2 input"] {
        check_refs(&before, 0, found, "input input:1 input:2");
    }
    let later = answered().then(input(1, "x"));
    for found in ["assistant:0", "input:1", "input:1 assistant:0"] {
        check_refs(&later, 1, found, "assistant:0 input:1");
    }
    let failed = later.then(request(1, "assistant:0 input:1")).then(call_failed(1));
    check_refs(&failed, 2, "input:1", "");
    check_refs(&failed.then(input(2, "y")), 2, "input:1 input:2", "input:2");
}

fn elsewhere() -> TurnContext {
    TurnContext::Previous(ContextRef { previous_turn_id: TurnId::from("elsewhere") })
}

fn check_context_ref(log: &Log<TurnFact>, fact: TurnFact, found: &str, due: &str) {
    let index = log.state().next_call_index();
    let (expected, found) = (due.to_owned(), found.to_owned());
    let told = format!("model call {index} has contextRef {found}; due is {expected}");
    check_refused(log, fact, CallRefusal::ContextRef { index, expected, found }, &told);
}

#[test]
fn the_context_reference_stands_on_the_first_call_only() {
    let log = Log::turn(created_after(previous()));
    check_context_ref(&log, request(0, "input"), "none", PREVIOUS_TURN);
    check_context_ref(&log, request_in(&elsewhere(), 0, "input"), "elsewhere", PREVIOUS_TURN);
    check_context_ref(&begun(), request_in(&previous(), 0, "input"), PREVIOUS_TURN, "none");

    let again = |index, refs| match request_in(&previous(), 0, refs) {
        TurnFact::ModelCallRequested(mut fact) => {
            fact.model_call_index = index;
            TurnFact::ModelCallRequested(fact)
        }
        other => panic!("a request, not {other:?}"),
    };
    let first = log.then(request_in(&previous(), 0, "input"));
    let failed = first.clone().then(call_failed(0));
    check_context_ref(&failed, again(1, ""), PREVIOUS_TURN, "none");
    let called = first
        .then(calls(0, "c1:read-file"))
        .then(invoke("c1:read-file"))
        .then(result("c1:read-file"));
    check_context_ref(&called, again(1, "assistant:0 toolResult:c1"), PREVIOUS_TURN, "none");
}

#[test]
fn only_the_open_call_is_stepped_and_settled() {
    let facts = [step, |index| answer(index, "x"), call_failed];
    let reissued = asking().then(call_failed(0)).then(request(1, ""));
    for fact in facts {
        let kind = fact(0).kind();
        let check = |log: &Log<TurnFact>, index: u64| {
            let told = format!("{kind} for model call {index}, which is not open");
            check_refused(log, fact(index), CallRefusal::NotOpen { kind, index }, &told);
        };
        check(&begun(), 0);
        check(&begun(), u64::MAX);
        check(&asking(), 1);
        check(&answered(), 0);
        check(&calling("c1:read-file"), 0);
        check(&asking().then(call_failed(0)), 0);
        check(&reissued, 0);
    }
}

#[test]
fn a_tool_call_id_is_used_once_in_a_turn() {
    let twice = || CallRefusal::ToolCallIdTwice(call_id("c1"));
    let told = "tool call id c1 is used twice";
    check_refused(&asking(), calls(0, "c1:read-file c1:write-file"), twice(), told);
    let later = calling("c1:read-file")
        .then(invoke("c1:read-file"))
        .then(result("c1:read-file"))
        .then(request(1, "assistant:0 toolResult:c1"));
    check_refused(&later, calls(1, "c2:read-file c1:read-file"), twice(), told);
}
