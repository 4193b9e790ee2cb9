//! The database as a file: made whole or not at all, looked at before it is opened, and read by as
//! many connections as there are readers.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, Transaction};

use crate::store::disk::{self, Open, Stat};
use crate::store::error::{IoFailure, StoreError, Unsupported};
use crate::store::parts::Parts;
use crate::store::sqlite::failure::{self, Failure};
use crate::store::sqlite::header::{self, APPLICATION, VERSION};
use crate::store::work_dir::WorkDir;

const SCHEMA: &str = include_str!("schema.sql");
/// How long a connection waits for another process: longer than any of our transactions takes.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Connections for readers that are kept for the next; as many as read at once in most runs.
const READERS_KEPT_MAX: usize = 8;
/// Between statements that are compiled again and those that take memory for nothing: more than this
/// backend has.
const STATEMENTS_MAX: usize = 32;
/// What SQLite puts beside a database while it works on it.
const BESIDE: [&str; 3] = ["-wal", "-shm", "-journal"];

/// The file and its surroundings.
pub(super) struct Database {
    pub(super) parts: Parts,
    pub(super) work_dir: WorkDir,
    pub(super) path: PathBuf,
    /// Which file was looked at and found to be ours.
    known: Mutex<Option<Stat>>,
    readers: Mutex<Vec<Connection>>,
}

/// For what a connection is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    Read,
    Write,
}

impl Database {
    pub(super) fn new(work_dir: WorkDir, parts: Parts) -> Self {
        let path = work_dir.database();
        Self { parts, work_dir, path, known: Mutex::default(), readers: Mutex::default() }
    }

    /// The file in which SQLite keeps what is not in the database yet.
    pub(super) fn wal(&self) -> PathBuf {
        beside(&self.path, "-wal")
    }

    /// Refuses when somebody else may be writing the work directory.
    pub(super) fn check_lock(&self) -> Result<(), StoreError> {
        let lock = self.parts.lock.as_ref();
        lock.map_or(Ok(()), |lock| lock.check()).map_err(StoreError::LockLost)
    }

    /// Whether there is a database; refuses one that is not ours, or not the one that it was.
    pub(super) fn is_there(&self) -> Result<bool, StoreError> {
        let mut known = lock(&self.known);
        let Some(ours) = *known else {
            *known = header::check(&*self.parts.disk, &self.path)?;
            return Ok(known.is_some());
        };
        match self.parts.disk.stat(&self.path) {
            Ok(stat) if (stat.device, stat.inode) == (ours.device, ours.inode) => Ok(true),
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(IoFailure::of("look at", &self.path)(error).into())
            }
            Ok(_) | Err(_) => Err(self.unsupported(Unsupported::Replaced)),
        }
    }

    /// Reads in one transaction, on this thread. `None` if there is no database.
    pub(super) fn read<T>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, Failure>,
    ) -> Result<Option<T>, StoreError> {
        if !self.is_there()? {
            return Ok(None);
        }
        let kept = lock(&self.readers).pop();
        let mut connection = kept.map_or_else(|| self.connect(Access::Read), Ok)?;
        let read = connection.transaction().map_err(Failure::from).and_then(|t| work(&t));
        let found = read.map_err(|failure| failure.told("read", &self.path))?;
        let mut readers = lock(&self.readers);
        if readers.len() < READERS_KEPT_MAX {
            readers.push(connection);
        }
        Ok(Some(found))
    }

    /// Closes the connections that nobody reads on.
    pub(super) fn let_readers_go(&self) {
        lock(&self.readers).clear();
    }

    /// A connection that may write. Makes the database if there is none.
    pub(super) fn writable(&self) -> Result<Connection, StoreError> {
        if !self.is_there()? {
            self.make()?;
            self.is_there()?;
        }
        self.connect(Access::Write)
    }

    fn connect(&self, access: Access) -> Result<Connection, StoreError> {
        let flags = match access {
            Access::Read => OpenFlags::SQLITE_OPEN_READ_ONLY,
            Access::Write => OpenFlags::SQLITE_OPEN_READ_WRITE,
        };
        let connected = open(&self.path, flags).and_then(|connection| {
            // What a writer moves into the database is for it to say, and to hear of failures.
            connection.pragma_update(None, "wal_autocheckpoint", 0)?;
            let journal: String =
                connection.query_row("PRAGMA journal_mode", [], |row| row.get(0))?;
            Ok((connection, journal))
        });
        match connected.map_err(failure::told("open", &self.path))? {
            (connection, journal) if journal == "wal" => Ok(connection),
            _ => Err(self.unsupported(Unsupported::Unshared)),
        }
    }

    /// Makes the database beside its place and puts it there, unless somebody else has.
    fn make(&self) -> Result<(), StoreError> {
        let folder = self.path.parent().unwrap_or(&self.path);
        let disk = &*self.parts.disk;
        disk::make_folders(disk, folder).map_err(IoFailure::of("make the folder", folder))?;
        let temporary =
            folder.join(format!(".turnstile.db.{:016x}.tmp", self.parts.entropy.bits()));
        let made = self.fill(&temporary).and_then(|()| self.publish(&temporary));
        for beside in BESIDE.map(|suffix| beside(&temporary, suffix)).iter().chain([&temporary]) {
            if let Err(error) = disk::unlink_if_there(disk, beside) {
                tracing::warn!(%error, path = %beside.display(), "a temporary file is left");
            }
        }
        made
    }

    fn fill(&self, temporary: &Path) -> Result<(), StoreError> {
        let disk = &*self.parts.disk;
        // Private from its first byte on; what SQLite puts beside it gets the same mode.
        drop(disk.open(temporary, Open::New).map_err(IoFailure::of("create", temporary))?);
        let identity = self.parts.entropy.bits().cast_signed();
        let filled =
            open(temporary, OpenFlags::SQLITE_OPEN_READ_WRITE).and_then(|mut connection| {
                // What is destroyed gives its room back to the system.
                connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
                let transaction = connection.transaction()?;
                transaction.pragma_update(None, "application_id", APPLICATION)?;
                transaction.pragma_update(None, "user_version", VERSION)?;
                transaction.execute_batch(SCHEMA)?;
                transaction.execute("INSERT INTO store VALUES (0, ?)", [identity])?;
                transaction.commit()?;
                // On a file system without shared memory the journal stays another, which is told when
                // the database is opened.
                connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
                connection.close().map_err(|(_, error)| error)
            });
        filled.map_err(failure::told("fill", temporary))?;
        let file = disk.open(temporary, Open::Write).map_err(IoFailure::of("open", temporary))?;
        Ok(file.sync().map_err(IoFailure::of("sync", temporary))?)
    }

    /// Gives the finished file its name, if nobody has it: by a rename that refuses to replace, else
    /// by a hard link, else by looking first.
    fn publish(&self, temporary: &Path) -> Result<(), StoreError> {
        let (disk, path) = (&*self.parts.disk, &self.path);
        let given = disk
            .rename_new(temporary, path)
            .or_else(|error| if is_taken(&error) { Err(error) } else { disk.link(temporary, path) })
            .or_else(|error| match disk.stat(path) {
                Err(missing) if missing.kind() == io::ErrorKind::NotFound && !is_taken(&error) => {
                    disk.rename(temporary, path)
                }
                Ok(_) | Err(_) => Err(error),
            });
        match given {
            // The one that is there will be looked at like any other.
            Err(error) if is_taken(&error) => Ok(()),
            given => {
                given.map_err(IoFailure::of("publish", path))?;
                let folder = path.parent().unwrap_or(path);
                let synced = disk.sync_folder(folder);
                Ok(synced.map_err(IoFailure::of("sync the folder", folder))?)
            }
        }
    }

    fn unsupported(&self, found: Unsupported) -> StoreError {
        StoreError::Unsupported { path: self.path.clone(), found }
    }
}

fn is_taken(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::AlreadyExists
}

/// The file that SQLite puts beside the database under this suffix.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// A connection as every one of ours is.
fn open(path: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    // Damage is told early, and nothing that stands in a damaged or foreign schema is run.
    connection.pragma_update(None, "cell_size_check", true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    // Where a sync alone leaves bytes in the device's own cache.
    connection.pragma_update(None, "fullfsync", true)?;
    connection.pragma_update(None, "checkpoint_fullfsync", true)?;
    Ok(connection)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
