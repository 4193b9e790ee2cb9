//! Messages that wait: for the next boundary of the turn that runs, for the turn after it, or for the
//! person to say so (`design/sessions.md`, sending, queueing, steering).

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedMutexGuard, broadcast};

use crate::base::id::{EventId, SessionId};
use crate::base::locks::KeyedLocks;
use crate::domain::message::UserMessage;
use crate::domain::session::state::SessionState;
use crate::sessions::Sessions;
use crate::sessions::api::{QueueChanged, SendMessageConfig, Sent, WaitingMessage};
use crate::sessions::circumstances::with_circumstances;
use crate::sessions::error::SessionError;
use crate::sessions::index::Unsent;
use crate::sessions::trouble::Trouble;
use crate::sessions::waiting::{Item, Source, Undelivered, WaitingError};

/// How many changes wait for a follower before it has to ask for what waits again.
const CHANGES_WAITING_MAX: usize = 256;

/// What this process knows of the messages that wait, beyond what is kept of them.
#[derive(Clone)]
pub(super) struct Queue(Arc<Inner>);

struct Inner {
    /// One change at a time of what waits in a session. Taken after the session's lock, or alone.
    locks: KeyedLocks<SessionId>,
    known: Mutex<HashMap<SessionId, Known>>,
    changes: broadcast::Sender<QueueChanged>,
}

/// What is known of the messages of one session.
#[derive(Default)]
pub(super) struct Known {
    /// Those that may go by themselves. All others are held, so those of earlier processes are.
    pub(super) loose: HashSet<EventId>,
    /// Those that waited when a turn began that they were not part of: each is a turn of its own.
    pub(super) next_turns: HashSet<EventId>,
    /// Why the last one was not delivered.
    pub(super) last_error: Option<String>,
    order: Order,
}

/// In what order the files of a session's messages are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Order {
    /// Earlier processes may have claimed some of them, and left what is no message.
    #[default]
    Unsettled,
    /// All that is claimed was claimed by this process, and something is no message.
    Untidy,
    /// All that is claimed was claimed by this process, and all were messages at the last look.
    Settled,
}

impl Default for Queue {
    fn default() -> Self {
        let (changes, _) = broadcast::channel(CHANGES_WAITING_MAX);
        Self(Arc::new(Inner { locks: KeyedLocks::default(), known: Mutex::default(), changes }))
    }
}

impl Queue {
    pub(super) async fn lock(&self, session: &SessionId) -> OwnedMutexGuard<()> {
        self.0.locks.lock(session).await
    }

    pub(super) fn with<T>(&self, session: &SessionId, work: impl FnOnce(&mut Known) -> T) -> T {
        work(self.known().entry(session.clone()).or_default())
    }

    /// Holds all that waits in a session: it goes when the person says so. Called under the
    /// session's lock.
    pub(super) fn hold(&self, session: &SessionId) {
        let loose = self.with(session, |known| std::mem::take(&mut known.loose));
        if !loose.is_empty() {
            self.tell(session);
        }
    }

    /// Forgets a session that was deleted.
    pub(super) fn forget(&self, session: &SessionId) {
        self.known().remove(session);
        self.tell(session);
    }

    fn tell(&self, session: &SessionId) {
        // Nobody following is no error.
        drop(self.0.changes.send(QueueChanged { session: session.clone() }));
    }

    fn known(&self) -> MutexGuard<'_, HashMap<SessionId, Known>> {
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sessions {
    /// Sends a message, or lets it wait: it starts a turn if the latest one has ended and nothing
    /// waits. Else it reaches the running turn before its next model call, or becomes a turn of its
    /// own once that has completed. Behind messages that are held it is held with them.
    ///
    /// # Errors
    /// What keeps the session from being read, the turn from starting, or the message from being
    /// kept; it is nowhere then.
    pub async fn send_or_queue(
        &self,
        session: &SessionId,
        message: Arc<UserMessage>,
        config: SendMessageConfig,
    ) -> Result<Sent, SessionError> {
        let _lock = self.locks.lock(session).await;
        self.closing.check(session)?;
        let state = self.get_session(session).await?;
        let ended = self.has_ended(&state).await?;
        let queue = self.lock_queue(session).await?;
        let waiting = self.look_at_queue(session).await?.waiting;
        if waiting.is_empty() && ended {
            drop(queue);
            let (now, folder) = (self.parts.clock.now(), self.folder_of(&state));
            let input = with_circumstances(message, now, &self.parts.zone, &folder);
            let turn = self.start_turn(&state, input, config).await?;
            self.forget_error(session).await;
            return Ok(Sent::Turn(turn));
        }
        let item = Item {
            id: self.parts.event_ids.next(),
            source: Source::Terminal,
            created_at: self.parts.clock.now(),
            message: Arc::new(UserMessage {
                user_message_context: None,
                ..Arc::unwrap_or_clone(message)
            }),
            config: Some(config),
        };
        self.parts.waiting.put(session, &item).await?;
        self.queue.with(session, |known| {
            if waiting.iter().all(|before| known.loose.contains(&before.id)) {
                known.loose.insert(item.id.clone());
            }
        });
        self.queue_changed(session).await;
        Ok(Sent::Waits(item.id))
    }

    /// What waits now has turns of its own, after the one that begins. Called under the session's lock.
    pub(super) async fn leave_behind(&self, session: &SessionId) -> Result<(), SessionError> {
        if self.queue.with(session, |known| known.loose.is_empty()) {
            return Ok(());
        }
        let _queue = self.lock_queue(session).await?;
        let waiting = self.look_at_queue(session).await?.waiting.into_iter();
        self.queue.with(session, |known| known.next_turns = waiting.map(|item| item.id).collect());
        Ok(())
    }

    /// The messages that wait in a session, oldest first. One that was claimed for a turn is none of
    /// them. Never writes.
    ///
    /// # Errors
    /// [`SessionError::Waiting`].
    pub async fn waiting_messages(
        &self,
        session: &SessionId,
    ) -> Result<Vec<WaitingMessage>, SessionError> {
        let waiting = self.look_at_queue(session).await?.waiting;
        Ok(self.queue.with(session, |known| {
            let shown = |item: Item| WaitingMessage::of(&item, known);
            waiting.into_iter().map(shown).collect()
        }))
    }

    /// Takes a message back that waits.
    ///
    /// # Errors
    /// [`SessionError::Waiting`] if it was claimed for a turn, or does not wait.
    pub async fn take_back(
        &self,
        session: &SessionId,
        event: &EventId,
    ) -> Result<WaitingMessage, SessionError> {
        let _queue = self.lock_queue(session).await?;
        let item = self.parts.waiting.take_back(session, event).await?;
        let taken = self.queue.with(session, |known| WaitingMessage::of(&item, known));
        self.queue_changed(session).await;
        Ok(taken)
    }

    /// Gives a message that waits another text; what goes with it stays.
    ///
    /// # Errors
    /// As [`Sessions::take_back`].
    pub async fn edit_waiting(
        &self,
        session: &SessionId,
        event: &EventId,
        text: &str,
    ) -> Result<(), SessionError> {
        let _queue = self.lock_queue(session).await?;
        self.parts.waiting.edit(session, event, text).await?;
        self.queue_changed(session).await;
        Ok(())
    }

    /// Lets go of what is held in a session. The first message becomes the next turn at once if the
    /// latest one has ended; a turn that has not takes in what it can.
    ///
    /// # Errors
    /// What kept the turn from starting; all is held again then.
    pub async fn send_waiting(&self, session: &SessionId) -> Result<(), SessionError> {
        let _lock = self.locks.lock(session).await;
        self.closing.check(session)?;
        let state = self.get_session(session).await?;
        {
            let _queue = self.lock_queue(session).await?;
            let waiting = self.look_at_queue(session).await?.waiting;
            let ids = waiting.into_iter().map(|item| item.id);
            self.queue.with(session, |known| known.loose.extend(ids));
            self.queue.tell(session);
        }
        if self.has_ended(&state).await? {
            self.deliver_next(&state).await?;
        }
        Ok(())
    }

    /// Follows what waits, in all sessions, from now on. A follower that lagged asks again.
    #[must_use]
    pub fn follow_queue(&self) -> broadcast::Receiver<QueueChanged> {
        self.queue.0.changes.subscribe()
    }

    /// Finds out what became of all that earlier processes had claimed for turns: what no log has
    /// waits again. Only a process that may write does this; each session does it by itself, too,
    /// before anything is changed in it.
    ///
    /// # Errors
    /// [`SessionError`] if it cannot be listed.
    pub async fn recover_queues(&self) -> Result<(), SessionError> {
        let sessions = self.parts.repo.ids().await?;
        for session in self.parts.waiting.among(&sessions).await? {
            if let Err(error) = self.lock_queue(&session).await {
                tracing::warn!(%session, %error, "what was claimed is not settled");
            }
        }
        Ok(())
    }

    pub(super) async fn has_ended(&self, session: &SessionState) -> Result<bool, SessionError> {
        let Some(latest) = session.latest() else { return Ok(true) };
        match self.check_settled(&session.id, &latest.id).await {
            Ok(()) => Ok(true),
            Err(SessionError::TurnNotSettled { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Takes the lock on what waits in a session. What an earlier process had claimed is settled
    /// then, and what is no message is out of the way, as far as the last look at it goes.
    pub(super) async fn lock_queue(
        &self,
        session: &SessionId,
    ) -> Result<OwnedMutexGuard<()>, SessionError> {
        let lock = self.queue.lock(session).await;
        match self.queue.with(session, |known| known.order) {
            Order::Settled => {}
            // What this process has claimed is on its way, and not to be settled.
            Order::Untidy => {
                self.tidy_queue(session).await;
                self.queue.with(session, |known| known.order = Order::Settled);
            }
            Order::Unsettled => {
                self.tidy_queue(session).await;
                let claimed = self.parts.waiting.look(session).await?.claimed;
                self.settle(session, &claimed).await?;
                self.queue.with(session, |known| known.order = Order::Settled);
                if !claimed.is_empty() {
                    self.queue_changed(session).await;
                }
            }
        }
        Ok(lock)
    }

    /// Looks at what is undelivered in a session. What is no message is moved out of the way before
    /// the next change: who looks writes nothing.
    pub(super) async fn look_at_queue(
        &self,
        session: &SessionId,
    ) -> Result<Undelivered, WaitingError> {
        let undelivered = self.parts.waiting.look(session).await?;
        if undelivered.misfits > 0 {
            self.queue.with(session, |known| {
                if known.order == Order::Settled {
                    known.order = Order::Untidy;
                }
            });
        }
        Ok(undelivered)
    }

    /// A message was delivered: what kept another from that is over.
    pub(super) async fn forget_error(&self, session: &SessionId) {
        let _queue = self.queue.lock(session).await;
        if self.queue.with(session, |known| known.last_error.take()).is_some() {
            self.queue_changed(session).await;
        }
    }

    async fn tidy_queue(&self, session: &SessionId) {
        let rejected = self.parts.waiting.tidy(session).await.unwrap_or_else(|error| {
            tracing::warn!(%session, %error, "what cannot be read stays");
            Vec::new()
        });
        for rejected in rejected {
            self.troubles.tell(Trouble::Rejected { session: session.clone(), rejected });
        }
    }

    /// What is claimed now is to be settled before anything is changed.
    pub(super) fn unsettle(&self, session: &SessionId) {
        self.queue.with(session, |known| known.order = Order::Unsettled);
    }

    /// Shows what waits now. Called under the lock on it.
    pub(super) async fn queue_changed(&self, session: &SessionId) {
        match self.look_at_queue(session).await {
            Ok(undelivered) => {
                let all = undelivered.waiting.iter().chain(&undelivered.claimed);
                let ids: HashSet<_> = all.map(|item| &item.id).collect();
                let last_error = self.queue.with(session, |known| {
                    known.loose.retain(|id| ids.contains(id));
                    known.next_turns.retain(|id| ids.contains(id));
                    known.last_error.clone()
                });
                let unsent = undelivered.count();
                self.index.set_unsent(session, Unsent { count: unsent, last_error });
            }
            Err(error) => {
                tracing::warn!(%session, %error, "what waits cannot be read");
                let last_error = self.queue.with(session, |known| known.last_error.clone());
                self.index.set_last_error(session, last_error);
            }
        }
        self.queue.tell(session);
    }
}

impl WaitingMessage {
    fn of(item: &Item, known: &Known) -> Self {
        Self {
            id: item.id.clone(),
            source: item.source.clone(),
            created_at: item.created_at,
            text: item.message.plain_text(),
            attachments: item.message.attachments(),
            held: !known.loose.contains(&item.id),
        }
    }
}
