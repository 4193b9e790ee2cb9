//! Destroying for good what stands beside a removed log, whatever keeps the log itself.

use std::io;
use std::path::Path;

use crate::store::disk::{Disk, EntryKind};
use crate::store::error::IoFailure;
use crate::store::log::LogId;
use crate::store::work_dir::WorkDir;

/// Deeper than any folder that is set aside with a log.
const DEPTH_MAX: usize = 8;

/// Destroys what a turn's tools had put out; nothing, for other logs. Goes before the log: without
/// that nobody would find it again.
pub(super) fn output(disk: &dyn Disk, work_dir: &WorkDir, log: &LogId) -> Result<(), IoFailure> {
    work_dir.output_of(log).map_or(Ok(()), |output| folder_if_there(disk, &output))
}

/// Destroys a folder with all that is in it, if it is there. Links are not followed.
pub(super) fn folder_if_there(disk: &dyn Disk, path: &Path) -> Result<(), IoFailure> {
    match disk.stat(path) {
        Ok(_) => folder(disk, path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(IoFailure::of("look at", path)(error)),
    }
}

/// Destroys a folder with all that is in it. Links are not followed.
pub(super) fn folder(disk: &dyn Disk, path: &Path) -> Result<(), IoFailure> {
    emptied(disk, path, DEPTH_MAX)
}

fn emptied(disk: &dyn Disk, folder: &Path, depth: usize) -> Result<(), IoFailure> {
    for entry in disk.entries(folder).map_err(IoFailure::of("list", folder))? {
        let path = folder.join(entry.name);
        if entry.kind == EntryKind::Folder && depth > 0 {
            emptied(disk, &path, depth - 1)?;
        } else {
            disk.unlink(&path).map_err(IoFailure::of("delete", &path))?;
        }
    }
    disk.remove_folder(folder).map_err(IoFailure::of("delete the folder", folder))
}
