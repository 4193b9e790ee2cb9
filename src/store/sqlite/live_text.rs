//! The crash buffer of a turn as rows: one for each time that something was added.

use async_trait::async_trait;
use rusqlite::{OptionalExtension as _, Transaction, params};

use crate::domain::turn::live::{Delta, OpenCall};
use crate::store::error::{FileError, IoFailure, StoreError};
use crate::store::live_text::{self, BYTES_MAX, LiveText};
use crate::store::log::LogId;
use crate::store::sqlite::Store;
use crate::store::sqlite::failure::Failure;
use crate::store::sqlite::writing::{Change, Level};

/// The crash buffers in the database of a store.
#[derive(Clone, Debug)]
pub struct LiveRows(pub(super) Store);

impl LiveRows {
    async fn change(
        &self,
        turn: &LogId,
        work: impl FnOnce(&Transaction<'_>, &str) -> Result<(), Failure> + Send + 'static,
    ) -> Result<(), FileError> {
        let turn = turn.clone();
        let changed = self.0.0.write(move |_, writing| {
            let change = Change { action: "write to", log: &turn, level: Level::Normal };
            writing.change(change, |transaction| work(transaction, turn.id()))
        });
        changed.await.map_err(|error| self.refused(error))
    }

    fn refused(&self, error: StoreError) -> FileError {
        match error {
            StoreError::Io(failure) => failure.into(),
            StoreError::Ending(ending) => ending.into(),
            other => {
                let path = &self.0.0.database.path;
                IoFailure::of("use", path)(std::io::Error::other(other)).into()
            }
        }
    }
}

#[async_trait]
impl LiveText for LiveRows {
    async fn put(&self, turn: &LogId, deltas: &[Delta]) -> Result<(), FileError> {
        let lines = live_text::lines(turn, deltas)
            .map_err(|error| IoFailure::of("write to", &self.0.0.database.path)(error.into()))?;
        self.change(turn, move |rows, owner| put(rows, owner, &lines)).await
    }

    async fn read(&self, turn: &LogId) -> Result<Option<OpenCall>, FileError> {
        let turn = turn.clone();
        let read = self.0.0.run(move |logs| {
            let lines = logs.database.read(|rows| lines_of(rows, turn.id()))?;
            Ok(lines.and_then(|lines| live_text::folded(&turn, &lines)))
        });
        read.await.map_err(|error| self.refused(error))
    }

    async fn drop_text(&self, turn: &LogId) -> Result<(), FileError> {
        self.change(turn, |rows, owner| {
            rows.prepare_cached("DELETE FROM live_text WHERE owner = ?")?.execute([owner])?;
            Ok(())
        })
        .await
    }
}

fn put(transaction: &Transaction<'_>, owner: &str, lines: &str) -> Result<(), Failure> {
    let last: Option<(i64, i64)> = transaction
        .prepare_cached(
            "SELECT seq, bytes FROM live_text WHERE owner = ? ORDER BY seq DESC LIMIT 1",
        )?
        .query_row([owner], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let (seq, before) = last.map_or((0, 0), |(seq, bytes)| (seq + 1, bytes.cast_unsigned()));
    let bytes = before.saturating_add(lines.len() as u64);
    if bytes <= BYTES_MAX {
        transaction
            .prepare_cached("INSERT INTO live_text (owner, seq, bytes, lines) VALUES (?, ?, ?, ?)")?
            .execute(params![owner, seq, bytes.cast_signed(), lines])?;
    }
    Ok(())
}

fn lines_of(transaction: &Transaction<'_>, owner: &str) -> Result<Vec<u8>, Failure> {
    let mut statement =
        transaction.prepare_cached("SELECT lines FROM live_text WHERE owner = ? ORDER BY seq")?;
    let mut rows = statement.query([owner])?;
    let mut lines = Vec::new();
    while let Some(row) = rows.next()? {
        lines.extend_from_slice(row.get_ref(0)?.as_bytes().unwrap_or_default());
    }
    Ok(lines)
}
