//! A disk that counts its calls and fails those that it is told to.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::base::clock::Timestamp;
use crate::store::disk::{Disk, DiskFile, Entry, Hold, Open, RealDisk, Stat};
use crate::store::file_system::FileSystem;

/// The calls of a disk and its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Opening a file.
    Open,
    /// Making a folder.
    MakeFolder,
    /// Listing a folder.
    Entries,
    /// Looking at a file, by name or handle.
    Stat,
    /// Giving a second name.
    Link,
    /// Renaming without replacing.
    RenameNew,
    /// Renaming.
    Rename,
    /// Removing a name or a folder.
    Unlink,
    /// Syncing a folder.
    SyncFolder,
    /// Locking.
    Lock,
    /// Reading.
    Read,
    /// Writing.
    Write,
    /// Cutting or growing.
    Truncate,
    /// Syncing a file.
    Sync,
    /// Setting the time.
    SetModified,
    /// Asking for the kind of file system.
    FileSystem,
}

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// With this error number, and nothing is done.
    Error(i32),
    /// With this error number, after half of a write.
    HalfThenError(i32),
    /// Half of the bytes are read or written, without an error.
    Half,
    /// An open file is said to be another user's, without an error.
    Foreign,
    /// The process is killed at it, after half of a write.
    Kill,
}

/// Ends this process as `kill -9` does.
fn kill() -> ! {
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).ok();
    loop {
        std::thread::park();
    }
}

/// No room on the device.
pub const ENOSPC: i32 = 28;
/// The device failed.
pub const EIO: i32 = 5;
/// A signal came.
pub const EINTR: i32 = 4;
/// Not permitted.
pub const EPERM: i32 = 1;
/// The file system cannot do that.
pub const EOPNOTSUPP: i32 = 95;
/// The file system has no such call.
pub const ENOSYS: i32 = 38;

/// Which calls fail: of those that `only` names (all if none), the ones from number `from` (0 is the
/// next) on, `times` of them.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The calls that are counted.
    pub only: Option<Call>,
    /// How many go well first.
    pub from: u64,
    /// How many fail then.
    pub times: u64,
    /// How.
    pub fault: Fault,
}

/// The real disk, with faults. Syncs are counted and not done: no test loses its power. Clones share
/// the plans and the counts.
#[derive(Clone, Debug, Default)]
pub struct FaultyDisk(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    plans: Vec<(Plan, u64)>,
    calls: Vec<Call>,
    bytes_read: u64,
    /// The server on which all is said to be, if any.
    server: Option<&'static str>,
}

impl FaultyDisk {
    /// A disk that works.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// From now on these calls fail too.
    pub fn fail(&self, plan: Plan) {
        self.lock().plans.push((plan, 0));
    }

    /// From now on all is well.
    pub fn heal(&self) {
        self.lock().plans.clear();
    }

    /// From now on everything is said to be on a network file system of this name.
    pub fn move_to_server(&self, name: &'static str) {
        self.lock().server = Some(name);
    }

    /// The calls so far.
    #[must_use]
    pub fn calls(&self) -> Vec<Call> {
        self.lock().calls.clone()
    }

    /// How many bytes were read so far.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.lock().bytes_read
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a call; gives how it fails.
    fn count(&self, call: Call) -> Option<Fault> {
        let mut state = self.lock();
        state.calls.push(call);
        let mut fault = None;
        for (plan, seen) in &mut state.plans {
            if plan.only.is_some_and(|only| only != call) {
                continue;
            }
            let planned = (plan.from..plan.from.saturating_add(plan.times)).contains(seen);
            *seen += 1;
            if planned {
                fault = Some(plan.fault);
            }
        }
        fault
    }

    /// Counts a call that either happens or fails.
    fn pass(&self, call: Call) -> io::Result<()> {
        match self.count(call) {
            Some(Fault::Error(number) | Fault::HalfThenError(number)) => {
                Err(io::Error::from_raw_os_error(number))
            }
            Some(Fault::Kill) => kill(),
            Some(Fault::Half | Fault::Foreign) | None => Ok(()),
        }
    }

    fn wrap(&self, file: Box<dyn DiskFile>) -> Box<dyn DiskFile> {
        Box::new(FaultyFile { disk: self.clone(), file })
    }
}

impl Disk for FaultyDisk {
    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn DiskFile>> {
        self.pass(Call::Open)?;
        Ok(self.wrap(RealDisk.open(path, how)?))
    }

    fn make_folder(&self, path: &Path) -> io::Result<()> {
        self.pass(Call::MakeFolder)?;
        RealDisk.make_folder(path)
    }

    fn entries(&self, path: &Path) -> io::Result<Vec<Entry>> {
        self.pass(Call::Entries)?;
        RealDisk.entries(path)
    }

    fn stat(&self, path: &Path) -> io::Result<Stat> {
        self.pass(Call::Stat)?;
        RealDisk.stat(path)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.pass(Call::Link)?;
        RealDisk.link(from, to)
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.pass(Call::RenameNew)?;
        RealDisk.rename_new(from, to)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.pass(Call::Rename)?;
        RealDisk.rename(from, to)
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        self.pass(Call::Unlink)?;
        RealDisk.unlink(path)
    }

    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        self.pass(Call::Unlink)?;
        RealDisk.remove_folder(path)
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        self.pass(Call::SyncFolder)?;
        RealDisk.stat(path).map(drop)
    }

    fn try_lock(&self, path: &Path, hold: Hold) -> io::Result<Option<Box<dyn DiskFile>>> {
        self.pass(Call::Lock)?;
        Ok(RealDisk.try_lock(path, hold)?.map(|file| self.wrap(file)))
    }

    fn file_system(&self, path: &Path) -> io::Result<FileSystem> {
        self.pass(Call::FileSystem)?;
        let server = self.lock().server;
        server.map_or_else(|| RealDisk.file_system(path), |name| Ok(FileSystem::Network(name)))
    }
}

#[derive(Debug)]
struct FaultyFile {
    disk: FaultyDisk,
    file: Box<dyn DiskFile>,
}

impl DiskFile for FaultyFile {
    fn stat(&self) -> io::Result<Stat> {
        let fault = self.disk.count(Call::Stat);
        match fault {
            Some(Fault::Error(number) | Fault::HalfThenError(number)) => {
                Err(io::Error::from_raw_os_error(number))
            }
            Some(Fault::Foreign) => {
                self.file.stat().map(|stat| Stat { owner: stat.owner.wrapping_add(1), ..stat })
            }
            Some(Fault::Kill) => kill(),
            Some(Fault::Half) | None => self.file.stat(),
        }
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let fault = self.disk.count(Call::Read);
        let wanted = match fault {
            Some(Fault::Error(number) | Fault::HalfThenError(number)) => {
                return Err(io::Error::from_raw_os_error(number));
            }
            Some(Fault::Kill) => kill(),
            Some(Fault::Half) => buffer.len().div_ceil(2),
            Some(Fault::Foreign) | None => buffer.len(),
        };
        let read = self.file.read_at(buffer.get_mut(..wanted).unwrap_or_default(), offset)?;
        self.disk.lock().bytes_read += read as u64;
        Ok(read)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let fault = self.disk.count(Call::Write);
        let half = bytes.get(..bytes.len().div_ceil(2)).unwrap_or_default();
        match fault {
            Some(Fault::Error(number)) => Err(io::Error::from_raw_os_error(number)),
            Some(Fault::HalfThenError(number)) => {
                self.file.write_at(half, offset)?;
                Err(io::Error::from_raw_os_error(number))
            }
            Some(Fault::Kill) => {
                self.file.write_at(half, offset).ok();
                kill()
            }
            Some(Fault::Half) => self.file.write_at(half, offset),
            Some(Fault::Foreign) | None => self.file.write_at(bytes, offset),
        }
    }

    fn truncate(&self, size: u64) -> io::Result<()> {
        self.disk.pass(Call::Truncate)?;
        self.file.truncate(size)
    }

    fn sync(&self) -> io::Result<()> {
        self.disk.pass(Call::Sync)
    }

    fn set_modified(&self, at: Timestamp, nanoseconds: u32) -> io::Result<()> {
        self.disk.pass(Call::SetModified)?;
        self.file.set_modified(at, nanoseconds)
    }
}
