//! What turns told on the hub, to be compared with what stands in their logs.
#![expect(clippy::panic, reason = "a test fails where something else was told than recorded")]

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::base::id::TurnId;
use crate::domain::turn::event::TurnEvent;
use crate::domain::turn::live::{LiveEvent, News};
use crate::runtime::hub::{Received, Subscription};
use crate::testing::lines::line;

/// An event with its offset.
pub(super) type ToldEvent = (u64, Arc<TurnEvent>);

/// What was told of the turns since somebody subscribed, in order.
#[derive(Debug, Default)]
pub(super) struct Told(BTreeMap<TurnId, Vec<ToldEvent>>);

/// More was told than waits for a subscriber.
#[derive(Debug)]
pub(super) struct Lagged;

impl Told {
    /// Adds what has been told by now.
    ///
    /// # Errors
    /// [`Lagged`]; what is missing then is not known.
    pub(super) fn hear(&mut self, subscription: &Subscription) -> Result<(), Lagged> {
        while let Some(received) = subscription.try_next() {
            match received {
                Received::Event(LiveEvent {
                    turn, news: News::Recorded { offset, event }, ..
                }) => self.0.entry(turn).or_default().push((offset, event)),
                Received::Event(_) => {}
                Received::Lagged => return Err(Lagged),
            }
        }
        Ok(())
    }

    /// Each turn of which something was told, with that.
    pub(super) fn turns(&self) -> impl Iterator<Item = (&TurnId, &[ToldEvent])> {
        self.0.iter().map(|(turn, told)| (turn, told.as_slice()))
    }

    /// What was told of the turn is all that its log has behind the events that were `known` before.
    pub(super) fn check_whole(&self, turn: &TurnId, known: usize, stored: &[Arc<TurnEvent>]) {
        check(turn, self.of(turn), (known, stored));
    }

    /// As [`check_whole`](Self::check_whole), but more may have been recorded since.
    pub(super) fn check_begun(&self, turn: &TurnId, known: usize, stored: &[Arc<TurnEvent>]) {
        let told = self.of(turn);
        let until = stored.len().min(known + told.len());
        check(turn, told, (known, stored.get(..until).unwrap_or_default()));
    }

    fn of(&self, turn: &TurnId) -> &[ToldEvent] {
        self.0.get(turn).map_or(&[], Vec::as_slice)
    }
}

fn check(turn: &TurnId, told: &[ToldEvent], (known, stored): (usize, &[Arc<TurnEvent>])) {
    let recorded = (1..).zip(stored).skip(known);
    let recorded: Vec<ToldEvent> = recorded.map(|(offset, it)| (offset, Arc::clone(it))).collect();
    let lines = |events: &[ToldEvent]| {
        let lines = events.iter().map(|(offset, event)| format!("{offset} {}", line(event)));
        lines.collect::<Vec<_>>()
    };
    if *told != *recorded {
        assert_eq!(lines(told), lines(&recorded), "told of {turn}, and recorded");
        panic!("what was told of {turn} differs from what was recorded: {told:#?}, {recorded:#?}");
    }
}
