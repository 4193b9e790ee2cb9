//! Listing logs by their names alone.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::path::{MAIN_SEPARATOR, Path, PathBuf};

use crate::store::disk::{Entry, EntryKind};
use crate::store::error::IoFailure;
use crate::store::jsonl::files::Files;
use crate::store::log::{LogId, LogKind, Misplaced, Strays};

/// Folders between the folder of a kind and its logs: year, month, day.
const LEVELS: usize = 3;

/// All logs of a kind, sorted. A log lies in the folder of its date; what lies elsewhere, or has
/// another name, is none.
pub(super) fn list(files: &Files, kind: LogKind) -> Result<Vec<LogId>, IoFailure> {
    let mut logs = Vec::new();
    walk(files, kind, |folder, name| {
        logs.extend(files.log_of(kind, &name).filter(|log| folder.is_of(log)));
    })?;
    logs.sort_unstable();
    Ok(logs)
}

/// The folders in which the logs of a kind lie, each with when a name last came to it or went.
pub(super) fn folders(files: &Files, kind: LogKind) -> Result<Vec<(PathBuf, u64)>, IoFailure> {
    let (mut seen, mut folders) = (Vec::new(), vec![files.work_dir.logs(kind)]);
    for level in 0..=LEVELS {
        let mut below = Vec::new();
        for folder in folders {
            let changed = match files.disk.stat(&folder) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                stat => stat.map_err(IoFailure::of("look at", &folder))?.modified_ns,
            };
            if level < LEVELS {
                let names = names(files, &folder, EntryKind::Folder)?;
                below.extend(names.into_iter().map(|name| folder.join(name)));
            }
            seen.push((folder, changed));
        }
        folders = below;
    }
    seen.sort_unstable();
    Ok(seen)
}

/// The logs of a kind that lie elsewhere, each once and without those that are in their place too,
/// and what was cut off logs.
pub(super) fn strays(files: &Files, kind: LogKind) -> Result<Strays, IoFailure> {
    let (mut strays, mut placed) = (Strays::default(), BTreeSet::new());
    walk(files, kind, |folder, name| {
        if files.is_set_aside(&name) {
            strays.set_aside.push(folder.path.join(name));
        } else if let Some(log) = files.log_of(kind, &name) {
            if folder.is_of(&log) {
                placed.insert(log);
            } else {
                let (found, belongs) = (folder.path.join(name), files.file(&log));
                strays.misplaced.push(Misplaced { log, found, belongs });
            }
        }
    })?;
    strays.set_aside.sort_unstable();
    strays.misplaced.sort_unstable_by(|a, b| (&a.log, &a.found).cmp(&(&b.log, &b.found)));
    strays.misplaced.dedup_by(|later, first| later.log == first.log);
    strays.misplaced.retain(|stray| !placed.contains(&stray.log));
    Ok(strays)
}

/// A folder in which logs may lie.
struct Folder {
    path: PathBuf,
    /// The day whose logs belong here, as their ids begin.
    day: Option<String>,
}

impl Folder {
    fn new(path: PathBuf, logs: &Path) -> Self {
        let below = path.strip_prefix(logs).ok().and_then(Path::to_str);
        let day = below.map(|below| below.replace(MAIN_SEPARATOR, "-"));
        Self { path, day }
    }

    fn is_of(&self, log: &LogId) -> bool {
        self.day.as_deref() == Some(log.day())
    }
}

/// Goes over everything in the folders of a kind that is no folder on the way down, whatever it is:
/// what has the name of a log and is no file is a damaged log.
fn walk(
    files: &Files,
    kind: LogKind,
    mut found: impl FnMut(&Folder, OsString),
) -> Result<(), IoFailure> {
    let logs = files.work_dir.logs(kind);
    let mut folders = vec![logs.clone()];
    for level in 0..=LEVELS {
        let mut below: Vec<PathBuf> = Vec::new();
        for folder in folders {
            let folder = Folder::new(folder, &logs);
            for Entry { name, kind } in entries(files, &folder.path)? {
                if kind == EntryKind::Folder && level < LEVELS {
                    below.push(folder.path.join(name));
                } else {
                    found(&folder, name);
                }
            }
        }
        folders = below;
    }
    Ok(())
}

/// The names of one kind in a folder; none if the folder is not there.
pub(super) fn names(
    files: &Files,
    folder: &Path,
    kind: EntryKind,
) -> Result<Vec<OsString>, IoFailure> {
    let found = entries(files, folder)?.into_iter().filter(|entry| entry.kind == kind);
    Ok(found.map(|entry| entry.name).collect())
}

fn entries(files: &Files, folder: &Path) -> Result<Vec<Entry>, IoFailure> {
    match files.disk.entries(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        entries => entries.map_err(IoFailure::of("list", folder)),
    }
}
