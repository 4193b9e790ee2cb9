//! A clock that moves only when a test moves it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::base::clock::{Clock, Timestamp};

/// Five minutes past five: after the previous turn of test logs, before their turn.
const START_MS: i64 = 1_772_600_700_000; // 2026-03-04T05:05:00Z

/// A clock that stands still until it is moved, the wall clock and the count of time alike.
#[derive(Debug, Default)]
pub struct HandClock {
    passed_ms: AtomicU64,
}

impl HandClock {
    /// A clock at its start.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Lets time pass.
    pub fn pass(&self, span: Duration) {
        let ms = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        self.passed_ms.fetch_add(ms, Ordering::Relaxed);
    }
}

impl Clock for HandClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_ms(START_MS).after(self.elapsed())
    }

    fn elapsed(&self) -> Duration {
        Duration::from_millis(self.passed_ms.load(Ordering::Relaxed))
    }
}
