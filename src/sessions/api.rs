//! What goes into the session layer.

use std::path::PathBuf;

use crate::base::clock::Timestamp;
use crate::base::id::SessionId;
use crate::domain::agent::RequestedAgent;
use crate::domain::session::event::Origin;
use crate::domain::turn::event::ReasoningEffort;
use crate::runtime::api::{Human, PermissionMode};

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
