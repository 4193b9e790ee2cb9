//! The database as a file: looked at before it is opened, and read by as many connections as there
//! are readers. Until this process writes it, looking at it leaves no trace.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, Transaction};

use crate::store::disk::Stat;
use crate::store::error::{IoFailure, StoreError, Unsupported};
use crate::store::parts::Parts;
use crate::store::sqlite::failure::{self, Failure};
use crate::store::sqlite::view::{self, View};
use crate::store::sqlite::{header, making};
use crate::store::work_dir::WorkDir;

/// How long a connection waits for another process: longer than any of our transactions takes.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Connections for readers that are kept for the next; as many as read at once in most runs.
const READERS_KEPT_MAX: usize = 8;
/// Between statements that are compiled again and those that take memory for nothing: more than this
/// backend has.
const STATEMENTS_MAX: usize = 32;
/// How often something is looked at again because somebody changed it meanwhile. Each time a process
/// has begun or ended with it.
const LOOKS_MAX: u32 = 16;

/// The file and its surroundings.
pub(super) struct Database {
    pub(super) parts: Parts,
    pub(super) work_dir: WorkDir,
    pub(super) path: PathBuf,
    /// Which file was looked at and found to be ours.
    known: Mutex<Option<Stat>>,
    stance: RwLock<Stance>,
    readers: Mutex<Vec<Reader>>,
}

/// What this process does with the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stance {
    /// It has written nothing yet. While somebody reads, this is not left: what only looks must be
    /// gone when the connection that writes takes its locks.
    Looking,
    /// It shares the database with everybody who writes it.
    Writing,
}

/// A connection that reads.
struct Reader {
    view: View,
    connection: Connection,
}

impl Database {
    pub(super) fn new(work_dir: WorkDir, parts: Parts) -> Self {
        let path = work_dir.database();
        let (known, readers) = (Mutex::default(), Mutex::default());
        Self { parts, work_dir, path, known, stance: RwLock::new(Stance::Looking), readers }
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
            if known.is_none() {
                self.check_journal()?;
            }
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

    /// Refuses a journal without its database. It may hold what was acknowledged last, and SQLite would
    /// play it into any other that stands there.
    fn check_journal(&self) -> Result<(), StoreError> {
        let path = self.wal();
        match self.parts.disk.stat(&path) {
            Ok(stat) if stat.size > 0 => {
                Err(StoreError::Unsupported { path, found: Unsupported::JournalAlone })
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(IoFailure::of("look at", &path)(error).into())
            }
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Reads in one transaction, on this thread; more than once, if somebody changed what was read
    /// meanwhile. `None` if there is no database.
    pub(super) fn read<T>(
        &self,
        work: impl Fn(&Transaction<'_>) -> Result<T, Failure>,
    ) -> Result<Option<T>, StoreError> {
        if !self.is_there()? {
            return Ok(None);
        }
        let stance = self.stance.read().unwrap_or_else(PoisonError::into_inner);
        if *stance == Stance::Writing {
            drop(stance);
            return self.read_in(View::Shared, &work).map(Some);
        }
        for _ in 0..LOOKS_MAX {
            let view = self.view()?;
            let read = self.read_in(view, &work);
            let holds = match view {
                View::Shared => true,
                View::Beside if read.is_ok() => true,
                View::Beside | View::Still(_) | View::Alone { .. } => self.view()? == view,
            };
            if holds {
                return read.map(Some);
            }
        }
        Err(IoFailure::of("read", &self.path)(io::ErrorKind::ResourceBusy.into()).into())
    }

    fn view(&self) -> Result<View, StoreError> {
        Ok(View::now(&*self.parts.disk, &self.path, self.parts.lock.as_deref())?)
    }

    fn read_in<T>(
        &self,
        view: View,
        work: impl Fn(&Transaction<'_>) -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        let kept = {
            let mut readers = lock(&self.readers);
            // Another view will not come back.
            readers.retain(|reader| reader.view == view);
            readers.pop().map(|reader| reader.connection)
        };
        let mut connection = kept.map_or_else(|| self.connect(view), Ok)?;
        let read = connection.transaction().map_err(Failure::from).and_then(|t| work(&t));
        let found = read.map_err(|failure| failure.told("read", &self.path))?;
        let mut readers = lock(&self.readers);
        if readers.len() < READERS_KEPT_MAX {
            readers.push(Reader { view, connection });
        }
        Ok(found)
    }

    /// Closes the connections that nobody reads on.
    pub(super) fn let_readers_go(&self) {
        lock(&self.readers).clear();
    }

    /// A connection that may write. Makes the database if there is none.
    pub(super) fn writable(&self) -> Result<Connection, StoreError> {
        if !self.is_there()? {
            making::make(&self.parts, &self.path)?;
            self.is_there()?;
        }
        let mut stance = self.stance.write().unwrap_or_else(PoisonError::into_inner);
        if *stance == Stance::Looking {
            self.let_readers_go();
            making::clean_up(&self.parts, &self.path);
        }
        let connection = self.shared(OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        *stance = Stance::Writing;
        Ok(connection)
    }

    fn connect(&self, view: View) -> Result<Connection, StoreError> {
        match view.connect(&self.path) {
            None => self.shared(OpenFlags::SQLITE_OPEN_READ_ONLY),
            Some(connected) => {
                let settled = connected.and_then(settled);
                settled.map_err(failure::told("open", &self.path))
            }
        }
    }

    /// A connection that shares the database with those who write it.
    fn shared(&self, flags: OpenFlags) -> Result<Connection, StoreError> {
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

    fn unsupported(&self, found: Unsupported) -> StoreError {
        StoreError::Unsupported { path: self.path.clone(), found }
    }
}

/// The file that SQLite puts beside the database under this suffix.
pub(in crate::store) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// A connection as every one of ours is.
pub(super) fn open(path: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
    settled(Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?)
}

/// A connection that takes the file as it is and leaves no trace.
pub(super) fn still(path: &Path) -> rusqlite::Result<Connection> {
    settled(view::look(path, "immutable=1")?)
}

fn settled(connection: Connection) -> rusqlite::Result<Connection> {
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
