//! A runtime that plays scripts: real logs, a real hub, and a person at every gate. For tests of what
//! stands above the runtime.

mod inputs;
mod script;
mod stage;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;

use crate::base::clock::Clock;
use crate::base::id::{IdSource, TurnId};
use crate::base::locks::KeyedLocks;
use crate::base::tasks::Tasks;
use crate::runtime::api::{AdvanceOptions, CreateTurn, ExternalInput, Turn, Turns};
use crate::runtime::error::{AdvanceError, CreateError, ReadError, ResolveError};
use crate::runtime::execution::TurnExecution;
use crate::runtime::hub::Hub;
use crate::store::error::{Ending, StoreError};
use crate::store::turn_repo::TurnRepo;
use crate::testing::gate::Gate;
use crate::testing::turns::inputs::cancelled;
use crate::testing::turns::script::Step;

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
    no_receipt: Option<AdvanceError>,
    unreadable: Option<TurnId>,
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

    /// The next input is recorded, and its advance ends like this before it says so.
    pub fn break_off_after_recording(&self, why: AdvanceError) {
        self.0.plan().no_receipt = Some(why);
    }

    /// From now on nobody can read this turn, who only reads.
    pub fn refuse_reads(&self, turn: &TurnId) {
        self.0.plan().unreadable = Some(turn.clone());
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
        let folder = options.folder.clone();
        let act = {
            let mut plan = self.0.plan();
            plan.advances.push(Advanced { turn: turn.clone(), input: input.clone(), folder });
            plan.on_advance.clone()
        };
        if let Some(act) = act {
            act(turn);
        }
        let (stage, advanced) = (Arc::clone(&self.0), turn.clone());
        let work = async move { stage.advance(&advanced, input, &options).await };
        TurnExecution::start(&self.0.tasks, &self.0.hub, turn.clone(), work)
    }

    async fn get_turn(&self, turn: &TurnId) -> Result<Turn, ReadError> {
        if self.0.plan().unreadable.as_ref() == Some(turn) {
            return Err(ReadError::Store(StoreError::Ending(Ending)));
        }
        let stored = self.0.repo.read(turn).await?;
        Ok(Turn { events: stored.events.clone(), state: stored.state.clone(), interrupted: None })
    }
}
