//! What the operations of this backend share: the disk, the configuration, and the names of files.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use sha2::{Digest as _, Sha256};
use tokio::sync::broadcast;

use crate::base::clock::{Clock, Entropy};
use crate::base::tasks::Tasks;
use crate::store::disk::{self, Disk, DiskFile, Open, Stat};
use crate::store::error::{Corruption, IoFailure, Place, StoreError};
use crate::store::frames::Decoders;
use crate::store::jsonl::options::Options;
use crate::store::lock::InstanceLock;
use crate::store::log::{LogId, LogKind, Revision, SetAside};
use crate::store::seam::{Durability, SyncMode};
use crate::store::work_dir::WorkDir;

/// Stands between the name of a log and the hash of what was cut off it.
const TORN: &str = ".torn-";
/// How many torn ends wait for whoever follows; they are in the log of the program, too.
const SET_ASIDE_WAITING_MAX: usize = 64;

/// The surroundings of the backend, fixed when it is made.
pub(super) struct Files {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) work_dir: WorkDir,
    pub(super) options: Options,
    pub(super) decoders: Decoders,
    pub(super) tasks: Tasks,
    pub(super) lock: Option<Arc<InstanceLock>>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) entropy: Arc<dyn Entropy>,
    /// Counts the times that were set, so that no two are equal within a millisecond.
    pub(super) stamps: AtomicU64,
    /// Set once a log had to be published by a plain rename.
    pub(super) unexclusive: AtomicBool,
    /// Tells of torn ends.
    pub(super) set_aside: broadcast::Sender<SetAside>,
}

/// The way by which torn ends are told.
pub(super) fn set_aside_feed() -> broadcast::Sender<SetAside> {
    broadcast::channel(SET_ASIDE_WAITING_MAX).0
}

impl Files {
    pub(super) fn file(&self, log: &LogId) -> PathBuf {
        let mut file = self.work_dir.dated(log);
        file.push([log.id(), self.options.encoding.suffix()].concat());
        file
    }

    pub(super) fn place(&self, log: &LogId) -> Place {
        Place { log: log.clone(), path: Some(self.file(log)) }
    }

    /// A name in the folder of `path` that no reader takes for a log.
    pub(super) fn temporary(&self, path: &Path) -> PathBuf {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        path.with_file_name(format!(".{name}.{:016x}.tmp", self.entropy.bits()))
    }

    /// The one file for exactly these bytes cut off a log.
    pub(super) fn torn(path: &Path, cut: &[u8]) -> PathBuf {
        let hash = Sha256::digest(cut);
        let prefix = hash.iter().take(8).fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
        let mut name = OsString::from(path);
        name.push(format!("{TORN}{prefix:016x}"));
        PathBuf::from(name)
    }

    /// The log that a file name in a dated folder belongs to; `None` for everything that is no log.
    pub(super) fn log_of(&self, kind: LogKind, name: &OsStr) -> Option<LogId> {
        let id = name.to_str()?.strip_suffix(self.options.encoding.suffix())?;
        LogId::new(kind, id).ok()
    }

    /// Whether a name beside a log goes where the log goes: what was cut off it, and the text of a turn
    /// that was streaming.
    pub(super) fn is_companion(&self, log: &LogId, name: &OsStr) -> bool {
        let rest = name.to_str().and_then(|name| name.strip_prefix(log.id()));
        let torn = [self.options.encoding.suffix(), TORN].concat();
        rest.is_some_and(|rest| rest == ".live" || rest.starts_with(&torn))
    }

    /// Whether a name is that of something that was cut off a log.
    pub(super) fn is_set_aside(&self, name: &OsStr) -> bool {
        let torn = [self.options.encoding.suffix(), TORN].concat();
        name.to_str().is_some_and(|name| name.contains(&torn))
    }

    /// Whether anything waits for the device at all.
    pub(super) fn syncs(&self) -> bool {
        self.sync_mode().waits_for(Durability::Barrier)
    }

    pub(super) fn sync_mode(&self) -> SyncMode {
        self.options.sync
    }

    /// Makes names in the folder of `path` durable, if the mode asks for that.
    pub(super) fn sync_folder_of(&self, path: &Path) -> Result<(), IoFailure> {
        let folder = path.parent().unwrap_or(path);
        if !self.syncs() {
            return Ok(());
        }
        self.disk.sync_folder(folder).map_err(IoFailure::of("sync the folder", folder))
    }

    /// Writes a log to a new file, safe on the device, and gives that the name `path`, which may not be
    /// safe yet.
    pub(super) fn replace(
        &self,
        path: &Path,
        bytes: &[u8],
    ) -> Result<Box<dyn DiskFile>, IoFailure> {
        let temporary = self.temporary(path);
        let file =
            self.disk.open(&temporary, Open::New).map_err(IoFailure::of("create", &temporary))?;
        let replaced = disk::write(&*file, 0, bytes)
            .map_err(IoFailure::of("write", &temporary))
            .and_then(|()| self.stamp(&*file, &temporary))
            .and_then(|()| file.sync().map_err(IoFailure::of("sync", &temporary)))
            .and_then(|()| {
                self.disk.rename(&temporary, path).map_err(IoFailure::of("replace", path))
            });
        if let Err(error) = replaced {
            drop(self.disk.unlink(&temporary));
            return Err(error);
        }
        Ok(file)
    }

    /// Sets the time of a file from the clock. A log that is removed and made again within one tick
    /// of the file system's own clock, under the same inode, still gets another revision.
    pub(super) fn stamp(&self, file: &dyn DiskFile, path: &Path) -> Result<(), IoFailure> {
        let count = self.stamps.fetch_add(1, Ordering::Relaxed) % 1_000_000;
        let nanoseconds = u32::try_from(count).unwrap_or_default();
        file.set_modified(self.clock.now(), nanoseconds)
            .map_err(IoFailure::of("set the time of", path))
    }

    /// Refuses when somebody else may be writing the work directory.
    pub(super) fn check_lock(&self) -> Result<(), StoreError> {
        self.lock.as_ref().map_or(Ok(()), |lock| lock.check()).map_err(StoreError::LockLost)
    }

    /// Records that cannot be added to a log of so many.
    pub(super) fn unmade(&self, log: &LogId, records: u64, why: Corruption) -> StoreError {
        match &why {
            // They may be given again when there is memory.
            Corruption::Frame { why: fault, .. } if fault.is_of_memory() => {
                let cause = io::Error::new(io::ErrorKind::OutOfMemory, why);
                IoFailure::of("append to", &self.file(log))(cause).into()
            }
            _ => StoreError::Refused {
                place: self.place(log),
                line: records + 1,
                why: Arc::new(why),
            },
        }
    }

    /// For `map_err`: what the system said of the file of a log, as an error of the store.
    pub(super) fn failed(
        &self,
        log: &LogId,
        action: &'static str,
    ) -> impl FnOnce(io::Error) -> StoreError {
        move |error| self.refused(log)(IoFailure::of(action, &self.file(log))(error))
    }

    /// For `map_err`: the same, of an error that names its file already.
    pub(super) fn refused(&self, log: &LogId) -> impl FnOnce(IoFailure) -> StoreError {
        move |failure| match failure.cause.kind() {
            io::ErrorKind::NotFound => StoreError::NotFound(self.place(log)),
            _ => failure.into(),
        }
    }
}

/// Device, inode, size and both times.
pub(super) fn revision_of(stat: &Stat) -> Revision {
    Revision([stat.device, stat.inode, stat.size, stat.modified_ns, stat.changed_ns])
}
