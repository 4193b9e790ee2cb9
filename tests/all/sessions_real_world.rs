//! A session layer over the real runtime with a scripted model and scripted tools.

use std::sync::Arc;

use jiff::tz::TimeZone;

use turnstile::base::id::{EventIds, Ids, SessionId, ToolCallId, TurnId};
use turnstile::base::tasks::Tasks;
use turnstile::domain::agent::RequestedAgent;
use turnstile::domain::message::UserMessage;
use turnstile::domain::session::entry::{LatestTurnStatus, SessionIndexEntry};
use turnstile::domain::turn::event::Decision;
use turnstile::runtime::context::ContextResolver;
use turnstile::runtime::hub::Hub;
use turnstile::runtime::{Options, Parts, TurnRuntime};
use turnstile::sessions::api::{NewSession, SendMessageConfig};
use turnstile::sessions::error::SessionError;
use turnstile::sessions::waiting::memory::Memory;
use turnstile::sessions::{Sessions, SessionsParts};
use turnstile::store::cache::CacheBounds;
use turnstile::store::live_text::{self, LiveText};
use turnstile::store::log::LogKind;
use turnstile::store::seam::LogStore;
use turnstile::store::session_repo::SessionRepo;
use turnstile::store::turn_repo::TurnRepo;
use turnstile::testing::agents::{AGENT, ScriptedAgents, ScriptedModels};
use turnstile::testing::checker::{Says, ScriptedChecker};
use turnstile::testing::clock::HandClock;
use turnstile::testing::fact::{json, model};
use turnstile::testing::model::{Reply, ScriptedModel};
use turnstile::testing::store::{CountingEntropy, memory_store};
use turnstile::testing::tools::FakeTool;
use turnstile::tools::output::OUTPUT_BYTES;
use turnstile::tools::registry::Registry;
use turnstile::tools::tool::Tool;

/// A session layer over the real runtime.
pub(crate) struct World {
    pub(crate) sessions: Sessions,
    pub(crate) runtime: TurnRuntime,
    pub(crate) model: Arc<ScriptedModel>,
    pub(crate) turns: TurnRepo,
    kept: Kept,
    process: u32,
}

/// What outlives a process.
#[derive(Clone)]
struct Kept {
    store: Arc<dyn LogStore>,
    live_text: Arc<dyn LiveText>,
    waiting: Arc<Memory>,
    event_ids: Arc<EventIds>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::over(Arc::new(memory_store()), 42)
    }

    /// The next process on the same logs.
    pub(crate) fn restarted(&self) -> Self {
        Self::at(FakeTool::sync("write_file"), self.kept.clone(), self.process + 1)
    }

    pub(crate) fn over(store: Arc<dyn LogStore>, process: u32) -> Self {
        Self::writing_with(FakeTool::sync("write_file"), store, process)
    }

    /// A world in which this is the tool that writes files, once a person allows it.
    pub(crate) fn writing_with(writer: FakeTool, store: Arc<dyn LogStore>, process: u32) -> Self {
        Self::of(writer, Arc::new(live_text::Map::default()), store, process)
    }

    /// A world that keeps the text of open calls here.
    pub(crate) fn of(
        writer: FakeTool,
        live_text: Arc<dyn LiveText>,
        store: Arc<dyn LogStore>,
        process: u32,
    ) -> Self {
        let event_ids = EventIds::new(HandClock::new(), Arc::<CountingEntropy>::default());
        let (waiting, event_ids) = (Arc::default(), Arc::new(event_ids));
        Self::at(writer, Kept { store, live_text, waiting, event_ids }, process)
    }

    fn at(writer: FakeTool, kept: Kept, process: u32) -> Self {
        let Kept { live_text, store, waiting, event_ids } = kept.clone();
        let (tasks, clock, hub) = (Tasks::new(), HandClock::new(), Hub::new());
        let ids = Arc::new(Ids::new(Arc::<HandClock>::clone(&clock), process));
        let turns = TurnRepo::new(Arc::clone(&store), tasks.clone(), CacheBounds::default());
        let models = Arc::<ScriptedModels>::default();
        let scripted = models.add(model());
        let checker = Arc::<ScriptedChecker>::default();
        checker.say("write_file", Says::Ask);
        let tools: Vec<Arc<dyn Tool>> =
            vec![Arc::new(writer), Arc::new(FakeTool::outside("ask_human").for_humans())];
        let tools = Registry::new(tools).expect("names of their own");
        let runtime = TurnRuntime::new(Parts {
            turns: turns.clone(),
            live_text,
            clock: Arc::<HandClock>::clone(&clock),
            ids: Arc::<Ids>::clone(&ids),
            agents: ScriptedAgents::new(tools.descriptors()),
            models,
            tools,
            checker,
            classifier: None,
            hub,
            tasks: tasks.clone(),
            context: ContextResolver::default(),
            options: Options {
                max_model_calls: 10,
                output_dir: std::env::temp_dir(),
                output_bytes_max: OUTPUT_BYTES,
            },
        });
        let sessions = Sessions::new(SessionsParts {
            repo: SessionRepo::new(Arc::clone(&store), tasks.clone(), CacheBounds::default()),
            turn_logs: turns.clone(),
            turns: Arc::new(runtime.clone()),
            clock,
            ids,
            waiting: Arc::<Memory>::clone(&waiting),
            event_ids: Arc::clone(&event_ids),
            zone: TimeZone::UTC,
            tasks,
            current_folder: std::env::temp_dir(),
            options: turnstile::sessions::Options::default(),
        });
        Self { sessions, runtime, model: scripted, turns, kept, process }
    }

    pub(crate) async fn session(&self) -> SessionId {
        self.sessions.create_session(NewSession::default()).await.expect("created")
    }

    pub(crate) async fn try_send(&self, session: &SessionId) -> Result<TurnId, SessionError> {
        self.try_send_with(session, config()).await
    }

    pub(crate) async fn try_send_with(
        &self,
        session: &SessionId,
        config: SendMessageConfig,
    ) -> Result<TurnId, SessionError> {
        let message = Arc::new(UserMessage::text("Look at the watcher."));
        self.sessions.send_message(session, message, config).await
    }

    pub(crate) async fn send(&self, session: &SessionId, reply: Reply) -> TurnId {
        self.model.then(reply.finish("stop"));
        self.try_send(session).await.expect("sent")
    }

    pub(crate) async fn run(&self, session: &SessionId, reply: Reply) -> TurnId {
        let turn = self.send(session, reply).await;
        self.rested().await;
        turn
    }

    /// Waits until nothing runs.
    pub(crate) async fn rested(&self) {
        while !self.sessions.running().is_empty() {
            tokio::task::yield_now().await;
        }
    }

    pub(crate) fn status(&self, session: &SessionId) -> LatestTurnStatus {
        self.sessions.index().get(session).expect("in the index").latest_turn_status
    }

    pub(crate) async fn allow(&self, turn: &TurnId) -> Result<(), SessionError> {
        self.allow_call(turn, 1).await
    }

    pub(crate) async fn allow_call(
        &self,
        turn: &TurnId,
        number: usize,
    ) -> Result<(), SessionError> {
        let call = ToolCallId::of_turn(turn, number);
        self.sessions.respond_to_permission(turn, &call, Decision::Allow, None).await
    }

    pub(crate) async fn scanned(&self) -> Vec<Arc<SessionIndexEntry>> {
        let fresh = self.restarted().sessions;
        fresh.scan().await.expect("scanned");
        fresh.list_sessions()
    }
}

/// Answered by the one agent that there is.
pub(crate) fn config() -> SendMessageConfig {
    SendMessageConfig::of(RequestedAgent::by_id(AGENT))
}

pub(crate) fn says(text: &str) -> Reply {
    Reply::new().text(text)
}

/// An answer that has to be allowed to write.
pub(crate) fn writes() -> Reply {
    Reply::new().call("write-file", json(r#"{"path":"a"}"#))
}

pub(crate) fn asks() -> Reply {
    Reply::new().call("ask-human", json(r#"{"question":"Which?"}"#))
}

/// A world whose logs hold what this one's hold now, written by nobody.
pub(crate) async fn copy(world: &World) -> World {
    let store: Arc<dyn LogStore> = Arc::new(memory_store());
    for kind in [LogKind::Session, LogKind::Turn] {
        for log in world.kept.store.list(kind).await.expect("listed") {
            let records = world.kept.store.inspect(&log).await.expect("readable").records.clone();
            drop(store.create(&log, &records).await.expect("created"));
        }
    }
    World::over(store, world.process + 1)
}
