//! What goes into the session layer.

use std::path::PathBuf;

use crate::base::clock::Timestamp;
use crate::base::id::{EventId, SessionId, TurnId};
use crate::domain::agent::RequestedAgent;
use crate::domain::message::UserPart;
use crate::domain::session::event::Origin;
use crate::domain::turn::event::ReasoningEffort;
use crate::runtime::api::{Human, PermissionMode};
use crate::sessions::waiting::Source;

/// A session to be created; everything is optional.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewSession {
    /// Its title; the first message gives one otherwise.
    pub title: Option<String>,
    /// The folder in which its tools run.
    pub folder: SessionFolder,
    /// The session that it is spawned from.
    pub parent_session: Option<SessionId>,
    /// What it is, if it is not a conversation of a person's.
    pub origin: Option<Origin>,
    /// How many agents stand between it and a person.
    pub delegation_depth: Option<u64>,
    /// When it began, if that was long ago (imports). Its id and its place are of now.
    pub created_at: Option<Timestamp>,
}

/// The folder in which a session's tools run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SessionFolder {
    /// The one in which the program was started; recorded, so that it stays the same.
    #[default]
    Current,
    /// This one.
    At(PathBuf),
    /// One of its own below this one, named after the session. Whoever asks for it makes it.
    OwnIn(PathBuf),
}

/// How a message is to be answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendMessageConfig {
    /// Who is to answer.
    pub agent: RequestedAgent,
    /// Whether a classifier may allow what would else be asked.
    pub permission: PermissionMode,
    /// Whether there is a person to ask; there is, but for background jobs.
    pub human: Human,
    /// How many model calls the turn may make; the configured number without it.
    pub max_model_calls: Option<u64>,
    /// How hard the model is to think.
    pub reasoning_effort: Option<ReasoningEffort>,
}

impl SendMessageConfig {
    /// Answered by this agent, with a person there to ask.
    #[must_use]
    pub fn of(agent: RequestedAgent) -> Self {
        Self {
            agent,
            permission: PermissionMode::Manual,
            human: Human::Available,
            max_model_calls: None,
            reasoning_effort: None,
        }
    }
}

/// What became of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sent {
    /// It began this turn.
    Turn(TurnId),
    /// It waits, under this name.
    Waits(EventId),
}

/// A message that waits, as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingMessage {
    /// Its name.
    pub id: EventId,
    /// Where it comes from.
    pub source: Source,
    /// When it was put there.
    pub created_at: Timestamp,
    /// Its text.
    pub text: String,
    /// What goes with the text.
    pub attachments: Vec<UserPart>,
    /// Whether it goes only when the person says so.
    pub held: bool,
}

/// What waits in a session, or whether it is held, may have changed (`queue-changed`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueChanged {
    /// The session.
    pub session: SessionId,
}

/// Something was recorded of a session that comes from no turn: its name, where it was summed up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FactsChanged {
    /// The session.
    pub session: SessionId,
}
