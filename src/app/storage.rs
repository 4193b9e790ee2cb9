//! The logs in the form that is configured: the one place that knows which backend there is.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::broadcast;

use crate::config::schema;
use crate::store::coordinate::Coordinator;
use crate::store::error::StoreError;
use crate::store::format::Format;
use crate::store::jsonl::{self, Encoding};
use crate::store::live_text::{self, LiveText};
use crate::store::log::{LogKind, SetAside};
use crate::store::seam::{LogStore, SyncMode};
use crate::store::sqlite::{self, Rescued};
use crate::store::work_dir::WorkDir;

/// What the program has of its logs beside the seam.
#[derive(Clone)]
pub(super) struct Storage {
    /// The logs.
    pub(super) logs: Arc<dyn LogStore>,
    /// The same, as what keeps what the disk did not take.
    pub(super) coordinator: Coordinator,
    /// What streams into them.
    pub(super) live_text: Arc<dyn LiveText>,
    backend: Backend,
}

/// What the logs are.
#[derive(Clone)]
enum Backend {
    Files(jsonl::Store),
    Database(Database),
}

/// What is known of a database beside its logs.
#[derive(Clone)]
struct Database {
    store: sqlite::Store,
    /// The name of its file.
    name: OsString,
    /// Never told: a database has no torn ends.
    set_aside: broadcast::Sender<SetAside>,
}

/// The logs without anything that keeps what the disk did not take: every refusal is told at once.
pub(super) struct Plain {
    /// The logs.
    pub(super) logs: Arc<dyn LogStore>,
    /// What streams into them.
    pub(super) live_text: Arc<dyn LiveText>,
    backend: Backend,
}

impl Plain {
    /// The logs in `work_dir`; touches nothing yet.
    pub(super) fn new(
        work_dir: &WorkDir,
        parts: jsonl::Parts,
        configured: schema::Storage,
    ) -> Self {
        match configured.format {
            schema::Format::Jsonl => Self::files(work_dir, parts, configured, Encoding::Lines),
            schema::Format::JsonlZst => Self::files(work_dir, parts, configured, Encoding::Frames),
            schema::Format::Sqlite => Self::database(work_dir, parts, configured),
        }
    }

    fn files(
        work_dir: &WorkDir,
        parts: jsonl::Parts,
        configured: schema::Storage,
        encoding: Encoding,
    ) -> Self {
        let options = jsonl::Options {
            encoding,
            sync: sync_mode(configured.sync),
            torn_tail: torn_tail(configured.torn_tail),
            ..jsonl::Options::default()
        };
        let (disk, tasks) = (Arc::clone(&parts.disk), parts.tasks.clone());
        let live_text = live_text::Files::new(disk, work_dir.clone(), tasks);
        let files = jsonl::Store::new(work_dir.clone(), parts, options);
        let logs = Arc::new(files.clone());
        Self { logs, live_text: Arc::new(live_text), backend: Backend::Files(files) }
    }

    fn database(work_dir: &WorkDir, parts: jsonl::Parts, configured: schema::Storage) -> Self {
        let options =
            sqlite::Options { sync: sync_mode(configured.sync), ..sqlite::Options::default() };
        let name = work_dir.database().file_name().unwrap_or_default().to_owned();
        let (set_aside, _) = broadcast::channel(1);
        let store = sqlite::Store::new(work_dir.clone(), parts, options);
        let database = Database { store: store.clone(), name, set_aside };
        let backend = Backend::Database(database);
        let live_text = Arc::new(store.live_text());
        Self { logs: Arc::new(store), live_text, backend }
    }
}

impl Storage {
    /// The logs in `work_dir`; touches nothing yet.
    pub(super) fn new(
        work_dir: &WorkDir,
        parts: jsonl::Parts,
        configured: schema::Storage,
    ) -> Self {
        let tasks = parts.tasks.clone();
        let Plain { logs, live_text, backend } = Plain::new(work_dir, parts, configured);
        let coordinator = Coordinator::new(logs, tasks);
        Self { logs: Arc::new(coordinator.clone()), coordinator, live_text, backend }
    }

    /// Saves what can still be read of a database that is damaged as a whole in a new one in a folder, and
    /// gives its path; `None` where each log has a file of its own.
    pub(super) async fn rescue(
        &self,
        folder: &Path,
    ) -> Option<Result<(Rescued, PathBuf), StoreError>> {
        match &self.backend {
            Backend::Files(_) => None,
            Backend::Database(Database { store, name, .. }) => {
                let path = folder.join(name);
                Some(store.rescue(path.clone()).await.map(|rescued| (rescued, path)))
            }
        }
    }

    /// Follows the torn ends that are set aside from now on.
    pub(super) fn follow_set_aside(&self) -> broadcast::Receiver<SetAside> {
        match &self.backend {
            Backend::Files(files) => files.follow_set_aside(),
            Backend::Database(database) => database.set_aside.subscribe(),
        }
    }

    /// The places that change when a log of this kind comes or goes; see [`jsonl::Store::folders`].
    pub(super) async fn folders(&self, kind: LogKind) -> Result<Vec<(PathBuf, u64)>, StoreError> {
        match &self.backend {
            Backend::Files(files) => files.folders(kind).await,
            Backend::Database(database) => database.store.files().await,
        }
    }
}

pub(super) fn format(configured: schema::Format) -> Format {
    match configured {
        schema::Format::Jsonl => Format::Jsonl,
        schema::Format::JsonlZst => Format::JsonlZst,
        schema::Format::Sqlite => Format::Sqlite,
    }
}

pub(super) fn configured(format: Format) -> schema::Format {
    match format {
        Format::Jsonl => schema::Format::Jsonl,
        Format::JsonlZst => schema::Format::JsonlZst,
        Format::Sqlite => schema::Format::Sqlite,
    }
}

pub(super) fn sync_mode(mode: schema::SyncMode) -> SyncMode {
    match mode {
        schema::SyncMode::Barrier => SyncMode::Barrier,
        schema::SyncMode::Always => SyncMode::Always,
        schema::SyncMode::Never => SyncMode::Never,
    }
}

fn torn_tail(mode: schema::TornTail) -> jsonl::TornTail {
    match mode {
        schema::TornTail::Cut => jsonl::TornTail::Cut,
        schema::TornTail::Reject => jsonl::TornTail::Reject,
    }
}
