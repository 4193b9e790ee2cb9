//! How messages that wait are delivered: one becomes the next turn when the one before has completed,
//! or those that were typed meanwhile are taken into the turn that runs. What is on its way is
//! claimed; a claim of which nobody knows what became of it is settled by what the logs say.

use std::collections::HashSet;
use std::path::PathBuf;

use async_trait::async_trait;

use crate::base::id::{EventId, SessionId, TurnId};
use crate::domain::session::state::SessionState;
use crate::domain::turn::state::{TerminalKind, TurnState};
use crate::runtime::api::{Claimed, Human, PermissionMode, TakeInputs};
use crate::sessions::Sessions;
use crate::sessions::api::SendMessageConfig;
use crate::sessions::circumstances::{delivered, event_ids};
use crate::sessions::error::SessionError;
use crate::sessions::waiting::{Item, WaitingError};

/// How many turns are looked at for a message at least, whatever the clock said when they began.
const TURNS_LOOKED_AT_MIN: usize = 4;

impl Sessions {
    /// A turn of the session has come to rest: if it has completed, the next message that waits
    /// becomes a turn; if it ended otherwise, what waits is held; and what is to be done unasked
    /// begins. A turn that rests without having ended changes nothing, and an interrupted one is
    /// never gone on with.
    pub(super) async fn after_rest(&self, session: &SessionId, turn: &TurnState) {
        let Some(terminal) = &turn.terminal else { return };
        let _lock = self.locks.lock(session).await;
        if self.closing.check(session).is_err() {
            return;
        }
        let state = match self.get_session(session).await {
            Ok(state) => state,
            Err(error) => {
                tracing::warn!(%session, %error, "nothing more is delivered");
                return self.hold_back(session, error.to_string()).await;
            }
        };
        self.name_unasked(session, turn);
        // The next turn has begun already, and is heard of by itself.
        if state.latest().is_none_or(|latest| latest.id != turn.id) {
            return;
        }
        self.compact_unasked(session, turn);
        match terminal.kind {
            // What waits is delivered when that is over.
            TerminalKind::Completed(_) if self.compacting.is_under_way(session) => {}
            TerminalKind::Completed(_) => {
                if let Err(error) = self.deliver_next(&state).await {
                    tracing::warn!(%session, %error, "a message that waits was not delivered");
                }
            }
            TerminalKind::Failed(_) | TerminalKind::Cancelled(_) => self.queue.hold(session),
        }
    }

    /// A turn of the session has come to rest, and cannot be read to see how: what waits is held.
    pub(super) async fn after_unknown_rest(&self, session: &SessionId, why: String) {
        let _lock = self.locks.lock(session).await;
        if self.closing.check(session).is_ok() {
            self.hold_back(session, why).await;
        }
    }

    /// Delivers what waited for something that broke off, if nothing else is to do that.
    pub(super) async fn deliver_what_waited(&self, session: &SessionId) {
        let _lock = self.locks.lock(session).await;
        if self.closing.check(session).is_err() || self.compacting.is_under_way(session) {
            return;
        }
        if let Err(error) = self.deliver_if_ended(session).await {
            tracing::warn!(%session, %error, "a message that waits was not delivered");
            self.hold_back(session, error.to_string()).await;
        }
    }

    async fn deliver_if_ended(&self, session: &SessionId) -> Result<(), SessionError> {
        let state = self.get_session(session).await?;
        if self.has_ended(&state).await? {
            self.deliver_next(&state).await?;
        }
        Ok(())
    }

    /// Makes the next turn of the first message that waits, unless that is held. Called under the
    /// session's lock, when the latest turn has ended. What cannot be delivered is held, and all
    /// behind it: nothing comes back to it by itself.
    pub(super) async fn deliver_next(&self, session: &SessionState) -> Result<(), SessionError> {
        let item = match self.claim_next(&session.id).await {
            Ok(Some(item)) => item,
            Ok(None) => return Ok(()),
            Err(error) => {
                self.hold_back(&session.id, error.to_string()).await;
                return Err(error);
            }
        };
        match self.deliver(session, &item).await {
            Ok(_) => {
                self.confirm(&session.id, &[item.id]).await;
                Ok(())
            }
            Err(error) => {
                self.settle_failed(&session.id, &[item], error.to_string()).await;
                Err(error)
            }
        }
    }

    async fn claim_next(&self, session: &SessionId) -> Result<Option<Item>, SessionError> {
        let _queue = self.lock_queue(session).await?;
        let mut waiting = self.look_at_queue(session).await?.waiting.into_iter();
        let Some(first) = waiting.next() else { return Ok(None) };
        if !self.queue.with(session, |known| known.loose.contains(&first.id)) {
            return Ok(None);
        }
        self.claim(session, std::slice::from_ref(&first.id)).await?;
        // The turn that begins takes in what is typed from now on, not these.
        self.queue.with(session, |known| known.next_turns = waiting.map(|item| item.id).collect());
        Ok(Some(first))
    }

    async fn deliver(&self, session: &SessionState, item: &Item) -> Result<TurnId, SessionError> {
        let config = match &item.config {
            Some(config) => config.clone(),
            None => self.config_before(session, item).await?,
        };
        let (now, folder) = (self.parts.clock.now(), self.folder_of(session));
        let input = delivered(item, now, &self.parts.zone, &folder);
        self.start_turn(session, input, config).await
    }

    /// How a message is answered that does not say so: as the one before it.
    async fn config_before(
        &self,
        session: &SessionState,
        item: &Item,
    ) -> Result<SendMessageConfig, SessionError> {
        let no_agent = || WaitingError::NoAgent(item.id.clone());
        let latest = session.latest().ok_or_else(no_agent)?;
        let definition = self.parts.turns.get_turn(&latest.id).await?.state.definition;
        let config = &definition.config;
        Ok(SendMessageConfig {
            agent: definition.agent.requested.clone(),
            permission: PermissionMode::of(config.auto_permission),
            human: Human::of(config.human_available),
            max_model_calls: None,
            reasoning_effort: config.reasoning_effort,
        })
    }

    /// Claims what the running turn may take in: all that was typed since it began. What waited
    /// before comes first, and has turns of its own.
    async fn claim_typed(&self, session: &SessionId) -> Result<Vec<Item>, SessionError> {
        let _queue = self.lock_queue(session).await?;
        let mut items = self.look_at_queue(session).await?.waiting;
        self.queue.with(session, |known| {
            let may_go = |item: &&Item| {
                known.loose.contains(&item.id) && !known.next_turns.contains(&item.id)
            };
            let count = items.iter().take_while(may_go).count();
            items.truncate(count);
        });
        let ids: Vec<_> = items.iter().map(|item| item.id.clone()).collect();
        if !ids.is_empty() {
            self.claim(session, &ids).await?;
        }
        Ok(items)
    }

    async fn claim(&self, session: &SessionId, ids: &[EventId]) -> Result<(), SessionError> {
        let claimed = self.parts.waiting.claim(session, ids).await;
        if claimed.is_err() {
            // Some of them may be.
            self.unsettle(session);
        }
        self.queue_changed(session).await;
        Ok(claimed?)
    }

    /// The log of a turn has these.
    async fn confirm(&self, session: &SessionId, ids: &[EventId]) {
        let _queue = self.queue.lock(session).await;
        if let Err(error) = self.parts.waiting.confirm(session, ids).await {
            tracing::warn!(%session, %error, "what was delivered is still kept");
            self.unsettle(session);
        }
        self.queue.with(session, |known| known.last_error = None);
        self.queue_changed(session).await;
    }

    /// Holds what waits, if anything does, and says why. What a claim that failed has got hold of
    /// waits again.
    pub(super) async fn hold_back(&self, session: &SessionId, why: String) {
        if self.queue.with(session, |known| known.loose.is_empty()) {
            return;
        }
        self.settle_failed(session, &[], why).await;
        if let Err(error) = self.lock_queue(session).await {
            tracing::warn!(%session, %error, "what was claimed is not settled");
        }
    }

    /// What was claimed may not have been delivered: the logs say. What waits is held.
    async fn settle_failed(&self, session: &SessionId, claimed: &[Item], why: String) {
        let _queue = self.queue.lock(session).await;
        self.queue.with(session, |known| {
            known.loose.clear();
            known.last_error = Some(why);
        });
        if let Err(error) = self.settle(session, claimed).await {
            tracing::warn!(%session, %error, "what was claimed is not settled");
            self.unsettle(session);
        }
        self.queue_changed(session).await;
    }

    /// Drops what the logs have of what was claimed, and lets the rest wait again. Called under the
    /// lock on what waits.
    pub(super) async fn settle(
        &self,
        session: &SessionId,
        claimed: &[Item],
    ) -> Result<(), SessionError> {
        if claimed.is_empty() {
            return Ok(());
        }
        let carried = self.carried(session, claimed).await?;
        let ids = claimed.iter().map(|item| item.id.clone());
        let (delivered, left): (Vec<_>, Vec<_>) = ids.partition(|id| carried.contains(id));
        self.parts.waiting.confirm(session, &delivered).await?;
        self.parts.waiting.give_back(session, &left).await?;
        Ok(())
    }

    /// The messages that the turns of a session carry, as far back as these can be in them.
    async fn carried(
        &self,
        session: &SessionId,
        items: &[Item],
    ) -> Result<HashSet<EventId>, SessionError> {
        let since = items.iter().map(|item| item.created_at).min();
        let state = self.get_session(session).await?;
        let mut carried = HashSet::new();
        for (looked_at, turn) in (1..).zip(state.turns.iter().rev()) {
            let read = self.parts.turns.get_turn(&turn.id).await?.state;
            carried.extend(event_ids(&read.definition.input));
            carried.extend(read.inputs.iter().flat_map(|input| event_ids(&input.message)));
            // A turn that began before a message may still have taken it in.
            if since.is_none_or(|since| turn.at < since) && looked_at >= TURNS_LOOKED_AT_MIN {
                break;
            }
        }
        Ok(carried)
    }
}

/// Gives the turn that runs in a session what is typed meanwhile.
pub(super) struct Steering {
    pub(super) sessions: Sessions,
    pub(super) session: SessionId,
    pub(super) folder: PathBuf,
}

#[async_trait]
impl TakeInputs for Steering {
    async fn claim(&self, turn: &TurnId) -> Vec<Claimed> {
        let Self { sessions, session, folder } = self;
        let items = sessions.claim_typed(session).await.unwrap_or_else(|error| {
            tracing::warn!(%session, %turn, %error, "nothing is taken in");
            Vec::new()
        });
        let (now, zone) = (sessions.parts.clock.now(), &sessions.parts.zone);
        let claimed = |item: Item| {
            let message = delivered(&item, now, zone, folder);
            Claimed { id: item.id, message }
        };
        items.into_iter().map(claimed).collect()
    }

    async fn confirm(&self, _turn: &TurnId, claimed: &[Claimed]) {
        let ids: Vec<_> = claimed.iter().map(|it| it.id.clone()).collect();
        self.sessions.confirm(&self.session, &ids).await;
    }

    async fn give_back(&self, turn: &TurnId, claimed: &[Claimed]) {
        let session = &self.session;
        tracing::warn!(%session, %turn, count = claimed.len(), "messages were not taken in");
        // Nothing else is claimed in a session while a turn runs in it.
        self.sessions.unsettle(session);
        if let Err(error) = self.sessions.lock_queue(session).await {
            tracing::warn!(%session, %error, "what was claimed is not settled");
        }
    }
}
