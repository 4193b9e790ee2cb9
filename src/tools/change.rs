//! Changes of one file, for the tools that make them: the file as it is, what a person is shown of
//! the change, and the change itself.

use std::path::Path;
use std::time::Duration;

use similar::{ChangeTag, TextDiff};

use crate::base::id::ToolCallId;
use crate::domain::permission::plan::{FileBase, LocatedPath, Preview};
use crate::domain::tool::ResultMetadata;
use crate::domain::turn::event::ToolResultData;
use crate::tools::files::{self, FileError, OpenFile, Version};
use crate::tools::output::Lines;
use crate::tools::tool::{Permit, ToolContext, ToolError, text_result};

/// Bigger files are no text that somebody writes.
pub(crate) const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// How much of a diff a result carries for the screen; half of what metadata may hold, for escapes.
const DIFF_BYTES_MAX: usize = 128 * 1024;
/// After this a diff gets coarser instead of later: hopeless pairs of files take quadratic time.
const DIFF_TIMEOUT: Duration = Duration::from_secs(1);
/// Unchanged lines around a change.
const CONTEXT_LINES: usize = 3;

/// A file as it was found.
pub(crate) struct Found {
    version: Version,
    pub(crate) content: Vec<u8>,
}

impl Found {
    /// The file at a resolved path; `None` if there is none yet.
    pub(crate) fn at(path: &LocatedPath) -> Result<Option<Self>, FileError> {
        match OpenFile::open(Path::new(&path.resolved)) {
            Ok(file) => {
                let version = file.version;
                let content = file.read_whole(FILE_BYTES_MAX)?;
                Ok(Some(Self { version, content }))
            }
            Err(FileError::Missing { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// The file of a change, for the record of what was shown.
pub(crate) fn base(path: &LocatedPath, found: Option<&Found>) -> FileBase {
    FileBase { path: path.resolved.clone(), sha256: sha256_of(found) }
}

fn sha256_of(found: Option<&Found>) -> Option<String> {
    found.map(|found| files::sha256(&found.content))
}

/// What a person is shown of a change to this content.
pub(crate) fn preview(path: &LocatedPath, found: Option<&Found>, new: &str) -> Preview {
    match found.map(|found| std::str::from_utf8(&found.content)) {
        Some(Err(_)) => {
            let bytes = found.map_or(0, |found| found.content.len());
            let text = format!("Replaces a file of {bytes} bytes that is no text with:\n\n{new}");
            Preview::Text { text }
        }
        Some(Ok(old)) => {
            let diff = Diff::between(old, new).text;
            Preview::Diff { path: path.path.clone(), diff, created: false }
        }
        None => {
            let diff = Diff::between("", new).text;
            Preview::Diff { path: path.path.clone(), diff, created: true }
        }
    }
}

/// A change that is ready to be made.
pub(crate) struct Change {
    pub(crate) path: LocatedPath,
    permit: Permit,
    token: String,
}

impl Change {
    /// A change of the file at `path` by this call.
    pub(crate) fn of(path: &LocatedPath, context: &ToolContext) -> Self {
        Self { path: path.clone(), permit: context.permit.clone(), token: token(&context.call) }
    }

    /// The file as it is; refused if it is no longer what was shown.
    pub(crate) fn find(&self) -> Result<Option<Found>, ToolError> {
        let found = Found::at(&self.path)?;
        self.permit.check_unchanged(&self.path, sha256_of(found.as_ref()).as_deref())?;
        Ok(found)
    }

    /// Makes the change. `said` begins what the model is told.
    pub(crate) fn make(
        &self,
        found: Option<&Found>,
        new: &str,
        said: &str,
    ) -> Result<ToolResultData, ToolError> {
        let path = Path::new(&self.path.resolved);
        files::replace(path, new.as_bytes(), found.map(|found| &found.version), &self.token)?;
        let old = found.map(|found| String::from_utf8_lossy(&found.content)).unwrap_or_default();
        let diff = Diff::between(&old, new);
        let summary = format!("+{} −{}", diff.added, diff.removed);
        let text = format!("{said} ({summary} lines)");
        let diff = Some(diff.bounded());
        Ok(text_result(&text, &ResultMetadata { diff, ..ResultMetadata::summary(summary) }))
    }
}

/// A name that no other call has.
fn token(call: &ToolCallId) -> String {
    let mut token = files::sha256(call.as_str().as_bytes());
    token.truncate(16);
    token
}

struct Diff {
    text: String,
    added: usize,
    removed: usize,
}

impl Diff {
    fn between(old: &str, new: &str) -> Self {
        let diff = TextDiff::configure().timeout(DIFF_TIMEOUT).diff_lines(old, new);
        let count = |tag| diff.iter_all_changes().filter(|change| change.tag() == tag).count();
        Self {
            added: count(ChangeTag::Insert),
            removed: count(ChangeTag::Delete),
            text: diff.unified_diff().context_radius(CONTEXT_LINES).to_string(),
        }
    }

    /// As much of the text as a result carries.
    fn bounded(self) -> String {
        if self.text.len() <= DIFF_BYTES_MAX {
            return self.text;
        }
        let mut lines = Lines::new(DIFF_BYTES_MAX);
        let shown = self.text.lines().take_while(|line| lines.push(line)).count();
        let more = self.text.lines().count() - shown;
        lines.into_text(Some(&format!("{more} more lines of the diff are left out")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_counts_lines_and_says_what_a_result_leaves_out() {
        let diff = Diff::between("a\nb\nc\n", "a\nB\nc\nd\n");
        assert_eq!((diff.added, diff.removed), (2, 1));
        assert_eq!(diff.text, "@@ -1,3 +1,4 @@\n a\n-b\n+B\n c\n+d\n");
        let long = Diff::between("", &"line\n".repeat(40_000));
        let (all, bounded) = (long.text.lines().count(), long.bounded());
        let left_out = all + 1 - bounded.lines().count();
        assert!(bounded.len() <= DIFF_BYTES_MAX + 60, "{}", bounded.len());
        let note = format!("[{left_out} more lines of the diff are left out]\n");
        assert!(bounded.ends_with(&note), "{note}");
    }
}
