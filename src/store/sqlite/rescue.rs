//! A new database of what can still be read of one that is damaged as a whole. The damaged one is copied
//! first and never opened itself.
//!
//! A table is read as SQLite reads it. Where that ends at a damage, each of its pages that hold rows is
//! read alone, as if it were the whole table: which those are the map of pages says, which stands in
//! pages of its own (`ptrmap` in the description of the file format).

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::types::Value;
use rusqlite::{Connection, ErrorCode, OpenFlags, Statement, params_from_iter};

use crate::store::disk::{self, Disk, Open, Stat};
use crate::store::error::{IoFailure, StoreError};
use crate::store::parts::Parts;
use crate::store::sqlite::database::{beside, open};
use crate::store::sqlite::failure;
use crate::store::sqlite::making::{self, BESIDE};
use crate::store::sqlite::pages::{Copy, Pages, Trouble};

/// More records than any log has: a row that says to be a later one is damaged.
const SEQ_MAX: u64 = 10_000_000;
const PIECE_BYTES: u64 = 1024 * 1024;
const JOURNAL: &str = "-wal";

/// What was saved of a damaged database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rescued {
    /// How many sessions.
    pub sessions: u64,
    /// How many turns.
    pub turns: u64,
    /// How many logs that were removed.
    pub removed: u64,
    /// How many records of all of them.
    pub records: u64,
    /// How many logs miss records, so that they are damaged in the new database too.
    pub incomplete: u64,
}

/// A table, and what of it is kept.
struct Table {
    name: &'static str,
    columns: &'static str,
    /// What is true of each of its rows, if they are rows of it.
    holds: &'static str,
}

/// Every table but that of the database itself.
const TABLES: [Table; 5] = [
    Table {
        name: "logs",
        columns: "log_kind, log_id, incarnation, revision, records, first",
        holds: "log_kind IN ('session', 'turn') AND records BETWEEN 1 AND ?1",
    },
    Table {
        name: "records",
        columns: "log_kind, log_id, seq, type, ts, data",
        holds: "log_kind IN ('session', 'turn') AND seq BETWEEN 0 AND ?1 AND typeof(data) = 'text'",
    },
    Table {
        name: "removed",
        columns: "number, key, removed_at, log_kind, log_id, incarnation, revision, records, first",
        holds: "log_kind IN ('session', 'turn') AND records BETWEEN 1 AND ?1",
    },
    Table {
        name: "removed_records",
        columns: "removal, seq, type, ts, data",
        holds: "seq BETWEEN 0 AND ?1 AND typeof(removal) = 'integer' AND typeof(data) = 'text'",
    },
    Table {
        name: "live_text",
        columns: "owner, seq, bytes, lines",
        holds: "seq BETWEEN 0 AND ?1 AND typeof(lines) = 'text'",
    },
];

/// What makes the tables say of each other what they should: logs that have records and that no row lists
/// are listed, the first record of each is the one that it has, and what belongs to a removal that is
/// lost goes with it.
const JOIN: &str = "
    INSERT INTO logs (log_kind, log_id, incarnation, revision, records, first)
    SELECT log_kind, log_id, random(), 0, max(seq) + 1, ''
    FROM records WHERE true GROUP BY log_kind, log_id
    ON CONFLICT DO NOTHING;
    UPDATE logs SET first = data FROM records
    WHERE records.log_kind = logs.log_kind AND records.log_id = logs.log_id AND seq = 0;
    UPDATE removed SET first = data FROM removed_records WHERE removal = number AND seq = 0;
    DELETE FROM removed_records WHERE removal NOT IN (SELECT number FROM removed);";

/// Saves what can be read of the database at `from`, which nobody may be writing, in a new one at `to`.
///
/// # Errors
/// `Io` if it cannot be read, somebody writes it, the new one cannot be written, also because there is one
/// already, or nothing can be read as a database. Nothing is left of the new one then.
pub(super) fn rescue(parts: &Parts, from: &Path, to: &Path) -> Result<Rescued, StoreError> {
    let (disk, folder) = (&*parts.disk, to.parent().unwrap_or(to));
    // What stands beside a database is taken for a part of it.
    for taken in BESIDE.map(|suffix| beside(to, suffix)).iter().map(PathBuf::as_path).chain([to]) {
        if disk.stat(taken).is_ok() {
            let taken = IoFailure::of("create", taken)(io::ErrorKind::AlreadyExists.into());
            return Err(taken.into());
        }
    }
    making::clear_old(parts, folder);
    let [copy, new] = [making::temporary(parts, folder), making::temporary(parts, folder)];
    let rescued = copied(disk, from, &copy).and_then(|()| {
        making::fill(parts, &new)?;
        let rescued = saved(disk, &copy, &new)?.ok_or_else(|| nothing(from))?;
        making::publish(disk, &new, to)?;
        Ok(rescued)
    });
    making::clear(disk, &copy);
    making::clear(disk, &new);
    rescued
}

fn nothing(path: &Path) -> StoreError {
    let why = "nothing of it can be read; put a backup in its place, or move it away to begin anew";
    IoFailure::of("save", path)(io::Error::new(io::ErrorKind::InvalidData, why)).into()
}

/// Copies the file, and the journal with what is not in it yet.
fn copied(disk: &dyn Disk, from: &Path, copy: &Path) -> Result<(), StoreError> {
    let journal = beside(from, JOURNAL);
    let look = || {
        let stat = |path| match disk.stat(path) {
            Ok(Stat { size, modified_ns, .. }) => Ok(Some((size, modified_ns))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(IoFailure::of("look at", path)(error)),
        };
        Ok::<_, IoFailure>([stat(from)?, stat(&journal)?])
    };
    let before = look()?;
    copy_file(disk, from, copy)?;
    let [_, is_journal] = before;
    if is_journal.is_some() {
        copy_file(disk, &journal, &beside(copy, JOURNAL))?;
    }
    if look()? != before {
        let why =
            io::Error::new(io::ErrorKind::ResourceBusy, "somebody is writing it; end that first");
        return Err(IoFailure::of("copy", from)(why).into());
    }
    Ok(())
}

fn copy_file(disk: &dyn Disk, from: &Path, to: &Path) -> Result<(), IoFailure> {
    let source = disk.open(from, Open::Read).map_err(IoFailure::of("open", from))?;
    let target = disk.open(to, Open::New).map_err(IoFailure::of("create", to))?;
    let mut offset = 0;
    loop {
        let piece =
            disk::read(&*source, offset, PIECE_BYTES).map_err(IoFailure::of("read", from))?;
        if piece.is_empty() {
            return Ok(());
        }
        disk::write(&*target, offset, &piece).map_err(IoFailure::of("write", to))?;
        offset += piece.len() as u64;
    }
}

/// Saves what can be read of a copy, and looks whether all of that is in the new database; `None` if there
/// is no record.
fn saved(disk: &dyn Disk, copy: &Path, new: &Path) -> Result<Option<Rescued>, StoreError> {
    let to_new = |error| failure::told("fill", new)(error);
    let copy = Copy::of(disk, copy, new)?;
    let mut connection = open(new, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(to_new)?;
    // Without a journal of its own that could be left behind: what is committed is in the file.
    set_journal(&connection, "DELETE").map_err(to_new)?;
    let transaction = connection.transaction().map_err(to_new)?;
    for table in &TABLES {
        copy_table(&copy, &transaction, table)?;
    }
    transaction.execute_batch(JOIN).map_err(to_new)?;
    let rescued = count(&transaction).map_err(to_new)?;
    transaction.commit().map_err(to_new)?;
    set_journal(&connection, "WAL").map_err(to_new)?;
    connection.close().map_err(|(_, error)| to_new(error))?;
    let file = disk.open(new, Open::Write).map_err(IoFailure::of("open", new))?;
    file.sync().map_err(IoFailure::of("sync", new))?;
    let there = open(new, OpenFlags::SQLITE_OPEN_READ_ONLY).and_then(|it| count(&it));
    if there.map_err(to_new)? != rescued {
        let why = "what was written is not what is there".to_owned();
        return Err(StoreError::Damaged { path: new.to_path_buf(), why });
    }
    Ok((rescued.records > 0).then_some(rescued))
}

fn set_journal(connection: &Connection, mode: &str) -> rusqlite::Result<()> {
    connection.query_row(&format!("PRAGMA journal_mode = {mode}"), [], |_| Ok(()))
}

/// Copies the rows of a table that can be read.
fn copy_table(copy: &Copy<'_>, new: &Connection, table: &Table) -> Result<(), StoreError> {
    let Table { name, columns, holds } = table;
    let places = vec!["?"; columns.split(',').count()].join(", ");
    let write = format!("INSERT INTO {name} ({columns}) VALUES ({places})");
    let mut write = new.prepare(&write).map_err(failure::told("fill", copy.new_path()))?;
    let read = format!("SELECT {columns} FROM {name} NOT INDEXED WHERE {holds}");
    // Of a part that cannot be read all that comes before is copied.
    let mut rows = |damaged: &Connection| {
        let mut read = damaged.prepare(&read).map_err(Trouble::Read)?;
        copy_rows(&mut read, &mut write)
    };
    if copy.read(&mut rows)? == Pages::Whole {
        return Ok(());
    }
    for page in copy.leaves_of(name)? {
        copy.read_alone(name, page, &mut rows)?;
    }
    Ok(())
}

fn copy_rows(read: &mut Statement<'_>, write: &mut Statement<'_>) -> Result<(), Trouble> {
    let columns = write.parameter_count();
    let mut rows = read.query([SEQ_MAX.cast_signed()]).map_err(Trouble::Read)?;
    while let Some(row) = rows.next().map_err(Trouble::Read)? {
        let values: Result<Vec<Value>, _> = (0..columns).map(|at| row.get(at)).collect();
        match write.execute(params_from_iter(values.map_err(Trouble::Read)?)) {
            // It is none of its table, or there already.
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => {}
            written => drop(written.map_err(Trouble::Write)?),
        }
    }
    Ok(())
}

fn count(connection: &Connection) -> rusqlite::Result<Rescued> {
    let count = |query: &str| {
        let count = connection.query_row(query, [], |row| row.get::<_, i64>(0));
        count.map(i64::cast_unsigned)
    };
    Ok(Rescued {
        sessions: count("SELECT count(*) FROM logs WHERE log_kind = 'session'")?,
        turns: count("SELECT count(*) FROM logs WHERE log_kind = 'turn'")?,
        removed: count("SELECT count(*) FROM removed")?,
        records: count("SELECT count(*) FROM records")?
            + count("SELECT count(*) FROM removed_records")?,
        incomplete: count(
            "SELECT count(*) FROM logs WHERE records <> (
                 SELECT count(*) FROM records
                 WHERE records.log_kind = logs.log_kind AND records.log_id = logs.log_id)",
        )? + count(
            "SELECT count(*) FROM removed WHERE records <> (
                 SELECT count(*) FROM removed_records WHERE removal = number)",
        )?,
    })
}
