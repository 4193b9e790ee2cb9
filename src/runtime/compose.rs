//! The composer: rebuilds the whole request of a model call from the log. What it gives is what is
//! sent, and what an audit shows (`design/turn-runtime.md` section 4).

use std::sync::Arc;

use serde::Deserialize;

use crate::domain::agent::{ModelDescriptor, ToolDescriptor};
use crate::domain::json::Json;
use crate::domain::message::{Message, ToolMessage};
use crate::domain::turn::state::TurnState;
use crate::domain::turn::transcript::strip_continuation;
use crate::models::request::ModelRequest;
use crate::runtime::context::{Segment, Surroundings};

/// Tool results of earlier turns that are longer than this, in characters, are left out of new
/// calls; the number is stored with each call.
pub const ELIDE_OVER_CHARS: u64 = 2_500;

/// The request of the model call `model_call_index`, as far as the log has it: all references of
/// the calls up to it, resolved, after the conversation before the turn.
#[must_use]
pub fn compose(
    turn: &TurnState,
    surroundings: &Surroundings,
    model_call_index: u64,
) -> ModelRequest {
    let call = usize::try_from(model_call_index).ok().and_then(|at| turn.model_calls.get(at));
    let parameters = call
        .map_or_else(|| Json::of(&serde_json::json!({})), |call| call.request.parameters.clone());
    let elide_over = elide_over(&parameters);
    let model = turn.definition.agent.resolved.model();
    let before = surroundings.prefix.iter().flat_map(|segment| replay(segment, model, elide_over));
    let own = (0..=model_call_index).flat_map(|index| turn.request_messages(index));
    ModelRequest {
        system_prompt: Arc::clone(&surroundings.agent.system_prompt),
        tools: tools_for(turn, surroundings, model_call_index),
        messages: before.chain(own).collect(),
        parameters,
    }
}

/// The tools that a model call sees: the agent's, and those added before it.
#[must_use]
pub fn tools_for(
    turn: &TurnState,
    surroundings: &Surroundings,
    model_call_index: u64,
) -> Arc<[ToolDescriptor]> {
    if turn.extensions.is_empty() {
        return Arc::clone(&surroundings.agent.tools);
    }
    let added = turn.extended_tools(model_call_index);
    surroundings.agent.tools.iter().chain(added).cloned().collect()
}

fn elide_over(parameters: &Json) -> Option<u64> {
    #[derive(Deserialize)]
    struct Known {
        #[serde(rename = "elideOver")]
        elide_over: Option<u64>,
    }
    parameters.read::<Known>().ok().and_then(|known| known.elide_over)
}

/// A segment as this model gets it: with what its provider wanted back only if the turn completed
/// on that very model, and without long results of tools.
fn replay(segment: &Segment, model: &ModelDescriptor, elide_over: Option<u64>) -> Vec<Message> {
    let own = segment.completed && segment.model == *model;
    let messages =
        if own { segment.messages.clone() } else { strip_continuation(&segment.messages) };
    match elide_over {
        None => messages,
        Some(limit) => messages.into_iter().map(|message| elided(message, limit)).collect(),
    }
}

/// A conversation as it is written out for a turn to begin with: for any model, and so that eliding
/// it once more changes nothing.
#[must_use]
pub fn carried_over(messages: &[Message]) -> Vec<Message> {
    let messages = strip_continuation(messages).into_iter();
    messages.map(|message| elided(message, ELIDE_OVER_CHARS)).collect()
}

fn elided(message: Message, limit: u64) -> Message {
    let Message::Tool(tool) = &message else { return message };
    let chars = tool.content.chars().count();
    if chars as u64 <= limit {
        return message;
    }
    let content = format!(
        "[The result of this call of {} was {chars} characters long and is left out here. Run the \
         tool again if you need it.]",
        tool.tool_name
    );
    Message::Tool(Arc::new(ToolMessage { content: content.into(), ..ToolMessage::clone(tool) }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::id::{ToolCallId, TurnId};
    use crate::domain::turn::event::TurnFact;
    use crate::runtime::context::AgentBase;
    use crate::testing::fact::{
        answer, calls, created, created_after, extend, invoke, model, previous, request,
        request_in, result, tools,
    };
    use crate::testing::log::Log;

    fn surroundings(segments: Vec<Segment>) -> Surroundings {
        let agent = AgentBase { system_prompt: "Be brief.".into(), tools: tools().into() };
        Surroundings { prefix: segments.into_iter().map(Arc::new).collect(), agent }
    }

    fn result_of(chars: usize) -> Message {
        Message::Tool(Arc::new(ToolMessage {
            content: "é".repeat(chars).into(),
            tool_call_id: ToolCallId::from("c1"),
            tool_name: "read-file".to_owned(),
            provider_options: None,
        }))
    }

    /// A call whose parameters are these, after a turn with a result of so many characters.
    fn check_elision(parameters: &str, chars: usize, kept: bool) {
        let TurnFact::ModelCallRequested(mut fact) = request_in(&previous(), 0, "input") else {
            panic!("a request")
        };
        fact.request.parameters = Json::parse(parameters).expect("JSON");
        let fact = TurnFact::ModelCallRequested(fact);
        let turn = Log::turn(created_after(previous())).then(fact).state();
        let segment = Segment {
            turn: TurnId::from("before"),
            messages: vec![result_of(chars)],
            model: model(),
            completed: true,
        };
        let request = compose(&turn, &surroundings(vec![segment]), 0);
        assert_eq!(request.messages[0] == result_of(chars), kept, "{parameters}, {chars} chars");
        assert_eq!(request.parameters.get(), parameters);
    }

    #[test]
    fn a_result_is_left_out_by_its_characters_and_what_the_call_says() {
        check_elision(r#"{"elideOver":10}"#, 10, true);
        check_elision(r#"{"elideOver":10}"#, 11, false);
        check_elision(r#"{"reasoningEffort":"low"}"#, 100_000, true);
        check_elision("{}", 100_000, true);
    }

    #[test]
    fn what_is_carried_over_is_sent_as_it_is_ever_after() {
        let limit = usize::try_from(ELIDE_OVER_CHARS).expect("a small number");
        let signed = r#"{"role":"assistant","content":[{"type":"text","text":"Done.","providerOptions":{"p":{"signature":"x"}}}]}"#;
        let signed: Message = serde_json::from_str(signed).expect("a message");
        let before = [result_of(limit), result_of(limit + 1), signed];
        let carried = carried_over(&before);
        assert_eq!(carried[0], before[0]);
        assert_ne!(carried[1], before[1], "a long result is left out");
        assert_eq!(carried[2], strip_continuation(&before[2..])[0]);
        assert_ne!(carried[2], before[2], "what a provider wants back is not for others");
        assert_eq!(carried_over(&carried), carried);
    }

    #[test]
    fn each_call_sends_what_all_before_it_sent_and_what_is_new() {
        let turn = Log::turn(created())
            .then(request(0, "input"))
            .then(calls(0, "c1:read-file"))
            .then(invoke("c1:read-file"))
            .then(result("c1:read-file"))
            .then(extend("c1", "extra"))
            .then(request(1, "assistant:0 toolResult:c1"))
            .then(answer(1, "Done."))
            .state();
        let surroundings = surroundings(Vec::new());
        let [first, second] = [0, 1].map(|index| compose(&turn, &surroundings, index));
        assert_eq!((first.messages.len(), second.messages.len()), (1, 3));
        assert_eq!(second.messages[..1], first.messages[..]);
        assert_eq!((first.tools.len(), second.tools.len()), (4, 5), "one came between them");
    }
}
