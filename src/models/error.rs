//! Why a model did not answer: a kind that a caller can act on, what the server said, and what a
//! person can try. No key ever stands in it.

use std::fmt;
use std::time::Duration;

/// A model call that ended without an answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.sentence())]
pub struct ModelError {
    /// What went wrong.
    pub failure: Failure,
    /// Where, and in whose words.
    pub report: Box<Report>,
}

/// Where a call went wrong, and what the server said about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The provider.
    pub provider: String,
    /// The model; none when the question was not about one.
    pub model: Option<String>,
    /// The HTTP status of the answer, or the one that its body names.
    pub status: Option<u16>,
    /// The server's own words (or those of the connection), bounded, in one line, without keys.
    pub message: Option<String>,
    /// The name under which the provider can find the request.
    pub request_id: Option<String>,
}

/// What can go wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// No connection, or it was lost before the answer began.
    #[error("the server cannot be reached")]
    Unreachable,
    /// The certificates that this machine trusts cannot be loaded.
    #[error("no trusted certificates for https")]
    NoCertificates,
    /// What the configuration says of this provider cannot be used.
    #[error("the provider's configuration cannot be used")]
    Misconfigured,
    /// The key cannot be had; nothing was sent.
    #[error("there is no key")]
    NoKey,
    /// The key is missing, wrong, or not allowed to do this.
    #[error("the server does not accept the key")]
    Authentication,
    /// The account has no credit left.
    #[error("the account's quota is used up")]
    QuotaUsedUp,
    /// Too many requests or tokens at a time.
    #[error("rate limited{}", for_how_long(*.retry_after))]
    RateLimited {
        /// When the server wants to be asked again, if it said so.
        retry_after: Option<Duration>,
    },
    /// The conversation does not fit into the model's window.
    #[error("the conversation is longer than the model's context window")]
    ContextOverflow,
    /// The server does not accept the request as it is.
    #[error("the server rejected the request")]
    Rejected,
    /// The server has trouble of its own.
    #[error("the server failed")]
    ServerError,
    /// The answer stopped without its end: the connection was cut, or the server gave up.
    #[error("the answer broke off before its end")]
    Truncated,
    /// The server said nothing for too long.
    #[error("no {phase} within {}", seconds(*.limit))]
    Timeout {
        /// What was waited for.
        phase: Phase,
        /// For how long.
        limit: Duration,
    },
    /// One event, or the whole answer, is longer than this program takes in.
    #[error("{what} is longer than {limit_bytes} bytes")]
    TooLong {
        /// What is too long.
        what: &'static str,
        /// The limit.
        limit_bytes: usize,
    },
    /// The answer is not what this interface answers.
    #[error("the answer cannot be read: {what}")]
    Malformed {
        /// What was found.
        what: String,
    },
    /// It was stopped from here.
    #[error("cancelled")]
    Cancelled,
}

/// What a client waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The connection.
    Connect,
    /// The first byte of the answer.
    FirstByte,
    /// The next piece of an answer that has begun.
    NextByte,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connect => "connection",
            Self::FirstByte => "answer",
            Self::NextByte => "further piece of the answer",
        })
    }
}

impl ModelError {
    /// What a person can try.
    #[must_use]
    pub fn advice(&self) -> &'static str {
        match &self.failure {
            Failure::NoCertificates => "install the system's CA certificates",
            Failure::Misconfigured => "correct it in `[providers]`",
            Failure::NoKey => "see `key` of this provider in the configuration",
            Failure::Authentication => "check the key of this provider in the configuration",
            Failure::QuotaUsedUp => "look at the account's billing page, or choose another model",
            Failure::RateLimited { .. } => "wait a little, or choose another model",
            Failure::ContextOverflow => {
                "start a new session, or choose a model with a larger window"
            }
            Failure::Rejected if self.report.status == Some(404) && self.report.model.is_none() => {
                "check `base_url`"
            }
            Failure::Rejected if self.report.status == Some(404) => {
                "check the model's name and `base_url`; `turnstile doctor` lists the models"
            }
            Failure::Rejected => "check the model's name, and the server's own log",
            Failure::ServerError | Failure::Truncated => {
                "what came is kept; send the message again"
            }
            Failure::Unreachable | Failure::Timeout { phase: Phase::Connect, .. } => {
                "see whether the server runs and `base_url` is right"
            }
            Failure::Timeout { .. } => {
                "send the message again, or allow more time in `[providers.<name>.timeouts]`"
            }
            Failure::TooLong { .. } => "ask for less at a time",
            Failure::Malformed { .. } => "check that `base_url` leads to an API of this kind",
            Failure::Cancelled => "send the message again when you want the answer",
        }
    }

    fn sentence(&self) -> String {
        let Report { provider, model, status, message, request_id } = self.report.as_ref();
        let mut text = provider.clone();
        let mut add = |piece: &str| text.push_str(piece);
        if let Some(model) = model {
            add(&format!("/{model}"));
        }
        add(&format!(": {}", self.failure));
        if let Some(status) = status {
            add(&format!(" (status {status})"));
        }
        if let Some(message) = message {
            add(&format!(": {message}"));
        }
        if let Some(id) = request_id {
            add(&format!(" [request {id}]"));
        }
        if self.failure != Failure::Cancelled {
            add(&format!("; {}", self.advice()));
        }
        text
    }
}

fn for_how_long(retry_after: Option<Duration>) -> String {
    retry_after.map_or_else(String::new, |wait| format!(" for {}", seconds(wait)))
}

/// A span as a person reads it: whole seconds, below one second in milliseconds.
pub(crate) fn seconds(span: Duration) -> String {
    if span.as_secs() == 0 {
        return format!("{} ms", span.as_millis());
    }
    format!("{} s", span.as_secs() + u64::from(span.subsec_millis() >= 500))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_who_what_in_whose_words_and_what_to_try() {
        let error = ModelError {
            failure: Failure::RateLimited { retry_after: Some(Duration::from_millis(12_500)) },
            report: Box::new(Report {
                provider: "lab".to_owned(),
                model: Some("qwen3".to_owned()),
                status: Some(429),
                message: Some("slow down".to_owned()),
                request_id: Some("r-1".to_owned()),
            }),
        };
        assert_eq!(
            error.to_string(),
            "lab/qwen3: rate limited for 13 s (status 429): slow down [request r-1]; \
             wait a little, or choose another model"
        );
    }

    #[test]
    fn what_is_not_known_is_not_said() {
        let report = Report { provider: "lab".to_owned(), ..Report::default() };
        let error = ModelError { failure: Failure::Cancelled, report: Box::new(report) };
        assert_eq!(error.to_string(), "lab: cancelled");
    }
}
