//! The session layer's calls: creating, reading, sending, naming.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::tz::TimeZone;
use tokio::sync::broadcast;

use crate::base::clock::Clock;
use crate::base::id::{EventIds, IdSource, SessionId, TurnId};
use crate::base::tasks::Tasks;
use crate::domain::event::Event;
use crate::domain::session::apply::reduce_session;
use crate::domain::session::entry::SessionIndexEntry;
use crate::domain::session::event::{
    SESSION_SCHEMA_VERSION, SessionCreated, SessionEvent, SessionFact,
};
use crate::domain::session::state::SessionState;
use crate::runtime::api::{Turn, Turns};
use crate::sessions::api::{FactsChanged, NewSession, SessionFolder};
use crate::sessions::aside::Asides;
use crate::sessions::compact::Compacting;
use crate::sessions::error::{NoFolder, SessionError};
use crate::sessions::index::Index;
use crate::sessions::live::LiveAdvances;
use crate::sessions::locks::Locks;
use crate::sessions::queue::Queue;
use crate::sessions::removal::Closing;
use crate::sessions::trouble::Troubles;
use crate::sessions::waiting::Waiting;
use crate::store::error::StoreError;
use crate::store::session_repo::SessionRepo;
use crate::store::turn_repo::TurnRepo;

/// Everything that the session layer works with.
pub struct SessionsParts {
    /// Where the session logs are.
    pub repo: SessionRepo,
    /// Where the turn logs are; only for the scan, which looks at each session's latest.
    pub turn_logs: TurnRepo,
    /// The runtime.
    pub turns: Arc<dyn Turns>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Ids of new sessions.
    pub ids: Arc<dyn IdSource>,
    /// What keeps the messages that wait.
    pub waiting: Arc<dyn Waiting>,
    /// Ids of messages that wait.
    pub event_ids: Arc<EventIds>,
    /// The zone in which messages say their time.
    pub zone: TimeZone,
    /// Who owns what runs in the background.
    pub tasks: Tasks,
    /// The folder in which tools run when a session does not say: where the program was started.
    pub current_folder: PathBuf,
    /// What is done without being asked for.
    pub options: Options,
}

/// What the session layer does without being asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// A model names a session after its first turn.
    pub auto_title: bool,
    /// The older turns are summarised when a turn has failed because the model takes no more.
    pub auto_compact: bool,
}

/// The session layer. Cheap to clone; all clones are one. What changes a session is to be awaited to
/// its end: dropped halfway it leaves the logs whole, but the index may lag behind them.
#[derive(Clone)]
pub struct Sessions {
    pub(super) parts: Arc<SessionsParts>,
    pub(super) index: Arc<Index>,
    pub(super) locks: Arc<Locks>,
    pub(super) live: LiveAdvances,
    pub(super) queue: Queue,
    pub(super) facts: broadcast::Sender<FactsChanged>,
    pub(super) closing: Closing,
    pub(super) compacting: Compacting,
    pub(super) asides: Asides,
    pub(super) troubles: Troubles,
}

/// How many changes wait for a follower before it has to look again.
const CHANGES_WAITING_MAX: usize = 256;

/// How many ids may be in use already before a new session gives up.
const ID_TRIES_MAX: usize = 1_000;

impl Sessions {
    /// A session layer of these parts, with an empty index.
    #[must_use]
    pub fn new(parts: SessionsParts) -> Self {
        Self {
            parts: Arc::new(parts),
            index: Arc::new(Index::new()),
            locks: Arc::default(),
            live: LiveAdvances::default(),
            queue: Queue::default(),
            facts: broadcast::channel(CHANGES_WAITING_MAX).0,
            closing: Closing::default(),
            compacting: Compacting::default(),
            asides: Asides::default(),
            troubles: Troubles::default(),
        }
    }

    /// The index of all sessions.
    #[must_use]
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// Creates a session without turns.
    ///
    /// # Errors
    /// [`SessionError::Folder`] for a folder that cannot be recorded; [`SessionError::Store`].
    pub async fn create_session(&self, new: NewSession) -> Result<SessionId, SessionError> {
        self.create_log(None, |id| Ok(vec![self.created(id, &new)?])).await
    }

    /// Writes the log of a new session, the whole of it or nothing, under an id that is free, and
    /// shows it in the index with the turn that is its latest, if it has one.
    pub(super) async fn create_log(
        &self,
        latest: Option<&Turn>,
        events: impl Fn(SessionId) -> Result<Vec<SessionEvent>, NoFolder>,
    ) -> Result<SessionId, SessionError> {
        let mut tries = 0;
        loop {
            let id = SessionId::from(self.parts.ids.next());
            let events = events(id.clone())?;
            match self.parts.repo.create(&id, &events).await {
                Ok(_) => {
                    if let Ok(state) = reduce_session(&events) {
                        let offset = latest.map_or(0, |turn| turn.events.len() as u64);
                        let entry = SessionIndexEntry::new(&state, latest.map(|turn| &turn.state));
                        self.index.put(entry, offset);
                    }
                    return Ok(id);
                }
                Err(StoreError::AlreadyExists(_)) if tries < ID_TRIES_MAX => tries += 1,
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn created(&self, id: SessionId, new: &NewSession) -> Result<SessionEvent, NoFolder> {
        let cwd = match &new.folder {
            // What cannot be recorded is what a header without a folder means anyway.
            SessionFolder::Current => self.parts.current_folder.to_str().map(str::to_owned),
            SessionFolder::At(folder) => Some(recorded(folder)?),
            SessionFolder::OwnIn(parent) => Some(recorded(&parent.join(id.as_str()))?),
        };
        let header = SessionCreated {
            schema_version: SESSION_SCHEMA_VERSION,
            title: new.title.clone(),
            cwd,
            parent_session: new.parent_session.clone(),
            seed_length: None,
            origin: new.origin,
            delegation_depth: new.delegation_depth,
        };
        let ts = new.created_at.unwrap_or_else(|| self.parts.clock.now());
        Ok(Event { id, ts, fact: SessionFact::Created(Arc::new(header)) })
    }

    /// All sessions, from the index.
    #[must_use]
    pub fn list_sessions(&self) -> Vec<Arc<SessionIndexEntry>> {
        self.index.list()
    }

    /// A session as its log has it.
    ///
    /// # Errors
    /// [`SessionError::Store`] if there is none or its log is damaged.
    pub async fn get_session(&self, session: &SessionId) -> Result<SessionState, SessionError> {
        Ok(self.parts.repo.read(session).await?.state.clone())
    }

    /// The events of a session.
    ///
    /// # Errors
    /// As [`Sessions::get_session`].
    pub async fn session_events(
        &self,
        session: &SessionId,
    ) -> Result<Vec<Arc<SessionEvent>>, SessionError> {
        Ok(self.parts.repo.read(session).await?.events.clone())
    }

    /// A turn as its log has it.
    ///
    /// # Errors
    /// [`SessionError::Read`] if there is none or its log is damaged.
    pub async fn get_turn(&self, turn: &TurnId) -> Result<Turn, SessionError> {
        Ok(self.parts.turns.get_turn(turn).await?)
    }

    /// Whether an advance of the turn is under way.
    #[must_use]
    pub fn is_running(&self, turn: &TurnId) -> bool {
        self.live.is_live(turn)
    }

    /// The turns of which an advance is under way, each with its session.
    #[must_use]
    pub fn running(&self) -> Vec<(SessionId, TurnId)> {
        self.live.turns()
    }

    /// The folder in which a session's tools run.
    #[must_use]
    pub fn folder_of(&self, session: &SessionState) -> PathBuf {
        let recorded = session.header.cwd.as_ref().map(PathBuf::from);
        recorded.unwrap_or_else(|| self.parts.current_folder.clone())
    }
}

/// A folder as the header records it.
fn recorded(folder: &Path) -> Result<String, NoFolder> {
    let text = folder.to_str().filter(|_| folder.is_absolute());
    text.map(str::to_owned).ok_or_else(|| NoFolder(folder.to_owned()))
}
