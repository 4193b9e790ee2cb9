//! Scripted tools: they do what a test says, wait where it says, and remember every run.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use tokio::sync::Semaphore;

use crate::base::id::ToolCallId;
use crate::domain::agent::{Execution, ToolDescriptor};
use crate::domain::json::Json;
use crate::domain::permission::plan::{FileBase, Plan, Preview};
use crate::domain::turn::event::ToolResultData;
use crate::tools::input::InputError;
use crate::tools::tool::{Permit, PreviewContext, Progress, Tool, ToolContext, ToolError};

/// A tool that does what a test says.
pub struct FakeTool {
    descriptor: ToolDescriptor,
    plan: Plan,
    preview: Preview,
    base: Vec<FileBase>,
    gate: Option<Arc<Gate>>,
    reports: Vec<Json>,
    tails: Vec<String>,
    end: End,
    runs: Mutex<Vec<Run>>,
    last_progress: Mutex<Option<Arc<dyn Progress>>>,
}

/// How a run of a scripted tool ends.
#[derive(Clone, Debug)]
enum End {
    Return(ToolResultData),
    Fail,
    Panic,
}

/// A run that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The call.
    pub call: ToolCallId,
    /// What the tool was given.
    pub input: Json,
    /// What it was allowed.
    pub permit: Permit,
}

impl FakeTool {
    /// A tool that the loop runs: it touches nothing and returns `<id> done`.
    #[must_use]
    pub fn sync(id: &str) -> Self {
        Self::new(id, Execution::Sync)
    }

    /// A tool whose results come from outside.
    #[must_use]
    pub fn outside(id: &str) -> Self {
        Self::new(id, Execution::Async)
    }

    fn new(id: &str, execution: Execution) -> Self {
        let output = Json::text(&format!("{id} done"));
        Self {
            descriptor: ToolDescriptor {
                tool_id: id.to_owned(),
                name: id.replace('_', "-"),
                description: format!("The scripted tool {id}."),
                input_schema: Json::from_value(&serde_json::json!({ "type": "object" })),
                execution,
                requires_human: false,
            },
            plan: Plan::default(),
            preview: Preview::None,
            base: Vec::new(),
            gate: None,
            reports: Vec::new(),
            tails: Vec::new(),
            end: End::Return(ToolResultData { output, is_error: false, metadata: None }),
            runs: Mutex::default(),
            last_progress: Mutex::default(),
        }
    }

    /// Only a person can answer it.
    #[must_use]
    pub fn for_humans(mut self) -> Self {
        self.descriptor.requires_human = true;
        self
    }

    /// It would touch this.
    #[must_use]
    pub fn touching(mut self, plan: Plan) -> Self {
        self.plan = plan;
        self
    }

    /// It shows this before it runs, made from these files.
    #[must_use]
    pub fn showing(mut self, preview: Preview, base: Vec<FileBase>) -> Self {
        (self.preview, self.base) = (preview, base);
        self
    }

    /// It waits at the gate before it does anything.
    #[must_use]
    pub fn waiting_at(mut self, gate: &Arc<Gate>) -> Self {
        self.gate = Some(Arc::clone(gate));
        self
    }

    /// It reports these steps, one after the other.
    #[must_use]
    pub fn reporting(mut self, reports: Vec<Json>) -> Self {
        self.reports = reports;
        self
    }

    /// It shows this live output, one after the other.
    #[must_use]
    pub fn tailing(mut self, tails: &[&str]) -> Self {
        self.tails = tails.iter().map(|&tail| tail.to_owned()).collect();
        self
    }

    /// It returns this.
    #[must_use]
    pub fn returning(mut self, result: ToolResultData) -> Self {
        self.end = End::Return(result);
        self
    }

    /// It fails.
    #[must_use]
    pub fn failing(mut self) -> Self {
        self.end = End::Fail;
        self
    }

    /// It panics.
    #[must_use]
    pub fn panicking(mut self) -> Self {
        self.end = End::Panic;
        self
    }

    /// All runs so far, in the order in which they began.
    #[must_use]
    pub fn runs(&self) -> Vec<Run> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reports a step for the run that began last, whether or not it is still going on.
    pub async fn report_late(&self, progress: Json) {
        let last = self.last_progress.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(last) = last {
            last.report(progress).await;
        }
    }
}

#[async_trait]
impl Tool for FakeTool {
    fn descriptor(&self) -> &ToolDescriptor {
        &self.descriptor
    }

    /// An input that is no object does not fit.
    fn plan(&self, input: &Json) -> Result<Plan, InputError> {
        if input.get().starts_with('{') {
            Ok(self.plan.clone())
        } else {
            Err(InputError::Form("it is no object".to_owned()))
        }
    }

    async fn preview(
        &self,
        _: &Json,
        _: &PreviewContext,
    ) -> Result<(Preview, Vec<FileBase>), ToolError> {
        Ok((self.preview.clone(), self.base.clone()))
    }

    async fn run(&self, input: &Json, context: &ToolContext) -> Result<ToolResultData, ToolError> {
        if self.descriptor.execution == Execution::Async {
            return Err(ToolError::NoExecutor { tool_id: self.descriptor.tool_id.clone() });
        }
        let ToolContext { call, permit, progress, .. } = context;
        let run = Run { call: call.clone(), input: input.clone(), permit: permit.clone() };
        self.runs.lock().unwrap_or_else(PoisonError::into_inner).push(run);
        *self.last_progress.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(Arc::clone(progress));
        if let Some(gate) = &self.gate {
            // Both may be dropped at any moment: a run that does not pass leaves the gate shut.
            tokio::select! {
                biased;
                () = context.cancel.cancelled() => return Err(ToolError::Cancelled),
                () = gate.pass() => {}
            }
        }
        for tail in &self.tails {
            progress.tail(tail);
        }
        for report in &self.reports {
            progress.report(report.clone()).await;
        }
        match &self.end {
            End::Return(result) => Ok(result.clone()),
            End::Fail => Err(ToolError::NotPermitted { path: self.descriptor.tool_id.clone() }),
            #[expect(clippy::panic, reason = "that is what the test wants")]
            End::Panic => panic!("{} panicked", self.descriptor.tool_id),
        }
    }
}

/// A place where runs wait until the test lets them go on.
#[derive(Debug)]
pub struct Gate {
    arrived: Semaphore,
    open: Semaphore,
}

impl Gate {
    /// A gate that is shut.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::new(Self { arrived: Semaphore::new(0), open: Semaphore::new(0) })
    }

    /// Waits until one more run has come to the gate.
    pub async fn arrival(&self) {
        if let Ok(permit) = self.arrived.acquire().await {
            permit.forget();
        }
    }

    /// Lets one run pass, now or when it comes.
    pub fn let_pass(&self) {
        self.open.add_permits(1);
    }

    async fn pass(&self) {
        self.arrived.add_permits(1);
        if let Ok(permit) = self.open.acquire().await {
            permit.forget();
        }
    }
}
