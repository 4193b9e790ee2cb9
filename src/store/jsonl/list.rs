//! Listing logs by their names alone.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use crate::store::disk::EntryKind;
use crate::store::error::IoFailure;
use crate::store::jsonl::files::{Files, log_of};
use crate::store::log::{LogId, LogKind};

/// Folders between the folder of a kind and its logs: year, month, day.
const LEVELS: usize = 3;

/// All logs of a kind, sorted. A log lies in the folder of its date; what lies elsewhere, or has
/// another name, is none.
pub(super) fn list(files: &Files, kind: LogKind) -> Result<Vec<LogId>, IoFailure> {
    let mut folders = vec![files.work_dir.logs(kind)];
    for _ in 0..LEVELS {
        folders = below(files, &folders)?;
    }
    let mut logs = Vec::new();
    for folder in &folders {
        let names = names(files, folder, EntryKind::File)?;
        let found = names.iter().filter_map(|name| log_of(kind, name));
        logs.extend(found.filter(|log| files.work_dir.dated(log) == *folder));
    }
    logs.sort_unstable();
    Ok(logs)
}

fn below(files: &Files, folders: &[PathBuf]) -> Result<Vec<PathBuf>, IoFailure> {
    let mut below = Vec::new();
    for folder in folders {
        let names = names(files, folder, EntryKind::Folder)?;
        below.extend(names.iter().map(|name| folder.join(name)));
    }
    Ok(below)
}

/// The names of one kind in a folder; none if the folder is not there.
pub(super) fn names(
    files: &Files,
    folder: &Path,
    kind: EntryKind,
) -> Result<Vec<OsString>, IoFailure> {
    match files.disk.entries(folder) {
        Ok(entries) => Ok(entries
            .into_iter()
            .filter(|entry| entry.kind == kind)
            .map(|entry| entry.name)
            .collect()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(IoFailure::of("list", folder)(error)),
    }
}
