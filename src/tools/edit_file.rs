//! The tool that changes a part of a file by exact search and replace.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::domain::agent::{Execution, ToolDescriptor};
use crate::domain::json::Json;
use crate::domain::permission::plan::{FileBase, LocatedPath, Plan, Preview};
use crate::domain::turn::event::ToolResultData;
use crate::tools::change::{self, Change, Found};
use crate::tools::files::FileError;
use crate::tools::input::{self, InputError};
use crate::tools::output::count;
use crate::tools::tool::{PreviewContext, Tool, ToolContext, ToolError, blocking, located};

/// The tool `edit-file`.
#[derive(Debug)]
pub struct EditFile {
    descriptor: ToolDescriptor,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The file, absolute or relative to the session's folder.
    path: String,
    /// The text to replace, exactly as it stands in the file, without line numbers.
    old_text: String,
    /// The text to put there.
    new_text: String,
    /// Replace every occurrence; without it, the text must occur exactly once.
    #[serde(default)]
    replace_all: bool,
}

/// Why an edit does not apply. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The file is no text.
    #[error("{0} is not UTF-8 text, so it cannot be edited")]
    NotText(String),
    /// The text is not there.
    #[error(
        "old_text does not occur in {0}; it must match exactly, white space included: read the file and call again"
    )]
    Absent(String),
    /// The text is there more than once.
    #[error(
        "old_text occurs {times} times in {path}, first in lines {lines}; add lines around it until it is unique, or set replace_all"
    )]
    NotUnique {
        /// The file.
        path: String,
        /// How often.
        times: usize,
        /// Where: the first few lines.
        lines: String,
    },
    /// Old and new text are the same.
    #[error("old_text and new_text are the same, so there is nothing to change")]
    Same,
}

impl EditFile {
    /// The tool.
    #[must_use]
    pub fn new() -> Self {
        let description = "Replaces a text in a file by another. The old text must occur exactly \
            once, unless replace_all is set. Line endings of the file are kept.";
        Self {
            descriptor: ToolDescriptor {
                tool_id: "edit_file".to_owned(),
                name: "edit-file".to_owned(),
                description: description.to_owned(),
                input_schema: input::schema::<Input>(),
                execution: Execution::Sync,
                requires_human: false,
            },
        }
    }
}

impl Default for EditFile {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Tool for EditFile {
    fn descriptor(&self) -> &ToolDescriptor {
        &self.descriptor
    }

    fn plan(&self, input: &Json) -> Result<Plan, InputError> {
        let Input { path, .. } = read(input)?;
        Ok(Plan { reads: vec![path.clone()], writes: vec![path], ..Plan::default() })
    }

    async fn preview(
        &self,
        input: &Json,
        context: &PreviewContext,
    ) -> Result<(Preview, Vec<FileBase>), ToolError> {
        let input = read(input)?;
        let path = located(&context.plan.writes, &input.path)?.clone();
        blocking(&context.tasks, move || {
            let found = existing(Found::at(&path)?, &path)?;
            let Edited { content, .. } = edited(&found, &input)?;
            let preview = change::preview(&path, Some(&found), &content);
            Ok::<_, ToolError>((preview, vec![change::base(&path, Some(&found))]))
        })
        .await
    }

    async fn run(&self, input: &Json, context: &ToolContext) -> Result<ToolResultData, ToolError> {
        let input = read(input)?;
        let change = Change::of(located(&context.permit.plan().writes, &input.path)?, context);
        blocking(&context.tasks, move || {
            let found = existing(change.find()?, &change.path)?;
            let Edited { content, times } = edited(&found, &input)?;
            let times = count(times, "place", "places");
            change.make(Some(&found), &content, &format!("edited {} in {times}", input.path))
        })
        .await
    }
}

fn read(input: &Json) -> Result<Input, InputError> {
    let input: Input = input::read(input)?;
    if input.old_text.is_empty() {
        return Err(InputError::field("old_text", "it is empty; write-file makes new files"));
    }
    Ok(input)
}

fn existing(found: Option<Found>, path: &LocatedPath) -> Result<Found, FileError> {
    found.ok_or_else(|| FileError::Missing { path: path.resolved.clone().into() })
}

#[derive(Debug, PartialEq, Eq)]
struct Edited {
    content: String,
    times: usize,
}

fn edited(found: &Found, input: &Input) -> Result<Edited, EditError> {
    match std::str::from_utf8(&found.content) {
        Ok(content) if !content.contains('\0') => edit(content, input),
        Ok(_) | Err(_) => Err(EditError::NotText(input.path.clone())),
    }
}

/// The content with the edit applied. A model writes line feeds only; in a file whose lines end
/// otherwise, they stand for its own line ends.
fn edit(content: &str, input: &Input) -> Result<Edited, EditError> {
    let Input { path, old_text, new_text, replace_all } = input;
    let as_given = (old_text.clone(), new_text.clone());
    let with_crlf = (to_crlf(old_text), to_crlf(new_text));
    let readings =
        if ends_lines_with_crlf(content) { [with_crlf, as_given] } else { [as_given, with_crlf] };
    let found = readings.into_iter().find(|(old, _)| content.contains(old.as_str()));
    let (old, new) = found.ok_or_else(|| EditError::Absent(path.clone()))?;
    if old == new {
        return Err(EditError::Same);
    }
    let places = places(content, &old);
    if places.len() > 1 && !replace_all {
        let lines = places.iter().take(LINES_NAMED).map(|at| line_at(content, *at).to_string());
        let lines = lines.collect::<Vec<_>>().join(", ");
        return Err(EditError::NotUnique { path: path.clone(), times: places.len(), lines });
    }
    let mut edited = content.replace(&old, &new);
    let line_end = if content.ends_with("\r\n") { "\r\n" } else { "\n" };
    if content.ends_with('\n') && !edited.is_empty() && !edited.ends_with('\n') {
        edited.push_str(line_end);
    }
    Ok(Edited { content: edited, times: content.matches(&old).count() })
}

/// How many of the places are named that an ambiguous text was found in.
const LINES_NAMED: usize = 5;

/// Where the text begins, overlapping occurrences included: each of them could be meant.
fn places(content: &str, text: &str) -> Vec<usize> {
    let step = text.chars().next().map_or(1, char::len_utf8);
    let mut places = Vec::new();
    let mut from = 0;
    while let Some(at) = content.get(from..).and_then(|rest| rest.find(text)) {
        places.push(from + at);
        from += at + step;
    }
    places
}

fn line_at(content: &str, at: usize) -> usize {
    content.bytes().take(at).filter(|&byte| byte == b'\n').count() + 1
}

fn to_crlf(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', "\r\n")
}

fn ends_lines_with_crlf(content: &str) -> bool {
    let (all, crlf) = (content.matches('\n').count(), content.matches("\r\n").count());
    crlf * 2 > all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::rig::Rig;
    use crate::tools::tool::Permit;
    use proptest::prelude::*;
    use serde_json::json;

    fn input(old: &str, new: &str, replace_all: bool) -> Input {
        let (old_text, new_text) = (old.to_owned(), new.to_owned());
        Input { path: "a".to_owned(), old_text, new_text, replace_all }
    }

    /// What the content becomes, or why not.
    fn check(content: &str, (old, new): (&str, &str), expected: &str) {
        let edited = edit(content, &input(old, new, false));
        let edited = edited.map_or_else(|error| error.to_string(), |edited| edited.content);
        assert_eq!(edited, expected, "{old:?} to {new:?} in {content:?}");
    }

    #[test]
    fn a_text_that_occurs_once_is_replaced() {
        check("one two\n", ("two", "2"), "one 2\n");
        check("one\ntwo\n", ("one\n", ""), "two\n");
        check("ä", ("ä", "ö"), "ö");
    }

    #[test]
    fn line_ends_and_the_final_one_are_those_of_the_file() {
        check("a\r\nb\r\nc\r\n", ("a\nb", "x\ny"), "x\r\ny\r\nc\r\n");
        check("a\r\nb\r\n", ("b", "x\ny"), "a\r\nx\r\ny\r\n");
        check("a\r\nb\r\n", ("a\r\nb", "x"), "x\r\n");
        check("a\nb\r\nc\n", ("b\nc", "x\ny"), "a\nx\r\ny\n");
        check("a\nb\n", ("b\n", "c"), "a\nc\n");
        check("a\r\nb\r\n", ("b\n", "c"), "a\r\nc\r\n");
        check("a\nb", ("b", "c"), "a\nc");
        check("a\n", ("a\n", ""), "");
    }

    #[test]
    fn an_edit_that_could_mean_several_places_or_none_is_refused() {
        check(
            "x\nyx\nx\n",
            ("x", "z"),
            "old_text occurs 3 times in a, first in lines 1, 2, 3; add lines around it until it \
             is unique, or set replace_all",
        );
        check(
            "aaa",
            ("aa", "b"),
            "old_text occurs 2 times in a, first in lines 1, 1; add lines around it until it is \
             unique, or set replace_all",
        );
        check(
            "a  b",
            ("a b", "c"),
            "old_text does not occur in a; it must match exactly, white space included: read the \
             file and call again",
        );
        check("a", ("a", "a"), "old_text and new_text are the same, so there is nothing to change");
    }

    #[test]
    fn all_places_are_replaced_when_that_is_asked_for() {
        let edited = edit("x\nyx\n", &input("x", "z", true));
        assert_eq!(edited, Ok(Edited { content: "z\nyz\n".to_owned(), times: 2 }));
    }

    proptest! {
        #[test]
        fn an_edit_changes_the_one_place_and_nothing_else(
            before in "[abc\n]{0,12}", old in "[XY\n]{1,6}", new in "[xyz\n]{0,6}",
            after in "[abc\n]{0,12}",
        ) {
            let content = format!("{before}{old}{after}");
            match edit(&content, &input(&old, &new, false)) {
                Ok(edited) => {
                    let mut expected = format!("{before}{new}{after}");
                    if content.ends_with('\n') && !expected.ends_with('\n') && !expected.is_empty() {
                        expected.push('\n');
                    }
                    prop_assert_eq!(edited.content, expected);
                    prop_assert_eq!(places(&content, &old), vec![before.len()]);
                }
                Err(EditError::NotUnique { times, .. }) => {
                    prop_assert!(times > 1 && times == places(&content, &old).len());
                }
                Err(EditError::Same) => prop_assert_eq!(old, new),
                Err(error) => prop_assert!(false, "{error}"),
            }
        }

        #[test]
        fn a_file_with_crlf_has_nothing_else_after_an_edit(
            lines in proptest::collection::vec("[ab]{0,3}", 1..8),
            old in "[ab\n]{1,4}", new in "[ab\n]{0,4}",
        ) {
            let content = lines.join("\r\n") + "\r\n";
            if let Ok(edited) = edit(&content, &input(&old, &new, true)) {
                let bare = edited.content.replace("\r\n", "");
                prop_assert!(!bare.contains(['\r', '\n']), "{:?}", edited.content);
            }
        }
    }

    #[tokio::test]
    async fn an_edit_is_shown_and_then_made_unless_the_file_changed() {
        let (rig, tool) = (Rig::new(), EditFile::new());
        rig.write("a", "one\ntwo\n");
        let call = json!({ "path": "a", "old_text": "two", "new_text": "2" });
        let request = rig.request(&tool, &call).await;
        let diff = "@@ -1,2 +1,2 @@\n one\n-two\n+2\n".to_owned();
        let preview = Preview::Diff { path: "a".to_owned(), diff, created: false };
        assert_eq!(request.preview, preview);
        let permit = Permit::Approved(request);
        let ran = rig.run_with(&tool, &call, permit.clone()).await;
        assert_eq!(ran.text, "edited a in 1 place (+1 −1 lines)");
        rig.write("a", "one\ntwo \n");
        let refused = rig.run_with(&tool, &call, permit).await;
        assert_eq!(
            refused.text,
            "a has changed since the change was shown and approved; read it and call again"
        );
        assert_eq!(rig.content("a"), "one\ntwo \n");
    }

    #[tokio::test]
    async fn what_cannot_be_edited_is_refused() {
        let (rig, tool) = (Rig::new(), EditFile::new());
        rig.write("data", b"a\xff");
        let call = |path: &str| json!({ "path": path, "old_text": "a", "new_text": "b" });
        let not_text = "data is not UTF-8 text, so it cannot be edited";
        rig.check(&tool, call("data"), not_text).await;
        rig.check(&tool, call("gone"), "<root>/in/gone does not exist").await;
        let empty = json!({ "path": "a", "old_text": "", "new_text": "b" });
        assert_eq!(
            tool.plan(&Json::from_value(&empty)).unwrap_err().to_string(),
            "the input field `old_text` does not fit: it is empty; write-file makes new files"
        );
    }
}
