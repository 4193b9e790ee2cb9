//! The conversation before a turn, and the agent that a turn inherits: both found by walking from
//! turn to turn, and kept, so that the next turn of a long session reads one log and not all
//! (`design/turn-runtime.md` section 4).

use std::collections::HashSet;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use lru::LruCache;

use crate::base::id::TurnId;
use crate::domain::agent::{AgentSnapshot, ModelDescriptor, ToolDescriptor};
use crate::domain::message::Message;
use crate::domain::turn::event::{TurnContext, TurnCreated};
use crate::domain::turn::state::TurnState;
use crate::domain::turn::status::TurnStatus;

/// How many conversations are kept: more than are chatted in at once.
const KEPT_TURNS_MAX: usize = 64;
/// How much they may hold in all, as bytes of JSON: some dozens that each fill a model's window.
const KEPT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// What a turn added to the conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The turn.
    pub turn: TurnId,
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
    kept: Mutex<Kept>,
    bytes_max: usize,
}

/// The conversations that were used last, each up to the turn that it is kept by.
struct Kept {
    turns: LruCache<TurnId, Closed>,
    bytes: usize,
}

/// A turn that has ended, as the one after it sees it.
#[derive(Clone)]
struct Closed {
    /// The conversation up to its end.
    segments: Prefix,
    /// The size of their messages.
    bytes: usize,
    agent: Option<AgentBase>,
}

impl Closed {
    fn nothing() -> Self {
        Self { segments: Arc::from([]), bytes: 0, agent: None }
    }
}

/// A turn that the walk has passed, on its way back.
struct Passed {
    segment: Segment,
    own_agent: Option<AgentBase>,
}

impl Default for ContextResolver {
    fn default() -> Self {
        Self::of_size(KEPT_BYTES_MAX)
    }
}

impl ContextResolver {
    /// A resolver that keeps so much.
    fn of_size(bytes_max: usize) -> Self {
        let kept = Kept { turns: LruCache::unbounded(), bytes: 0 };
        Self { kept: Mutex::new(kept), bytes_max }
    }

    /// What the turn that began with `created` runs in.
    ///
    /// # Errors
    /// [`ContextError`] names the turn that cannot be read, has not ended, or leads in a circle.
    pub async fn resolve<R: ReadTurn>(
        &self,
        turn: &TurnId,
        created: &TurnCreated,
        turns: &R,
    ) -> Result<Surroundings, ContextError<R::Error>> {
        let before = match &created.context {
            TurnContext::Inline(_) => Closed::nothing(),
            TurnContext::Previous(context) => self.closed(&context.previous_turn_id, turns).await?,
        };
        let agent = own_agent(created).or(before.agent);
        let agent = agent.ok_or_else(|| ContextError::NoAgent(turn.clone()))?;
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
        let (mut closed, mut base) = (Closed::nothing(), None);
        while let Some(id) = next.take() {
            if let Some(kept) = self.kept(&id) {
                (closed, base) = (kept, Some(id));
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
            passed.push(Passed { segment, own_agent: own_agent(&state.definition) });
        }
        if passed.is_empty() {
            return Ok(closed);
        }
        let mut segments = closed.segments.to_vec();
        for turn in passed.into_iter().rev() {
            closed.bytes += bytes_of(&turn.segment.messages);
            segments.push(Arc::new(turn.segment));
            closed.agent = turn.own_agent.or(closed.agent);
        }
        closed.segments = segments.into();
        self.keep(last, &closed, base.as_ref());
        Ok(closed)
    }

    fn kept(&self, turn: &TurnId) -> Option<Closed> {
        self.lock().turns.get(turn).cloned()
    }

    /// Keeps a conversation in the place of the shorter one that it goes on with. The last one stays
    /// whatever its size: the turn that asked for it holds it anyway.
    fn keep(&self, turn: &TurnId, closed: &Closed, base: Option<&TurnId>) {
        let mut kept = self.lock();
        if let Some(base) = base {
            kept.remove(base);
        }
        kept.remove(turn);
        kept.bytes += closed.bytes;
        kept.turns.put(turn.clone(), closed.clone());
        while kept.turns.len() > KEPT_TURNS_MAX
            || (kept.turns.len() > 1 && kept.bytes > self.bytes_max)
        {
            let Some((_, gone)) = kept.turns.pop_lru() else { return };
            kept.bytes -= gone.bytes;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn remove(&mut self, turn: &TurnId) {
        self.bytes -= self.turns.pop(turn).map_or(0, |gone| gone.bytes);
    }
}

/// The size of messages as JSON.
fn bytes_of(messages: &[Message]) -> usize {
    struct Counted(usize);
    impl io::Write for Counted {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut counted = Counted(0);
    // Counting takes everything, and messages came from JSON.
    serde_json::to_writer(&mut counted, messages).ok();
    counted.0
}

fn own_agent(created: &TurnCreated) -> Option<AgentBase> {
    match &created.agent.resolved {
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
        turn: turn.id.clone(),
        messages,
        model: turn.definition.agent.resolved.model().clone(),
        completed: status == TurnStatus::Completed,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::FutureExt as _;

    use super::*;
    use crate::domain::agent::{InheritedAgent, TurnAgent};
    use crate::domain::event::Event;
    use crate::domain::turn::apply::reduce_turn;
    use crate::domain::turn::event::{ContextRef, TurnFact};
    use crate::testing::fact::{answer, complete, created_after, request_in, turn};
    use crate::testing::log::Log;

    /// Turns by their ids, and how often one was read.
    #[derive(Default)]
    struct Turns {
        states: HashMap<TurnId, TurnState>,
        reads: AtomicUsize,
    }

    #[async_trait]
    impl ReadTurn for Turns {
        type Error = ();

        async fn read_turn(&self, turn: &TurnId) -> Result<TurnState, ()> {
            self.reads.fetch_add(1, Ordering::Relaxed);
            self.states.get(turn).cloned().ok_or(())
        }
    }

    fn id(number: usize) -> TurnId {
        TurnId::from(format!("turn-{number}"))
    }

    fn follows(number: usize) -> TurnContext {
        TurnContext::Previous(ContextRef { previous_turn_id: id(number) })
    }

    impl Turns {
        /// Adds a turn that has ended.
        fn add(&mut self, number: usize, context: &TurnContext) {
            self.add_created(number, context, created_after(context.clone()));
        }

        fn add_created(&mut self, number: usize, context: &TurnContext, created: TurnFact) {
            let log = Log::turn(created)
                .then(request_in(context, 0, "input"))
                .then(answer(0, &number.to_string()))
                .then(complete());
            let events = log.into_events().into_iter().map(|it| Event { id: id(number), ..it });
            let state = reduce_turn(&events.collect::<Vec<_>>()).expect("legal");
            self.states.insert(id(number), state);
        }

        fn resolve(
            &self,
            resolver: &ContextResolver,
            context: &TurnContext,
        ) -> Result<Surroundings, String> {
            let created = TurnCreated { context: context.clone(), ..turn() };
            let next = TurnId::from("next");
            let found = resolver.resolve(&next, &created, self).now_or_never();
            found.expect("nothing waits").map_err(|error| error.to_string())
        }

        fn reads(&self) -> usize {
            self.reads.swap(0, Ordering::Relaxed)
        }
    }

    fn first() -> TurnContext {
        TurnContext::Inline(Vec::new())
    }

    #[test]
    fn a_chain_of_ten_thousand_turns_is_walked_once_and_then_one_turn_at_a_time() {
        const COUNT: usize = 10_000;
        let (mut turns, resolver) = (Turns::default(), ContextResolver::default());
        turns.add(0, &first());
        for number in 1..COUNT {
            turns.add(number, &follows(number - 1));
        }
        let last = turns.resolve(&resolver, &follows(COUNT - 1)).expect("it is whole");
        assert_eq!((turns.reads(), last.prefix.len()), (COUNT, COUNT));
        let order = last.prefix.iter().map(|segment| segment.turn.clone());
        assert!(order.eq((0..COUNT).map(id)), "oldest first");

        turns.add(COUNT, &follows(COUNT - 1));
        let next = turns.resolve(&resolver, &follows(COUNT)).expect("it is whole");
        assert_eq!((turns.reads(), next.prefix.len()), (1, COUNT + 1));
        let shared = last.prefix.iter().zip(next.prefix.iter()).all(|(a, b)| Arc::ptr_eq(a, b));
        assert!(shared, "what is kept is shared");
        turns.resolve(&resolver, &follows(COUNT)).expect("it is whole");
        assert_eq!(turns.reads(), 0);
    }

    #[test]
    fn what_is_kept_is_bounded_by_its_bytes_and_the_last_conversation_stays() {
        let mut turns = Turns::default();
        for start in [0, 10, 20] {
            turns.add(start, &first());
            turns.add(start + 1, &follows(start));
        }
        let reads = |resolver: &ContextResolver, numbers: &[usize]| {
            let read = |number: &usize| {
                turns.resolve(resolver, &follows(*number)).expect("it is whole");
                turns.reads()
            };
            numbers.iter().map(read).collect::<Vec<_>>()
        };
        let one = turns.states[&id(1)].transcript().expect("it has ended");
        let (one, spare) = (2 * bytes_of(&one), 10);
        let room_for = |count: usize| ContextResolver::of_size(count * one + spare);
        assert_eq!(reads(&room_for(3), &[1, 11, 21, 1, 11, 21]), [2, 2, 2, 0, 0, 0]);
        assert_eq!(reads(&room_for(2), &[1, 11, 1, 21, 1, 11]), [2, 2, 0, 2, 0, 2]);
        assert_eq!(reads(&room_for(0), &[1, 1, 11, 1]), [2, 0, 2, 2]);
        // A conversation takes the place of its own beginning.
        assert_eq!(reads(&room_for(1), &[0, 1, 1]), [1, 1, 0]);
    }

    #[test]
    fn a_chain_that_leads_nowhere_is_an_error_that_names_the_turn() {
        let check = |turns: &Turns, why: &str| {
            let found = turns.resolve(&ContextResolver::default(), &follows(1));
            assert_eq!(found, Err(why.to_owned()));
        };
        let mut turns = Turns::default();
        turns.add(1, &follows(0));
        check(&turns, "turn turn-0, which the conversation goes back to, cannot be read");
        turns.add(0, &follows(1));
        check(&turns, "turn turn-1 is before itself");
        turns.add(0, &first());
        turns.states.get_mut(&id(0)).expect("there").terminal = None;
        check(&turns, "turn turn-0, which the conversation goes back to, has not ended");
    }

    #[test]
    fn an_agent_is_found_over_all_turns_that_inherit_it() {
        let mut turns = Turns::default();
        turns.add(0, &first());
        for number in 1..4 {
            let inherited = AgentSnapshot::Inherited(InheritedAgent {
                agent_id: "assistant".to_owned(),
                model: turn().agent.resolved.model().clone(),
                inherited_from: id(number - 1),
            });
            let agent = TurnAgent { resolved: inherited, ..turn().agent };
            let context = follows(number - 1);
            let created = TurnCreated { agent, context: context.clone(), ..turn() };
            turns.add_created(number, &context, TurnFact::Created(Arc::new(created)));
        }
        let resolver = ContextResolver::default();
        let inheritable = resolver.inheritable(&id(3), &turns).now_or_never();
        let inheritable = inheritable.expect("nothing waits").expect("there is one");
        assert_eq!(Some(inheritable), own_agent(&turn()));
    }
}
