//! Waiting messages in memory: for embedding, tests and runs that shall leave nothing.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use crate::base::id::{EventId, SessionId};
use crate::sessions::waiting::{Item, Rejected, Undelivered, Waiting, WaitingError};
use crate::store::log::Removed;

/// Waiting messages, gone with the last clone.
#[derive(Clone, Debug, Default)]
pub struct Memory(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    sessions: HashMap<SessionId, Kept>,
    aside: Vec<(Removed, Kept)>,
}

#[derive(Debug, Default)]
struct Kept {
    waiting: BTreeMap<EventId, Item>,
    claimed: BTreeMap<EventId, Item>,
}

impl Kept {
    fn take(&mut self, event: &EventId) -> Result<Item, WaitingError> {
        if self.claimed.contains_key(event) {
            return Err(WaitingError::Claimed(event.clone()));
        }
        self.waiting.remove(event).ok_or_else(|| WaitingError::Gone(event.clone()))
    }
}

impl Memory {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something with what is kept of a session; nothing stays of one that has nothing left.
    fn with<T>(&self, session: &SessionId, work: impl FnOnce(&mut Kept) -> T) -> T {
        let mut state = self.lock();
        let kept = state.sessions.entry(session.clone()).or_default();
        let done = work(kept);
        if kept.waiting.is_empty() && kept.claimed.is_empty() {
            state.sessions.remove(session);
        }
        done
    }
}

#[async_trait]
impl Waiting for Memory {
    async fn put(&self, session: &SessionId, item: &Item) -> Result<(), WaitingError> {
        self.with(session, |kept| kept.waiting.insert(item.id.clone(), item.clone()));
        Ok(())
    }

    async fn look(&self, session: &SessionId) -> Result<Undelivered, WaitingError> {
        let all = |items: &BTreeMap<EventId, Item>| items.values().cloned().collect();
        Ok(self.with(session, |kept| Undelivered {
            waiting: all(&kept.waiting),
            claimed: all(&kept.claimed),
            misfits: 0,
        }))
    }

    async fn edit(
        &self,
        session: &SessionId,
        event: &EventId,
        text: &str,
    ) -> Result<(), WaitingError> {
        self.with(session, |kept| {
            let mut item = kept.take(event)?;
            item.message = Arc::new(item.message.with_text(text));
            kept.waiting.insert(event.clone(), item);
            Ok(())
        })
    }

    async fn take_back(&self, session: &SessionId, event: &EventId) -> Result<Item, WaitingError> {
        self.with(session, |kept| kept.take(event))
    }

    async fn claim(&self, session: &SessionId, events: &[EventId]) -> Result<(), WaitingError> {
        self.with(session, |kept| {
            events.iter().try_for_each(|event| {
                let item = kept.take(event)?;
                kept.claimed.insert(event.clone(), item);
                Ok(())
            })
        })
    }

    async fn confirm(&self, session: &SessionId, events: &[EventId]) -> Result<(), WaitingError> {
        self.with(session, |kept| kept.claimed.retain(|event, _| !events.contains(event)));
        Ok(())
    }

    async fn give_back(&self, session: &SessionId, events: &[EventId]) -> Result<(), WaitingError> {
        self.with(session, |kept| {
            let items = events.iter().filter_map(|event| kept.claimed.remove_entry(event));
            kept.waiting.extend(items);
        });
        Ok(())
    }

    async fn tidy(&self, _session: &SessionId) -> Result<Vec<Rejected>, WaitingError> {
        // Nobody else writes here, and nothing outlives its writer.
        Ok(Vec::new())
    }

    async fn among(&self, sessions: &[SessionId]) -> Result<Vec<SessionId>, WaitingError> {
        let state = self.lock();
        let known = sessions.iter().filter(|session| state.sessions.contains_key(*session));
        Ok(known.cloned().collect())
    }

    async fn set_aside(&self, session: &SessionId, removed: &Removed) -> Result<(), WaitingError> {
        let mut state = self.lock();
        if let Some(kept) = state.sessions.remove(session) {
            state.aside.push((removed.clone(), kept));
        }
        Ok(())
    }

    async fn bring_back(&self, session: &SessionId, removed: &Removed) -> Result<(), WaitingError> {
        let mut state = self.lock();
        let mut back = state.aside.extract_if(.., |(aside, _)| aside == removed);
        let kept = back.next().map(|(_, kept)| kept);
        drop(back);
        if let Some(kept) = kept {
            state.sessions.insert(session.clone(), kept);
        }
        Ok(())
    }
}
