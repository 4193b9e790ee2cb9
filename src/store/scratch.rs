//! Small private files that are replaced as a whole: drafts, the composer's settings, the history of
//! what was typed. A reader finds the old text or the new one, also after a crash. What belongs to a
//! log can be set aside where the log is kept after its removal.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use crate::base::tasks::Tasks;
use crate::store::atomic;
use crate::store::blocking::InOrder;
use crate::store::disk::{self, Disk, Stat};
use crate::store::error::{FileError, IoFailure};
use crate::store::log::Removed;
use crate::store::seam::SyncMode;
use crate::store::work_dir::WorkDir;

/// More than anybody types or pastes; a text is read as a whole.
pub const SCRATCH_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// What stands before the name of a scratch file that was set aside, in the folder of a removal.
const ASIDE: &str = "composer-";
/// What every file system takes as a name, with room for the temporary one and [`ASIDE`].
const NAME_BYTES_MAX: usize = 200;

/// The name of a scratch file, checked, so that a path may be made of it: letters, digits, `-`, `_`
/// and `.`, which does not come first.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ScratchName(String);

impl fmt::Display for ScratchName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A text that is no name of a scratch file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the name of a scratch file: {0:?}")]
pub struct MalformedName(String);

impl FromStr for ScratchName {
    type Err = MalformedName;

    fn from_str(text: &str) -> Result<Self, MalformedName> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let length = (1..=NAME_BYTES_MAX).contains(&text.len());
        if length && !text.starts_with('.') && text.bytes().all(plain) {
            Ok(Self(text.to_owned()))
        } else {
            Err(MalformedName(text.chars().take(NAME_BYTES_MAX).collect()))
        }
    }
}

/// Why a scratch file was not written.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ScratchError {
    /// It is too long; what was there stays.
    #[error("{bytes} bytes are more than the {SCRATCH_BYTES_MAX} that are kept")]
    TooLong {
        /// How long it is.
        bytes: u64,
    },
    /// The file could not be read or written; what was there stays.
    #[error(transparent)]
    File(#[from] FileError),
}

/// The scratch files of a work directory.
#[derive(Clone)]
pub struct Scratch {
    folder: PathBuf,
    deleted: PathBuf,
    sync: SyncMode,
    work: InOrder,
}

impl Scratch {
    /// The scratch files in `work_dir`.
    #[must_use]
    pub fn new(disk: Arc<dyn Disk>, work_dir: &WorkDir, tasks: Tasks, sync: SyncMode) -> Self {
        let (folder, deleted) = (work_dir.composer(), work_dir.deleted());
        Self { folder, deleted, sync, work: InOrder::new(disk, tasks) }
    }

    /// Puts a text in the place of what the name held. Of two puts the later one stays.
    ///
    /// # Errors
    /// [`ScratchError`]; what was there stays.
    pub async fn put(&self, name: &ScratchName, text: &str) -> Result<(), ScratchError> {
        self.write(self.path(name), text).await
    }

    /// As [`put`](Self::put), where the name was [set aside](Self::set_aside).
    ///
    /// # Errors
    /// [`ScratchError`], also if the removal was destroyed.
    pub async fn put_aside(
        &self,
        removed: &Removed,
        name: &ScratchName,
        text: &str,
    ) -> Result<(), ScratchError> {
        self.write(self.aside(removed, name), text).await
    }

    async fn write(&self, path: PathBuf, text: &str) -> Result<(), ScratchError> {
        let bytes = text.len() as u64;
        if bytes > SCRATCH_BYTES_MAX {
            return Err(ScratchError::TooLong { bytes });
        }
        let (text, sync) = (text.to_owned(), self.sync);
        let put = self.work.run(move |disk| atomic::replace(disk, &path, text.as_bytes(), sync));
        Ok(put.await?)
    }

    /// The text that the name holds, if there is one.
    ///
    /// # Errors
    /// [`FileError`], also for a file that is no text or too long.
    pub async fn get(&self, name: &ScratchName) -> Result<Option<String>, FileError> {
        let path = self.path(name);
        self.work
            .run(move |disk| {
                let bytes = disk::read_small(disk, &path, SCRATCH_BYTES_MAX + 1);
                bytes
                    .and_then(|bytes| bytes.map(text_of).transpose())
                    .map_err(IoFailure::of("read", &path))
            })
            .await
    }

    /// Forgets what the name holds.
    ///
    /// # Errors
    /// [`FileError`].
    pub async fn remove(&self, name: &ScratchName) -> Result<(), FileError> {
        let path = self.path(name);
        self.work
            .run(move |disk| {
                disk::unlink_if_there(disk, &path).map_err(IoFailure::of("delete", &path))
            })
            .await
    }

    /// Moves what the names hold to where a removed log is kept: it can be
    /// [brought back](Self::bring_back) before the log is restored, and is destroyed with it.
    ///
    /// # Errors
    /// [`FileError`]; what comes after the name that failed is where it was.
    pub async fn set_aside(
        &self,
        removed: &Removed,
        names: &[ScratchName],
    ) -> Result<(), FileError> {
        let moves = names.iter().map(|name| (self.path(name), self.aside(removed, name)));
        let moves: Vec<_> = moves.collect();
        self.work
            .run(move |disk| moves.iter().try_for_each(|(from, to)| move_if_there(disk, from, to)))
            .await
    }

    /// Moves all that was [set aside](Self::set_aside) back to its names.
    ///
    /// # Errors
    /// [`FileError`]; what was not moved is still aside.
    pub async fn bring_back(&self, removed: &Removed) -> Result<(), FileError> {
        let (aside, folder) = (self.deleted.join(&removed.key), self.folder.clone());
        self.work
            .run(move |disk| {
                let entries = match disk.entries(&aside) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                    entries => entries.map_err(IoFailure::of("list", &aside))?,
                };
                let names = entries.iter().filter_map(|entry| entry.name.to_str());
                names.filter_map(|name| Some((name, name.strip_prefix(ASIDE)?))).try_for_each(
                    |(name, own)| move_if_there(disk, &aside.join(name), &folder.join(own)),
                )
            })
            .await
    }

    /// Moves what the name holds, which could not be read, beside it under a name that nothing else
    /// has; gives that, if anything was there. The name is free then.
    ///
    /// # Errors
    /// [`FileError`]; it is still in its place.
    pub async fn set_unreadable_aside(
        &self,
        name: &ScratchName,
    ) -> Result<Option<String>, FileError> {
        let path = self.path(name);
        self.work
            .run(move |disk| {
                let stat = match disk.stat(&path) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                    stat => stat.map_err(IoFailure::of("look at", &path))?,
                };
                let own = path.file_name().unwrap_or_default().to_string_lossy();
                let aside = format!("{own}.unreadable-{}", fingerprint(stat));
                let moved = disk.rename(&path, &path.with_file_name(&aside));
                moved.map(|()| Some(aside)).map_err(IoFailure::of("move", &path))
            })
            .await
    }

    fn path(&self, name: &ScratchName) -> PathBuf {
        self.folder.join(&name.0)
    }

    fn aside(&self, removed: &Removed, name: &ScratchName) -> PathBuf {
        self.deleted.join(&removed.key).join(format!("{ASIDE}{}", name.0))
    }
}

fn move_if_there(disk: &dyn Disk, from: &Path, to: &Path) -> Result<(), IoFailure> {
    let is_gone = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    match disk.rename(from, to) {
        // It may be the new folder that is not there.
        Err(error) if is_gone(&error) && disk.stat(from).is_err_and(|error| is_gone(&error)) => {
            Ok(())
        }
        moved => moved.map_err(IoFailure::of("move", from)),
    }
}

/// What tells a file from every other that had the same name.
fn fingerprint(stat: Stat) -> String {
    let Stat { device, inode, size, modified_ns, .. } = stat;
    let mut hash = Sha256::new();
    for number in [device, inode, size, modified_ns] {
        hash.update(number.to_le_bytes());
    }
    let first =
        hash.finalize().iter().take(8).fold(0, |sum: u64, byte| sum << 8 | u64::from(*byte));
    format!("{first:016x}")
}

fn text_of(bytes: Vec<u8>) -> io::Result<String> {
    if bytes.len() as u64 > SCRATCH_BYTES_MAX {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

impl fmt::Debug for Scratch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scratch").field("folder", &self.folder).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::clock::Timestamp;
    use crate::store::disk::RealDisk;
    use crate::store::log::{LogId, LogKind};
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    fn scratch(folder: &tempfile::TempDir) -> Scratch {
        let work_dir = WorkDir::new(folder.path().to_path_buf()).expect("absolute");
        work_dir.prepare(&RealDisk).expect("prepared");
        Scratch::new(Arc::new(RealDisk), &work_dir, Tasks::new(), SyncMode::Barrier)
    }

    fn name(text: &str) -> ScratchName {
        text.parse().expect("a name")
    }

    #[tokio::test]
    async fn the_last_text_of_a_name_is_kept_for_its_owner_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let (scratch, draft) = (scratch(&folder), name("draft-2025-11-11T04-36-29Z-0001234-000"));
        assert_eq!(scratch.get(&draft).await.expect("readable"), None);
        for text in ["a long first draft", "", "zwei\n\u{1F600}"] {
            scratch.put(&draft, text).await.expect("put");
            let kept = scratch.get(&draft).await.expect("readable");
            assert_eq!(kept.as_deref(), Some(text));
        }
        let mode = fs::metadata(scratch.path(&draft)).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(
            fs::read_dir(&scratch.folder).expect("there").count(),
            1,
            "nothing else is left"
        );
        scratch.remove(&draft).await.expect("removed");
        scratch.remove(&draft).await.expect("removed again");
        assert_eq!(scratch.get(&draft).await.expect("readable"), None);
    }

    #[tokio::test]
    async fn of_puts_at_once_the_last_one_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let (scratch, draft) = (scratch(&folder), name("draft"));
        let texts: Vec<_> = (0..20).map(|number| number.to_string()).collect();
        let puts = texts.iter().map(|text| scratch.put(&draft, text));
        for put in futures_util::future::join_all(puts).await {
            put.expect("put");
        }
        assert_eq!(scratch.get(&draft).await.expect("readable").as_deref(), Some("19"));
    }

    #[tokio::test]
    async fn a_text_that_is_too_long_leaves_the_old_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let (scratch, draft) = (scratch(&folder), name("draft"));
        scratch.put(&draft, "short").await.expect("put");
        let long = "x".repeat(usize::try_from(SCRATCH_BYTES_MAX).expect("fits") + 1);
        let refused = scratch.put(&draft, &long).await;
        assert!(matches!(refused, Err(ScratchError::TooLong { .. })));
        assert_eq!(scratch.get(&draft).await.expect("readable").as_deref(), Some("short"));
    }

    #[tokio::test]
    async fn what_is_set_aside_comes_back_and_is_nowhere_else_meanwhile() {
        let folder = tempfile::tempdir().expect("a folder");
        let (scratch, draft) = (scratch(&folder), name("draft"));
        let log = LogId::new(LogKind::Session, "2025-11-11T04-36-29Z-0001234-000").expect("valid");
        let removed = Removed { log, at: Timestamp::default(), key: "session-1".to_owned() };
        let aside = folder.path().join("var/deleted/session-1");
        scratch.put(&draft, "half a thought").await.expect("put");
        let refused = scratch.set_aside(&removed, std::slice::from_ref(&draft)).await;
        assert!(refused.is_err(), "nothing was removed under that name");
        assert!(scratch.get(&draft).await.expect("readable").is_some());

        fs::create_dir(&aside).expect("a removal");
        fs::write(aside.join("log.jsonl"), "").expect("its log");
        let names = [draft.clone(), name("never-put")];
        scratch.set_aside(&removed, &names).await.expect("set aside");
        scratch.put_aside(&removed, &name("later"), "more").await.expect("put aside");
        assert_eq!(fs::read_dir(&scratch.folder).expect("there").count(), 0);
        scratch.bring_back(&removed).await.expect("brought back");
        assert_eq!(scratch.get(&draft).await.expect("readable").as_deref(), Some("half a thought"));
        assert_eq!(scratch.get(&name("later")).await.expect("readable").as_deref(), Some("more"));
        assert_eq!(fs::read_dir(&aside).expect("there").count(), 1, "the log is not ours");
        fs::remove_dir_all(&aside).expect("restored");
        scratch.bring_back(&removed).await.expect("nothing to bring back");
    }

    #[test]
    fn only_plain_names_are_names() {
        for text in ["", ".", "..", ".x", "a/b", "a\\b", "é", "a b", &"x".repeat(201)] {
            assert!(text.parse::<ScratchName>().is_err(), "{text:?}");
        }
        assert!("settings-2025.json".parse::<ScratchName>().is_ok());
    }
}
