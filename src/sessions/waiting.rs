//! What keeps the messages that wait to be delivered in a session (`design/mailbox.md`). Which of them
//! may go by themselves is not kept: that is the session layer's, and ends with the process.

pub mod memory;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use thiserror::Error;

use crate::base::clock::Timestamp;
use crate::base::id::{EventId, SessionId};
use crate::domain::message::UserMessage;
use crate::sessions::api::SendMessageConfig;
use crate::store::error::{FileError, IoFailure};
use crate::store::log::Removed;

/// A message that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Its name for good: the turn that carries it says so (`userMessageContext.eventIds`).
    pub id: EventId,
    /// Where it comes from.
    pub source: Source,
    /// When it was put there.
    pub created_at: Timestamp,
    /// What is said, without circumstances: those are of the moment at which it is delivered.
    pub message: Arc<UserMessage>,
    /// How it is to be answered, should it become a turn of its own; as the turn before it without.
    pub config: Option<SendMessageConfig>,
}

/// Where a message comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Somebody typed it in a terminal.
    Terminal,
    /// Another program, by its name.
    Other(String),
}

/// Everything undelivered of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Undelivered {
    /// What waits, oldest first.
    pub waiting: Vec<Item>,
    /// What was claimed for a turn and neither confirmed nor given back, oldest first.
    pub claimed: Vec<Item>,
    /// How many stand among them that are no messages, and wait to be moved out of the way.
    pub misfits: usize,
}

impl Undelivered {
    /// How many messages these are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.waiting.len() + self.claimed.len()
    }
}

/// Keeps messages until they are delivered. What a call has done is durable when it returns; a call
/// that fails leaves every message where it was, or claimed.
#[async_trait]
pub trait Waiting: fmt::Debug + Send + Sync {
    /// Puts a message behind those that wait.
    ///
    /// # Errors
    /// [`WaitingError::TooLong`], [`WaitingError::File`].
    async fn put(&self, session: &SessionId, item: &Item) -> Result<(), WaitingError>;

    /// All that is undelivered. Never writes.
    ///
    /// # Errors
    /// [`WaitingError::File`].
    async fn look(&self, session: &SessionId) -> Result<Undelivered, WaitingError>;

    /// Gives a message that waits another text.
    ///
    /// # Errors
    /// [`WaitingError::Claimed`], [`WaitingError::Gone`], and as [`put`](Self::put).
    async fn edit(
        &self,
        session: &SessionId,
        event: &EventId,
        text: &str,
    ) -> Result<(), WaitingError>;

    /// Takes a message back that waits.
    ///
    /// # Errors
    /// [`WaitingError::Claimed`], [`WaitingError::Gone`], [`WaitingError::File`].
    async fn take_back(&self, session: &SessionId, event: &EventId) -> Result<Item, WaitingError>;

    /// Claims messages for a turn: they wait no longer, but are kept until they are confirmed or
    /// given back.
    ///
    /// # Errors
    /// As [`take_back`](Self::take_back); some of them may be claimed then.
    async fn claim(&self, session: &SessionId, events: &[EventId]) -> Result<(), WaitingError>;

    /// What was claimed stands in the log of a turn: it goes.
    ///
    /// # Errors
    /// [`WaitingError::File`].
    async fn confirm(&self, session: &SessionId, events: &[EventId]) -> Result<(), WaitingError>;

    /// What was claimed waits again, in its old place.
    ///
    /// # Errors
    /// [`WaitingError::File`].
    async fn give_back(&self, session: &SessionId, events: &[EventId]) -> Result<(), WaitingError>;

    /// Moves out of the way what is no message, and removes what writers that died have left. Gives
    /// what was moved.
    ///
    /// # Errors
    /// [`WaitingError::File`].
    async fn tidy(&self, session: &SessionId) -> Result<Vec<Rejected>, WaitingError>;

    /// Those of the sessions in which something may be undelivered.
    ///
    /// # Errors
    /// [`WaitingError::File`].
    async fn among(&self, sessions: &[SessionId]) -> Result<Vec<SessionId>, WaitingError>;

    /// Moves all that is kept of a session to where its removed log is, beside what is there already.
    ///
    /// # Errors
    /// [`WaitingError::File`]; all is where it was.
    async fn set_aside(&self, session: &SessionId, removed: &Removed) -> Result<(), WaitingError>;

    /// Moves it back, if there is anything. Asked before the log is restored.
    ///
    /// # Errors
    /// [`WaitingError::File`]; all is where it was.
    async fn bring_back(&self, session: &SessionId, removed: &Removed) -> Result<(), WaitingError>;
}

/// What stood among the messages of a session and is none, so that it was moved out of the way.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("what waited to be sent cannot be read ({why}); it is kept in {}", path.display())]
pub struct Rejected {
    /// Where it is now.
    pub path: PathBuf,
    /// Why it is no message.
    pub why: String,
}

/// Why a message that waits was not put, changed or delivered.
#[derive(Clone, Debug, Error)]
pub enum WaitingError {
    /// It was claimed for a turn.
    #[error("message {0} is on its way already")]
    Claimed(EventId),
    /// It was delivered or taken back.
    #[error("message {0} does not wait any more")]
    Gone(EventId),
    /// Nothing says who is to answer it.
    #[error("message {0} does not say who is to answer, and no turn before it does")]
    NoAgent(EventId),
    /// It is too long to wait.
    #[error(
        "a message of {bytes} bytes cannot wait, only one of {bytes_max}; send it when the turn has ended"
    )]
    TooLong {
        /// How long it is, as it would be kept.
        bytes: usize,
        /// The most that is kept.
        bytes_max: usize,
    },
    /// Another program is changing the messages of the session, and does not end.
    #[error("{} is locked by another program; try again", .0.display())]
    Locked(PathBuf),
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
}

impl From<IoFailure> for WaitingError {
    fn from(failure: IoFailure) -> Self {
        Self::File(failure.into())
    }
}
