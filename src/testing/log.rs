//! Logs written event by event, for tests that begin with a history.

use crate::base::clock::Timestamp;
use crate::base::id::{SessionId, TurnId};
use crate::domain::event::{Event, Fact};
use crate::domain::session::apply::reduce_session;
use crate::domain::session::event::{SessionCreated, SessionFact};
use crate::domain::session::state::SessionState;
use crate::domain::turn::apply::reduce_turn;
use crate::domain::turn::event::TurnFact;
use crate::domain::turn::state::TurnState;

/// The turn that test logs are about.
pub const TURN: &str = "2026-03-04T05-06-07Z-0000042-000";
/// The turn before it.
pub const PREVIOUS_TURN: &str = "2026-03-04T05-00-00Z-0000042-000";
/// The session that both belong to.
pub const SESSION: &str = "2026-03-04T04-59-59Z-0000042-000";

/// A log that grows by one event at a time, each a millisecond after the one before.
#[derive(Clone, Debug)]
pub struct Log<F: Fact> {
    id: F::Id,
    events: Vec<Event<F>>,
}

impl<F: Fact> Log<F>
where
    F::Id: Clone,
{
    /// A log without events.
    #[must_use]
    pub fn empty(id: F::Id) -> Self {
        Self { id, events: Vec::new() }
    }

    /// The same log with one more event.
    #[must_use]
    pub fn then(mut self, fact: F) -> Self {
        self.push(fact);
        self
    }

    /// Adds an event.
    pub fn push(&mut self, fact: F) {
        self.events.push(self.next(fact));
    }

    /// The event that `fact` would be, were it added now.
    #[must_use]
    pub fn next(&self, fact: F) -> Event<F> {
        Event { id: self.id.clone(), ts: moment(self.events.len() + 1), fact }
    }

    /// All events.
    #[must_use]
    pub fn events(&self) -> &[Event<F>] {
        &self.events
    }

    /// All events, to keep.
    #[must_use]
    pub fn into_events(self) -> Vec<Event<F>> {
        self.events
    }
}

impl Log<TurnFact> {
    /// A turn that began with `created` (see [`fact::created`](super::fact::created)).
    #[must_use]
    pub fn turn(created: TurnFact) -> Self {
        Self::empty(TurnId::from(TURN)).then(created)
    }

    /// What the log amounts to.
    ///
    /// # Panics
    /// When the log is refused.
    #[must_use]
    pub fn state(&self) -> TurnState {
        reduce_turn(&self.events).expect("the log is legal")
    }
}

impl Log<SessionFact> {
    /// A session that began with this header.
    #[must_use]
    pub fn session(header: SessionCreated) -> Self {
        Self::empty(SessionId::from(SESSION)).then(SessionFact::Created(header.into()))
    }

    /// What the log amounts to.
    ///
    /// # Panics
    /// When the log is refused.
    #[must_use]
    pub fn state(&self) -> SessionState {
        reduce_session(&self.events).expect("the log is legal")
    }
}

/// The time of the `number`th event (from 1) of every test log.
#[must_use]
pub fn moment(number: usize) -> Timestamp {
    const START_MS: i64 = 1_772_600_767_000; // 2026-03-04T05:06:07Z
    Timestamp::from_ms(START_MS + i64::try_from(number).unwrap_or(0))
}
