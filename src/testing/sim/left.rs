//! What operations leave for the checks: what whoever began them was told.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::base::id::{SessionId, TurnId};
use crate::testing::sim::Played;

/// What is left, beyond every process.
#[derive(Clone, Debug, Default)]
pub(super) struct Shared(Arc<Mutex<Left>>);

#[derive(Debug, Default)]
pub(super) struct Left {
    pub(super) sessions: Vec<SessionId>,
    pub(super) messages: Vec<Message>,
    /// What somebody began to destroy.
    pub(super) doomed: Doomed,
    /// The sessions that were destroyed at once, as whoever wanted that was told.
    pub(super) purged: BTreeSet<SessionId>,
    /// How many batches were on their way to the disk when their process was killed.
    pub(super) torn: usize,
    pub(super) played: Played,
}

/// What may be gone for good.
#[derive(Debug, Default)]
pub(super) struct Doomed {
    /// With the turns that say that they are theirs.
    pub(super) sessions: BTreeSet<SessionId>,
    pub(super) turns: BTreeSet<TurnId>,
}

/// A message that somebody sent, or put.
#[derive(Clone, Debug)]
pub(super) struct Message {
    pub(super) text: String,
    pub(super) session: SessionId,
    pub(super) fate: Fate,
    /// How many have asked for it back and not heard what came of that.
    pub(super) asked_back: usize,
}

/// What whoever sent a message knows of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// Nothing yet, or never.
    Unknown,
    /// It became this turn.
    Turn(TurnId),
    /// It waited then.
    Waits,
    /// It was taken back.
    TakenBack,
    /// It was refused.
    Refused,
}

impl Fate {
    pub(super) fn of_turn(turn: &TurnId) -> Self {
        Self::Turn(turn.clone())
    }
}

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, Left> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Somebody is about to send a message; gives its number.
    pub(super) fn begin_message(
        &self,
        session: &SessionId,
        text: impl FnOnce(usize) -> String,
    ) -> (usize, String) {
        let mut left = self.lock();
        let number = left.messages.len();
        let text = text(number);
        let (session, fate) = (session.clone(), Fate::Unknown);
        left.messages.push(Message { text: text.clone(), session, fate, asked_back: 0 });
        (number, text)
    }

    pub(super) fn set_fate(&self, number: usize, fate: Fate) {
        if let Some(message) = self.lock().messages.get_mut(number) {
            message.fate = fate;
        }
    }

    /// Somebody asks for a message back.
    pub(super) fn ask_back(&self, text: &str) {
        self.change(text, |message| message.asked_back += 1);
    }

    /// It was taken back.
    pub(super) fn take_back(&self, text: &str) {
        self.change(text, |message| message.fate = Fate::TakenBack);
    }

    /// It was not.
    pub(super) fn leave(&self, text: &str) {
        self.change(text, |message| message.asked_back -= 1);
    }

    fn change(&self, text: &str, change: impl FnOnce(&mut Message)) {
        if let Some(message) = self.lock().messages.iter_mut().find(|it| it.text == text) {
            change(message);
        }
    }
}
