//! Turns without a session, for whoever has no person to ask (`spec/session-layer.md` section 11).

use std::path::PathBuf;
use std::sync::Arc;

use crate::base::clock::Timestamp;
use crate::base::id::TurnId;
use crate::domain::agent::RequestedAgent;
use crate::domain::message::{Message, UserMessage};
use crate::domain::turn::event::{ReasoningEffort, TurnContext};
use crate::domain::turn::state::TurnState;
use crate::domain::turn::step::StepEvent;
use crate::runtime::api::{
    AdvanceOptions, CreateConfig, CreateTurn, Human, PermissionMode, StopSignal, TurnOutcome, Turns,
};
use crate::runtime::error::{AdvanceError, CreateError, ReadError};
use crate::runtime::execution::{ExecutionEvents, OutcomeFuture};

/// A turn without a session.
#[derive(Clone, Debug)]
pub struct HeadlessTurn {
    /// Who is to answer.
    pub agent: RequestedAgent,
    /// What was said before.
    pub context: Vec<Message>,
    /// What the turn is about.
    pub input: Arc<UserMessage>,
    /// How many model calls it may make; the configured number without it.
    pub max_model_calls: Option<u64>,
    /// How hard the model is to think; as it likes without it.
    pub reasoning_effort: Option<ReasoningEffort>,
    /// The folder in which its tools run.
    pub folder: PathBuf,
    /// Now.
    pub now: Timestamp,
}

/// A turn without a session, under way.
pub struct HeadlessRun {
    /// Its id, at once.
    pub turn: TurnId,
    /// What it tells.
    pub events: ExecutionEvents,
    /// How it comes to rest.
    pub outcome: OutcomeFuture,
}

/// A turn without a session, at rest.
#[derive(Clone, Debug, PartialEq)]
pub struct HeadlessResult {
    /// How it came to rest.
    pub outcome: TurnOutcome,
    /// What its log amounts to.
    pub state: TurnState,
    /// The text of its answer, or what had come of it when the turn ended without one.
    pub text: String,
}

/// Why a turn without a session has no result.
#[derive(Debug, thiserror::Error)]
pub enum HeadlessError {
    /// It was not created.
    #[error(transparent)]
    Create(#[from] CreateError),
    /// It did not come to rest.
    #[error(transparent)]
    Advance(#[from] AdvanceError),
    /// It cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// Creates a turn without a session and starts it: with automatic permissions and without a person,
/// in no index.
///
/// # Errors
/// [`CreateError`]; a failed resolution creates no file.
pub async fn start_headless(
    turns: &dyn Turns,
    turn: HeadlessTurn,
    stop: StopSignal,
) -> Result<HeadlessRun, CreateError> {
    let folder = turn.folder.clone();
    let id = turns
        .create_turn(CreateTurn {
            session_id: None,
            agent: turn.agent,
            context: TurnContext::Inline(turn.context),
            input: turn.input,
            config: CreateConfig {
                permission: PermissionMode::Auto,
                human: Human::Unavailable,
                max_model_calls: turn.max_model_calls,
                reasoning_effort: turn.reasoning_effort,
            },
            folder: turn.folder,
            session_created_at: turn.now,
        })
        .await?;
    let options = AdvanceOptions { stop, folder, ..AdvanceOptions::default() };
    let execution = turns.advance_turn(&id, None, options);
    Ok(HeadlessRun { turn: id, events: execution.events, outcome: execution.outcome })
}

impl HeadlessRun {
    /// Waits until the turn comes to rest.
    ///
    /// # Errors
    /// [`HeadlessError`] if it does not, or cannot be read then.
    pub async fn finish(self, turns: &dyn Turns) -> Result<HeadlessResult, HeadlessError> {
        let outcome = self.outcome.await?;
        let state = turns.get_turn(&self.turn).await?.state;
        let text = match &outcome {
            TurnOutcome::Completed(completed) => completed.output.plain_text(),
            TurnOutcome::Suspended(_) | TurnOutcome::Failed(_) | TurnOutcome::Cancelled(_) => {
                broken_off(&state)
            }
        };
        Ok(HeadlessResult { outcome, state, text })
    }
}

/// What had come of an answer that broke off.
fn broken_off(turn: &TurnState) -> String {
    let last = turn.model_calls.last().filter(|call| call.response().is_none());
    let steps = last.map(|call| call.steps.as_slice()).unwrap_or_default();
    let texts = steps.iter().filter_map(|step| match step {
        StepEvent::TextEnd { text } => Some(&**text),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}
