//! The backend without files: for tests, embedding and runs that shall leave nothing.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use crate::base::clock::Clock;
use crate::store::error::{FlushError, Place, StoreError};
use crate::store::log::{
    Inspection, Location, LogId, LogKind, LogText, Record, Removed, Revision, Snapshot, Strays,
    join,
};
use crate::store::remnant::{self, Kept, Remnant};
use crate::store::seam::{Durability, LogStore, LogWriter};

/// Logs in memory, gone with the last clone.
#[derive(Clone)]
pub struct Store {
    clock: Arc<dyn Clock>,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    logs: BTreeMap<LogId, Log>,
    removed: BTreeMap<String, (Removed, Log)>,
    /// Counts changes, so that no two states of any log have the same revision.
    changes: u64,
}

struct Log {
    inspection: Arc<Inspection>,
    owned: bool,
}

impl Store {
    /// An empty store, whose removals get their time from `clock`.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, state: Arc::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn writer(&self, log: &LogId) -> Box<dyn LogWriter> {
        Box::new(Writer { store: self.clone(), log: log.clone() })
    }
}

impl State {
    fn log(&mut self, log: &LogId) -> Result<&mut Log, StoreError> {
        self.logs.get_mut(log).ok_or_else(|| StoreError::NotFound(place(log)))
    }

    fn removal(&self, removed: &Removed) -> Result<&Log, StoreError> {
        let kept = self.removed.get(&removed.key);
        Ok(&kept.ok_or_else(|| StoreError::NotFound(place(&removed.log)))?.1)
    }

    fn next_revision(&mut self) -> Revision {
        self.changes += 1;
        Revision([self.changes, 0, 0, 0, 0])
    }
}

fn place(log: &LogId) -> Place {
    Place { log: log.clone(), path: None }
}

#[async_trait]
impl LogStore for Store {
    fn locate(&self, _log: &LogId) -> Option<Location> {
        None
    }

    fn is_live(&self, log: &LogId) -> bool {
        self.lock().log(log).is_ok_and(|log| log.owned)
    }

    async fn create(
        &self,
        log: &LogId,
        batch: &[Record],
    ) -> Result<Box<dyn LogWriter>, StoreError> {
        let first = batch.first().cloned().ok_or_else(|| StoreError::NoFirstRecord(place(log)))?;
        let mut state = self.lock();
        let revision = state.next_revision();
        match state.logs.entry(log.clone()) {
            Entry::Occupied(_) => Err(StoreError::AlreadyExists(place(log))),
            Entry::Vacant(free) => {
                let records = batch.to_vec();
                let inspection = Arc::new(Inspection { first, records, revision, torn: None });
                free.insert(Log { inspection, owned: true });
                Ok(self.writer(log))
            }
        }
    }

    async fn open(&self, log: &LogId) -> Result<Box<dyn LogWriter>, StoreError> {
        let mut state = self.lock();
        let found = state.log(log)?;
        if found.owned {
            return Err(StoreError::AlreadyOwned(place(log)));
        }
        found.owned = true;
        Ok(self.writer(log))
    }

    async fn inspect(&self, log: &LogId) -> Result<Arc<Inspection>, StoreError> {
        Ok(Arc::clone(&self.lock().log(log)?.inspection))
    }

    fn scan(&self, log: &LogId) -> Result<LogText, StoreError> {
        let inspection = Arc::clone(&self.lock().log(log)?.inspection);
        Ok(LogText::new(join(&inspection.records).into(), inspection.revision))
    }

    fn remnants(&self, kept: &Kept) -> Result<Vec<Remnant>, StoreError> {
        let mut state = self.lock();
        let log = match kept {
            Kept::There(log) => &*state.log(log)?,
            Kept::Removed(removed) => state.removal(removed)?,
        };
        let inspection = Arc::clone(&log.inspection);
        drop(state);
        Ok(remnant::lines(&join(&inspection.records).into(), 0))
    }

    fn size(&self, log: &LogId) -> Result<u64, StoreError> {
        Ok(self.lock().log(log)?.inspection.bytes() as u64)
    }

    async fn list(&self, kind: LogKind) -> Result<Vec<LogId>, StoreError> {
        Ok(self.lock().logs.keys().filter(|log| log.kind() == kind).cloned().collect())
    }

    async fn strays(&self, _kind: LogKind) -> Result<Strays, StoreError> {
        // Logs without files stand where their ids say.
        Ok(Strays::default())
    }

    async fn snapshots(
        &self,
        kind: LogKind,
    ) -> Result<Vec<Result<Snapshot, StoreError>>, StoreError> {
        let state = self.lock();
        let logs = state.logs.iter().filter(|(log, _)| log.kind() == kind);
        Ok(logs
            .map(|(log, Log { inspection, .. })| {
                let (first, revision) = (inspection.first.clone(), inspection.revision);
                Ok(Snapshot { log: log.clone(), first, revision })
            })
            .collect())
    }

    async fn revision(&self, log: &LogId) -> Result<Revision, StoreError> {
        Ok(self.lock().log(log)?.inspection.revision)
    }

    async fn remove(&self, log: &LogId) -> Result<Removed, StoreError> {
        let mut state = self.lock();
        if state.log(log)?.owned {
            return Err(StoreError::AlreadyOwned(place(log)));
        }
        let gone = state.logs.remove(log).ok_or_else(|| StoreError::NotFound(place(log)))?;
        let key = state.next_revision().to_string();
        let removed = Removed { log: log.clone(), at: self.clock.now(), key: key.clone() };
        state.removed.insert(key, (removed.clone(), gone));
        Ok(removed)
    }

    async fn removed(&self) -> Result<Vec<Removed>, StoreError> {
        let state = self.lock();
        let mut all: Vec<_> = state.removed.values().map(|(removed, _)| removed.clone()).collect();
        all.sort_by(|a, b| (a.at, &a.key).cmp(&(b.at, &b.key)));
        Ok(all)
    }

    async fn inspect_removed(&self, removed: &Removed) -> Result<Inspection, StoreError> {
        let state = self.lock();
        let log = state.removal(removed)?;
        Ok(Inspection::clone(&log.inspection))
    }

    async fn restore(&self, removed: &Removed) -> Result<(), StoreError> {
        let mut state = self.lock();
        let State { logs, removed: kept, .. } = &mut *state;
        let Entry::Occupied(found) = kept.entry(removed.key.clone()) else {
            return Err(StoreError::NotFound(place(&removed.log)));
        };
        let Entry::Vacant(free) = logs.entry(removed.log.clone()) else {
            return Err(StoreError::AlreadyExists(place(&removed.log)));
        };
        free.insert(found.remove().1);
        Ok(())
    }

    async fn take_over(&self, removed: &Removed, records: &[Record]) -> Result<(), StoreError> {
        let first = records.first().cloned();
        let first = first.ok_or_else(|| StoreError::NoFirstRecord(place(&removed.log)))?;
        let mut state = self.lock();
        let revision = state.next_revision();
        match state.removed.entry(removed.key.clone()) {
            Entry::Occupied(_) => Err(StoreError::AlreadyExists(place(&removed.log))),
            Entry::Vacant(free) => {
                let records = records.to_vec();
                let inspection = Arc::new(Inspection { first, records, revision, torn: None });
                free.insert((removed.clone(), Log { inspection, owned: false }));
                Ok(())
            }
        }
    }

    async fn destroy(&self, removed: &Removed) -> Result<(), StoreError> {
        let gone = self.lock().removed.remove(&removed.key);
        gone.map(drop).ok_or_else(|| StoreError::NotFound(place(&removed.log)))
    }

    async fn flush(&self, _scope: Option<&LogId>) -> Result<(), FlushError> {
        Ok(())
    }
}

struct Writer {
    store: Store,
    log: LogId,
}

#[async_trait]
impl LogWriter for Writer {
    fn log(&self) -> &LogId {
        &self.log
    }

    fn records(&self) -> u64 {
        let mut state = self.store.lock();
        state.log(&self.log).map_or(0, |log| log.inspection.records.len() as u64)
    }

    async fn append(
        &mut self,
        batch: &[Record],
        _durability: Durability,
    ) -> Result<Revision, StoreError> {
        let mut state = self.store.lock();
        if batch.is_empty() {
            return Ok(state.log(&self.log)?.inspection.revision);
        }
        let revision = state.next_revision();
        // Copies the list of records if somebody is looking at it, else grows it.
        let inspection = Arc::make_mut(&mut state.log(&self.log)?.inspection);
        inspection.records.extend_from_slice(batch);
        inspection.revision = revision;
        Ok(revision)
    }

    async fn close(self: Box<Self>) -> Result<(), StoreError> {
        Ok(())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if let Ok(log) = self.store.lock().log(&self.log) {
            log.owned = false;
        }
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("logs", &self.lock().logs.len()).finish_non_exhaustive()
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").field("log", &self.log).finish_non_exhaustive()
    }
}
