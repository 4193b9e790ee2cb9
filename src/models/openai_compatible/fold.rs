//! Makes an answer of the events of a chat completions stream.

use std::collections::VecDeque;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::domain::json::Json;
use crate::domain::usage::TurnUsage;
use crate::models::delta::{Answer, ModelDelta};
use crate::models::error::Failure;
use crate::models::http::Heard;
use crate::models::http::fold::{self, Fault};
use crate::models::http::refusal::Refusal;
use crate::models::http::sse::{Event, Flow, Kind};
use crate::models::openai_compatible::continuation::ReasoningField;
use crate::models::openai_compatible::details;
use crate::models::openai_compatible::parts::{Parts, Thought};
use crate::models::openai_compatible::wire::{Chunk, Delta, Usage, mended};

/// An answer in the making.
#[derive(Debug, Default)]
pub(super) struct Fold {
    provider: String,
    parts: Parts,
    finish_reason: Option<String>,
    /// The server said that nothing more comes.
    done: bool,
    id: Option<String>,
    model: Option<String>,
    usage: Option<Box<RawValue>>,
}

impl Fold {
    pub(super) fn new(provider: &str) -> Self {
        Self { provider: provider.to_owned(), ..Self::default() }
    }

    fn take_chunk(&mut self, data: &str, out: &mut VecDeque<ModelDelta>) -> Result<(), Fault> {
        let data = mended(data);
        let chunk: Chunk<'_> = serde_json::from_str(&data).map_err(|error| {
            let what = format!("{error} in the event {data}");
            Fault::from(Failure::Malformed { what })
        })?;
        if chunk.error.is_some() || (chunk.choices.is_none() && chunk.usage.is_none()) {
            let refusal = Refusal::read(&data);
            let is_error = |error: &RawValue| !matches!(error.get(), "false" | "\"\"" | "{}");
            if refusal.message.is_some() || chunk.error.is_some_and(is_error) {
                return Err(refusal.into());
            }
        }
        if self.id.is_none() {
            self.id = chunk.id.filter(|id| !id.0.is_empty()).map(|id| id.0.into_owned());
            self.model = chunk.model.map(|model| model.0.into_owned());
        }
        if let Some(usage) = chunk.usage {
            self.usage = Some(usage.to_owned());
        }
        for choice in chunk.choices.into_iter().flatten() {
            if choice.index.unwrap_or(0) != 0 {
                continue;
            }
            // A whole message after its pieces repeats them.
            let message = choice.message.filter(|_| self.parts.is_empty());
            for delta in choice.delta.into_iter().chain(message) {
                self.grow(delta, out)?;
            }
            if let Some(reason) = choice.finish_reason.filter(|reason| !reason.0.is_empty()) {
                self.finish_reason = Some(finish_reason(&reason.0)?);
            }
        }
        Ok(())
    }

    fn grow(&mut self, delta: Delta<'_>, out: &mut VecDeque<ModelDelta>) -> Result<(), Failure> {
        let details = delta.reasoning_details.map(|raw| serde_json::from_str(raw.get()));
        let details: Vec<Json> = details.and_then(Result::ok).unwrap_or_default();
        let fields = [
            (ReasoningField::ReasoningContent, delta.reasoning_content),
            (ReasoningField::Reasoning, delta.reasoning),
        ];
        let named = fields.into_iter().find_map(|(field, text)| {
            text.filter(|text| !text.0.is_empty()).map(|text| (field, text))
        });
        if let Some((field, text)) = named {
            self.parts.think(Thought { text: &text.0, field: Some(field), details }, out)?;
        } else {
            let text = details::visible_text(&details);
            self.parts.think(Thought { text: &text, field: None, details }, out)?;
        }
        if let Some(content) = delta.content {
            let thought = Thought { text: &content.thinking, ..Thought::default() };
            self.parts.think(thought, out)?;
            self.parts.write(&content.text, out)?;
        }
        if let Some(refusal) = delta.refusal {
            self.parts.write(&refusal.0, out)?;
        }
        for fragment in delta.tool_calls.into_iter().flatten() {
            self.parts.call(fragment, out)?;
        }
        Ok(())
    }

    /// The provider's name of the answer, the model that gave it, and its count as it came (some
    /// name the price there).
    fn metadata(&self) -> Option<Json> {
        #[derive(Serialize)]
        struct Metadata<'a> {
            #[serde(skip_serializing_if = "Option::is_none")]
            id: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            model: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            usage: Option<Json>,
        }
        let usage = self.usage.as_ref().and_then(|raw| Json::parse(raw.get()).ok());
        let (id, model) = (self.id.as_deref(), self.model.as_deref());
        let json = Json::of(&Metadata { id, model, usage });
        (json.get() != "{}").then_some(json)
    }
}

impl fold::Fold for Fold {
    fn event(&mut self, event: &Event<'_>, out: &mut VecDeque<ModelDelta>) -> Result<Flow, Fault> {
        let data = event.data.trim();
        if data == "[DONE]" {
            self.done = true;
            return Ok(Flow::Done);
        }
        let taken = match event.kind {
            Kind::Message => self.take_chunk(data, out),
            Kind::Error => Err(Refusal::read(data).into()),
        };
        match taken {
            // What goes wrong after the end does not undo a whole answer.
            Err(fault) if !self.has_ended() => Err(fault),
            Ok(()) | Err(_) => Ok(Flow::More),
        }
    }

    fn tell(&mut self, out: &mut VecDeque<ModelDelta>) {
        self.parts.tell(out);
    }

    fn has_ended(&self) -> bool {
        self.done || self.finish_reason.is_some()
    }

    fn finish(&mut self, out: &mut VecDeque<ModelDelta>) -> Result<(), Fault> {
        if !self.has_ended() {
            return Err(Failure::Truncated.into());
        }
        let metadata = self.metadata();
        let Self { provider, parts, finish_reason, usage, .. } = std::mem::take(self);
        let finish_reason = match finish_reason {
            Some(reason) if !parts.has_calls() || reason != "stop" => reason,
            // Some servers call a tool and say that they just stopped.
            Some(_) | None if parts.has_calls() => "tool-calls".to_owned(),
            Some(_) | None => "stop".to_owned(),
        };
        let usage = usage.and_then(|raw| serde_json::from_str::<Usage>(raw.get()).ok());
        let usage = usage.map(TurnUsage::from).unwrap_or_default();
        let parts = parts.finish(&provider, out);
        if usage != TurnUsage::default() {
            out.push_back(ModelDelta::Usage(usage));
        }
        let answer = Answer { parts, provider_options: None, finish_reason, usage, metadata };
        out.push_back(ModelDelta::Finish(Box::new(answer)));
        Ok(())
    }
}

/// A server's word for why it ended, in ours where it has one of ours.
fn finish_reason(word: &str) -> Result<String, Fault> {
    let ours = match word {
        "error" | "network_error" => {
            let heard = Heard::words(format!("the answer ended with the reason {word:?}"));
            return Err(Fault { failure: Failure::ServerError, heard });
        }
        "eos" | "eos_token" | "end_turn" | "stop_sequence" => "stop",
        "tool_calls" | "function_call" | "tool_use" => "tool-calls",
        "max_tokens" | "model_length" | "model_context_window_exceeded" => "length",
        "content_filter" | "sensitive" => "content-filter",
        other => other,
    };
    Ok(ours.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::message::{ProviderOptions, ReasoningPart, TextPart};
    use crate::models::delta::AnswerPart;
    use crate::models::http::sse::Decoder;
    use crate::models::openai_compatible::parts::ANSWER_BYTES_MAX;
    use crate::testing::stream_rules::check_stream;
    use fold::Fold as _;
    use proptest::prelude::*;

    /// What comes out of a stream that arrives in these pieces.
    fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Result<Vec<ModelDelta>, Failure> {
        let (mut fold, mut decoder) = (Fold::new("lab"), Decoder::default());
        let mut out = VecDeque::new();
        let mut end = Flow::More;
        for piece in pieces {
            let fed = decoder.feed(piece, |event| fold.event(&event, &mut out));
            end = fed.map_err(|fault| fault.failure)?;
            if end == Flow::Done {
                break;
            }
            fold.tell(&mut out);
        }
        if end == Flow::More {
            let last = decoder.end(|event| fold.event(&event, &mut out));
            last.map_err(|fault: Fault| fault.failure)?;
        }
        fold.finish(&mut out).map_err(|fault| fault.failure)?;
        Ok(out.into())
    }

    fn events(events: &[&str]) -> String {
        events.iter().flat_map(|event| ["data: ", event, "\n\n"]).collect()
    }

    fn delta(delta: &str) -> String {
        format!(r#"{{"choices":[{{"index":0,"delta":{delta},"finish_reason":null}}]}}"#)
    }

    const STOP: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;

    fn check_read(stream: &str, deltas: &[ModelDelta]) {
        assert_eq!(read([stream.as_bytes()]), Ok(deltas.to_vec()), "{stream}");
    }

    fn check_fails(stream: &str, failure: &Failure) {
        assert_eq!(read([stream.as_bytes()]), Err(failure.clone()), "{stream}");
    }

    /// The texts of an answer, reasoning in brackets, calls as their names; and why it ended.
    fn check_answer(stream: &str, texts: &[&str], reason: &str) {
        let mut deltas = read([stream.as_bytes()]).expect(stream);
        let Some(ModelDelta::Finish(answer)) = deltas.pop() else {
            panic!("no answer in {stream}")
        };
        let found: Vec<_> = answer.parts.iter().map(part_text).collect();
        assert_eq!(
            (found.as_slice(), answer.finish_reason.as_str()),
            (texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>().as_slice(), reason,)
        );
    }

    fn part_text(part: &AnswerPart) -> String {
        match part {
            AnswerPart::Text(part) => part.text.to_string(),
            AnswerPart::Reasoning(part) => format!("[{}]", part.text),
            AnswerPart::ToolCall(call) => format!("{}({})", call.name, call.arguments.get()),
        }
    }

    fn text(text: &str) -> AnswerPart {
        AnswerPart::Text(TextPart { text: text.into(), provider_options: None })
    }

    #[test]
    fn text_that_arrives_together_is_told_together() {
        let usage = r#"{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":1}}"#;
        let counts = format!(r#"{{"id":"c1","model":"m","choices":[],"usage":{usage}}}"#);
        let (a, b) = (delta(r#"{"role":"assistant","content":"a"}"#), delta(r#"{"content":"b"}"#));
        let counted = TurnUsage {
            input_tokens: Some(7),
            output_tokens: Some(3),
            total_tokens: Some(10),
            reasoning_tokens: Some(1),
            cached_input_tokens: Some(4),
        };
        let metadata = format!(r#"{{"id":"c1","model":"m","usage":{usage}}}"#);
        check_read(
            &events(&[&a, &b, STOP, &counts, "[DONE]"]),
            &[
                ModelDelta::TextStart,
                ModelDelta::Text("ab".into()),
                ModelDelta::TextEnd,
                ModelDelta::Usage(counted),
                ModelDelta::Finish(Box::new(Answer {
                    parts: vec![text("ab")],
                    provider_options: None,
                    finish_reason: "stop".to_owned(),
                    usage: counted,
                    metadata: Some(Json::parse(&metadata).expect("json")),
                })),
            ],
        );
    }

    #[test]
    fn reasoning_text_and_calls_stand_in_the_order_in_which_they_came() {
        let call = |n: u8| {
            delta(&format!(
                r#"{{"tool_calls":[{{"index":{n},"id":"c{n}","function":{{"name":"f{n}","arguments":"{{}}"}}}}]}}"#
            ))
        };
        let stream = [
            delta(r#"{"reasoning_content":"hm"}"#),
            delta(r#"{"content":"one"}"#),
            call(0),
            delta(r#"{"content":"two"}"#),
            call(1),
            delta(r#"{"reasoning":"so"}"#),
            STOP.to_owned(),
        ];
        let stream = events(&stream.iter().map(String::as_str).collect::<Vec<_>>());
        check_answer(&stream, &["[hm]", "one", "f0({})", "two", "f1({})", "[so]"], "tool-calls");
    }

    #[test]
    fn what_a_provider_wants_back_with_its_reasoning_is_kept() {
        let stream = [
            delta(
                r#"{"reasoning":"I ","reasoning_details":[{"type":"reasoning.text","text":"I ","index":0}]}"#,
            ),
            delta(
                r#"{"reasoning":"see","reasoning_details":[{"type":"reasoning.text","text":"see","index":0}]}"#,
            ),
            delta(r#"{"content":"a","reasoning_details":[]}"#),
            delta(
                r#"{"content":"b","reasoning_details":[{"type":"reasoning.encrypted","data":"x\u002f"}]}"#,
            ),
            STOP.to_owned(),
        ];
        let stream = events(&stream.iter().map(String::as_str).collect::<Vec<_>>());
        let mut deltas = read([stream.as_bytes()]).expect("an answer");
        let Some(ModelDelta::Finish(answer)) = deltas.pop() else { panic!("no answer") };
        let kept = r#"{"lab":{"field":"reasoning","details":[{"type":"reasoning.text","text":"I see","index":0},{"type":"reasoning.encrypted","data":"x\u002f"}]}}"#;
        let options = ProviderOptions::try_from(Json::parse(kept).expect("json"));
        let reasoning = ReasoningPart { text: "I see".into(), provider_options: options.ok() };
        assert_eq!(answer.parts, [AnswerPart::Reasoning(reasoning), text("ab")]);
    }

    #[test]
    fn servers_end_their_answers_in_many_ways() {
        let a = delta(r#"{"content":"a"}"#);
        let reason = |word: &str| {
            format!(r#"{{"choices":[{{"delta":{{"content":""}},"finish_reason":"{word}"}}]}}"#)
        };
        for (word, ours) in [
            ("stop", "stop"),
            ("eos", "stop"),
            ("length", "length"),
            ("max_tokens", "length"),
            ("content_filter", "content-filter"),
            ("tool_calls", "tool-calls"),
            ("abort", "abort"),
        ] {
            check_answer(&events(&[&a, &reason(word)]), &["a"], ours);
        }
        check_answer(&events(&[&a, "[DONE]"]), &["a"], "stop");
        check_answer(&events(&[&a, &reason(""), STOP]), &["a"], "stop");
        check_answer("data: [DONE]", &[], "stop");
        check_fails(&events(&[&a, &reason("error")]), &Failure::ServerError);
    }

    #[test]
    fn an_answer_without_its_end_is_truncated() {
        check_fails("", &Failure::Truncated);
        check_fails(&events(&[&delta(r#"{"content":"a"}"#)]), &Failure::Truncated);
        check_fails(": still here\n\n", &Failure::Truncated);
    }

    #[test]
    fn an_error_in_the_middle_is_the_servers() {
        let a = delta(r#"{"content":"a"}"#);
        let overloaded = r#"{"error":{"message":"overloaded","code":503}}"#;
        check_fails(&events(&[&a, overloaded]), &Failure::ServerError);
        check_fails(
            &events(&[&a, r#"{"object":"error","message":"m","code":400}"#]),
            &Failure::Rejected,
        );
        check_fails(&(events(&[&a]) + "event: error\ndata: oh no\n\n"), &Failure::ServerError);
        check_fails(
            "error: {\"code\":400,\"message\":\"m\",\"type\":\"exceed_context_size_error\"}\n\ndata: [DONE]\n\n",
            &Failure::ContextOverflow,
        );
        check_answer(&events(&[&a, STOP, overloaded]), &["a"], "stop");
        check_answer(&events(&[&a, STOP, "junk"]), &["a"], "stop");
    }

    #[test]
    fn what_says_nothing_of_the_answer_is_passed_over() {
        let a = delta(r#"{"content":"a","role":null,"audio":{"x":[1]}}"#);
        let other = r#"{"choices":[{"index":1,"delta":{"content":"z"},"finish_reason":null}]}"#;
        let null = r#"{"choices":null,"usage":null,"error":null,"id":null}"#;
        let again = r#"{"choices":[{"message":{"content":"a"},"finish_reason":"stop"}]}"#;
        check_answer(&events(&[r#"{"type":"ping"}"#, null, &a, other, again]), &["a"], "stop");
    }

    #[test]
    fn a_server_that_does_not_stream_is_read_too() {
        let whole = r#"{"id":"c","choices":[{"index":0,"message":{"role":"assistant","reasoning_content":"hm","content":"a","tool_calls":[{"id":"x","type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}"#;
        check_answer(&events(&[whole]), &["[hm]", "a", "f({})"], "tool-calls");
    }

    #[test]
    fn what_is_no_json_of_this_interface_is_malformed() {
        for event in ["hello", r#"{"choices":7}"#, r#"{"choices":[{"delta":{"tool_calls":7}}]}"#] {
            let failed = read([events(&[event]).as_bytes()]);
            assert!(matches!(failed, Err(Failure::Malformed { .. })), "{event}: {failed:?}");
        }
    }

    #[test]
    fn half_a_character_does_not_cost_the_answer() {
        let half = delta(r#"{"content":"a\ud83d"}"#);
        check_answer(&events(&[&half, STOP]), &["a\u{fffd}"], "stop");
    }

    #[test]
    fn an_answer_without_end_is_stopped() {
        let piece = delta(&format!(r#"{{"content":"{}"}}"#, "x".repeat(1024 * 1024)));
        let stream = events(&[&piece]).repeat(33);
        let limit_bytes = ANSWER_BYTES_MAX;
        check_fails(&stream, &Failure::TooLong { what: "the answer", limit_bytes });
    }

    /// Deltas with the pieces of each block joined.
    fn joined(deltas: Vec<ModelDelta>) -> Vec<ModelDelta> {
        let mut whole: Vec<ModelDelta> = Vec::new();
        for delta in deltas {
            match (whole.last_mut(), delta) {
                (Some(ModelDelta::Text(text)), ModelDelta::Text(more))
                | (Some(ModelDelta::Reasoning(text)), ModelDelta::Reasoning(more)) => {
                    *text = format!("{text}{more}").into();
                }
                (_, delta) => whole.push(delta),
            }
        }
        whole
    }

    fn any_delta() -> impl Strategy<Value = String> {
        let text = "[a-z\u{e9}\u{1f600}\\\\\"\n]{0,6}"
            .prop_map(|text: String| Json::text(&text).get().to_owned());
        (0_u8..5, text, 0_u8..3).prop_map(|(kind, text, index)| match kind {
            0 => format!(r#"{{"content":{text}}}"#),
            1 => format!(r#"{{"reasoning_content":{text}}}"#),
            2 => format!(r#"{{"reasoning_details":[{{"type":"reasoning.text","text":{text}}}]}}"#),
            3 => format!(r#"{{"tool_calls":[{{"index":{index},"id":"c{index}","function":{{"name":"f","arguments":{text}}}}}]}}"#),
            _ => format!(r#"{{"tool_calls":[{{"index":{index},"function":{{"arguments":{text}}}}}]}}"#),
        })
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_deltas_and_the_same_answer(
            deltas in proptest::collection::vec(any_delta(), 0..12),
            end in "(\n|\r|\r\n)",
            cuts in proptest::collection::vec(0_usize..2_000, 0..8),
        ) {
            let deltas: Vec<_> = deltas.iter().map(|it| delta(it)).collect();
            let all = deltas.iter().map(String::as_str).chain([STOP]);
            let stream: String = all.flat_map(|event| ["data: ", event, &end, &end]).collect();
            let bytes = stream.as_bytes();
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]);
            let whole = read([bytes]).expect("a whole stream");
            let items: Vec<_> = whole.iter().cloned().map(Ok).collect();
            prop_assert_eq!(check_stream(&items), Ok(()));
            prop_assert_eq!(joined(read(pieces).expect("the same")), joined(whole.clone()));
            prop_assert_eq!(joined(read(bytes.chunks(1)).expect("the same")), joined(whole));
        }
    }
}
