//! Where the paths of a plan lead: resolved against the session's folder, links followed, and only
//! then told whether they lie inside.

use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::domain::permission::plan::{LocatedPath, LocatedPlan, Plan};

/// The folder of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workspace {
    folder: PathBuf,
    text: String,
}

/// Why a folder cannot be that of a session.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// It is not there, or may not be entered.
    #[error("the session's folder {folder} cannot be used; choose another")]
    Unusable {
        /// The folder.
        folder: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// It is no folder.
    #[error("the session's folder {0} is not a folder; choose another")]
    NotAFolder(PathBuf),
    /// Its path is no text, which no rule and no log could name.
    #[error("the path of the session's folder {0} is not UTF-8; choose another")]
    NotText(PathBuf),
}

/// Why it cannot be said where a path leads.
#[derive(Debug, thiserror::Error)]
pub enum LocateError {
    /// It is empty or holds a NUL.
    #[error("{0:?} is no path")]
    NoPath(String),
    /// More links than any sane path has; most likely a circle.
    #[error("{0:?} leads through more than {LINKS_MAX} links")]
    Links(String),
    /// It leads to a place whose name is no text.
    #[error("{path:?} leads to {resolved}, which is not UTF-8")]
    NotText {
        /// As it was written.
        path: String,
        /// Where it leads.
        resolved: PathBuf,
    },
    /// The system does not tell.
    #[error("{path:?} cannot be followed")]
    System {
        /// As it was written.
        path: String,
        /// What the system says.
        #[source]
        source: io::Error,
    },
}

/// As many links as Linux follows in one path.
const LINKS_MAX: usize = 40;

impl Workspace {
    /// The workspace in `folder`. Blocking.
    ///
    /// # Errors
    /// [`WorkspaceError`]: it cannot be used as one.
    pub fn open(folder: &Path) -> Result<Self, WorkspaceError> {
        let unusable = |source| WorkspaceError::Unusable { folder: folder.to_owned(), source };
        let folder = folder.canonicalize().map_err(unusable)?;
        if !folder.is_dir() {
            return Err(WorkspaceError::NotAFolder(folder));
        }
        match folder.to_str() {
            Some(text) => Ok(Self { text: text.to_owned(), folder }),
            None => Err(WorkspaceError::NotText(folder)),
        }
    }

    /// The folder, absolute, links followed.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Says where the paths of a plan lead. Relative paths start in the folder; `~` is a name like
    /// any other. Files that are yet to be made are located where they would come to be. Blocking:
    /// a few system calls for each path.
    ///
    /// # Errors
    /// [`LocateError`]: the first path that leads nowhere.
    pub fn locate(&self, plan: &Plan) -> Result<LocatedPlan, LocateError> {
        let all = |paths: &[String]| -> Result<Vec<_>, _> {
            paths.iter().map(|path| self.locate_path(path)).collect()
        };
        Ok(LocatedPlan {
            folder: self.text.clone(),
            reads: all(&plan.reads)?,
            writes: all(&plan.writes)?,
            commands: plan.commands.clone(),
            hosts: plan.hosts.clone(),
        })
    }

    fn locate_path(&self, path: &str) -> Result<LocatedPath, LocateError> {
        let resolved = follow(&self.folder, path)?;
        let inside = resolved.starts_with(&self.folder);
        match resolved.into_os_string().into_string() {
            Ok(resolved) => Ok(LocatedPath { path: path.to_owned(), resolved, inside }),
            Err(name) => Err(LocateError::NotText { path: path.to_owned(), resolved: name.into() }),
        }
    }
}

/// The absolute path without links that `text` leads to. From where nothing exists, names are taken
/// as they are.
fn follow(folder: &Path, text: &str) -> Result<PathBuf, LocateError> {
    if text.is_empty() || text.contains('\0') {
        return Err(LocateError::NoPath(text.to_owned()));
    }
    let mut at = PathBuf::from("/");
    let mut ahead = Vec::new();
    put_ahead(&mut ahead, &folder.join(text));
    let mut links = 0;
    while let Some(name) = ahead.pop() {
        if name == ".." {
            at.pop();
            continue;
        }
        let next = at.join(name);
        match link_target(&next) {
            Ok(None) => at = next,
            Ok(Some(target)) => {
                links += 1;
                if links > LINKS_MAX {
                    return Err(LocateError::Links(text.to_owned()));
                }
                if target.is_absolute() {
                    at = PathBuf::from("/");
                }
                put_ahead(&mut ahead, &target);
            }
            Err(source) => return Err(LocateError::System { path: text.to_owned(), source }),
        }
    }
    Ok(at)
}

/// Puts the names of a path before those that are still to be gone through; the next one is last.
fn put_ahead(ahead: &mut Vec<OsString>, path: &Path) {
    ahead.extend(path.components().rev().filter_map(|part| match part {
        Component::Normal(_) | Component::ParentDir => Some(part.as_os_str().to_owned()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    }));
}

/// Where the link at `path` leads; `None` if there is no link, or nothing at all.
fn link_target(path: &Path) -> io::Result<Option<PathBuf>> {
    use io::ErrorKind::{NotADirectory, NotFound};
    match path.symlink_metadata() {
        Ok(found) if found.is_symlink() => path.read_link().map(Some),
        Ok(_) => Ok(None),
        Err(error) if matches!(error.kind(), NotFound | NotADirectory) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::rig::Rig;

    /// Where a path leads, with `<root>` for the folder that holds `in` and `out`.
    fn check(rig: &Rig, path: &str, resolved: &str, inside: bool) {
        let plan = Plan { reads: vec![path.to_owned()], ..Plan::default() };
        let located = rig.workspace().locate(&plan).unwrap();
        let root = rig.root().to_str().unwrap().to_owned();
        let resolved = resolved.replace("<root>", &root);
        let expected = LocatedPath { path: path.to_owned(), resolved, inside };
        assert_eq!(located.reads, [expected]);
    }

    #[test]
    fn paths_are_told_inside_only_after_links_are_followed() {
        let rig = Rig::new();
        rig.write("src/main.rs", "");
        rig.link("src/lib", "../../out");
        rig.link("up", "..");
        rig.link("main", "src/./main.rs");
        rig.link("absolute", rig.root().join("out"));
        check(&rig, "src/main.rs", "<root>/in/src/main.rs", true);
        check(&rig, "main", "<root>/in/src/main.rs", true);
        check(&rig, ".", "<root>/in", true);
        check(&rig, "src/../../in/src", "<root>/in/src", true);
        check(&rig, "up/in/src", "<root>/in/src", true);
        check(&rig, "..", "<root>", false);
        check(&rig, "src/lib/a", "<root>/out/a", false);
        check(&rig, "src/lib/..", "<root>", false);
        check(&rig, "absolute/a", "<root>/out/a", false);
        check(&rig, "/etc/../etc/./passwd", "/etc/passwd", false);
    }

    #[test]
    fn what_does_not_exist_yet_is_located_where_it_would_come_to_be() {
        let rig = Rig::new();
        rig.link("dangling", "../out/new/file");
        rig.link("circle", "circle");
        check(&rig, "new/folder/file", "<root>/in/new/folder/file", true);
        check(&rig, "new/../../out/file", "<root>/out/file", false);
        check(&rig, "dangling", "<root>/out/new/file", false);
        check(&rig, "~/file", "<root>/in/~/file", true);
        let locate = |path: &str| {
            let plan = Plan { writes: vec![path.to_owned()], ..Plan::default() };
            rig.workspace().locate(&plan).unwrap_err()
        };
        assert!(matches!(locate("circle/a"), LocateError::Links(_)));
        assert!(matches!(locate(""), LocateError::NoPath(_)));
        assert!(matches!(locate("a\0b"), LocateError::NoPath(_)));
    }

    #[test]
    fn only_a_folder_can_be_that_of_a_session() {
        let rig = Rig::new();
        rig.write("file", "");
        let open = |path: &str| Workspace::open(&rig.path(path));
        assert!(matches!(open("file"), Err(WorkspaceError::NotAFolder(_))));
        assert!(matches!(open("missing"), Err(WorkspaceError::Unusable { .. })));
    }
}
