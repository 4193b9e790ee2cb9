//! What a running tool reports: steps that are recorded, within limits, and a tail of live output
//! that is only told.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{mpsc, oneshot};

use crate::base::id::{SessionId, ToolCallId, TurnId};
use crate::domain::agent::Execution;
use crate::domain::json::Json;
use crate::domain::turn::event::{ToolProgress, TurnFact};
use crate::domain::turn::live::{LiveEvent, News};
use crate::domain::turn::state::{ToolCall, TurnState};
use crate::runtime::Parts;
use crate::runtime::advance::Advance;
use crate::tools::output;
use crate::tools::tool::Progress;

/// At most four reports a second are recorded or told (`design/turn-runtime.md` section 9).
const REPORT_GAP: Duration = Duration::from_millis(250);
/// How much one call may record in all, and one report from outside; a log is no place for output.
pub(super) const REPORT_BYTES_MAX: usize = 16 * 1024;
/// How many reports of an advance's tools wait; each tool waits for its own.
pub(super) const REPORTS_WAITING_MAX: usize = 16;

/// A report on its way to the log. The advance records it, as it records everything, so that a tool
/// that is dropped leaves nothing half recorded.
pub(super) struct Report {
    call: ToolCallId,
    progress: Json,
    /// Dropped once the report is recorded, or is not going to be.
    done: oneshot::Sender<()>,
}

/// Where one call reports.
pub(super) struct CallProgress {
    parts: Arc<Parts>,
    turn: TurnId,
    session: Option<SessionId>,
    call: ToolCallId,
    reports: mpsc::Sender<Report>,
    spent: Mutex<Spent>,
}

#[derive(Default)]
struct Spent {
    bytes: usize,
    reported_at: Option<Duration>,
    told_at: Option<Duration>,
}

impl Advance {
    /// Where the call `call` of this advance reports: to whoever receives `reports`.
    pub(super) fn progress_of(
        &self,
        call: &ToolCallId,
        reports: &mpsc::Sender<Report>,
    ) -> CallProgress {
        CallProgress {
            parts: Arc::clone(&self.parts),
            turn: self.cell.turn.clone(),
            session: self.session.clone(),
            call: call.clone(),
            reports: reports.clone(),
            spent: Mutex::default(),
        }
    }

    /// Records a report. One that comes after the result of its call never reaches the log.
    pub(super) async fn record_report(&self, report: Report) {
        let Report { call, progress, done } = report;
        let fact = |state: &TurnState| {
            let open = state.tool_calls.get(&call).is_some_and(|it: &ToolCall| it.result.is_none());
            let (tool_call_id, source) = (call.clone(), Execution::Sync);
            let fact = TurnFact::ToolProgress(ToolProgress { tool_call_id, source, progress });
            Ok(open.then_some(fact).into_iter().collect())
        };
        // The tool goes on without it: a result that cannot be recorded is trouble enough.
        if let Err(error) = self.cell.commit_with(&self.parts, fact).await {
            tracing::warn!(%call, %error, "progress was not recorded");
        }
        drop(done);
    }
}

impl CallProgress {
    fn spend<T>(&self, spend: impl FnOnce(&mut Spent, Duration) -> T) -> T {
        let now = self.parts.clock.elapsed();
        spend(&mut self.spent.lock().unwrap_or_else(PoisonError::into_inner), now)
    }
}

fn is_due(last: Option<Duration>, now: Duration) -> bool {
    last.is_none_or(|last| now.saturating_sub(last) >= REPORT_GAP)
}

#[async_trait]
impl Progress for CallProgress {
    async fn report(&self, progress: Json) {
        // What nests too deeply is no report.
        let Ok(progress) = output::sound(&progress) else { return };
        let allowed = self.spend(|spent, now| {
            let bytes = spent.bytes + progress.get().len();
            let allowed = is_due(spent.reported_at, now) && bytes <= REPORT_BYTES_MAX;
            if allowed {
                (spent.bytes, spent.reported_at) = (bytes, Some(now));
            }
            allowed
        });
        if !allowed {
            return;
        }
        let (done, is_done) = oneshot::channel();
        let report = Report { call: self.call.clone(), progress, done };
        // Nobody receives it once the advance has ended.
        if self.reports.send(report).await.is_ok() {
            is_done.await.ok();
        }
    }

    fn tail(&self, tail: &str) {
        if self.reports.is_closed() {
            return;
        }
        let due = self.spend(|spent, now| {
            let due = is_due(spent.told_at, now);
            if due {
                spent.told_at = Some(now);
            }
            due
        });
        if due {
            self.parts.hub.publish(&LiveEvent {
                session: self.session.clone(),
                turn: self.turn.clone(),
                news: News::ToolTail { call: self.call.clone(), tail: tail.to_owned() },
            });
        }
    }
}
