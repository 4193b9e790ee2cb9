//! A model that plays a script and records what it was asked.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::{StreamExt as _, stream};
use tokio_util::sync::CancellationToken;

use crate::domain::agent::ModelDescriptor;
use crate::domain::json::Json;
use crate::domain::message::{ReasoningPart, TextPart};
use crate::domain::usage::TurnUsage;
use crate::models::delta::{Answer, AnswerPart, ModelDelta, ProviderToolCall};
use crate::models::error::{Failure, ModelError, Report};
use crate::models::model::{DeltaStream, Model};
use crate::models::request::ModelRequest;
use crate::testing::gate::Gate;

/// A model that answers each call with the next script.
#[derive(Debug)]
pub struct ScriptedModel {
    descriptor: ModelDescriptor,
    scripts: Mutex<VecDeque<Vec<Play>>>,
    requests: Mutex<Vec<ModelRequest>>,
}

/// A step of a script.
#[derive(Clone, Debug)]
pub enum Play {
    /// Tells this.
    Delta(ModelDelta),
    /// Fails like this.
    Fail(Failure),
    /// Stops until the gate is open.
    Gate(Gate),
}

impl ScriptedModel {
    /// A model `scripted/scripted` with a script for each call to come.
    #[must_use]
    pub fn new(scripts: impl IntoIterator<Item = Vec<Play>>) -> Arc<Self> {
        let name = "scripted".to_owned();
        Self::named(ModelDescriptor { provider: name.clone(), model: name }, scripts)
    }

    /// A model of another name.
    #[must_use]
    pub fn named(
        descriptor: ModelDescriptor,
        scripts: impl IntoIterator<Item = Vec<Play>>,
    ) -> Arc<Self> {
        let scripts = Mutex::new(scripts.into_iter().collect());
        Arc::new(Self { descriptor, scripts, requests: Mutex::default() })
    }

    /// Adds the script of a further call.
    pub fn then(&self, script: Vec<Play>) {
        self.scripts.lock().unwrap_or_else(PoisonError::into_inner).push_back(script);
    }

    /// What it was asked, oldest first.
    #[must_use]
    pub fn requests(&self) -> Vec<ModelRequest> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn error(&self, failure: Failure) -> ModelError {
        let ModelDescriptor { provider, model } = self.descriptor.clone();
        let report = Report { provider, model: Some(model), ..Report::default() };
        ModelError { failure, report: Box::new(report) }
    }

    fn next_script(&self, request: ModelRequest) -> Vec<Play> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).push(request);
        let script = self.scripts.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let unexpected = Failure::Malformed { what: "no script for this call".to_owned() };
        script.unwrap_or_else(|| vec![Play::Fail(unexpected)])
    }
}

impl Model for ScriptedModel {
    fn descriptor(&self) -> &ModelDescriptor {
        &self.descriptor
    }

    fn stream(&self, request: ModelRequest, cancel: CancellationToken) -> DeltaStream {
        let plays: VecDeque<_> = self.next_script(request).into();
        let (cancelled, report) = (self.error(Failure::Cancelled), self.error(Failure::Truncated));
        let failed = move |failure| ModelError { failure, report: report.report.clone() };
        stream::unfold(Some((plays, cancel)), move |state| {
            let (cancelled, failed) = (cancelled.clone(), failed.clone());
            async move {
                let (mut plays, cancel) = state?;
                loop {
                    if cancel.is_cancelled() {
                        return Some((Err(cancelled), None));
                    }
                    match plays.pop_front()? {
                        Play::Delta(delta) => return Some((Ok(delta), Some((plays, cancel)))),
                        Play::Fail(failure) => return Some((Err(failed(failure)), None)),
                        Play::Gate(gate) => tokio::select! {
                            biased;
                            // Neither wait loses anything.
                            () = cancel.cancelled() => {}
                            () = gate.pass() => {}
                        },
                    }
                }
            }
        })
        .boxed()
    }
}

/// Writes the script of an answer piece by piece.
#[derive(Debug, Default)]
pub struct Reply {
    plays: Vec<Play>,
    answer: Answer,
    /// The text of the block that is open, and its kind.
    open: Option<(Block, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Block {
    Text,
    Reasoning,
}

impl Reply {
    /// An empty answer.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A piece of text; a piece after a piece goes on with it.
    #[must_use]
    pub fn text(self, piece: &str) -> Self {
        self.grow(Block::Text, piece)
    }

    /// A piece of reasoning.
    #[must_use]
    pub fn reasoning(self, piece: &str) -> Self {
        self.grow(Block::Reasoning, piece)
    }

    /// A call of a tool.
    #[must_use]
    pub fn call(mut self, name: &str, arguments: Json) -> Self {
        self.close();
        let call = ProviderToolCall { name: name.to_owned(), arguments, provider_options: None };
        self.tell(ModelDelta::ToolCall(call.clone()));
        self.answer.parts.push(AnswerPart::ToolCall(call));
        self
    }

    /// A stop until the gate is open.
    #[must_use]
    pub fn gate(mut self, gate: &Gate) -> Self {
        self.plays.push(Play::Gate(gate.clone()));
        self
    }

    /// What the call used.
    #[must_use]
    pub fn usage(mut self, input_tokens: u64, output_tokens: u64) -> Self {
        self.answer.usage = TurnUsage {
            input_tokens: Some(input_tokens),
            output_tokens: Some(output_tokens),
            ..TurnUsage::default()
        };
        self
    }

    /// The script: an answer that ends well, for this reason.
    #[must_use]
    pub fn finish(mut self, reason: &str) -> Vec<Play> {
        self.close();
        if self.answer.usage != TurnUsage::default() {
            self.tell(ModelDelta::Usage(self.answer.usage));
        }
        reason.clone_into(&mut self.answer.finish_reason);
        let answer = std::mem::take(&mut self.answer);
        self.tell(ModelDelta::Finish(Box::new(answer)));
        self.plays
    }

    /// The script: an answer that breaks off here.
    #[must_use]
    pub fn fail(mut self, failure: Failure) -> Vec<Play> {
        self.plays.push(Play::Fail(failure));
        self.plays
    }

    fn grow(mut self, kind: Block, piece: &str) -> Self {
        if self.open.as_ref().is_none_or(|(open, _)| *open != kind) {
            self.close();
            self.open = Some((kind, String::new()));
            self.tell(match kind {
                Block::Text => ModelDelta::TextStart,
                Block::Reasoning => ModelDelta::ReasoningStart,
            });
        }
        if let Some((_, text)) = &mut self.open {
            text.push_str(piece);
        }
        self.tell(match kind {
            Block::Text => ModelDelta::Text(piece.into()),
            Block::Reasoning => ModelDelta::Reasoning(piece.into()),
        });
        self
    }

    fn close(&mut self) {
        let Some((kind, text)) = self.open.take() else { return };
        let (text, provider_options) = (text.into(), None);
        let (delta, part) = match kind {
            Block::Text => {
                (ModelDelta::TextEnd, AnswerPart::Text(TextPart { text, provider_options }))
            }
            Block::Reasoning => (
                ModelDelta::ReasoningEnd,
                AnswerPart::Reasoning(ReasoningPart { text, provider_options }),
            ),
        };
        self.tell(delta);
        self.answer.parts.push(part);
    }

    fn tell(&mut self, delta: ModelDelta) {
        self.plays.push(Play::Delta(delta));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::stream_rules::check_stream;

    fn request() -> ModelRequest {
        ModelRequest {
            system_prompt: "p".into(),
            tools: Arc::from([]),
            messages: Vec::new(),
            parameters: Json::of(&()),
        }
    }

    #[tokio::test]
    async fn a_script_is_played_to_its_end_and_the_request_is_recorded() {
        let script = Reply::new().reasoning("hm").text("a").text("b").call("t", Json::text("x"));
        let model = ScriptedModel::new([script.usage(1, 2).finish("tool-calls")]);
        let played: Vec<_> = model.stream(request(), CancellationToken::new()).collect().await;
        assert_eq!(check_stream(&played), Ok(()));
        assert_eq!(model.requests(), [request()]);
        let more: Vec<_> = model.stream(request(), CancellationToken::new()).collect().await;
        let unexpected = Failure::Malformed { what: "no script for this call".to_owned() };
        assert_eq!(more, [Err(model.error(unexpected))]);
    }

    #[tokio::test]
    async fn a_gate_holds_the_script_until_it_is_open_or_cancelled() {
        let (first, second, cancel) = (Gate::new(), Gate::new(), CancellationToken::new());
        let model =
            ScriptedModel::new([Reply::new().gate(&first).text("a").gate(&second).finish("stop")]);
        let mut stream = model.stream(request(), cancel.clone());
        let (next, ()) = tokio::join!(stream.next(), async {
            first.reached().await;
            first.open();
        });
        assert_eq!(next, Some(Ok(ModelDelta::TextStart)));
        assert_eq!(stream.next().await, Some(Ok(ModelDelta::Text("a".into()))));
        let (next, ()) = tokio::join!(stream.next(), async {
            second.reached().await;
            cancel.cancel();
        });
        assert_eq!(next, Some(Err(model.error(Failure::Cancelled))));
        assert_eq!(stream.next().await, None);
    }
}
