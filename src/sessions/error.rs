//! What can keep the session layer from doing what it was asked.

use std::path::PathBuf;

use thiserror::Error;

use crate::base::id::{SessionId, ToolCallId, TurnId};
use crate::domain::turn::status::TurnStatus;
use crate::runtime::error::{AdvanceError, CreateError, ReadError};
use crate::sessions::aside::AsideError;
use crate::sessions::waiting::WaitingError;
use crate::store::error::StoreError;

/// Why a call of the session layer was not carried out.
#[derive(Debug, Error)]
pub enum SessionError {
    /// The latest turn has not ended: it runs, waits for somebody, or was interrupted; or the
    /// session is being compacted. Nothing is queued, steered or cancelled behind a person's back.
    #[error("{}", .standing.told_of(session))]
    TurnNotSettled {
        /// The session.
        session: SessionId,
        /// Its latest turn.
        turn: TurnId,
        /// What is under way.
        standing: Standing,
    },
    /// The turn is none of the session's.
    #[error("turn {turn} is not in session {session}")]
    NotInSession {
        /// The session.
        session: SessionId,
        /// The turn.
        turn: TurnId,
    },
    /// There is nothing to go on with.
    #[error("session {session} has no interrupted turn to go on with")]
    NothingToResume {
        /// The session.
        session: SessionId,
    },
    /// There is nothing to summarise: all of the session would be kept.
    #[error("session {0} has no older turns to summarise")]
    NothingToCompact(SessionId),
    /// The older turns were not summarised.
    #[error("session {session} was not summarised: {source}")]
    NoSummary {
        /// The session.
        session: SessionId,
        /// Why not.
        #[source]
        source: Box<AsideError>,
    },
    /// The session is being deleted.
    #[error(transparent)]
    BeingDeleted(#[from] BeingDeleted),
    /// A session cannot have the folder that it was to have.
    #[error(transparent)]
    Folder(#[from] NoFolder),
    /// It was not deleted, or its days are over.
    #[error("session {0} is not among the deleted ones")]
    NotDeleted(SessionId),
    /// Other sessions may need its turns.
    #[error(
        "it cannot be told which turns only session {session} has, so nothing was destroyed: {why}"
    )]
    Entangled {
        /// The session.
        session: SessionId,
        /// What cannot be read.
        why: String,
    },
    /// A standalone turn has no session to answer in.
    #[error("turn {0} belongs to no session")]
    NoSession(TurnId),
    /// The question's input asks nothing that a single answer fits.
    #[error("tool call {0} asks several questions; answer them one by one")]
    SeveralQuestions(ToolCallId),
    /// The call waits for a program, which no person's answer replaces.
    #[error("tool call {call} asks nobody; deliver the result of {tool:?} instead of an answer")]
    NoQuestion {
        /// The call.
        call: ToolCallId,
        /// Its tool, as the model knows it.
        tool: String,
    },
    /// A message that waits was not put, changed or delivered.
    #[error(transparent)]
    Waiting(#[from] WaitingError),
    /// The session's log cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A turn cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The turn was not created.
    #[error(transparent)]
    Create(#[from] CreateError),
    /// The turn did not take the input, or did not come to rest.
    #[error(transparent)]
    Advance(#[from] AdvanceError),
}

impl SessionError {
    /// Whether somebody stopped it, so that it is no trouble that it was not carried out.
    #[must_use]
    pub fn was_stopped(&self) -> bool {
        matches!(self, Self::NoSummary { source, .. } if matches!(**source, AsideError::Stopped))
    }
}

/// A header holds text, and a folder that means another place elsewhere is none.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{} cannot be the folder of a session; name an absolute one in UTF-8", .0.display())]
pub struct NoFolder(pub PathBuf);

/// Nothing new starts in a session that is being deleted.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("session {0} is being deleted")]
pub struct BeingDeleted(pub SessionId);

/// How a turn stands that has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is being advanced.
    Running,
    /// It rests.
    Resting(TurnStatus),
    /// It has ended, and what was said so far is being summarised.
    Compacting,
}

impl Standing {
    fn told_of(self, session: &SessionId) -> String {
        match self {
            Self::Running | Self::Resting(_) => format!(
                "the latest turn of session {session} has not ended ({self}); {}",
                self.advice()
            ),
            Self::Compacting => {
                format!("session {session} is {self}; {}", self.advice())
            }
        }
    }

    fn advice(self) -> &'static str {
        match self {
            Self::Compacting => "wait until that is done",
            Self::Running => "wait for it, or stop it",
            Self::Resting(TurnStatus::Suspended) => "answer what it waits for, or stop it",
            Self::Resting(_) => "resume it, or close it",
        }
    }
}

impl std::fmt::Display for Standing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Compacting => f.write_str("being summarised"),
            Self::Running => f.write_str("running"),
            Self::Resting(status) => status.fmt(f),
        }
    }
}
