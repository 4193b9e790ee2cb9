//! What operations leave for the checks: what whoever began them was told.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::base::id::{SessionId, TurnId};
use crate::testing::sim::Played;
use crate::testing::sim::absence::{Absences, Since};

/// What is left, beyond every process.
#[derive(Clone, Debug, Default)]
pub(super) struct Shared(Arc<Mutex<Left>>);

#[derive(Debug, Default)]
pub(super) struct Left {
    pub(super) sessions: Vec<SessionId>,
    pub(super) messages: Vec<Message>,
    /// The grants that were given, as whoever gave them was told, by their ids.
    pub(super) grants: BTreeMap<String, Grant>,
    /// What somebody began to destroy.
    pub(super) doomed: Doomed,
    /// Which sessions may be missing.
    pub(super) absences: Absences,
    /// The turns that were collected.
    pub(super) collected: BTreeSet<TurnId>,
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
    /// What it may say: one text, unless it is not known what came of an edit.
    pub(super) texts: BTreeSet<String>,
    pub(super) session: SessionId,
    pub(super) fate: Fate,
    /// How many have asked for it back and not heard what came of that.
    pub(super) asked_back: usize,
    /// How many have edited it and not heard what came of that.
    pub(super) edits: usize,
    /// Whether that was done at the same time: which came last is not known.
    pub(super) is_contested: bool,
}

/// A grant that was given.
#[derive(Clone, Debug)]
pub(super) struct Grant {
    pub(super) session: SessionId,
    pub(super) removal: Removal,
}

/// What became of taking a grant back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Removal {
    None,
    Begun,
    Done,
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

impl Message {
    /// The number of the message that says this, whatever it said before.
    pub(super) fn number_of(text: &str) -> Option<usize> {
        text.strip_prefix("Message ")?.split_once('.')?.0.parse().ok()
    }
}

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, Left> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a session may have been missing, or was doomed, at any moment since then.
    pub(super) fn may_have_been_gone(&self, since: &Since) -> bool {
        let left = self.lock();
        left.absences.was_absent(since) || left.doomed.sessions.contains(since.session())
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
        let texts = BTreeSet::from([text.clone()]);
        left.messages.push(Message {
            texts,
            session,
            fate,
            asked_back: 0,
            edits: 0,
            is_contested: false,
        });
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

    /// Somebody begins to edit the message that says `was`.
    pub(super) fn begin_edit(&self, was: &str, text: &str) {
        self.change(was, |message| {
            message.is_contested = message.edits > 0;
            message.edits += 1;
            message.texts.insert(text.to_owned());
        });
    }

    /// It was not edited.
    pub(super) fn not_edited(&self, text: &str) {
        self.change(text, |message| {
            message.edits -= 1;
            message.texts.remove(text);
        });
    }

    /// It was edited.
    pub(super) fn edited(&self, text: &str) {
        self.change(text, |message| {
            message.edits -= 1;
            if message.edits == 0 && !message.is_contested {
                message.texts.retain(|it| it == text);
            }
        });
    }

    /// A grant was given.
    pub(super) fn added_grant(&self, session: &SessionId, grant: String) {
        let known = Grant { session: session.clone(), removal: Removal::None };
        self.lock().grants.insert(grant, known);
    }

    /// Somebody begins to take one of a session's grants back, if one stands.
    pub(super) fn begin_removal(&self, session: &SessionId) -> Option<String> {
        let mut left = self.lock();
        let stands = |grant: &Grant| grant.session == *session && grant.removal == Removal::None;
        let (id, grant) = left.grants.iter_mut().find(|(_, grant)| stands(grant))?;
        grant.removal = Removal::Begun;
        Some(id.clone())
    }

    /// It was taken back.
    pub(super) fn removed_grant(&self, grant: &str) {
        if let Some(grant) = self.lock().grants.get_mut(grant) {
            grant.removal = Removal::Done;
        }
    }

    fn change(&self, text: &str, change: impl FnOnce(&mut Message)) {
        let mut left = self.lock();
        let message = Message::number_of(text).and_then(|at| left.messages.get_mut(at));
        if let Some(message) = message {
            change(message);
        }
    }
}
