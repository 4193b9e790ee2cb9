//! The folder of a session's runtime state: its name, its lock, and its small files, of which every
//! change is durable before the next one is begun.

use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::base::clock::Timestamp;
use crate::base::id::{EventId, SessionId};
use crate::base::text;
use crate::store::atomic;
use crate::store::disk::{self, Disk, DiskFile, EntryKind, Hold, Open};
use crate::store::error::IoFailure;
use crate::store::seam::{Durability, SyncMode};

/// The most that is read of an item; a larger one is nobody's message.
pub(super) const ITEM_BYTES_MAX: usize = 1024 * 1024;
/// How many messages are claimed together at most (`design/mailbox.md`, merge and drain).
const CLAIMED_TOGETHER_MAX: usize = 20;
/// The most that is read of a claim: as many items as are claimed together, and the room of one more
/// for what stands around them.
pub(super) const CLAIM_BYTES_MAX: usize = (CLAIMED_TOGETHER_MAX + 1) * ITEM_BYTES_MAX;
/// How old a temporary file is before nobody can be writing it any more.
const TEMPORARY_MS_MAX: u64 = 60 * 60 * 1000;

const PENDING: &str = ".pending";
const CLAIM: &str = ".item.json";

/// The name of a session's folder: the hash of its key, which for a session of a terminal is
/// `channel:<sessionId>`.
pub(super) fn name_of(session: &SessionId) -> String {
    text::hex(&Sha256::digest(format!("channel:{session}")))
}

/// A folder, as the work on it sees it.
pub(super) struct Folder<'a> {
    pub(super) disk: &'a dyn Disk,
    pub(super) root: PathBuf,
    pub(super) sync: SyncMode,
}

/// The lock on a folder, free when dropped.
pub(super) enum Locked {
    Held {
        _handle: Box<dyn DiskFile>,
    },
    /// Another program has it.
    Busy,
    /// There is no folder to be locked, so nothing is in it.
    NoFolder,
}

impl Folder<'_> {
    /// Makes the folder for its first item.
    pub(super) fn make(&self) -> Result<(), IoFailure> {
        let inbox = self.inbox();
        disk::make_folders(self.disk, &inbox).map_err(IoFailure::of("make the folder", &inbox))
    }

    pub(super) fn lock(&self) -> Result<Locked, IoFailure> {
        let path = self.lock_file();
        match self.disk.open(&path, Open::OrNew) {
            Err(error) if is_gone(&error) => return Ok(Locked::NoFolder),
            opened => drop(opened.map_err(IoFailure::of("open", &path))?),
        }
        let lock = self.disk.try_lock(&path, Hold::Alone).map_err(IoFailure::of("lock", &path))?;
        Ok(lock.map_or(Locked::Busy, |handle| Locked::Held { _handle: handle }))
    }

    pub(super) fn lock_file(&self) -> PathBuf {
        self.root.join("lock")
    }

    /// The file of a message that waits.
    pub(super) fn pending(&self, event: &EventId) -> PathBuf {
        self.inbox().join(format!("{event}{PENDING}"))
    }

    /// The file of what was claimed, by its first event.
    pub(super) fn claim(&self, event: &EventId) -> PathBuf {
        self.claims().join(format!("{event}{CLAIM}"))
    }

    fn inbox(&self) -> PathBuf {
        self.root.join("inbox")
    }

    fn claims(&self) -> PathBuf {
        self.root.join("mailbox").join("pending")
    }

    /// The events that have a file in the inbox, oldest first.
    pub(super) fn pending_events(&self) -> Result<Vec<EventId>, IoFailure> {
        self.events(&self.inbox(), PENDING)
    }

    /// The events after which claims are named, oldest first.
    pub(super) fn claim_events(&self) -> Result<Vec<EventId>, IoFailure> {
        self.events(&self.claims(), CLAIM)
    }

    /// Only names of the right form count; others are left alone.
    fn events(&self, folder: &Path, suffix: &str) -> Result<Vec<EventId>, IoFailure> {
        let names = self.names(folder)?;
        let events = names.iter().filter_map(|name| name.strip_suffix(suffix)).map(EventId::from);
        let mut events: Vec<_> = events.filter(EventId::is_well_formed).collect();
        events.sort_unstable();
        Ok(events)
    }

    fn names(&self, folder: &Path) -> Result<Vec<String>, IoFailure> {
        let entries = match self.disk.entries(folder) {
            Err(error) if is_gone(&error) => return Ok(Vec::new()),
            entries => entries.map_err(IoFailure::of("list", folder))?,
        };
        Ok(entries.into_iter().filter_map(|entry| entry.name.into_string().ok()).collect())
    }

    /// The bytes of the message that waits under this name, one more than an item may have at most;
    /// `None` if it is not there.
    pub(super) fn read_pending(&self, event: &EventId) -> Result<Option<Vec<u8>>, IoFailure> {
        self.read(&self.pending(event), ITEM_BYTES_MAX)
    }

    /// The bytes of the claim with this first event, one more than a claim may have at most; `None`
    /// if it is not there.
    pub(super) fn read_claim(&self, event: &EventId) -> Result<Option<Vec<u8>>, IoFailure> {
        self.read(&self.claim(event), CLAIM_BYTES_MAX)
    }

    fn read(&self, path: &Path, bytes_max: usize) -> Result<Option<Vec<u8>>, IoFailure> {
        let size_max = bytes_max as u64 + 1;
        self.read_own(path, size_max).map_err(IoFailure::of("read", path))
    }

    /// What is put here speaks for the person: a link, or a file of somebody else, is refused as no
    /// file.
    fn read_own(&self, path: &Path, size_max: u64) -> io::Result<Option<Vec<u8>>> {
        let file = match self.disk.open(path, Open::ReadItself) {
            Err(error) if is_gone(&error) => return Ok(None),
            opened => opened?,
        };
        let stat = file.stat()?;
        if stat.owner != rustix::process::geteuid().as_raw() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it belongs to another user"));
        }
        disk::read(&*file, 0, stat.size.min(size_max)).map(Some)
    }

    /// Writes a file as a whole, durably.
    pub(super) fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), IoFailure> {
        let folder = parent_of(path);
        disk::make_folders(self.disk, folder).map_err(IoFailure::of("make the folder", folder))?;
        atomic::replace(self.disk, path, bytes, self.sync)?;
        self.sync(folder)
    }

    /// Removes a file, if it is there, so that it comes back neither now nor after a crash.
    pub(super) fn remove_for_good(&self, path: &Path) -> Result<(), IoFailure> {
        match self.disk.unlink(path) {
            Err(error) if is_gone(&error) => Ok(()),
            gone => {
                gone.map_err(IoFailure::of("delete", path))?;
                self.sync(parent_of(path))
            }
        }
    }

    /// Removes a file, if it is there. Once it is gone this has succeeded: that it came back after a
    /// crash would be no harm.
    pub(super) fn remove(&self, path: &Path) -> Result<(), IoFailure> {
        disk::unlink_if_there(self.disk, path).map_err(IoFailure::of("delete", path))?;
        if let Err(error) = self.sync(parent_of(path)) {
            tracing::warn!(%error, "a removal may come back after a crash");
        }
        Ok(())
    }

    /// Moves what is no item out of the inbox; gives where it is now.
    pub(super) fn reject_pending(&self, event: &EventId, why: &str) -> Result<PathBuf, IoFailure> {
        self.reject(event, &self.pending(event), &self.inbox().join("rejected"), why)
    }

    /// Moves what is no claim out from among the claims; gives where it is now.
    pub(super) fn reject_claim(&self, event: &EventId, why: &str) -> Result<PathBuf, IoFailure> {
        let quarantine = self.root.join("mailbox").join("quarantine");
        self.reject(event, &self.claim(event), &quarantine, why)
    }

    /// Moves a file out of the way, with the reason beside it.
    fn reject(
        &self,
        event: &EventId,
        from: &Path,
        rejected: &Path,
        why: &str,
    ) -> Result<PathBuf, IoFailure> {
        self.write(&rejected.join(format!("{event}.reason")), why.as_bytes())?;
        let to = rejected.join(from.file_name().unwrap_or_default());
        self.disk.rename(from, &to).map_err(IoFailure::of("move", from))?;
        self.sync(rejected)?;
        self.sync(parent_of(from))?;
        Ok(to)
    }

    /// Removes what writers that died have left.
    pub(super) fn sweep(&self, now: Timestamp) -> Result<(), IoFailure> {
        for folder in [self.inbox(), self.claims()] {
            for name in self.names(&folder)? {
                let path = folder.join(&name);
                let temporary = name.strip_prefix('.').and_then(|name| name.strip_suffix(".tmp"));
                if temporary.is_some() && self.is_old(&path, now) {
                    self.remove(&path)?;
                }
            }
        }
        Ok(())
    }

    fn is_old(&self, path: &Path, now: Timestamp) -> bool {
        let Ok(stat) = self.disk.stat(path) else { return false };
        let now_ms = u64::try_from(now.ms()).unwrap_or(0);
        now_ms.saturating_sub(stat.modified_ns / 1_000_000) > TEMPORARY_MS_MAX
    }

    /// Moves the whole folder, if it is there.
    pub(super) fn move_all(&self, from: &Path, to: &Path) -> Result<(), IoFailure> {
        if !self.is_there(from)? {
            return Ok(());
        }
        let parent = parent_of(to);
        disk::make_folders(self.disk, parent).map_err(IoFailure::of("make the folder", parent))?;
        self.disk.rename(from, to).map_err(IoFailure::of("move", from))?;
        self.sync(parent)?;
        self.sync(parent_of(from))
    }

    pub(super) fn is_there(&self, path: &Path) -> Result<bool, IoFailure> {
        match self.disk.stat(path) {
            Err(error) if is_gone(&error) => Ok(false),
            there => there.map(|_| true).map_err(IoFailure::of("look at", path)),
        }
    }

    fn sync(&self, folder: &Path) -> Result<(), IoFailure> {
        if self.sync.waits_for(Durability::Barrier) {
            self.disk.sync_folder(folder).map_err(IoFailure::of("sync", folder))?;
        }
        Ok(())
    }
}

/// The names of all folders of sessions.
pub(super) fn all(disk: &dyn Disk, root: &Path) -> Result<Vec<String>, IoFailure> {
    let entries = match disk.entries(root) {
        Err(error) if is_gone(&error) => return Ok(Vec::new()),
        entries => entries.map_err(IoFailure::of("list", root))?,
    };
    let folders = entries.into_iter().filter(|entry| entry.kind == EntryKind::Folder);
    Ok(folders.filter_map(|entry| entry.name.into_string().ok()).collect())
}

fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}

fn parent_of(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_folder_is_the_hash_of_its_key() {
        let session = SessionId::from("2025-11-11T04-36-29Z-0001234-000");
        let name = name_of(&session);
        assert_eq!(name, "57a30b259276ab16e516ed05a3fa5bfda48aefbb3f78a45e32a3baf8730eb2e8");
    }
}
