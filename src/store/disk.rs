//! The file operations that the store is made of, as a trait, so that a test can make any of them
//! fail. Everything made through it is private: folders 0700, files 0600.

mod real;

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::Path;

use crate::base::clock::Timestamp;
use crate::store::file_system::FileSystem;

pub use real::RealDisk;

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Open {
    /// An existing file, for reading.
    Read,
    /// An existing file, for reading, and no link to one.
    ReadItself,
    /// An existing file, for reading and writing.
    Write,
    /// A file that must not be there yet.
    New,
    /// A file that is made if it is not there; what it holds stays.
    OrNew,
    /// A file that is made if it is not there; what it held goes.
    Emptied,
}

/// How a lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// By one alone.
    Alone,
    /// Beside others who share it.
    Shared,
}

/// What a folder's entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A file, or what a link that was not followed may lead to.
    File,
    /// A folder.
    Folder,
    /// A pipe, a socket or a device.
    Special,
}

/// One name in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name alone.
    pub name: OsString,
    /// What stands there.
    pub kind: EntryKind,
}

/// What the file system knows of a file without its contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// The device.
    pub device: u64,
    /// The number of the file on its device; a new file may get that of a deleted one.
    pub inode: u64,
    /// The user whose file it is.
    pub owner: u32,
    /// How many names the file has; 0 after the last was removed.
    pub links: u64,
    /// Size in bytes.
    pub size: u64,
    /// Last change of the contents, in nanoseconds since 1970, cut to 64 bits.
    pub modified_ns: u64,
    /// Last change of contents or names, as `modified_ns`; nobody can set it.
    pub changed_ns: u64,
}

/// An open file. Dropping closes it and lets go of its lock.
#[expect(clippy::missing_errors_doc, reason = "every operation fails with what the system says")]
pub trait DiskFile: fmt::Debug + Send + Sync {
    /// Size, times and identity.
    fn stat(&self) -> io::Result<Stat>;

    /// Reads at `offset`, perhaps less than asked for; 0 at the end.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes at `offset`, perhaps less than given.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;

    /// Cuts or grows the file.
    fn truncate(&self, size: u64) -> io::Result<()>;

    /// Returns when contents and size are on the device. After an error nothing is known of what was
    /// written since the last success, and reading it back proves nothing.
    fn sync(&self) -> io::Result<()>;

    /// Sets the time of the last change: `at` and some nanoseconds below its millisecond.
    fn set_modified(&self, at: Timestamp, nanoseconds: u32) -> io::Result<()>;
}

/// A file system.
#[expect(clippy::missing_errors_doc, reason = "every operation fails with what the system says")]
pub trait Disk: fmt::Debug + Send + Sync {
    /// Opens a regular file; what else may stand there is refused, and never waited for.
    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn DiskFile>>;

    /// Makes one folder, whose parent is there.
    fn make_folder(&self, path: &Path) -> io::Result<()>;

    /// The names in a folder, in no order, without asking for each of them.
    fn entries(&self, path: &Path) -> io::Result<Vec<Entry>>;

    /// Size, times and identity of a file.
    fn stat(&self, path: &Path) -> io::Result<Stat>;

    /// Gives a file a second name, if that is free.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Renames, if the new name is free; refuses where the file system cannot promise that.
    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Renames; what stood at the new name is gone.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a name of a file.
    fn unlink(&self, path: &Path) -> io::Result<()>;

    /// Removes an empty folder.
    fn remove_folder(&self, path: &Path) -> io::Result<()>;

    /// Returns when the names in a folder are on the device.
    fn sync_folder(&self, path: &Path) -> io::Result<()>;

    /// Locks a file or folder by a handle of its own; `None` if somebody else holds it. The lock ends
    /// with the handle, so with the process. Not every file system can lock folders.
    fn try_lock(&self, path: &Path, hold: Hold) -> io::Result<Option<Box<dyn DiskFile>>>;

    /// On what kind of file system a file or folder is.
    fn file_system(&self, path: &Path) -> io::Result<FileSystem>;
}

/// What is asked for at once: more than most logs, and so little that it stays in the processor's
/// cache between being cleared and being filled.
const PIECE_BYTES: usize = 256 * 1024;

/// Reads `size` bytes from `offset`, or fewer if the file ends before.
///
/// # Errors
/// What the system says; also when so much memory is not to be had.
pub fn read(file: &dyn DiskFile, offset: u64, size: u64) -> io::Result<Vec<u8>> {
    let size = usize::try_from(size).map_err(|_| io::ErrorKind::OutOfMemory)?;
    let mut buffer = Vec::new();
    buffer.try_reserve_exact(size).map_err(|_| io::ErrorKind::OutOfMemory)?;
    while buffer.len() < size {
        let filled = buffer.len();
        buffer.resize(size.min(filled + PIECE_BYTES), 0);
        let piece = buffer.get_mut(filled..).unwrap_or_default();
        let count = match file.read_at(piece, offset + filled as u64) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                buffer.truncate(filled);
                continue;
            }
            count => count?,
        };
        buffer.truncate(filled + count);
        if count == 0 {
            break;
        }
    }
    Ok(buffer)
}

/// Reads a small file, at most `size_max` bytes of it; `None` if it is not there.
///
/// # Errors
/// What the system says.
pub fn read_small(disk: &dyn Disk, path: &Path, size_max: u64) -> io::Result<Option<Vec<u8>>> {
    let file = match disk.open(path, Open::Read) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let size = file.stat()?.size.min(size_max);
    read(&*file, 0, size).map(Some)
}

/// Whether an error of [`Disk::open`] says that what stands there is no file, which it will say
/// again.
#[must_use]
pub fn is_no_file(error: &io::Error) -> bool {
    // What comes from the system itself has a number.
    matches!(error.kind(), io::ErrorKind::IsADirectory | io::ErrorKind::InvalidInput)
        && error.raw_os_error().is_none()
}

/// Removes a file, if it is there.
///
/// # Errors
/// What the system says.
pub fn unlink_if_there(disk: &dyn Disk, path: &Path) -> io::Result<()> {
    match disk.unlink(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        gone => gone,
    }
}

/// Writes all of `bytes` at `offset`: one call, unless the system takes less.
///
/// # Errors
/// What the system says; some of the bytes may be there then.
pub fn write(file: &dyn DiskFile, offset: u64, bytes: &[u8]) -> io::Result<()> {
    let (mut rest, mut offset) = (bytes, offset);
    while !rest.is_empty() {
        match file.write_at(rest, offset) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => {
                rest = rest.get(count..).unwrap_or_default();
                offset += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Makes a folder and those above it that are missing, each durable in its parent.
///
/// # Errors
/// What the system says.
pub fn make_folders(disk: &dyn Disk, path: &Path) -> io::Result<()> {
    let made = match disk.make_folder(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            make_folders(disk, path.parent().ok_or(error)?)?;
            disk.make_folder(path)
        }
        made => made,
    };
    match made {
        Ok(()) => path.parent().map_or(Ok(()), |parent| disk.sync_folder(parent)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}
