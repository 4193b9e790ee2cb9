//! Files and folders opened so that what was checked is what is used: from the root on, name by
//! name, each relative to the handle of the folder before, following no link. A path that was
//! resolved when its call was checked holds no links; one that appears later stops the call.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Access, AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};

/// Why a file or folder cannot be used. The path is the resolved one.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// There is nothing.
    #[error("{path} does not exist")]
    Missing {
        /// The path.
        path: PathBuf,
    },
    /// A link stands where none was when the call was checked.
    #[error(
        "{path} has become a link since the call was checked; what it leads to was not checked"
    )]
    Link {
        /// The link.
        path: PathBuf,
    },
    /// Something stands there that is no folder.
    #[error("{path} is not a folder")]
    NotAFolder {
        /// The path.
        path: PathBuf,
    },
    /// A folder stands there.
    #[error("{path} is a folder; list-dir shows what is in it")]
    Folder {
        /// The path.
        path: PathBuf,
    },
    /// A device, a pipe or a socket stands there.
    #[error("{path} is no regular file")]
    Special {
        /// The path.
        path: PathBuf,
    },
    /// It is too big to be taken whole.
    #[error("{path} has {bytes} bytes, more than the {bytes_max} that are taken whole")]
    TooBig {
        /// The path.
        path: PathBuf,
        /// Its size.
        bytes: u64,
        /// The limit.
        bytes_max: u64,
    },
    /// Somebody else changed it at the same moment.
    #[error("{path} was changed by somebody else meanwhile; read it and call again")]
    Changed {
        /// The path.
        path: PathBuf,
    },
    /// The system says no.
    #[error("{path} cannot be used")]
    System {
        /// The path.
        path: PathBuf,
        /// What it says.
        #[source]
        source: io::Error,
    },
}

impl FileError {
    fn system(path: &Path, source: impl Into<io::Error>) -> Self {
        let (path, source) = (path.to_owned(), source.into());
        if source.kind() == io::ErrorKind::NotFound {
            return Self::Missing { path };
        }
        Self::System { path, source }
    }
}

const FOLLOW_NO_LINK: OFlags = OFlags::NOFOLLOW.union(OFlags::CLOEXEC);
/// A handle for going on from needs the right to search the folder, not to read it.
#[cfg(target_os = "linux")]
const STEP: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(FOLLOW_NO_LINK);
#[cfg(not(target_os = "linux"))]
const STEP: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(FOLLOW_NO_LINK);
/// Not blocking: a pipe must not hold up whoever only wants to see that it is no file.
const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(FOLLOW_NO_LINK);
const MAKE: OFlags = OFlags::WRONLY.union(OFlags::CREATE).union(OFlags::EXCL).union(FOLLOW_NO_LINK);
const RIGHTS: Mode = Mode::from_bits_retain(0o7777);
/// What the person's umask leaves of this is what a new file or folder gets.
const NEW_FILE: Mode = Mode::from_bits_retain(0o666);
const NEW_FOLDER: Mode = Mode::from_bits_retain(0o777);
const PRIVATE: Mode = Mode::from_bits_retain(0o600);

/// A folder, held by its handle.
pub(crate) struct Folder {
    handle: OwnedFd,
    path: PathBuf,
}

/// What [`Folder::open`] does about folders that are not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Absent {
    /// It is an error.
    Refuse,
    /// They are made.
    Make,
}

impl Folder {
    /// The folder at a resolved, absolute path.
    pub(crate) fn open(path: &Path, absent: Absent) -> Result<Self, FileError> {
        let root = PathBuf::from("/");
        let handle = rustix::fs::open(&root, STEP, Mode::empty());
        let handle = handle.map_err(|errno| FileError::system(&root, errno))?;
        Self { handle, path: root }.go(path.strip_prefix("/").unwrap_or(path), absent)
    }

    /// The folder at a path from here on.
    pub(crate) fn below(&self, path: &Path) -> Result<Self, FileError> {
        let handle = self.handle.try_clone();
        let handle = handle.map_err(|error| FileError::system(&self.path, error))?;
        Self { handle, path: self.path.clone() }.go(path, Absent::Refuse)
    }

    fn go(mut self, path: &Path, absent: Absent) -> Result<Self, FileError> {
        for part in path.components() {
            let Component::Normal(name) = part else {
                let source = io::Error::from(io::ErrorKind::InvalidInput);
                return Err(FileError::System { path: self.path.join(path), source });
            };
            self = self.step(Path::new(name), absent)?;
        }
        Ok(self)
    }

    fn step(&self, name: &Path, absent: Absent) -> Result<Self, FileError> {
        let path = self.path.join(name);
        let open = || rustix::fs::openat(&self.handle, name, STEP, Mode::empty());
        let opened = match open() {
            Err(Errno::NOENT) if absent == Absent::Make => {
                match rustix::fs::mkdirat(&self.handle, name, NEW_FOLDER) {
                    Ok(()) | Err(Errno::EXIST) => open(),
                    Err(errno) => Err(errno),
                }
            }
            opened => opened,
        };
        match opened {
            Ok(handle) => Ok(Self { handle, path }),
            Err(Errno::NOTDIR | Errno::LOOP) => Err(match self.kind(name) {
                Ok(FileType::Symlink) => FileError::Link { path },
                Ok(_) | Err(_) => FileError::NotAFolder { path },
            }),
            Err(errno) => Err(FileError::system(&path, errno)),
        }
    }

    /// What stands at a name in the folder.
    pub(crate) fn kind(&self, name: &Path) -> Result<FileType, FileError> {
        self.stat(name).map(|stat| FileType::from_raw_mode(stat.st_mode))
    }

    fn stat(&self, name: &Path) -> Result<Stat, FileError> {
        rustix::fs::statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|errno| FileError::system(&self.path.join(name), errno))
    }

    /// The regular file at a name in the folder.
    pub(crate) fn file(&self, name: &Path) -> Result<OpenFile, FileError> {
        let path = self.path.join(name);
        let handle = rustix::fs::openat(&self.handle, name, READ, Mode::empty());
        let handle = handle.map_err(|errno| match errno {
            Errno::LOOP | Errno::MLINK => FileError::Link { path: path.clone() },
            errno => FileError::system(&path, errno),
        })?;
        let stat = rustix::fs::fstat(&handle).map_err(|errno| FileError::system(&path, errno))?;
        must_be_regular(&stat, &path)?;
        Ok(OpenFile { file: File::from(handle), version: Version(stat), path })
    }

    fn remove(&self, name: &Path) {
        // Only ever a temporary file of our own; if it stays, it harms nobody.
        let _ = rustix::fs::unlinkat(&self.handle, name, AtFlags::empty());
    }

    /// Makes the names in the folder durable.
    fn sync(&self) -> Result<(), FileError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::openat(&self.handle, ".", flags, Mode::empty());
        folder.and_then(rustix::fs::fsync).map_err(|errno| FileError::system(&self.path, errno))
    }
}

/// The SHA-256 of a content, in lowercase hex, as it is recorded.
pub(crate) fn sha256(content: &[u8]) -> String {
    Sha256::digest(content).iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn must_be_regular(stat: &Stat, path: &Path) -> Result<(), FileError> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(()),
        FileType::Directory => Err(FileError::Folder { path: path.to_owned() }),
        FileType::Symlink => Err(FileError::Link { path: path.to_owned() }),
        _ => Err(FileError::Special { path: path.to_owned() }),
    }
}

/// A regular file that is open for reading.
pub(crate) struct OpenFile {
    /// The file, at its beginning.
    pub(crate) file: File,
    /// Which file it is, and as of when.
    pub(crate) version: Version,
    path: PathBuf,
}

impl OpenFile {
    /// The regular file at a resolved, absolute path.
    pub(crate) fn open(path: &Path) -> Result<Self, FileError> {
        let (folder, name) = parent(path, Absent::Refuse)?;
        folder.file(name)
    }

    /// Its size in bytes when it was opened.
    pub(crate) fn bytes(&self) -> u64 {
        u64::try_from(self.version.0.st_size).unwrap_or(0)
    }

    /// All of it.
    pub(crate) fn read_whole(mut self, bytes_max: u64) -> Result<Vec<u8>, FileError> {
        let mut content = Vec::new();
        // One byte more than allowed tells that there is more, also if the file grows meanwhile.
        let read = (&mut self.file).take(bytes_max + 1).read_to_end(&mut content);
        read.map_err(|error| FileError::system(&self.path, error))?;
        if content.len() as u64 > bytes_max {
            let bytes = self.bytes().max(content.len() as u64);
            return Err(FileError::TooBig { path: self.path, bytes, bytes_max });
        }
        Ok(content)
    }
}

fn parent(path: &Path, absent: Absent) -> Result<(Folder, &Path), FileError> {
    match (path.parent(), path.file_name()) {
        (Some(folder), Some(name)) => Ok((Folder::open(folder, absent)?, Path::new(name))),
        _ => Err(FileError::Folder { path: path.to_owned() }),
    }
}

/// Which file stood at a path, and its state then.
#[derive(Clone, Copy)]
pub(crate) struct Version(Stat);

impl PartialEq for Version {
    fn eq(&self, other: &Self) -> bool {
        let of =
            |it: &Self| (it.0.st_dev, it.0.st_ino, it.0.st_size, it.0.st_mtime, it.0.st_mtime_nsec);
        of(self) == of(other)
    }
}

/// Gives a file a new content, whole or not at all, also across a crash; missing folders are made.
/// `found` is the file that the new content was made from, `None` for a new file: if by now it is
/// another, nothing is changed. `token` makes the name of the temporary file beside it.
pub(crate) fn replace(
    path: &Path,
    content: &[u8],
    found: Option<&Version>,
    token: &str,
) -> Result<(), FileError> {
    let absent = if found.is_some() { Absent::Refuse } else { Absent::Make };
    let (folder, name) = parent(path, absent)?;
    let target = Target { folder, name, path, found };
    target.check()?;
    let temporary = PathBuf::from(format!(".turnstile-{token}.tmp"));
    let done = target.write(&temporary, content);
    if done.is_err() {
        target.folder.remove(&temporary);
    }
    done
}

struct Target<'a> {
    folder: Folder,
    name: &'a Path,
    path: &'a Path,
    found: Option<&'a Version>,
}

impl Target<'_> {
    /// Whether the file is the one that is to be replaced, and may be.
    fn check(&self) -> Result<(), FileError> {
        let changed = || Err(FileError::Changed { path: self.path.to_owned() });
        match (self.folder.stat(self.name), self.found) {
            (Err(FileError::Missing { .. }), None) => Ok(()),
            (Err(FileError::Missing { .. }), Some(_)) => changed(),
            (Err(error), _) => Err(error),
            (Ok(stat), found) => {
                must_be_regular(&stat, self.path)?;
                if found != Some(&Version(stat)) {
                    return changed();
                }
                let Folder { handle, .. } = &self.folder;
                // A rename would not ask for the right to write the file itself.
                rustix::fs::accessat(handle, self.name, Access::WRITE_OK, AtFlags::EACCESS)
                    .map_err(|errno| FileError::system(self.path, errno))
            }
        }
    }

    fn write(&self, temporary: &Path, content: &[u8]) -> Result<(), FileError> {
        let system = |error: io::Error| FileError::system(self.path, error);
        let mode = if self.found.is_some() { PRIVATE } else { NEW_FILE };
        let handle = rustix::fs::openat(&self.folder.handle, temporary, MAKE, mode);
        let mut file = File::from(handle.map_err(|errno| system(errno.into()))?);
        file.write_all(content).map_err(system)?;
        if let Some(Version(stat)) = self.found {
            let rights = Mode::from_raw_mode(stat.st_mode) & RIGHTS;
            rustix::fs::fchmod(&file, rights).map_err(|errno| system(errno.into()))?;
        }
        file.sync_all().map_err(system)?;
        self.check()?;
        let Folder { handle, .. } = &self.folder;
        rustix::fs::renameat(handle, temporary, handle, self.name)
            .map_err(|errno| system(errno.into()))?;
        self.folder.sync()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::rig::Rig;
    use std::os::unix::fs::PermissionsExt as _;

    fn version(rig: &Rig, path: &str) -> Version {
        OpenFile::open(&rig.path(path)).unwrap().version
    }

    #[test]
    fn no_link_is_followed_wherever_it_stands() {
        let rig = Rig::new();
        rig.write("a/b/file", "x");
        rig.link("file-link", "a/b/file");
        rig.link("folder-link", "a");
        assert!(OpenFile::open(&rig.path("a/b/file")).is_ok());
        for path in ["file-link", "folder-link/b/file"] {
            let opened = OpenFile::open(&rig.path(path)).err();
            assert!(matches!(opened, Some(FileError::Link { .. })), "{path}: {opened:?}");
        }
        for path in ["file-link", "folder-link/new", "folder-link/b/file"] {
            let replaced = replace(&rig.path(path), b"y", None, "1");
            assert!(matches!(replaced, Err(FileError::Link { .. })), "{path}: {replaced:?}");
        }
        assert_eq!(rig.content("a/b/file"), "x");
    }

    #[test]
    fn only_regular_files_are_read() {
        let rig = Rig::new();
        rig.write("a/file", "x");
        let pipe = rustix::fs::open(rig.path("a"), STEP, Mode::empty()).unwrap();
        rustix::fs::mkfifoat(&pipe, "pipe", PRIVATE).unwrap();
        let error = |path: &str| OpenFile::open(&rig.path(path)).err().unwrap();
        assert!(matches!(error("a/pipe"), FileError::Special { .. }));
        assert!(matches!(error("a"), FileError::Folder { .. }));
        assert!(matches!(error("a/file/b"), FileError::NotAFolder { .. }));
        assert!(matches!(error("a/missing"), FileError::Missing { .. }));
        let big = OpenFile::open(&rig.path("a/file")).unwrap().read_whole(0).unwrap_err();
        assert!(matches!(big, FileError::TooBig { bytes: 1, bytes_max: 0, .. }));
    }

    #[test]
    fn a_replaced_file_keeps_its_rights_and_leaves_nothing_beside_it() {
        let rig = Rig::new();
        rig.write("run.sh", "old");
        let rights = std::fs::Permissions::from_mode(0o751);
        std::fs::set_permissions(rig.path("run.sh"), rights).unwrap();
        let found = version(&rig, "run.sh");
        replace(&rig.path("run.sh"), b"new", Some(&found), "1").unwrap();
        replace(&rig.path("new/deep/file"), b"made", None, "1").unwrap();
        let mode = rig.path("run.sh").metadata().unwrap().permissions().mode();
        assert_eq!((rig.content("run.sh").as_str(), mode & 0o7777), ("new", 0o751));
        assert_eq!(rig.content("new/deep/file"), "made");
        let names = |path: &str| std::fs::read_dir(rig.path(path)).unwrap().count();
        assert_eq!((names(""), names("new/deep")), (2, 1));
    }

    #[test]
    fn a_file_that_somebody_else_changed_is_left_alone() {
        let rig = Rig::new();
        rig.write("file", "old");
        let found = version(&rig, "file");
        rig.write("file", "theirs");
        let check = |path: &str, found: Option<&Version>| {
            let replaced = replace(&rig.path(path), b"ours", found, "1");
            assert!(matches!(replaced, Err(FileError::Changed { .. })), "{path}: {replaced:?}");
        };
        check("file", Some(&found));
        check("file", None);
        check("gone", Some(&found));
        assert_eq!(rig.content("file"), "theirs");
        assert_eq!(std::fs::read_dir(rig.path("")).unwrap().count(), 1);
    }
}
