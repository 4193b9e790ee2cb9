//! A turn runtime over scripted parts. Whatever a test does in it, when it ends the world checks what
//! must hold in every test: each model got byte for byte what its turn's log composes to, what was
//! told is what was recorded, and no tool ran twice for one call.

mod check;

use std::path::PathBuf;
use std::sync::Arc;

use crate::base::clock::Clock as _;
use crate::base::id::{Ids, SessionId, ToolCallId, TurnId};
use crate::base::tasks::Tasks;
use crate::domain::agent::{ModelDescriptor, RequestedAgent};
use crate::domain::json::Json;
use crate::domain::message::UserMessage;
use crate::domain::turn::event::{
    ContextRef, Decision, ToolResultData, TurnContext, TurnEvent, TurnFact,
};
use crate::domain::turn::live::LiveEvent;
use crate::domain::turn::state::TurnState;
use crate::policy::classifier::Classifier;
use crate::runtime::api::{
    AdvanceOptions, CreateConfig, CreateTurn, ExternalInput, Human, PermissionMode, StopSignal,
    TurnOutcome, Turns as _,
};
use crate::runtime::context::ContextResolver;
use crate::runtime::error::AdvanceError;
use crate::runtime::execution::{Rejected, TurnExecution};
use crate::runtime::hub::{Hub, Interest, Received, Subscription};
use crate::runtime::{Options, Parts, TurnRuntime};
use crate::store::cache::CacheBounds;
use crate::store::live_text;
use crate::store::memory;
use crate::store::seam::LogStore;
use crate::store::turn_repo::{TurnKind, TurnRepo};
use crate::testing::agents::{AGENT, ScriptedAgents, ScriptedModels};
use crate::testing::checker::{ScriptedChecker, ScriptedClassifier};
use crate::testing::clock::HandClock;
use crate::testing::fact::{json, model};
use crate::testing::lines::line;
use crate::testing::log::SESSION;
use crate::testing::model::{Reply, ScriptedModel};
use crate::testing::store::Kept;
use crate::testing::tools::FakeTool;
use crate::tools::output::OUTPUT_BYTES;
use crate::tools::registry::Registry;
use crate::tools::tool::Tool;

/// The process whose ids the turns of a world have.
const PROCESS: u32 = 42;

/// What is different from one world to the next.
#[derive(Default)]
pub struct Setting {
    /// Tools that the world watches over.
    pub tools: Vec<Arc<FakeTool>>,
    /// Tools that the test brings along.
    pub more_tools: Vec<Arc<dyn Tool>>,
    /// The classifier, if there is one.
    pub classifier: Option<Arc<ScriptedClassifier>>,
    /// The crash buffers; none at first.
    pub live_text: live_text::Map,
}

/// A runtime, and all that it works with.
pub struct World {
    /// The runtime.
    pub runtime: TurnRuntime,
    /// The logs.
    pub turns: TurnRepo,
    /// The crash buffers.
    pub live_text: live_text::Map,
    /// The time.
    pub clock: Arc<HandClock>,
    /// The agent.
    pub agents: Arc<ScriptedAgents>,
    /// All models.
    pub models: Arc<ScriptedModels>,
    /// The agent's model.
    pub model: Arc<ScriptedModel>,
    /// Another model of the same provider; see [`other_model`].
    pub other: Arc<ScriptedModel>,
    /// The rules.
    pub checker: Arc<ScriptedChecker>,
    /// What owns everything that runs.
    pub tasks: Tasks,
    tools: Vec<Arc<FakeTool>>,
    told: Subscription,
}

/// The model that is not the agent's.
#[must_use]
pub fn other_model() -> ModelDescriptor {
    ModelDescriptor { model: "tiny-2".to_owned(), ..model() }
}

impl World {
    /// A world that keeps nothing.
    #[must_use]
    pub fn new(setting: Setting) -> Self {
        let clock = HandClock::new();
        let store = memory::Store::new(Arc::<HandClock>::clone(&clock));
        Self::at(clock, Arc::new(store), setting)
    }

    /// A world without tools.
    #[must_use]
    pub fn bare() -> Self {
        Self::new(Setting::default())
    }

    /// A world with these tools, which all may run.
    #[must_use]
    pub fn with_tools(tools: impl IntoIterator<Item = FakeTool>) -> Self {
        let tools = tools.into_iter().map(Arc::new).collect();
        Self::new(Setting { tools, ..Setting::default() })
    }

    /// A world whose logs are in `store`, as a process that starts now sees them.
    #[must_use]
    pub fn over(store: Arc<dyn LogStore>, setting: Setting) -> Self {
        Self::at(HandClock::new(), store, setting)
    }

    fn at(clock: Arc<HandClock>, store: Arc<dyn LogStore>, setting: Setting) -> Self {
        let Setting { tools, more_tools, classifier, live_text } = setting;
        let fakes = tools.iter().map(|tool| Arc::<FakeTool>::clone(tool) as Arc<dyn Tool>);
        let registry = Registry::new(fakes.chain(more_tools).collect());
        let registry = registry.expect("the tools of a test have names of their own");
        let agents = ScriptedAgents::new(registry.descriptors());
        let models = Arc::<ScriptedModels>::default();
        let (model, other) = (models.add(model()), models.add(other_model()));
        let (tasks, hub) = (Tasks::new(), Hub::new());
        let turns = TurnRepo::new(store, tasks.clone(), CacheBounds::default());
        let checker = Arc::<ScriptedChecker>::default();
        let told = hub.subscribe(Interest::Everything);
        let runtime = TurnRuntime::new(Parts {
            turns: turns.clone(),
            live_text: Arc::new(live_text.clone()),
            clock: Arc::<HandClock>::clone(&clock),
            ids: Arc::new(Ids::new(Arc::<HandClock>::clone(&clock), PROCESS)),
            agents: Arc::<ScriptedAgents>::clone(&agents),
            models: Arc::<ScriptedModels>::clone(&models),
            tools: registry,
            checker: Arc::<ScriptedChecker>::clone(&checker),
            classifier: classifier.map(|classifier| classifier as Arc<dyn Classifier>),
            hub,
            tasks: tasks.clone(),
            context: ContextResolver::default(),
            options: Options {
                max_model_calls: 10,
                output_dir: folder().join("output"),
                output_bytes_max: OUTPUT_BYTES,
            },
        });
        Self {
            runtime,
            turns,
            live_text,
            clock,
            agents,
            models,
            model,
            other,
            checker,
            tasks,
            tools,
            told,
        }
    }

    /// The agent's model says this in a call to come.
    pub fn will_say(&self, text: &str) {
        self.model.then(Reply::new().text(text).finish("stop"));
    }

    /// The agent's model calls these tools in a call to come, each with `{}`.
    pub fn will_call(&self, names: &str) {
        let call = |reply: Reply, name| reply.call(name, json("{}"));
        let reply = names.split_whitespace().fold(Reply::new(), call);
        self.model.then(reply.finish("tool-calls"));
    }

    /// A turn to be created: the agent answers `text`, and a person is there to ask.
    #[must_use]
    pub fn turn(&self, text: &str) -> CreateTurn {
        CreateTurn {
            session_id: Some(SessionId::from(SESSION)),
            agent: RequestedAgent::by_id(AGENT),
            context: TurnContext::Inline(Vec::new()),
            input: Arc::new(UserMessage::text(text)),
            config: CreateConfig {
                permission: PermissionMode::Manual,
                human: Human::Available,
                max_model_calls: None,
                reasoning_effort: None,
            },
            folder: folder(),
            session_created_at: self.clock.now(),
        }
    }

    /// Creates a turn.
    ///
    /// # Panics
    /// When it is not created.
    pub async fn create(&self, turn: CreateTurn) -> TurnId {
        self.runtime.create_turn(turn).await.expect("the turn is created")
    }

    /// Creates a turn about `text`.
    pub async fn ask(&self, text: &str) -> TurnId {
        self.create(self.turn(text)).await
    }

    /// Creates a turn about `text` that follows `previous`.
    pub async fn ask_after(&self, previous: &TurnId, text: &str) -> TurnId {
        let context = after(previous);
        self.create(CreateTurn { context, ..self.turn(text) }).await
    }

    /// Writes a turn's log as if it had been written before this world began.
    ///
    /// # Panics
    /// When the events are no log.
    pub async fn write(&self, events: &[TurnEvent]) -> TurnId {
        let turn = events.first().expect("a log begins with an event").id.clone();
        self.turns.create(&turn, events).await.expect("the events are a log");
        turn
    }

    /// Starts an advance without an input.
    #[must_use]
    pub fn start(&self, turn: &TurnId) -> TurnExecution {
        self.start_with(turn, None, options())
    }

    /// Starts an advance.
    #[must_use]
    pub fn start_with(
        &self,
        turn: &TurnId,
        input: Option<ExternalInput>,
        options: AdvanceOptions,
    ) -> TurnExecution {
        self.runtime.advance_turn(turn, input, options)
    }

    /// Advances a turn until it rests.
    ///
    /// # Errors
    /// What kept it from that.
    pub async fn advance(&self, turn: &TurnId) -> Result<TurnOutcome, AdvanceError> {
        self.start(turn).outcome.await
    }

    /// Gives an input to a turn, and advances it until it rests.
    ///
    /// # Errors
    /// What kept it from that.
    pub async fn give(
        &self,
        turn: &TurnId,
        input: ExternalInput,
    ) -> Result<TurnOutcome, AdvanceError> {
        self.start_with(turn, Some(input), options()).outcome.await
    }

    /// Advances a turn that has to come to rest; gives its log from then.
    ///
    /// # Panics
    /// When it does not.
    pub async fn run(&self, turn: &TurnId) -> Vec<String> {
        self.advance(turn).await.expect("the turn comes to rest");
        self.log(turn)
    }

    /// The turn's log as it is stored now, line by line.
    ///
    /// # Panics
    /// When it cannot be read.
    #[must_use]
    pub fn log(&self, turn: &TurnId) -> Vec<String> {
        self.stored(turn).events.iter().map(|event| line(event)).collect()
    }

    /// The facts of the log as it is stored now.
    ///
    /// # Panics
    /// When it cannot be read.
    #[must_use]
    pub fn facts(&self, turn: &TurnId) -> Vec<TurnFact> {
        self.stored(turn).events.iter().map(|event| event.fact.clone()).collect()
    }

    /// What the log that is stored now amounts to.
    ///
    /// # Panics
    /// When it cannot be read.
    #[must_use]
    pub fn state(&self, turn: &TurnId) -> TurnState {
        self.stored(turn).state
    }

    fn stored(&self, turn: &TurnId) -> Kept<TurnKind> {
        Kept::read(&self.turns, turn).expect("the log can be read")
    }

    /// The fake tool with this id.
    ///
    /// # Panics
    /// When there is none.
    #[must_use]
    pub fn tool(&self, id: &str) -> &FakeTool {
        let tool = self.tools.iter().find(|tool| tool.descriptor().tool_id == id);
        tool.expect("the test has such a tool")
    }
}

/// The folder in which tools run. Nothing is written to it.
#[must_use]
pub fn folder() -> PathBuf {
    std::env::temp_dir()
}

/// An advance in [`folder`] that nobody stops.
#[must_use]
pub fn options() -> AdvanceOptions {
    AdvanceOptions { folder: folder(), ..AdvanceOptions::default() }
}

/// An advance that `stop` ends.
#[must_use]
pub fn stopped_by(stop: &StopSignal) -> AdvanceOptions {
    AdvanceOptions { stop: stop.clone(), ..options() }
}

/// The context of a turn that follows `previous`.
#[must_use]
pub fn after(previous: &TurnId) -> TurnContext {
    TurnContext::Previous(ContextRef { previous_turn_id: previous.clone() })
}

/// A person allows the `number`th call of a turn.
#[must_use]
pub fn allow(turn: &TurnId, number: usize) -> ExternalInput {
    let call = ToolCallId::of_turn(turn, number);
    ExternalInput::PermissionDecision { call, decision: Decision::Allow, metadata: None }
}

/// A person denies the `number`th call of a turn, in these words.
#[must_use]
pub fn deny(turn: &TurnId, number: usize, reason: &str) -> ExternalInput {
    let metadata = Some(Json::of(&serde_json::json!({ "reason": reason })));
    let call = ToolCallId::of_turn(turn, number);
    ExternalInput::PermissionDecision { call, decision: Decision::Deny, metadata }
}

/// The `number`th call of a turn is answered from outside.
#[must_use]
pub fn answer(turn: &TurnId, number: usize, text: &str) -> ExternalInput {
    let result = ToolResultData { output: Json::text(text), is_error: false, metadata: None };
    ExternalInput::AsyncToolResult { call: ToolCallId::of_turn(turn, number), result }
}

/// The turn is to end.
#[must_use]
pub fn cancel(reason: &str) -> ExternalInput {
    ExternalInput::Cancel { reason: Some(reason.to_owned()) }
}

/// All that is told while an advance is under way, and whether it was rejected at the end.
///
/// # Panics
/// If it told too much for one who reads on, or something after its end.
pub async fn all_told(mut execution: TurnExecution) -> (Vec<LiveEvent>, Option<Rejected>) {
    let (mut events, mut rejected, mut lagged) = (Vec::new(), None, 0);
    while let Some(told) = execution.events.next().await {
        assert_eq!(rejected, None, "nothing comes after that");
        match told {
            Ok(Received::Event(event)) => events.push(event),
            Ok(Received::Lagged) => lagged += 1,
            Err(error) => rejected = Some(error),
        }
    }
    assert_eq!(lagged, 0, "a short turn is not too much");
    (events, rejected)
}
