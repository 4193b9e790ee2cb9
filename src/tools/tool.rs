//! The seam that every tool fills, and what a running tool gets (`design/tools.md`,
//! `design/turn-runtime.md` section 9).

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use crate::base::id::ToolCallId;
use crate::base::tasks::Tasks;
use crate::domain::agent::ToolDescriptor;
use crate::domain::json::Json;
use crate::domain::permission::decide::ReadGuard;
use crate::domain::permission::plan::{
    FileBase, LocatedPath, LocatedPlan, PermissionRequest, Plan, Preview,
};
use crate::domain::tool::{Cut, ResultMetadata};
use crate::domain::turn::event::ToolResultData;
use crate::tools::edit_file::EditError;
use crate::tools::files::FileError;
use crate::tools::input::InputError;
use crate::tools::process::ProcessError;
use crate::tools::read_file::ReadError;
use crate::tools::search::SearchError;

/// Something that an agent can do.
#[async_trait]
pub trait Tool: Send + Sync {
    /// What the model is told of it.
    fn descriptor(&self) -> &ToolDescriptor;

    /// What a call with this input would touch. Pure: it looks at the input alone.
    ///
    /// # Errors
    /// [`InputError`]: the input does not fit the schema; it names the field.
    fn plan(&self, input: &Json) -> Result<Plan, InputError>;

    /// What a person is shown before the call runs, and the files that this was made from. It
    /// reads and changes nothing. Most plans say it all, and need no preview.
    ///
    /// # Errors
    /// [`ToolError`]: the call could not run, so there is nothing to ask for.
    async fn preview(
        &self,
        input: &Json,
        context: &PreviewContext,
    ) -> Result<(Preview, Vec<FileBase>), ToolError> {
        let _ = (input, context);
        Ok((Preview::None, Vec::new()))
    }

    /// Does it. Whoever drops the future ends what it started. A tool whose results come from
    /// outside (asynchronous execution) is never run.
    ///
    /// # Errors
    /// [`ToolError`], which becomes an error result.
    async fn run(&self, input: &Json, context: &ToolContext) -> Result<ToolResultData, ToolError> {
        let _ = (input, context);
        Err(ToolError::NoExecutor { tool_id: self.descriptor().tool_id.clone() })
    }
}

/// What a preview may use.
pub struct PreviewContext {
    /// What the call would touch.
    pub plan: LocatedPlan,
    /// Where blocking work is done.
    pub tasks: Tasks,
}

/// What a running tool may use.
pub struct ToolContext {
    /// The call.
    pub call: ToolCallId,
    /// What it was allowed to touch; it may touch nothing else.
    pub permit: Permit,
    /// Judges what it comes upon below the paths of its plan.
    pub reads: Arc<dyn ReadGuard>,
    /// Where it reports.
    pub progress: Arc<dyn Progress>,
    /// The folder for output that is too long for the model (`var/output/<turnId>`), absolute and
    /// with links followed. It is made when it is needed.
    pub output_dir: PathBuf,
    /// How much output the model gets, in bytes; [`crate::tools::output::OUTPUT_BYTES`] by default.
    pub output_bytes_max: usize,
    /// Says that the call is to end. What it started is ended with it.
    pub cancel: CancellationToken,
    /// Where blocking work is done.
    pub tasks: Tasks,
}

/// That a call may run, and what it may touch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Permit {
    /// The rules allow what this plan says.
    Allowed(LocatedPlan),
    /// What was shown here was approved: nothing else may run, and not when its files changed.
    Approved(PermissionRequest),
}

impl Permit {
    /// What the call may touch.
    #[must_use]
    pub fn plan(&self) -> &LocatedPlan {
        match self {
            Self::Allowed(plan) => plan,
            Self::Approved(request) => &request.plan,
        }
    }

    /// Whether the file is still as it was when its change was shown, given the SHA-256 of its
    /// content, `None` if there is no file.
    ///
    /// # Errors
    /// [`ToolError::ChangedSinceShown`], or [`ToolError::NotPermitted`] if it was never shown.
    pub fn check_unchanged(
        &self,
        path: &LocatedPath,
        sha256: Option<&str>,
    ) -> Result<(), ToolError> {
        let Self::Approved(request) = self else { return Ok(()) };
        let path_text = || path.path.clone();
        match request.base.iter().find(|base| base.path == path.resolved) {
            None => Err(ToolError::NotPermitted { path: path_text() }),
            Some(base) if base.sha256.as_deref() == sha256 => Ok(()),
            Some(_) => Err(ToolError::ChangedSinceShown { path: path_text() }),
        }
    }
}

/// The path of a plan by how the input spells it.
pub(crate) fn located<'a>(
    paths: &'a [LocatedPath],
    path: &str,
) -> Result<&'a LocatedPath, ToolError> {
    let found = paths.iter().find(|it| it.path == path);
    found.ok_or_else(|| ToolError::NotPermitted { path: path.to_owned() })
}

/// Where a running tool reports.
#[async_trait]
pub trait Progress: Send + Sync {
    /// Records a step. It is in the log when this returns, unless it was too soon after the last
    /// one or too much in all (4 a second and 16 KiB per call).
    async fn report(&self, progress: Json);

    /// Shows the last lines of live output, which are stored nowhere. At most 4 a second.
    fn tail(&self, tail: &str);
}

/// Why a tool did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// The input does not fit.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The call was ended from outside.
    #[error("the call was cancelled")]
    Cancelled,
    /// Its results come from outside.
    #[error("{tool_id} cannot be run here; its result comes from outside")]
    NoExecutor {
        /// The tool.
        tool_id: String,
    },
    /// The permission of the call is about other paths.
    #[error("{path} is not among the paths that this call may touch")]
    NotPermitted {
        /// The path, as the input spells it.
        path: String,
    },
    /// The permission of the call is about another command.
    #[error("the command is not the one that was allowed")]
    OtherCommand,
    /// A file is not what was approved.
    #[error("{path} has changed since the change was shown and approved; read it and call again")]
    ChangedSinceShown {
        /// The path, as the input spells it.
        path: String,
    },
    /// A file or folder cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file is not read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A search cannot be made.
    #[error(transparent)]
    Search(#[from] SearchError),
    /// An edit does not apply.
    #[error(transparent)]
    Edit(#[from] EditError),
    /// A command cannot be run.
    #[error(transparent)]
    Process(#[from] ProcessError),
}

impl ToolError {
    /// The error result that the model gets: the whole chain of causes in one line.
    #[must_use]
    pub fn into_result(self) -> ToolResultData {
        let metadata = match &self {
            Self::Cancelled => Some(ResultMetadata::cut(Cut::Stopped).to_json()),
            _ => None,
        };
        let mut text = self.to_string();
        let mut cause = self.source();
        while let Some(error) = cause {
            text.push_str(": ");
            text.push_str(&error.to_string());
            cause = error.source();
        }
        ToolResultData { output: Json::text(&text), is_error: true, metadata }
    }
}

/// A result of text for the model, and what programs are told.
pub(crate) fn text_result(text: &str, metadata: &ResultMetadata) -> ToolResultData {
    let metadata = Some(metadata.to_json());
    ToolResultData { output: Json::text(text), is_error: false, metadata }
}

/// Does blocking work on the threads that may block; a panic in it goes on here.
pub(crate) async fn blocking<T, E, F>(tasks: &Tasks, work: F) -> Result<T, ToolError>
where
    T: Send + 'static,
    E: Send + 'static,
    F: FnOnce() -> Result<T, E> + Send + 'static,
    ToolError: From<E>,
{
    match tasks.spawn_blocking(work).await {
        Ok(done) => Ok(done?),
        Err(lost) => match lost.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(ToolError::Cancelled),
        },
    }
}
