//! Ids of what comes into a session from outside: UUIDs of version 7, which sort by their time.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use uuid::{Builder, Uuid};

use crate::base::clock::{Clock, Entropy};
use crate::base::id::EventId;

/// The counter within a millisecond has twelve bits; after it the next millisecond is taken.
const COUNTER_MAX: u16 = 0x0fff;

impl EventId {
    /// Whether it has the form of an id of ours, so that a path may be made of it.
    #[must_use]
    pub fn is_well_formed(&self) -> bool {
        let parsed = Uuid::try_parse(self.as_str());
        // One spelling only: two names of one id would be two messages.
        parsed.is_ok_and(|id| {
            id.get_version_num() == 7 && id.hyphenated().to_string() == self.as_str()
        })
    }
}

/// Makes event ids that never repeat, and never go backwards within a process.
pub struct EventIds {
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    last: Mutex<(u64, u16)>,
}

impl EventIds {
    /// Ids stamped with `clock`.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>, entropy: Arc<dyn Entropy>) -> Self {
        Self { clock, entropy, last: Mutex::new((0, 0)) }
    }

    /// The next id.
    pub fn next(&self) -> EventId {
        let now = u64::try_from(self.clock.now().ms()).unwrap_or(0);
        let (ms, counter) = {
            let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
            *last = match *last {
                (ms, _) if now > ms => (now, 0),
                (ms, COUNTER_MAX) => (ms + 1, 0),
                (ms, counter) => (ms, counter + 1),
            };
            *last
        };
        let mut bytes = [0; 10];
        let (first, rest) = bytes.split_at_mut(2);
        first.copy_from_slice(&counter.to_be_bytes());
        rest.copy_from_slice(&self.entropy.bits().to_be_bytes());
        let id = Builder::from_unix_timestamp_millis(ms, &bytes).into_uuid();
        EventId::from(id.hyphenated().to_string())
    }
}

impl fmt::Debug for EventIds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventIds").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::clock::HandClock;
    use crate::testing::store::{CountingEntropy, StillClock};
    use std::time::Duration;

    #[test]
    fn ids_rise_within_a_millisecond_and_beyond_its_counter() {
        let ids = EventIds::new(Arc::new(StillClock), Arc::<CountingEntropy>::default());
        let made: Vec<_> = (0..10_000).map(|_| ids.next()).collect();
        assert_eq!(made[0].as_str(), "019a7133-74c8-7000-8000-000000000000");
        assert!(made.is_sorted_by(|a, b| a < b));
        assert!(made.iter().all(EventId::is_well_formed));
    }

    #[test]
    fn a_later_id_of_another_process_is_greater() {
        let clock = HandClock::new();
        let ids = || {
            let clock = Arc::<HandClock>::clone(&clock);
            EventIds::new(clock, Arc::<CountingEntropy>::default())
        };
        let first = ids().next();
        clock.pass(Duration::from_millis(1));
        assert!(ids().next() > first);
    }

    #[test]
    fn what_is_no_id_of_ours_makes_no_path() {
        for text in [
            "",
            "..",
            "019A7135-A508-7001-8000-000000000000",
            "019a7135a508700180000000000000000",
            "019a7135-a508-4001-8000-000000000000",
            "{019a7135-a508-7001-8000-000000000000}",
            "019a7135-a508-7001-8000-000000000000/..",
        ] {
            assert!(!EventId::from(text).is_well_formed(), "{text:?}");
        }
    }
}
