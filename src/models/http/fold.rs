//! What a provider's language is to a conversation: it makes deltas of events.

use std::collections::VecDeque;

use crate::models::delta::ModelDelta;
use crate::models::error::Failure;
use crate::models::http::Heard;
use crate::models::http::refusal::Refusal;
use crate::models::http::sse::{EVENT_BYTES_MAX, Event, Flow, TooLong};

/// One answer in a provider's language. What it pushes keeps the rules of
/// [`Model`](crate::models::model::Model).
pub(crate) trait Fold: Send + 'static {
    /// Takes an event in.
    fn event(&mut self, event: &Event<'_>, out: &mut VecDeque<ModelDelta>) -> Result<Flow, Fault>;
    /// Hands out the text that has come since the last time.
    fn tell(&mut self, out: &mut VecDeque<ModelDelta>);
    /// Whether the answer has said how it ended, so that the end of its bytes is no fault.
    fn has_ended(&self) -> bool;
    /// Hands out what is left and the whole answer, after its last event.
    fn finish(&mut self, out: &mut VecDeque<ModelDelta>) -> Result<(), Fault>;
}

/// What is wrong with an answer.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub(crate) failure: Failure,
    pub(crate) heard: Heard,
}

impl From<Failure> for Fault {
    fn from(failure: Failure) -> Self {
        Self { failure, heard: Heard::default() }
    }
}

impl From<TooLong> for Fault {
    fn from(TooLong: TooLong) -> Self {
        Self::from(Failure::TooLong { what: "one event", limit_bytes: EVENT_BYTES_MAX })
    }
}

impl From<Refusal> for Fault {
    /// An error in the place of an answer, or in the middle of one.
    fn from(refusal: Refusal) -> Self {
        let failure = refusal.failure(None, None);
        let heard = Heard { status: refusal.status, message: refusal.message, request_id: None };
        Self { failure, heard }
    }
}
