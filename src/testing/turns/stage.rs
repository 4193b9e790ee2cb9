//! How a scripted turn is created, advanced and recorded.

use std::sync::{Arc, MutexGuard, PoisonError};

use crate::base::id::TurnId;
use crate::domain::agent::{AgentSnapshot, ResolvedAgent, TurnAgent};
use crate::domain::event::Event;
use crate::domain::turn::event::{
    TURN_SCHEMA_VERSION, TurnConfig, TurnCreated, TurnEvent, TurnFact,
};
use crate::domain::turn::live::{LiveEvent, News};
use crate::domain::turn::state::TurnState;
use crate::runtime::api::{
    AdvanceOptions, CreateTurn, ExternalInput, Human, PermissionMode, Receipt, TurnOutcome,
};
use crate::runtime::error::{AdvanceError, InputRefused, ReadError};
use crate::runtime::hub::Hub;
use crate::store::error::StoreError;
use crate::store::seam::Durability;
use crate::testing::fact::{model, tools};
use crate::testing::turns::inputs::{accepted, added, cancelled};
use crate::testing::turns::script::{Step, answering, outstanding};
use crate::testing::turns::{MAX_MODEL_CALLS, Plan, Stage};

impl Stage {
    pub(super) fn plan(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) async fn create(&self, input: CreateTurn) -> Result<TurnId, StoreError> {
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

    pub(super) async fn advance(
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
            self.record_input(turn, input, &options.receipt).await?;
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
            Some(input) => {
                self.record_input(turn, &input, &options.receipt).await?;
            }
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

    /// Records an input, and says so.
    async fn record_input(
        &self,
        turn: &TurnId,
        input: &ExternalInput,
        receipt: &Receipt,
    ) -> Result<(), AdvanceError> {
        let facts = |state: &TurnState| {
            let facts = accepted(state, input)?;
            receipt.expect(facts.first());
            Ok(facts)
        };
        self.record(turn, facts).await?;
        if let Some(why) = self.plan().no_receipt.take() {
            return Err(why);
        }
        receipt.give();
        Ok(())
    }

    /// Records what `make` makes of the state, and tells it.
    pub(super) async fn record(
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
