//! What is wrong with what is stored, for whoever wants to put it right. Looks at names, at all
//! sessions and at the latest turn of each; changes nothing.

use std::path::PathBuf;
use std::sync::Arc;

use crate::app::App;
use crate::domain::session::entry::SessionIndexEntry;
use crate::store::error::StoreError;
use crate::store::log::{LogKind, Misplaced, Strays};

/// How things stand on the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// How many sessions there are.
    pub sessions: usize,
    /// Those that can only be looked at, exported and deleted; misplaced ones too.
    pub damaged: Vec<Arc<SessionIndexEntry>>,
    /// Turns in wrong folders.
    pub misplaced_turns: Vec<Misplaced>,
    /// What was cut off logs that a crash had torn.
    pub set_aside: Vec<PathBuf>,
}

impl App {
    /// Looks at what is stored.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be listed.
    pub async fn health(&self) -> Result<Health, StoreError> {
        let (sessions, store) = (&self.graph.sessions, &self.graph.storage.logs);
        sessions.scan().await?;
        let entries = sessions.list_sessions();
        let damaged = entries.iter().filter(|entry| entry.error.is_some());
        let Strays { mut set_aside, .. } = store.strays(LogKind::Session).await?;
        let turns = store.strays(LogKind::Turn).await?;
        set_aside.extend(turns.set_aside);
        Ok(Health {
            sessions: entries.len(),
            damaged: damaged.cloned().collect(),
            misplaced_turns: turns.misplaced,
            set_aside,
        })
    }
}
