//! The tool that writes a whole file, for new files and for those that change all over.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::domain::agent::{Execution, ToolDescriptor};
use crate::domain::json::Json;
use crate::domain::permission::plan::{FileBase, LocatedPlan, Plan, Preview};
use crate::domain::turn::event::ToolResultData;
use crate::tools::change::{self, Change, Found};
use crate::tools::input::{self, InputError};
use crate::tools::tool::{PreviewContext, Tool, ToolContext, ToolError, blocking, located};

/// The tool `write-file`.
#[derive(Debug)]
pub struct WriteFile {
    descriptor: ToolDescriptor,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The file, absolute or relative to the session's folder.
    path: String,
    /// The whole new content.
    content: String,
}

impl WriteFile {
    /// The tool.
    #[must_use]
    pub fn new() -> Self {
        let description = "Writes a whole file: makes it, and its folders, if they are missing, \
            else replaces all of its content. To change a part of a file, use edit-file.";
        Self {
            descriptor: ToolDescriptor {
                tool_id: "write_file".to_owned(),
                name: "write-file".to_owned(),
                description: description.to_owned(),
                input_schema: input::schema::<Input>(),
                execution: Execution::Sync,
                requires_human: false,
            },
        }
    }
}

impl Default for WriteFile {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Tool for WriteFile {
    fn descriptor(&self) -> &ToolDescriptor {
        &self.descriptor
    }

    fn plan(&self, input: &Json) -> Result<Plan, InputError> {
        let Input { path, .. } = input::read(input)?;
        Ok(Plan { writes: vec![path], ..Plan::default() })
    }

    async fn preview(
        &self,
        input: &Json,
        context: &PreviewContext,
    ) -> Result<(Preview, Vec<FileBase>), ToolError> {
        let Input { path, content } = input::read(input)?;
        let LocatedPlan { writes, .. } = &context.plan;
        let path = located(writes, &path)?.clone();
        blocking(&context.tasks, move || {
            let found = Found::at(&path)?;
            let preview = change::preview(&path, found.as_ref(), &content);
            Ok::<_, ToolError>((preview, vec![change::base(&path, found.as_ref())]))
        })
        .await
    }

    async fn run(&self, input: &Json, context: &ToolContext) -> Result<ToolResultData, ToolError> {
        let Input { path, content } = input::read(input)?;
        let change = Change::of(located(&context.permit.plan().writes, &path)?, context);
        blocking(&context.tasks, move || {
            let found = change.find()?;
            let verb = if found.is_some() { "replaced" } else { "made" };
            change.make(found.as_ref(), &content, &format!("{verb} {path}"))
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::tool::ResultMetadata;
    use crate::tools::rig::Rig;
    use crate::tools::tool::Permit;
    use serde_json::json;

    #[tokio::test]
    async fn a_file_is_made_with_its_folders_or_replaced() {
        let (rig, tool) = (Rig::new(), WriteFile::new());
        let ran = rig.run(&tool, json!({ "path": "a/b.txt", "content": "one\ntwo\n" })).await;
        let diff = Some("@@ -0,0 +1,2 @@\n+one\n+two\n".to_owned());
        assert_eq!((ran.text.as_str(), ran.is_error), ("made a/b.txt (+2 −0 lines)", false));
        assert_eq!(ran.metadata, ResultMetadata { diff, ..ResultMetadata::summary("+2 −0") });
        let input = json!({ "path": "a/b.txt", "content": "one\n2\n" });
        rig.check(&tool, input, "replaced a/b.txt (+1 −1 lines)").await;
        assert_eq!(rig.content("a/b.txt"), "one\n2\n");
    }

    #[tokio::test]
    async fn the_preview_is_the_diff_of_the_whole_change() {
        let (rig, tool) = (Rig::new(), WriteFile::new());
        rig.write("old", "a\n");
        rig.write("data", b"\0\xff");
        let preview = async |path: &str| {
            let request = rig.request(&tool, &json!({ "path": path, "content": "b\n" })).await;
            (request.preview, request.base.into_iter().next().unwrap().sha256)
        };
        let diff = |path: &str, diff: &str, created| Preview::Diff {
            path: path.to_owned(),
            diff: diff.to_owned(),
            created,
        };
        let sha256 = "87428fc522803d31065e7bce3cf03fe475096631e5e07bbd7a0fde60c4cf25c7";
        let expected = (diff("old", "@@ -1 +1 @@\n-a\n+b\n", false), Some(sha256.to_owned()));
        assert_eq!(preview("old").await, expected);
        assert_eq!(preview("new").await, (diff("new", "@@ -0,0 +1 @@\n+b\n", true), None));
        let text = "Replaces a file of 2 bytes that is no text with:\n\nb\n".to_owned();
        assert_eq!(preview("data").await.0, Preview::Text { text });
    }

    #[tokio::test]
    async fn what_was_shown_is_what_is_written() {
        let (rig, tool) = (Rig::new(), WriteFile::new());
        let input = json!({ "path": "a", "content": "new" });
        let approved = Permit::Approved(rig.request(&tool, &input).await);
        rig.write("a", "made meanwhile");
        let refused = rig.run_with(&tool, &input, approved).await;
        assert_eq!(
            refused.text,
            "a has changed since the change was shown and approved; read it and call again"
        );
        let approved = Permit::Approved(rig.request(&tool, &input).await);
        assert!(!rig.run_with(&tool, &input, approved.clone()).await.is_error);
        let other = json!({ "path": "b", "content": "new" });
        let refused = rig.run_with(&tool, &other, approved).await;
        assert_eq!(refused.text, "b is not among the paths that this call may touch");
    }

    #[tokio::test]
    async fn a_link_that_appears_after_the_approval_leads_nowhere() {
        let (rig, tool) = (Rig::new(), WriteFile::new());
        rig.write("folder/file", "old");
        let input = json!({ "path": "folder/file", "content": "new" });
        let approved = Permit::Approved(rig.request(&tool, &input).await);
        std::fs::rename(rig.path("folder"), rig.root().join("out/folder")).unwrap();
        rig.link("folder", "../out/folder");
        let refused = rig.run_with(&tool, &input, approved).await;
        assert_eq!(
            refused.text,
            "<root>/in/folder has become a link since the call was checked; what it leads to was \
             not checked"
        );
        assert_eq!(std::fs::read_to_string(rig.root().join("out/folder/file")).unwrap(), "old");
    }
}
