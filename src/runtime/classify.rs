//! What a classifier thinks of the calls that ask, and how it is recorded when it thinks nothing
//! (`design/turn-runtime.md` section 8).

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;

use crate::base::id::ToolCallId;
use crate::base::tasks::panic_message;
use crate::domain::message::Message;
use crate::domain::turn::event::{ClassificationFailed, PermissionClassified, TurnFact};
use crate::domain::turn::state::{ToolCall, TurnState};
use crate::policy::classifier::{Batch, Classifier, DoubtfulCall, Opinion};
use crate::runtime::advance::{Advance, Live};
use crate::runtime::compose::compose;
use crate::runtime::error::AdvanceError;

/// The calls of which a classifier is to be asked.
struct Doubtful {
    batch: Option<Batch>,
    /// Those that it cannot be asked of: another program put the question in words of its own.
    unreadable: Vec<ToolCallId>,
}

impl Advance {
    /// Asks a classifier about the calls that it has not seen yet. Ends early when the signal to stop
    /// is given.
    pub(super) async fn classify(
        &self,
        live: &Live,
        classifier: &dyn Classifier,
    ) -> Result<(), AdvanceError> {
        let Doubtful { batch, unreadable } =
            self.cell.look(&self.parts, |state| doubtful(live, state)).await?;
        if !unreadable.is_empty() {
            let why = "this program cannot read what is asked".to_owned();
            let facts = |state: &TurnState| {
                let asked = still_asked(state, unreadable);
                Ok(if asked.is_empty() { Vec::new() } else { vec![not_classified(asked, why)] })
            };
            self.cell.commit_with(&self.parts, facts).await?;
        }
        let Some(batch) = batch else { return Ok(()) };
        let classifying = classifier.classify(&batch, self.stop.token());
        let opinions = tokio::select! {
            biased;
            // Safe to drop: an opinion changes nothing.
            () = self.stop.token().cancelled() => return Ok(()),
            opinions = AssertUnwindSafe(classifying).catch_unwind() => opinions,
        };
        let opinions = match opinions {
            Ok(opinions) => opinions.map_err(|error| error.to_string()),
            Err(panic) => {
                Err(format!("the classifier panicked: {}", panic_message(panic.as_ref())))
            }
        };
        let facts = |state: &TurnState| {
            let asked = batch.calls.iter().map(|call| call.tool_call_id.clone()).collect();
            Ok(classification_facts(still_asked(state, asked), opinions))
        };
        self.cell.commit_with(&self.parts, facts).await
    }
}

/// Those of these calls that are still asked about: a person may have decided meanwhile.
fn still_asked(state: &TurnState, calls: Vec<ToolCallId>) -> Vec<ToolCallId> {
    let asked = |id: &ToolCallId| state.tool_calls.get(id).is_some_and(ToolCall::awaits_permission);
    calls.into_iter().filter(asked).collect()
}

/// The calls that a classifier has not seen yet.
fn doubtful(live: &Live, state: &TurnState) -> Doubtful {
    let (mut calls, mut unreadable) = (Vec::new(), Vec::new());
    for call in state.outstanding_permissions() {
        let Some(permission) = &call.permission else { continue };
        if permission.classified.is_some() || permission.classification_failed.is_some() {
            continue;
        }
        match permission.request.read() {
            Ok(request) => calls.push(DoubtfulCall {
                tool_call_id: call.id.clone(),
                tool_name: call.name.clone(),
                input: call.arguments.clone(),
                request,
            }),
            Err(_) => unreadable.push(call.id.clone()),
        }
    }
    if calls.is_empty() {
        return Doubtful { batch: None, unreadable };
    }
    let index = state.next_call_index().saturating_sub(1);
    let mut conversation = compose(state, &live.surroundings, index).messages;
    let answer = state.model_calls.last().and_then(|call| call.response());
    conversation.extend(answer.map(|answer| Message::Assistant(Arc::clone(answer))));
    Doubtful { batch: Some(Batch { conversation: conversation.into(), calls }), unreadable }
}

/// What a classifier's answer amounts to. A call that it leaves out counts as deferred.
fn classification_facts(
    asked: Vec<ToolCallId>,
    classified: Result<Vec<Opinion>, String>,
) -> Vec<TurnFact> {
    if asked.is_empty() {
        return Vec::new();
    }
    let opinions = match classified {
        Err(error) => return vec![not_classified(asked, error)],
        Ok(opinions) => opinions,
    };
    let facts = asked.into_iter().map(|id| {
        match opinions.iter().find(|opinion| opinion.tool_call_id == id) {
            Some(opinion) => TurnFact::PermissionClassified(PermissionClassified {
                tool_call_id: id,
                decision: opinion.decision,
                reason: opinion.reason.clone(),
            }),
            None => not_classified(vec![id], "the classifier left this call out".to_owned()),
        }
    });
    facts.collect()
}

fn not_classified(tool_call_ids: Vec<ToolCallId>, error: String) -> TurnFact {
    TurnFact::ClassificationFailed(ClassificationFailed { tool_call_ids, error })
}
