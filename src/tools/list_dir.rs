//! The tool that lists a folder.

use std::collections::BTreeSet;
use std::num::NonZeroU8;
use std::path::Path;

use async_trait::async_trait;
use rustix::fs::FileType;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::domain::agent::{Execution, ToolDescriptor};
use crate::domain::json::Json;
use crate::domain::permission::plan::Plan;
use crate::domain::tool::ResultMetadata;
use crate::domain::turn::event::ToolResultData;
use crate::tools::input::{self, InputError};
use crate::tools::output::{Lines, count};
use crate::tools::tool::{Tool, ToolContext, ToolError, text_result};
use crate::tools::walk::{Entry, Scope, Walk, named, shown, walking};

/// The tool `list-dir`.
#[derive(Debug)]
pub struct ListDir {
    descriptor: ToolDescriptor,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The folder, absolute or relative to the session's folder, which it is by default.
    path: Option<String>,
    /// How many levels deep, 1 by default.
    #[schemars(range(max = DEPTH_MAX))]
    depth: Option<NonZeroU8>,
}

/// What the depth may be; deeper trees are better searched.
const DEPTH_MAX: u8 = 8;
/// More names than a model can use.
const ENTRIES_MAX: usize = 1_000;

impl ListDir {
    /// The tool.
    #[must_use]
    pub fn new() -> Self {
        let description = "Lists a folder: folders end with /, links with @. What ignore files \
            (.gitignore, .ignore) leave out is not listed.";
        Self {
            descriptor: ToolDescriptor {
                tool_id: "list_dir".to_owned(),
                name: "list-dir".to_owned(),
                description: description.to_owned(),
                input_schema: input::schema::<Input>(),
                execution: Execution::Sync,
                requires_human: false,
            },
        }
    }
}

impl Default for ListDir {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Tool for ListDir {
    fn descriptor(&self) -> &ToolDescriptor {
        &self.descriptor
    }

    fn plan(&self, input: &Json) -> Result<Plan, InputError> {
        let (path, _) = read(input)?;
        Ok(Plan { reads: vec![path], ..Plan::default() })
    }

    async fn run(&self, input: &Json, context: &ToolContext) -> Result<ToolResultData, ToolError> {
        let (path, depth) = read(input)?;
        walking(&path, context, move |scope| Ok(list(scope, depth)?.into_result(scope.bytes_max)))
            .await
    }
}

fn read(input: &Json) -> Result<(String, usize), InputError> {
    let Input { path, depth } = input::read(input)?;
    let depth = depth.map_or(1, NonZeroU8::get);
    if depth > DEPTH_MAX {
        return Err(InputError::field("depth", format!("it is {depth}, more than {DEPTH_MAX}")));
    }
    Ok((named(path), depth.into()))
}

struct Listing {
    entries: BTreeSet<String>,
    has_more: bool,
    unreadable: usize,
}

fn list(scope: &Scope, depth: usize) -> Result<Listing, ToolError> {
    let mut walk = Walk::through(&scope.root, Some(depth), scope.may_read.clone())?;
    let (mut entries, mut has_more) = (BTreeSet::new(), false);
    while let Some(entry) = walk.step(&scope.cancel)? {
        if entries.len() == ENTRIES_MAX {
            has_more = true;
            break;
        }
        if let Some(line) = line_of(&walk, &entry) {
            entries.insert(line);
        }
    }
    let closed = walk.closed();
    entries.extend(closed.iter().map(|folder| format!("{}/", shown(&folder.to_string_lossy()))));
    Ok(Listing { entries, has_more, unreadable: walk.unreadable() })
}

/// How an entry is listed; `None` if it is gone, or no longer what the walk came upon.
fn line_of(walk: &Walk, entry: &Entry) -> Option<String> {
    let name = Path::new(entry.relative.file_name()?);
    let mark = match walk.folder_of(entry).ok()?.kind(name).ok()? {
        FileType::Directory => "/",
        FileType::Symlink => "@",
        _ => "",
    };
    Some(format!("{}{mark}", shown(&entry.relative.to_string_lossy())))
}

impl Listing {
    fn into_result(self, bytes_max: usize) -> ToolResultData {
        let mut lines = Lines::new(bytes_max);
        let listed = self.entries.iter().take_while(|entry| lines.push(entry)).count();
        let mut notes = Vec::new();
        if self.has_more || listed < self.entries.len() {
            notes.push("there are more; list one of the folders".to_owned());
        }
        if self.unreadable > 0 {
            notes.push(count(self.unreadable, "folder cannot be read", "folders cannot be read"));
        }
        if listed == 0 {
            notes.push("nothing is in the folder, or ignore files leave all of it out".to_owned());
        }
        let note = (!notes.is_empty()).then(|| notes.join("; "));
        let summary = count(listed, "entry", "entries");
        text_result(&lines.into_text(note.as_deref()), &ResultMetadata::summary(summary))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::permission::rule::Ruling;
    use crate::tools::rig::Rig;
    use serde_json::json;

    async fn check(rig: &Rig, input: serde_json::Value, expected: &str) {
        rig.check(&ListDir::new(), input, expected).await;
    }

    fn tree() -> Rig {
        let rig = Rig::new();
        for file in ["src/main.rs", "src/a/b.rs", ".git/HEAD", "target/x", "z", "a\nb"] {
            rig.write(file, "");
        }
        rig.write(".gitignore", "target/\n");
        rig.link("link", "src");
        rig
    }

    #[tokio::test]
    async fn folders_and_links_are_marked_and_ignored_ones_left_out() {
        let listing = ".git/\n.gitignore\na\\nb\nlink@\nsrc/\nz\n";
        check(&tree(), json!({}), listing).await;
        let ran = tree().run(&ListDir::new(), json!({ "path": "src" })).await;
        assert_eq!((ran.text.as_str(), ran.is_error), ("a/\nmain.rs\n", false));
        assert_eq!(ran.metadata, ResultMetadata::summary("2 entries"));
        check(&tree(), json!({ "path": "src", "depth": 2 }), "a/\na/b.rs\nmain.rs\n").await;
    }

    #[tokio::test]
    async fn what_may_not_be_read_is_named_but_not_gone_into() {
        let rig = tree().ruling("src/a", Ruling::Deny).ruling(".git", Ruling::Ask);
        let listing = ".git/\n.gitignore\na\\nb\nlink@\nsrc/\nsrc/a/\nsrc/main.rs\nz\n";
        check(&rig, json!({ "depth": 3 }), listing).await;
    }

    #[tokio::test]
    async fn what_cannot_be_listed_is_said() {
        let rig = tree();
        std::fs::create_dir(rig.path("empty")).unwrap();
        let nothing = "[nothing is in the folder, or ignore files leave all of it out]\n";
        check(&rig, json!({ "path": "empty" }), nothing).await;
        check(&rig, json!({ "path": "z" }), "<root>/in/z is not a folder").await;
        let input = Json::from_value(&json!({ "depth": 9 }));
        assert_eq!(
            ListDir::new().plan(&input).unwrap_err().to_string(),
            "the input field `depth` does not fit: it is 9, more than 8"
        );
    }

    #[tokio::test]
    async fn a_long_listing_ends_with_a_note() {
        let mut rig = tree();
        rig.output_bytes_max = 20;
        let listing = ".git/\n.gitignore\n[there are more; list one of the folders]\n";
        check(&rig, json!({}), listing).await;
    }
}
