//! One request and its answer: asks, waits and asks again, then reads what comes until its end. The
//! provider's language is a [`Fold`] that makes deltas of events.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{FutureExt as _, StreamExt as _, stream};
use reqwest::Response;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::models::delta::ModelDelta;
use crate::models::error::{Failure, ModelError, Phase};
use crate::models::http::fold::{Fault, Fold};
use crate::models::http::setback::{Again, Setback, media_type, request_id};
use crate::models::http::sse::{Decoder, EVENT_BYTES_MAX, Event, Flow, Kind};
use crate::models::http::{Endpoint, Heard, cause};
use crate::models::model::DeltaStream;

/// What arrives within this time of the last delta is joined into the next one: a quarter of a
/// frame, so that nobody sees it, and a burst of tokens does not turn every loop on the way for each.
const JOIN_SPAN: Duration = Duration::from_millis(4);
/// No more than this is joined.
const JOINED_BYTES_MAX: usize = 32 * 1024;

/// What is asked.
pub(crate) struct Outgoing {
    /// The path under the provider's base.
    pub(crate) path: &'static [&'static str],
    /// The model, for errors.
    pub(crate) model: String,
    /// The JSON of the request.
    pub(crate) body: Bytes,
}

/// Asks, and gives the answer as it comes.
pub(crate) fn stream<F: Fold>(
    endpoint: Arc<Endpoint>,
    outgoing: Outgoing,
    fold: F,
    cancel: CancellationToken,
) -> DeltaStream {
    let conversation = Conversation {
        endpoint,
        outgoing,
        fold,
        cancel,
        stage: Stage::Ask,
        retries: 0,
        request_id: None,
        ready: VecDeque::new(),
        told_at: None,
        failed: None,
    };
    stream::unfold(Box::new(conversation), |mut conversation| async move {
        conversation.next().await.map(|item| (item, conversation))
    })
    .boxed()
}

struct Conversation<F> {
    endpoint: Arc<Endpoint>,
    outgoing: Outgoing,
    fold: F,
    cancel: CancellationToken,
    stage: Stage,
    retries: u32,
    request_id: Option<String>,
    /// What is to be handed out next, before `failed`.
    ready: VecDeque<ModelDelta>,
    /// When something was handed out last, on the clock that never goes back.
    told_at: Option<Duration>,
    failed: Option<ModelError>,
}

enum Stage {
    Ask,
    Wait(Duration),
    Listen(Box<Listening>),
    Over,
}

/// An answer that has begun.
struct Listening {
    response: Response,
    first: Option<Bytes>,
    form: Form,
}

enum Form {
    Events(Decoder),
    /// One JSON document, from a server that does not stream.
    Whole(Vec<u8>),
}

impl<F: Fold> Conversation<F> {
    async fn next(&mut self) -> Option<Result<ModelDelta, ModelError>> {
        loop {
            if let Some(delta) = self.ready.pop_front() {
                return Some(Ok(delta));
            }
            if let Some(error) = self.failed.take() {
                return Some(Err(error));
            }
            if matches!(self.stage, Stage::Over) {
                return None;
            }
            let cancel = self.cancel.clone();
            let stepped = tokio::select! {
                biased;
                // Waiting for a token loses nothing.
                () = cancel.cancelled() => Err(self.error(Failure::Cancelled)),
                // When this is dropped half done the conversation is over, and its connection too.
                stepped = self.step() => stepped,
            };
            if let Err(error) = stepped {
                self.stage = Stage::Over;
                self.fold.tell(&mut self.ready);
                self.failed = Some(error);
            }
        }
    }

    /// One stage further. The stage is over unless something else is put in its place.
    async fn step(&mut self) -> Result<(), ModelError> {
        match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Ask => {
                let limit = self.endpoint.manners.timeouts.first_byte;
                let asked = timeout(limit, self.ask()).await.unwrap_or_else(|_| {
                    Err(self.error(Failure::Timeout { phase: Phase::FirstByte, limit }).into())
                });
                self.stage = match asked {
                    Ok(listening) => Stage::Listen(listening),
                    Err(setback) => Stage::Wait(self.wait_after(setback)?),
                };
            }
            Stage::Wait(span) => {
                sleep(span).await;
                self.stage = Stage::Ask;
            }
            Stage::Listen(listening) => self.listen(listening).await?,
            Stage::Over => {}
        }
        Ok(())
    }

    async fn ask(&mut self) -> Result<Box<Listening>, Setback> {
        let (endpoint, model) = (&self.endpoint, Some(self.outgoing.model.as_str()));
        let lost = |error: reqwest::Error| Setback::lost(endpoint, model, &error);
        let request = endpoint.client(model).await?.post(endpoint.url(self.outgoing.path));
        let request = request
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "text/event-stream")
            .body(self.outgoing.body.clone());
        let mut response = request.send().await.map_err(lost)?;
        if !response.status().is_success() {
            return Err(Setback::refused(endpoint, model, response).await);
        }
        let form = match media_type(response.headers()).as_str() {
            "" | "text/event-stream" | "text/plain" | "application/octet-stream" => {
                Form::Events(Decoder::default())
            }
            json if json.ends_with("json") => Form::Whole(Vec::new()),
            _ => return Err(Setback::foreign(endpoint, model, response).await),
        };
        let first = response.chunk().await.map_err(lost)?.unwrap_or_default();
        self.request_id = request_id(response.headers());
        Ok(Box::new(Listening { response, first: Some(first), form }))
    }

    /// How long to wait after a setback, which is told; the setback itself if it is final.
    fn wait_after(&mut self, setback: Setback) -> Result<Duration, ModelError> {
        let Setback { error, again: Again::After(server_wait) } = setback else {
            return Err(setback.error);
        };
        let manners = &self.endpoint.manners;
        let wait = manners.patience.wait(self.retries, server_wait, manners.entropy.as_ref());
        let Some(wait) = wait else { return Err(error) };
        self.retries += 1;
        let until = manners.clock.now().after(wait);
        let why = match error.report.message {
            Some(message) => format!("{}: {message}", error.failure),
            None => error.failure.to_string(),
        };
        self.ready.push_back(ModelDelta::Waiting { until, why });
        Ok(wait)
    }

    /// Waits for the next bytes, takes them in and what comes right behind them.
    async fn listen(&mut self, mut listening: Box<Listening>) -> Result<(), ModelError> {
        let mut next = match listening.first.take() {
            Some(first) => Some(first),
            None => self.wait_for_bytes(&mut listening.response).await?,
        };
        let mut taken = 0;
        loop {
            let Some(bytes) = next else { return self.end(listening.form) };
            if self.take(&mut listening.form, &bytes).map_err(|fault| self.fault(fault))?
                == Flow::Done
            {
                return self.fold.finish(&mut self.ready).map_err(|fault| self.fault(fault));
            }
            taken += bytes.len();
            if taken >= JOINED_BYTES_MAX {
                break;
            }
            next = match self.right_behind(&mut listening.response).await {
                Some(chunk) => self.arrived(chunk)?,
                None => break,
            };
        }
        self.fold.tell(&mut self.ready);
        if !self.ready.is_empty() {
            self.told_at = Some(self.endpoint.manners.clock.elapsed());
        }
        self.stage = Stage::Listen(listening);
        Ok(())
    }

    /// What has arrived already, or does while it is too early for another delta.
    async fn right_behind(
        &mut self,
        response: &mut Response,
    ) -> Option<reqwest::Result<Option<Bytes>>> {
        if let Some(chunk) = response.chunk().now_or_never() {
            return Some(chunk);
        }
        let since = self.endpoint.manners.clock.elapsed().saturating_sub(self.told_at?);
        let early = JOIN_SPAN.checked_sub(since).filter(|early| !early.is_zero())?;
        // Dropped while it waits, it has taken nothing.
        timeout(early, response.chunk()).await.ok()
    }

    /// The next bytes; `None` at their end.
    async fn wait_for_bytes(
        &mut self,
        response: &mut Response,
    ) -> Result<Option<Bytes>, ModelError> {
        let timeouts = &self.endpoint.manners.timeouts;
        let ended = self.fold.has_ended();
        let limit = if ended { timeouts.after_end } else { timeouts.next_byte };
        match timeout(limit, response.chunk()).await {
            Ok(chunk) => self.arrived(chunk),
            Err(_) if ended => Ok(None),
            Err(_) => Err(self.error(Failure::Timeout { phase: Phase::NextByte, limit })),
        }
    }

    fn arrived(&self, chunk: reqwest::Result<Option<Bytes>>) -> Result<Option<Bytes>, ModelError> {
        match chunk {
            Ok(bytes) => Ok(bytes),
            Err(_) if self.fold.has_ended() => Ok(None),
            Err(error) => {
                let heard = Heard::words(cause(&error));
                Err(self.fault(Fault { failure: Failure::Truncated, heard }))
            }
        }
    }

    fn take(&mut self, form: &mut Form, bytes: &[u8]) -> Result<Flow, Fault> {
        match form {
            Form::Events(decoder) => {
                decoder.feed(bytes, |event| self.fold.event(&event, &mut self.ready))
            }
            Form::Whole(document) if document.len() + bytes.len() > EVENT_BYTES_MAX => {
                Err(Failure::TooLong { what: "the answer", limit_bytes: EVENT_BYTES_MAX }.into())
            }
            Form::Whole(document) => {
                document.extend_from_slice(bytes);
                Ok(Flow::More)
            }
        }
    }

    /// The bytes have ended.
    fn end(&mut self, form: Form) -> Result<(), ModelError> {
        let (last, cut) = match form {
            Form::Events(mut decoder) => {
                let last = decoder.end(|event| self.fold.event(&event, &mut self.ready));
                (last, Failure::Truncated)
            }
            Form::Whole(document) => {
                let data = String::from_utf8_lossy(&document);
                let cut = Failure::Malformed { what: format!("no answer in {data}") };
                let event = Event { kind: Kind::Message, data };
                (self.fold.event(&event, &mut self.ready), cut)
            }
        };
        let finished = last.and_then(|_| self.fold.finish(&mut self.ready));
        finished.map_err(|fault| match fault.failure {
            // Half an event is what a cut leaves.
            Failure::Malformed { .. } | Failure::Truncated => self.error(cut),
            _ => self.fault(fault),
        })
    }

    fn error(&self, failure: Failure) -> ModelError {
        self.fault(Fault::from(failure))
    }

    fn fault(&self, fault: Fault) -> ModelError {
        let Fault { failure, mut heard } = fault;
        heard.request_id.clone_from(&self.request_id);
        self.endpoint.error(Some(&self.outgoing.model), failure, heard)
    }
}
