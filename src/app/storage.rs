//! The logs in the form that is configured: the one place that knows which backend there is.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::broadcast;

use crate::config::schema;
use crate::store::coordinate::Coordinator;
use crate::store::error::StoreError;
use crate::store::format::Format;
use crate::store::jsonl;
use crate::store::live_text::{self, LiveText};
use crate::store::log::{LogKind, SetAside};
use crate::store::seam::{LogStore, SyncMode};
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

/// What the logs are. A form that is no file of its own for each log is another variant.
#[derive(Clone)]
enum Backend {
    Files(jsonl::Store),
}

impl Storage {
    /// The logs in `work_dir`; touches nothing yet.
    pub(super) fn new(
        work_dir: &WorkDir,
        parts: jsonl::Parts,
        configured: schema::Storage,
    ) -> Self {
        match format(configured.format) {
            format @ (Format::Jsonl | Format::JsonlZst) => {
                let options = jsonl::Options {
                    encoding: format.encoding(),
                    sync: sync_mode(configured.sync),
                    torn_tail: torn_tail(configured.torn_tail),
                    ..jsonl::Options::default()
                };
                let (disk, tasks) = (Arc::clone(&parts.disk), parts.tasks.clone());
                let live_text = live_text::Files::new(disk, work_dir.clone(), tasks);
                let coordinated = parts.tasks.clone();
                let files = jsonl::Store::new(work_dir.clone(), parts, options);
                let coordinator = Coordinator::new(Arc::new(files.clone()), coordinated);
                Self {
                    logs: Arc::new(coordinator.clone()),
                    coordinator,
                    live_text: Arc::new(live_text),
                    backend: Backend::Files(files),
                }
            }
        }
    }

    /// Follows the torn ends that are set aside from now on.
    pub(super) fn follow_set_aside(&self) -> broadcast::Receiver<SetAside> {
        match &self.backend {
            Backend::Files(files) => files.follow_set_aside(),
        }
    }

    /// The places that change when a log of this kind comes or goes; see [`jsonl::Store::folders`].
    pub(super) async fn folders(&self, kind: LogKind) -> Result<Vec<(PathBuf, u64)>, StoreError> {
        match &self.backend {
            Backend::Files(files) => files.folders(kind).await,
        }
    }
}

pub(super) fn format(configured: schema::Format) -> Format {
    match configured {
        schema::Format::Jsonl => Format::Jsonl,
        schema::Format::JsonlZst => Format::JsonlZst,
    }
}

pub(super) fn configured(format: Format) -> schema::Format {
    match format {
        Format::Jsonl => schema::Format::Jsonl,
        Format::JsonlZst => schema::Format::JsonlZst,
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
