//! Which calls may run: the rules first, then a classifier or a person, by the table of
//! `design/turn-runtime.md` section 8.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;

use crate::base::error::with_causes;
use crate::base::id::ToolCallId;
use crate::base::tasks::panic_message;
use crate::domain::agent::ToolDescriptor;
use crate::domain::json::Json;
use crate::domain::permission::decide::Verdict;
use crate::domain::permission::plan::{LocatedPlan, PermissionRequest};
use crate::domain::tool::ResultMetadata;
use crate::domain::turn::event::{
    Classification, Decision, DecisionSource, PermissionRequired, PermissionResolved,
    ToolResultData, TurnConfig, TurnFact,
};
use crate::domain::turn::state::{Resolution, ToolCall, TurnState};
use crate::policy::classifier::Classifier;
use crate::runtime::advance::{Advance, KnownTool, Live};
use crate::runtime::error::AdvanceError;
use crate::runtime::recover::{runtime_error, runtime_result};
use crate::tools::tool::{Permit, PreviewContext, Tool};
use crate::tools::workspace::Workspace;

/// A call that may start.
pub(super) struct Ready {
    /// The call.
    pub(super) call: ToolCall,
    /// Its tool, as the model knew it.
    pub(super) tool: ToolDescriptor,
    /// What it may touch.
    pub(super) permit: Permit,
    /// What runs it.
    pub(super) known: Arc<dyn Tool>,
}

/// What the calls may touch that the rules allow, between their check and their start. Nothing of
/// it is recorded: after a crash they are checked again.
#[derive(Default)]
pub(super) struct Allowed(HashMap<ToolCallId, LocatedPlan>);

/// Why a call asks.
struct Grounds {
    rule: String,
    checker_error: Option<String>,
}

/// What the rules say of one call.
enum Checked {
    /// It may run, and touch this.
    Allowed(LocatedPlan),
    /// A fact says what becomes of it: a question, or a result.
    Recorded(TurnFact),
}

impl Advance {
    /// Checks the calls that nobody has looked at, and decides on those that are asked about as far
    /// as that can be done without a person. Ends early when the signal to stop is given.
    pub(super) async fn check_calls(
        &self,
        live: &Live,
        allowed: &mut Allowed,
    ) -> Result<(), AdvanceError> {
        let fresh = |state: &TurnState| {
            let calls = state.unresolved().filter(|call| is_fresh(call));
            let calls = calls.filter(|call| !allowed.0.contains_key(&call.id));
            calls.map(|call| (call.clone(), live.tool(state, call))).collect::<Vec<_>>()
        };
        let mut facts = Vec::new();
        for (call, known) in self.cell.look(&self.parts, fresh).await? {
            let checked = tokio::select! {
                biased;
                // Safe to drop: a check changes nothing.
                () = self.stop.token().cancelled() => return Ok(()),
                checked = self.check(live, &call, known) => checked,
            };
            match checked {
                Checked::Allowed(plan) => {
                    allowed.0.insert(call.id, plan);
                }
                Checked::Recorded(fact) => facts.push(fact),
            }
        }
        self.cell.commit(&self.parts, facts).await?;
        self.decide_without_person(live).await?;
        let settled = |state: &TurnState| {
            let decided = state.unresolved().filter(|call| call.invocation.is_none());
            Ok(decided.filter_map(|call| result_of_decision(live, state, call)).collect())
        };
        self.cell.commit_with(&self.parts, settled).await
    }

    /// The calls that may start now, in source order: allowed by rule, or approved.
    pub(super) async fn ready_calls(
        &self,
        live: &Live,
        allowed: &mut Allowed,
    ) -> Result<Vec<Ready>, AdvanceError> {
        let ready = |state: &TurnState| {
            let calls = state.unresolved().filter(|call| call.invocation.is_none());
            let ready = calls.filter_map(|call| {
                let permit = match &call.permission {
                    None => Permit::Allowed(allowed.0.remove(&call.id)?),
                    Some(permission) => {
                        let resolved = permission.resolved.as_ref()?;
                        if resolved.decision == Decision::Deny {
                            return None;
                        }
                        Permit::Approved(approved(&permission.request)?)
                    }
                };
                let KnownTool { descriptor: tool, tool: known } = live.tool(state, call).ok()?;
                Some(Ready { call: call.clone(), tool, permit, known })
            });
            ready.collect()
        };
        self.cell.look(&self.parts, ready).await
    }

    /// What is to become of a call. A fault in the tool's own part of it costs that call alone.
    async fn check(
        &self,
        live: &Live,
        call: &ToolCall,
        known: Result<KnownTool, String>,
    ) -> Checked {
        let known = match known {
            Ok(known) => known,
            Err(text) => return Checked::Recorded(runtime_error(call, &text)),
        };
        if known.descriptor.requires_human && !live.definition.config.human_available {
            let text = "Nobody is there to answer this. Go on without it, or say what is missing.";
            return Checked::Recorded(runtime_error(call, text));
        }
        let judged = AssertUnwindSafe(self.judge(live, call, &known)).catch_unwind().await;
        judged.unwrap_or_else(|panic| {
            let message = panic_message(panic.as_ref());
            tracing::error!(tool = known.descriptor.tool_id, message, "a check panicked");
            let text = format!("The tool failed by a fault of its own: {message}");
            Checked::Recorded(runtime_error(call, &text))
        })
    }

    async fn judge(&self, live: &Live, call: &ToolCall, known: &KnownTool) -> Checked {
        let plan = match self.located_plan(&known.tool, call).await {
            Ok(plan) => plan,
            Err(text) => return Checked::Recorded(runtime_error(call, &text)),
        };
        let question = live.question(&known.descriptor.tool_id, plan);
        let verdict = AssertUnwindSafe(self.parts.checker.check(&question)).catch_unwind().await;
        let no_verdict = |why| Grounds {
            rule: "ask: the rules gave no verdict".to_owned(),
            checker_error: Some(why),
        };
        let grounds = match verdict {
            Ok(Ok(Verdict::Allow { .. })) => return Checked::Allowed(question.plan),
            Ok(Ok(Verdict::Deny { rule, reason })) => {
                return Checked::Recorded(denied(call, rule, &reason));
            }
            Ok(Ok(Verdict::Ask { rule })) => Grounds { rule, checker_error: None },
            Ok(Err(none)) => no_verdict(none.to_string()),
            Err(panic) => {
                no_verdict(format!("the checker panicked: {}", panic_message(panic.as_ref())))
            }
        };
        self.question(&known.tool, call, question.plan, grounds).await
    }

    /// What the call would touch, or what the model is told about its input.
    async fn located_plan(
        &self,
        tool: &Arc<dyn Tool>,
        call: &ToolCall,
    ) -> Result<LocatedPlan, String> {
        let plan = tool.plan(&call.arguments).map_err(|error| with_causes(&error))?;
        let folder = self.folder.clone();
        let located = self.parts.tasks.spawn_blocking(move || {
            let workspace = Workspace::open(&folder).map_err(|error| with_causes(&error))?;
            workspace.locate(&plan).map_err(|error| with_causes(&error))
        });
        located.await.unwrap_or_else(|_| Err("The program is ending.".to_owned()))
    }

    async fn question(
        &self,
        tool: &Arc<dyn Tool>,
        call: &ToolCall,
        plan: LocatedPlan,
        grounds: Grounds,
    ) -> Checked {
        let context = PreviewContext { plan, tasks: self.parts.tasks.clone() };
        match tool.preview(&call.arguments, &context).await {
            // What cannot run is not asked about.
            Err(error) => Checked::Recorded(runtime_result(call, error.into_result())),
            Ok((preview, base)) => {
                let Grounds { rule, checker_error } = grounds;
                let request = PermissionRequest { plan: context.plan, preview, base, rule };
                Checked::Recorded(TurnFact::PermissionRequired(PermissionRequired {
                    tool_call_id: call.id.clone(),
                    tool_name: call.name.clone(),
                    request: request.to_json(),
                    checker_error,
                }))
            }
        }
    }

    /// Decides where no person is needed, or none is there.
    async fn decide_without_person(&self, live: &Live) -> Result<(), AdvanceError> {
        let config = &live.definition.config;
        let classifier = self.parts.classifier.as_deref();
        if let Some(classifier) = classifier.filter(|_| config.auto_permission) {
            self.classify(live, classifier).await?;
        }
        if self.stop.is_given() {
            return Ok(());
        }
        let decide = |state: &TurnState| {
            let open = state.outstanding_permissions();
            Ok(open.filter_map(|call| decision(config, call, classifier)).collect())
        };
        self.cell.commit_with(&self.parts, decide).await
    }
}

fn is_fresh(call: &ToolCall) -> bool {
    call.permission.is_none() && call.invocation.is_none()
}

/// What was approved; `None` for a question that another program put in words of its own.
fn approved(request: &Json) -> Option<PermissionRequest> {
    request.read().ok()
}

fn denied(call: &ToolCall, rule: String, reason: &str) -> TurnFact {
    let metadata = ResultMetadata { denied_by: Some(rule), ..ResultMetadata::default() };
    let output = Json::text(&format!("Denied: {reason}."));
    runtime_result(
        call,
        ToolResultData { output, is_error: true, metadata: Some(metadata.to_json()) },
    )
}

/// The result of a call that was decided on and will not run: it was denied, or it cannot run any
/// more.
fn result_of_decision(live: &Live, state: &TurnState, call: &ToolCall) -> Option<TurnFact> {
    let permission = call.permission.as_ref()?;
    let resolved = permission.resolved.as_ref()?;
    let text = match resolved.decision {
        Decision::Deny => denial(resolved),
        Decision::Allow if approved(&permission.request).is_none() => {
            "What was approved cannot be read by this program. Call it again.".to_owned()
        }
        Decision::Allow => live.tool(state, call).err()?,
    };
    Some(runtime_error(call, &text))
}

/// What the model is told of a denial, in the person's words if there are any.
fn denial(resolved: &Resolution) -> String {
    match (resolved.source, &resolved.reason) {
        (DecisionSource::Human, Some(reason)) => format!("The person denied this call: {reason}"),
        (DecisionSource::Human, None) => "The person denied this call.".to_owned(),
        (_, Some(reason)) => format!("This call was denied: {reason}"),
        (_, None) => "This call was denied.".to_owned(),
    }
}

/// The decision on a call that a classifier or the absence of a person makes; none while a person
/// has to be asked.
fn decision(
    config: &TurnConfig,
    call: &ToolCall,
    classifier: Option<&dyn Classifier>,
) -> Option<TurnFact> {
    let permission = call.permission.as_ref()?;
    let opinion = permission.classified.as_ref();
    let (decision, source, reason) = match (config.auto_permission, opinion) {
        (true, Some((Classification::Allow, reason))) => {
            (Decision::Allow, DecisionSource::Classifier, reason.clone())
        }
        _ if config.human_available => return None,
        (true, Some((_, reason))) => {
            (Decision::Deny, DecisionSource::HumanUnavailable, reason.clone())
        }
        (true, None) if classifier.is_none() => {
            let reason = "nobody is there to ask, and no classifier model is configured";
            (Decision::Deny, DecisionSource::HumanUnavailable, reason.to_owned())
        }
        (true | false, None) | (false, Some(_)) => {
            let reason = "nobody is there to ask";
            (Decision::Deny, DecisionSource::HumanUnavailable, reason.to_owned())
        }
    };
    Some(TurnFact::PermissionResolved(PermissionResolved {
        tool_call_id: call.id.clone(),
        decision,
        source,
        reason: Some(reason),
        metadata: None,
    }))
}
