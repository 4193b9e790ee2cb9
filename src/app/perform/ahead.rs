//! The one place of the calls that the floors below do not offer yet: each refuses, or does what
//! there is in its place.

#![expect(clippy::unused_async, reason = "what they stand for takes its time")]

use std::sync::Arc;

use crate::app::notice::UnsentMessage;
use crate::base::id::{EventId, SessionId, TurnId};
use crate::domain::message::UserMessage;
use crate::models::request::ModelRequest;
use crate::runtime::TurnRuntime;
use crate::sessions::Sessions;
use crate::sessions::api::SendMessageConfig;
use crate::sessions::error::SessionError;

/// It is not offered yet.
#[derive(Debug, thiserror::Error)]
#[error("not yet")]
pub(in crate::app) struct NotYet;

/// Sends a message, or lets it wait: then there is no turn.
pub(super) async fn send_or_queue(
    sessions: &Sessions,
    session: &SessionId,
    message: Arc<UserMessage>,
    config: SendMessageConfig,
) -> Result<Option<TurnId>, SessionError> {
    sessions.send_message(session, message, config).await.map(Some)
}

/// What waits in a session, the oldest first.
pub(in crate::app) async fn waiting_messages(
    sessions: &Sessions,
    session: &SessionId,
) -> Result<Vec<UnsentMessage>, SessionError> {
    sessions.get_session(session).await.map(|_| Vec::new())
}

/// Takes a message back that waits.
pub(super) async fn take_back(
    _sessions: &Sessions,
    _session: &SessionId,
    _event: &EventId,
) -> Result<(), NotYet> {
    Err(NotYet)
}

/// Lets go what is held.
pub(super) async fn send_waiting(_sessions: &Sessions, _session: &SessionId) -> Result<(), NotYet> {
    Err(NotYet)
}

/// Tells in which session something else waits.
pub(in crate::app) struct QueueChanges;

impl QueueChanges {
    /// Follows from now on.
    pub(in crate::app) fn of(_sessions: &Sessions) -> Self {
        Self
    }

    /// The next session; none when some were missed, and any may be it.
    pub(in crate::app) async fn next(&mut self) -> Option<SessionId> {
        std::future::pending().await
    }
}

/// Forks a session at one of its turns, or before the first.
pub(super) async fn fork_session(
    _sessions: &Sessions,
    _session: &SessionId,
    _at: Option<&TurnId>,
) -> Result<SessionId, NotYet> {
    Err(NotYet)
}

/// Puts a session away, or gets it back.
pub(super) async fn set_archived(
    _sessions: &Sessions,
    _session: &SessionId,
    _archived: bool,
) -> Result<(), NotYet> {
    Err(NotYet)
}

/// Sums up what was said in a session.
pub(super) async fn compact(_sessions: &Sessions, _session: &SessionId) -> Result<(), NotYet> {
    Err(NotYet)
}

/// Exactly what was sent with a model call of a turn.
pub(super) async fn request_of(
    _runtime: &TurnRuntime,
    _turn: &TurnId,
    _model_call: u64,
) -> Result<ModelRequest, NotYet> {
    Err(NotYet)
}

/// Destroys a session, with the turns that nothing else reaches.
pub(in crate::app) async fn purge_session(
    _sessions: &Sessions,
    _session: &SessionId,
) -> Result<(), NotYet> {
    Err(NotYet)
}
