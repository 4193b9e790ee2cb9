//! One advance of a turn: from wherever its log stands to the next rest
//! (`design/turn-runtime.md` section 7).

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use crate::base::id::{SessionId, TurnId};
use crate::domain::agent::ToolDescriptor;
use crate::domain::permission::plan::LocatedPlan;
use crate::domain::turn::event::{TurnCompleted, TurnCreated, TurnFact};
use crate::domain::turn::live::{LiveEvent, News, OpenCall};
use crate::domain::turn::state::{Settlement, ToolCall, TurnState};
use crate::models::model::Model;
use crate::policy::checker::Call;
use crate::runtime::Parts;
use crate::runtime::api::{
    AdvanceOptions, ExternalInput, Receipt, StopSignal, TakeInputs, TurnOutcome,
};
use crate::runtime::calls::Worked;
use crate::runtime::commit::{Cell, Held};
use crate::runtime::compose::tools_for;
use crate::runtime::context::Surroundings;
use crate::runtime::crash_buffer;
use crate::runtime::error::{AdvanceError, InputRefused};
use crate::runtime::inputs;
use crate::runtime::recover;
use crate::runtime::step::Stepped;
use crate::tools::registry::Registry;
use crate::tools::tool::Tool;

/// An advance under way.
pub(super) struct Advance {
    pub(super) parts: Arc<Parts>,
    pub(super) cell: Held,
    pub(super) session: Option<SessionId>,
    pub(super) stop: StopSignal,
    pub(super) folder: PathBuf,
    pub(super) take_inputs: Option<Arc<dyn TakeInputs>>,
    receipt: Receipt,
}

/// What a turn runs on today.
pub(super) struct Live {
    /// How the turn began.
    pub(super) definition: Arc<TurnCreated>,
    /// The model that its log names.
    pub(super) model: Arc<dyn Model>,
    /// The conversation before it and its agent.
    pub(super) surroundings: Surroundings,
    /// The turns of its conversation, itself included.
    own_turns: Arc<HashSet<TurnId>>,
    tools: Registry,
}

/// A tool that a call means: as the model knew it, and what runs it today.
pub(super) struct KnownTool {
    pub(super) descriptor: ToolDescriptor,
    pub(super) tool: Arc<dyn Tool>,
}

impl Live {
    /// The tool that a call means. Else what the model is told: it knew no such tool, or there is
    /// none any more.
    pub(super) fn tool(&self, state: &TurnState, call: &ToolCall) -> Result<KnownTool, String> {
        let tools = tools_for(state, &self.surroundings, call.model_call_index);
        let Some(descriptor) = tools.iter().find(|tool| tool.name == call.name) else {
            let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
            let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            return Err(format!("There is no tool {:?}. There are: {known}.", call.name));
        };
        match self.tools.find(&descriptor.tool_id, descriptor.execution) {
            Some(tool) => Ok(KnownTool { descriptor: descriptor.clone(), tool: Arc::clone(tool) }),
            None => Err(format!("The tool {:?} is not available any more.", call.name)),
        }
    }

    /// The question whether a call may run.
    pub(super) fn question(&self, tool_id: &str, plan: LocatedPlan) -> Call {
        let own_turns = Arc::clone(&self.own_turns);
        Call { tool_id: tool_id.to_owned(), plan, own_turns }
    }
}

/// Whether an input has been recorded.
enum Input {
    None,
    Due(ExternalInput),
    Recorded,
}

/// Runs one advance. An input that comes while another advance runs is recorded at once, so that it
/// is safe before its caller sees it accepted, and the running advance acts on it.
pub(super) async fn advance(
    parts: Arc<Parts>,
    cell: Held,
    input: Option<ExternalInput>,
    options: AdvanceOptions,
) -> Result<TurnOutcome, AdvanceError> {
    let mut input = input.map_or(Input::None, Input::Due);
    let executing = Arc::clone(&cell.executing);
    let _turn = if let Ok(turn) = Arc::clone(&executing).try_lock_owned() {
        turn
    } else {
        input = record_early(&parts, &cell, input, &options.receipt).await?;
        executing.lock_owned().await
    };
    let looked = cell.look(&parts, |state| state.definition.session_id.clone()).await;
    let session = looked.as_ref().ok().cloned().flatten();
    let advance = Advance {
        parts,
        session,
        cell,
        stop: options.stop,
        folder: options.folder,
        take_inputs: options.take_inputs,
        receipt: options.receipt,
    };
    // Told of a turn that cannot be read, too: whoever follows it sees that the advance ended. The
    // end is told before the turn is let go of, so that it comes before the next beginning.
    let _told = Processing::start(&advance);
    looked?;
    advance.settle(input).await
}

async fn record_early(
    parts: &Parts,
    cell: &Cell,
    input: Input,
    receipt: &Receipt,
) -> Result<Input, AdvanceError> {
    match input {
        Input::Due(ExternalInput::Cancel { .. }) | Input::None | Input::Recorded => Ok(input),
        Input::Due(due) => {
            record_input(parts, cell, &due, receipt).await?;
            cell.committed.notify_one();
            Ok(Input::Recorded)
        }
    }
}

async fn record_input(
    parts: &Parts,
    cell: &Cell,
    input: &ExternalInput,
    receipt: &Receipt,
) -> Result<(), AdvanceError> {
    let output_bytes_max = parts.options.output_bytes_max;
    let facts = |state: &TurnState| {
        let facts = inputs::facts(state, input, output_bytes_max)?;
        receipt.expect(facts.first());
        Ok(facts)
    };
    cell.commit_with(parts, facts).await?;
    receipt.give();
    Ok(())
}

impl Advance {
    async fn settle(&self, input: Input) -> Result<TurnOutcome, AdvanceError> {
        let parts = &self.parts;
        let ended = |state: &TurnState| Some((TurnOutcome::recorded(state)?, state.status()));
        if let Some((outcome, status)) = self.cell.look(parts, ended).await? {
            return match input {
                Input::None | Input::Recorded => Ok(outcome),
                Input::Due(_) => {
                    let turn = self.cell.turn.clone();
                    Err(InputRefused::Ended { turn, status }.into())
                }
            };
        }
        let left = self.left_of_answer().await?;
        if let Input::Due(ExternalInput::Cancel { reason }) = input {
            return self.cancel(left, reason).await;
        }
        if self.stop.is_given() {
            return self.cancel(left, self.stop.reason()).await;
        }
        let live = self.resolve().await?;
        if let Input::Due(due) = &input {
            record_input(parts, &self.cell, due, &self.receipt).await?;
        }
        self.close_call(|state| recover::close_interrupted(state, left)).await?;
        self.run(&live).await
    }

    /// What a crash left of the answer of the open call. Whoever asks holds the long lock, so that an
    /// open call is one that nobody makes any more.
    async fn left_of_answer(&self) -> Result<Option<OpenCall>, AdvanceError> {
        let parts = &self.parts;
        Ok(match self.cell.look(parts, TurnState::open_call_index).await? {
            Some(call) => crash_buffer::left_of_answer(parts, &self.cell.turn, call).await,
            None => None,
        })
    }

    /// Records facts that settle an open call, after which its crash buffer goes.
    async fn close_call(
        &self,
        facts: impl FnOnce(&TurnState) -> Vec<TurnFact>,
    ) -> Result<(), AdvanceError> {
        let parts = &self.parts;
        let open = self.cell.look(parts, TurnState::open_call_index).await?;
        self.cell.commit_with(parts, |state| Ok(facts(state))).await?;
        if open.is_some() {
            crash_buffer::drop_text(parts, &self.cell.turn).await;
        }
        Ok(())
    }

    async fn run(&self, live: &Live) -> Result<TurnOutcome, AdvanceError> {
        loop {
            match self.work_off(live).await? {
                Worked::Waiting(suspended) => return Ok(TurnOutcome::Suspended(suspended)),
                Worked::Stopped => return self.cancel(None, self.stop.reason()).await,
                Worked::Done => {}
            }
            self.cell.commit_with(&self.parts, |state| Ok(end_if_answered(state))).await?;
            if let Some(outcome) = self.cell.look(&self.parts, TurnOutcome::recorded).await? {
                return Ok(outcome);
            }
            match self.call_model(live).await? {
                Stepped::Settled => {}
                Stepped::Stopped => return self.cancel(None, self.stop.reason()).await,
            }
        }
    }

    async fn resolve(&self) -> Result<Live, AdvanceError> {
        let (parts, turn) = (&self.parts, &self.cell.turn);
        let definition = self.cell.look(parts, |state| Arc::clone(&state.definition)).await?;
        let surroundings = parts.context.resolve(turn, &definition, &parts.turns).await?;
        let descriptor = definition.agent.resolved.model();
        let model = parts.models.find(descriptor).map_err(|gone| AdvanceError::ModelGone {
            turn: turn.clone(),
            model: descriptor.clone(),
            why: gone.to_string(),
        })?;
        let before = surroundings.prefix.iter().map(|segment| segment.turn.clone());
        let own_turns = Arc::new(before.chain([turn.clone()]).collect());
        Ok(Live { definition, model, surroundings, own_turns, tools: parts.tools.clone() })
    }

    async fn cancel(
        &self,
        left: Option<OpenCall>,
        reason: Option<String>,
    ) -> Result<TurnOutcome, AdvanceError> {
        self.close_call(|state| recover::cancel(state, left, reason)).await?;
        let recorded = self.cell.look(&self.parts, TurnOutcome::recorded).await?;
        // The facts of `cancel` end the turn, or it had ended.
        recorded.ok_or_else(|| AdvanceError::NotEnded(self.cell.turn.clone()))
    }
}

/// The end of a turn whose last answer calls no tool, if nothing was added since and the end was not
/// recorded with the answer.
fn end_if_answered(state: &TurnState) -> Vec<TurnFact> {
    if state.terminal.is_some() {
        return Vec::new();
    }
    let Some(Settlement::Completed(response)) =
        state.model_calls.last().and_then(|call| call.settlement.as_ref())
    else {
        return Vec::new();
    };
    let next = state.next_call_index();
    let added = state.inputs.last().is_some_and(|input| input.first_call == next);
    if added || response.message.tool_calls().next().is_some() {
        return Vec::new();
    }
    vec![TurnFact::Completed(TurnCompleted {
        output: Arc::clone(&response.message),
        finish_reason: response.finish_reason.clone(),
        usage: state.usage,
    })]
}

/// Tells that the turn is being advanced, for as long as it lives.
struct Processing {
    parts: Arc<Parts>,
    event: LiveEvent,
}

impl Processing {
    fn start(advance: &Advance) -> Self {
        let (session, turn) = (advance.session.clone(), advance.cell.turn.clone());
        let event = LiveEvent { session, turn, news: News::Started };
        advance.parts.hub.publish(&event);
        Self { parts: Arc::clone(&advance.parts), event }
    }
}

impl Drop for Processing {
    fn drop(&mut self) {
        self.event.news = News::Rested;
        self.parts.hub.publish(&self.event);
    }
}
