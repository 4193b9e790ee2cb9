//! What a work directory remembers of a conversion from one form of its logs to another: which, and
//! what could not be copied. Together with the mark of the form ([`format`](mod@crate::store::format))
//! it says how far that is: until all is copied the old form is in use, and what stands in the new one
//! are copies. From then on both are kept, and the mark alone says which is in use, until somebody
//! confirms that the other may go.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::store::atomic;
use crate::store::convert::CopyError;
use crate::store::disk::{self, Disk, EntryKind, Open};
use crate::store::error::{IoFailure, StoreError};
use crate::store::format::Format;
use crate::store::live_text::LiveText;
use crate::store::log::{LogId, LogKind};
use crate::store::seam::{LogStore, SyncMode};
use crate::store::sqlite::{BESIDE, beside};
use crate::store::work_dir::WorkDir;

/// More than any note about a conversion, were a hundred thousand logs left behind.
const NOTE_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// A conversion that was begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Conversion {
    /// The old form.
    pub from: Format,
    /// The new one.
    pub to: Format,
    /// How far it is.
    #[serde(default)]
    pub stage: Stage,
    /// Logs that are in the old form only, because they are damaged: `kind id`, or the key of a
    /// removal.
    #[serde(default)]
    pub left: BTreeSet<String>,
}

/// How far a conversion is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// Logs are copied. It is over, too, once the new form is in use.
    #[default]
    Copying,
    /// All is copied.
    Kept,
    /// The form that is not in use is being let go, so that it is whole no more.
    Going,
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

    /// The form that is kept beside the one in use; `None` while logs are copied.
    #[must_use]
    pub fn kept(&self, in_use: Format) -> Option<Format> {
        match self.stage {
            Stage::Copying => (self.to == in_use).then_some(self.from),
            Stage::Kept | Stage::Going if self.to == in_use => Some(self.from),
            Stage::Kept | Stage::Going => Some(self.to),
        }
    }

    /// The logs that a form alone has.
    #[must_use]
    pub fn left_in(&self, form: Format) -> BTreeSet<String> {
        if form == self.from { self.left.clone() } else { BTreeSet::new() }
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

/// Drops what was streamed into turns, but for what is left.
///
/// # Errors
/// As [`LogStore::list`] and [`LiveText::drop_text`]; the rest is for the next time.
pub async fn clear_live_text(
    store: &dyn LogStore,
    live_text: &dyn LiveText,
    left: &BTreeSet<String>,
) -> Result<(), CopyError> {
    for turn in store.list(LogKind::Turn).await? {
        if !left.contains(&name_of(&turn)) {
            live_text.drop_text(&turn).await?;
        }
    }
    Ok(())
}

/// Destroys the logs of files, and those that were removed, but for what is left; what was cut off
/// logs stays.
///
/// # Errors
/// As [`LogStore::list`], and `Io`; the rest is for the next time.
pub async fn clear_files(
    store: &dyn LogStore,
    suffix: &str,
    (disk, work_dir): (&dyn Disk, &WorkDir),
    left: &BTreeSet<String>,
) -> Result<(), StoreError> {
    for (key, path) in removed_files(disk, work_dir, suffix)? {
        if !left.contains(&key) {
            unlink(disk, &path)?;
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

/// The logs in the folders of removals, whether those can still be restored or not, each with the key of
/// its removal.
fn removed_files(
    disk: &dyn Disk,
    work_dir: &WorkDir,
    suffix: &str,
) -> Result<Vec<(String, PathBuf)>, IoFailure> {
    let deleted = work_dir.deleted();
    let listed = |folder: &Path| match disk.entries(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        entries => entries.map_err(IoFailure::of("list", folder)),
    };
    let mut files = Vec::new();
    for folder in listed(&deleted)?.into_iter().filter(|it| it.kind == EntryKind::Folder) {
        let key = folder.name.to_string_lossy().into_owned();
        for entry in listed(&deleted.join(&folder.name))? {
            let id = entry.name.to_str().and_then(|name| name.strip_suffix(suffix));
            if id.is_some_and(|id| LogId::new(LogKind::Session, id).is_ok()) {
                files.push((key.clone(), deleted.join(&folder.name).join(&entry.name)));
            }
        }
    }
    Ok(files)
}

/// Makes everything of a form safe on the device, whoever wrote it: what an earlier process had copied
/// is not known to be.
///
/// # Errors
/// As [`LogStore::list`], and `Io`.
pub async fn make_safe(
    store: &dyn LogStore,
    suffix: Option<&str>,
    (disk, work_dir): (&dyn Disk, &WorkDir),
) -> Result<(), StoreError> {
    let mut paths = Vec::new();
    if let Some(suffix) = suffix {
        for kind in [LogKind::Session, LogKind::Turn] {
            let logs = store.list(kind).await?;
            paths.extend(logs.iter().filter_map(|log| store.locate(log)).map(|it| it.path));
        }
        paths.extend(removed_files(disk, work_dir, suffix)?.into_iter().map(|(_, path)| path));
    } else {
        let database = work_dir.database();
        let journal = beside(&database, "-wal");
        paths.extend([database, journal]);
    }
    let mut folders = BTreeSet::from([work_dir.storage()]);
    for path in &paths {
        match disk.open(path, Open::Write) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            file => file.and_then(|file| file.sync()).map_err(IoFailure::of("sync", path))?,
        }
        folders.extend(path.parent().map(Path::to_path_buf));
    }
    for folder in &folders {
        disk.sync_folder(folder).map_err(IoFailure::of("sync the folder", folder))?;
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
    for suffix in BESIDE {
        unlink(disk, &beside(&path, suffix))?;
    }
    unlink(disk, &path)
}

fn unlink(disk: &dyn Disk, path: &Path) -> Result<(), IoFailure> {
    disk::unlink_if_there(disk, path).map(drop).map_err(IoFailure::of("delete", path))
}
