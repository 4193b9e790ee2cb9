//! What SQLite says, as errors of the store.

use std::io;
use std::path::Path;

use rusqlite::ErrorCode;
use rusqlite::ffi::{
    SQLITE_ERROR, SQLITE_IOERR_DIR_FSYNC, SQLITE_IOERR_FSYNC, SQLITE_IOERR_SHMSIZE,
};
use rustix::io::Errno;

use crate::store::error::{IoFailure, StoreError};

/// Why a transaction was not finished.
pub(super) enum Failure {
    /// SQLite refused.
    Sql(Said),
    /// What was found refuses it.
    Refused(StoreError),
}

/// What SQLite says, and what the system said to it.
pub(super) struct Said {
    error: rusqlite::Error,
    /// Only where SQLite blames the system, and keeps the reason to itself.
    system: Option<i32>,
}

/// To be made where the error comes, on the thread on which SQLite was called.
impl From<rusqlite::Error> for Said {
    fn from(error: rusqlite::Error) -> Self {
        let system = match error.sqlite_error_code() {
            Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen) => {
                io::Error::last_os_error().raw_os_error()
            }
            _ => None,
        };
        Self { error, system }
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error.into())
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
            Self::Sql(said) => said.told(action, path),
            Self::Refused(error) => error,
        }
    }
}

/// For `map_err`: what was tried with the database at `path`.
pub(super) fn told(
    action: &'static str,
    path: &Path,
) -> impl FnOnce(rusqlite::Error) -> StoreError {
    move |error| Said::from(error).told(action, path)
}

impl Said {
    fn told(self, action: &'static str, path: &Path) -> StoreError {
        match damage(&self.error) {
            Some(why) => StoreError::Damaged { path: path.to_path_buf(), why },
            None => self.io(action, path).into(),
        }
    }

    /// The same as a failure of the system, whatever it was.
    pub(super) fn io(self, action: &'static str, path: &Path) -> IoFailure {
        let cause = match self.want() {
            Some(want) => io::Error::from_raw_os_error(want),
            None => io::Error::new(self.kind(), self.error),
        };
        IoFailure::of(action, path)(cause)
    }

    /// Whether nothing is known any more of what was not yet safe on the device.
    pub(super) fn is_doubtful(&self) -> bool {
        let of_sync = [SQLITE_IOERR_FSYNC, SQLITE_IOERR_DIR_FSYNC].map(Some);
        // What a write was refused for want of room, SQLite has taken back.
        self.error.sqlite_error_code() == Some(ErrorCode::SystemIoFailure)
            && (!self.is_full() || of_sync.contains(&self.extended()))
    }

    /// Whether there was no room.
    pub(super) fn is_full(&self) -> bool {
        self.want().is_some() || self.kind() == io::ErrorKind::StorageFull
    }

    /// Which want of space, quota or descriptors the system named, if it was that.
    fn want(&self) -> Option<i32> {
        let wants = [Errno::NOSPC, Errno::DQUOT, Errno::MFILE, Errno::NFILE];
        let wants = wants.map(Errno::raw_os_error);
        self.system.filter(|said| wants.contains(said))
    }

    fn kind(&self) -> io::ErrorKind {
        match self.error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => io::ErrorKind::StorageFull,
            // The file that readers and the writer share cannot grow.
            Some(ErrorCode::SystemIoFailure) if self.extended() == Some(SQLITE_IOERR_SHMSIZE) => {
                io::ErrorKind::StorageFull
            }
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                io::ErrorKind::ResourceBusy
            }
            Some(ErrorCode::ReadOnly) => io::ErrorKind::ReadOnlyFilesystem,
            Some(ErrorCode::PermissionDenied) => io::ErrorKind::PermissionDenied,
            Some(ErrorCode::OutOfMemory) => io::ErrorKind::OutOfMemory,
            _ => io::ErrorKind::Other,
        }
    }

    fn extended(&self) -> Option<i32> {
        self.error.sqlite_error().map(|error| error.extended_code)
    }
}

/// What is wrong with the contents of the database, if that is what the error says.
pub(super) fn damage(error: &rusqlite::Error) -> Option<String> {
    let is_damage = match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => true,
        // Our statements are right, so a table or a column of theirs is gone.
        Some(ErrorCode::Unknown) => {
            error.sqlite_error().is_some_and(|error| error.extended_code == SQLITE_ERROR)
        }
        Some(_) => false,
        None => is_other_value(error),
    };
    is_damage.then(|| error.to_string())
}

/// Whether a row is missing that every database has, or a value is of another type than its column's.
fn is_other_value(error: &rusqlite::Error) -> bool {
    matches!(
        error,
        rusqlite::Error::QueryReturnedNoRows
            | rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::Utf8Error(..)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::error::Trouble;
    use rusqlite::ffi::{
        Error, SQLITE_BUSY, SQLITE_BUSY_SNAPSHOT, SQLITE_CANTOPEN, SQLITE_CORRUPT, SQLITE_FULL,
        SQLITE_IOERR_READ, SQLITE_IOERR_WRITE, SQLITE_PERM, SQLITE_PROTOCOL, SQLITE_READONLY,
    };

    /// What SQLite says with this code, after the system has said this.
    fn said(code: i32, system: Option<Errno>) -> Said {
        let error = rusqlite::Error::SqliteFailure(Error::new(code), None);
        Said { error, system: system.map(Errno::raw_os_error) }
    }

    fn trouble(code: i32, system: Option<Errno>) -> Option<Trouble> {
        said(code, system).told("append to", Path::new("/db")).trouble()
    }

    #[test]
    fn want_of_room_quota_descriptors_or_of_somebody_else_s_end_passes_by_itself() {
        for (code, system) in [
            (SQLITE_FULL, None),
            (SQLITE_IOERR_SHMSIZE, None),
            (SQLITE_IOERR_WRITE, Some(Errno::DQUOT)),
            (SQLITE_IOERR_WRITE, Some(Errno::NOSPC)),
            (SQLITE_CANTOPEN, Some(Errno::MFILE)),
            (SQLITE_CANTOPEN, Some(Errno::NFILE)),
            (SQLITE_BUSY, None),
            (SQLITE_BUSY_SNAPSHOT, None),
        ] {
            assert_eq!(trouble(code, system), Some(Trouble::Want), "{code} {system:?}");
        }
        for (code, system) in [
            (SQLITE_IOERR_WRITE, Some(Errno::IO)),
            (SQLITE_IOERR_READ, None),
            (SQLITE_CANTOPEN, Some(Errno::ACCESS)),
            (SQLITE_READONLY, None),
            (SQLITE_PERM, None),
        ] {
            assert_eq!(trouble(code, system), Some(Trouble::Other), "{code} {system:?}");
        }
    }

    #[test]
    fn what_the_system_said_is_told_where_it_is_a_want() {
        let told = said(SQLITE_IOERR_WRITE, Some(Errno::DQUOT)).told("append to", Path::new("/db"));
        assert_eq!(
            told.cause(),
            io::Error::from(Errno::DQUOT).to_string().replace(" (os error 122)", "")
        );
        assert!(told.to_string().starts_with("cannot append to /db: "), "{told}");
    }

    #[test]
    fn only_what_the_device_refused_for_no_want_of_room_makes_the_rest_doubtful() {
        for (code, system, doubtful) in [
            (SQLITE_IOERR_WRITE, Some(Errno::IO), true),
            (SQLITE_IOERR_WRITE, Some(Errno::DQUOT), false),
            (SQLITE_IOERR_FSYNC, Some(Errno::DQUOT), true),
            (SQLITE_IOERR_FSYNC, None, true),
            (SQLITE_IOERR_SHMSIZE, None, false),
            (SQLITE_FULL, None, false),
            (SQLITE_BUSY, None, false),
        ] {
            assert_eq!(said(code, system).is_doubtful(), doubtful, "{code} {system:?}");
        }
    }

    #[test]
    fn only_what_is_wrong_with_the_contents_is_damage() {
        let is_damage = |code| damage(&said(code, None).error).is_some();
        assert!(is_damage(SQLITE_CORRUPT) && is_damage(SQLITE_ERROR));
        assert!(!is_damage(SQLITE_PROTOCOL) && !is_damage(SQLITE_BUSY));
        assert!(damage(&rusqlite::Error::QueryReturnedNoRows).is_some());
        assert_eq!(damage(&rusqlite::Error::InvalidQuery), None);
        assert_eq!(damage(&rusqlite::Error::ExecuteReturnedResults), None);
    }
}
