//! How many logs there are, how much room they take, and which take most.

use std::cmp::Reverse;
use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::base::tasks::Tasks;
use crate::store::blocking::blocking;
use crate::store::disk::{Disk, EntryKind};
use crate::store::error::{IoFailure, StoreError};
use crate::store::log::{LogId, LogKind};
use crate::store::seam::LogStore;
use crate::store::work_dir::WorkDir;

/// How many logs are named as the largest.
pub const LARGEST_MAX: usize = 10;
/// Deeper than any folder of a work directory.
const DEPTH_MAX: usize = 8;

/// What there is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Sessions.
    pub sessions: Sum,
    /// Turns.
    pub turns: Sum,
    /// Logs that were removed and can be restored.
    pub removed: u64,
    /// Torn ends that were cut off logs and kept.
    pub set_aside: u64,
    /// Logs whose size cannot be told.
    pub unknown: u64,
    /// The largest logs, each with its bytes, the largest first.
    pub largest: Vec<(LogId, u64)>,
    /// Everything in the work directory by what it is for, in bytes; what is not there takes none.
    pub places: Vec<(&'static str, u64)>,
}

/// A number of logs and what they take together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// How many.
    pub logs: u64,
    /// How many bytes.
    pub bytes: u64,
}

/// Weighs everything.
///
/// # Errors
/// [`StoreError`] if the logs cannot be listed or a folder cannot be read.
pub async fn stats(
    store: &Arc<dyn LogStore>,
    disk: Arc<dyn Disk>,
    work_dir: WorkDir,
    tasks: &Tasks,
) -> Result<Stats, StoreError> {
    let mut stats = Stats::default();
    for kind in [LogKind::Session, LogKind::Turn] {
        let logs = store.list(kind).await?;
        let weigh = {
            let store = Arc::clone(store);
            move || logs.into_iter().map(|log| (store.size(&log).ok(), log)).collect::<Vec<_>>()
        };
        let weighed = blocking(tasks, weigh).await?;
        stats.add(kind, weighed);
        stats.set_aside += store.strays(kind).await?.set_aside.len() as u64;
    }
    stats.removed = store.removed().await?.len() as u64;
    stats.places = blocking(tasks, move || places(&*disk, &work_dir)).await??;
    Ok(stats)
}

impl Stats {
    fn add(&mut self, kind: LogKind, weighed: Vec<(Option<u64>, LogId)>) {
        let mut sum = Sum::default();
        for (bytes, log) in weighed {
            sum.logs += 1;
            match bytes {
                Some(bytes) => {
                    sum.bytes += bytes;
                    self.largest.push((log, bytes));
                }
                None => self.unknown += 1,
            }
        }
        self.largest.sort_unstable_by(|a, b| (Reverse(a.1), &a.0).cmp(&(Reverse(b.1), &b.0)));
        self.largest.truncate(LARGEST_MAX);
        match kind {
            LogKind::Session => self.sessions = sum,
            LogKind::Turn => self.turns = sum,
        }
    }
}

fn places(disk: &dyn Disk, work_dir: &WorkDir) -> Result<Vec<(&'static str, u64)>, IoFailure> {
    let places = [
        ("sessions and turns", work_dir.storage()),
        ("deleted, can be restored", work_dir.deleted()),
        ("waiting messages", work_dir.runtime_state()),
        ("drafts and history", work_dir.composer()),
        ("output of tools", work_dir.root().join(WorkDir::OUTPUT)),
    ];
    places.into_iter().map(|(what, folder)| Ok((what, weight(disk, &folder, DEPTH_MAX)?))).collect()
}

/// The bytes of all files in a folder. Links are not followed; what goes meanwhile counts no more.
fn weight(disk: &dyn Disk, folder: &Path, depth: usize) -> Result<u64, IoFailure> {
    let entries = match disk.entries(folder) {
        Err(error) if is_gone(&error) => return Ok(0),
        entries => entries.map_err(IoFailure::of("list", folder))?,
    };
    let mut bytes = 0;
    for entry in entries {
        let path = folder.join(&entry.name);
        bytes += match entry.kind {
            EntryKind::Folder if depth > 0 => weight(disk, &path, depth - 1)?,
            EntryKind::File => match disk.stat(&path) {
                Err(error) if is_gone(&error) => 0,
                stat => stat.map_err(IoFailure::of("look at", &path))?.size,
            },
            EntryKind::Folder | EntryKind::Special => 0,
        };
    }
    Ok(bytes)
}

fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
