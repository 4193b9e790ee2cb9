//! Logs as rows, read and written inside a transaction of the caller's.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use rusqlite::types::ValueRef;
use rusqlite::{CachedStatement, OptionalExtension as _, Params, Row, Transaction, params};
use serde::Deserialize;

use crate::store::error::{Corruption, Place, StoreError};
use crate::store::log::{Inspection, LogId, LogKind, LogText, Record, Revision, Snapshot};
use crate::store::sqlite::failure::{self, Failure};

/// Which state of a log a row of `logs` or `removed` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) records: u64,
    pub(super) revision: Revision,
}

impl Head {
    /// The columns of a head, in the order of [`Head::of`].
    pub(super) const COLUMNS: &str =
        "(SELECT identity FROM store), incarnation, revision, records, first";

    /// The head in the first columns of a row.
    fn of(row: &Row<'_>) -> rusqlite::Result<Self> {
        let number = |at| row.get(at).map(i64::cast_unsigned);
        let revision = Revision([number(0)?, number(1)?, number(2)?, 0, 0]);
        Ok(Self { records: number(3)?, revision })
    }

    /// The state that was read.
    pub(super) fn at_end_of(inspection: &Inspection) -> Self {
        Self { records: inspection.records.len() as u64, revision: inspection.revision }
    }

    /// Whether both are states of one log, and not of another that got its id.
    fn is_of_one_log_with(self, other: Self) -> bool {
        self.revision.0.get(..2) == other.revision.0.get(..2)
    }

    /// The state after `more` records were added.
    fn after(self, more: usize) -> Self {
        let Revision([identity, incarnation, counter, ..]) = self.revision;
        let revision = Revision([identity, incarnation, counter.wrapping_add(1), 0, 0]);
        Self { records: self.records + more as u64, revision }
    }
}

/// The end of a log as its writer left it.
#[derive(Clone, Debug)]
pub(super) struct End {
    /// What was acknowledged.
    pub(super) head: Head,
    /// A batch of which nobody knows whether it was written: the device refused to make it safe, and it
    /// may come to light when what it took is read again.
    pub(super) attempted: Vec<Record>,
}

/// A log as its text, and the first record as lists show it.
pub(super) struct Read {
    pub(super) text: LogText,
    first: Bytes,
}

/// A log without a file of its own.
pub(super) fn place(log: &LogId) -> Place {
    Place { log: log.clone(), path: None }
}

fn corrupt(log: &LogId, line: u64, why: Corruption) -> StoreError {
    StoreError::Corrupt { place: place(log), line, why: Arc::new(why) }
}

/// What a record says of itself that has columns of its own. Anything odd is in the line only.
#[derive(Deserialize, Default)]
struct Envelope<'a> {
    #[serde(borrow, rename = "type", default)]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    ts: Option<Cow<'a, str>>,
}

/// Whether the database is whole enough to say which it is.
pub(super) fn check(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    transaction.query_row("SELECT identity FROM store", [], |row| row.get::<_, i64>(0)).map(drop)
}

/// Makes a log of a first record and those that follow.
pub(super) fn create(
    transaction: &Transaction<'_>,
    log: &LogId,
    batch: &[Record],
    incarnation: u64,
) -> Result<Head, Failure> {
    let first = batch.first().map(text_of).transpose()?.unwrap_or_default();
    let made = transaction
        .prepare_cached(
            "INSERT INTO logs (log_kind, log_id, incarnation, revision, records, first)
             VALUES (?, ?, ?, 0, ?, ?) ON CONFLICT DO NOTHING",
        )?
        .execute(params![
            log.kind().as_str(),
            log.id(),
            incarnation.cast_signed(),
            (batch.len() as u64).cast_signed(),
            first,
        ])?;
    if made == 0 {
        return Err(StoreError::AlreadyExists(place(log)).into());
    }
    insert(transaction, log, 0, batch)?;
    head(transaction, log)?.ok_or_else(|| StoreError::NotFound(place(log)).into())
}

/// Adds records to a log that is as its writer left it, or holds what the writer tried last.
pub(super) fn append(
    transaction: &Transaction<'_>,
    log: &LogId,
    left: &End,
    batch: &[Record],
) -> Result<Head, Failure> {
    let found = head(transaction, log)?.ok_or_else(|| StoreError::NotFound(place(log)))?;
    let there = if found == left.head { 0 } else { meet(transaction, log, left, found, batch)? };
    let missing = batch.get(there..).unwrap_or_default();
    if missing.is_empty() {
        return Ok(found);
    }
    let from = Head { records: left.head.records + there as u64, ..found };
    let head = from.after(missing.len());
    transaction
        .prepare_cached(
            "UPDATE logs SET revision = revision + 1, records = ?
             WHERE log_kind = ? AND log_id = ?",
        )?
        .execute(params![head.records.cast_signed(), log.kind().as_str(), log.id()])?;
    insert(transaction, log, from.records, missing)?;
    Ok(head)
}

/// Finds what was tried last behind the end that was acknowledged, and takes it out if it is not asked
/// for any more. Gives how many records of the batch are there already.
fn meet(
    transaction: &Transaction<'_>,
    log: &LogId,
    left: &End,
    found: Head,
    batch: &[Record],
) -> Result<usize, Failure> {
    let expected = left.head.records;
    let more = found.records.checked_sub(expected).filter(|_| found.is_of_one_log_with(left.head));
    let key = params![log.kind().as_str(), log.id(), expected.cast_signed()];
    let mut statement = transaction.prepare_cached(
        "SELECT data FROM records WHERE log_kind = ? AND log_id = ? AND seq >= ? ORDER BY seq",
    )?;
    let mut rows = statement.query(key)?;
    let mut is_ours = more == Some(left.attempted.len() as u64) && more != Some(0);
    for tried in &left.attempted {
        let row = rows.next()?;
        let data = row.map(|row| row.get_ref(0)).transpose()?;
        is_ours &= data.is_some_and(|data| raw(data) == tried.as_bytes());
    }
    if !is_ours {
        let found = found.records;
        return Err(StoreError::Overtaken { place: place(log), expected, found }.into());
    }
    if batch.starts_with(&left.attempted) {
        return Ok(left.attempted.len());
    }
    transaction
        .prepare_cached("DELETE FROM records WHERE log_kind = ? AND log_id = ? AND seq >= ?")?
        .execute(key)?;
    Ok(0)
}

fn insert(
    transaction: &Transaction<'_>,
    log: &LogId,
    from: u64,
    batch: &[Record],
) -> Result<(), Failure> {
    let mut statement = transaction.prepare_cached(
        "INSERT INTO records (log_kind, log_id, seq, type, ts, data) VALUES (?, ?, ?, ?, ?, ?)",
    )?;
    for (seq, record) in (from..).zip(batch) {
        let data = text_of(record)?;
        let Envelope { kind, ts } = serde_json::from_str(data).unwrap_or_default();
        let kinds = (log.kind().as_str(), log.id());
        statement.execute(params![kinds.0, kinds.1, seq.cast_signed(), kind, ts, data])?;
    }
    Ok(())
}

fn text_of(record: &Record) -> Result<&str, Failure> {
    let text = std::str::from_utf8(record.as_bytes());
    text.map_err(|error| rusqlite::Error::Utf8Error(0, error).into())
}

/// The state of a log; `None` if there is none.
pub(super) fn head(transaction: &Transaction<'_>, log: &LogId) -> rusqlite::Result<Option<Head>> {
    logs(transaction)?.query_row(params![log.kind().as_str(), log.id()], Head::of).optional()
}

/// A whole log; `None` if there is none.
pub(super) fn read(transaction: &Transaction<'_>, log: &LogId) -> Result<Option<Read>, Failure> {
    let key = params![log.kind().as_str(), log.id()];
    let Some((head, first)) = logs(transaction)?.query_row(key, head_and_first).optional()? else {
        return Ok(None);
    };
    let mut statement = transaction.prepare_cached(
        "SELECT seq, data FROM records WHERE log_kind = ? AND log_id = ? ORDER BY seq",
    )?;
    let text = text(log, head, &mut statement, key)?;
    Ok(Some(Read { text, first }))
}

fn logs<'a>(transaction: &'a Transaction<'_>) -> rusqlite::Result<CachedStatement<'a>> {
    transaction.prepare_cached(&format!(
        "SELECT {} FROM logs WHERE log_kind = ? AND log_id = ?",
        Head::COLUMNS
    ))
}

/// The head and the first record in the first columns of a row.
pub(super) fn head_and_first(row: &Row<'_>) -> rusqlite::Result<(Head, Bytes)> {
    Ok((Head::of(row)?, bytes(row, 4)?))
}

/// A log of this head, whose rows a statement gives as `seq, data`.
pub(super) fn text(
    log: &LogId,
    head: Head,
    statement: &mut CachedStatement<'_>,
    key: impl Params,
) -> Result<LogText, Failure> {
    let mut lines = Vec::new();
    let mut next: u64 = 0;
    let mut rows = statement.query(key)?;
    loop {
        // Pages that cannot be read hide this record and those after it, and no other log's.
        let row = rows.next().and_then(|row| row.map(|row| Ok((row.get(0)?, row))).transpose());
        let (seq, row): (i64, _) = match row {
            Ok(Some(row)) => row,
            Ok(None) => break,
            Err(error) => return Err(pages(log, next, error)),
        };
        if seq.cast_unsigned() != next {
            return Err(corrupt(log, next + 1, Corruption::Missing).into());
        }
        let data = row.get_ref(1).map_err(|error| pages(log, next, error))?;
        lines.extend_from_slice(raw(data));
        lines.push(b'\n');
        next += 1;
    }
    if next != head.records {
        return Err(corrupt(log, next.min(head.records) + 1, Corruption::Missing).into());
    }
    Ok(LogText::new(lines.into(), head.revision))
}

/// The error for a record, from 0, that cannot be read.
fn pages(log: &LogId, seq: u64, error: rusqlite::Error) -> Failure {
    match failure::damage(&error) {
        Some(why) => corrupt(log, seq + 1, Corruption::Pages(why)).into(),
        None => error.into(),
    }
}

impl Read {
    pub(super) fn new(text: LogText, first: Bytes) -> Self {
        Self { text, first }
    }

    /// Checks that every line is a record, and the first the one that lists show.
    pub(super) fn inspection(&self, log: &LogId) -> Result<Inspection, StoreError> {
        let records = self.text.records().map_err(|(line, why)| corrupt(log, line, why.into()))?;
        let revision = self.text.revision;
        match records.first().cloned() {
            None => Err(corrupt(log, 1, Corruption::NoFirstRecord)),
            Some(first) if first.as_bytes() != self.first => {
                Err(corrupt(log, 1, Corruption::Header))
            }
            Some(first) => Ok(Inspection { first, records, revision, torn: None }),
        }
    }
}

/// All logs of a kind, sorted. Rows whose id has not the form of one are none.
pub(super) fn list(transaction: &Transaction<'_>, kind: LogKind) -> Result<Vec<LogId>, Failure> {
    let mut statement =
        transaction.prepare_cached("SELECT log_id FROM logs WHERE log_kind = ? ORDER BY log_id")?;
    let mut rows = statement.query([kind.as_str()])?;
    let mut logs = Vec::new();
    while let Some(row) = rows.next()? {
        logs.extend(id_of(kind, row.get_ref(0)?));
    }
    Ok(logs)
}

/// The first record and the revision of every log of a kind, sorted.
pub(super) fn snapshots(
    transaction: &Transaction<'_>,
    kind: LogKind,
) -> Result<Vec<Result<Snapshot, StoreError>>, Failure> {
    let mut statement = transaction.prepare_cached(&format!(
        "SELECT {}, log_id FROM logs WHERE log_kind = ? ORDER BY log_id",
        Head::COLUMNS
    ))?;
    let mut rows = statement.query([kind.as_str()])?;
    let mut snapshots = Vec::new();
    while let Some(row) = rows.next()? {
        let Some(log) = id_of(kind, row.get_ref(5)?) else { continue };
        let (head, first) = head_and_first(row)?;
        snapshots.push(match Record::new(first) {
            Ok(first) => Ok(Snapshot { log, first, revision: head.revision }),
            Err(why) => Err(corrupt(&log, 1, why.into())),
        });
    }
    Ok(snapshots)
}

/// The log that a row names, if it names one.
pub(super) fn id_of(kind: LogKind, id: ValueRef<'_>) -> Option<LogId> {
    LogId::new(kind, std::str::from_utf8(raw(id)).ok()?).ok()
}

fn bytes(row: &Row<'_>, at: usize) -> rusqlite::Result<Bytes> {
    Ok(Bytes::copy_from_slice(raw(row.get_ref(at)?)))
}

/// The bytes of a text, whatever they are; none of a value that damage has made another.
fn raw(value: ValueRef<'_>) -> &[u8] {
    match value {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes,
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => &[],
    }
}
