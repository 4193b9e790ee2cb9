//! Messages: sent, put to wait, edited, taken back.

use std::sync::Arc;

use futures_util::FutureExt as _;

use crate::base::id::SessionId;
use crate::domain::agent::RequestedAgent;
use crate::domain::message::UserMessage;
use crate::runtime::api::{Human, PermissionMode};
use crate::sessions::Sessions;
use crate::sessions::api::{SendMessageConfig, Sent, WaitingMessage};
use crate::sessions::error::SessionError;
use crate::testing::agents::AGENT;
use crate::testing::seed::Seed;
use crate::testing::sim::Sim;
use crate::testing::sim::left::{Fate, Message, Shared};
use crate::testing::sim::operations::Work;

/// More than a compaction keeps as it is beside another turn.
const LONG_BYTES: usize = 33 * 1024;

impl Sim {
    /// Sends a message, strictly.
    pub(super) fn send(&self, sessions: Sessions, session: SessionId) -> Work {
        let (shared, config) = (self.shared.clone(), self.message_config());
        let (number, message) = self.message(&session);
        async move {
            let sent = sessions.send_message(&session, message, config).await;
            shared.set_fate(number, sent.as_ref().map_or(Fate::Refused, Fate::of_turn));
            sent.map(drop)
        }
        .boxed()
    }

    /// Sends a message or lets it wait.
    pub(super) fn queue(&self, sessions: Sessions, session: SessionId) -> Work {
        let (shared, config) = (self.shared.clone(), self.message_config());
        let (number, message) = self.message(&session);
        async move {
            let sent = sessions.send_or_queue(&session, message, config).await;
            let fate = match &sent {
                Ok(Sent::Turn(turn)) => Fate::of_turn(turn),
                Ok(Sent::Waits(_)) => Fate::Waits,
                Err(_) => Fate::Refused,
            };
            shared.set_fate(number, fate);
            sent.map(drop)
        }
        .boxed()
    }

    fn message_config(&self) -> SendMessageConfig {
        let seed = &self.odds.seed;
        SendMessageConfig {
            permission: if seed.chance(30) { PermissionMode::Auto } else { PermissionMode::Manual },
            human: if seed.chance(10) { Human::Unavailable } else { Human::Available },
            ..SendMessageConfig::of(RequestedAgent::by_id(AGENT))
        }
    }

    fn message(&self, session: &SessionId) -> (usize, Arc<UserMessage>) {
        let length = if self.odds.seed.chance(25) { LONG_BYTES } else { 0 };
        let text = |number| format!("Message {number}.{}", "x".repeat(length));
        let (number, text) = self.shared.begin_message(session, text);
        (number, Arc::new(UserMessage::text(&text)))
    }
}

async fn one_that_waits(
    sessions: &Sessions,
    session: &SessionId,
    seed: &Seed,
) -> Result<Option<WaitingMessage>, SessionError> {
    let mut waiting = sessions.waiting_messages(session).await?;
    let at = seed.below(waiting.len());
    Ok((at < waiting.len()).then(|| waiting.swap_remove(at)))
}

/// Takes one of the messages back that wait.
pub(super) async fn take_back(
    sessions: Sessions,
    session: SessionId,
    seed: Seed,
    shared: Shared,
) -> Result<(), SessionError> {
    let Some(message) = one_that_waits(&sessions, &session, &seed).await? else { return Ok(()) };
    shared.ask_back(&message.text);
    match sessions.take_back(&session, &message.id).await {
        Ok(taken) => shared.take_back(&taken.text),
        Err(error) => {
            shared.leave(&message.text);
            return Err(error);
        }
    }
    Ok(())
}

/// Gives one of the messages that wait another text.
pub(super) async fn edit(
    sessions: Sessions,
    session: SessionId,
    seed: Seed,
    shared: Shared,
) -> Result<(), SessionError> {
    let Some(message) = one_that_waits(&sessions, &session, &seed).await? else { return Ok(()) };
    let Some(number) = Message::number_of(&message.text) else { return Ok(()) };
    let text = format!("Message {number}.Edited {}.", seed.below(1_000_000));
    shared.begin_edit(&message.text, &text);
    match sessions.edit_waiting(&session, &message.id, &text).await {
        Ok(()) => shared.edited(&text),
        Err(error) => {
            shared.not_edited(&text);
            return Err(error);
        }
    }
    Ok(())
}
