//! A session layer over a scripted runtime.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::base::id::{Ids, SessionId, TurnId};
use crate::base::tasks::Tasks;
use crate::domain::agent::RequestedAgent;
use crate::domain::message::UserMessage;
use crate::domain::session::entry::SessionIndexEntry;
use crate::runtime::api::Turns;
use crate::sessions::api::{NewSession, SendMessageConfig};
use crate::sessions::error::SessionError;
use crate::sessions::{Options, Sessions, SessionsParts};
use crate::store::cache::CacheBounds;
use crate::store::memory;
use crate::store::seam::LogStore;
use crate::store::session_repo::SessionRepo;
use crate::store::turn_repo::TurnRepo;
use crate::testing::clock::HandClock;
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
    store: Arc<dyn LogStore>,
    starts: Arc<AtomicU32>,
    tasks: Tasks,
    options: Options,
}

impl SessionWorld {
    /// A world that keeps nothing.
    #[must_use]
    pub fn new() -> Self {
        let clock = HandClock::new();
        let store = memory::Store::new(Arc::<HandClock>::clone(&clock));
        Self::at(clock, Arc::new(store), Arc::default(), Options::default())
    }

    /// The same world, configured otherwise.
    #[must_use]
    pub fn with(self, options: Options) -> Self {
        Self::at(self.clock, self.store, self.starts, options)
    }

    /// A world whose logs are in `store`, as a process that starts now sees them.
    #[must_use]
    pub fn over(store: Arc<dyn LogStore>) -> Self {
        Self::at(HandClock::new(), store, Arc::default(), Options::default())
    }

    /// The same logs and the same time, as the next process sees them.
    #[must_use]
    pub fn restarted(&self) -> Self {
        let (clock, store) = (Arc::clone(&self.clock), Arc::clone(&self.store));
        Self::at(clock, store, Arc::clone(&self.starts), self.options)
    }

    fn at(
        clock: Arc<HandClock>,
        store: Arc<dyn LogStore>,
        starts: Arc<AtomicU32>,
        options: Options,
    ) -> Self {
        let process = 42 + starts.fetch_add(1, Ordering::Relaxed);
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
            tasks: tasks.clone(),
            current_folder: PathBuf::from(FOLDER),
            options,
        });
        Self { sessions, turns, repo, turn_repo, clock, store, starts, tasks, options }
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
