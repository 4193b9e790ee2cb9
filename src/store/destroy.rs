//! Destroying for good what stands beside a removed log, whatever keeps the log itself.

use std::io;
use std::path::Path;

use crate::store::disk::{self, Disk, EntryKind};
use crate::store::error::IoFailure;
use crate::store::log::LogId;
use crate::store::work_dir::WorkDir;

/// Deeper than any folder that is kept for a log.
const DEPTH_MAX: usize = 8;

/// Destroys what a turn's tools had put out; nothing, for other logs. Goes before the log: without
/// that nobody would find it again.
pub(super) fn output(disk: &dyn Disk, work_dir: &WorkDir, log: &LogId) -> Result<(), IoFailure> {
    work_dir.output_of(log).map_or(Ok(()), |output| folder(disk, &output))
}

/// Destroys a folder with all that is in it, if it is there. Links are not followed, and what somebody
/// else destroys meanwhile is gone as well.
pub(crate) fn folder(disk: &dyn Disk, path: &Path) -> Result<(), IoFailure> {
    to_depth(disk, path, DEPTH_MAX)
}

fn to_depth(disk: &dyn Disk, folder: &Path, depth: usize) -> Result<(), IoFailure> {
    let entries = match disk.entries(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(IoFailure::of("list", folder))?,
    };
    for entry in entries {
        let path = folder.join(entry.name);
        if entry.kind == EntryKind::Folder && depth > 0 {
            to_depth(disk, &path, depth - 1)?;
        } else {
            disk::unlink_if_there(disk, &path).map_err(IoFailure::of("delete", &path))?;
        }
    }
    match disk.remove_folder(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        gone => gone.map_err(IoFailure::of("delete the folder", folder)),
    }
}
