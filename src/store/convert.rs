//! Copies all logs of one store into another, byte for byte, and proves that they are the same. Can be
//! broken off anywhere and begun again: what is there already is not copied twice. The old logs stay
//! as they are, but for torn ends, which are set aside as at any opening.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::base::tasks::Tasks;
use crate::domain::turn::live::Delta;
use crate::store::blocking::blocking;
use crate::store::conversion;
use crate::store::error::{Corruption, FileError, FlushError, Place, StoreError};
use crate::store::live_text::LiveText;
use crate::store::log::{LogId, LogKind, LogText, Record, Removed};
use crate::store::progress::{Progress, Stage, Told};
use crate::store::seam::{Durability, LogStore};

/// What is appended at once: large enough to compress well, and little beside a large log.
const BATCH_BYTES: usize = 1024 * 1024;

/// From where to where.
pub struct Copier {
    /// The logs as they are.
    pub from: Arc<dyn LogStore>,
    /// The logs as they are to be. Its errors are told at once; nothing is retried.
    pub to: Arc<dyn LogStore>,
    /// What streams into the one and into the other, where those are not the same.
    pub live_text: Option<[Arc<dyn LiveText>; 2]>,
    /// Owns the work that blocks.
    pub tasks: Tasks,
}

/// What was copied.
#[derive(Clone, Debug, Default)]
pub struct Copied {
    /// Sessions.
    pub sessions: u64,
    /// Turns.
    pub turns: u64,
    /// Logs that were removed and can be restored.
    pub removed: u64,
    /// What could not be copied, because it is damaged.
    pub left: Vec<Left>,
}

/// A damaged log, which stays in its old form only.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{why}")]
pub struct Left {
    /// How it is remembered ([`conversion::name_of`], or the key of a removal).
    pub name: String,
    /// What is wrong with it.
    pub why: StoreError,
}

/// Why copying ended.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// What stands in the new form are copies of something else; they have to go first.
    #[error("what was copied before has other logs than there are now")]
    Stale,
    /// The new form holds logs and the old one none: something has taken them away.
    #[error(
        "the logs that are to be copied are gone, and copies of them are there; nothing was changed"
    )]
    Vanished,
    /// A copy is not what it was made of: a fault of this program, or of the device.
    #[error("the copy of {0} is not the same; nothing was changed")]
    Different(LogId),
    /// The new store refused, or the old one cannot be read at all.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The copies are not safe on the device.
    #[error(transparent)]
    Flush(#[from] FlushError),
    /// What streams cannot be read or copied.
    #[error(transparent)]
    LiveText(#[from] FileError),
}

impl Copier {
    /// Copies everything, makes it safe, and compares it.
    ///
    /// # Errors
    /// [`CopyError`]; what has been copied stays, and is not copied again.
    pub async fn run(&self, told: Told<'_>) -> Result<Copied, CopyError> {
        let (mut logs, mut copied) = (Vec::new(), Copied::default());
        for kind in [LogKind::Session, LogKind::Turn] {
            logs.extend(self.from.list(kind).await?);
        }
        let removed = self.from.removed().await?;
        self.check_fresh(&logs, &removed).await?;
        let mut progress = Progress::new(Stage::Copying, logs.len() + removed.len());
        let mut sound = Vec::new();
        for log in logs {
            match self.copy(&log).await? {
                Ok(()) => {
                    match log.kind() {
                        LogKind::Session => copied.sessions += 1,
                        LogKind::Turn => copied.turns += 1,
                    }
                    sound.push(log);
                }
                Err(why) => {
                    // What was copied before it was damaged, or broken off, is no copy of it.
                    if self.to.revision(&log).await.is_ok() {
                        return Err(CopyError::Stale);
                    }
                    copied.left.push(Left { name: conversion::name_of(&log), why });
                }
            }
            progress.advance(1);
            told(progress);
        }
        for removed in &removed {
            match self.copy_removed(removed).await? {
                Ok(()) => copied.removed += 1,
                Err(why) => copied.left.push(Left { name: removed.key().to_owned(), why }),
            }
            progress.advance(1);
            told(progress);
        }
        self.to.flush(None).await?;
        self.compare(&sound, told).await?;
        Ok(copied)
    }

    /// Refuses if the new store holds what the old one does not.
    async fn check_fresh(&self, logs: &[LogId], removed: &[Removed]) -> Result<(), CopyError> {
        let known: BTreeSet<_> = logs.iter().collect();
        for kind in [LogKind::Session, LogKind::Turn] {
            let there = self.to.list(kind).await?;
            if known.is_empty() && !there.is_empty() {
                return Err(CopyError::Vanished);
            }
            if there.iter().any(|log| !known.contains(log)) {
                return Err(CopyError::Stale);
            }
        }
        let known: BTreeSet<_> = removed.iter().map(Removed::key).collect();
        let there = self.to.removed().await?;
        if there.iter().any(|removed| !known.contains(removed.key())) {
            return Err(CopyError::Stale);
        }
        Ok(())
    }

    /// Copies one log, or what is missing of it; an inner error if it is damaged.
    async fn copy(&self, log: &LogId) -> Result<Result<(), StoreError>, CopyError> {
        let records = match self.read(log).await? {
            Ok(records) => records,
            Err(why) => return Ok(Err(why)),
        };
        if self.there(log).await?.is_some() {
            // Opening it may bring back what a crash had torn.
            let mut writer = self.to.open(log).await?;
            let there = self.there(log).await?.unwrap_or_default();
            if !records.starts_with(&there) {
                return Err(CopyError::Stale);
            }
            for batch in batches(records.get(there.len()..).unwrap_or_default()) {
                writer.append(batch, Durability::Written).await?;
            }
        } else {
            let mut batches = batches(&records);
            let first = batches.next().unwrap_or_default();
            let mut writer = self.to.create(log, first).await?;
            for batch in batches {
                writer.append(batch, Durability::Written).await?;
            }
        }
        self.copy_live_text(log).await?;
        Ok(Ok(()))
    }

    /// The records of a log; an inner error if it is damaged.
    async fn read(&self, log: &LogId) -> Result<Result<Vec<Record>, StoreError>, StoreError> {
        let text = match self.scan(&self.from, log).await {
            Ok(LogText { torn: Some(_), .. }) => match self.from.open(log).await {
                // What a crash left there is kept beside the log, as at any opening.
                Ok(_writer) => self.scan(&self.from, log).await,
                Err(error) => Err(error),
            },
            scanned => scanned,
        };
        let path = self.from.locate(log).map(|location| location.path);
        let place = Place { log: log.clone(), path };
        match text.and_then(|text| records(&place, &text)) {
            Err(error) if is_damage(&error) => Ok(Err(error)),
            records => records.map(Ok),
        }
    }

    /// What stands in the new store already.
    async fn there(&self, log: &LogId) -> Result<Option<Vec<Record>>, CopyError> {
        match self.scan(&self.to, log).await {
            Err(StoreError::NotFound(_)) => Ok(None),
            Ok(text) => records(&Place { log: log.clone(), path: None }, &text)
                .map(Some)
                .map_err(|_| CopyError::Stale),
            Err(error) if is_damage(&error) => Err(CopyError::Stale),
            Err(error) => Err(error.into()),
        }
    }

    async fn scan(&self, store: &Arc<dyn LogStore>, log: &LogId) -> Result<LogText, StoreError> {
        let (store, log) = (Arc::clone(store), log.clone());
        blocking(&self.tasks, move || store.scan(&log)).await?
    }

    async fn copy_live_text(&self, log: &LogId) -> Result<(), CopyError> {
        let Some([from, to]) = &self.live_text else { return Ok(()) };
        if log.kind() == LogKind::Session {
            return Ok(());
        }
        // What an earlier conversion left there is none of it.
        to.drop_text(log).await?;
        let Some(call) = from.read(log).await? else { return Ok(()) };
        let mut at = 0;
        let deltas = call.blocks.into_iter().map(|block| {
            let delta = Delta {
                model_call_index: call.model_call_index,
                kind: block.kind,
                block: block.block,
                at,
                text: block.text,
            };
            at += delta.text.len() as u64;
            delta
        });
        let deltas: Vec<_> = deltas.collect();
        Ok(to.put(log, &deltas).await?)
    }

    async fn copy_removed(&self, removed: &Removed) -> Result<Result<(), StoreError>, CopyError> {
        let records = match self.from.inspect_removed(removed).await {
            Ok(inspection) => inspection.records,
            Err(error) if is_damage(&error) => return Ok(Err(error)),
            Err(error) => return Err(error.into()),
        };
        match self.to.take_over(removed, &records).await {
            Ok(()) | Err(StoreError::AlreadyExists(_)) => {}
            Err(error) => return Err(error.into()),
        }
        match self.to.inspect_removed(removed).await {
            Ok(there) if there.records == records => Ok(Ok(())),
            Ok(_) => Err(CopyError::Stale),
            Err(error) if is_damage(&error) => Err(CopyError::Stale),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads both once more, and compares them.
    async fn compare(&self, logs: &[LogId], told: Told<'_>) -> Result<(), CopyError> {
        let mut progress = Progress::new(Stage::Comparing, logs.len());
        for log in logs {
            let (old, new) = (self.scan(&self.from, log).await?, self.scan(&self.to, log).await?);
            if !old.lines().eq(new.lines()) || new.torn.is_some() {
                return Err(CopyError::Different(log.clone()));
            }
            progress.advance(1);
            told(progress);
        }
        Ok(())
    }
}

fn records(place: &Place, text: &LogText) -> Result<Vec<Record>, StoreError> {
    let records = text.records().map_err(|(line, why)| StoreError::Corrupt {
        place: place.clone(),
        line,
        why: Arc::new(why.into()),
    })?;
    if records.is_empty() {
        let why = Arc::new(Corruption::NoFirstRecord);
        return Err(StoreError::Corrupt { place: place.clone(), line: 1, why });
    }
    Ok(records)
}

/// The logs of an old form, the removed ones too, that are not whole in the new one; those that are left
/// behind do not count.
///
/// # Errors
/// [`StoreError`] if one of the forms cannot be listed or read at all.
pub async fn not_there(
    old: &Arc<dyn LogStore>,
    new: &Arc<dyn LogStore>,
    left: &BTreeSet<String>,
    tasks: &Tasks,
) -> Result<Vec<LogId>, StoreError> {
    let removed = new.removed().await?;
    let mut missing = Vec::new();
    for kind in [LogKind::Session, LogKind::Turn] {
        for log in old.list(kind).await? {
            if left.contains(&conversion::name_of(&log)) {
                continue;
            }
            let (old, new, of) = (Arc::clone(old), Arc::clone(new), log.clone());
            let here = blocking(tasks, move || {
                let (old, new) = (old.scan(&of), new.scan(&of));
                old.and_then(|old| Ok((old, new?)))
            });
            let is_there = match here.await? {
                Ok((old, new)) => begins_with(&new, &old),
                Err(_) => removed.iter().any(|removed| removed.log == log),
            };
            if !is_there {
                missing.push(log);
            }
        }
    }
    let kept: BTreeSet<_> = removed.iter().map(Removed::key).collect();
    for removed in old.removed().await? {
        let is_back = new.revision(&removed.log).await.is_ok();
        if !left.contains(removed.key()) && !kept.contains(removed.key()) && !is_back {
            missing.push(removed.log);
        }
    }
    Ok(missing)
}

fn begins_with(whole: &LogText, beginning: &LogText) -> bool {
    let mut lines = whole.lines();
    beginning.lines().all(|line| lines.next() == Some(line))
}

/// Whether this log cannot be read, whatever else can.
fn is_damage(error: &StoreError) -> bool {
    matches!(error, StoreError::Corrupt { .. } | StoreError::Torn { .. })
}

/// The records in batches of no more than so many bytes, or of one record.
fn batches(records: &[Record]) -> impl Iterator<Item = &[Record]> {
    let mut rest = records;
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let fits = rest.iter().take_while(|record| {
            bytes += record.as_bytes().len();
            bytes <= BATCH_BYTES
        });
        let count = fits.count().max(1).min(rest.len());
        let (batch, left) = rest.split_at(count);
        rest = left;
        (!batch.is_empty()).then_some(batch)
    })
}
