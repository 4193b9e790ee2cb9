//! The seam for an opinion on calls that the rules leave open (`design/turn-runtime.md` section 8).

use std::sync::Arc;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use crate::base::id::ToolCallId;
use crate::domain::json::Json;
use crate::domain::message::Message;
use crate::domain::permission::plan::PermissionRequest;
use crate::domain::turn::event::Classification;

/// The calls of one response that would ask, judged in one go.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The conversation that led to them, as the model has it; the last message makes the calls.
    pub conversation: Arc<[Message]>,
    /// The calls, in source order.
    pub calls: Vec<DoubtfulCall>,
}

/// A call that the rules leave open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DoubtfulCall {
    /// The call.
    pub tool_call_id: ToolCallId,
    /// Its tool.
    pub tool_name: String,
    /// What the tool would be given.
    pub input: Json,
    /// What a person would be shown.
    pub request: PermissionRequest,
}

/// What a classifier thinks of one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opinion {
    /// The call.
    pub tool_call_id: ToolCallId,
    /// What it thinks.
    pub decision: Classification,
    /// Why.
    pub reason: String,
}

/// Why a classifier gave no opinion; its batch counts as deferred.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClassifyError {
    /// The turn was cancelled meanwhile.
    #[error("cancelled")]
    Cancelled,
    /// The model behind it cannot be reached or failed.
    #[error("the classifier's model gave no answer: {0}")]
    Model(String),
    /// Its answer cannot be read.
    #[error("the classifier's answer cannot be read: {0}")]
    Unreadable(String),
}

/// Judges what the rules leave open. It is asked only when the turn runs with `autoPermission`.
#[async_trait]
pub trait Classifier: Send + Sync {
    /// An opinion for each call of the batch. A call that is left out counts as deferred.
    ///
    /// # Errors
    /// [`ClassifyError`]: the whole batch counts as deferred.
    async fn classify(
        &self,
        batch: &Batch,
        cancel: &CancellationToken,
    ) -> Result<Vec<Opinion>, ClassifyError>;
}
