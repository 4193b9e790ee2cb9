//! The conversation before a turn, and the agent that a turn inherits: both found by walking from
//! turn to turn, and kept, so that the next turn of a long session reads one log and not all
//! (`design/turn-runtime.md` section 4).

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use lru::LruCache;

use crate::base::id::TurnId;
use crate::domain::agent::{AgentSnapshot, ModelDescriptor, ToolDescriptor};
use crate::domain::message::Message;
use crate::domain::turn::event::TurnContext;
use crate::domain::turn::state::TurnState;
use crate::domain::turn::status::TurnStatus;

/// How many turns' closed conversations are kept. Those of one session share their segments, so
/// this bounds the sessions that are chatted in at once rather than memory.
const KEPT_TURNS_MAX: NonZeroUsize = NonZeroUsize::new(64).expect("64 is not zero");

/// What a turn added to the conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its inline context, if it had one, and its transcript.
    pub messages: Vec<Message>,
    /// The model that it ran on.
    pub model: ModelDescriptor,
    /// Whether it completed; only then may what its provider wanted back be sent again.
    pub completed: bool,
}

/// The conversation before a turn, oldest first.
pub type Prefix = Arc<[Arc<Segment>]>;

/// What an agent is apart from its model: what a turn can inherit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentBase {
    /// The system prompt.
    pub system_prompt: Arc<str>,
    /// The tools.
    pub tools: Arc<[ToolDescriptor]>,
}

/// What a turn runs in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Surroundings {
    /// The conversation before it.
    pub prefix: Prefix,
    /// Its agent.
    pub agent: AgentBase,
}

/// Why the conversation before a turn cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum ContextError<E> {
    /// A turn before it cannot be read.
    #[error("turn {turn}, which the conversation goes back to, cannot be read")]
    Unreadable {
        /// The turn.
        turn: TurnId,
        /// Why not.
        #[source]
        source: E,
    },
    /// A turn before it has not ended.
    #[error("turn {0}, which the conversation goes back to, has not ended")]
    NotEnded(TurnId),
    /// The turns refer to each other in a circle.
    #[error("turn {0} is before itself")]
    Circle(TurnId),
    /// No turn before it has a written-out agent.
    #[error("turn {0} inherits its agent, and no turn before it has one")]
    NoAgent(TurnId),
}

/// Reads the turns that a conversation goes back to.
#[async_trait]
pub trait ReadTurn: Send + Sync {
    /// Why a turn cannot be read.
    type Error: Send;

    /// The reduced turn.
    async fn read_turn(&self, turn: &TurnId) -> Result<TurnState, Self::Error>;
}

/// The resolver, with what it keeps.
pub struct ContextResolver {
    kept: Mutex<LruCache<TurnId, Closed>>,
}

/// A turn that has ended, as the one after it sees it.
#[derive(Clone)]
struct Closed {
    /// The conversation up to its end.
    segments: Prefix,
    agent: Option<AgentBase>,
}

/// A turn that the walk has passed, on its way back.
struct Passed {
    id: TurnId,
    segment: Segment,
    own_agent: Option<AgentBase>,
}

impl Default for ContextResolver {
    fn default() -> Self {
        Self { kept: Mutex::new(LruCache::new(KEPT_TURNS_MAX)) }
    }
}

impl ContextResolver {
    /// What `turn` runs in.
    ///
    /// # Errors
    /// [`ContextError`] names the turn that cannot be read, has not ended, or leads in a circle.
    pub async fn resolve<R: ReadTurn>(
        &self,
        turn: &TurnState,
        turns: &R,
    ) -> Result<Surroundings, ContextError<R::Error>> {
        let before = match &turn.definition.context {
            TurnContext::Inline(_) => Closed { segments: Arc::from([]), agent: None },
            TurnContext::Previous(context) => self.closed(&context.previous_turn_id, turns).await?,
        };
        let agent = own_agent(turn).or(before.agent);
        let agent = agent.ok_or_else(|| ContextError::NoAgent(turn.id.clone()))?;
        Ok(Surroundings { prefix: before.segments, agent })
    }

    /// The agent that a turn after `previous` would inherit.
    ///
    /// # Errors
    /// As [`ContextResolver::resolve`].
    pub async fn inheritable<R: ReadTurn>(
        &self,
        previous: &TurnId,
        turns: &R,
    ) -> Result<AgentBase, ContextError<R::Error>> {
        let closed = self.closed(previous, turns).await?;
        closed.agent.ok_or_else(|| ContextError::NoAgent(previous.clone()))
    }

    async fn closed<R: ReadTurn>(
        &self,
        last: &TurnId,
        turns: &R,
    ) -> Result<Closed, ContextError<R::Error>> {
        let (mut passed, mut seen) = (Vec::new(), HashSet::new());
        let mut next = Some(last.clone());
        let mut closed = Closed { segments: Arc::from([]), agent: None };
        while let Some(id) = next.take() {
            if let Some(kept) = self.kept(&id) {
                closed = kept;
                break;
            }
            if !seen.insert(id.clone()) {
                return Err(ContextError::Circle(id));
            }
            let state = turns.read_turn(&id).await;
            let state =
                state.map_err(|source| ContextError::Unreadable { turn: id.clone(), source })?;
            next = match &state.definition.context {
                TurnContext::Previous(context) => Some(context.previous_turn_id.clone()),
                TurnContext::Inline(_) => None,
            };
            let segment = segment_of(&state).ok_or_else(|| ContextError::NotEnded(id.clone()))?;
            passed.push(Passed { id, segment, own_agent: own_agent(&state) });
        }
        let mut segments = closed.segments.to_vec();
        for turn in passed.into_iter().rev() {
            segments.push(Arc::new(turn.segment));
            closed.agent = turn.own_agent.or(closed.agent);
            if turn.id == *last {
                closed.segments = segments.into();
                self.keep(last, &closed);
                break;
            }
        }
        Ok(closed)
    }

    fn kept(&self, turn: &TurnId) -> Option<Closed> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).get(turn).cloned()
    }

    fn keep(&self, turn: &TurnId, closed: &Closed) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.put(turn.clone(), closed.clone());
    }
}

fn own_agent(turn: &TurnState) -> Option<AgentBase> {
    match &turn.definition.agent.resolved {
        AgentSnapshot::Full(agent) => Some(AgentBase {
            system_prompt: Arc::clone(&agent.system_prompt),
            tools: Arc::clone(&agent.tools),
        }),
        AgentSnapshot::Inherited(_) => None,
    }
}

fn segment_of(turn: &TurnState) -> Option<Segment> {
    let status = turn.status();
    if !status.is_terminal() {
        return None;
    }
    let mut messages = match &turn.definition.context {
        TurnContext::Inline(messages) => messages.clone(),
        TurnContext::Previous(_) => Vec::new(),
    };
    messages.extend(turn.transcript()?);
    Some(Segment {
        messages,
        model: turn.definition.agent.resolved.model().clone(),
        completed: status == TurnStatus::Completed,
    })
}
