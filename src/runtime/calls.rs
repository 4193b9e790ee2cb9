//! The tool calls of one answer: started in source order as far as they may, run together, and
//! recorded as they come in (`design/turn-runtime.md` section 9).

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use serde::Deserialize;
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use crate::base::id::ToolCallId;
use crate::base::tasks::Ended;
use crate::domain::agent::{Execution, ToolDescriptor};
use crate::domain::json::Json;
use crate::domain::turn::event::{
    InvocationRequested, PendingAsyncTool, PendingPermission, ResultSource, ToolResult,
    ToolResultData, ToolsExtended, TurnFact, TurnSuspended,
};
use crate::domain::turn::state::{ToolCall, TurnState};
use crate::runtime::advance::{Advance, Live};
use crate::runtime::error::AdvanceError;
use crate::runtime::permissions::{Allowed, Ready};
use crate::runtime::progress::{REPORTS_WAITING_MAX, Report};
use crate::tools::output;
use crate::tools::tool::ToolContext;

/// How long tools that were told to end are waited for before they are dropped; of that, a process
/// group has 2 s between TERM and KILL.
const STOP_GRACE: Duration = Duration::from_secs(5);

/// What became of the calls of an answer.
pub(super) enum Worked {
    /// All have their results.
    Done,
    /// Some wait for somebody outside.
    Waiting(Arc<TurnSuspended>),
    /// The signal to stop was given meanwhile.
    Stopped,
}

/// The calls that run, and what they report.
struct Running {
    calls: FuturesUnordered<BoxFuture<'static, (ToolCallId, ToolResultData)>>,
    reports: mpsc::Sender<Report>,
    reported: mpsc::Receiver<Report>,
}

impl Running {
    fn none() -> Self {
        let (reports, reported) = mpsc::channel(REPORTS_WAITING_MAX);
        Self { calls: FuturesUnordered::new(), reports, reported }
    }
}

impl Advance {
    /// Works off the calls of the last answer, until all have results or only others can act.
    pub(super) async fn work_off(&self, live: &Live) -> Result<Worked, AdvanceError> {
        let (mut running, mut allowed) = (Running::none(), Allowed::default());
        loop {
            self.check_calls(live, &mut allowed).await?;
            for ready in self.start(live, &mut allowed).await? {
                running.calls.push(self.run_tool(live, ready, &running.reports));
            }
            if running.calls.is_empty() {
                if self.stop.is_given() {
                    return Ok(Worked::Stopped);
                }
                match self.rest(live).await? {
                    Some(worked) => return Ok(worked),
                    None => continue,
                }
            }
            tokio::select! {
                biased;
                // All are safe to drop: a token and the permit of a `Notify` keep their state, a
                // report stays in its queue, and a finished call is taken out only when this arm
                // is chosen.
                () = self.stop.token().cancelled() => {
                    self.wind_down(&mut running).await?;
                    return Ok(Worked::Stopped);
                }
                () = self.cell.committed.notified() => {}
                Some(report) = running.reported.recv() => self.record_report(report).await,
                Some((call, result)) = running.calls.next() => self.record(&call, result).await?,
            }
        }
    }

    /// Records the invocations of all calls that may start, in source order, and gives those that
    /// are run here.
    async fn start(&self, live: &Live, allowed: &mut Allowed) -> Result<Vec<Ready>, AdvanceError> {
        if self.stop.is_given() {
            return Ok(Vec::new());
        }
        let mut ready = self.ready_calls(live, allowed).await?;
        let invocations = ready.iter().map(|it| {
            TurnFact::InvocationRequested(InvocationRequested {
                tool_call_id: it.call.id.clone(),
                tool_id: it.tool.tool_id.clone(),
                tool_name: it.call.name.clone(),
                execution: it.tool.execution,
                input: it.call.arguments.clone(),
            })
        });
        self.cell.commit(&self.parts, invocations.collect()).await?;
        ready.retain(|it| it.tool.execution == Execution::Sync);
        Ok(ready)
    }

    /// Runs a tool as a task of its own, which ends with the future. Whatever happens in it becomes
    /// its own result and nobody else's.
    fn run_tool(
        &self,
        live: &Live,
        ready: Ready,
        reports: &mpsc::Sender<Report>,
    ) -> BoxFuture<'static, (ToolCallId, ToolResultData)> {
        let Ready { call, tool, permit, known } = ready;
        let question = live.question(&tool.tool_id, permit.plan().clone());
        let output_bytes_max = self.parts.options.output_bytes_max;
        let context = ToolContext {
            call: call.id.clone(),
            permit,
            reads: self.parts.checker.read_guard(&question),
            progress: Arc::new(self.progress_of(&call.id, reports)),
            output_dir: self.parts.options.output_dir.join(self.cell.turn.as_str()),
            output_bytes_max,
            cancel: self.stop.token().child_token(),
            tasks: self.parts.tasks.clone(),
        };
        let arguments = call.arguments;
        let run = async move { known.run(&arguments, &context).await };
        let run = AbortOnDropHandle::new(self.parts.tasks.spawn("tool", run));
        async move {
            let result = match run.await {
                Ok(Ended::Done(Ok(result))) => result,
                Ok(Ended::Done(Err(error))) => error.into_result(),
                Ok(Ended::Panicked(message)) => {
                    error_result(&format!("The tool failed by a fault of its own: {message}"))
                }
                Err(_) => error_result("The call was ended with the program."),
            };
            (call.id, output::fit(result, output_bytes_max))
        }
        .boxed()
    }

    async fn record(&self, call: &ToolCallId, result: ToolResultData) -> Result<(), AdvanceError> {
        let fact = |state: &TurnState| {
            let open = state.tool_calls.get(call).filter(|call| call.result.is_none());
            let fact = open.map(|call| {
                TurnFact::ToolResult(ToolResult {
                    tool_call_id: call.id.clone(),
                    tool_name: call.name.clone(),
                    source: ResultSource::Sync,
                    result,
                })
            });
            Ok(fact.into_iter().collect())
        };
        self.cell.commit_with(&self.parts, fact).await
    }

    /// Waits for the tools that were told to end and keeps their results; those that do not end are
    /// dropped, which kills what they started.
    async fn wind_down(&self, running: &mut Running) -> Result<(), AdvanceError> {
        let deadline = tokio::time::sleep(STOP_GRACE);
        tokio::pin!(deadline);
        loop {
            tokio::select! {
                biased;
                // All are safe to drop; see `work_off`.
                Some(report) = running.reported.recv() => self.record_report(report).await,
                next = running.calls.next() => match next {
                    Some((call, result)) => self.record(&call, result).await?,
                    None => return Ok(()),
                },
                () = &mut deadline => return Ok(()),
            }
        }
    }

    /// How the calls rest, now that none runs; nothing if there is work again: something was
    /// recorded meanwhile. Records what is outstanding, unless the log rests on that very snapshot,
    /// or else the tools that the results bring.
    async fn rest(&self, live: &Live) -> Result<Option<Worked>, AdvanceError> {
        let facts = |state: &TurnState| {
            Ok(match snapshot(state) {
                Some(due) if rests_on(state, &due) => Vec::new(),
                Some(due) => vec![TurnFact::Suspended(Arc::new(due))],
                None => added_tools(live, state),
            })
        };
        self.cell.commit_with(&self.parts, facts).await?;
        let rest = |state: &TurnState| {
            if state.unresolved().next().is_none() {
                return Some(Worked::Done);
            }
            let due = snapshot(state)?;
            state.suspension.clone().filter(|it| **it == due).map(Worked::Waiting)
        };
        self.cell.look(&self.parts, rest).await
    }
}

/// What is outstanding, if only others can act on it.
fn snapshot(state: &TurnState) -> Option<TurnSuspended> {
    let waits = |call: &ToolCall| call.awaits_permission() || call.awaits_async_result();
    if state.unresolved().next().is_none() || !state.unresolved().all(waits) {
        return None;
    }
    let permissions = state.outstanding_permissions().filter_map(|call| {
        Some(PendingPermission {
            tool_call_id: call.id.clone(),
            tool_name: call.name.clone(),
            request: call.permission.as_ref()?.request.clone(),
        })
    });
    let asynchronous = state.outstanding_async().filter_map(|call| {
        Some(PendingAsyncTool {
            tool_call_id: call.id.clone(),
            tool_id: call.tool_id.clone()?,
            tool_name: call.name.clone(),
            input: call.invocation.as_ref()?.input.clone(),
        })
    });
    Some(TurnSuspended {
        pending_permissions: permissions.collect(),
        pending_async_tools: asynchronous.collect(),
        usage: state.usage,
    })
}

fn rests_on(state: &TurnState, snapshot: &TurnSuspended) -> bool {
    state.suspension.as_deref() == Some(snapshot)
}

fn error_result(text: &str) -> ToolResultData {
    ToolResultData { output: Json::text(text), is_error: true, metadata: None }
}

/// The tools in `addTools` of successful results that the turn does not have yet, once all calls
/// have their results.
fn added_tools(live: &Live, state: &TurnState) -> Vec<TurnFact> {
    if state.terminal.is_some() || state.unresolved().next().is_some() {
        return Vec::new();
    }
    let present = live.surroundings.agent.tools.iter();
    let present = present.chain(state.extended_tools(state.next_call_index()));
    let mut names: HashSet<String> = present.map(|tool| tool.name.clone()).collect();
    let added = state.last_batch().iter().filter_map(|call| {
        let tools = brought(call)?.into_iter().filter(|tool| names.insert(tool.name.clone()));
        let tools: Vec<_> = tools.collect();
        let (tool_call_id, source) = (call.id.clone(), call.name.clone());
        let extended = ToolsExtended { tool_call_id, source, tools };
        (!extended.tools.is_empty()).then_some(TurnFact::ToolsExtended(extended))
    });
    added.collect()
}

/// The tools that the result of a call brings.
fn brought(call: &ToolCall) -> Option<Vec<ToolDescriptor>> {
    #[derive(Deserialize)]
    struct Known {
        #[serde(rename = "addTools")]
        add_tools: Vec<ToolDescriptor>,
    }
    let result = &call.result.as_ref()?.data;
    let metadata = result.metadata.as_ref().filter(|_| !result.is_error)?;
    metadata.read::<Known>().ok().map(|known| known.add_tools)
}
