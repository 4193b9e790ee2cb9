//! What can keep the runtime from doing what it was asked, one enum per call.

use thiserror::Error;

use crate::base::id::{ToolCallId, TurnId};
use crate::domain::agent::ModelDescriptor;
use crate::domain::turn::refusal::TurnRefusal;
use crate::domain::turn::status::TurnStatus;
use crate::runtime::context::ContextError;
use crate::store::error::StoreError;

/// Why an agent cannot be resolved.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ResolveError {
    /// There is no such agent.
    #[error("there is no agent {agent:?}; there are {known}")]
    UnknownAgent {
        /// What was asked for.
        agent: String,
        /// What there is, as a list for people.
        known: String,
    },
    /// There is no such model.
    #[error("{0}")]
    UnknownModel(String),
    /// There is no such tool.
    #[error("agent {agent:?} wants the tool {tool:?}, which does not exist")]
    UnknownTool {
        /// The agent.
        agent: String,
        /// The tool.
        tool: String,
    },
}

/// Why a turn was not created.
#[derive(Debug, Error)]
pub enum CreateError {
    /// Its agent cannot be resolved; nothing was written.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// The store did not take it.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a turn cannot be read.
#[derive(Clone, Debug, Error)]
pub enum ReadError {
    /// The store does not give it, or a line of it is no event.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a request that was sent cannot be had again.
#[derive(Debug, Error)]
pub enum AuditError {
    /// The turn cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// What it goes back to cannot be read.
    #[error(transparent)]
    Context(#[from] ContextError<ReadError>),
    /// The turn made no such call.
    #[error("turn {turn} made no model call with the index {model_call_index}")]
    NoSuchCall {
        /// The turn.
        turn: TurnId,
        /// The call.
        model_call_index: u64,
    },
}

/// Why an input from outside was not taken.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InputRefused {
    /// The turn has ended.
    #[error("turn {turn} is {status} already; the answer changed nothing")]
    Ended {
        /// The turn.
        turn: TurnId,
        /// How it ended.
        status: TurnStatus,
    },
    /// There is no such call.
    #[error("turn {turn} has no tool call {call}")]
    UnknownCall {
        /// The turn.
        turn: TurnId,
        /// The call.
        call: ToolCallId,
    },
    /// The call was decided on already, or needs no decision.
    #[error("tool call {0} does not wait for a decision; nothing was changed")]
    NoDecisionPending(ToolCallId),
    /// The call has its result, or is not one that somebody outside answers.
    #[error("tool call {0} does not wait for an answer; nothing was changed")]
    NoResultPending(ToolCallId),
    /// What came with it is more, or deeper, than a log takes.
    #[error("what came for tool call {call} cannot be recorded: {why}")]
    Unfit {
        /// The call.
        call: ToolCallId,
        /// The limit that it breaks.
        why: String,
    },
}

/// Why an advance ended without coming to rest.
#[derive(Debug, Error)]
pub enum AdvanceError {
    /// The input was not taken.
    #[error(transparent)]
    Refused(#[from] InputRefused),
    /// The turn cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// What it goes back to cannot be read.
    #[error(transparent)]
    Context(#[from] ContextError<ReadError>),
    /// Its model is gone.
    #[error("turn {turn} ran on {model}, which is not configured any more: {why}")]
    ModelGone {
        /// The turn.
        turn: TurnId,
        /// The model.
        model: ModelDescriptor,
        /// What the registry says.
        why: String,
    },
    /// The store did not take an event.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The loop was about to write an event that cannot follow: a fault of this program. Nothing
    /// was written.
    #[error("turn {turn}: an event was refused before it was written: {refusal}")]
    Illegal {
        /// The turn.
        turn: TurnId,
        /// Why.
        #[source]
        refusal: TurnRefusal,
    },
    /// The facts that end a turn did not: a fault of this program.
    #[error("turn {0} could not be ended")]
    NotEnded(TurnId),
    /// The loop panicked: a fault of this program. What was acknowledged is safe.
    #[error("turn {turn}: the program failed: {message}")]
    Panicked {
        /// The turn.
        turn: TurnId,
        /// The panic's message.
        message: String,
    },
}
