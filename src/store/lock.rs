//! The single-instance lock on a work directory: the system's lock on the folder itself, which
//! nobody can delete under its holder; a dead holder's lock is free by itself. Where a file system
//! cannot lock folders, `turnstile.lock` is locked, and its holder has to look whether that file is
//! still the one under its name. The text in the file only says who holds it.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::base::clock::Timestamp;
use crate::store::disk::{self, Disk, DiskFile, Hold, Open, Stat};
use crate::store::error::IoFailure;
use crate::store::work_dir::WorkDir;

/// How often a lock that only onlookers share is asked for again. Each of them holds it for an
/// instant, to see whether it is free.
const TRIES_MAX: u32 = 1_000;
/// More than what is ever written into the lock file.
const TEXT_BYTES_MAX: u64 = 256;

/// Who holds a lock, as far as the lock file says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holder {
    /// Its process id.
    pub process: Option<u32>,
    /// When it took the lock.
    pub since: Option<Timestamp>,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.process {
            Some(process) => write!(f, "process {process}")?,
            None => f.write_str("an unknown process")?,
        }
        self.since.map_or(Ok(()), |since| write!(f, " since {since}"))
    }
}

/// Why the lock was not taken.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LockError {
    /// Another process has it.
    #[error(
        "{} is in use by {holder}; end that, or start with --read-only to look",
        root.display()
    )]
    Held {
        /// The work directory.
        root: PathBuf,
        /// Who has it.
        holder: Holder,
    },
    /// The logs are being brought into another form.
    #[error(
        "the sessions in {} are being brought into another form; try again when that has ended",
        root.display()
    )]
    Converting {
        /// The work directory.
        root: PathBuf,
    },
    /// Somebody writes turns of its own.
    #[error(
        "a `turnstile run` is writing in {}; try again when it has ended",
        root.display()
    )]
    Guests {
        /// The work directory.
        root: PathBuf,
    },
    /// The system refused.
    #[error(transparent)]
    Io(#[from] IoFailure),
}

/// The lock on a work directory, free when dropped.
#[derive(Debug)]
pub struct InstanceLock {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    held: Held,
}

#[derive(Debug)]
enum Held {
    Folder { _handle: Box<dyn DiskFile> },
    File { handle: Box<dyn DiskFile> },
}

impl InstanceLock {
    /// Takes the lock for the process `process`.
    ///
    /// # Errors
    /// [`LockError::Held`] if another process, or another lock of this one, has it.
    pub fn acquire(
        disk: Arc<dyn Disk>,
        work_dir: &WorkDir,
        process: u32,
        now: Timestamp,
    ) -> Result<Self, LockError> {
        let path = work_dir.lock_file();
        let held = match lock_alone(&*disk, work_dir.root()) {
            Ok(handle) => handle.map(|handle| Held::Folder { _handle: handle }),
            Err(refused) => {
                tracing::info!(%refused, "the work directory cannot be locked itself");
                lock_file(&*disk, &path)
                    .map_err(IoFailure::of("lock", &path))?
                    .map(|handle| Held::File { handle })
            }
        };
        let Some(held) = held else {
            let holder = read_holder(&*disk, &path);
            return Err(LockError::Held { root: work_dir.root().to_path_buf(), holder });
        };
        let lock = Self { disk, path, held };
        if let Err(error) = lock.sign(process, now) {
            tracing::warn!(%error, "the lock file does not say who holds it");
        }
        Ok(lock)
    }

    /// Whether the lock still excludes others.
    ///
    /// # Errors
    /// The path of the lock file, if somebody has put another in its place.
    pub fn check(&self) -> Result<(), PathBuf> {
        let Held::File { handle } = &self.held else { return Ok(()) };
        match (handle.stat(), self.disk.stat(&self.path)) {
            (Ok(ours), Ok(named)) if same_file(&ours, &named) => Ok(()),
            _ => Err(self.path.clone()),
        }
    }

    fn sign(&self, process: u32, now: Timestamp) -> io::Result<()> {
        let text = format!("process {process}\nsince {now}\n");
        let opened;
        let file = match &self.held {
            Held::Folder { .. } => {
                opened = self.disk.open(&self.path, Open::OrNew)?;
                &opened
            }
            Held::File { handle } => handle,
        };
        disk::write(&**file, 0, text.as_bytes())?;
        file.truncate(text.len() as u64)
    }
}

/// Kept by whoever writes turns of its own without the instance lock, as long as it does: meanwhile
/// nobody brings the logs into another form.
#[derive(Debug)]
pub struct GuestPass {
    /// None where folders cannot be locked.
    _handle: Option<Box<dyn DiskFile>>,
}

/// Keeps guests out, until it is dropped.
#[derive(Debug)]
pub struct NoGuests {
    _handle: Option<Box<dyn DiskFile>>,
}

impl GuestPass {
    /// Comes in. Of a work directory that has been prepared.
    ///
    /// # Errors
    /// [`LockError::Converting`] while [`NoGuests`] is kept by somebody.
    pub fn take(disk: &dyn Disk, work_dir: &WorkDir) -> Result<Self, LockError> {
        match hold(disk, work_dir, Hold::Shared) {
            Some(handle) => Ok(Self { _handle: handle }),
            None => Err(LockError::Converting { root: work_dir.root().to_path_buf() }),
        }
    }
}

impl NoGuests {
    /// Waits for nobody.
    ///
    /// # Errors
    /// [`LockError::Guests`] while there is one.
    pub fn keep(disk: &dyn Disk, work_dir: &WorkDir) -> Result<Self, LockError> {
        match hold(disk, work_dir, Hold::Alone) {
            Some(handle) => Ok(Self { _handle: handle }),
            None => Err(LockError::Guests { root: work_dir.root().to_path_buf() }),
        }
    }
}

/// Locks the folder of the logs; an inner `None` where that cannot be done at all.
#[expect(clippy::option_option, reason = "refused and impossible are not the same")]
fn hold(disk: &dyn Disk, work_dir: &WorkDir, hold: Hold) -> Option<Option<Box<dyn DiskFile>>> {
    match disk.try_lock(&work_dir.storage(), hold) {
        Ok(locked) => locked.map(Some),
        Err(refused) => {
            tracing::info!(%refused, "the folder of the logs cannot be locked");
            Some(None)
        }
    }
}

/// Who holds the lock on a work directory now; `None` if nobody does. Takes nothing, and refuses
/// nobody who is just starting.
///
/// # Errors
/// The work directory cannot be opened.
pub fn holder(disk: &dyn Disk, work_dir: &WorkDir) -> Result<Option<Holder>, IoFailure> {
    let path = work_dir.lock_file();
    let root = work_dir.root();
    disk.stat(root).map_err(IoFailure::of("open", root))?;
    // Whatever cannot be locked is not locked.
    let held = |path: &Path| matches!(disk.try_lock(path, Hold::Shared), Ok(None));
    Ok((held(root) || held(&path)).then(|| read_holder(disk, &path)))
}

/// Tries until the lock is ours or somebody else's alone.
fn lock_alone(disk: &dyn Disk, path: &Path) -> io::Result<Option<Box<dyn DiskFile>>> {
    for _ in 0..TRIES_MAX {
        let locked = disk.try_lock(path, Hold::Alone)?;
        if locked.is_some() || disk.try_lock(path, Hold::Shared)?.is_none() {
            return Ok(locked);
        }
        std::thread::yield_now();
    }
    Ok(None)
}

/// Locks the file that stands under its name when the lock is ours.
fn lock_file(disk: &dyn Disk, path: &Path) -> io::Result<Option<Box<dyn DiskFile>>> {
    for _ in 0..TRIES_MAX {
        drop(disk.open(path, Open::OrNew)?);
        let Some(handle) = lock_alone(disk, path)? else { return Ok(None) };
        if same_file(&handle.stat()?, &disk.stat(path)?) {
            return Ok(Some(handle));
        }
    }
    Ok(None)
}

fn same_file(one: &Stat, other: &Stat) -> bool {
    (one.device, one.inode) == (other.device, other.inode)
}

fn read_holder(disk: &dyn Disk, path: &Path) -> Holder {
    let text = disk::read_small(disk, path, TEXT_BYTES_MAX).ok().flatten().unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    Holder {
        process: field("process ").and_then(|text| text.parse().ok()),
        since: field("since ").and_then(|text| text.parse().ok()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::disk::RealDisk;
    use crate::testing::disk::{Call, EOPNOTSUPP, Fault, FaultyDisk, Plan};

    const NOW: i64 = 1_762_835_789_000;

    fn work_dir(folder: &tempfile::TempDir) -> WorkDir {
        let work_dir = WorkDir::new(folder.path().to_path_buf()).expect("absolute");
        work_dir.prepare(&RealDisk).expect("prepared");
        work_dir
    }

    fn acquire(work_dir: &WorkDir, process: u32) -> Result<InstanceLock, LockError> {
        InstanceLock::acquire(Arc::new(RealDisk), work_dir, process, Timestamp::from_ms(NOW))
    }

    #[test]
    fn a_second_holder_is_refused_with_the_first_ones_name_until_that_lets_go() {
        let folder = tempfile::tempdir().expect("a folder");
        let work_dir = work_dir(&folder);
        assert_eq!(holder(&RealDisk, &work_dir).expect("readable"), None);
        let first = acquire(&work_dir, 7).expect("free");
        let named = Holder { process: Some(7), since: Some(Timestamp::from_ms(NOW)) };
        assert_eq!(holder(&RealDisk, &work_dir).expect("readable"), Some(named));
        let refused = acquire(&work_dir, 8).expect_err("held").to_string();
        assert!(refused.contains("process 7 since 2025-11-11T04:36:29.000Z"), "{refused}");
        drop(first);
        let second = acquire(&work_dir, 8).expect("free again");
        assert!(second.check().is_ok());
    }

    #[test]
    fn deleting_the_lock_file_makes_no_second_holder() {
        let folder = tempfile::tempdir().expect("a folder");
        let work_dir = work_dir(&folder);
        let first = acquire(&work_dir, 7).expect("free");
        std::fs::remove_file(work_dir.lock_file()).expect("deleted");
        assert!(matches!(acquire(&work_dir, 8), Err(LockError::Held { .. })));
        assert!(first.check().is_ok());
        assert_eq!(holder(&RealDisk, &work_dir).expect("readable"), Some(Holder::default()));
    }

    #[test]
    fn onlookers_do_not_keep_anybody_out() {
        let folder = tempfile::tempdir().expect("a folder");
        let work_dir = work_dir(&folder);
        let looking = std::sync::atomic::AtomicBool::new(true);
        std::thread::scope(|threads| {
            threads.spawn(|| {
                while looking.load(std::sync::atomic::Ordering::Relaxed) {
                    holder(&RealDisk, &work_dir).expect("readable");
                }
            });
            let all = (0..200).try_for_each(|_| acquire(&work_dir, 7).map(drop));
            looking.store(false, std::sync::atomic::Ordering::Relaxed);
            all.expect("never refused");
        });
    }

    /// A disk that cannot lock folders, as some network file systems.
    fn without_folder_locks(work_dir: &WorkDir) -> Result<InstanceLock, LockError> {
        let disk = FaultyDisk::new();
        let refused = Fault::Error(EOPNOTSUPP);
        disk.fail(Plan { only: Some(Call::Lock), from: 0, times: 1, fault: refused });
        InstanceLock::acquire(Arc::new(disk), work_dir, 7, Timestamp::from_ms(NOW))
    }

    #[test]
    fn where_folders_cannot_be_locked_the_file_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let work_dir = work_dir(&folder);
        let first = without_folder_locks(&work_dir).expect("free");
        assert!(matches!(without_folder_locks(&work_dir), Err(LockError::Held { .. })));
        let named = holder(&RealDisk, &work_dir).expect("readable").expect("held");
        assert_eq!(named.process, Some(7));
        assert!(first.check().is_ok());
        std::fs::remove_file(work_dir.lock_file()).expect("deleted");
        assert_eq!(first.check(), Err(work_dir.lock_file()));
        let second = without_folder_locks(&work_dir).expect("the first one's file is gone");
        assert_eq!(first.check(), Err(work_dir.lock_file()), "and the first one knows");
        assert!(second.check().is_ok());
        drop(first);
        drop(second);
        assert!(without_folder_locks(&work_dir).is_ok());
    }
}
