//! Opening a log for its one writer. Bytes after the last whole record are the rest of a write that
//! was never acknowledged: they are set aside, durably, before they are cut; the records among them
//! that are whole are then added anew.

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
    let (size, records) = match inspection.torn {
        None => (stat.size, records),
        Some(torn) => {
            let Cut { added, recovered } =
                cut(files, log, &*file, torn).map_err(files.refused(log))?;
            (torn.offset + added, records + recovered)
        }
    };
    let mut tail = Tail::new(log, path, file, size, records);
    let acked = tail.acked(files)?;
    Ok((tail, acked))
}

/// What a torn end became.
struct Cut {
    /// How many bytes were added in its place.
    added: u64,
    /// How many records they are.
    recovered: u64,
}

fn cut(files: &Files, log: &LogId, file: &dyn DiskFile, torn: Torn) -> Result<Cut, IoFailure> {
    let path = files.file(log);
    let bytes = disk::read(file, torn.offset, torn.bytes).map_err(IoFailure::of("read", &path))?;
    let aside = Files::torn(&path, &bytes);
    let kept = files.disk.open(&aside, Open::Emptied).map_err(IoFailure::of("create", &aside))?;
    disk::write(&*kept, 0, &bytes).map_err(IoFailure::of("write", &aside))?;
    kept.sync().map_err(IoFailure::of("sync", &aside))?;
    files.sync_folder_of(&aside)?;
    let (added, recovered) = again(files, torn.offset, &bytes);
    file.truncate(torn.offset).map_err(IoFailure::of("cut", &path))?;
    disk::write(file, torn.offset, &added).map_err(IoFailure::of("append to", &path))?;
    files.stamp(file, &path)?;
    file.sync().map_err(IoFailure::of("sync", &path))?;
    let set_aside = SetAside { log: log.clone(), bytes: torn.bytes, recovered, path: aside };
    tracing::warn!(%set_aside, "a torn end was cut off");
    // Nobody following is no error.
    drop(files.set_aside.send(set_aside));
    Ok(Cut { added: added.len() as u64, recovered })
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
