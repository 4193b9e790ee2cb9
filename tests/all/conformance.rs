//! Logs with the verdicts of another implementation of the same contract, held to every field.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use turnstile::base::id::ToolCallId;
use turnstile::domain::event::{Event, Fact};
use turnstile::domain::session::apply::reduce_session;
use turnstile::domain::session::event::SessionFact;
use turnstile::domain::turn::apply::reduce_turn;
use turnstile::domain::turn::event::{Decision, TurnFact};
use turnstile::domain::turn::state::{Settlement, ToolCall, TurnState};
use turnstile::domain::turn::transcript::strip_continuation;

#[derive(Deserialize)]
struct Case {
    name: String,
    lines: Vec<Value>,
    expect: Map<String, Value>,
}

fn cases(json: &str) -> Vec<Case> {
    let cases: Vec<Case> = serde_json::from_str(json).expect("the cases are JSON");
    assert!(!cases.is_empty());
    cases
}

/// The verdict on a log, in the words of the cases: an accepted log's events, or who refused which
/// line.
fn parse<F: Fact>(case: &Case) -> Result<Vec<Event<F>>, Value> {
    let parsed = case.lines.iter().zip(1..).map(|(line, number)| {
        Event::parse_line(line.to_string().as_bytes()).map_err(|_| refused("schema", number))
    });
    parsed.collect()
}

fn refused(by: &str, line: usize) -> Value {
    json!({"verdict": "refuse", "by": by, "line": line})
}

#[test]
fn every_turn_log_gets_the_verdict_of_the_other_implementation() {
    for case in cases(include_str!("../golden/conformance/turns.json")) {
        let found = parse::<TurnFact>(&case).and_then(|events| {
            reduce_turn(&events)
                .map(|state| turn_facts(&state))
                .map_err(|corruption| refused("reducer", corruption.number))
        });
        assert_same(&case, &found.unwrap_or_else(|verdict| verdict));
    }
}

#[test]
fn every_session_log_gets_the_verdict_of_the_other_implementation() {
    for case in cases(include_str!("../golden/conformance/sessions.json")) {
        let found = parse::<SessionFact>(&case).and_then(|events| {
            let state = reduce_session(&events)
                .map_err(|corruption| refused("reducer", corruption.number))?;
            let turns: Vec<_> = state.turns.iter().map(|turn| turn.id.as_str()).collect();
            Ok(json!({"verdict": "accept", "state": {
                "title": state.title,
                "turns": turns,
                "latestTurnId": state.latest().map(|turn| turn.id.as_str()),
                "createdAt": state.created_at.to_string(),
                "updatedAt": state.updated_at.to_string(),
            }}))
        });
        assert_same(&case, &found.unwrap_or_else(|verdict| verdict));
    }
}

fn assert_same(case: &Case, found: &Value) {
    assert_eq!(*found, Value::Object(case.expect.clone()), "case {:?}", case.name);
}

fn turn_facts(state: &TurnState) -> Value {
    let transcript = state.transcript();
    let requests: Vec<_> =
        (0..state.next_call_index()).map(|index| state.request_messages(index)).collect();
    let mut facts = json!({
        "verdict": "accept",
        "status": state.status(),
        "usage": state.usage,
        "modelCalls": state.model_calls.iter().enumerate().map(|(index, call)| {
            let settled = match call.settlement {
                None => "open",
                Some(Settlement::Completed(_)) => "completed",
                Some(Settlement::Failed { .. }) => "failed",
            };
            json!({"index": index, "settled": settled})
        }).collect::<Vec<_>>(),
        "toolCalls": state.tool_calls.iter().map(tool_call_facts).collect::<Vec<_>>(),
        "outstandingPermissions": ids(state.outstanding_permissions()),
        "outstandingAsync": ids(state.outstanding_async()),
        "requests": requests,
        "transcript": transcript,
    });
    if let Some(transcript) = &transcript {
        facts["stripped"] = json!(strip_continuation(transcript));
    }
    facts
}

fn ids<'a>(calls: impl Iterator<Item = &'a ToolCall>) -> Vec<&'a ToolCallId> {
    calls.map(|call| &call.id).collect()
}

fn tool_call_facts(call: &ToolCall) -> Value {
    let permission = match call.permission.as_ref().map(|permission| &permission.resolved) {
        None => "none",
        Some(None) => "pending",
        Some(Some(resolved)) if resolved.decision == Decision::Allow => "allow",
        Some(Some(_)) => "deny",
    };
    let result = match &call.result {
        None => "none",
        Some(outcome) if outcome.data.is_error => "error",
        Some(_) => "ok",
    };
    json!({
        "id": call.id,
        "name": call.name,
        "modelCallIndex": call.model_call_index,
        "order": call.order,
        "toolId": call.tool_id,
        "execution": call.execution,
        "result": result,
        "permission": permission,
        "progress": call.progress.len(),
    })
}
