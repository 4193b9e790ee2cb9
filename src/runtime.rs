//! Runs one turn: the loop, its recovery, context and requests, and the live stream. It keeps
//! nothing of a turn between calls, and it knows no sessions.

mod advance;
pub mod api;
mod audit;
mod calls;
mod classify;
mod commit;
pub mod compose;
pub mod context;
mod crash_buffer;
pub mod error;
pub mod execution;
pub mod headless;
pub mod hub;
mod inputs;
mod permissions;
mod progress;
mod recover;
mod step;

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;

use crate::base::clock::Clock;
use crate::base::id::{IdSource, TurnId};
use crate::base::tasks::Tasks;
use crate::domain::agent::{AgentSnapshot, InheritedAgent, ResolvedAgent, TurnAgent};
use crate::domain::event::Event;
use crate::domain::turn::event::{
    TURN_SCHEMA_VERSION, TurnConfig, TurnContext, TurnCreated, TurnEvent, TurnFact,
};
use crate::domain::turn::live::{LiveEvent, News};
use crate::domain::turn::state::TurnState;
use crate::policy::checker::PermissionChecker;
use crate::policy::classifier::Classifier;
use crate::runtime::api::{
    AdvanceOptions, AgentResolver, AgentSetting, CreateTurn, ExternalInput, FindModel, Human,
    PermissionMode, Turn, Turns,
};
use crate::runtime::commit::Cells;
use crate::runtime::context::{AgentBase, ContextResolver, ReadTurn};
use crate::runtime::error::{CreateError, ReadError};
use crate::runtime::execution::TurnExecution;
use crate::runtime::hub::Hub;
use crate::store::error::StoreError;
use crate::store::live_text::LiveText;
use crate::store::turn_repo::TurnRepo;
use crate::tools::registry::Registry;

pub use step::CONTEXT_OVERFLOW;

/// Everything that the runtime works with.
pub struct Parts {
    /// Where the logs are.
    pub turns: TurnRepo,
    /// Where the text of open calls is kept in case of a crash.
    pub live_text: Arc<dyn LiveText>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Ids of new turns.
    pub ids: Arc<dyn IdSource>,
    /// What agents are.
    pub agents: Arc<dyn AgentResolver>,
    /// The models.
    pub models: Arc<dyn FindModel>,
    /// The tools.
    pub tools: Registry,
    /// Whether a call may run.
    pub checker: Arc<dyn PermissionChecker>,
    /// Who judges what the rules leave open; without one it counts as deferred.
    pub classifier: Option<Arc<dyn Classifier>>,
    /// Where everything is told.
    pub hub: Hub,
    /// Who owns what runs in the background.
    pub tasks: Tasks,
    /// Conversations that were resolved before.
    pub context: ContextResolver,
    /// Numbers and places.
    pub options: Options,
}

/// Numbers and places that the configuration gives.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many model calls may follow one input, if the turn does not say.
    pub max_model_calls: u64,
    /// The folder for output that is too long for a model; each turn has one in it.
    pub output_dir: PathBuf,
    /// How much output of a tool a model gets, in bytes.
    pub output_bytes_max: usize,
}

/// The built-in number of model calls that may follow one input.
pub const MAX_MODEL_CALLS: u64 = 50;

/// How many ids may be in use already before a new turn gives up: more than a process can make
/// within the second that another one with its process id lived.
const ID_TRIES_MAX: usize = 1_000;

/// The runtime.
#[derive(Clone)]
pub struct TurnRuntime {
    parts: Arc<Parts>,
    cells: Arc<Cells>,
}

impl TurnRuntime {
    /// A runtime of these parts.
    #[must_use]
    pub fn new(parts: Parts) -> Self {
        Self { parts: Arc::new(parts), cells: Arc::default() }
    }

    /// Where everything is told.
    #[must_use]
    pub fn hub(&self) -> &Hub {
        &self.parts.hub
    }

    /// The agent as it is recorded: by reference if the previous turn has the same one.
    async fn snapshot(&self, agent: ResolvedAgent, context: &TurnContext) -> AgentSnapshot {
        let TurnContext::Previous(previous) = context else { return AgentSnapshot::Full(agent) };
        let base = AgentBase {
            system_prompt: Arc::clone(&agent.system_prompt),
            tools: Arc::clone(&agent.tools),
        };
        let previous = &previous.previous_turn_id;
        match self.parts.context.inheritable(previous, &self.parts.turns).await {
            Ok(inherited) if inherited == base => AgentSnapshot::Inherited(InheritedAgent {
                agent_id: agent.agent_id,
                model: agent.model,
                inherited_from: previous.clone(),
            }),
            // An unreadable predecessor costs some bytes, not the turn.
            Ok(_) | Err(_) => AgentSnapshot::Full(agent),
        }
    }

    /// Writes the first event under an id that nothing on the disk has.
    async fn create_log(&self, created: &Arc<TurnCreated>) -> Result<TurnEvent, StoreError> {
        let mut tries = 0;
        loop {
            let event = Event {
                id: TurnId::from(self.parts.ids.next()),
                ts: self.parts.clock.now(),
                fact: TurnFact::Created(Arc::clone(created)),
            };
            match self.parts.turns.create(&event.id, std::slice::from_ref(&event)).await {
                Ok(_) => return Ok(event),
                Err(StoreError::AlreadyExists(_)) if tries < ID_TRIES_MAX => tries += 1,
                Err(error) => return Err(error),
            }
        }
    }
}

#[async_trait]
impl Turns for TurnRuntime {
    async fn create_turn(&self, input: CreateTurn) -> Result<TurnId, CreateError> {
        let setting =
            AgentSetting { folder: input.folder, session_created_at: input.session_created_at };
        let resolved = self.parts.agents.resolve(&input.agent, &setting).await?;
        let resolved = self.snapshot(resolved, &input.context).await;
        let config = input.config;
        let created = Arc::new(TurnCreated {
            schema_version: TURN_SCHEMA_VERSION,
            session_id: input.session_id.clone(),
            agent: TurnAgent { requested: input.agent, resolved },
            context: input.context,
            input: input.input,
            config: TurnConfig {
                auto_permission: config.permission == PermissionMode::Auto,
                human_available: config.human == Human::Available,
                max_model_calls: config
                    .max_model_calls
                    .unwrap_or(self.parts.options.max_model_calls),
                reasoning_effort: config.reasoning_effort,
            },
            analytics: None,
        });
        let event = Arc::new(self.create_log(&created).await?);
        let (turn, session) = (event.id.clone(), input.session_id);
        let news = News::Recorded { offset: 1, event };
        self.parts.hub.publish(&LiveEvent { session, turn: turn.clone(), news });
        Ok(turn)
    }

    fn advance_turn(
        &self,
        turn: &TurnId,
        input: Option<ExternalInput>,
        options: AdvanceOptions,
    ) -> TurnExecution {
        let cell = self.cells.of(turn);
        let work = advance::advance(Arc::clone(&self.parts), cell, input, options);
        TurnExecution::start(&self.parts.tasks, &self.parts.hub, turn.clone(), work)
    }

    async fn get_turn(&self, turn: &TurnId) -> Result<Turn, ReadError> {
        let cell = self.cells.live(turn);
        if let Some(turn) = cell.as_ref().and_then(|cell| cell.turn()) {
            return Ok(turn);
        }
        let stored = self.parts.turns.read(turn).await?;
        let (events, state) = (stored.events.clone(), stored.state.clone());
        let interrupted = match (state.open_call_index(), cell) {
            (Some(index), None) => crash_buffer::left_of_answer(&self.parts, turn, index).await,
            (None, _) | (Some(_), Some(_)) => None,
        };
        Ok(Turn { events, state, interrupted })
    }
}

#[async_trait]
impl ReadTurn for TurnRepo {
    type Error = ReadError;

    async fn read_turn(&self, turn: &TurnId) -> Result<TurnState, ReadError> {
        Ok(self.read(turn).await?.state.clone())
    }
}
