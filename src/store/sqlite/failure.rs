//! What SQLite says, as errors of the store.

use std::io;
use std::path::Path;

use rusqlite::ErrorCode;
use rusqlite::ffi::SQLITE_IOERR_SHMSIZE;

use crate::store::error::{IoFailure, StoreError};

/// Why a transaction was not finished.
pub(super) enum Failure {
    /// SQLite refused.
    Sql(rusqlite::Error),
    /// What was found refuses it.
    Refused(StoreError),
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Refused(error)
    }
}

impl Failure {
    /// The same as an error of the store, of something that was tried with the database at `path`.
    pub(super) fn told(self, action: &'static str, path: &Path) -> StoreError {
        match self {
            Self::Sql(error) => told(action, path)(error),
            Self::Refused(error) => error,
        }
    }
}

/// For `map_err`: what was tried with the database at `path`.
pub(super) fn told(
    action: &'static str,
    path: &Path,
) -> impl FnOnce(rusqlite::Error) -> StoreError {
    move |error| match damage(&error) {
        Some(why) => StoreError::Damaged { path: path.to_path_buf(), why },
        None => io(action, path)(error).into(),
    }
}

/// For `map_err`: the same as a failure of the system, whatever it was.
pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(rusqlite::Error) -> IoFailure {
    move |error| IoFailure::of(action, path)(io::Error::new(kind(&error), error))
}

/// What is wrong with the contents of the database, if that is what the error says.
pub(super) fn damage(error: &rusqlite::Error) -> Option<String> {
    match error.sqlite_error_code() {
        // A table that is gone, or a value of another type than its column's.
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::Unknown) | None => {
            Some(error.to_string())
        }
        Some(_) => None,
    }
}

/// Whether nothing is known any more of what was not yet safe on the device.
pub(super) fn is_doubtful(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::SystemIoFailure)
}

/// Whether there was no room.
pub(super) fn is_full(error: &rusqlite::Error) -> bool {
    kind(error) == io::ErrorKind::StorageFull
}

fn kind(error: &rusqlite::Error) -> io::ErrorKind {
    let extended = error.sqlite_error().map(|error| error.extended_code);
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => io::ErrorKind::StorageFull,
        // The file that readers and the writer share cannot grow.
        Some(ErrorCode::SystemIoFailure) if extended == Some(SQLITE_IOERR_SHMSIZE) => {
            io::ErrorKind::StorageFull
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => io::ErrorKind::ResourceBusy,
        Some(ErrorCode::ReadOnly) => io::ErrorKind::ReadOnlyFilesystem,
        Some(ErrorCode::PermissionDenied) => io::ErrorKind::PermissionDenied,
        Some(ErrorCode::OutOfMemory) => io::ErrorKind::OutOfMemory,
        _ => io::ErrorKind::Other,
    }
}
