//! Reading a log: one open, one look at its size, one read, then a walk over what is in it.

use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::store::disk::{self, Open};
use crate::store::error::{Corruption, IoFailure, Place, StoreError};
use crate::store::jsonl::encoding::Damage;
use crate::store::jsonl::files::{Files, revision_of};
use crate::store::jsonl::options::TornTail;
use crate::store::log::{Inspection, LogId, LogText, Revision, Snapshot, Torn};
use crate::store::remnant::Remnant;

/// What a snapshot reads at first. Headers of sessions are far smaller; the first record of a turn
/// holds a system prompt and the descriptions of tools, and may need a second look.
const FIRST_READ_BYTES: u64 = 16 * 1024;

/// What a writer of this process has acknowledged of its log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Acked {
    pub(super) size: u64,
    pub(super) records: u64,
    pub(super) revision: Revision,
}

/// How far a log is read.
#[derive(Clone, Copy, Debug)]
pub(super) enum Extent {
    /// To its end; nobody writes it.
    Cold,
    /// As far as its writer has acknowledged.
    Live(Acked),
}

pub(super) fn revision(files: &Files, log: &LogId) -> Result<Revision, StoreError> {
    let stat = files.disk.stat(&files.file(log)).map_err(files.failed(log, "look at"))?;
    Ok(revision_of(&stat))
}

pub(super) fn read(files: &Files, log: &LogId, extent: Extent) -> Result<LogText, StoreError> {
    read_at(files, &files.place(log), extent)
}

/// As [`read`], of a log that is in this place.
pub(super) fn read_at(files: &Files, place: &Place, extent: Extent) -> Result<LogText, StoreError> {
    let failed = |action| failed(place, action);
    let file = files.disk.open(path_of(files, place), Open::Read).map_err(failed("open"))?;
    let stat = file.stat().map_err(failed("look at"))?;
    let (size, revision) = match extent {
        Extent::Cold => (stat.size, revision_of(&stat)),
        Extent::Live(acked) => (acked.size, acked.revision),
    };
    let bytes = disk::read(&*file, 0, size).map_err(failed("read"))?;
    let found = bytes.len() as u64;
    if found < size {
        return Err(StoreError::Changed { place: place.clone(), expected: size, found });
    }
    let text = files.options.encoding.decode(bytes, revision, &files.decoders);
    let text = text.map_err(|Damage { line, why }| corrupt(place, line, why))?;
    match text.torn {
        // A log without one whole record is corrupt and not torn.
        Some(Torn { offset, bytes })
            if offset > 0 && files.options.torn_tail == TornTail::Reject =>
        {
            Err(StoreError::Torn { place: place.clone(), offset, bytes })
        }
        _ => Ok(text),
    }
}

/// What can still be had of a log that is kept in a file, however damaged it is.
pub(super) fn remnants(files: &Files, place: &Place) -> Result<Vec<Remnant>, StoreError> {
    let failed = |action| failed(place, action);
    let file = files.disk.open(path_of(files, place), Open::Read).map_err(failed("open"))?;
    let size = file.stat().map_err(failed("look at"))?.size;
    let bytes = disk::read(&*file, 0, size).map_err(failed("read"))?;
    Ok(files.options.encoding.remnants(bytes, &files.decoders))
}

/// How many bytes the file of a log takes.
pub(super) fn size(files: &Files, log: &LogId) -> Result<u64, StoreError> {
    let stat = files.disk.stat(&files.file(log)).map_err(files.failed(log, "look at"))?;
    Ok(stat.size)
}

/// Checks that every line is a record.
pub(super) fn inspect(place: &Place, text: &LogText) -> Result<Inspection, StoreError> {
    let records = text.records().map_err(|(line, why)| corrupt(place, line, why.into()))?;
    let Some(first) = records.first().cloned() else {
        return Err(corrupt(place, 1, Corruption::NoFirstRecord));
    };
    Ok(Inspection { first, records, revision: text.revision, torn: text.torn })
}

/// The first record alone, without a look at what follows.
pub(super) fn snapshot(files: &Files, log: &LogId) -> Result<Snapshot, StoreError> {
    let file = files.disk.open(&files.file(log), Open::Read).map_err(files.failed(log, "open"))?;
    let stat = file.stat().map_err(files.failed(log, "look at"))?;
    let mut wanted = FIRST_READ_BYTES.min(stat.size);
    loop {
        let bytes = disk::read(&*file, 0, wanted).map_err(files.failed(log, "read"))?;
        let first = files.options.encoding.first(bytes, &files.decoders);
        if let Some(first) = first.map_err(|why| corrupt(&files.place(log), 1, why))? {
            return Ok(Snapshot { log: log.clone(), first, revision: revision_of(&stat) });
        }
        if wanted >= stat.size {
            return Err(corrupt(&files.place(log), 1, Corruption::NoFirstRecord));
        }
        wanted = wanted.saturating_mul(4).min(stat.size);
    }
}

fn path_of<'a>(files: &'a Files, place: &'a Place) -> &'a Path {
    place.path.as_deref().unwrap_or(files.work_dir.root())
}

/// For `map_err`: the refusal of the system, of a log that is in this place.
fn failed(place: &Place, action: &'static str) -> impl FnOnce(io::Error) -> StoreError {
    move |error| match (error.kind(), &place.path) {
        (io::ErrorKind::NotFound, _) | (_, None) => StoreError::NotFound(place.clone()),
        (_, Some(path)) => IoFailure::of(action, path)(error).into(),
    }
}

/// The error for a line that cannot be read. What is only more than memory holds is no damage.
fn corrupt(place: &Place, line: u64, why: Corruption) -> StoreError {
    match (&why, &place.path) {
        (Corruption::Frame { why: fault, .. }, Some(path)) if fault.is_of_memory() => {
            let cause = io::Error::new(io::ErrorKind::OutOfMemory, why);
            IoFailure::of("read", path)(cause).into()
        }
        _ => StoreError::Corrupt { place: place.clone(), line, why: Arc::new(why) },
    }
}
