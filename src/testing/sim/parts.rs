//! The model, the tools, the rules and the classifier of a simulation: what they do is drawn, and
//! they are held up at gates.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use futures_util::{StreamExt as _, stream};
use tokio_util::sync::CancellationToken;

use crate::base::id::ToolCallId;
use crate::domain::agent::{ModelDescriptor, ToolDescriptor};
use crate::domain::json::Json;
use crate::domain::permission::decide::{ReadGuard, Verdict};
use crate::domain::permission::plan::Plan;
use crate::domain::turn::event::{Classification, ToolResultData};
use crate::models::error::{Failure, ModelError, Report};
use crate::models::model::{DeltaStream, Model};
use crate::models::request::ModelRequest;
use crate::policy::checker::{Call, NoVerdict, PermissionChecker};
use crate::policy::classifier::{Batch, Classifier, ClassifyError, Opinion};
use crate::runtime::api::{FindModel, ModelGone};
use crate::testing::checker::{Says, ScriptedChecker};
use crate::testing::fact::{json, model, tool};
use crate::testing::model::{Play, Reply};
use crate::testing::seed::Seed;
use crate::testing::sim::gates::Gates;
use crate::tools::input::InputError;
use crate::tools::tool::{Tool, ToolContext, ToolError};

/// Chance, and the gates at which all of this waits.
#[derive(Clone, Debug)]
pub(super) struct Odds {
    pub(super) seed: Seed,
    pub(super) gates: Gates,
}

/// A model that answers, calls tools or fails, piece by piece.
pub(super) struct SimModel {
    pub(super) odds: Odds,
    pub(super) descriptor: ModelDescriptor,
}

impl SimModel {
    pub(super) fn new(odds: Odds) -> Arc<Self> {
        Arc::new(Self { odds, descriptor: model() })
    }

    fn script(&self, request: &ModelRequest) -> Vec<Play> {
        let seed = &self.odds.seed;
        let mut reply = Reply::new();
        for _ in 0..seed.below(3) {
            reply = if seed.chance(30) { reply.reasoning("Hm. ") } else { reply.text("So. ") };
        }
        if !request.tools.is_empty() && seed.chance(60) {
            for _ in 0..=seed.below(3) {
                let names = [("read-file", 5), ("write-file", 5), ("ask-human", 1), ("deploy", 1)];
                let arguments = match seed.weighted(&names) {
                    name @ "ask-human" => (name, r#"{"question":"Which?"}"#),
                    name => (name, r#"{"path":"a"}"#),
                };
                reply = reply.call(arguments.0, json(arguments.1));
            }
            return reply.finish("tool-calls");
        }
        match seed.below(12) {
            0 => reply.fail(Failure::ServerError),
            1 => reply.fail(Failure::Truncated),
            _ => reply.text("Done.").usage(3, 2).finish("stop"),
        }
    }
}

impl Model for SimModel {
    fn descriptor(&self) -> &ModelDescriptor {
        &self.descriptor
    }

    fn stream(&self, request: ModelRequest, cancel: CancellationToken) -> DeltaStream {
        let plays: VecDeque<_> = self.script(&request).into();
        let ModelDescriptor { provider, model } = self.descriptor.clone();
        let report = Report { provider, model: Some(model), ..Report::default() };
        let (gates, report) = (self.odds.gates.clone(), Box::new(report));
        stream::unfold(Some((plays, cancel)), move |state| {
            let (gates, report) = (gates.clone(), report.clone());
            async move {
                let (mut plays, cancel) = state?;
                tokio::select! {
                    biased;
                    // Neither wait loses anything.
                    () = cancel.cancelled() => {
                        let failure = Failure::Cancelled;
                        return Some((Err(ModelError { failure, report }), None));
                    }
                    () = gates.pass("a piece of an answer") => {}
                }
                match plays.pop_front()? {
                    Play::Delta(delta) => Some((Ok(delta), Some((plays, cancel)))),
                    Play::Fail(failure) => Some((Err(ModelError { failure, report }), None)),
                    // A simulation has its gates between all pieces.
                    Play::Gate(_) => None,
                }
            }
        })
        .boxed()
    }
}

impl FindModel for SimModel {
    fn find(&self, _: &ModelDescriptor) -> Result<Arc<dyn Model>, ModelGone> {
        Ok(Arc::new(Self { odds: self.odds.clone(), descriptor: self.descriptor.clone() }))
    }
}

/// The calls that tools ran for, in all processes.
#[derive(Clone, Debug, Default)]
pub(super) struct Runs(Arc<Mutex<Vec<ToolCallId>>>);

impl Runs {
    /// The calls for which a tool ran, each as often as one did.
    pub(super) fn all(&self) -> Vec<ToolCallId> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn add(&self, call: &ToolCallId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(call.clone());
    }
}

/// A tool that the loop runs: it waits, reports, succeeds or fails.
pub(super) struct SimTool {
    odds: Odds,
    descriptor: ToolDescriptor,
    runs: Runs,
}

impl SimTool {
    pub(super) fn new(name: &str, odds: &Odds, runs: &Runs) -> Self {
        let descriptor = tool(name, crate::domain::agent::Execution::Sync);
        Self { odds: odds.clone(), descriptor, runs: runs.clone() }
    }
}

#[async_trait]
impl Tool for SimTool {
    fn descriptor(&self) -> &ToolDescriptor {
        &self.descriptor
    }

    fn plan(&self, _: &Json) -> Result<Plan, InputError> {
        Ok(Plan::default())
    }

    async fn run(&self, _: &Json, context: &ToolContext) -> Result<ToolResultData, ToolError> {
        self.runs.add(&context.call);
        let Odds { seed, gates } = &self.odds;
        if seed.chance(20) {
            context.progress.report(json("0.5")).await;
        }
        let heeds_a_stop = seed.chance(90);
        tokio::select! {
            biased;
            // Both may be dropped at any moment.
            () = context.cancel.cancelled(), if heeds_a_stop => return Err(ToolError::Cancelled),
            () = gates.pass(format!("the run of {}", context.call)) => {}
        }
        if seed.chance(20) {
            return Err(ToolError::NotPermitted { path: "a".to_owned() });
        }
        Ok(ToolResultData { output: Json::text("done"), is_error: false, metadata: None })
    }
}

/// Rules of which nobody knows what they say of writing.
#[derive(Debug)]
pub(super) struct SimChecker {
    pub(super) odds: Odds,
    pub(super) rules: ScriptedChecker,
}

#[async_trait]
impl PermissionChecker for SimChecker {
    async fn check(&self, call: &Call) -> Result<Verdict, NoVerdict> {
        let Odds { seed, gates } = &self.odds;
        gates.pass("a verdict").await;
        if call.tool_id == "write_file" {
            let says = [(Says::Ask, 6), (Says::Allow, 2), (Says::Deny, 1), (Says::Nothing, 1)];
            self.rules.say(&call.tool_id, seed.weighted(&says));
        }
        self.rules.check(call).await
    }

    fn read_guard(&self, call: &Call) -> Arc<dyn ReadGuard> {
        self.rules.read_guard(call)
    }
}

/// A classifier that has an opinion on most calls.
#[derive(Debug)]
pub(super) struct SimClassifier {
    pub(super) odds: Odds,
}

#[async_trait]
impl Classifier for SimClassifier {
    async fn classify(
        &self,
        batch: &Batch,
        cancel: &CancellationToken,
    ) -> Result<Vec<Opinion>, ClassifyError> {
        let Odds { seed, gates } = &self.odds;
        tokio::select! {
            biased;
            // Neither wait loses anything.
            () = cancel.cancelled() => return Err(ClassifyError::Cancelled),
            () = gates.pass("an opinion") => {}
        }
        if seed.chance(10) {
            return Err(ClassifyError::Unreadable("neither yes nor no".to_owned()));
        }
        let opinion = |call: &ToolCallId| {
            let decisions = [
                (Some(Classification::Allow), 3),
                (Some(Classification::Deny), 1),
                (Some(Classification::Defer), 1),
                (None, 1),
            ];
            let (tool_call_id, reason) = (call.clone(), "it looks like it".to_owned());
            let decision = seed.weighted(&decisions)?;
            Some(Opinion { tool_call_id, decision, reason })
        };
        Ok(batch.calls.iter().filter_map(|call| opinion(&call.tool_call_id)).collect())
    }
}
