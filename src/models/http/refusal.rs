//! What a server says when it does not answer: error bodies of every shape that is about, and what
//! they mean.

use std::time::Duration;

use serde_json::Value;

use crate::models::error::Failure;

/// More of an error body is not read.
pub(crate) const BODY_BYTES_MAX: usize = 64 * 1024;
/// More of a server's words is not shown; the cause stands in the first sentence.
const MESSAGE_CHARS_MAX: usize = 600;
/// How deep a message is looked for; gateways wrap the error of the server behind them.
const WRAPPINGS_MAX: usize = 6;

/// What an error body says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// Its words, as they came.
    pub(crate) message: Option<String>,
    /// Its codes and types, in small letters.
    pub(crate) codes: Vec<String>,
    /// The HTTP status that it names.
    pub(crate) status: Option<u16>,
}

impl Refusal {
    /// Reads an error body: JSON of many shapes, a page, or plain text.
    pub(crate) fn read(body: &str) -> Self {
        let body = body.trim();
        let mut refusal = Self::default();
        match serde_json::from_str::<Value>(body) {
            Ok(value) => refusal.take(&value, WRAPPINGS_MAX),
            Err(_) if body.starts_with('<') => refusal.message = Some(page_title(body)),
            Err(_) if body.is_empty() => {}
            Err(_) => refusal.message = Some(body.to_owned()),
        }
        refusal
    }

    /// What it means, under the HTTP status of the answer or the one that the body names.
    pub(crate) fn failure(&self, status: Option<u16>, retry_after: Option<Duration>) -> Failure {
        let status = status.or(self.status);
        match status {
            Some(402) => Failure::QuotaUsedUp,
            _ if self.names(&QUOTA) => Failure::QuotaUsedUp,
            Some(401 | 403) => Failure::Authentication,
            Some(429) => Failure::RateLimited { retry_after },
            Some(413) => Failure::ContextOverflow,
            _ if self.names(&OVERFLOW) || self.speaks_of(&OVERFLOW_WORDS) => {
                Failure::ContextOverflow
            }
            _ if self.names(&AUTHENTICATION) => Failure::Authentication,
            _ if self.names(&RATE_LIMIT) => Failure::RateLimited { retry_after },
            Some(300..=407 | 409..=499) => Failure::Rejected,
            None if self.names(&REJECTION) => Failure::Rejected,
            Some(_) | None => Failure::ServerError,
        }
    }

    fn names(&self, codes: &[&str]) -> bool {
        self.codes.iter().any(|code| codes.contains(&code.as_str()))
    }

    fn speaks_of(&self, words: &[&str]) -> bool {
        let message = self.message.as_deref().unwrap_or_default().to_lowercase();
        words.iter().any(|word| message.contains(word))
    }

    fn take(&mut self, value: &Value, wrappings: usize) {
        let Some(wrappings) = wrappings.checked_sub(1) else { return };
        match value {
            Value::Object(fields) => {
                for name in ["code", "type", "status"] {
                    self.take_code(fields.get(name));
                }
                let inner = ["error", "errors", "message", "detail", "msg"];
                for value in inner.iter().filter_map(|name| fields.get(*name)) {
                    if self.message.is_none() {
                        self.take(value, wrappings);
                    }
                }
                // The words of the provider behind a gateway say more than the gateway's own.
                let raw = fields.get("metadata").and_then(|metadata| metadata.get("raw"));
                if let (Some(message), Some(raw)) = (&mut self.message, raw.and_then(Value::as_str))
                {
                    message.push_str(": ");
                    message.push_str(raw);
                }
            }
            Value::Array(items) => {
                for item in items {
                    if self.message.is_none() {
                        self.take(item, wrappings);
                    }
                }
            }
            Value::String(text) => self.take_text(text, wrappings),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn take_text(&mut self, text: &str, wrappings: usize) {
        match serde_json::from_str(text) {
            Ok(wrapped @ (Value::Object(_) | Value::Array(_))) => self.take(&wrapped, wrappings),
            Ok(_) | Err(_) if text.trim().is_empty() => {}
            Ok(_) | Err(_) => self.message = Some(text.to_owned()),
        }
    }

    fn take_code(&mut self, code: Option<&Value>) {
        let number = match code {
            Some(Value::String(code)) => {
                self.codes.push(code.to_lowercase());
                code.parse().ok()
            }
            Some(Value::Number(code)) => code.as_u64().and_then(|code| u16::try_from(code).ok()),
            Some(_) | None => None,
        };
        self.status = self.status.or(number.filter(|number| (400..600).contains(number)));
    }
}

const QUOTA: [&str; 2] = ["insufficient_quota", "billing_hard_limit_reached"];
const AUTHENTICATION: [&str; 4] =
    ["invalid_api_key", "authentication_error", "permission_error", "unauthenticated"];
const RATE_LIMIT: [&str; 3] = ["rate_limit_exceeded", "rate_limit_error", "resource_exhausted"];
const REJECTION: [&str; 3] = ["invalid_request_error", "badrequesterror", "invalid_argument"];
const OVERFLOW: [&str; 3] =
    ["context_length_exceeded", "exceed_context_size_error", "model_context_window_exceeded"];
const OVERFLOW_WORDS: [&str; 9] = [
    "context length",
    "context window",
    "context size",
    "maximum context",
    "too many tokens",
    "prompt is too long",
    "input is too long",
    "input token count",
    "reduce the length of",
];

/// The title of a page, or that it is one.
fn page_title(page: &str) -> String {
    let lower = page.to_ascii_lowercase();
    let title = lower.find("<title").and_then(|at| {
        let start = at + lower.get(at..)?.find('>')? + 1;
        let end = start + lower.get(start..)?.find('<')?;
        page.get(start..end).map(str::trim).filter(|title| !title.is_empty())
    });
    title.map_or_else(|| "a page of HTML".to_owned(), |title| format!("a page titled {title:?}"))
}

/// A server's words in one bounded line, without control characters.
pub(crate) fn one_line(text: &str) -> Option<String> {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    let line = words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MESSAGE_CHARS_MAX) {
        _ if line.is_empty() => None,
        Some((at, _)) => line.get(..at).map(|start| format!("{start}…")),
        None => Some(line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_read(body: &str, message: &str, failure: &Failure) {
        let refusal = Refusal::read(body);
        assert_eq!(refusal.message.as_deref().unwrap_or(""), message, "{body}");
        assert_eq!(&refusal.failure(None, None), failure, "{body}");
    }

    #[test]
    fn every_shape_of_an_error_body_gives_its_words() {
        let rejected = Failure::Rejected;
        for (body, message, failure) in [
            (
                r#"{"error":{"message":"m","type":"invalid_request_error","code":null}}"#,
                "m",
                &rejected,
            ),
            (
                r#"{"error":"model \"x\" not found"}"#,
                r#"model "x" not found"#,
                &Failure::ServerError,
            ),
            (
                r#"{"object":"error","message":"m","type":"BadRequestError","code":400}"#,
                "m",
                &rejected,
            ),
            (
                r#"{"detail":[{"loc":["body"],"msg":"field required"}]}"#,
                "field required",
                &Failure::ServerError,
            ),
            (r#"{"detail":"{\"error\":{\"message\":\"m\",\"code\":422}}"}"#, "m", &rejected),
            (
                r#"[{"error":{"code":400,"message":"m","status":"INVALID_ARGUMENT"}}]"#,
                "m",
                &rejected,
            ),
            (r#"{"errors":[{"message":"m"}]}"#, "m", &Failure::ServerError),
            (
                r#"{"error":{"message":"Provider returned error","code":502,"metadata":{"raw":"upstream died"}}}"#,
                "Provider returned error: upstream died",
                &Failure::ServerError,
            ),
            (
                "<html><head><TITLE>502 Bad Gateway</TITLE>",
                r#"a page titled "502 Bad Gateway""#,
                &Failure::ServerError,
            ),
            ("<!doctype html>", "a page of HTML", &Failure::ServerError),
            ("upstream timed out\n", "upstream timed out", &Failure::ServerError),
            ("", "", &Failure::ServerError),
            ("{}", "", &Failure::ServerError),
        ] {
            check_read(body, message, failure);
        }
    }

    #[test]
    fn a_context_that_is_too_long_is_known_in_every_dialect() {
        for body in [
            r#"{"error":{"message":"m","code":"context_length_exceeded"}}"#,
            r#"{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}"#,
            r#"{"object":"error","message":"This model's maximum context length is 4096 tokens.","code":400}"#,
            r#"{"error":{"message":"prompt is too long: 9 tokens > 8 maximum","type":"invalid_request_error"}}"#,
        ] {
            assert_eq!(Refusal::read(body).failure(Some(400), None), Failure::ContextOverflow);
        }
        assert_eq!(Refusal::default().failure(Some(413), None), Failure::ContextOverflow);
    }

    #[test]
    fn the_status_of_the_answer_decides_and_quota_is_not_a_rate() {
        let meaning = |status| Refusal::default().failure(Some(status), None);
        assert_eq!(meaning(401), Failure::Authentication);
        assert_eq!(meaning(403), Failure::Authentication);
        assert_eq!(meaning(402), Failure::QuotaUsedUp);
        assert_eq!(meaning(404), Failure::Rejected);
        assert_eq!(meaning(429), Failure::RateLimited { retry_after: None });
        assert_eq!(meaning(529), Failure::ServerError);
        let quota = Refusal::read(r#"{"error":{"message":"m","code":"insufficient_quota"}}"#);
        assert_eq!(quota.failure(Some(429), None), Failure::QuotaUsedUp);
    }

    #[test]
    fn words_are_one_bounded_line() {
        assert_eq!(one_line(" a\r\n\tb\u{1b}[31mc "), Some("a b [31mc".to_owned()));
        assert_eq!(one_line(" \n"), None);
        let long = one_line(&"é".repeat(MESSAGE_CHARS_MAX + 1)).expect("some");
        assert_eq!(long, "é".repeat(MESSAGE_CHARS_MAX) + "…");
    }
}
