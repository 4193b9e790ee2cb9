//! What a tool call would touch, and the stored form of the question whether it may
//! (`design/turn-runtime.md` section 8, `design/tools.md`).

use serde::{Deserialize, Serialize};

use crate::domain::json::{self, Json};

/// What a call would touch, as its input alone says. Paths are as the model wrote them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Files and folders that would be read.
    pub reads: Vec<String>,
    /// Files that would be made, changed or removed.
    pub writes: Vec<String>,
    /// Command lines that would run.
    pub commands: Vec<String>,
    /// Hosts that would be reached.
    pub hosts: Vec<String>,
}

/// What a call would touch, with every path resolved against the session's folder and its links
/// followed. This is what rules judge and a person sees.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocatedPlan {
    /// The session's folder.
    pub folder: String,
    /// Files and folders that would be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reads: Vec<LocatedPath>,
    /// Files that would be made, changed or removed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writes: Vec<LocatedPath>,
    /// Command lines that would run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
    /// Hosts that would be reached.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
}

/// A path of a plan, and where it leads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocatedPath {
    /// As the model wrote it.
    pub path: String,
    /// Absolute, links followed.
    pub resolved: String,
    /// Whether that lies in the session's folder.
    pub inside: bool,
}

/// The question whether a call may run, as it is stored in `tool_permission_required`. What it
/// shows is what is approved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PermissionRequest {
    /// What the call would touch.
    pub plan: LocatedPlan,
    /// What it would do, for a person to read.
    pub preview: Preview,
    /// The files that the preview was made from. The run refuses when one of them has changed.
    #[serde(default)]
    pub base: Vec<FileBase>,
    /// The rule that asks.
    pub rule: String,
}

impl PermissionRequest {
    /// As it is stored.
    #[must_use]
    pub fn to_json(&self) -> Json {
        Json::of(self)
    }
}

/// What a call would do, for a person to read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Preview {
    /// The plan says it all.
    #[default]
    None,
    /// This text.
    Text {
        /// The text.
        text: String,
    },
    /// A change of one file.
    Diff {
        /// The file, as the model wrote it.
        path: String,
        /// A unified diff; of everything, for a new file.
        diff: String,
        /// Whether the file does not exist yet.
        created: bool,
    },
}

/// A file that a preview was made from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileBase {
    /// Its absolute path.
    pub path: String,
    /// The lowercase hex SHA-256 of its content; absent if it did not exist.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "json::present")]
    pub sha256: Option<String>,
}
