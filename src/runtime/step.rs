//! One model call: the request is recorded, the answer streams to whoever watches, and what is
//! whole of it is recorded.

use std::sync::Arc;

use futures_util::StreamExt as _;
use serde_json::{Map, Value};

use crate::base::id::ToolCallId;
use crate::domain::json::Json;
use crate::domain::turn::event::{
    InputAdded, MODEL_CALL_LIMIT, ModelCallCompleted, ModelCallFailed, ModelCallRequested,
    ModelRequest, ModelStep, TurnCompleted, TurnFact, TurnFailed,
};
use crate::domain::turn::live::{Delta, DeltaKind, LiveEvent, News};
use crate::domain::turn::state::{ToolCall, TurnState};
use crate::domain::turn::step::{FinishStep, StepEvent};
use crate::models::delta::{Answer, ModelDelta, ProviderToolCall};
use crate::models::error::{Failure, ModelError};
use crate::runtime::advance::{Advance, Live};
use crate::runtime::compose::{ELIDE_OVER_CHARS, compose};
use crate::runtime::crash_buffer::CrashBuffer;
use crate::runtime::error::AdvanceError;

/// The `code` of a turn whose conversation does not fit into the model's window.
pub const CONTEXT_OVERFLOW: &str = "context-overflow";

/// How a model call went on.
pub(super) enum Stepped {
    /// The turn goes on, or has ended; the log says which.
    Settled,
    /// The signal to stop was given meanwhile.
    Stopped,
}

impl Advance {
    /// Takes in what waits, then calls the model, unless the budget is spent.
    pub(super) async fn call_model(&self, live: &Live) -> Result<Stepped, AdvanceError> {
        self.take_inputs().await?;
        if self.stop.is_given() {
            return Ok(Stepped::Stopped);
        }
        let parts = &self.parts;
        self.cell.commit_with(parts, |state| Ok(vec![request_or_limit(state)])).await?;
        let composed = self.cell.look(parts, |state| {
            state.open_call()?;
            let index = state.next_call_index() - 1;
            Some((index, numbered_calls(state), compose(state, &live.surroundings, index)))
        });
        let Some((index, calls_before, request)) = composed.await? else {
            return Ok(Stepped::Settled);
        };
        let mut stream = live.model.stream(request, self.stop.token().clone());
        let mut answering = Answering::new(self, index, calls_before);
        loop {
            let next = tokio::select! {
                biased;
                // Both are safe to drop: a token keeps its state, and a piece that was not taken
                // yet is dropped with its stream.
                () = self.stop.token().cancelled() => None,
                next = stream.next() => Some(next),
            };
            match next {
                Some(Some(Ok(ModelDelta::Finish(answer)))) => {
                    answering.finish(*answer).await?;
                    return Ok(Stepped::Settled);
                }
                Some(Some(Ok(delta))) => answering.take(delta).await?,
                Some(Some(Err(error))) if !self.stop.is_given() => {
                    answering.fail(&error).await?;
                    return Ok(Stepped::Settled);
                }
                None | Some(Some(Err(_))) => {
                    drop(stream);
                    answering.break_off().await?;
                    return Ok(Stepped::Stopped);
                }
                Some(None) => {
                    answering.fail_with("the model's stream ended without an end", None).await?;
                    return Ok(Stepped::Settled);
                }
            }
        }
    }

    async fn take_inputs(&self) -> Result<(), AdvanceError> {
        let Some(source) = &self.take_inputs else { return Ok(()) };
        let turn = &self.cell.turn;
        let claimed = source.claim(turn).await;
        if claimed.is_empty() {
            return Ok(());
        }
        let added = |state: &TurnState| {
            let first = state.inputs.len() as u64 + 1;
            let inputs = (first..).zip(&claimed).map(|(input_index, claimed)| {
                let message = Arc::clone(&claimed.message);
                TurnFact::InputAdded(InputAdded { input_index, message })
            });
            Ok(inputs.collect())
        };
        let recorded = self.cell.commit_with(&self.parts, added).await;
        match &recorded {
            Ok(()) => source.confirm(turn, &claimed).await,
            Err(_) => source.give_back(turn, &claimed).await,
        }
        recorded
    }
}

/// The next request, by reference; or the end of the turn, if it would be one too many.
fn request_or_limit(state: &TurnState) -> TurnFact {
    let max = state.definition.config.max_model_calls;
    if state.budget_is_spent() {
        return TurnFact::Failed(TurnFailed {
            error: format!("the turn used up its {max} model calls; send a message to go on"),
            code: Some(MODEL_CALL_LIMIT.to_owned()),
            usage: state.usage,
        });
    }
    let mut parameters = Map::new();
    if let Some(effort) = state.definition.config.reasoning_effort {
        parameters.insert("reasoningEffort".to_owned(), serde_json::json!(effort));
    }
    parameters.insert("elideOver".to_owned(), Value::from(ELIDE_OVER_CHARS));
    TurnFact::ModelCallRequested(ModelCallRequested {
        model_call_index: state.next_call_index(),
        request: ModelRequest {
            context_ref: state.next_context_ref().cloned(),
            messages: state.next_message_refs(),
            parameters: Json::of(&parameters),
        },
    })
}

/// The number after which the calls of the next answer are numbered: how many the turn has, or the
/// highest number among them, should another program have numbered in its own way.
fn numbered_calls(state: &TurnState) -> usize {
    let number = |call: &ToolCall| {
        let number = call.id.as_str().strip_prefix(state.id.as_str())?.strip_prefix('_')?;
        // Higher than any turn has calls is no number of ours.
        number.parse::<u32>().ok().and_then(|number| usize::try_from(number).ok())
    };
    let highest = state.tool_calls.iter().filter_map(number).max().unwrap_or(0);
    highest.max(state.tool_calls.len())
}

/// An answer on its way.
struct Answering<'a> {
    advance: &'a Advance,
    index: u64,
    /// The number after which its calls are numbered.
    calls_before: usize,
    calls: usize,
    /// The block that grows, with its text so far.
    open: Option<(DeltaKind, String)>,
    blocks: u32,
    streamed: u64,
    buffer: CrashBuffer,
}

impl<'a> Answering<'a> {
    fn new(advance: &'a Advance, index: u64, calls_before: usize) -> Self {
        let buffer = CrashBuffer::new(&advance.parts, &advance.cell.turn);
        let (calls, open, blocks, streamed) = (0, None, 0, 0);
        Self { advance, index, calls_before, calls, open, blocks, streamed, buffer }
    }

    async fn take(&mut self, delta: ModelDelta) -> Result<(), AdvanceError> {
        match delta {
            ModelDelta::Waiting { until, why } => self.tell(News::ModelWaiting { until, why }),
            ModelDelta::TextStart => self.begin(DeltaKind::Text),
            ModelDelta::ReasoningStart => self.begin(DeltaKind::Reasoning),
            ModelDelta::Text(text) | ModelDelta::Reasoning(text) => self.grow(&text),
            ModelDelta::TextEnd | ModelDelta::ReasoningEnd => {
                let steps = self.close_block();
                self.record(steps).await?;
            }
            ModelDelta::ToolCall(call) => {
                let step = self.tool_call(call);
                self.record(vec![step]).await?;
            }
            // The sum stands in the whole answer; a `Finish` never comes here.
            ModelDelta::Usage(_) | ModelDelta::Finish(_) => {}
        }
        Ok(())
    }

    fn begin(&mut self, kind: DeltaKind) {
        self.open = Some((kind, String::new()));
        self.blocks += 1;
    }

    fn grow(&mut self, piece: &str) {
        let Some((kind, text)) = &mut self.open else { return };
        text.push_str(piece);
        let delta = Delta {
            model_call_index: self.index,
            kind: *kind,
            block: self.blocks - 1,
            at: self.streamed,
            text: piece.to_owned(),
        };
        self.streamed += piece.len() as u64;
        self.buffer.grow(&delta);
        self.tell(News::Delta(delta));
    }

    fn close_block(&mut self) -> Vec<StepEvent> {
        match self.open.take() {
            None => Vec::new(),
            Some((kind, text)) => StepEvent::of_block(kind, text).to_vec(),
        }
    }

    fn tool_call(&mut self, call: ProviderToolCall) -> StepEvent {
        let id = self.call_id(self.calls);
        self.calls += 1;
        StepEvent::ToolCall { tool_call: call.into_part(id) }
    }

    fn call_id(&self, number_in_answer: usize) -> ToolCallId {
        let number = self.calls_before + number_in_answer + 1;
        ToolCallId::of_turn(&self.advance.cell.turn, number)
    }

    async fn finish(mut self, answer: Answer) -> Result<(), AdvanceError> {
        let mut facts = self.steps_as_facts();
        let (finish_reason, usage) = (answer.finish_reason.clone(), answer.usage);
        let metadata = answer.metadata.clone();
        facts.push(self.step(StepEvent::FinishStep(FinishStep {
            finish_reason: finish_reason.clone(),
            usage: Some(usage),
            provider_metadata: None,
        })));
        let message = Arc::new(answer.into_message(|number| self.call_id(number)));
        facts.push(TurnFact::ModelCallCompleted(ModelCallCompleted {
            model_call_index: self.index,
            message: Arc::clone(&message),
            finish_reason: finish_reason.clone(),
            usage,
            provider_metadata: metadata,
        }));
        let ends = message.tool_calls().next().is_none();
        let cell = &self.advance.cell;
        cell.commit_with(&self.advance.parts, |state| {
            if ends {
                let mut total = state.usage;
                total.add(&usage);
                let (output, usage) = (message, total);
                facts.push(TurnFact::Completed(TurnCompleted { output, finish_reason, usage }));
            }
            Ok(facts)
        })
        .await?;
        self.settled().await;
        Ok(())
    }

    async fn settled(self) {
        self.buffer.settled(&self.advance.parts, &self.advance.cell.turn).await;
    }

    async fn fail(self, error: &ModelError) -> Result<(), AdvanceError> {
        let code = (error.failure == Failure::ContextOverflow).then_some(CONTEXT_OVERFLOW);
        self.fail_with(&error.to_string(), code).await
    }

    async fn fail_with(mut self, error: &str, code: Option<&str>) -> Result<(), AdvanceError> {
        let mut facts = self.steps_as_facts();
        let error = error.to_owned();
        facts.push(self.step(StepEvent::ProviderError { error: error.clone() }));
        facts.push(TurnFact::ModelCallFailed(ModelCallFailed {
            model_call_index: self.index,
            error: error.clone(),
        }));
        let code = code.map(str::to_owned);
        let cell = &self.advance.cell;
        cell.commit_with(&self.advance.parts, |state| {
            facts.push(TurnFact::Failed(TurnFailed { error, code, usage: state.usage }));
            Ok(facts)
        })
        .await?;
        self.settled().await;
        Ok(())
    }

    /// Keeps what had streamed; the call itself is settled by whoever ends the turn.
    async fn break_off(mut self) -> Result<(), AdvanceError> {
        let steps = self.close_block();
        self.record(steps).await?;
        // Whoever settles the call drops what was written.
        self.buffer.stop().await;
        Ok(())
    }

    async fn record(&self, steps: Vec<StepEvent>) -> Result<(), AdvanceError> {
        let facts = steps.into_iter().map(|event| self.step(event)).collect();
        self.advance.cell.commit(&self.advance.parts, facts).await
    }

    fn steps_as_facts(&mut self) -> Vec<TurnFact> {
        let steps = self.close_block();
        steps.into_iter().map(|event| self.step(event)).collect()
    }

    fn step(&self, event: StepEvent) -> TurnFact {
        TurnFact::ModelStep(ModelStep { model_call_index: self.index, event })
    }

    fn tell(&self, news: News) {
        let turn = self.advance.cell.turn.clone();
        self.advance.parts.hub.publish(&LiveEvent {
            session: self.advance.session.clone(),
            turn,
            news,
        });
    }
}
