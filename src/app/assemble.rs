//! The start: the work directory is taken, the graph is built, and what runs by itself begins.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};

use crate::agents::builtin;
use crate::app::follow::Follower;
use crate::app::graph;
use crate::app::keep::{KEEPING_WAITING_MAX, Keeper};
use crate::app::log::Redactions;
use crate::app::notice::Notice;
use crate::app::storage::{self, sync_mode};
use crate::app::{App, Graph, NOTICES_WAITING_MAX};
use crate::base::clock::{Clock, Entropy, System};
use crate::base::tasks::Tasks;
use crate::config::environment::Environment;
use crate::config::layer::{AGENT_KEY, Loaded, MODEL_KEY};
use crate::config::origin::Origin;
use crate::domain::permission::pattern::PatternError;
use crate::models::registry;
use crate::runtime::hub::{Hub, Interest};
use crate::store::disk::RealDisk;
use crate::store::format::{self, Claim, Claimant, Format, FormatError};
use crate::store::lock::{GuestPass, InstanceLock, LockError};
use crate::store::work_dir::{WorkDir, WorkDirError};
use crate::tools::registry::RegistryError;

/// What the program starts from.
pub struct Startup {
    /// The configuration and the places.
    pub loaded: Loaded,
    /// The environment that it was started in.
    pub environment: Environment,
    /// The work directory, held.
    pub place: WorkPlace,
    /// Keeps secrets out of the log.
    pub redactions: Redactions,
    /// How fast the guide speaks; its own pace without it.
    pub guide_pace: Option<Duration>,
}

/// What may be done in the work directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Everything; it is locked for this process.
    Full,
    /// Only turns of one's own; others may hold the lock.
    OwnTurns,
    /// Nothing is written.
    ReadOnly,
}

/// The work directory, prepared and, for full access, locked. Taken before the screen begins, so
/// that a refusal can be read.
pub struct WorkPlace {
    dir: WorkDir,
    access: Access,
    lock: Option<Arc<InstanceLock>>,
    guest: Option<Arc<GuestPass>>,
    system: Arc<System>,
}

/// Why the program cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The work directory cannot be used.
    #[error(transparent)]
    WorkDir(#[from] WorkDirError),
    /// Another process holds it.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The logs are kept in another form than is configured.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// The configured model leads nowhere.
    #[error("{origin}: {MODEL_KEY}: {source}")]
    Model {
        /// Who named it.
        origin: Origin,
        /// Why it leads nowhere.
        source: registry::ResolveError,
    },
    /// There is no agent of the configured name.
    #[error("{origin}: {AGENT_KEY}: there is no agent {agent:?}; there are {known}")]
    Agent {
        /// Who named it.
        origin: Origin,
        /// What was named.
        agent: String,
        /// What there is, for people.
        known: String,
    },
    /// A built-in rule cannot be read for these folders.
    #[error(transparent)]
    Rules(#[from] PatternError),
    /// The built-in tools clash: a fault of this program.
    #[error(transparent)]
    Tools(#[from] RegistryError),
}

impl WorkPlace {
    /// Prepares the work directory, and locks it for full access.
    ///
    /// # Errors
    /// [`StartError::WorkDir`], [`StartError::Lock`], which says who holds it, and
    /// [`StartError::Format`].
    pub fn take(loaded: &Loaded, access: Access) -> Result<Self, StartError> {
        let system = Arc::new(System::new());
        let dir = WorkDir::new(loaded.paths.work_dir.path.clone())?;
        let configured = loaded.config.storage;
        let (format, sync) = (storage::format(configured.format), sync_mode(configured.sync));
        let process = std::process::id();
        let claim = |claimant| Claim { asked: format, claimant, sync, process };
        let mut guest = None;
        let lock = match access {
            Access::ReadOnly => {
                format::check(&RealDisk, &dir, format)?;
                None
            }
            Access::OwnTurns => {
                dir.prepare(&RealDisk)?;
                // Before the form is looked at: with this it stays what it is.
                guest = Some(Arc::new(GuestPass::take(&RealDisk, &dir)?));
                claim(Claimant::Guest).make(&RealDisk, &dir)?;
                None
            }
            Access::Full => {
                dir.prepare(&RealDisk)?;
                let disk = Arc::new(RealDisk);
                let lock = InstanceLock::acquire(disk, &dir, process, system.now())?;
                claim(Claimant::Holder).make(&RealDisk, &dir)?;
                Some(Arc::new(lock))
            }
        };
        Ok(Self { dir, access, lock, guest, system })
    }

    /// The form in which the sessions are to be kept.
    #[must_use]
    pub fn format(loaded: &Loaded) -> Format {
        storage::format(loaded.config.storage.format)
    }

    /// Configures the form in which the sessions are kept, for whoever looks at what is there whatever
    /// was configured.
    ///
    /// # Errors
    /// Why the form that was configured cannot be used.
    pub fn adopt_format(loaded: &mut Loaded) -> Result<(), StartError> {
        let dir = WorkDir::new(loaded.paths.work_dir.path.clone())?;
        let format = &mut loaded.config.storage.format;
        let checked = format::check(&RealDisk, &dir, storage::format(*format));
        if let Err(FormatError::Other { found, .. }) = &checked {
            *format = storage::configured(*found);
        }
        Ok(checked?)
    }

    /// The clock of the program.
    #[must_use]
    pub fn clock(&self) -> Arc<dyn Clock> {
        Arc::<System>::clone(&self.system)
    }

    pub(super) fn entropy(&self) -> Arc<dyn Entropy> {
        Arc::<System>::clone(&self.system)
    }

    pub(super) fn dir(&self) -> &WorkDir {
        &self.dir
    }

    pub(super) fn guest(&self) -> Option<Arc<GuestPass>> {
        self.guest.as_ref().map(Arc::clone)
    }

    pub(super) fn lock(&self) -> Option<Arc<InstanceLock>> {
        self.lock.as_ref().map(Arc::clone)
    }

    pub(super) fn access(&self) -> Access {
        self.access
    }
}

impl App {
    /// Builds the program, within a runtime for tasks. It does nothing by itself before [`App::begin`].
    ///
    /// # Errors
    /// [`StartError`] names what of the configuration cannot be used.
    pub fn start(startup: Startup) -> Result<(Self, mpsc::Receiver<Notice>), StartError> {
        let tasks = Tasks::new();
        let hub = Hub::new();
        let graph = Arc::new(graph::build(startup, &tasks, &hub)?);
        let (notices, listening) = mpsc::channel(NOTICES_WAITING_MAX);
        let (following, requests) = watch::channel(None);
        let (keeping, kept) = mpsc::channel(KEEPING_WAITING_MAX);
        let follower = Follower {
            sessions: graph.sessions.clone(),
            turns: graph.turn_logs.clone(),
            subscription: hub.subscribe(Interest::Everything),
            queue: graph.sessions.follow_queue(),
            facts: graph.sessions.follow_facts(),
            compactions: graph.sessions.follow_compactions(),
            hub,
            notices: notices.clone(),
            tasks: tasks.clone(),
            open: None,
            running: BTreeSet::new(),
        };
        drop(tasks.spawn("follow", follower.run(requests)));
        let keeper = Keeper::new(graph.scratch.clone(), graph.access, notices.clone());
        drop(tasks.spawn("keep", keeper.run(kept)));
        let (overflow, run_mark) = (Arc::default(), Arc::default());
        let app = Self { graph, notices, following, keeping, overflow, run_mark };
        Ok((app, listening))
    }

    /// Whether there is an agent and a model to answer; what only looks needs none.
    ///
    /// # Errors
    /// [`StartError::Agent`] and [`StartError::Model`] when a configured default leads nowhere.
    pub fn require_answerer(&self) -> Result<(), StartError> {
        let Graph { models, default_agent, origins, .. } = &*self.graph;
        if builtin::find(default_agent).is_none() {
            let (origin, agent) = (origins.agent.clone(), default_agent.clone());
            return Err(StartError::Agent { origin, agent, known: builtin::ids() });
        }
        match models.default_model(None) {
            Ok(_) => Ok(()),
            Err(source) => Err(StartError::Model { origin: origins.model.clone(), source }),
        }
    }
}
