//! What a work directory remembers of a conversion from one form of its logs to another: which, and
//! what could not be copied. Together with the mark of the form ([`format`](mod@crate::store::format))
//! it says how far that is: while the mark says the old form, the copies are not finished; once it
//! says the new one, the old logs are kept until somebody confirms that they may go.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::store::atomic;
use crate::store::disk::{self, Disk};
use crate::store::error::{IoFailure, StoreError};
use crate::store::format::Format;
use crate::store::log::{LogId, LogKind};
use crate::store::seam::{LogStore, SyncMode};
use crate::store::work_dir::WorkDir;

/// More than any note about a conversion, were a hundred thousand logs left behind.
const NOTE_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// What SQLite puts beside a database.
const BESIDE_DATABASE: [&str; 3] = ["-wal", "-shm", "-journal"];

/// A conversion that was begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Conversion {
    /// The old form.
    pub from: Format,
    /// The new one.
    pub to: Format,
    /// Logs that are in the old form only, because they are damaged: `kind id`, or the key of a
    /// removal.
    #[serde(default)]
    pub left: BTreeSet<String>,
}

/// Why what is remembered of a conversion cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum ConversionError {
    /// The file does not say what it should.
    #[error("{} is no note about a conversion: {source}; move it away", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// The system refused.
    #[error(transparent)]
    Io(#[from] IoFailure),
}

impl Conversion {
    /// What is remembered; `None` where nothing is under way or waits.
    ///
    /// # Errors
    /// [`ConversionError`].
    pub fn read(disk: &dyn Disk, work_dir: &WorkDir) -> Result<Option<Self>, ConversionError> {
        let path = work_dir.conversion_file();
        let text =
            disk::read_small(disk, &path, NOTE_BYTES_MAX).map_err(IoFailure::of("read", &path))?;
        let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(None) };
        let note = serde_json::from_slice(&text);
        note.map(Some).map_err(|source| ConversionError::Unreadable { path, source })
    }

    /// Remembers it, safe on the device.
    ///
    /// # Errors
    /// [`IoFailure`].
    pub fn write(&self, disk: &dyn Disk, work_dir: &WorkDir) -> Result<(), IoFailure> {
        let path = work_dir.conversion_file();
        let failed = |error: serde_json::Error| IoFailure::of("write", &path)(error.into());
        let text = serde_json::to_vec(self).map_err(failed)?;
        atomic::replace(disk, &path, &text, SyncMode::Always)?;
        let folder = work_dir.storage();
        disk.sync_folder(&folder).map_err(IoFailure::of("sync the folder", &folder))
    }

    /// Forgets all about it.
    ///
    /// # Errors
    /// [`IoFailure`].
    pub fn forget(disk: &dyn Disk, work_dir: &WorkDir) -> Result<(), IoFailure> {
        let path = work_dir.conversion_file();
        disk::unlink_if_there(disk, &path).map(drop).map_err(IoFailure::of("delete", &path))
    }
}

/// How a log that is left behind is remembered.
#[must_use]
pub fn name_of(log: &LogId) -> String {
    log.to_string()
}

/// Destroys the logs of files, and those that were removed, but for what is left; what was cut off
/// logs stays.
///
/// # Errors
/// As [`LogStore::list`], and `Io`; the rest is for the next time.
pub async fn clear_files(
    store: &dyn LogStore,
    disk: &dyn Disk,
    work_dir: &WorkDir,
    left: &BTreeSet<String>,
) -> Result<(), StoreError> {
    for removed in store.removed().await? {
        let Some(place) = store.locate(&removed.log) else { continue };
        if !left.contains(removed.key()) {
            let name = place.path.file_name().unwrap_or_default();
            unlink(disk, &work_dir.removal(&removed).join(name))?;
        }
    }
    for kind in [LogKind::Session, LogKind::Turn] {
        for log in store.list(kind).await? {
            let Some(place) = store.locate(&log) else { continue };
            if !left.contains(&name_of(&log)) {
                unlink(disk, &place.path)?;
            }
        }
    }
    Ok(())
}

/// Destroys the database, which nobody in this process may have open.
///
/// # Errors
/// [`IoFailure`]; the rest is for the next time.
pub fn clear_database(disk: &dyn Disk, work_dir: &WorkDir) -> Result<(), IoFailure> {
    let path = work_dir.database();
    // The journal first: without the database it would be taken for that of the next one.
    for suffix in BESIDE_DATABASE {
        let mut beside = path.as_os_str().to_owned();
        beside.push(suffix);
        unlink(disk, Path::new(&beside))?;
    }
    unlink(disk, &path)
}

fn unlink(disk: &dyn Disk, path: &Path) -> Result<(), IoFailure> {
    disk::unlink_if_there(disk, path).map(drop).map_err(IoFailure::of("delete", path))
}
