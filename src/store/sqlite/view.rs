//! How the database is read by a process that has not written it: so that nothing is written, not even
//! what SQLite puts beside a database for those who share it, and also where nothing can be written.

use std::fmt::Write as _;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::store::disk::{Disk, Stat};
use crate::store::error::IoFailure;
use crate::store::lock::InstanceLock;
use crate::store::sqlite::database::beside;

/// A way to read the database. What was read in one that names files is worth something only if they
/// are still the same afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum View {
    /// As everybody does who writes it, with all that comes with that.
    Shared,
    /// The file alone, as it is: its journal is empty, and whoever moves anything into the file fills
    /// that first.
    Still(State),
    /// Beside a process that writes, or after one that was killed: of what they share, nothing is
    /// written.
    Beside,
    /// The file and its journal, without anything shared: that is not there, so nobody writes.
    Alone {
        /// The file.
        database: State,
        /// Its journal.
        journal: State,
    },
}

/// What is another once a file has been written. Its owner is not of it: where the one who may everything
/// opens a journal, SQLite gives it to the owner of the database each time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct State {
    device: u64,
    inode: u64,
    size: u64,
    modified_ns: u64,
}

impl From<Stat> for State {
    fn from(stat: Stat) -> Self {
        let Stat { device, inode, size, modified_ns, .. } = stat;
        Self { device, inode, size, modified_ns }
    }
}

impl View {
    /// The way to read the database at `path` now. Who holds the lock may do what is needed to go on
    /// with a journal that somebody left.
    pub(super) fn now(
        disk: &dyn Disk,
        path: &Path,
        lock: Option<&InstanceLock>,
    ) -> Result<Self, IoFailure> {
        let database = disk.stat(path).map_err(IoFailure::of("look at", path))?.into();
        let filled = |suffix| {
            let found = found(disk, &beside(path, suffix))?;
            Ok(found.filter(|stat| stat.size > 0))
        };
        if filled("-journal")?.is_some() {
            // Not how this program writes; SQLite says what it makes of it.
            return Ok(Self::Shared);
        }
        let Some(journal) = filled("-wal")? else { return Ok(Self::Still(database)) };
        if lock.is_some() {
            return Ok(Self::Shared);
        }
        let shared = found(disk, &beside(path, "-shm"))?;
        Ok(if shared.is_some() { Self::Beside } else { Self::Alone { database, journal } })
    }

    /// A connection that reads in this way; `None` for those that share, which others make.
    pub(super) fn connect(self, path: &Path) -> Option<rusqlite::Result<Connection>> {
        match self {
            Self::Shared => None,
            Self::Still(_) => Some(look(path, "immutable=1")),
            Self::Beside => Some(look(path, "readonly_shm=1")),
            Self::Alone { .. } => Some(look(path, "vfs=unix-none").and_then(alone)),
        }
    }
}

/// Keeps what others would share in the memory of this connection, and the journal where it is.
fn alone(connection: Connection) -> rusqlite::Result<Connection> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.query_row("PRAGMA locking_mode = EXCLUSIVE", [], |_| Ok(()))?;
    Ok(connection)
}

/// A connection that reads, with these parameters.
pub(super) fn look(path: &Path, how: &str) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(uri(path, how), flags)
}

/// A path as SQLite takes it together with parameters. Whatever could mean something is escaped.
fn uri(path: &Path, parameters: &str) -> String {
    let mut uri = "file:".to_owned();
    for byte in path.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(byte) {
            uri.push(char::from(*byte));
        } else {
            write!(uri, "%{byte:02X}").ok();
        }
    }
    uri + "?" + parameters
}

fn found(disk: &dyn Disk, path: &Path) -> Result<Option<State>, IoFailure> {
    match disk.stat(path) {
        Ok(stat) => Ok(Some(stat.into())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(IoFailure::of("look at", path)(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_escaped_but_for_what_means_nothing() {
        let path = Path::new("/a b/?x=1#%/\u{e9}/turnstile.db");
        let expected = "file:/a%20b/%3Fx%3D1%23%25/%C3%A9/turnstile.db?immutable=1";
        assert_eq!(uri(path, "immutable=1"), expected);
    }
}
