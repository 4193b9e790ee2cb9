//! The tool that searches the contents of files.

use std::path::Path;

use async_trait::async_trait;
use globset::{GlobBuilder, GlobMatcher};
use regex::bytes::{Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::domain::agent::{Execution, ToolDescriptor};
use crate::domain::json::Json;
use crate::domain::permission::plan::{LocatedPath, Plan};
use crate::domain::tool::ResultMetadata;
use crate::domain::turn::event::ToolResultData;
use crate::tools::files::{FileError, OpenFile};
use crate::tools::input::{self, InputError};
use crate::tools::lines::Content;
use crate::tools::output::{Lines, clip_line, count};
use crate::tools::tool::{Tool, ToolContext, ToolError, text_result};
use crate::tools::walk::{Entry, Scope, Walk, named, shown, walking};

/// The tool `search`.
#[derive(Debug)]
pub struct Search {
    descriptor: ToolDescriptor,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// A regular expression (Rust syntax: no look-around, no back-references). `^` and `$` match at
    /// lines.
    pattern: String,
    /// The folder or file to search, by default the session's folder.
    path: Option<String>,
    /// Only files that this glob matches: their names, or with a `/` in it their paths below the
    /// searched folder.
    glob: Option<String>,
    /// Whether the case of letters does not matter.
    #[serde(default)]
    ignore_case: bool,
}

/// Why a search cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// The pattern is no regular expression.
    #[error("the input field `pattern` does not fit")]
    Pattern(#[from] regex::Error),
    /// The glob is none.
    #[error("the input field `glob` does not fit")]
    Glob(#[from] globset::Error),
}

/// More lines than a model can use; the pattern should be narrower.
const MATCHES_MAX: usize = 200;
/// Bigger files are data. They are left out, and that is said.
const FILE_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// The memory that a pattern may take when it is compiled.
const PATTERN_BYTES_MAX: usize = 4 * 1024 * 1024;

impl Search {
    /// The tool.
    #[must_use]
    pub fn new() -> Self {
        let description = "Searches the contents of files for a regular expression and lists the \
            matching lines as path:line: text. What ignore files (.gitignore, .ignore) leave out \
            is not searched, nor are binary files.";
        Self {
            descriptor: ToolDescriptor {
                tool_id: "search".to_owned(),
                name: "search".to_owned(),
                description: description.to_owned(),
                input_schema: input::schema::<Input>(),
                execution: Execution::Sync,
                requires_human: false,
            },
        }
    }
}

impl Default for Search {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Tool for Search {
    fn descriptor(&self) -> &ToolDescriptor {
        &self.descriptor
    }

    fn plan(&self, input: &Json) -> Result<Plan, InputError> {
        let (path, _) = read(input)?;
        Ok(Plan { reads: vec![path], ..Plan::default() })
    }

    async fn run(&self, input: &Json, context: &ToolContext) -> Result<ToolResultData, ToolError> {
        let (path, input) = read(input)?;
        let wanted = Wanted::new(&input)?;
        walking(&path, context, move |scope| Ok(search(scope, &wanted)?.into_result())).await
    }
}

fn read(input: &Json) -> Result<(String, Input), InputError> {
    let mut input: Input = input::read(input)?;
    let path = named(input.path.take());
    Ok((path, input))
}

/// What is searched for, and in which files.
struct Wanted {
    pattern: Regex,
    glob: Option<(GlobMatcher, GlobOn)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum GlobOn {
    Name,
    Path,
}

impl Wanted {
    fn new(input: &Input) -> Result<Self, SearchError> {
        let pattern = RegexBuilder::new(&input.pattern)
            .multi_line(true)
            .crlf(true)
            .case_insensitive(input.ignore_case)
            .size_limit(PATTERN_BYTES_MAX)
            .build()?;
        let glob = |text: &String| {
            let on = if text.contains('/') { GlobOn::Path } else { GlobOn::Name };
            let pattern = text.trim_start_matches('/');
            let glob = GlobBuilder::new(pattern).literal_separator(true).build();
            glob.map(|glob| (glob.compile_matcher(), on))
        };
        Ok(Self { pattern, glob: input.glob.as_ref().map(glob).transpose()? })
    }

    fn includes(&self, file: &Path) -> bool {
        match &self.glob {
            None => true,
            Some((glob, GlobOn::Path)) => glob.is_match(file),
            Some((glob, GlobOn::Name)) => file.file_name().is_some_and(|name| glob.is_match(name)),
        }
    }
}

fn search(scope: &Scope, wanted: &Wanted) -> Result<Hits, ToolError> {
    let Scope { root, may_read, cancel, bytes_max } = scope;
    let mut hits = Hits::new(*bytes_max);
    let mut walk = match Walk::through(root, None, may_read.clone()) {
        Ok(walk) => walk,
        Err(FileError::NotAFolder { .. }) => {
            let file = OpenFile::open(Path::new(&root.resolved))?;
            hits.look_into(file, root, &wanted.pattern);
            return Ok(hits);
        }
        Err(error) => return Err(error.into()),
    };
    while let Some(entry) = walk.step(cancel)? {
        if hits.is_full {
            break;
        }
        if !entry.is_file || !wanted.includes(&entry.relative) {
            continue;
        }
        if !may_read.includes(&entry.path) {
            hits.closed += 1;
        } else if let Some(file) = open(&walk, &entry) {
            hits.look_into(file, &entry.path, &wanted.pattern);
        }
    }
    // Nobody expects git's own files to be searched.
    hits.closed += walk.closed().iter().filter(|folder| !folder.ends_with(".git")).count();
    hits.unreadable += walk.unreadable();
    Ok(hits)
}

/// The file of an entry; `None` if it is gone, or no longer a file.
fn open(walk: &Walk, entry: &Entry) -> Option<OpenFile> {
    let name = Path::new(entry.relative.file_name()?);
    walk.folder_of(entry).ok()?.file(name).ok()
}

/// What was found, and what was not looked into.
struct Hits {
    lines: Lines,
    matches: usize,
    files: usize,
    is_full: bool,
    closed: usize,
    unreadable: usize,
    big: usize,
    binary: usize,
}

impl Hits {
    fn new(bytes_max: usize) -> Self {
        let lines = Lines::new(bytes_max);
        let [matches, files, closed, unreadable, big, binary] = [0; 6];
        Self { lines, matches, files, is_full: false, closed, unreadable, big, binary }
    }

    fn look_into(&mut self, file: OpenFile, path: &LocatedPath, pattern: &Regex) {
        match file.read_whole(FILE_BYTES_MAX) {
            Ok(content) if Content::of(&content) == Content::Text => {
                let before = self.matches;
                self.look_at(&content, &shown(&path.path), pattern);
                self.files += usize::from(self.matches > before);
            }
            Ok(_) => self.binary += 1,
            Err(FileError::TooBig { .. }) => self.big += 1,
            Err(_) => self.unreadable += 1,
        }
    }

    /// Lists each line in which a match begins.
    fn look_at(&mut self, content: &[u8], path: &str, pattern: &Regex) {
        let (mut number, mut counted) = (1, 0);
        let mut listed_to = 0;
        for found in pattern.find_iter(content) {
            let at = found.start();
            let is_after_last_line =
                at == content.len() && matches!(content.last(), None | Some(b'\n'));
            if (at < listed_to) || is_after_last_line {
                continue;
            }
            number +=
                memchr::memchr_iter(b'\n', content.get(counted..at).unwrap_or_default()).count();
            counted = at;
            let (before, after) = content.split_at(at);
            let start = memchr::memrchr(b'\n', before).map_or(0, |end| end + 1);
            let end = memchr::memchr(b'\n', after).map_or(content.len(), |end| at + end);
            listed_to = end + 1;
            let line = content.get(start..end).unwrap_or_default();
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let text = format!("{path}:{number}: {}", clip_line(line, line.len() as u64));
            if self.matches == MATCHES_MAX || !self.lines.push(&text) {
                self.is_full = true;
                return;
            }
            self.matches += 1;
        }
    }

    fn into_result(self) -> ToolResultData {
        let lines = count(self.matches, "line", "lines");
        let found = format!("{lines} in {}", count(self.files, "file", "files"));
        let mut notes = Vec::new();
        if self.is_full {
            notes.push("there are more; narrow the search".to_owned());
        }
        if self.matches == 0 {
            notes.push("no match".to_owned());
        }
        for (number, one, many) in [
            (
                self.closed,
                "place is left out that the rules do not allow to read",
                "places are left out that the rules do not allow to read",
            ),
            (self.unreadable, "place cannot be read", "places cannot be read"),
            (
                self.big,
                "file of more than 8 MiB is left out",
                "files of more than 8 MiB are left out",
            ),
            (
                if self.matches == 0 { self.binary } else { 0 },
                "binary file is left out",
                "binary files are left out",
            ),
        ] {
            if number > 0 {
                notes.push(count(number, one, many));
            }
        }
        let note = (!notes.is_empty()).then(|| notes.join("; "));
        text_result(&self.lines.into_text(note.as_deref()), &ResultMetadata::summary(found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::permission::plan::PermissionRequest;
    use crate::domain::permission::rule::Ruling;
    use crate::tools::rig::Rig;
    use crate::tools::tool::Permit;
    use serde_json::json;

    fn tree() -> Rig {
        let rig = Rig::new();
        rig.write("src/a.rs", "fn one() {}\r\nfn two() { one(); one() }\r\n");
        rig.write("src/deep/b.rs", "// One\n\nfn three() {}");
        rig.write("notes.md", "fn is a word\n");
        rig.write("target/out.rs", "fn one() {}");
        rig.write("data.bin", "fn\0one");
        rig.write(".git/config", "one");
        rig.write(".gitignore", "target/\n");
        rig
    }

    async fn check(rig: &Rig, input: serde_json::Value, expected: &str) {
        rig.check(&Search::new(), input, expected).await;
    }

    #[tokio::test]
    async fn matching_lines_are_listed_with_path_and_number() {
        let rig = tree().ruling(".git", Ruling::Deny);
        let found = "src/a.rs:1: fn one() {}\nsrc/a.rs:2: fn two() { one(); one() }\n";
        check(&rig, json!({ "pattern": "one" }), found).await;
        let ran = rig.run(&Search::new(), json!({ "pattern": "one" })).await;
        assert_eq!(ran.metadata, ResultMetadata::summary("2 lines in 1 file"));
        let found = format!("{found}src/deep/b.rs:1: // One\n");
        check(&rig, json!({ "pattern": "ONE", "ignore_case": true }), &found).await;
        let lines = "src/deep/b.rs:3: fn three() {}\n";
        check(&rig, json!({ "pattern": r"^fn th.*\}$", "path": "src" }), lines).await;
        let blank = "src/deep/b.rs:2: \n";
        check(&rig, json!({ "pattern": "^$", "glob": "*.rs" }), blank).await;
    }

    #[tokio::test]
    async fn a_path_and_a_glob_narrow_the_search() {
        let rig = tree();
        let file = "src/a.rs:1: fn one() {}\nsrc/a.rs:2: fn two() { one(); one() }\n";
        check(&rig, json!({ "pattern": "fn", "path": "src/a.rs" }), file).await;
        check(&rig, json!({ "pattern": "fn", "glob": "*.md" }), "notes.md:1: fn is a word\n").await;
        let below = "src/deep/b.rs:3: fn three() {}\n";
        check(&rig, json!({ "pattern": "fn", "glob": "src/*/*.rs" }), below).await;
        let outside = rig.root().join("out");
        std::fs::write(outside.join("x"), "fn").unwrap();
        let found = rig.run(&Search::new(), json!({ "pattern": "fn", "path": outside })).await;
        assert_eq!(found.text, "<root>/out/x:1: fn\n");
    }

    #[tokio::test]
    async fn what_was_not_searched_is_said() {
        let rig = tree().ruling("src", Ruling::Ask);
        let nothing = "[no match; 1 place is left out that the rules do not allow to read; \
                       1 binary file is left out]\n";
        check(&rig, json!({ "pattern": "three" }), nothing).await;
        let mut narrow = tree();
        narrow.output_bytes_max = 30;
        let part = "src/a.rs:1: fn one() {}\n[there are more; narrow the search]\n";
        check(&narrow, json!({ "pattern": "one", "path": "src" }), part).await;
    }

    #[tokio::test]
    async fn who_approved_a_search_approved_what_asks_but_not_what_is_denied() {
        let rig = tree().ruling("src/a.rs", Ruling::Ask).ruling("src/deep", Ruling::Deny);
        let input = json!({ "pattern": "fn [ot]", "path": "src" });
        let request: PermissionRequest = rig.request(&Search::new(), &input).await;
        let ran = rig.run_with(&Search::new(), &input, Permit::Approved(request)).await;
        let found = "src/a.rs:1: fn one() {}\nsrc/a.rs:2: fn two() { one(); one() }\n";
        let note = "[1 place is left out that the rules do not allow to read]\n";
        assert_eq!(ran.text, format!("{found}{note}"));
    }

    #[tokio::test]
    async fn a_pattern_that_is_none_names_its_field() {
        let ran = tree().run(&Search::new(), json!({ "pattern": "(" })).await;
        assert!(ran.is_error && ran.text.starts_with("the input field `pattern` does not fit: "));
        let ran = tree().run(&Search::new(), json!({ "pattern": "a", "glob": "[" })).await;
        assert!(ran.is_error && ran.text.starts_with("the input field `glob` does not fit: "));
    }

    #[tokio::test]
    async fn a_cancelled_search_ends() {
        let rig = tree();
        rig.cancel.cancel();
        check(&rig, json!({ "pattern": "one" }), "the call was cancelled").await;
    }
}
