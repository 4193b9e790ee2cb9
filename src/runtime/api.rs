//! The three calls of the runtime, what goes into them and what comes out
//! (`design/turn-runtime.md` section 6).

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use crate::base::clock::Timestamp;
use crate::base::id::{EventId, SessionId, ToolCallId, TurnId};
use crate::domain::agent::{ModelDescriptor, RequestedAgent, ResolvedAgent};
use crate::domain::json::Json;
use crate::domain::message::UserMessage;
use crate::domain::turn::event::{
    Decision, ReasoningEffort, ToolResultData, TurnCancelled, TurnCompleted, TurnContext,
    TurnEvent, TurnFact, TurnFailed, TurnSuspended,
};
use crate::domain::turn::live::OpenCall;
use crate::domain::turn::state::{TerminalKind, TurnState};
use crate::models::model::Model;
use crate::runtime::error::{CreateError, ReadError, ResolveError};
use crate::runtime::execution::TurnExecution;

/// A turn to be created.
#[derive(Clone, Debug)]
pub struct CreateTurn {
    /// Its session; none for a standalone turn.
    pub session_id: Option<SessionId>,
    /// Who is to answer.
    pub agent: RequestedAgent,
    /// What was said before.
    pub context: TurnContext,
    /// What the turn is about.
    pub input: Arc<UserMessage>,
    /// What it may do.
    pub config: CreateConfig,
    /// The folder in which its tools run.
    pub folder: PathBuf,
    /// When the session began; its date stands in the prompt, which so stays the same from turn to
    /// turn. Now, for a standalone turn.
    pub session_created_at: Timestamp,
}

/// What a turn may do, before defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreateConfig {
    /// Whether a classifier may allow what would else be asked.
    pub permission: PermissionMode,
    /// Whether there is a person to ask.
    pub human: Human,
    /// How many model calls may follow one input; the configured number without it.
    pub max_model_calls: Option<u64>,
    /// How hard the model is to think.
    pub reasoning_effort: Option<ReasoningEffort>,
}

/// Who may allow a call that the rules ask about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PermissionMode {
    /// A person only (`autoPermission` false).
    #[default]
    Manual,
    /// A classifier too (`autoPermission` true).
    Auto,
}

impl PermissionMode {
    /// The mode that `autoPermission` means.
    #[must_use]
    pub fn of(auto_permission: bool) -> Self {
        if auto_permission { Self::Auto } else { Self::Manual }
    }
}

/// Whether there is a person to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Human {
    /// There is (`humanAvailable` true).
    Available,
    /// There is not.
    Unavailable,
}

impl Human {
    /// What `humanAvailable` means.
    #[must_use]
    pub fn of(available: bool) -> Self {
        if available { Self::Available } else { Self::Unavailable }
    }
}

/// What reaches a turn from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExternalInput {
    /// A decision on a call.
    PermissionDecision {
        /// The call.
        call: ToolCallId,
        /// Yes or no.
        decision: Decision,
        /// How it came about; its `reason` is the person's words to the model.
        metadata: Option<Json>,
    },
    /// A report of an async tool on its way.
    AsyncToolProgress {
        /// The call.
        call: ToolCallId,
        /// The report.
        progress: Json,
    },
    /// The result of an async tool.
    AsyncToolResult {
        /// The call.
        call: ToolCallId,
        /// The result.
        result: ToolResultData,
    },
    /// The end.
    Cancel {
        /// Why, if that was said.
        reason: Option<String>,
    },
}

/// How one advance is to run.
#[derive(Clone, Default)]
pub struct AdvanceOptions {
    /// Ends the turn when it is given.
    pub stop: StopSignal,
    /// The folder in which tools run.
    pub folder: PathBuf,
    /// Where messages come from that were typed while the turn runs.
    pub take_inputs: Option<Arc<dyn TakeInputs>>,
    /// Where it is said that the advance's own input is safe.
    pub receipt: Receipt,
}

/// Says that the input of one advance stands in the log, and what it became there. For a cancel,
/// which is not recorded as one event, it is never given.
#[derive(Clone, Debug, Default)]
pub struct Receipt {
    given: CancellationToken,
    fact: Arc<OnceLock<TurnFact>>,
}

impl Receipt {
    /// The input is about to be recorded as this fact, if it is one.
    pub fn expect(&self, fact: Option<&TurnFact>) {
        if let Some(fact) = fact {
            self.fact.get_or_init(|| fact.clone());
        }
    }

    /// The input is recorded, durably.
    pub fn give(&self) {
        self.given.cancel();
    }

    /// Whether it was given.
    #[must_use]
    pub fn is_given(&self) -> bool {
        self.given.is_cancelled()
    }

    /// Whether these events have what the input was to be recorded as: it may be although the receipt
    /// was not given, when its record was written and the writing broke off after that.
    #[must_use]
    pub fn stands_in(&self, events: &[Arc<TurnEvent>]) -> bool {
        self.fact.get().is_some_and(|fact| events.iter().any(|event| event.fact == *fact))
    }

    /// Waits until it is given. Safe to drop.
    pub async fn given(&self) {
        self.given.cancelled().await;
    }
}

/// The signal that ends a live advance, with its reason.
#[derive(Clone, Debug, Default)]
pub struct StopSignal {
    token: CancellationToken,
    reason: Arc<OnceLock<String>>,
}

impl StopSignal {
    /// A signal that has not been given.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives the signal. The first reason counts.
    pub fn stop(&self, reason: Option<&str>) {
        if let (Some(reason), false) = (reason, self.token.is_cancelled()) {
            self.reason.get_or_init(|| reason.to_owned());
        }
        self.token.cancel();
    }

    /// Whether it was given.
    #[must_use]
    pub fn is_given(&self) -> bool {
        self.token.is_cancelled()
    }

    /// The token behind it, which says only that the signal was given.
    #[must_use]
    pub fn token(&self) -> &CancellationToken {
        &self.token
    }

    /// Why it was given, if that was said.
    #[must_use]
    pub fn reason(&self) -> Option<String> {
        self.reason.get().cloned()
    }
}

/// Messages that were typed while a turn runs, taken in at its next boundary, in two steps: what was
/// claimed is nobody else's, and is the turn's once it stands in the log. Should the program die
/// between the two, the log says what became of it.
#[async_trait]
pub trait TakeInputs: Send + Sync {
    /// Claims the messages that wait, in order.
    async fn claim(&self, turn: &TurnId) -> Vec<Claimed>;

    /// What was claimed stands in the log, durably.
    async fn confirm(&self, turn: &TurnId, claimed: &[Claimed]);

    /// What was claimed could not be recorded, as far as is known here. What the log has of it all
    /// the same is the turn's.
    async fn give_back(&self, turn: &TurnId, claimed: &[Claimed]);
}

/// A message that was claimed for a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimed {
    /// Which one.
    pub id: EventId,
    /// The message, as the turn gets it.
    pub message: Arc<UserMessage>,
}

/// Finds what an agent is: its prompt, its model, its tools.
#[async_trait]
pub trait AgentResolver: Send + Sync {
    /// Resolves an agent for a turn that is to be created.
    ///
    /// # Errors
    /// [`ResolveError`] says what is missing; no turn is created then.
    async fn resolve(
        &self,
        requested: &RequestedAgent,
        setting: &AgentSetting,
    ) -> Result<ResolvedAgent, ResolveError>;
}

/// Finds the model that a turn runs on.
pub trait FindModel: Send + Sync {
    /// The model behind a descriptor.
    ///
    /// # Errors
    /// [`ModelGone`] says why there is none.
    fn find(&self, model: &ModelDescriptor) -> Result<Arc<dyn Model>, ModelGone>;
}

/// Why there is no model behind a descriptor; for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ModelGone(pub String);

/// Where an agent is to work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentSetting {
    /// The folder in which its tools run.
    pub folder: PathBuf,
    /// When its session began.
    pub session_created_at: Timestamp,
}

/// How an advance came to rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TurnOutcome {
    /// The turn ended with an answer.
    Completed(TurnCompleted),
    /// It waits for somebody outside.
    Suspended(Arc<TurnSuspended>),
    /// It ended without an answer.
    Failed(TurnFailed),
    /// It was ended from outside.
    Cancelled(TurnCancelled),
}

impl TurnOutcome {
    /// The outcome that a turn's log records, if the turn has ended.
    #[must_use]
    pub fn recorded(state: &TurnState) -> Option<Self> {
        Some(match &state.terminal.as_ref()?.kind {
            TerminalKind::Completed(completed) => Self::Completed(completed.clone()),
            TerminalKind::Failed(failed) => Self::Failed(failed.clone()),
            TerminalKind::Cancelled(cancelled) => Self::Cancelled(cancelled.clone()),
        })
    }
}

/// A turn as it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Turn {
    /// Its events, validated.
    pub events: Vec<Arc<TurnEvent>>,
    /// What they amount to.
    pub state: TurnState,
    /// What had streamed of the open call when the program was killed, if it was.
    pub interrupted: Option<OpenCall>,
}

/// The runtime's three calls, as the layer above uses them.
#[async_trait]
pub trait Turns: Send + Sync {
    /// Resolves the agent, writes and tells `turn_created`, and gives the id. Nothing runs yet.
    ///
    /// # Errors
    /// [`CreateError`]; a failed resolution creates no file.
    async fn create_turn(&self, input: CreateTurn) -> Result<TurnId, CreateError>;

    /// Starts one advance at once, in the background, whether or not anybody listens.
    fn advance_turn(
        &self,
        turn: &TurnId,
        input: Option<ExternalInput>,
        options: AdvanceOptions,
    ) -> TurnExecution;

    /// Reads a turn. Never repairs, never resumes.
    ///
    /// # Errors
    /// [`ReadError`] if there is none, or its log is damaged.
    async fn get_turn(&self, turn: &TurnId) -> Result<Turn, ReadError>;
}
