//! A session layer over a scripted runtime.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use jiff::tz::TimeZone;

use crate::base::id::{EventId, EventIds, Ids, SessionId, TurnId};
use crate::base::tasks::Tasks;
use crate::domain::agent::RequestedAgent;
use crate::domain::message::UserMessage;
use crate::domain::session::entry::SessionIndexEntry;
use crate::runtime::api::Turns;
use crate::sessions::api::{NewSession, SendMessageConfig, Sent, WaitingMessage};
use crate::sessions::error::SessionError;
use crate::sessions::waiting::Waiting;
use crate::sessions::waiting::memory::Memory;
use crate::sessions::{Options, Sessions, SessionsParts};
use crate::store::cache::CacheBounds;
use crate::store::seam::LogStore;
use crate::store::session_repo::SessionRepo;
use crate::store::turn_repo::TurnRepo;
use crate::store::{jsonl, memory};
use crate::testing::clock::HandClock;
use crate::testing::store::{CountingEntropy, Home};
use crate::testing::turns::{Script, ScriptedTurns};

/// The folder in which the program was started.
pub const FOLDER: &str = "/project";

/// A session layer, and all that it works with.
pub struct SessionWorld {
    /// The layer.
    pub sessions: Sessions,
    /// The runtime under it.
    pub turns: ScriptedTurns,
    /// The logs of sessions.
    pub repo: SessionRepo,
    /// The logs of turns.
    pub turn_repo: TurnRepo,
    /// The time.
    pub clock: Arc<HandClock>,
    /// What keeps the messages that wait.
    pub waiting: Arc<dyn Waiting>,
    tasks: Tasks,
    ground: Ground,
}

/// What outlives a process.
#[derive(Clone)]
struct Ground {
    clock: Arc<HandClock>,
    store: Arc<dyn LogStore>,
    waiting: Arc<dyn Waiting>,
    /// Later processes go on with them, as if time had passed.
    event_ids: Arc<EventIds>,
    starts: Arc<AtomicU32>,
    options: Options,
    /// Where the files are, as long as anybody needs them.
    _home: Option<Home>,
}

impl Ground {
    fn new(clock: Arc<HandClock>, store: Arc<dyn LogStore>, waiting: Arc<dyn Waiting>) -> Self {
        let chance = Arc::<CountingEntropy>::default();
        let event_ids = Arc::new(EventIds::new(Arc::<HandClock>::clone(&clock), chance));
        Self {
            clock,
            store,
            waiting,
            event_ids,
            starts: Arc::default(),
            options: Options::default(),
            _home: None,
        }
    }
}

impl SessionWorld {
    /// A world that keeps nothing.
    #[must_use]
    pub fn new() -> Self {
        let clock = HandClock::new();
        let store = memory::Store::new(Arc::<HandClock>::clone(&clock));
        Self::at(Ground::new(clock, Arc::new(store), Arc::<Memory>::default()))
    }

    /// The same world, configured otherwise.
    #[must_use]
    pub fn with(self, options: Options) -> Self {
        Self::at(Ground { options, ..self.ground })
    }

    /// A world whose logs are in `store`, as a process that starts now sees them.
    #[must_use]
    pub fn over(store: Arc<dyn LogStore>) -> Self {
        Self::at(Ground::new(HandClock::new(), store, Arc::<Memory>::default()))
    }

    /// A world whose logs and messages are files.
    #[must_use]
    pub fn in_files(home: &Home) -> Self {
        let (store, inbox) = (home.store(jsonl::Options::default()), home.inbox());
        let ground = Ground::new(HandClock::new(), Arc::new(store), Arc::new(inbox));
        Self::at(Ground { _home: Some(home.clone()), ..ground })
    }

    /// The same logs and messages and the same time, as the next process sees them.
    #[must_use]
    pub fn restarted(&self) -> Self {
        Self::at(self.ground.clone())
    }

    fn at(ground: Ground) -> Self {
        let Ground { clock, store, waiting, .. } = ground.clone();
        let process = 42 + ground.starts.fetch_add(1, Ordering::Relaxed);
        let ids = Arc::new(Ids::new(Arc::<HandClock>::clone(&clock), process));
        let tasks = Tasks::new();
        let bounds = CacheBounds::default();
        let turn_repo = TurnRepo::new(Arc::clone(&store), tasks.clone(), bounds);
        let repo = SessionRepo::new(Arc::clone(&store), tasks.clone(), bounds);
        let turns = ScriptedTurns::new(
            turn_repo.clone(),
            Arc::<HandClock>::clone(&clock),
            Arc::<Ids>::clone(&ids),
        );
        let sessions = Sessions::new(SessionsParts {
            repo: repo.clone(),
            turn_logs: turn_repo.clone(),
            turns: Arc::new(turns.clone()) as Arc<dyn Turns>,
            clock: Arc::<HandClock>::clone(&clock),
            ids,
            waiting: Arc::clone(&waiting),
            event_ids: Arc::clone(&ground.event_ids),
            zone: TimeZone::UTC,
            tasks: tasks.clone(),
            current_folder: PathBuf::from(FOLDER),
            options: ground.options,
        });
        Self { sessions, turns, repo, turn_repo, clock, waiting, tasks, ground }
    }

    /// A new session without turns.
    ///
    /// # Panics
    /// When it is not created.
    pub async fn session(&self) -> SessionId {
        self.sessions.create_session(NewSession::default()).await.expect("created")
    }

    /// Sends a message, whose turn plays `script`.
    ///
    /// # Errors
    /// Why it was not sent; the script is for the next one then.
    pub async fn try_send(&self, session: &SessionId, text: &str) -> Result<TurnId, SessionError> {
        let message = Arc::new(UserMessage::text(text));
        self.sessions.send_message(session, message, config()).await
    }

    /// Sends a message, whose turn plays `script`.
    ///
    /// # Panics
    /// When it is not sent.
    pub async fn send(&self, session: &SessionId, script: Script) -> TurnId {
        self.turns.then(script);
        self.try_send(session, "Look at the watcher.").await.expect("the message is sent")
    }

    /// Sends a message, and waits until its turn rests.
    ///
    /// # Panics
    /// When it is not sent.
    pub async fn run(&self, session: &SessionId, script: Script) -> TurnId {
        let turn = self.send(session, script).await;
        self.rested(&turn).await;
        turn
    }

    /// Sends a message, or lets it wait.
    ///
    /// # Errors
    /// Why it is nowhere.
    pub async fn try_queue(&self, session: &SessionId, text: &str) -> Result<Sent, SessionError> {
        let message = Arc::new(UserMessage::text(text));
        self.sessions.send_or_queue(session, message, config()).await
    }

    /// Lets a message wait.
    ///
    /// # Panics
    /// When it does not wait.
    pub async fn queue(&self, session: &SessionId, text: &str) -> EventId {
        let sent = self.try_queue(session, text).await.expect("it is sent or waits");
        let waits = if let Sent::Waits(event) = sent { Some(event) } else { None };
        waits.expect("it waits")
    }

    /// What waits in a session, a held message in brackets.
    ///
    /// # Panics
    /// When that cannot be read.
    pub async fn waits(&self, session: &SessionId) -> Vec<String> {
        let waiting = self.sessions.waiting_messages(session).await.expect("readable");
        let shown = |it: WaitingMessage| if it.held { format!("[{}]", it.text) } else { it.text };
        waiting.into_iter().map(shown).collect()
    }

    /// What the turns of a session were about, with what they took in after a `+`.
    ///
    /// # Panics
    /// When they cannot be read.
    pub async fn said(&self, session: &SessionId) -> Vec<String> {
        let mut said = Vec::new();
        for turn in self.sessions.get_session(session).await.expect("readable").turns {
            let state = self.sessions.get_turn(&turn.id).await.expect("readable").state;
            let added = state.inputs.iter().map(|input| input.message.plain_text());
            let all = [state.definition.input.plain_text()].into_iter().chain(added);
            said.push(all.collect::<Vec<_>>().join(" + "));
        }
        said
    }

    /// Waits until nothing runs.
    pub async fn quiet(&self) {
        while !self.sessions.running().is_empty() {
            tokio::task::yield_now().await;
        }
    }

    /// Waits until no advance of the turn is live.
    pub async fn rested(&self, turn: &TurnId) {
        while self.sessions.is_running(turn) {
            tokio::task::yield_now().await;
        }
    }

    /// Waits until the layer does nothing any more, in the background neither.
    pub async fn idle(&self) {
        self.tasks.wait().await;
    }

    /// The session's entry in the index.
    ///
    /// # Panics
    /// When there is none.
    #[must_use]
    pub fn entry(&self, session: &SessionId) -> SessionIndexEntry {
        SessionIndexEntry::clone(&self.sessions.index().get(session).expect("it is in the index"))
    }

    /// What the next process finds in the index once its scan is over.
    ///
    /// # Panics
    /// When the sessions cannot be listed.
    pub async fn scanned(&self) -> Vec<Arc<SessionIndexEntry>> {
        let fresh = self.restarted().sessions;
        fresh.scan().await.expect("the sessions can be listed");
        fresh.list_sessions()
    }
}

impl Default for SessionWorld {
    fn default() -> Self {
        Self::new()
    }
}

/// Answered by the assistant, with a person there to ask.
#[must_use]
pub fn config() -> SendMessageConfig {
    SendMessageConfig::of(RequestedAgent::by_id("assistant"))
}
