//! What is kept beside the logs, with gates before and after its changes, so that processes are killed
//! there too.

use std::sync::Arc;

use async_trait::async_trait;

use crate::base::id::{EventId, SessionId};
use crate::domain::agent::{RequestedAgent, ResolvedAgent};
use crate::domain::turn::live::{Delta, OpenCall};
use crate::runtime::api::{AgentResolver, AgentSetting};
use crate::runtime::error::ResolveError;
use crate::sessions::waiting::{Item, Rejected, Undelivered, Waiting, WaitingError};
use crate::store::error::FileError;
use crate::store::live_text::LiveText;
use crate::store::log::{LogId, Removed};
use crate::testing::sim::gates::Gates;

/// Texts of open calls that wait at a gate before they are kept.
#[derive(Debug)]
pub(super) struct GatedText {
    pub(super) inner: Arc<dyn LiveText>,
    pub(super) gates: Gates,
}

#[async_trait]
impl LiveText for GatedText {
    async fn put(&self, turn: &LogId, deltas: &[Delta]) -> Result<(), FileError> {
        self.gates.pass(format!("the text of {turn}")).await;
        self.inner.put(turn, deltas).await
    }

    async fn read(&self, turn: &LogId) -> Result<Option<OpenCall>, FileError> {
        self.gates.pass(format!("before the text of {turn} is read")).await;
        self.inner.read(turn).await
    }

    async fn drop_text(&self, turn: &LogId) -> Result<(), FileError> {
        self.gates.pass(format!("before the text of {turn} goes")).await;
        self.inner.drop_text(turn).await
    }
}

/// Messages that wait, and wait at gates when they are moved.
#[derive(Debug)]
pub(super) struct GatedWaiting {
    pub(super) inner: Arc<dyn Waiting>,
    pub(super) gates: Gates,
}

impl GatedWaiting {
    async fn between<T>(
        &self,
        change: &str,
        session: &SessionId,
        work: impl Future<Output = Result<T, WaitingError>> + Send,
    ) -> Result<T, WaitingError> {
        self.gates.pass(format!("before {change} in {session}")).await;
        let done = work.await?;
        self.gates.pass(format!("after {change} in {session}")).await;
        Ok(done)
    }
}

#[async_trait]
impl Waiting for GatedWaiting {
    async fn put(&self, session: &SessionId, item: &Item) -> Result<(), WaitingError> {
        self.between("a message is put", session, self.inner.put(session, item)).await
    }

    async fn look(&self, session: &SessionId) -> Result<Undelivered, WaitingError> {
        self.gates.pass(format!("before the messages of {session} are read")).await;
        self.inner.look(session).await
    }

    async fn edit(
        &self,
        session: &SessionId,
        event: &EventId,
        text: &str,
    ) -> Result<(), WaitingError> {
        self.between("a message is edited", session, self.inner.edit(session, event, text)).await
    }

    async fn take_back(&self, session: &SessionId, event: &EventId) -> Result<Item, WaitingError> {
        let taken = self.inner.take_back(session, event);
        self.between("a message is taken back", session, taken).await
    }

    async fn claim(&self, session: &SessionId, events: &[EventId]) -> Result<(), WaitingError> {
        self.between("messages are claimed", session, self.inner.claim(session, events)).await
    }

    async fn confirm(&self, session: &SessionId, events: &[EventId]) -> Result<(), WaitingError> {
        self.between("messages are confirmed", session, self.inner.confirm(session, events)).await
    }

    async fn give_back(&self, session: &SessionId, events: &[EventId]) -> Result<(), WaitingError> {
        let given = self.inner.give_back(session, events);
        self.between("messages are given back", session, given).await
    }

    async fn tidy(&self, session: &SessionId) -> Result<Vec<Rejected>, WaitingError> {
        self.between("messages are tidied", session, self.inner.tidy(session)).await
    }

    async fn among(&self, sessions: &[SessionId]) -> Result<Vec<SessionId>, WaitingError> {
        self.gates.pass("before it is asked where messages wait").await;
        self.inner.among(sessions).await
    }

    async fn set_aside(&self, session: &SessionId, removed: &Removed) -> Result<(), WaitingError> {
        let set_aside = self.inner.set_aside(session, removed);
        self.between("messages are set aside", session, set_aside).await
    }

    async fn bring_back(&self, session: &SessionId, removed: &Removed) -> Result<(), WaitingError> {
        let brought = self.inner.bring_back(session, removed);
        self.between("messages are brought back", session, brought).await
    }
}

/// Agents that are resolved behind a gate.
pub(super) struct GatedAgents {
    pub(super) inner: Arc<dyn AgentResolver>,
    pub(super) gates: Gates,
}

#[async_trait]
impl AgentResolver for GatedAgents {
    async fn resolve(
        &self,
        requested: &RequestedAgent,
        setting: &AgentSetting,
    ) -> Result<ResolvedAgent, ResolveError> {
        self.gates.pass("before an agent is resolved").await;
        self.inner.resolve(requested, setting).await
    }
}
