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
        // A carriage return is a character like any other, to be seen where it stands: of itself it
        // would end a line for the comparison, and tear the lines of the diff apart.
        let old: Vec<&str> = old.split_inclusive('\n').collect();
        let new: Vec<&str> = new.split_inclusive('\n').collect();
        let diff = TextDiff::configure().timeout(DIFF_TIMEOUT).diff_slices(&old, &new);
        let count = |tag| diff.iter_all_changes().filter(|change| change.tag() == tag).count();
        Self {
            added: count(ChangeTag::Insert),
            removed: count(ChangeTag::Delete),
            text: unified(&diff),
        }
    }

    /// As much of the text as a result carries.
    fn bounded(self) -> String {
        if self.text.len() <= DIFF_BYTES_MAX {
            return self.text;
        }
        let mut lines = Lines::new(DIFF_BYTES_MAX);
        let all = || self.text.split_terminator('\n');
        let shown = all().take_while(|line| lines.push(line)).count();
        let more = all().count() - shown;
        lines.into_text(Some(&format!("{more} more lines of the diff are left out")))
    }
}

/// The text of a diff. Only `\n` ends a line in it, which is why it is not written by the library.
fn unified(diff: &TextDiff<'_, '_, str>) -> String {
    let mut text = String::new();
    for hunk in diff.unified_diff().context_radius(CONTEXT_LINES).iter_hunks() {
        text.push_str(&hunk.header().to_string());
        text.push('\n');
        for change in hunk.iter_changes() {
            text.push_str(&change.tag().to_string());
            text.push_str(change.value());
            if !change.value().ends_with('\n') {
                text.push_str("\n\\ No newline at end of file\n");
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_carriage_return_stands_in_its_line_of_the_diff() {
        let diff = |old: &str, new: &str| Diff::between(old, new).text;
        let hidden = diff("a\nb\n", "a\nsafe\rrm -rf ~\nb\n");
        assert_eq!(hidden, "@@ -1,2 +1,3 @@\n a\n+safe\rrm -rf ~\n b\n");
        assert_eq!(diff("a\n", "a\r\n"), "@@ -1 +1 @@\n-a\n+a\r\n");
        let end = "\\ No newline at end of file\n";
        assert_eq!(diff("a\r", "a\n"), format!("@@ -1 +1 @@\n-a\r\n{end}+a\n"));
    }

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
