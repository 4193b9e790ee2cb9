//! The program without a screen: it builds the graph of everything below, takes commands in and
//! gives notices out.

mod assemble;
mod background;
pub mod command;
mod deletion;
mod follow;
mod graph;
pub mod health;
mod keep;
mod last_run;
pub mod log;
pub mod notice;
pub mod notify;
pub mod onlook;
pub mod paged;
mod perform;
mod providers;
mod shut_down;

use std::future::Future;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot, watch};

use crate::agents::choice::DefaultModel;
use crate::app::keep::Keep;
use crate::app::keep::overflow::{Added, Overflow};
use crate::app::last_run::RunMark;
use crate::app::notice::{Notice, Refused};
use crate::base::clock::Clock;
use crate::base::id::SessionId;
use crate::base::tasks::Tasks;
use crate::config::origin::Origin;
use crate::models::registry::Models;
use crate::runtime::TurnRuntime;
use crate::sessions::Sessions;
use crate::store::jsonl;
use crate::store::lock::InstanceLock;
use crate::store::scratch::Scratch;
use crate::store::seam::LogStore;
use crate::store::turn_repo::TurnRepo;
use crate::store::work_dir::WorkDir;

pub use assemble::{Access, StartError, Startup, WorkPlace};
pub use shut_down::LeaveError;

/// How many notices wait for whoever looks. Live text is joined before it gets here, so this is
/// some seconds of everything else; then the program waits.
const NOTICES_WAITING_MAX: usize = 4_096;

/// The program. Cheap to clone; all clones are one.
#[derive(Clone)]
pub struct App {
    graph: Arc<Graph>,
    notices: mpsc::Sender<Notice>,
    /// The session that is to be shown; only the last request counts.
    following: watch::Sender<Option<SessionId>>,
    keeping: mpsc::Sender<Keep>,
    /// What waits while that is full.
    overflow: Arc<Mutex<Overflow>>,
    run_mark: Arc<RunMark>,
}

/// Everything that the program works with.
pub struct Graph {
    /// The sessions.
    pub sessions: Sessions,
    /// The runtime under them.
    pub runtime: TurnRuntime,
    /// The models.
    pub models: Arc<Models>,
    /// Which of them answers when nothing else is said.
    pub default_model: DefaultModel,
    /// Whether that model was named for this start, so that conversations go on with it.
    model_is_for_this_start: bool,
    /// The agent that answers when nothing else is said.
    pub default_agent: String,
    origins: Origins,
    /// Whether anything may be changed.
    pub access: Access,
    /// Who owns what runs in the background.
    pub tasks: Tasks,
    /// Where the guide's sessions have their folders.
    scratch_folders: PathBuf,
    /// For how many days deleted sessions can be restored.
    keep_deleted_days: u64,
    scratch: Scratch,
    dir: WorkDir,
    store: Arc<dyn LogStore>,
    /// The same store as the files that it is.
    files: jsonl::Store,
    turn_logs: TurnRepo,
    clock: Arc<dyn Clock>,
    _lock: Option<Arc<InstanceLock>>,
}

/// Who named what answers when nothing else is said.
struct Origins {
    agent: Origin,
    model: Origin,
}

impl App {
    /// Everything that the program works with.
    #[must_use]
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The session in which somebody last did something, as far as the index knows; damaged ones
    /// those that were put away, and those of agents and jobs do not count.
    #[must_use]
    pub fn latest_session(&self) -> Option<SessionId> {
        let entries = self.graph.sessions.list_sessions();
        let own = entries
            .iter()
            .filter(|entry| entry.error.is_none() && entry.origin.is_none() && !entry.archived);
        own.max_by_key(|entry| entry.active_at).map(|entry| entry.session_id.clone())
    }

    fn follow(&self, session: Option<SessionId>) {
        self.following.send_replace(session);
    }

    /// Hands something to the keeper, in the order of the calls.
    fn keep(&self, keep: Keep) {
        let added = {
            let mut overflow = self.overflow();
            let sent = if overflow.is_idle() {
                self.keeping.try_send(keep)
            } else {
                Err(TrySendError::Full(keep))
            };
            let Err(TrySendError::Full(keep)) = sent else { return };
            overflow.add(keep)
        };
        if added == Added::First {
            let app = self.clone();
            self.spawn(async move { app.move_on().await });
        }
    }

    /// Moves what waits on to the keeper.
    async fn move_on(&self) {
        let why = "the disk is slow: what is typed stands only on the screen until it keeps up";
        self.tell(Notice::Refused { what: Refused::Keep, why: why.into() }).await;
        loop {
            let next = self.overflow().next();
            let Some(keep) = next else { return };
            // A closed channel means that the program is ending.
            self.keeping.send(keep).await.ok();
        }
    }

    fn overflow(&self) -> MutexGuard<'_, Overflow> {
        self.overflow.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the keeper for something, and waits until it is done.
    async fn wait_for(&self, keep: impl FnOnce(oneshot::Sender<()>) -> Keep) {
        let (done, is_done) = oneshot::channel();
        self.keep(keep(done));
        // A closed channel means that the program is ending.
        is_done.await.ok();
    }

    async fn tell(&self, notice: Notice) {
        // Nobody listening means that the program is ending.
        self.notices.send(notice).await.ok();
    }

    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        drop(self.graph.tasks.spawn("command", work));
    }
}
