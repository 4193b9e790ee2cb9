//! The one connection that writes, for one change at a time, and what is known of how safe on the
//! device its changes are.
//!
//! A change is one transaction. It is written to the journal beside the database (WAL) and counts
//! once its end is there; a **full** change also waits for the device, and with it is safe whatever
//! was written before. Moving the journal into the database (a checkpoint) is never left to SQLite,
//! which would not tell that the device refused: after such a refusal nothing is known of what the
//! journal holds on the device, and all of it is written once more, into the database, before
//! anything else is done.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::store::disk::Open;
use crate::store::error::{IoFailure, StoreError};
use crate::store::log::LogId;
use crate::store::seam::{Durability, SyncMode};
use crate::store::sqlite::database::Database;
use crate::store::sqlite::failure::{Failure, Said};
use crate::store::sqlite::rows::place;

/// Pages of the journal that are not in the database yet, from which on they are moved there: what
/// SQLite itself takes, about 4 MiB, which readers still search fast.
const JOURNAL_PAGES_MAX: i64 = 1_000;
/// Pages that are given back in one change: 4 MiB, which keeps others waiting far less long than they
/// wait at most.
pub(super) const SHRINK_PAGES: i64 = 1_000;

/// How far a change waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    /// For the system. The database stays whole over a loss of power, perhaps without the change.
    Normal,
    /// For the device.
    Full,
}

impl Level {
    /// What a batch that must be durable in this way asks for. A mode that waits for nothing is still
    /// not without order: what a loss of power could damage is every log at once.
    pub(super) fn of(mode: SyncMode, durability: Durability) -> Self {
        if mode.waits_for(durability) { Self::Full } else { Self::Normal }
    }

    /// As the value of `synchronous`.
    fn synchronous(self) -> i64 {
        match self {
            Self::Normal => 1,
            Self::Full => 2,
        }
    }
}

/// What is changed, as errors say it.
#[derive(Clone, Copy)]
pub(super) struct Change<'a> {
    /// As a verb.
    pub(super) action: &'static str,
    pub(super) log: &'a LogId,
    pub(super) level: Level,
}

/// Whether a sync would tell of bytes that the device did not take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trust {
    Sound,
    /// The device has refused something.
    Doubtful,
}

/// The writing side.
pub(super) struct Writing {
    database: Arc<Database>,
    /// None until something is to be written, and after trouble.
    pub(super) connection: Option<Connection>,
    level: Level,
    trust: Trust,
    /// What was acknowledged and is to be safe after the next barrier.
    unsafe_logs: BTreeSet<LogId>,
}

/// The connection that writes goes last: then it moves the journal into the database.
impl Drop for Writing {
    fn drop(&mut self) {
        self.database.let_readers_go();
    }
}

impl Writing {
    pub(super) fn new(database: Arc<Database>) -> Self {
        Self {
            database,
            connection: None,
            level: Level::Normal,
            trust: Trust::Sound,
            unsafe_logs: BTreeSet::new(),
        }
    }

    /// One change, whole or not at all. Makes the database if there is none.
    pub(super) fn change<T>(
        &mut self,
        change: Change<'_>,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        if self.connection.is_some() {
            // It could be another's by now.
            self.database.is_there()?;
        }
        self.heal_for(change.log)?;
        let changed = self.attempt(change.level, work);
        let journal_pages_max = match changed {
            // What is moved now, the journal need not grow for.
            Err(Failure::Sql(ref said)) if said.is_full() => 0,
            Ok(_) | Err(_) => JOURNAL_PAGES_MAX,
        };
        match changed {
            Ok(_) if change.level == Level::Full => self.unsafe_logs.clear(),
            Err(Failure::Sql(ref said)) if said.is_doubtful() => self.doubt(),
            Ok(_) | Err(_) => {}
        }
        self.move_journal(journal_pages_max);
        let path = &self.database.path;
        changed.map_err(|failure| failure.told(change.action, path))
    }

    /// Remembers that what was written of a log is to be safe after the next barrier.
    pub(super) fn owe(&mut self, log: &LogId) {
        if !self.unsafe_logs.contains(log) {
            self.unsafe_logs.insert(log.clone());
        }
    }

    /// The logs of which something is not safe on the device.
    pub(super) fn unsafe_logs(&self) -> &BTreeSet<LogId> {
        &self.unsafe_logs
    }

    /// Returns when everything written is safe on the device.
    pub(super) fn sync(&mut self) -> Result<(), IoFailure> {
        if self.trust == Trust::Sound {
            match self.sync_journal() {
                Ok(()) => {
                    self.unsafe_logs.clear();
                    return Ok(());
                }
                Err(error) => {
                    tracing::warn!(%error, "a sync failed; writing once more");
                    self.trust = Trust::Doubtful;
                }
            }
        }
        self.heal()
    }

    /// Gives the room of what was destroyed back to the system, as far as that is to be had now.
    pub(super) fn shrink(&mut self) {
        let mut left = i64::MAX;
        loop {
            let given_back = self.give_back();
            self.move_journal(JOURNAL_PAGES_MAX);
            match given_back {
                Ok(fewer) if fewer > 0 && fewer < left => left = fewer,
                Ok(_) => return,
                Err(failure) => {
                    let error = failure.told("shrink", &self.database.path);
                    tracing::warn!(%error, "what was destroyed still takes its room");
                    return;
                }
            }
        }
    }

    /// Gives some pages back; tells how many could still be.
    pub(super) fn give_back(&mut self) -> Result<i64, Failure> {
        let connection = self.connected(Level::Normal)?;
        let vacuum = format!("PRAGMA incremental_vacuum({SHRINK_PAGES})");
        let mut vacuum = connection.prepare_cached(&vacuum)?;
        // Each step gives one page back.
        let mut steps = vacuum.query([])?;
        while steps.next()?.is_some() {}
        drop(steps);
        drop(vacuum);
        Ok(connection.query_row("PRAGMA freelist_count", [], |row| row.get(0))?)
    }

    fn attempt<T>(
        &mut self,
        level: Level,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let connection = self.connected(level)?;
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let value = work(&transaction)?;
        transaction.commit()?;
        Ok(value)
    }

    /// The connection, which waits as far as `level` says.
    fn connected(&mut self, level: Level) -> Result<&mut Connection, Failure> {
        if self.connection.is_none() {
            let connection = self.database.writable()?;
            set_level(&connection, level, &self.database)?;
            self.level = level;
            self.connection = Some(connection);
        }
        let database = &self.database;
        let connection = self.connection.as_mut().ok_or_else(|| not_as_set(database))?;
        if self.level != level {
            set_level(connection, level, database)?;
            self.level = level;
        }
        Ok(connection)
    }

    /// The device refused something. The connection goes, with all that it thinks it knows; the next
    /// change finds what was acknowledged.
    fn doubt(&mut self) {
        self.trust = Trust::Doubtful;
        self.connection = None;
        if let Err(error) = self.heal() {
            tracing::warn!(%error, "the database is not safe on the device");
        }
    }

    fn heal_for(&mut self, log: &LogId) -> Result<(), StoreError> {
        self.heal().map_err(|cause| StoreError::Poisoned { place: place(log), cause })
    }

    /// Writes everything in the journal once more, into the database, and waits for the device.
    fn heal(&mut self) -> Result<(), IoFailure> {
        if self.trust == Trust::Sound {
            return Ok(());
        }
        let path = self.database.path.clone();
        let refused = |cause: io::Error| IoFailure::of("move the journal into", &path)(cause);
        let moved =
            self.connected(Level::Full).and_then(|connection| Ok(checkpoint(connection, "FULL")?));
        match moved {
            Ok(journal) if journal.is_moved() => {
                self.trust = Trust::Sound;
                self.unsafe_logs.clear();
                Ok(())
            }
            Ok(_) => Err(refused(io::ErrorKind::ResourceBusy.into())),
            Err(Failure::Sql(said)) => Err(said.io("move the journal into", &path)),
            Err(Failure::Refused(StoreError::Io(failure))) => Err(failure),
            Err(Failure::Refused(error)) => Err(refused(io::Error::other(error))),
        }
    }

    /// Moves the journal into the database when it has become longer than this.
    fn move_journal(&mut self, pages_max: i64) {
        let Some(connection) = &self.connection else { return };
        let moved = checkpoint(connection, "NOOP").and_then(|journal| {
            if journal.pages - journal.moved <= pages_max {
                return Ok(());
            }
            // Readers of an older state keep their part of it; the next change tries again.
            checkpoint(connection, "PASSIVE").map(drop)
        });
        if let Err(error) = moved {
            tracing::warn!(%error, "the journal was not moved into the database");
            let said = Said::from(error);
            if said.is_doubtful() {
                self.doubt();
            }
        }
    }

    /// Waits until the journal and its name are on the device.
    fn sync_journal(&self) -> Result<(), IoFailure> {
        let (disk, journal) = (&*self.database.parts.disk, self.database.wal());
        let file = disk.open(&journal, Open::Write).map_err(IoFailure::of("open", &journal))?;
        file.sync().map_err(IoFailure::of("sync", &journal))?;
        let folder = journal.parent().unwrap_or(&journal);
        disk.sync_folder(folder).map_err(IoFailure::of("sync the folder", folder))
    }
}

/// How much of the journal is in the database.
struct Journal {
    busy: i64,
    pages: i64,
    moved: i64,
}

impl Journal {
    fn is_moved(&self) -> bool {
        self.busy == 0 && self.pages == self.moved
    }
}

fn checkpoint(connection: &Connection, how: &str) -> rusqlite::Result<Journal> {
    connection.prepare_cached(&format!("PRAGMA wal_checkpoint({how})"))?.query_row([], |row| {
        Ok(Journal { busy: row.get(0)?, pages: row.get(1)?, moved: row.get(2)? })
    })
}

/// Sets how far changes wait, and makes sure that SQLite took it.
fn set_level(connection: &Connection, level: Level, database: &Database) -> Result<(), Failure> {
    connection.pragma_update(None, "synchronous", level.synchronous())?;
    let taken: i64 = connection.pragma_query_value(None, "synchronous", |row| row.get(0))?;
    if taken == level.synchronous() { Ok(()) } else { Err(not_as_set(database)) }
}

/// The connection that writes does not wait as it was told to.
fn not_as_set(database: &Database) -> Failure {
    let refused = IoFailure::of("set how far changes wait in", &database.path);
    Failure::Refused(refused(io::ErrorKind::Unsupported.into()).into())
}
