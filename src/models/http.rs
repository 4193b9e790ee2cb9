//! The way to a provider over HTTP: where it is, how it is asked, and what an error of it looks
//! like. It knows no provider's language; those who do hand it a body and a fold.

mod base_url;
mod client;
pub(crate) mod conversation;
pub(crate) mod fold;
pub(crate) mod refusal;
mod retry;
mod setback;
pub(crate) mod sse;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use reqwest::Client;
use tokio::sync::OnceCell;
use url::Url;

use crate::base::clock::{Clock, Entropy};
use crate::base::secret::Secret;
use crate::models::error::{Failure, ModelError, Phase, Report};
use crate::models::http::setback::Setback;

pub use base_url::{BaseUrl, MalformedBaseUrl};
pub use retry::Patience;

/// A header's value that is shorter is a version or a name: no secret, but a word of other texts.
const SECRET_BYTES_MIN: usize = 8;

/// Where a provider's key comes from. It is asked at the first use of the provider, and again only
/// as long as there is none.
#[async_trait]
pub trait KeyProvider: fmt::Debug + Send + Sync {
    /// The key.
    ///
    /// # Errors
    /// [`NoKey`].
    async fn key(&self) -> Result<Secret, NoKey>;
}

/// Why there is no key, in words that hold nothing secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NoKey(pub String);

/// How a provider is reached.
#[derive(Clone, Debug)]
pub struct Reach {
    /// Where it is.
    pub base_url: BaseUrl,
    /// The key, sent as a bearer token.
    pub key: Option<Arc<dyn KeyProvider>>,
    /// Further headers, by name; they are as secret as keys, since they often are keys.
    pub headers: BTreeMap<String, Secret>,
}

impl Reach {
    /// A provider without a key.
    #[must_use]
    pub fn at(base_url: BaseUrl) -> Self {
        Self { base_url, key: None, headers: BTreeMap::new() }
    }
}

/// How long a client waits. There is no limit on a whole answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// For the connection.
    pub connect: Duration,
    /// From the request to the first byte of the answer; a local server reads the whole
    /// conversation before it sends one.
    pub first_byte: Duration,
    /// From one byte of the answer to the next.
    pub next_byte: Duration,
    /// For more after the answer said how it ended: the count of tokens, and the end of the stream,
    /// which some servers never send.
    pub after_end: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_mins(2),
            next_byte: Duration::from_mins(2),
            after_end: Duration::from_secs(2),
        }
    }
}

/// How every provider is treated, and where time and chance come from.
#[derive(Clone)]
pub struct Manners {
    /// How long a client waits.
    pub timeouts: Timeouts,
    /// How often it asks again.
    pub patience: Patience,
    /// For the moment until which it waits, and for servers that name a date.
    pub clock: Arc<dyn Clock>,
    /// For the length of its waits.
    pub entropy: Arc<dyn Entropy>,
}

/// A provider's interface, with a client that is made at its first use (loading the system's
/// certificates takes longer than a first frame may).
pub(crate) struct Endpoint {
    provider: String,
    reach: Reach,
    manners: Manners,
    key: OnceCell<Secret>,
    client: OnceLock<Result<Client, (Failure, String)>>,
}

/// What was heard from a server that did not answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heard {
    pub(crate) status: Option<u16>,
    pub(crate) message: Option<String>,
    pub(crate) request_id: Option<String>,
}

impl Heard {
    /// Only words.
    pub(crate) fn words(message: impl Into<String>) -> Self {
        Self { message: Some(message.into()), ..Self::default() }
    }
}

impl Endpoint {
    pub(crate) fn new(provider: &str, reach: Reach, manners: Manners) -> Self {
        let (key, client) = (OnceCell::new(), OnceLock::new());
        Self { provider: provider.to_owned(), reach, manners, key, client }
    }

    /// The address of `path` under the base.
    pub(crate) fn url(&self, path: &[&str]) -> Url {
        self.reach.base_url.join(path)
    }

    /// The client, which sends the key; that is fetched first.
    ///
    /// # Errors
    /// [`Failure::NoKey`], [`Failure::NoCertificates`] and [`Failure::Misconfigured`].
    pub(crate) async fn client(&self, model: Option<&str>) -> Result<&Client, ModelError> {
        let key = match &self.reach.key {
            None => None,
            Some(source) => Some(
                self.key
                    .get_or_try_init(|| source.key())
                    .await
                    .map_err(|NoKey(why)| self.error(model, Failure::NoKey, Heard::words(why)))?,
            ),
        };
        let build = || client::build(&self.reach, key, &self.manners.timeouts);
        let made = self.client.get_or_init(build);
        made.as_ref()
            .map_err(|(failure, why)| self.error(model, failure.clone(), Heard::words(why)))
    }

    /// The text at `path`, not longer than one event may be.
    ///
    /// # Errors
    /// [`ModelError`], also when it does not come `within` that time.
    pub(crate) async fn get(&self, path: &[&str], within: Duration) -> Result<String, ModelError> {
        // Whoever opens a key store by hand is not a slow server.
        let client = self.client(None).await?;
        let asked = async {
            let request = client.get(self.url(path)).send();
            let response = request.await.map_err(|error| self.no_connection(None, &error))?;
            if !response.status().is_success() {
                return Err(Setback::refused(self, None, response).await.error);
            }
            Ok(setback::text_of(response, sse::EVENT_BYTES_MAX).await)
        };
        tokio::time::timeout(within, asked).await.unwrap_or_else(|_| {
            let failure = Failure::Timeout { phase: Phase::FirstByte, limit: within };
            Err(self.error(None, failure, Heard::default()))
        })
    }

    /// An error of this provider. The server's words are cut, and freed of keys first.
    pub(crate) fn error(&self, model: Option<&str>, failure: Failure, heard: Heard) -> ModelError {
        let report = Report {
            provider: self.provider.clone(),
            model: model.map(str::to_owned),
            status: heard.status,
            message: heard.message.and_then(|text| refusal::one_line(&self.redact(text))),
            request_id: heard.request_id.and_then(|text| refusal::one_line(&self.redact(text))),
        };
        let failure = match failure {
            Failure::Malformed { what } => {
                let what = refusal::one_line(&self.redact(what)).unwrap_or_default();
                Failure::Malformed { what }
            }
            other => other,
        };
        ModelError { failure, report: Box::new(report) }
    }

    /// What a failed exchange means before the answer has begun.
    pub(crate) fn no_connection(&self, model: Option<&str>, error: &reqwest::Error) -> ModelError {
        let limit = self.manners.timeouts.connect;
        let failure = if error.is_timeout() {
            Failure::Timeout { phase: Phase::Connect, limit }
        } else {
            Failure::Unreachable
        };
        let place = self.reach.base_url.place();
        self.error(model, failure, Heard::words(format!("{place}: {}", cause(error))))
    }

    fn redact(&self, text: String) -> String {
        let password = self.reach.base_url.password();
        let headers = self.reach.headers.values();
        let headers = headers.filter(|value| is_secret(value));
        let secrets = self.key.get().into_iter().chain(headers);
        secrets.chain(&password).fold(text, |text, secret| secret.redact(&text))
    }
}

/// Whether a header's value is to be kept out of texts.
pub(crate) fn is_secret(value: &Secret) -> bool {
    value.expose().len() >= SECRET_BYTES_MIN
}

/// The innermost cause of an error, which is the one that a person understands.
pub(crate) fn cause(error: &reqwest::Error) -> String {
    let mut inner: &dyn std::error::Error = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    // The outermost one names the whole URL, and there is nothing else to say without a source.
    if std::error::Error::source(error).is_some() { inner.to_string() } else { "no answer".into() }
}
