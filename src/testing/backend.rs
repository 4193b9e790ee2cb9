//! The places where logs are kept, each made as the program makes it: for what is measured or checked
//! over all of them.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use crate::base::clock::{Clock as _, System};
use crate::base::tasks::Tasks;
use crate::store::coordinate::Coordinator;
use crate::store::disk::RealDisk;
use crate::store::format::Format;
use crate::store::jsonl::{self, Encoding};
use crate::store::lock::InstanceLock;
use crate::store::parts::Parts;
use crate::store::seam::{LogStore, SyncMode};
use crate::store::work_dir::WorkDir;
use crate::store::{memory, sqlite};

/// Where logs are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// In a work directory, in this form.
    Kept(Format),
    /// In the memory of the process.
    Memory,
}

impl Backend {
    /// All there are.
    pub const ALL: [Self; 4] = [
        Self::Kept(Format::Jsonl),
        Self::Kept(Format::JsonlZst),
        Self::Kept(Format::Sqlite),
        Self::Memory,
    ];

    /// The logs in `folder`, which becomes a work directory, locked until the last clone goes; on the
    /// real disk, behind what keeps what the disk does not take.
    ///
    /// # Panics
    /// When the folder cannot be used.
    #[must_use]
    pub fn logs(self, folder: &Path, sync: SyncMode, tasks: &Tasks) -> Arc<dyn LogStore> {
        let work_dir = prepared(folder);
        let (disk, process) = (Arc::new(RealDisk), std::process::id());
        let lock = InstanceLock::acquire(disk, &work_dir, process, System::new().now());
        let lock = Arc::new(lock.expect("nobody else uses the folder"));
        Arc::new(Coordinator::new(self.store(work_dir, sync, tasks, Some(lock)), tasks.clone()))
    }

    /// The same without the lock and with nothing before it: for logs that are made before the program
    /// starts. They need not survive the loss of power.
    ///
    /// # Panics
    /// When the folder cannot be used.
    #[must_use]
    pub fn bare(self, folder: &Path, tasks: &Tasks) -> Arc<dyn LogStore> {
        self.store(prepared(folder), SyncMode::Never, tasks, None)
    }

    fn store(
        self,
        work_dir: WorkDir,
        sync: SyncMode,
        tasks: &Tasks,
        lock: Option<Arc<InstanceLock>>,
    ) -> Arc<dyn LogStore> {
        let system = Arc::new(System::new());
        let parts = Parts {
            disk: Arc::new(RealDisk),
            clock: Arc::<System>::clone(&system),
            entropy: Arc::<System>::clone(&system),
            tasks: tasks.clone(),
            lock,
        };
        let files = |encoding| jsonl::Options { encoding, sync, ..jsonl::Options::default() };
        match self {
            Self::Kept(Format::Jsonl) => {
                Arc::new(jsonl::Store::new(work_dir, parts, files(Encoding::Lines)))
            }
            Self::Kept(Format::JsonlZst) => {
                Arc::new(jsonl::Store::new(work_dir, parts, files(Encoding::Frames)))
            }
            Self::Kept(Format::Sqlite) => {
                let options = sqlite::Options { sync, ..sqlite::Options::default() };
                Arc::new(sqlite::Store::new(work_dir, parts, options))
            }
            Self::Memory => Arc::new(memory::Store::new(system)),
        }
    }
}

fn prepared(folder: &Path) -> WorkDir {
    let work_dir = WorkDir::new(folder.to_path_buf()).expect("tests name absolute folders");
    work_dir.prepare(&RealDisk).expect("the folder can be filled");
    work_dir
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kept(format) => format.fmt(f),
            Self::Memory => f.write_str("memory"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::log::LogKind;
    use crate::store::seam::Durability;
    use crate::testing::store::{records, turn};

    #[tokio::test]
    async fn every_backend_keeps_its_logs_where_it_says_and_holds_the_folder() {
        for backend in Backend::ALL {
            let folder = tempfile::tempdir().expect("a folder for the test");
            let tasks = Tasks::new();
            drop(backend.bare(folder.path(), &tasks).create(&turn(1), &records(0..1)).await);
            let logs = backend.logs(folder.path(), SyncMode::Never, &tasks);
            let mut writer = logs.create(&turn(0), &records(0..1)).await.expect("created");
            writer.append(&records(1..3), Durability::Barrier).await.expect("appended");
            let read = logs.inspect(&turn(0)).await.expect("there");
            assert_eq!(read.records, records(0..3), "{backend}");
            let work_dir = WorkDir::new(folder.path().to_path_buf()).expect("absolute");
            let place = match backend {
                Backend::Memory => None,
                Backend::Kept(Format::Sqlite) => Some(work_dir.database()),
                Backend::Kept(Format::Jsonl | Format::JsonlZst) => {
                    logs.locate(&turn(0)).map(|location| location.path)
                }
            };
            assert!(place.is_none_or(|place| place.is_file()), "{backend}");
            let before = logs.list(LogKind::Turn).await.expect("listed").contains(&turn(1));
            assert_eq!(before, backend != Backend::Memory, "{backend}");
        }
    }
}
