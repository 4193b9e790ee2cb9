//! On what kind of file system something is: one of this machine, or one that other machines write too.

use std::fmt;
use std::io;
use std::path::Path;

/// A kind of file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileSystem {
    /// Of this machine alone, as far as can be known: what a program of the person's serves is not known.
    Local,
    /// Of a server, by this name. Locks and memory shared by way of its files may hold among the processes
    /// of one machine only, or not even there.
    Network(&'static str),
}

/// The network file systems that Linux names by a number, as `linux/magic.h` and `statfs(2)` list them.
const NETWORK: [(u32, &str); 13] = [
    (0x6969, "nfs"),
    (0x517b, "smb"),
    (0xff53_4d42, "cifs"),
    (0xfe53_4d42, "smb"),
    (0x564c, "ncp"),
    (0x5346_414f, "afs"),
    (0x6b41_4653, "afs"),
    (0x7375_7245, "coda"),
    (0x0102_1997, "9p"),
    (0x00c3_6400, "ceph"),
    (0x0bd0_0bd0, "lustre"),
    (0x4750_4653, "gpfs"),
    (0x7461_636f, "ocfs2"),
];

impl FileSystem {
    /// That of a file or folder.
    ///
    /// # Errors
    /// What the system says.
    #[cfg(target_os = "linux")]
    pub fn of(path: &Path) -> io::Result<Self> {
        let found = rustix::fs::statfs(path)?.f_type;
        // The kernel has 32 bits of it, whatever the C library makes of them.
        Ok(Self::of_kind(u32::try_from(found & 0xffff_ffff).unwrap_or(0)))
    }

    /// That of a file or folder, which this system does not tell.
    ///
    /// # Errors
    /// None.
    #[cfg(not(target_os = "linux"))]
    pub fn of(_path: &Path) -> io::Result<Self> {
        Ok(Self::Local)
    }

    /// How many bytes this process may still write to a file or folder's file system.
    ///
    /// # Errors
    /// What the system says, also when this process may write nothing there at all.
    pub fn room(path: &Path) -> io::Result<u64> {
        rustix::fs::access(path, rustix::fs::Access::WRITE_OK)?;
        let found = rustix::fs::statvfs(path)?;
        Ok(found.f_bavail.saturating_mul(found.f_frsize))
    }

    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "nothing tells the kind"))]
    fn of_kind(kind: u32) -> Self {
        let known = NETWORK.iter().find(|(known, _)| *known == kind);
        known.map_or(Self::Local, |(_, name)| Self::Network(name))
    }
}

impl fmt::Display for FileSystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local => f.write_str("of this machine"),
            Self::Network(name) => write!(f, "of a server ({name})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kinds_that_servers_have_are_known_by_their_numbers() {
        for (kind, expected) in [
            (0x6969, FileSystem::Network("nfs")),
            (0xff53_4d42, FileSystem::Network("cifs")),
            (0x0102_1997, FileSystem::Network("9p")),
            // ext4, tmpfs, btrfs and what a program serves.
            (0xef53, FileSystem::Local),
            (0x0102_1994, FileSystem::Local),
            (0x9123_683e, FileSystem::Local),
            (0x6573_5546, FileSystem::Local),
        ] {
            assert_eq!(FileSystem::of_kind(kind), expected, "{kind:#x}");
        }
    }

    #[test]
    fn what_is_not_there_is_on_none() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(FileSystem::of(folder.path()).is_ok());
        let missing = FileSystem::of(&folder.path().join("missing"));
        assert_eq!(missing.expect_err("nothing").kind(), io::ErrorKind::NotFound);
        assert!(FileSystem::room(folder.path()).expect("a folder that can be written") > 0);
        assert!(FileSystem::room(Path::new("/proc/self")).is_err(), "nobody writes there");
    }
}
