//! What can still be had of damaged rows, how much room a log takes, and whether the database as a
//! whole is sound.

use std::sync::Arc;

use bytes::Bytes;
use rusqlite::types::Value;
use rusqlite::{CachedStatement, OptionalExtension as _, Transaction, params, params_from_iter};

use crate::store::error::Corruption;
use crate::store::log::LogId;
use crate::store::remnant::{Kept, Lost, Remnant, Span};
use crate::store::sqlite::failure::{self, Failure};
use crate::store::sqlite::removal;
use crate::store::sqlite::rows::{self, Head, raw};

/// How many faults of a database are told: one damaged page makes many.
const FAULTS_MAX: i64 = 20;

/// More rows than any log has: what says to have more is damaged.
const ROWS_MAX: u64 = 10_000_000;

/// What can still be had of a log, each row looked for by itself, so that one that cannot be read hides
/// no other. `None` if there is no such log.
pub(super) fn of(
    transaction: &Transaction<'_>,
    kept: &Kept,
) -> Result<Option<Vec<Remnant>>, Failure> {
    match kept {
        Kept::There(log) => {
            let said = match rows::head(transaction, log) {
                Err(error) if failure::damage(&error).is_some() => None,
                said => said?,
            };
            let key = [log.kind().as_str().to_owned().into(), log.id().to_owned().into()];
            all(transaction, said, "records WHERE log_kind = ? AND log_id = ?", &key)
        }
        Kept::Removed(removed) => {
            let found = removal::head(transaction, removed)?;
            let Some((head, _, number)) = found else { return Ok(None) };
            all(transaction, Some(head), "removed_records WHERE removal = ?", &[number.into()])
        }
    }
}

/// The rows with this key of a log that says to be so long.
fn all(
    transaction: &Transaction<'_>,
    said: Option<Head>,
    from: &str,
    key: &[Value],
) -> Result<Option<Vec<Remnant>>, Failure> {
    let Some(count) = rows(transaction, said, from, key)? else { return Ok(None) };
    let mut statement =
        transaction.prepare_cached(&format!("SELECT data FROM {from} AND seq = ?"))?;
    let mut remnants = Vec::new();
    for seq in 0..count.min(ROWS_MAX) {
        match row(&mut statement, key, seq)? {
            Ok(line) => remnants.push(Remnant::Line(line)),
            Err(why) => lose(&mut remnants, seq, why),
        }
    }
    Ok(Some(remnants))
}

/// How many rows a log should have: as many as it says, or up to the last that is there.
fn rows(
    transaction: &Transaction<'_>,
    said: Option<Head>,
    from: &str,
    key: &[Value],
) -> Result<Option<u64>, Failure> {
    let last = transaction
        .prepare_cached(&format!("SELECT max(seq) FROM {from}"))?
        .query_row(params_from_iter(key), |row| row.get::<_, Option<i64>>(0));
    let said = said.map(|head| head.records);
    match last {
        Ok(None) => Ok(said.map(|said| said.min(1))),
        Ok(Some(last)) => {
            let there = last.cast_unsigned().saturating_add(1);
            // One more than there are says that the end is missing, however much that is.
            let said = said.unwrap_or(there);
            Ok(Some(if said > there { there.saturating_add(1) } else { there }))
        }
        // What it says counts as far as that can be: rows that are not there are told by `check`.
        Err(error) if said.is_none() => Err(error.into()),
        Err(_) => Ok(said),
    }
}

fn row(
    statement: &mut CachedStatement<'_>,
    key: &[Value],
    seq: u64,
) -> Result<Result<Bytes, Corruption>, Failure> {
    let seq = Value::from(seq.cast_signed());
    let found = statement
        .query_row(params_from_iter(key.iter().chain([&seq])), |row| {
            Ok(Bytes::copy_from_slice(raw(row.get_ref(0)?)))
        })
        .optional();
    match found {
        Ok(Some(line)) => Ok(Ok(line)),
        Ok(None) => Ok(Err(Corruption::Missing)),
        Err(error) => match failure::damage(&error) {
            Some(why) => Ok(Err(Corruption::Pages(why))),
            None => Err(error.into()),
        },
    }
}

/// Adds a row that cannot be had, to those before it if it follows them.
fn lose(remnants: &mut Vec<Remnant>, seq: u64, why: Corruption) {
    match remnants.last_mut() {
        Some(Remnant::Lost(Lost { span: Span::Rows { last, .. }, .. })) if *last + 1 == seq => {
            *last = seq;
        }
        Some(_) | None => {
            let span = Span::Rows { first: seq, last: seq };
            remnants.push(Remnant::Lost(Lost { span, why: Arc::new(why) }));
        }
    }
}

/// How many bytes the records of a log take; `None` if there is no such log.
pub(super) fn size(transaction: &Transaction<'_>, log: &LogId) -> rusqlite::Result<Option<u64>> {
    if rows::head(transaction, log)?.is_none() {
        return Ok(None);
    }
    let bytes = transaction
        .prepare_cached(
            "SELECT coalesce(sum(octet_length(data)), 0)
             FROM records WHERE log_kind = ? AND log_id = ?",
        )?
        .query_row(params![log.kind().as_str(), log.id()], |row| row.get::<_, i64>(0))?;
    Ok(Some(bytes.cast_unsigned()))
}

/// What is wrong with the database as a whole: its pages, its tables and their keys, and what its tables
/// say of each other. What cannot be looked at is told, and the rest is looked at all the same.
pub(super) fn check(transaction: &Transaction<'_>) -> Vec<String> {
    let mut faults = pages(transaction).unwrap_or_else(|error| vec![error.to_string()]);
    for (query, what) in RELATIONS {
        match transaction.query_row(query, [], |row| row.get::<_, i64>(0)) {
            Ok(0) => {}
            Ok(count) => faults.push(format!("{count} {what}")),
            Err(error) => faults.push(error.to_string()),
        }
    }
    faults.dedup();
    faults
}

/// What tables say of each other: how to count what is wrong, and what that is.
const RELATIONS: [(&str, &str); 3] = [
    (
        "SELECT count(*) FROM records WHERE NOT EXISTS (
             SELECT 1 FROM logs
             WHERE logs.log_kind = records.log_kind AND logs.log_id = records.log_id)",
        "records belong to no log",
    ),
    (
        "SELECT count(*) FROM removed_records WHERE NOT EXISTS (
             SELECT 1 FROM removed WHERE removed.number = removed_records.removal)",
        "removed records belong to no removal",
    ),
    (
        "SELECT count(*) FROM logs JOIN records USING (log_kind, log_id)
         WHERE seq = 0 AND first IS NOT data",
        "logs are listed with another first record than they have",
    ),
];

fn pages(transaction: &Transaction<'_>) -> rusqlite::Result<Vec<String>> {
    let mut faults = Vec::new();
    let mut statement = transaction.prepare(&format!("PRAGMA integrity_check({FAULTS_MAX})"))?;
    let mut found = statement.query([])?;
    while let Some(row) = found.next()? {
        let fault: String = row.get(0)?;
        if fault != "ok" {
            faults.push(fault);
        }
    }
    Ok(faults)
}
