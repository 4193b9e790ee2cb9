//! Random legal histories, for property tests. A history is written from a list of numbers, each
//! the choice among what is legal at its point, so that it shrinks by shrinking the list.

mod content;
mod session;
mod turn;

use proptest::prelude::*;

use crate::domain::session::event::SessionEvent;
use crate::domain::turn::event::TurnEvent;

/// The most choices that a turn is made from: enough for several batches of tool calls, few enough
/// to replay every prefix.
const TURN_CHOICES_MAX: usize = 600;
/// The same for a session, whose events take fewer choices.
const SESSION_CHOICES_MAX: usize = 120;

/// Legal turn logs: with every event type, cut at any place, and with every ending.
pub fn turn_history() -> impl Strategy<Value = Vec<TurnEvent>> {
    choices(TURN_CHOICES_MAX).prop_map(|choices| turn::write(&choices))
}

/// Legal session logs of both schema versions.
pub fn session_history() -> impl Strategy<Value = Vec<SessionEvent>> {
    choices(SESSION_CHOICES_MAX).prop_map(|choices| session::write(&choices))
}

fn choices(count_max: usize) -> impl Strategy<Value = Vec<u32>> {
    proptest::collection::vec(any::<u32>(), 0..count_max)
}

/// The choices that are left.
struct Choices<'a>(std::slice::Iter<'a, u32>);

impl<'a> Choices<'a> {
    fn new(choices: &'a [u32]) -> Self {
        Self(choices.iter())
    }

    fn are_spent(&self) -> bool {
        self.0.len() == 0
    }

    /// A number below `count`; 0 once the choices are spent.
    fn below(&mut self, count: usize) -> usize {
        let choice = self.0.next().copied().unwrap_or(0);
        usize::try_from(choice).unwrap_or(0) % count.max(1)
    }

    /// One time in `count`.
    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) + 1 == count
    }

    /// One of these.
    fn of<T: Clone>(&mut self, items: &[T]) -> T {
        let at = self.below(items.len());
        items.get(at).expect("something to choose from").clone()
    }

    /// `made`, or nothing.
    fn maybe<T>(&mut self, made: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.one_in(2) { Some(made(self)) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::strategy::ValueTree as _;
    use proptest::test_runner::TestRunner;

    use super::*;
    use crate::domain::event::{Event, Fact};
    use crate::domain::turn::apply::reduce_turn;

    /// How many histories are looked at, enough for the rarest event.
    const SAMPLES: usize = 400;

    fn samples<T>(strategy: &impl Strategy<Value = T>) -> Vec<T> {
        let mut runner = TestRunner::deterministic();
        let tree = |_| strategy.new_tree(&mut runner).expect("makes a value").current();
        (0..SAMPLES).map(tree).collect()
    }

    fn kinds<F: Fact>(histories: &[Vec<Event<F>>]) -> BTreeSet<&'static str> {
        histories.iter().flatten().map(|event| event.fact.kind()).collect()
    }

    #[test]
    fn turn_histories_hold_every_event_and_every_state() {
        let histories = samples(&turn_history());
        let statuses = histories.iter().map(|events| reduce_turn(events).expect("legal").status());
        let statuses: BTreeSet<_> = statuses.map(|status| status.to_string()).collect();
        assert_eq!(kinds(&histories).len(), 18);
        assert_eq!(statuses.len(), 5, "{statuses:?}");
    }

    #[test]
    fn session_histories_hold_every_event() {
        assert_eq!(kinds(&samples(&session_history())).len(), 8);
    }
}
