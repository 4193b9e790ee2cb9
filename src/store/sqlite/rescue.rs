//! A new database of what can still be read of one that is damaged as a whole, so that not even its logs
//! can be listed. The damaged one is copied first and never opened itself.

use std::io;
use std::path::Path;

use rusqlite::types::Value;
use rusqlite::{Connection, ErrorCode, OpenFlags, Statement, params_from_iter};

use crate::store::disk::{self, Disk, Open};
use crate::store::error::{IoFailure, StoreError};
use crate::store::parts::Parts;
use crate::store::sqlite::database::{beside, open};
use crate::store::sqlite::failure;
use crate::store::sqlite::making;

/// Every table but that of the database itself, with what is to be kept of it.
const TABLES: [(&str, &str); 5] = [
    ("logs", "log_kind, log_id, incarnation, revision, records, first"),
    ("records", "log_kind, log_id, seq, type, ts, data"),
    ("removed", "number, key, removed_at, log_kind, log_id, incarnation, revision, records, first"),
    ("removed_records", "removal, seq, type, ts, data"),
    ("live_text", "owner, seq, bytes, lines"),
];
/// Rows that are copied at once; if one of them cannot be read, each by itself.
const ROWS_AT_ONCE: i64 = 256;
/// Where the last row cannot be found, rows are looked for up to this number. Each look takes about a
/// microsecond.
const ROWS_MAX: i64 = 10_000_000;
/// Where the first page says how many there are.
const PAGES_AT: usize = 28;
/// Where it says which pages hold nothing: none, for whoever only reads.
const FREE_AT: usize = 32;
const FREE_BYTES: usize = 8;
/// What SQLite makes pages of, unless it is told otherwise.
const PAGE_BYTES: u64 = 4096;
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

/// Saves what can be read of the database at `from`, which nobody may be writing, in a new one at `to`.
///
/// # Errors
/// `Io` if it cannot be read or the new one not be written, also because there is one already;
/// [`StoreError::Damaged`] if nothing can be read as a database. Nothing is left of the new one then.
pub(super) fn rescue(parts: &Parts, from: &Path, to: &Path) -> Result<Rescued, StoreError> {
    let (disk, folder) = (&*parts.disk, to.parent().unwrap_or(to));
    if disk.stat(to).is_ok() {
        return Err(IoFailure::of("create", to)(io::ErrorKind::AlreadyExists.into()).into());
    }
    let [copy, new] = [making::temporary(parts, folder), making::temporary(parts, folder)];
    let rescued = copied(disk, from, &copy).and_then(|()| {
        making::fill(parts, &new)?;
        mended(disk, &copy, &new)?;
        let rescued = match fill(&copy, &new) {
            Err(error) if failure::damage(&error).is_some() => None,
            rescued => rescued.map_err(failure::told("fill", &new))?,
        };
        let Some(rescued) = rescued else {
            let (path, why) = (from.to_path_buf(), "nothing of it can be read".to_owned());
            return Err(StoreError::Damaged { path, why });
        };
        let file = disk.open(&new, Open::Write).map_err(IoFailure::of("open", &new))?;
        file.sync().map_err(IoFailure::of("sync", &new))?;
        making::publish(disk, &new, to)?;
        Ok(rescued)
    });
    making::clear(disk, &copy);
    making::clear(disk, &new);
    rescued
}

/// Copies the file, and the journal with what is not in it yet.
fn copied(disk: &dyn Disk, from: &Path, copy: &Path) -> Result<(), StoreError> {
    let journal = beside(from, JOURNAL);
    copy_file(disk, from, copy)?;
    match disk.stat(&journal) {
        Ok(_) => Ok(copy_file(disk, &journal, &beside(copy, JOURNAL))?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(IoFailure::of("look at", &journal)(error).into()),
    }
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

/// Gives a copy whose first page cannot be used that of a new database. The tables are made by the same
/// statements in every one, so they begin at the same pages.
fn mended(disk: &dyn Disk, copy: &Path, new: &Path) -> Result<(), StoreError> {
    let looked = open(copy, OpenFlags::SQLITE_OPEN_READ_WRITE).and_then(|connection| {
        TABLES.iter().try_for_each(|(table, columns)| {
            connection.prepare(&format!("SELECT {columns} FROM {table}")).map(drop)
        })
    });
    match looked {
        Err(error) if failure::damage(&error).is_some() => {}
        looked => return looked.map_err(failure::told("open", copy)),
    }
    let new_file = disk.open(new, Open::Read).map_err(IoFailure::of("open", new))?;
    let mut page = disk::read(&*new_file, 0, PAGE_BYTES).map_err(IoFailure::of("read", new))?;
    let file = disk.open(copy, Open::Write).map_err(IoFailure::of("open", copy))?;
    let size = file.stat().map_err(IoFailure::of("look at", copy))?.size;
    let pages = u32::try_from(size / PAGE_BYTES).unwrap_or(u32::MAX).to_be_bytes();
    let number = page.get_mut(PAGES_AT..).and_then(|rest| rest.first_chunk_mut());
    if let Some(number) = number {
        *number = pages;
    }
    if let Some(free) = page.get_mut(FREE_AT..FREE_AT + FREE_BYTES) {
        free.fill(0);
    }
    Ok(disk::write(&*file, 0, &page).map_err(IoFailure::of("write", copy))?)
}

/// Copies every row that can be read, and lists the logs that no row lists any more; `None` if there is no
/// record.
fn fill(copy: &Path, new: &Path) -> rusqlite::Result<Option<Rescued>> {
    let damaged = open(copy, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let mut connection = open(new, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let transaction = connection.transaction()?;
    for (table, columns) in TABLES {
        Rows::of(&damaged, &transaction, table, columns)?.copy()?;
    }
    transaction.execute(LIST, [])?;
    let rescued = count(&transaction)?;
    if rescued.records == 0 {
        return Ok(None);
    }
    transaction.commit()?;
    connection.close().map_err(|(_, error)| error)?;
    Ok(Some(rescued))
}

/// A log that has records is listed with its first one, or with nothing, which shows that it is damaged.
const LIST: &str = "
    INSERT INTO logs (log_kind, log_id, incarnation, revision, records, first)
    SELECT log_kind, log_id, random(), 0, max(seq) + 1, coalesce(max(data) FILTER (WHERE seq = 0), '')
    FROM records WHERE log_kind IN ('session', 'turn') GROUP BY log_kind, log_id
    ON CONFLICT DO NOTHING";

/// The rows of a table, on their way.
struct Rows<'a> {
    read: Statement<'a>,
    write: Statement<'a>,
    /// The last that there may be.
    last: i64,
}

impl<'a> Rows<'a> {
    fn of(
        damaged: &'a Connection,
        new: &'a Connection,
        table: &str,
        columns: &str,
    ) -> rusqlite::Result<Self> {
        let last = damaged
            .query_row(&format!("SELECT max(rowid) FROM {table}"), [], |row| row.get(0))
            .map(|last: Option<i64>| last.unwrap_or(0));
        let last = match last {
            Err(error) if failure::damage(&error).is_some() => rows_max(damaged)?,
            last => last?,
        };
        // Not by an index: that may be damaged where the rows are not.
        let read = damaged.prepare(&format!(
            "SELECT rowid, {columns} FROM {table} NOT INDEXED WHERE rowid BETWEEN ? AND ?"
        ))?;
        let places = vec!["?"; columns.split(',').count()].join(", ");
        let write = new.prepare(&format!("INSERT INTO {table} ({columns}) VALUES ({places})"))?;
        Ok(Self { read, write, last })
    }

    fn copy(&mut self) -> rusqlite::Result<()> {
        let mut next = 0;
        while next <= self.last {
            let end = next + ROWS_AT_ONCE - 1;
            if let Some(damaged) = self.copy_between(next, end)? {
                for row in damaged..=end {
                    self.copy_between(row, row)?;
                }
            }
            next = end + 1;
        }
        Ok(())
    }

    /// Copies some rows; gives the first that there may be behind a damage.
    fn copy_between(&mut self, first: i64, last: i64) -> rusqlite::Result<Option<i64>> {
        let mut next = first;
        let mut rows = self.read.query([first, last])?;
        loop {
            let values = match rows.next() {
                Ok(Some(row)) => {
                    next = row.get::<_, i64>(0)? + 1;
                    (1..=self.write.parameter_count()).map(|at| row.get(at)).collect()
                }
                Ok(None) => return Ok(None),
                Err(error) => Err(error),
            };
            match values {
                Ok(values) => write(&mut self.write, values)?,
                Err(error) if failure::damage(&error).is_some() => return Ok(Some(next)),
                Err(error) => return Err(error),
            }
        }
    }
}

/// How far rows are looked for where the last one cannot be found: as many as the database has bytes.
/// Numbers of rows that are gone are not used again, and a row takes hundreds of bytes.
fn rows_max(damaged: &Connection) -> rusqlite::Result<i64> {
    let pages: i64 = damaged.query_row("PRAGMA page_count", [], |row| row.get(0))?;
    let page_bytes: i64 = damaged.query_row("PRAGMA page_size", [], |row| row.get(0))?;
    Ok(pages.saturating_mul(page_bytes).min(ROWS_MAX))
}

/// Adds a row, unless it is none of its table or is there already.
fn write(statement: &mut Statement<'_>, values: Vec<Value>) -> rusqlite::Result<()> {
    match statement.execute(params_from_iter(values)) {
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => Ok(()),
        written => written.map(drop),
    }
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
