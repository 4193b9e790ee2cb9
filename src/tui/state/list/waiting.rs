//! The calls of all sessions that wait for a person, the oldest first, kept from the index entries.

use std::collections::BTreeSet;

use crate::base::clock::Timestamp;
use crate::base::id::{SessionId, ToolCallId, TurnId};
use crate::domain::session::entry::{SessionIndexEntry, WaitingKind};

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WaitingCalls {
    calls: BTreeSet<WaitingCall>,
}

/// A call that waits for a person.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WaitingCall {
    /// Since when.
    pub since: Timestamp,
    /// Its session.
    pub session: SessionId,
    /// Its turn.
    pub turn: TurnId,
    /// Its place among the calls of one answer: the order in which they are asked.
    pub place: usize,
    /// The call.
    pub call: ToolCallId,
    /// Whether it waits for an answer, else for a decision.
    pub is_question: bool,
    /// The name of its tool.
    pub tool: String,
    /// What it wants, in one line.
    pub wants: String,
}

impl WaitingCalls {
    /// All of them, the oldest first.
    #[must_use]
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &WaitingCall> {
        self.calls.iter()
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.calls.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// The call under a cursor: the selected one, what took its place when it is no longer there,
    /// or the first while none is.
    #[must_use]
    pub fn cursor(&self, selected: Option<&WaitingCall>) -> Option<&WaitingCall> {
        match selected {
            Some(call) => self.calls.range(call..).next().or_else(|| self.calls.last()),
            None => self.calls.first(),
        }
    }

    /// The first that comes after a call, in order.
    #[must_use]
    pub fn after(&self, call: &WaitingCall) -> Option<&WaitingCall> {
        let behind = (std::ops::Bound::Excluded(call), std::ops::Bound::Unbounded);
        self.calls.range::<WaitingCall, _>(behind).next()
    }

    /// The last that comes before a call, in order.
    #[must_use]
    pub fn before(&self, call: &WaitingCall) -> Option<&WaitingCall> {
        self.calls.range(..call).next_back()
    }

    pub(super) fn insert_of(&mut self, entry: &SessionIndexEntry) {
        self.calls.extend(calls_of(entry));
    }

    pub(super) fn remove_of(&mut self, entry: &SessionIndexEntry) {
        for call in calls_of(entry) {
            self.calls.remove(&call);
        }
    }
}

fn calls_of(entry: &SessionIndexEntry) -> impl Iterator<Item = WaitingCall> {
    entry.waiting.iter().map(|call| WaitingCall {
        since: call.since,
        session: entry.session_id.clone(),
        turn: call.turn.clone(),
        place: call.place,
        call: call.call.clone(),
        is_question: call.kind == WaitingKind::Question,
        tool: call.tool.clone(),
        wants: call.wants.clone(),
    })
}
