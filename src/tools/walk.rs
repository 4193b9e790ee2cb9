//! What lies below a folder: without what ignore files leave out, without following links, and
//! without what the call may not read.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use ignore::WalkBuilder;
use tokio_util::sync::CancellationToken;

use crate::domain::permission::decide::ReadGuard;
use crate::domain::permission::plan::LocatedPath;
use crate::domain::permission::rule::Ruling;
use crate::domain::turn::event::ToolResultData;
use crate::tools::files::{Absent, FileError, Folder};
use crate::tools::tool::{Permit, ToolContext, ToolError, blocking, located};

/// What a call may read below the paths of its plan.
#[derive(Clone)]
pub(crate) struct MayRead {
    guard: Arc<dyn ReadGuard>,
    permit: Permit,
}

impl MayRead {
    pub(crate) fn of(context: &ToolContext) -> Self {
        Self { guard: Arc::clone(&context.reads), permit: context.permit.clone() }
    }

    /// Whether the call may read this. Whoever approved a folder approved what would have asked in
    /// it, but not what is denied.
    pub(crate) fn includes(&self, path: &LocatedPath) -> bool {
        match (self.guard.ruling(path), &self.permit) {
            (Ruling::Allow, _) | (Ruling::Ask, Permit::Approved(_)) => true,
            (Ruling::Ask, Permit::Allowed(_)) | (Ruling::Deny, _) => false,
        }
    }
}

/// What a tool that walks is given: the place that the call may read, what it may read below it, and
/// when to stop.
pub(crate) struct Scope {
    pub(crate) root: LocatedPath,
    pub(crate) may_read: MayRead,
    pub(crate) cancel: CancellationToken,
    pub(crate) bytes_max: usize,
}

/// Does what a tool does by walking from `path` on, where it may block.
pub(crate) async fn walking(
    path: &str,
    context: &ToolContext,
    work: impl FnOnce(&Scope) -> Result<ToolResultData, ToolError> + Send + 'static,
) -> Result<ToolResultData, ToolError> {
    let scope = Scope {
        root: located(&context.permit.plan().reads, path)?.clone(),
        may_read: MayRead::of(context),
        cancel: context.cancel.clone(),
        bytes_max: context.output_bytes_max,
    };
    blocking(&context.tasks, move || work(&scope)).await
}

/// The folder or file that an input names; by default the session's folder.
pub(crate) fn named(path: Option<String>) -> String {
    path.unwrap_or_else(|| ".".to_owned())
}

/// A walk through a folder, in the order of names.
pub(crate) struct Walk {
    root: LocatedPath,
    handle: Folder,
    steps: ignore::Walk,
    closed: Arc<Mutex<Vec<PathBuf>>>,
    unreadable: usize,
}

/// Something that a walk came upon.
pub(crate) struct Entry {
    /// From the root of the walk on.
    pub(crate) relative: PathBuf,
    /// As the model would write it, and where that is.
    pub(crate) path: LocatedPath,
    /// Whether it was a regular file.
    pub(crate) is_file: bool,
}

impl Walk {
    /// A walk through the folder at `root`, which the call may read.
    pub(crate) fn through(
        root: &LocatedPath,
        depth_max: Option<usize>,
        may_read: MayRead,
    ) -> Result<Self, FileError> {
        let handle = Folder::open(Path::new(&root.resolved), Absent::Refuse)?;
        let closed = Arc::new(Mutex::new(Vec::new()));
        let (found_closed, base) = (Arc::clone(&closed), root.clone());
        let mut builder = WalkBuilder::new(&root.resolved);
        // Without git's global ignore file, which would be read from the environment.
        builder.hidden(false).git_global(false).max_depth(depth_max);
        builder.sort_by_file_name(std::ffi::OsStr::cmp);
        builder.filter_entry(move |entry| {
            let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
            if entry.depth() == 0 || !is_folder {
                return true;
            }
            let Some(relative) = relative(&base, entry.path()) else { return false };
            let is_open = may_read.includes(&below(&base, relative));
            if !is_open {
                let mut closed = found_closed.lock().unwrap_or_else(PoisonError::into_inner);
                closed.push(relative.to_owned());
            }
            is_open
        });
        Ok(Self { root: root.clone(), handle, steps: builder.build(), closed, unreadable: 0 })
    }

    /// What it comes upon next, unless the call is cancelled.
    pub(crate) fn step(&mut self, cancel: &CancellationToken) -> Result<Option<Entry>, ToolError> {
        loop {
            if cancel.is_cancelled() {
                return Err(ToolError::Cancelled);
            }
            let Some(step) = self.steps.next() else { return Ok(None) };
            let Ok(step) = step else {
                self.unreadable += 1;
                continue;
            };
            match relative(&self.root, step.path()) {
                Some(relative) if step.depth() > 0 => {
                    let path = below(&self.root, relative);
                    let is_file = step.file_type().is_some_and(|kind| kind.is_file());
                    return Ok(Some(Entry { relative: relative.to_owned(), path, is_file }));
                }
                Some(_) | None => {}
            }
        }
    }

    /// The folder that holds an entry, opened without following a link. What a walk comes upon may
    /// be replaced before it is looked at.
    pub(crate) fn folder_of(&self, entry: &Entry) -> Result<Folder, FileError> {
        self.handle.below(entry.relative.parent().unwrap_or(Path::new("")))
    }

    /// The folders that were not gone into because the call may not read them, from the root on.
    pub(crate) fn closed(&self) -> Vec<PathBuf> {
        self.closed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many folders could not be read.
    pub(crate) fn unreadable(&self) -> usize {
        self.unreadable
    }
}

fn relative<'a>(root: &LocatedPath, path: &'a Path) -> Option<&'a Path> {
    path.strip_prefix(&root.resolved).ok()
}

/// A path below the root. It lies where the root lies: no link is on the way.
fn below(root: &LocatedPath, relative: &Path) -> LocatedPath {
    let join = |folder: &str| Path::new(folder).join(relative).to_string_lossy().into_owned();
    let path = match root.path.as_str() {
        "." => relative.to_string_lossy().into_owned(),
        folder => join(folder),
    };
    LocatedPath { path, resolved: join(&root.resolved), inside: root.inside }
}

/// A path as one line of text, whatever its names hold.
pub(crate) fn shown(path: &str) -> String {
    if path.chars().any(char::is_control) {
        path.escape_debug().to_string()
    } else {
        path.to_owned()
    }
}
