//! Making a log: written beside its place under another name, made durable, then published.

use std::io;
use std::path::Path;

use crate::store::disk::{self, DiskFile, Open};
use crate::store::error::{IoFailure, StoreError};
use crate::store::jsonl::append::{Batch, Tail};
use crate::store::jsonl::files::Files;
use crate::store::jsonl::publish::publish;
use crate::store::jsonl::read::Acked;
use crate::store::log::LogId;

/// Makes the log of these records, or nothing.
pub(super) fn create(
    files: &Files,
    log: &LogId,
    batch: Batch<'_>,
) -> Result<(Tail, Acked), StoreError> {
    files.check_lock()?;
    let path = files.file(log);
    let temporary = files.temporary(&path);
    let file = open_new(files, &temporary)?;
    let made = fill(files, &*file, &temporary, batch.bytes)
        .map_err(StoreError::from)
        .and_then(|()| publish(files, &temporary, log));
    if let Err(error) = made {
        drop(files.disk.unlink(&temporary));
        return Err(error);
    }
    let mut tail = Tail::new(log, path, file, batch.bytes.len() as u64, batch.records);
    let acked = tail.acked(files).inspect_err(|_| drop(files.disk.unlink(&files.file(log))))?;
    Ok((tail, acked))
}

/// Opens a new file, in a folder that is made if it is not there.
fn open_new(files: &Files, path: &Path) -> Result<Box<dyn DiskFile>, IoFailure> {
    match files.disk.open(path, Open::New) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let folder = path.parent().unwrap_or(path);
            disk::make_folders(&*files.disk, folder)
                .map_err(IoFailure::of("make the folder", folder))?;
            files.disk.open(path, Open::New)
        }
        opened => opened,
    }
    .map_err(IoFailure::of("create", path))
}

fn fill(files: &Files, file: &dyn DiskFile, path: &Path, bytes: &[u8]) -> Result<(), IoFailure> {
    disk::write(file, 0, bytes).map_err(IoFailure::of("write", path))?;
    files.stamp(file, path)?;
    if files.syncs() {
        file.sync().map_err(IoFailure::of("sync", path))?;
    }
    Ok(())
}
