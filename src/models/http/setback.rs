//! Requests that were not answered: what that means, and whether to ask again.

use std::io;
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderMap, LOCATION};
use reqwest::{Response, StatusCode};

use crate::models::error::{Failure, ModelError};
use crate::models::http::refusal::{BODY_BYTES_MAX, Refusal};
use crate::models::http::retry::server_wait;
use crate::models::http::{Endpoint, Heard};

/// A request that was not answered, and whether to ask again.
pub(crate) struct Setback {
    pub(crate) error: ModelError,
    pub(crate) again: Again,
}

/// Whether to ask again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Again {
    No,
    /// After this long, if the server said how long.
    After(Option<Duration>),
}

impl From<ModelError> for Setback {
    fn from(error: ModelError) -> Self {
        Self { error, again: Again::No }
    }
}

impl Setback {
    /// No connection, or none any more before the answer began.
    pub(crate) fn lost(endpoint: &Endpoint, model: Option<&str>, error: &reqwest::Error) -> Self {
        let again = if may_come_back(error) { Again::After(None) } else { Again::No };
        Self { error: endpoint.no_connection(model, error), again }
    }

    /// A status that is no success.
    pub(crate) async fn refused(
        endpoint: &Endpoint,
        model: Option<&str>,
        response: Response,
    ) -> Self {
        let status = response.status();
        let server_wait = server_wait(response.headers(), endpoint.manners.clock.now());
        let target = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
        let moved = target.map(|target| format!("it has moved to {target}"));
        let request_id = request_id(response.headers());
        let mut heard = Heard { status: Some(status.as_u16()), message: moved, request_id };
        if status.is_redirection() {
            return endpoint.error(model, Failure::Rejected, heard).into();
        }
        let refusal = Refusal::read(&text_of(response, BODY_BYTES_MAX).await);
        let failure = refusal.failure(heard.status, server_wait);
        let again = if may_be_asked_again(status, &failure) {
            Again::After(server_wait)
        } else {
            Again::No
        };
        heard.message = refusal.message;
        Self { error: endpoint.error(model, failure, heard), again }
    }

    /// A success that is no answer of any interface, mostly a page.
    pub(crate) async fn foreign(
        endpoint: &Endpoint,
        model: Option<&str>,
        response: Response,
    ) -> Self {
        let what = format!("it is of type {}", media_type(response.headers()));
        let status = Some(response.status().as_u16());
        let request_id = request_id(response.headers());
        let message = Refusal::read(&text_of(response, BODY_BYTES_MAX).await).message;
        let heard = Heard { status, message, request_id };
        endpoint.error(model, Failure::Malformed { what }, heard).into()
    }
}

/// Whether a lost connection may come back by itself: refused, reset, or closed before the answer.
/// A name that is not known or a certificate that is not trusted stays so.
fn may_come_back(error: &reqwest::Error) -> bool {
    if error.is_timeout() {
        return false;
    }
    let mut causes =
        std::iter::successors(std::error::Error::source(error), |cause| cause.source());
    let lost = causes.find_map(|cause| cause.downcast_ref::<io::Error>()).is_some_and(|error| {
        matches!(
            error.kind(),
            io::ErrorKind::ConnectionRefused
                | io::ErrorKind::ConnectionReset
                | io::ErrorKind::ConnectionAborted
        )
    });
    lost || !error.is_connect()
}

fn may_be_asked_again(status: StatusCode, failure: &Failure) -> bool {
    matches!(status.as_u16(), 408 | 409 | 429 | 500..=599)
        && !matches!(failure, Failure::QuotaUsedUp | Failure::ContextOverflow)
}

/// The media type of an answer in small letters, without parameters; empty for none.
pub(crate) fn media_type(headers: &HeaderMap) -> String {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Under what name the provider can find the request; the names of the header differ.
pub(crate) fn request_id(headers: &HeaderMap) -> Option<String> {
    let names = ["x-request-id", "request-id", "x-amzn-requestid", "cf-ray"];
    let value = names.iter().find_map(|name| headers.get(*name))?;
    value.to_str().ok().map(str::to_owned)
}

/// The text of a body, as far as it comes and not longer than `bytes_max`.
pub(crate) async fn text_of(mut response: Response, bytes_max: usize) -> String {
    let mut body = Vec::new();
    while body.len() < bytes_max
        && let Ok(Some(bytes)) = response.chunk().await
    {
        body.extend_from_slice(&bytes);
    }
    body.truncate(bytes_max);
    String::from_utf8_lossy(&body).into_owned()
}
