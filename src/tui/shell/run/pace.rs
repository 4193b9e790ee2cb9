//! When frames are drawn: at once for a person who typed, else at most sixty times a second, and never
//! when nothing changed.

use std::time::Duration;

/// From one frame to the next while nothing is typed: sixty a second.
const FRAME_GAP: Duration = Duration::from_millis(16);

/// How soon a frame is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Wanted {
    /// Nothing changed.
    No,
    /// Something changed.
    Soon,
    /// A person waits for it.
    Now,
}

/// When the next frame is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pace {
    drawn_at: Option<Duration>,
    wanted: Wanted,
}

impl Pace {
    /// No frame yet, and one is wanted.
    pub(super) fn new() -> Self {
        Self { drawn_at: None, wanted: Wanted::Now }
    }

    /// Wants a frame.
    pub(super) fn want(&mut self, wanted: Wanted) {
        self.wanted = self.wanted.max(wanted);
    }

    /// When a frame has to be drawn; `None` if none is wanted.
    pub(super) fn due(self) -> Option<Duration> {
        let next = self.drawn_at.map_or(Duration::ZERO, |at| at + FRAME_GAP);
        match self.wanted {
            Wanted::No => None,
            Wanted::Soon => Some(next),
            Wanted::Now => Some(Duration::ZERO),
        }
    }

    /// Whether a frame is to be drawn now; if so it counts as drawn.
    pub(super) fn take(&mut self, now: Duration) -> bool {
        let is_time = self.due().is_some_and(|due| due <= now);
        if is_time {
            *self = Self { drawn_at: Some(now), wanted: Wanted::No };
        }
        is_time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn nothing_that_changed_draws_nothing() {
        let mut pace = Pace::new();
        assert!(pace.take(ms(0)));
        assert_eq!(pace.due(), None);
        assert!(!pace.take(ms(60_000)));
    }

    #[test]
    fn a_stream_is_drawn_at_most_sixty_times_a_second() {
        let mut pace = Pace::new();
        let frames = (0..1_000).filter(|&at| {
            pace.want(Wanted::Soon);
            pace.take(ms(at))
        });
        assert_eq!(frames.count(), 1_000 / 16 + 1);
    }

    #[test]
    fn a_key_is_drawn_at_once() {
        let mut pace = Pace::new();
        assert!(pace.take(ms(0)));
        pace.want(Wanted::Now);
        pace.want(Wanted::Soon);
        assert!(pace.take(ms(1)));
    }
}
