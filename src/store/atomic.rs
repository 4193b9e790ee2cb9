//! Small files that change as a whole: a reader sees the old bytes or the new ones.

use std::path::Path;

use crate::store::disk::{self, Disk, Open};
use crate::store::error::IoFailure;
use crate::store::seam::{Durability, SyncMode};

/// Puts `bytes` in the place of `path`, by way of a file beside it that only one at a time may use;
/// on failure that is gone again.
pub(crate) fn replace(
    disk: &dyn Disk,
    path: &Path,
    bytes: &[u8],
    sync: SyncMode,
) -> Result<(), IoFailure> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = path.with_file_name(format!(".{name}.tmp"));
    let replaced = write(disk, &temporary, bytes, sync)
        .and_then(|()| disk.rename(&temporary, path).map_err(IoFailure::of("replace", path)));
    if replaced.is_err() {
        // Whatever is left there, the next attempt empties.
        drop(disk.unlink(&temporary));
    }
    replaced
}

/// Writes a file anew.
pub(crate) fn write(
    disk: &dyn Disk,
    path: &Path,
    bytes: &[u8],
    sync: SyncMode,
) -> Result<(), IoFailure> {
    let file = disk.open(path, Open::Emptied).map_err(IoFailure::of("create", path))?;
    disk::write(&*file, 0, bytes).map_err(IoFailure::of("write", path))?;
    if sync.waits_for(Durability::Barrier) {
        file.sync().map_err(IoFailure::of("sync", path))?;
    }
    Ok(())
}
