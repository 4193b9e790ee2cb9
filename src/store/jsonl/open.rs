//! Opening a log for its one writer. Bytes after the last whole record are the rest of a write that
//! was never acknowledged: they are set aside, durably, before they are cut. Where records among them
//! are whole, the log is written anew with these at its end, and takes the place of the old one: at no
//! time is there one without them.

use std::path::{Path, PathBuf};

use crate::store::disk::{self, DiskFile, Open};
use crate::store::error::{IoFailure, StoreError};
use crate::store::jsonl::append::Tail;
use crate::store::jsonl::files::{Files, revision_of};
use crate::store::jsonl::read::Acked;
use crate::store::log::{Inspection, LogId, SetAside, Torn, join};

/// The end of a log that has just been read as `inspection`.
pub(super) fn open(
    files: &Files,
    log: &LogId,
    inspection: &Inspection,
) -> Result<(Tail, Acked), StoreError> {
    files.check_lock()?;
    let path = files.file(log);
    let file = files.disk.open(&path, Open::Write).map_err(files.failed(log, "open"))?;
    let stat = file.stat().map_err(files.failed(log, "look at"))?;
    if revision_of(&stat) != inspection.revision {
        let [_, _, expected, ..] = inspection.revision.0;
        return Err(StoreError::Changed { place: files.place(log), expected, found: stat.size });
    }
    let records = inspection.records.len() as u64;
    let (file, size, records) = match inspection.torn {
        None => (file, stat.size, records),
        Some(torn) => {
            let Repaired { file, size, recovered } =
                repair(files, log, file, torn).map_err(files.refused(log))?;
            (file, size, records + recovered)
        }
    };
    let mut tail = Tail::new(log, path, file, size, records);
    let acked = tail.acked(files)?;
    Ok((tail, acked))
}

/// A log without its torn end.
struct Repaired {
    file: Box<dyn DiskFile>,
    size: u64,
    /// How many records of the torn end it has now.
    recovered: u64,
}

fn repair(
    files: &Files,
    log: &LogId,
    torn_file: Box<dyn DiskFile>,
    torn: Torn,
) -> Result<Repaired, IoFailure> {
    let path = files.file(log);
    let bytes =
        disk::read(&*torn_file, torn.offset, torn.bytes).map_err(IoFailure::of("read", &path))?;
    let aside = set_aside(files, &path, &bytes)?;
    let (added, recovered) = again(files, torn.offset, &bytes);
    let file = if added.is_empty() {
        torn_file.truncate(torn.offset).map_err(IoFailure::of("cut", &path))?;
        files.stamp(&*torn_file, &path)?;
        torn_file.sync().map_err(IoFailure::of("sync", &path))?;
        torn_file
    } else {
        let whole = disk::read(&*torn_file, 0, torn.offset);
        let whole = whole.map_err(IoFailure::of("read", &path))?;
        let file = files.replace(&path, &[&whole[..], &added].concat())?;
        files.sync_folder_of(&path)?;
        file
    };
    let set_aside = SetAside { log: log.clone(), bytes: torn.bytes, recovered, path: aside };
    tracing::warn!(%set_aside, "a torn end was cut off");
    // Nobody following is no error.
    drop(files.set_aside.send(set_aside));
    Ok(Repaired { file, size: torn.offset + added.len() as u64, recovered })
}

/// Keeps what is to be cut off the log at `path`.
fn set_aside(files: &Files, path: &Path, torn: &[u8]) -> Result<PathBuf, IoFailure> {
    let aside = Files::torn(path, torn);
    let kept = files.disk.open(&aside, Open::Emptied).map_err(IoFailure::of("create", &aside))?;
    disk::write(&*kept, 0, torn).map_err(IoFailure::of("write", &aside))?;
    kept.sync().map_err(IoFailure::of("sync", &aside))?;
    files.sync_folder_of(&aside)?;
    Ok(aside)
}

/// The whole records of a torn end as bytes that count, and how many they are.
fn again(files: &Files, offset: u64, torn: &[u8]) -> (Vec<u8>, u64) {
    let encoding = files.options.encoding;
    let records = encoding.recover(torn);
    match encoding.encode(join(&records), offset) {
        Ok(bytes) => (bytes, records.len() as u64),
        // They are kept with the rest of it.
        Err(error) => {
            tracing::warn!(%error, "what is whole of a torn end cannot be added again");
            (Vec::new(), 0)
        }
    }
}
