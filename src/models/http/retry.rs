//! When a request is asked again, and after how long.

use std::time::Duration;

use reqwest::header::HeaderMap;

use crate::base::clock::{Entropy, Timestamp};

/// How often and how patiently a request is asked again before its answer has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// How many times after the first.
    pub retries_max: u32,
    /// The first wait; each further one is twice as long.
    pub first_wait: Duration,
    /// No wait of our own is longer.
    pub longest_wait: Duration,
    /// A server that wants a longer wait than this is not waited for.
    pub server_wait_max: Duration,
}

impl Default for Patience {
    /// Five tries over about half a minute; a server's own wait up to two minutes, since rate
    /// limits are counted by the minute.
    fn default() -> Self {
        Self {
            retries_max: 4,
            first_wait: Duration::from_secs(1),
            longest_wait: Duration::from_secs(30),
            server_wait_max: Duration::from_mins(2),
        }
    }
}

impl Patience {
    /// How long to wait before retry number `retry` (from 0); `None` to give up. What the server
    /// asks for is kept to, else the wait is half fixed and half chance, so that clients that were
    /// refused together do not come back together.
    pub(crate) fn wait(
        &self,
        retry: u32,
        server: Option<Duration>,
        entropy: &dyn Entropy,
    ) -> Option<Duration> {
        if retry >= self.retries_max {
            return None;
        }
        if let Some(wait) = server {
            return (wait <= self.server_wait_max).then_some(wait);
        }
        let full = self.first_wait.saturating_mul(1 << retry.min(16));
        let half = full.min(self.longest_wait) / 2;
        let share = u32::try_from(entropy.bits() >> 48).unwrap_or(0);
        Some(half + half * share / (1 << 16))
    }
}

/// How long a server asks to be left alone: `retry-after-ms`, or `retry-after` in seconds or as a
/// date.
pub(crate) fn server_wait(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(ms) = text("retry-after-ms").and_then(|ms| ms.trim().parse::<f64>().ok()) {
        return Duration::try_from_secs_f64(ms / 1000.0).ok();
    }
    let after = text("retry-after")?.trim();
    if let Ok(seconds) = after.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = jiff::fmt::rfc2822::parse(after).ok()?;
    Some(Timestamp::from_ms(date.timestamp().as_millisecond()).since(now))
}

#[cfg(test)]
mod tests {
    use super::*;
    use reqwest::header::HeaderValue;

    struct Fixed(u64);
    impl Entropy for Fixed {
        fn bits(&self) -> u64 {
            self.0
        }
    }

    #[test]
    fn waits_double_up_to_the_longest_and_then_it_gives_up() {
        let patience = Patience { longest_wait: Duration::from_secs(3), ..Patience::default() };
        let waits = |bits| {
            (0..6).map(move |retry| patience.wait(retry, None, &Fixed(bits))).collect::<Vec<_>>()
        };
        let ms = |ms| Some(Duration::from_millis(ms));
        assert_eq!(waits(0), [ms(500), ms(1_000), ms(1_500), ms(1_500), None, None]);
        assert_eq!(waits(1 << 63), [ms(750), ms(1_500), ms(2_250), ms(2_250), None, None]);
    }

    #[test]
    fn a_server_is_obeyed_up_to_the_limit() {
        let wait =
            |server| Patience::default().wait(0, Some(Duration::from_secs(server)), &Fixed(0));
        assert_eq!(wait(120), Some(Duration::from_mins(2)));
        assert_eq!(wait(121), None);
    }

    #[test]
    fn every_way_to_ask_for_a_wait_is_read() {
        let now = "2015-10-21T07:27:30Z".parse().expect("a time");
        let wait = |name: &'static str, value: &'static str| {
            let headers = HeaderMap::from_iter([(
                name.parse().expect("a name"),
                HeaderValue::from_static(value),
            )]);
            server_wait(&headers, now)
        };
        assert_eq!(wait("retry-after", "12"), Some(Duration::from_secs(12)));
        assert_eq!(wait("retry-after", "0.5"), Some(Duration::from_millis(500)));
        assert_eq!(wait("retry-after-ms", "250"), Some(Duration::from_millis(250)));
        assert_eq!(
            wait("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT"),
            Some(Duration::from_secs(30))
        );
        assert_eq!(wait("retry-after", "Wed, 21 Oct 2015 07:27:00 GMT"), Some(Duration::ZERO));
        assert_eq!(wait("retry-after", "soon"), None);
        assert_eq!(wait("retry-after", "-1"), None);
        assert_eq!(wait("server", "x"), None);
    }
}
