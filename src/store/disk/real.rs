//! The file operations of the machine.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use rustix::fs::{CWD, OFlags, RenameFlags};

use crate::base::clock::Timestamp;
use crate::store::disk::{Disk, DiskFile, Entry, EntryKind, Hold, Open, Stat};
use crate::store::file_system::FileSystem;

/// The file system of the machine.
#[derive(Clone, Copy, Debug)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        options.read(true).write(!matches!(how, Open::Read | Open::ReadItself)).mode(0o600);
        match how {
            Open::Read | Open::ReadItself | Open::Write => {}
            Open::New => _ = options.create_new(true),
            Open::OrNew => _ = options.create(true),
            Open::Emptied => _ = options.create(true).truncate(true),
        }
        // Opening a pipe waits for its other end, unless it is told not to.
        let follow = if how == Open::ReadItself { OFlags::NOFOLLOW } else { OFlags::empty() };
        options.custom_flags((OFlags::NONBLOCK | follow).bits().cast_signed());
        let file = options.open(path).map_err(|error| match error.kind() {
            _ if how == Open::ReadItself && path.is_symlink() => {
                io::Error::new(io::ErrorKind::InvalidInput, "it is a link")
            }
            io::ErrorKind::NotFound if path.is_symlink() => leads_nowhere(),
            _ => error,
        })?;
        let kind = file.metadata()?.file_type();
        if kind.is_file() {
            return Ok(Box::new(file));
        }
        if kind.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file; move it away"))
    }

    fn make_folder(&self, path: &Path) -> io::Result<()> {
        DirBuilder::new().mode(0o700).create(path)
    }

    fn entries(&self, path: &Path) -> io::Result<Vec<Entry>> {
        fs::read_dir(path)?
            .map(|entry| {
                let entry = entry?;
                let found = entry.file_type()?;
                let kind = if found.is_dir() {
                    EntryKind::Folder
                } else if found.is_file() || found.is_symlink() {
                    EntryKind::File
                } else {
                    EntryKind::Special
                };
                Ok(Entry { name: entry.file_name(), kind })
            })
            .collect()
    }

    fn stat(&self, path: &Path) -> io::Result<Stat> {
        // A name that leads nowhere is there all the same, and can be moved.
        let found = fs::metadata(path).or_else(|error| {
            if path.is_symlink() { fs::symlink_metadata(path) } else { Err(error) }
        });
        found.map(|metadata| stat_of(&metadata))
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::hard_link(from, to)
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        Ok(rustix::fs::renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE)?)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(path)
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        match File::open(path)?.sync_all() {
            // The system's word for a file system that has nothing to do here.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
            synced => synced,
        }
    }

    fn try_lock(&self, path: &Path, hold: Hold) -> io::Result<Option<Box<dyn DiskFile>>> {
        // Where locks are emulated by byte ranges, one alone needs a handle that can write; a
        // folder has no such handle, and the caller falls back on a file.
        let writable = hold == Hold::Alone && !path.is_dir();
        let file = OpenOptions::new().read(true).write(writable).open(path)?;
        let locked = match hold {
            Hold::Alone => file.try_lock(),
            Hold::Shared => file.try_lock_shared(),
        };
        match locked {
            Ok(()) => Ok(Some(Box::new(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn file_system(&self, path: &Path) -> io::Result<FileSystem> {
        FileSystem::of(path)
    }
}

fn leads_nowhere() -> io::Error {
    let why = "it is a link to a file that is not there; bring that back, or move the link away";
    io::Error::new(io::ErrorKind::InvalidInput, why)
}

impl DiskFile for File {
    fn stat(&self) -> io::Result<Stat> {
        self.metadata().map(|metadata| stat_of(&metadata))
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        FileExt::read_at(self, buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        FileExt::write_at(self, bytes, offset)
    }

    fn truncate(&self, size: u64) -> io::Result<()> {
        self.set_len(size)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_all()
    }

    fn set_modified(&self, at: Timestamp, nanoseconds: u32) -> io::Result<()> {
        let since = Duration::from_millis(u64::try_from(at.ms()).unwrap_or(0));
        let since = since + Duration::from_nanos(u64::from(nanoseconds));
        File::set_modified(self, UNIX_EPOCH + since)
    }
}

fn stat_of(metadata: &Metadata) -> Stat {
    let ns = |seconds: i64, rest: i64| {
        seconds.wrapping_mul(1_000_000_000).wrapping_add(rest).cast_unsigned()
    };
    Stat {
        device: metadata.dev(),
        inode: metadata.ino(),
        owner: metadata.uid(),
        links: metadata.nlink(),
        size: metadata.size(),
        modified_ns: ns(metadata.mtime(), metadata.mtime_nsec()),
        changed_ns: ns(metadata.ctime(), metadata.ctime_nsec()),
    }
}
