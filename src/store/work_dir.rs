//! The layout of the work directory: where everything of the store lies, and what may be made of an
//! id.

use std::path::{Path, PathBuf};

use crate::store::disk::{self, Disk, Open};
use crate::store::error::IoFailure;
use crate::store::log::{LogId, LogKind, Removed};

/// A work directory. Only paths; nothing is looked at or made before [`WorkDir::prepare`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkDir {
    root: PathBuf,
}

/// Why a folder is no work directory.
#[derive(Clone, Debug, thiserror::Error)]
pub enum WorkDirError {
    /// Paths in it must stay valid wherever the program goes.
    #[error("the work directory {} is not an absolute path", .0.display())]
    NotAbsolute(PathBuf),
    /// It cannot be written.
    #[error(
        "the work directory {} cannot be used: {cause}; make it writable, choose another with \
         --work-dir or TURNSTILE_HOME, or start with --read-only",
        root.display()
    )]
    Unusable {
        /// The work directory.
        root: PathBuf,
        /// What was refused in it.
        cause: IoFailure,
    },
}

impl WorkDir {
    /// The work directory at `root`.
    ///
    /// # Errors
    /// [`WorkDirError::NotAbsolute`].
    pub fn new(root: PathBuf) -> Result<Self, WorkDirError> {
        if root.is_absolute() { Ok(Self { root }) } else { Err(WorkDirError::NotAbsolute(root)) }
    }

    /// Makes what is missing, for the owner alone, and proves that files can be made.
    ///
    /// # Errors
    /// [`WorkDirError::Unusable`] with the first folder or file that was refused.
    pub fn prepare(&self, disk: &dyn Disk) -> Result<(), WorkDirError> {
        let folders = [
            self.logs(LogKind::Session),
            self.logs(LogKind::Turn),
            self.deleted(),
            self.composer(),
        ];
        let unusable = |cause| WorkDirError::Unusable { root: self.root.clone(), cause };
        for folder in &folders {
            disk::make_folders(disk, folder)
                .map_err(IoFailure::of("make the folder", folder))
                .map_err(unusable)?;
        }
        let proof = self.lock_file();
        disk.open(&proof, Open::OrNew)
            .map_err(IoFailure::of("write", &proof))
            .map_err(unusable)
            .map(drop)
    }

    /// The folder itself.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Says who holds the instance lock.
    #[must_use]
    pub fn lock_file(&self) -> PathBuf {
        self.root.join("turnstile.lock")
    }

    /// Holds everything of the logs, but what was removed.
    #[must_use]
    pub fn storage(&self) -> PathBuf {
        self.root.join("storage")
    }

    /// Says in which form the logs are kept.
    #[must_use]
    pub fn format_file(&self) -> PathBuf {
        self.storage().join("format")
    }

    /// Says that the logs are being brought into another form, or were.
    #[must_use]
    pub fn conversion_file(&self) -> PathBuf {
        self.storage().join("conversion")
    }

    /// Holds the dated folders of all logs of a kind.
    #[must_use]
    pub fn logs(&self, kind: LogKind) -> PathBuf {
        let kind = match kind {
            LogKind::Session => "sessions",
            LogKind::Turn => "turns",
        };
        self.storage().join(kind)
    }

    /// Holds all logs, where they are rows.
    #[must_use]
    pub fn database(&self) -> PathBuf {
        self.root.join("storage").join("turnstile.db")
    }

    /// The dated folder of one log, from its id alone.
    #[must_use]
    pub fn dated(&self, log: &LogId) -> PathBuf {
        let mut dated = self.logs(log.kind());
        dated.push(log.day().replace('-', "/"));
        dated
    }

    /// Holds what was removed and can be restored.
    #[must_use]
    pub fn deleted(&self) -> PathBuf {
        self.root.join("var").join("deleted")
    }

    /// Holds what was removed together with one log.
    #[must_use]
    pub fn removal(&self, removed: &Removed) -> PathBuf {
        self.deleted().join(&removed.key)
    }

    /// Holds the folders of the sessions' runtime state.
    #[must_use]
    pub fn runtime_state(&self) -> PathBuf {
        self.root.join("var").join("sessions")
    }

    /// Holds the output of tools that was too long for a model, as a path below the root: each turn has
    /// a folder in it.
    pub const OUTPUT: &str = "var/output";

    /// The folder for the output of a turn's tools; none for other logs.
    #[must_use]
    pub fn output_of(&self, log: &LogId) -> Option<PathBuf> {
        match log.kind() {
            LogKind::Session => None,
            LogKind::Turn => Some(self.root.join(Self::OUTPUT).join(log.id())),
        }
    }

    /// Holds drafts and what else belongs to the composer.
    #[must_use]
    pub fn composer(&self) -> PathBuf {
        self.root.join("var").join("composer")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::disk::RealDisk;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn what_is_made_is_for_the_owner_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let work_dir = WorkDir::new(folder.path().join("new/home")).expect("absolute");
        work_dir.prepare(&RealDisk).expect("prepared");
        work_dir.prepare(&RealDisk).expect("prepared again");
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        for made in [work_dir.root(), &work_dir.logs(LogKind::Turn), &work_dir.composer()] {
            assert_eq!(mode(made), 0o700, "{}", made.display());
        }
        assert_eq!(mode(&work_dir.lock_file()), 0o600);
    }

    #[test]
    fn a_folder_that_cannot_be_used_is_named_with_a_way_out() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("file"), "").expect("a file in the way");
        let work_dir = WorkDir::new(folder.path().join("file")).expect("absolute");
        let error = work_dir.prepare(&RealDisk).expect_err("a file is no folder").to_string();
        let start = format!("the work directory {} cannot be used: ", work_dir.root().display());
        assert!(error.starts_with(&start) && error.contains("--work-dir"), "{error}");
        assert!(WorkDir::new(PathBuf::from("relative")).is_err());
    }

    #[test]
    fn the_path_of_a_log_follows_from_its_id() {
        let work_dir = WorkDir::new(PathBuf::from("/home/x")).expect("absolute");
        let log = LogId::new(LogKind::Session, "2025-01-09T04-36-29Z-0001234-000").expect("valid");
        assert_eq!(work_dir.dated(&log), Path::new("/home/x/storage/sessions/2025/01/09"));
    }
}
