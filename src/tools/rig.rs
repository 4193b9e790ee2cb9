//! What the tests of the tools share: a session's folder with something outside of it, and calls
//! that go the way of real ones, from the plan to the run.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::Value;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::base::id::ToolCallId;
use crate::base::tasks::Tasks;
use crate::domain::json::Json;
use crate::domain::permission::decide::ReadGuard;
use crate::domain::permission::plan::{LocatedPath, LocatedPlan, PermissionRequest};
use crate::domain::permission::rule::Ruling;
use crate::domain::tool::ResultMetadata;
use crate::tools::output::OUTPUT_BYTES;
use crate::tools::tool::{Permit, PreviewContext, Progress, Tool, ToolContext, ToolError};
use crate::tools::workspace::Workspace;

pub(crate) struct Rig {
    dir: TempDir,
    pub(crate) tails: Arc<Tails>,
    pub(crate) cancel: CancellationToken,
    pub(crate) output_bytes_max: usize,
    rulings: Vec<(&'static str, Ruling)>,
}

/// What a run came to, as a model sees it.
#[derive(Debug, PartialEq)]
pub(crate) struct Ran {
    pub(crate) text: String,
    pub(crate) is_error: bool,
    pub(crate) metadata: ResultMetadata,
}

impl Rig {
    pub(crate) fn new() -> Self {
        let dir = TempDir::new().unwrap();
        for folder in ["in", "out"] {
            std::fs::create_dir(dir.path().join(folder)).unwrap();
        }
        Self {
            dir,
            tails: Arc::default(),
            cancel: CancellationToken::new(),
            output_bytes_max: OUTPUT_BYTES,
            rulings: Vec::new(),
        }
    }

    /// Says what the rules rule for this path and what lies below.
    pub(crate) fn ruling(mut self, path: &'static str, ruling: Ruling) -> Self {
        self.rulings.push((path, ruling));
        self
    }

    /// The folder that holds the session's folder `in` and another, `out`.
    pub(crate) fn root(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap()
    }

    /// A path in the session's folder.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.root().join("in").join(path)
    }

    pub(crate) fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub(crate) fn content(&self, path: &str) -> String {
        std::fs::read_to_string(self.path(path)).unwrap()
    }

    pub(crate) fn link(&self, path: &str, target: impl AsRef<Path>) {
        std::os::unix::fs::symlink(target, self.path(path)).unwrap();
    }

    pub(crate) fn workspace(&self) -> Workspace {
        Workspace::open(&self.path("")).unwrap()
    }

    pub(crate) fn located(&self, tool: &dyn Tool, input: &Value) -> LocatedPlan {
        let plan = tool.plan(&Json::from_value(input)).unwrap();
        self.workspace().locate(&plan).unwrap()
    }

    /// What a person would be asked.
    pub(crate) async fn request(&self, tool: &dyn Tool, input: &Value) -> PermissionRequest {
        let plan = self.located(tool, input);
        let context = PreviewContext { plan: plan.clone(), tasks: Tasks::new() };
        let (preview, base) = tool.preview(&Json::from_value(input), &context).await.unwrap();
        PermissionRequest { plan, preview, base, rule: "ask".to_owned() }
    }

    /// Runs a call that the rules allow.
    pub(crate) async fn run(&self, tool: &dyn Tool, input: Value) -> Ran {
        let permit = Permit::Allowed(self.located(tool, &input));
        self.run_with(tool, &input, permit).await
    }

    pub(crate) async fn run_with(&self, tool: &dyn Tool, input: &Value, permit: Permit) -> Ran {
        let context = self.context(permit);
        let result = tool.run(&Json::from_value(input), &context).await;
        let result = result.unwrap_or_else(ToolError::into_result);
        Ran {
            text: self.without_root(&result.output.as_text().unwrap()),
            is_error: result.is_error,
            metadata: ResultMetadata::read(result.metadata.as_ref()),
        }
    }

    pub(crate) fn context(&self, permit: Permit) -> ToolContext {
        ToolContext {
            call: ToolCallId::from("turn_1"),
            permit,
            reads: Arc::new(Guard(self.rulings.clone())),
            progress: Arc::<Tails>::clone(&self.tails),
            output_dir: self.root().join("output"),
            output_bytes_max: self.output_bytes_max,
            cancel: self.cancel.clone(),
            tasks: Tasks::new(),
        }
    }

    /// Runs a call and compares what the model gets.
    pub(crate) async fn check(&self, tool: &dyn Tool, input: Value, expected: &str) {
        let ran = self.run(tool, input.clone()).await;
        assert_eq!(ran.text, expected, "{input}");
    }

    /// The text with a short name for the folder that is another in each run.
    fn without_root(&self, text: &str) -> String {
        text.replace(self.root().to_str().unwrap(), "<root>")
    }
}

struct Guard(Vec<(&'static str, Ruling)>);

impl ReadGuard for Guard {
    fn ruling(&self, path: &LocatedPath) -> Ruling {
        let found = self.0.iter().find(|(start, _)| Path::new(&path.path).starts_with(start));
        found.map_or(Ruling::Allow, |(_, ruling)| *ruling)
    }
}

/// The live output that was shown.
#[derive(Default)]
pub(crate) struct Tails {
    shown: Mutex<Vec<String>>,
    changed: tokio::sync::Notify,
}

impl Tails {
    pub(crate) fn all(&self) -> Vec<String> {
        self.shown.lock().unwrap().clone()
    }

    /// Waits until the live output contains `text`, and gives it back.
    pub(crate) async fn wait_for(&self, text: &str) -> String {
        loop {
            let changed = self.changed.notified();
            if let Some(tail) = self.all().into_iter().find(|tail| tail.contains(text)) {
                return tail;
            }
            changed.await;
        }
    }
}

#[async_trait]
impl Progress for Tails {
    async fn report(&self, progress: Json) {
        self.tail(progress.get());
    }

    fn tail(&self, tail: &str) {
        self.shown.lock().unwrap().push(tail.to_owned());
        self.changed.notify_waiters();
    }
}
