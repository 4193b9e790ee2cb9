//! What a turn's log amounts to, field by field.

use std::sync::Arc;

use turnstile::base::id::TurnId;
use turnstile::domain::agent::Execution;
use turnstile::domain::message::AssistantMessage;
use turnstile::domain::turn::event::{
    Classification, Decision, DecisionSource, ModelRequest, ResultSource, ToolResultData, TurnFact,
    TurnSuspended,
};
use turnstile::domain::turn::state::{
    AddedInput, Invocation, ModelCall, Outcome, Permission, Resolution, Response, Settlement,
    Terminal, TerminalKind, ToolCall, ToolExtension, TurnState,
};
use turnstile::domain::turn::step::StepEvent;
use turnstile::domain::usage::TurnUsage;
use turnstile::testing::fact::{
    answer, ask, call_failed, calls, classify, complete, created, decide, extend, input, invoke,
    json, progress, request, result, result_from, step, suspend, tool, turn, unclassified, usage,
};
use turnstile::testing::log::{Log, TURN, moment};

use crate::domain_refusals::call_id;

/// A turn in which everything happens; the numbers are those of the lines.
fn eventful() -> Log<TurnFact> {
    let facts = [
        created(),                                                                   // 1
        request(0, "input"),                                                         // 2
        step(0),                                                                     // 3
        call_failed(0),                                                              // 4
        request(1, ""),                                                              // 5
        calls(1, "c1:read-file c2:deploy c3:made-up"),                               // 6
        ask("c1:read-file"),                                                         // 7
        ask("c2:deploy"),                                                            // 8
        classify("c1", Classification::Defer),                                       // 9
        unclassified("c2"),                                                          // 10
        suspend("c1:read-file c2:deploy", ""),                                       // 11
        decide("c2", Decision::Allow),                                               // 12
        invoke("c2:deploy"),                                                         // 13
        decide("c1", Decision::Deny),                                                // 14
        result_from("c1:read-file", ResultSource::Runtime),                          // 15
        result_from("c3:made-up", ResultSource::Runtime),                            // 16
        suspend("", "c2:deploy"),                                                    // 17
        progress("c2:deploy"),                                                       // 18
        result("c2:deploy"),                                                         // 19
        extend("c2", "extra"),                                                       // 20
        input(1, "And?"),                                                            // 21
        request(2, "assistant:1 toolResult:c1 toolResult:c2 toolResult:c3 input:1"), // 22
        answer(2, "Done."),                                                          // 23
        complete(),                                                                  // 24
    ];
    let mut log = Log::empty(TurnId::from(TURN));
    for fact in facts {
        log.push(fact);
    }
    log
}

fn state() -> TurnState {
    eventful().state()
}

fn requested(refs: &str) -> ModelRequest {
    let messages = refs.split_whitespace().map(|text| text.parse().expect("a reference"));
    ModelRequest { context_ref: None, messages: messages.collect(), parameters: json("{}") }
}

fn settled(message: AssistantMessage, finish_reason: &str, at: usize) -> Settlement {
    Settlement::Completed(Response {
        message: Arc::new(message),
        finish_reason: finish_reason.into(),
        usage: usage(),
        provider_metadata: None,
        at: moment(at),
    })
}

#[test]
fn a_turn_has_its_beginning_its_end_and_its_sum() {
    let state = state();
    assert_eq!(state.id, TurnId::from(TURN));
    assert_eq!(*state.definition, turn());
    assert_eq!((state.created_at, state.updated_at), (moment(1), moment(24)));
    let twice =
        TurnUsage { input_tokens: Some(20), output_tokens: Some(6), ..TurnUsage::default() };
    assert_eq!(state.usage, twice);
    let TurnFact::Completed(ending) = complete() else { panic!("an ending") };
    let kind = TerminalKind::Completed(ending);
    assert_eq!(state.terminal, Some(Terminal { kind, at: moment(24) }));
}

#[test]
fn a_turn_has_its_model_calls_with_their_steps_and_ends() {
    let TurnFact::ModelCallCompleted(called) = calls(1, "c1:read-file c2:deploy c3:made-up") else {
        panic!("an answer")
    };
    let called = AssistantMessage::clone(&called.message);
    assert_eq!(
        state().model_calls,
        [
            ModelCall {
                request: requested("input"),
                requested_at: moment(2),
                steps: vec![StepEvent::TextStart],
                settlement: Some(Settlement::Failed { error: "reset".into(), at: moment(4) }),
            },
            ModelCall {
                request: requested(""),
                requested_at: moment(5),
                steps: Vec::new(),
                settlement: Some(settled(called, "tool-calls", 6)),
            },
            ModelCall {
                request: requested("assistant:1 toolResult:c1 toolResult:c2 toolResult:c3 input:1"),
                requested_at: moment(22),
                steps: Vec::new(),
                settlement: Some(settled(AssistantMessage::text("Done."), "stop", 23)),
            },
        ]
    );
}

fn asked(at: usize) -> Permission {
    Permission {
        request: json(r#"{"rule":"ask"}"#),
        checker_error: None,
        required_at: moment(at),
        classified: None,
        classification_failed: None,
        resolved: None,
    }
}

fn resolution(decision: Decision, at: usize) -> Resolution {
    let source = DecisionSource::Human;
    Resolution { decision, source, reason: None, metadata: None, at: moment(at) }
}

fn outcome(source: ResultSource, at: usize) -> Outcome {
    let is_error = source == ResultSource::Runtime;
    let data = ToolResultData { output: json(r#""done""#), is_error, metadata: None };
    Outcome { source, data, at: moment(at) }
}

#[test]
fn a_turn_has_its_tool_calls_with_all_that_happened_to_them() {
    let call = |id, order, name: &str| ToolCall {
        id: call_id(id),
        model_call_index: 1,
        order,
        name: name.to_owned(),
        arguments: json(r#"{"path":"a"}"#),
        tool_id: Some(name.replace('-', "_")),
        execution: None,
        permission: None,
        invocation: None,
        progress: Vec::new(),
        result: None,
    };
    let denied = ToolCall {
        execution: Some(Execution::Sync),
        permission: Some(Permission {
            classified: Some((Classification::Defer, "looks harmless".into())),
            resolved: Some(resolution(Decision::Deny, 14)),
            ..asked(7)
        }),
        result: Some(outcome(ResultSource::Runtime, 15)),
        ..call("c1", 0, "read-file")
    };
    let ran = ToolCall {
        execution: Some(Execution::Async),
        permission: Some(Permission {
            classification_failed: Some("no classifier".into()),
            resolved: Some(resolution(Decision::Allow, 12)),
            ..asked(8)
        }),
        invocation: Some(Invocation { input: json(r#"{"path":"a"}"#), at: moment(13) }),
        progress: vec![json("0.50")],
        result: Some(outcome(ResultSource::Async, 19)),
        ..call("c2", 1, "deploy")
    };
    let unknown = ToolCall {
        tool_id: None,
        result: Some(outcome(ResultSource::Runtime, 16)),
        ..call("c3", 2, "made-up")
    };
    let state = state();
    assert_eq!(state.tool_calls.iter().cloned().collect::<Vec<_>>(), [denied, ran, unknown]);
    assert_eq!((state.tool_calls.len(), state.tool_calls.is_empty()), (3, false));
    assert_eq!((state.tool_calls.batch(0), state.tool_calls.batch(1).len()), (&[][..], 3));
}

#[test]
fn a_turn_has_its_last_suspension_its_extensions_and_its_inputs() {
    let state = state();
    let TurnFact::Suspended(last) = suspend("", "c2:deploy") else { panic!("a suspension") };
    assert_eq!(state.suspension.as_deref(), Some(&TurnSuspended::clone(&last)));
    let extra = tool("extra", Execution::Sync);
    let extension = ToolExtension {
        tool_call_id: call_id("c2"),
        source: "skill".into(),
        tools: vec![extra.clone()],
        first_call: 2,
    };
    assert_eq!(state.extensions, [extension]);
    assert_eq!(state.extended_tools(1).count(), 0);
    assert_eq!(state.extended_tools(2).collect::<Vec<_>>(), [&extra]);
    let TurnFact::InputAdded(added) = input(1, "And?") else { panic!("an input") };
    let added = AddedInput { message: added.message, first_call: 2, at: moment(21) };
    assert_eq!(state.inputs, [added]);
}
