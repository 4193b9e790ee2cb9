//! Taking logs out and putting them back: their rows move to tables of their own.

use std::ffi::OsStr;
use std::path::Path;

use bytes::Bytes;
use rusqlite::{OptionalExtension as _, Row, Transaction, params};

use crate::base::clock::Timestamp;
use crate::store::error::StoreError;
use crate::store::log::{Inspection, LogKind, Record, Removed};
use crate::store::sqlite::failure::Failure;
use crate::store::sqlite::rows::{self, Envelope, Head, Read, place};

/// Takes a log out, with the text of a turn that was streaming.
pub(super) fn remove(transaction: &Transaction<'_>, removed: &Removed) -> Result<(), Failure> {
    let (kind, id) = (removed.log.kind().as_str(), removed.log.id());
    let moved = transaction.execute(
        "INSERT INTO removed
             (key, removed_at, log_kind, log_id, incarnation, revision, records, first)
         SELECT ?, ?, log_kind, log_id, incarnation, revision, records, first
         FROM logs WHERE log_kind = ? AND log_id = ?",
        params![removed.key, removed.at.ms(), kind, id],
    )?;
    if moved == 0 {
        return Err(StoreError::NotFound(place(&removed.log)).into());
    }
    let removal = transaction.last_insert_rowid();
    transaction.execute(
        "INSERT INTO removed_records (removal, seq, type, ts, data)
         SELECT ?, seq, type, ts, data FROM records WHERE log_kind = ? AND log_id = ?",
        params![removal, kind, id],
    )?;
    transaction.execute("DELETE FROM records WHERE log_kind = ? AND log_id = ?", [kind, id])?;
    transaction.execute("DELETE FROM logs WHERE log_kind = ? AND log_id = ?", [kind, id])?;
    give_live_text(transaction, removed, [&removed.key, id])
}

/// Takes a removal of another store over.
pub(super) fn take_over(
    transaction: &Transaction<'_>,
    removed: &Removed,
    records: &[Record],
    incarnation: u64,
) -> Result<(), Failure> {
    let first = records.first().map(rows::text_of).transpose()?.unwrap_or_default();
    let made = transaction.execute(
        "INSERT INTO removed
             (key, removed_at, log_kind, log_id, incarnation, revision, records, first)
         VALUES (?, ?, ?, ?, ?, 0, ?, ?) ON CONFLICT DO NOTHING",
        params![
            removed.key,
            removed.at.ms(),
            removed.log.kind().as_str(),
            removed.log.id(),
            incarnation.cast_signed(),
            (records.len() as u64).cast_signed(),
            first,
        ],
    )?;
    if made == 0 {
        return Err(StoreError::AlreadyExists(place(&removed.log)).into());
    }
    let removal = transaction.last_insert_rowid();
    let mut statement = transaction.prepare_cached(
        "INSERT INTO removed_records (removal, seq, type, ts, data) VALUES (?, ?, ?, ?, ?)",
    )?;
    for (seq, record) in (0_i64..).zip(records) {
        let data = rows::text_of(record)?;
        let Envelope { kind, ts } = Envelope::of(data);
        statement.execute(params![removal, seq, kind, ts, data])?;
    }
    Ok(())
}

/// What can be restored, oldest removal first.
pub(super) fn removed(transaction: &Transaction<'_>) -> Result<Vec<Removed>, Failure> {
    let mut statement = transaction.prepare_cached(
        "SELECT log_kind, log_id, removed_at, key FROM removed ORDER BY removed_at, key",
    )?;
    let mut rows = statement.query([])?;
    let mut all = Vec::new();
    while let Some(row) = rows.next()? {
        let kinds = [LogKind::Session, LogKind::Turn];
        let kind: String = row.get(0)?;
        let kind = kinds.into_iter().find(|known| known.as_str() == kind);
        // Rows that name no log are somebody else's.
        let Some(log) = kind.and_then(|kind| rows::id_of(kind, row.get_ref(1).ok()?)) else {
            continue;
        };
        let key: String = row.get(3)?;
        // Folders have keys as their names, and all that is in one of them may be destroyed.
        if Path::new(&key).file_name() == Some(OsStr::new(&key)) {
            all.push(Removed { log, at: Timestamp::from_ms(row.get(2)?), key });
        }
    }
    Ok(all)
}

/// The state of a removed log, its first record as lists show it, and the number of its removal; `None`
/// if it is not there any more.
pub(super) fn head(
    transaction: &Transaction<'_>,
    removed: &Removed,
) -> rusqlite::Result<Option<(Head, Bytes, i64)>> {
    let query = format!("SELECT {}, number FROM removed WHERE key = ?", Head::COLUMNS);
    let head = |row: &Row<'_>| {
        let (head, first) = rows::head_and_first(row)?;
        Ok((head, first, row.get(5)?))
    };
    transaction.query_row(&query, [&removed.key], head).optional()
}

/// Reads a removed log.
pub(super) fn inspect(
    transaction: &Transaction<'_>,
    removed: &Removed,
) -> Result<Inspection, Failure> {
    let found = head(transaction, removed)?;
    let (head, first, number) = found.ok_or_else(|| StoreError::NotFound(place(&removed.log)))?;
    let mut statement = transaction
        .prepare_cached("SELECT seq, data FROM removed_records WHERE removal = ? ORDER BY seq")?;
    let text = rows::text(&removed.log, head, &mut statement, [number])?;
    Ok(Read::new(text, first).inspection(&removed.log)?)
}

/// The number of a removal that is still there.
pub(super) fn find(transaction: &Transaction<'_>, removed: &Removed) -> Result<i64, Failure> {
    transaction
        .query_row("SELECT number FROM removed WHERE key = ?", [&removed.key], |row| row.get(0))
        .optional()?
        .ok_or_else(|| StoreError::NotFound(place(&removed.log)).into())
}

/// Puts a log back under its old name.
pub(super) fn restore(transaction: &Transaction<'_>, removed: &Removed) -> Result<(), Failure> {
    let number = find(transaction, removed)?;
    let (kind, id) = (removed.log.kind().as_str(), removed.log.id());
    let moved = transaction.execute(
        "INSERT INTO logs (log_kind, log_id, incarnation, revision, records, first)
         SELECT log_kind, log_id, incarnation, revision, records, first
         FROM removed WHERE number = ? ON CONFLICT DO NOTHING",
        [number],
    )?;
    if moved == 0 {
        return Err(StoreError::AlreadyExists(place(&removed.log)).into());
    }
    transaction.execute(
        "INSERT INTO records (log_kind, log_id, seq, type, ts, data)
         SELECT ?, ?, seq, type, ts, data FROM removed_records WHERE removal = ?",
        params![kind, id, number],
    )?;
    forget(transaction, number)?;
    give_live_text(transaction, removed, [id, &removed.key])
}

/// Destroys a removed log for good.
pub(super) fn destroy(transaction: &Transaction<'_>, removed: &Removed) -> Result<(), Failure> {
    forget(transaction, find(transaction, removed)?)?;
    transaction.execute("DELETE FROM live_text WHERE owner = ?", [&removed.key])?;
    Ok(())
}

fn forget(transaction: &Transaction<'_>, number: i64) -> Result<(), Failure> {
    transaction.execute("DELETE FROM removed_records WHERE removal = ?", [number])?;
    transaction.execute("DELETE FROM removed WHERE number = ?", [number])?;
    Ok(())
}

/// Gives what was streamed of a turn to another owner: `[to, from]`.
fn give_live_text(
    transaction: &Transaction<'_>,
    removed: &Removed,
    owners: [&str; 2],
) -> Result<(), Failure> {
    if removed.log.kind() == LogKind::Turn {
        transaction.execute("UPDATE live_text SET owner = ? WHERE owner = ?", owners)?;
    }
    Ok(())
}
