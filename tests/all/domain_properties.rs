//! What holds for every legal history: the fold, the codec, the status, the transcript.

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::sample::Index;
use turnstile::base::id::ToolCallId;
use turnstile::domain::agent::Execution;
use turnstile::domain::event::{Event, Fact};
use turnstile::domain::message::{AssistantPart, Content, Message};
use turnstile::domain::session::apply::reduce_session;
use turnstile::domain::session::state::SessionState;
use turnstile::domain::turn::apply::reduce_turn;
use turnstile::domain::turn::event::{TurnContext, TurnEvent, TurnFact};
use turnstile::domain::turn::state::TurnState;
use turnstile::domain::turn::status::TurnStatus;
use turnstile::domain::turn::transcript::{result_message, strip_continuation};
use turnstile::domain::usage::TurnUsage;
use turnstile::testing::strategy::{session_history, turn_history};

proptest! {
    #[test]
    fn the_fold_of_a_turn_is_the_replay_of_every_prefix(events in turn_history()) {
        let mut state = TurnState::begin(&events[0]).expect("a beginning");
        for taken in 1..events.len() {
            prop_assert_eq!(&state, &reduce_turn(&events[..taken]).expect("legal"));
            state.apply(&events[taken]).expect("legal");
        }
        prop_assert_eq!(&state, &reduce_turn(&events).expect("legal"));
    }

    #[test]
    fn the_fold_of_a_session_is_the_replay_of_every_prefix(events in session_history()) {
        let mut state = SessionState::begin(&events[0]).expect("a beginning");
        for taken in 1..events.len() {
            prop_assert_eq!(&state, &reduce_session(&events[..taken]).expect("legal"));
            state.apply(&events[taken]).expect("legal");
        }
        prop_assert_eq!(&state, &reduce_session(&events).expect("legal"));
    }

    #[test]
    fn what_is_written_is_read_back(turn in turn_history(), session in session_history()) {
        turn.iter().try_for_each(check_codec)?;
        session.iter().try_for_each(check_codec)?;
    }

    #[test]
    fn the_order_of_the_fields_does_not_matter(
        turn in turn_history(),
        session in session_history(),
        first in any::<Index>(),
    ) {
        turn.iter().try_for_each(|event| check_any_order(event, first))?;
        session.iter().try_for_each(|event| check_any_order(event, first))?;
    }

    #[test]
    fn the_status_is_what_the_events_say(events in turn_history()) {
        for taken in 1..=events.len() {
            let prefix = &events[..taken];
            let state = reduce_turn(prefix).expect("legal");
            prop_assert_eq!(state.status(), status_by_hand(prefix));
            prop_assert_eq!(outstanding(&state), outstanding_by_hand(prefix));
        }
    }

    #[test]
    fn usage_and_budget_are_what_the_events_say(events in turn_history()) {
        let state = reduce_turn(&events).expect("legal");
        let reported = events.iter().filter_map(|event| match &event.fact {
            TurnFact::ModelCallCompleted(fact) => Some(fact.usage),
            _ => None,
        });
        let reported: Vec<_> = reported.collect();
        let sum = |field: fn(&TurnUsage) -> Option<u64>| reported.iter().filter_map(field).reduce(|a, b| a + b);
        prop_assert_eq!(state.usage, TurnUsage {
            input_tokens: sum(|usage| usage.input_tokens),
            output_tokens: sum(|usage| usage.output_tokens),
            total_tokens: sum(|usage| usage.total_tokens),
            reasoning_tokens: sum(|usage| usage.reasoning_tokens),
            cached_input_tokens: sum(|usage| usage.cached_input_tokens),
        });
        let since_input = events.iter().rev().take_while(|event| event.fact.kind() != "input_added");
        let calls = since_input.filter(|event| event.fact.kind() == "model_call_requested");
        prop_assert_eq!(state.calls_since_input(), calls.count() as u64);
    }

    #[test]
    fn the_transcript_is_what_the_events_say(events in turn_history()) {
        for taken in 1..=events.len() {
            let prefix = &events[..taken];
            let state = reduce_turn(prefix).expect("legal");
            prop_assert_eq!(state.transcript(), transcript_by_hand(prefix));
        }
    }

    #[test]
    fn the_requests_and_what_is_due_are_the_context_and_the_transcript(events in turn_history()) {
        let state = reduce_turn(&events).expect("legal");
        if let Some(transcript) = state.transcript() {
            let sent = (0..state.next_call_index()).flat_map(|at| state.request_messages(at));
            let due = state.next_message_refs();
            let all: Vec<_> =
                sent.chain(due.iter().flat_map(|reference| state.resolve(reference))).collect();
            let context = match &state.definition.context {
                TurnContext::Inline(messages) => messages.clone(),
                TurnContext::Previous(_) => Vec::new(),
            };
            prop_assert_eq!(all, [context, transcript].concat());
        }
    }

    #[test]
    fn stripping_leaves_nothing_for_a_provider_and_is_done_once(events in turn_history()) {
        let transcript = reduce_turn(&events).expect("legal").transcript().unwrap_or_default();
        let stripped = strip_continuation(&transcript);
        prop_assert_eq!(stripped.len(), transcript.len());
        for (before, after) in transcript.iter().zip(&stripped) {
            check_stripped(before, after)?;
        }
        prop_assert_eq!(strip_continuation(&stripped), stripped);
    }
}

fn check_codec<F>(event: &Event<F>) -> Result<(), TestCaseError>
where
    F: Fact + Clone + std::fmt::Debug + PartialEq,
    F::Id: Clone + std::fmt::Debug + PartialEq,
{
    let line = event.to_line();
    let read = Event::parse_line(line.as_bytes());
    prop_assert!(!line.contains('\n'), "{}", line);
    prop_assert_eq!(read.as_ref().ok(), Some(event), "{}", line);
    prop_assert_eq!(read.expect("just compared").to_line(), line);
    Ok(())
}

/// Reads the event from a line whose fields stand in another order.
fn check_any_order<F>(event: &Event<F>, first: Index) -> Result<(), TestCaseError>
where
    F: Fact + Clone + std::fmt::Debug + PartialEq,
    F::Id: Clone + std::fmt::Debug + PartialEq,
{
    let line = event.to_line();
    let fields: std::collections::BTreeMap<String, Box<serde_json::value::RawValue>> =
        serde_json::from_str(&line).expect("an object");
    let mut spelled: Vec<_> =
        fields.iter().map(|(name, value)| format!("{name:?}:{}", value.get())).collect();
    let count = spelled.len();
    spelled.rotate_left(first.index(count));
    let mixed = format!("{{{}}}", spelled.join(","));
    let read = Event::parse_line(mixed.as_bytes());
    prop_assert_eq!(read.as_ref().ok(), Some(event), "{}", mixed);
    prop_assert_eq!(read.expect("just compared").to_line(), line);
    Ok(())
}

/// The calls that wait for a decision and those that wait for an answer, from the events alone.
fn outstanding_by_hand(events: &[TurnEvent]) -> (BTreeSet<ToolCallId>, BTreeSet<ToolCallId>) {
    let (mut asked, mut exposed) = (BTreeSet::new(), BTreeSet::new());
    for event in events {
        match &event.fact {
            TurnFact::PermissionRequired(fact) => _ = asked.insert(fact.tool_call_id.clone()),
            TurnFact::PermissionResolved(fact) => _ = asked.remove(&fact.tool_call_id),
            TurnFact::InvocationRequested(fact) if fact.execution == Execution::Async => {
                exposed.insert(fact.tool_call_id.clone());
            }
            TurnFact::ToolResult(fact) => {
                asked.remove(&fact.tool_call_id);
                exposed.remove(&fact.tool_call_id);
            }
            _ => {}
        }
    }
    (asked, exposed)
}

fn outstanding(state: &TurnState) -> (BTreeSet<ToolCallId>, BTreeSet<ToolCallId>) {
    let asked = state.outstanding_permissions().map(|call| call.id.clone()).collect();
    (asked, state.outstanding_async().map(|call| call.id.clone()).collect())
}

fn status_by_hand(events: &[TurnEvent]) -> TurnStatus {
    let (asked, exposed) = outstanding_by_hand(events);
    match events.last().map(|event| event.fact.kind()) {
        Some("turn_completed") => TurnStatus::Completed,
        Some("turn_failed") => TurnStatus::Failed,
        Some("turn_cancelled") => TurnStatus::Cancelled,
        _ if asked.is_empty() && exposed.is_empty() => TurnStatus::Idle,
        _ => TurnStatus::Suspended,
    }
}

/// The conversation as it went: inputs and answers where their events stand, and behind each answer
/// the results of its calls in the order of the calls.
fn transcript_by_hand(events: &[TurnEvent]) -> Option<Vec<Message>> {
    let state = reduce_turn(events).expect("legal");
    let mut messages = Vec::new();
    for event in events {
        match &event.fact {
            TurnFact::Created(fact) => messages.push(Message::User(Arc::clone(&fact.input))),
            TurnFact::InputAdded(fact) => messages.push(Message::User(Arc::clone(&fact.message))),
            TurnFact::ModelCallCompleted(fact) => {
                messages.push(Message::Assistant(Arc::clone(&fact.message)));
                for part in fact.message.tool_calls() {
                    let call = state.tool_calls.get(&part.tool_call_id)?;
                    messages.push(Message::Tool(Arc::new(result_message(call)?)));
                }
            }
            _ => {}
        }
    }
    Some(messages)
}

/// What stripping may do: take options away, turn reasoning into text, drop hidden reasoning.
fn check_stripped(before: &Message, after: &Message) -> Result<(), TestCaseError> {
    match (before, after) {
        (Message::User(before), Message::User(after)) => {
            prop_assert_eq!(&before.content, &after.content);
            prop_assert_eq!(&before.user_message_context, &after.user_message_context);
            prop_assert_eq!(&after.provider_options, &None);
        }
        (Message::Tool(before), Message::Tool(after)) => {
            prop_assert_eq!(&before.content, &after.content);
            prop_assert_eq!(&before.tool_call_id, &after.tool_call_id);
            prop_assert_eq!(&after.provider_options, &None);
        }
        (Message::Assistant(before), Message::Assistant(after)) => {
            prop_assert_eq!(&after.provider_options, &None);
            prop_assert_eq!(kept(&before.content), spoken(&after.content));
            let calls = |message: &turnstile::domain::message::AssistantMessage| {
                message.tool_calls().map(|call| call.tool_call_id.clone()).collect::<Vec<_>>()
            };
            prop_assert_eq!(calls(before), calls(after));
        }
        _ => prop_assert!(false, "another role: {:?} for {:?}", after, before),
    }
    Ok(())
}

/// The texts that have to be left of an answer.
fn kept(content: &Content<AssistantPart>) -> Vec<String> {
    match content {
        Content::Text(text) => vec![text.to_string()],
        Content::Parts(parts) => {
            let kept: Vec<_> = parts
                .iter()
                .filter(|part| !matches!(part, AssistantPart::Reasoning(it) if it.text.is_empty()))
                .map(words)
                .collect();
            if kept.is_empty() { vec![String::new()] } else { kept }
        }
    }
}

/// The texts of an answer without anything but plain text and calls.
fn spoken(content: &Content<AssistantPart>) -> Vec<String> {
    match content {
        Content::Text(text) => vec![text.to_string()],
        Content::Parts(parts) => parts.iter().map(plain_words).collect(),
    }
}

fn words(part: &AssistantPart) -> String {
    match part {
        AssistantPart::Text(part) => part.text.to_string(),
        AssistantPart::Reasoning(part) => part.text.to_string(),
        AssistantPart::ToolCall(call) => call.tool_call_id.to_string(),
    }
}

fn plain_words(part: &AssistantPart) -> String {
    match part {
        AssistantPart::Text(part) if part.provider_options.is_none() => part.text.to_string(),
        AssistantPart::ToolCall(call) if call.provider_options.is_none() => {
            call.tool_call_id.to_string()
        }
        other => format!("left as it was: {other:?}"),
    }
}
