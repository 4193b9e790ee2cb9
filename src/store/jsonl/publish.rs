//! Giving a finished file its name, if nobody has it: by a hard link, else by a rename that refuses
//! to replace, else by looking first, under the instance lock. What has a name that counts is renamed
//! first: of a link, a crash could leave both names.

use std::io;
use std::path::Path;
use std::sync::atomic::Ordering;

use crate::store::error::{IoFailure, StoreError};
use crate::store::jsonl::files::Files;
use crate::store::log::LogId;

/// Moves the file `from` to the name of the log. On success the new name is durable, if the mode
/// asks for that, and the old one is gone; on failure the old one is there.
pub(super) fn publish(files: &Files, from: &Path, log: &LogId) -> Result<(), StoreError> {
    let path = files.file(log);
    let refusal = match files.disk.link(from, &path) {
        Ok(()) => {
            if let Err(error) = files.sync_folder_of(&path) {
                drop(files.disk.unlink(&path));
                return Err(error.into());
            }
            if let Err(error) = files.disk.unlink(from) {
                // A second name that is no log's harms nobody.
                tracing::warn!(%error, path = %from.display(), "a temporary file is left");
            }
            return Ok(());
        }
        Err(error) => error,
    };
    rename(files, from, log, refusal)?;
    if let Err(error) = files.sync_folder_of(&path) {
        drop(files.disk.rename(&path, from));
        return Err(error.into());
    }
    Ok(())
}

/// The same, of a file whose old name counts, too: of both there is always one, also over a crash, as
/// far as the file system can do that.
pub(super) fn put_back(files: &Files, from: &Path, log: &LogId) -> Result<(), StoreError> {
    let path = files.file(log);
    match files.disk.rename_new(from, &path) {
        Ok(()) => {}
        Err(refusal) if is_unable(&refusal) => return publish(files, from, log),
        Err(error) => return Err(failed(files, log)(error)),
    }
    if let Err(error) = files.sync_folder_of(&path) {
        drop(files.disk.rename(&path, from));
        return Err(error.into());
    }
    Ok(())
}

fn rename(files: &Files, from: &Path, log: &LogId, refusal: io::Error) -> Result<(), StoreError> {
    let path = files.file(log);
    let failed = failed(files, log);
    if !is_unable(&refusal) {
        return Err(failed(refusal));
    }
    match files.disk.rename_new(from, &path) {
        Err(refusal) if is_unable(&refusal) => {}
        renamed => return renamed.map_err(&failed),
    }
    match files.disk.stat(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
        Ok(_) => return Err(StoreError::AlreadyExists(files.place(log))),
    }
    files.disk.rename(from, &path).map_err(failed)?;
    files.unexclusive.store(true, Ordering::Relaxed);
    Ok(())
}

/// For `map_err`: why the log did not get its name.
fn failed<'a>(files: &'a Files, log: &'a LogId) -> impl Fn(io::Error) -> StoreError + 'a {
    move |error| match error.kind() {
        io::ErrorKind::AlreadyExists => StoreError::AlreadyExists(files.place(log)),
        _ => IoFailure::of("publish", &files.file(log))(error).into(),
    }
}

/// Whether the file system cannot do this at all, as against having failed at it.
fn is_unable(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::PermissionDenied
            | io::ErrorKind::Unsupported
            | io::ErrorKind::InvalidInput
            | io::ErrorKind::TooManyLinks
    )
}
