//! A runtime that plays scripts: real logs, a real hub, and a person at every gate. For tests of what
//! stands above the runtime.

mod inputs;
mod script;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use crate::base::clock::Clock;
use crate::base::id::{IdSource, TurnId};
use crate::base::locks::KeyedLocks;
use crate::base::tasks::{Ended, Tasks};
use crate::domain::agent::{AgentSnapshot, ResolvedAgent, TurnAgent};
use crate::domain::event::Event;
use crate::domain::turn::event::{
    TURN_SCHEMA_VERSION, TurnConfig, TurnCreated, TurnEvent, TurnFact,
};
use crate::domain::turn::live::{LiveEvent, News};
use crate::domain::turn::state::TurnState;
use crate::runtime::api::{
    AdvanceOptions, CreateTurn, ExternalInput, Human, PermissionMode, Turn, TurnExecution,
    TurnOutcome, Turns,
};
use crate::runtime::error::{AdvanceError, CreateError, InputRefused, ReadError, ResolveError};
use crate::runtime::hub::{Hub, Interest};
use crate::store::error::StoreError;
use crate::store::seam::Durability;
use crate::store::turn_repo::TurnRepo;
use crate::testing::fact::{model, tools};
use crate::testing::gate::Gate;
use crate::testing::turns::inputs::{accepted, added, cancelled};
use crate::testing::turns::script::{Step, outstanding};

pub use script::{Script, answering, asking, questioning};

/// How many model calls a turn may make, if nothing is said.
pub const MAX_MODEL_CALLS: u64 = 10;

/// The runtime. Clones are one.
#[derive(Clone)]
pub struct ScriptedTurns(Arc<Stage>);

struct Stage {
    repo: TurnRepo,
    hub: Hub,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
    tasks: Tasks,
    /// One advance of a turn at a time.
    executing: KeyedLocks<TurnId>,
    /// One batch of a turn at a time.
    committing: KeyedLocks<TurnId>,
    plan: Mutex<Plan>,
}

#[derive(Default)]
struct Plan {
    scripts: VecDeque<Script>,
    created: Vec<CreateTurn>,
    advances: Vec<Advanced>,
    on_advance: Option<Act>,
    after_create: Option<Gate>,
    no_creation: Option<ResolveError>,
    arrivals: Option<Gate>,
    after_claim: Option<Gate>,
    no_advance: Option<AdvanceError>,
}

/// What a test does when an advance is asked for.
type Act = Arc<dyn Fn(&TurnId) + Send + Sync>;

/// An advance that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advanced {
    /// Of this turn.
    pub turn: TurnId,
    /// With this input.
    pub input: Option<ExternalInput>,
    /// In this folder.
    pub folder: PathBuf,
}

impl ScriptedTurns {
    /// A runtime whose logs are in `repo`. Advances without a script answer `Done.`
    #[must_use]
    pub fn new(repo: TurnRepo, clock: Arc<dyn Clock>, ids: Arc<dyn IdSource>) -> Self {
        Self(Arc::new(Stage {
            repo,
            hub: Hub::new(),
            clock,
            ids,
            tasks: Tasks::new(),
            executing: KeyedLocks::default(),
            committing: KeyedLocks::default(),
            plan: Mutex::default(),
        }))
    }

    /// The script of the next advance that gets so far as to run.
    pub fn then(&self, script: Script) {
        self.0.plan().scripts.push_back(script);
    }

    /// Nothing is scripted any more.
    pub fn forget_scripts(&self) {
        self.0.plan().scripts.clear();
    }

    /// The turns that were to be created, in order.
    #[must_use]
    pub fn created(&self) -> Vec<CreateTurn> {
        self.0.plan().created.clone()
    }

    /// The advances that were asked for, in order.
    #[must_use]
    pub fn advances(&self) -> Vec<Advanced> {
        self.0.plan().advances.clone()
    }

    /// Does this at the moment in which an advance is asked for.
    pub fn on_advance(&self, act: impl Fn(&TurnId) + Send + Sync + 'static) {
        self.0.plan().on_advance = Some(Arc::new(act));
    }

    /// The next creation stops at the gate when its log is written.
    pub fn stop_after_create(&self, gate: &Gate) {
        self.0.plan().after_create = Some(gate.clone());
    }

    /// The next creation is refused, and writes nothing.
    pub fn refuse_create(&self, why: ResolveError) {
        self.0.plan().no_creation = Some(why);
    }

    /// The next advance stops at the gate before anything else.
    pub fn stop_arrival(&self, gate: &Gate) {
        self.0.plan().arrivals = Some(gate.clone());
    }

    /// The next messages that are taken in are claimed, and recorded once the gate is open.
    pub fn stop_after_claim(&self, gate: &Gate) {
        self.0.plan().after_claim = Some(gate.clone());
    }

    /// The next advance ends like this, and does nothing.
    pub fn refuse_advance(&self, why: AdvanceError) {
        self.0.plan().no_advance = Some(why);
    }

    /// Where everything is told.
    #[must_use]
    pub fn hub(&self) -> &Hub {
        &self.0.hub
    }

    /// Lets a turn be answered at once, by somebody else's hand.
    ///
    /// # Panics
    /// When the turn cannot be answered.
    pub async fn complete(&self, turn: &TurnId) {
        let answer = Step::Answer("Done.".to_owned());
        self.0.record(turn, |state| Ok(answer.facts(state))).await.expect("it can be answered");
    }

    /// Ends a turn at once, by somebody else's hand.
    ///
    /// # Panics
    /// When the turn cannot be ended.
    pub async fn end(&self, turn: &TurnId) {
        self.0.record(turn, |state| Ok(cancelled(state, None))).await.expect("the turn can end");
    }
}

#[async_trait]
impl Turns for ScriptedTurns {
    async fn create_turn(&self, input: CreateTurn) -> Result<TurnId, CreateError> {
        let (refused, gate) = {
            let mut plan = self.0.plan();
            plan.created.push(input.clone());
            (plan.no_creation.take(), plan.after_create.take())
        };
        if let Some(why) = refused {
            return Err(why.into());
        }
        let turn = self.0.create(input).await?;
        if let Some(gate) = gate {
            gate.pass().await;
        }
        Ok(turn)
    }

    fn advance_turn(
        &self,
        turn: &TurnId,
        input: Option<ExternalInput>,
        options: AdvanceOptions,
    ) -> TurnExecution {
        let events = self.0.hub.subscribe(Interest::Watched);
        drop(events.watch(turn));
        let (turn, folder) = (turn.clone(), options.folder.clone());
        let act = {
            let mut plan = self.0.plan();
            plan.advances.push(Advanced { turn: turn.clone(), input: input.clone(), folder });
            plan.on_advance.clone()
        };
        if let Some(act) = act {
            act(&turn);
        }
        let (stage, advanced) = (Arc::clone(&self.0), turn.clone());
        let work = async move { stage.advance(&advanced, input, &options).await };
        let running = self.0.tasks.spawn("scripted advance", work);
        let outcome = async move {
            match running.await {
                Ok(Ended::Done(outcome)) => outcome,
                Ok(Ended::Panicked(message)) => Err(AdvanceError::Panicked { turn, message }),
                Err(error) => Err(AdvanceError::Panicked { turn, message: error.to_string() }),
            }
        };
        TurnExecution { events, outcome: Box::pin(outcome) }
    }

    async fn get_turn(&self, turn: &TurnId) -> Result<Turn, ReadError> {
        let stored = self.0.repo.read(turn).await?;
        Ok(Turn { events: stored.events.clone(), state: stored.state.clone(), interrupted: None })
    }
}

impl Stage {
    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn create(&self, input: CreateTurn) -> Result<TurnId, StoreError> {
        let resolved = AgentSnapshot::Full(ResolvedAgent {
            agent_id: input.agent.agent_id(),
            system_prompt: "Be brief.".into(),
            model: input.agent.model().cloned().unwrap_or_else(model),
            tools: tools().into(),
        });
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
                max_model_calls: config.max_model_calls.unwrap_or(MAX_MODEL_CALLS),
                reasoning_effort: config.reasoning_effort,
            },
            analytics: None,
        });
        let event = loop {
            let id = TurnId::from(self.ids.next());
            let fact = TurnFact::Created(Arc::clone(&created));
            let event = Event { id, ts: self.clock.now(), fact };
            match self.repo.create(&event.id, std::slice::from_ref(&event)).await {
                Ok(_) => break Arc::new(event),
                Err(StoreError::AlreadyExists(_)) => {}
                Err(error) => return Err(error),
            }
        };
        let (turn, session) = (event.id.clone(), input.session_id);
        let news = News::Recorded { offset: 1, event };
        self.hub.publish(&LiveEvent { session, turn: turn.clone(), news });
        Ok(turn)
    }

    async fn advance(
        &self,
        turn: &TurnId,
        input: Option<ExternalInput>,
        options: &AdvanceOptions,
    ) -> Result<TurnOutcome, AdvanceError> {
        let (gate, refused) = {
            let mut plan = self.plan();
            (plan.arrivals.take(), plan.no_advance.take())
        };
        if let Some(gate) = gate {
            gate.pass().await;
        }
        if let Some(why) = refused {
            return Err(why);
        }
        let cancel = matches!(input, Some(ExternalInput::Cancel { .. }));
        // What comes while another advance runs is recorded at once, but for the end.
        let is_running = self.hub.is_running(turn);
        let early = input.as_ref().filter(|_| is_running && !cancel);
        if let Some(input) = early {
            self.record(turn, |state| accepted(state, input)).await?;
        }
        let input = if early.is_some() { None } else { input };
        let _executing = self.executing.lock(turn).await;
        let _told = Processing::start(self, turn).await?;
        self.settle(turn, input, options).await
    }

    async fn settle(
        &self,
        turn: &TurnId,
        input: Option<ExternalInput>,
        options: &AdvanceOptions,
    ) -> Result<TurnOutcome, AdvanceError> {
        let state = self.repo.read(turn).await.map_err(ReadError::from)?.state.clone();
        if let Some(outcome) = TurnOutcome::recorded(&state) {
            let (turn, status) = (turn.clone(), state.status());
            return match input {
                None => Ok(outcome),
                Some(_) => Err(InputRefused::Ended { turn, status }.into()),
            };
        }
        match input {
            Some(ExternalInput::Cancel { reason }) => return self.cancel(turn, reason).await,
            _ if options.stop.token().is_cancelled() => {
                return self.cancel(turn, options.stop.reason()).await;
            }
            Some(input) => self.record(turn, |state| accepted(state, &input)).await?,
            None => {}
        }
        let script = self.plan().scripts.pop_front().unwrap_or_else(|| answering("Done."));
        for step in script.0 {
            match &step {
                Step::Gate(gate) => tokio::select! {
                    biased;
                    // Neither wait loses anything.
                    () = options.stop.token().cancelled() => {}
                    () = gate.pass() => {}
                },
                Step::Hold(gate) => gate.pass().await,
                Step::TakeInputs => self.take_inputs(turn, options).await?,
                Step::Break => return Err(AdvanceError::NotEnded(turn.clone())),
                _ => self.record(turn, |state| Ok(step.facts(state))).await?,
            }
            if options.stop.token().is_cancelled() {
                return self.cancel(turn, options.stop.reason()).await;
            }
        }
        self.rest(turn).await
    }

    async fn take_inputs(
        &self,
        turn: &TurnId,
        options: &AdvanceOptions,
    ) -> Result<(), AdvanceError> {
        let Some(source) = &options.take_inputs else { return Ok(()) };
        let claimed = source.claim(turn).await;
        let messages: Vec<_> = claimed.iter().map(|it| Arc::clone(&it.message)).collect();
        let gate = self.plan().after_claim.take();
        if let Some(gate) = gate {
            gate.pass().await;
        }
        let recorded = self.record(turn, |state| Ok(added(state, messages))).await;
        match &recorded {
            Ok(()) => source.confirm(turn, &claimed).await,
            Err(_) => source.give_back(turn, &claimed).await,
        }
        recorded
    }

    async fn rest(&self, turn: &TurnId) -> Result<TurnOutcome, AdvanceError> {
        let state = self.repo.read(turn).await.map_err(ReadError::from)?.state.clone();
        let waiting =
            state.is_waiting().then(|| TurnOutcome::Suspended(outstanding(&state).into()));
        let outcome = TurnOutcome::recorded(&state).or(waiting);
        outcome.ok_or_else(|| AdvanceError::NotEnded(turn.clone()))
    }

    async fn cancel(
        &self,
        turn: &TurnId,
        reason: Option<String>,
    ) -> Result<TurnOutcome, AdvanceError> {
        self.record(turn, |state| Ok(cancelled(state, reason))).await?;
        self.rest(turn).await
    }

    /// Records what `make` makes of the state, and tells it.
    async fn record(
        &self,
        turn: &TurnId,
        make: impl FnOnce(&TurnState) -> Result<Vec<TurnFact>, InputRefused>,
    ) -> Result<(), AdvanceError> {
        let _committing = self.committing.lock(turn).await;
        let (mut log, stored) = self.repo.open(turn).await.map_err(ReadError::from)?;
        let mut state = stored.state.clone();
        let facts = make(&state)?.into_iter();
        let events = facts.map(|fact| Event { id: turn.clone(), ts: self.clock.now(), fact });
        let events: Vec<TurnEvent> = events.collect();
        for event in &events {
            let applied = state.apply(event);
            applied.map_err(|refusal| AdvanceError::Illegal { turn: turn.clone(), refusal })?;
        }
        let first = log.append(&events, Durability::Written).await?;
        drop(log);
        for (offset, event) in (first..).zip(events) {
            let (session, turn) = (state.definition.session_id.clone(), turn.clone());
            let news = News::Recorded { offset, event: Arc::new(event) };
            self.hub.publish(&LiveEvent { session, turn, news });
        }
        Ok(())
    }
}

/// Tells that a turn is being advanced, for as long as it lives.
struct Processing {
    hub: Hub,
    event: LiveEvent,
}

impl Processing {
    async fn start(stage: &Stage, turn: &TurnId) -> Result<Self, AdvanceError> {
        let stored = stage.repo.read(turn).await.map_err(ReadError::from)?;
        let session = stored.state.definition.session_id.clone();
        let event = LiveEvent { session, turn: turn.clone(), news: News::Started };
        stage.hub.publish(&event);
        Ok(Self { hub: stage.hub.clone(), event })
    }
}

impl Drop for Processing {
    fn drop(&mut self) {
        self.event.news = News::Rested;
        self.hub.publish(&self.event);
    }
}
