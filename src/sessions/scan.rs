//! The scan at the start: every session's log and its latest turn's log, read in parallel by a few
//! threads, the newest first. A damaged log makes an errored entry and stops nothing
//! (`spec/session-layer.md` section 8.2).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future;
use tokio_util::sync::CancellationToken;

use crate::base::id::{IdForm, SessionId};
use crate::domain::session::entry::SessionIndexEntry;
use crate::sessions::Sessions;
use crate::sessions::index::{ScanRight, Scanned};
use crate::store::error::StoreError;
use crate::store::log::{LogKind, Misplaced};

/// How many entries go to the index at a time: enough that the list does not flicker, few enough
/// that the first ones come at once.
const BATCH_ENTRIES: usize = 256;
/// How many threads read at a time; more do not help one disk.
const THREADS_MAX: usize = 8;

impl Sessions {
    /// Reads all sessions into the index, which tells how it comes on; returns when it is over.
    /// What is asked of the layer meanwhile is done, and counts more than what the scan finds.
    ///
    /// # Errors
    /// [`StoreError`] if the sessions cannot be listed.
    pub async fn scan(&self) -> Result<(), StoreError> {
        let right = Arc::new(self.index.begin_scan());
        let mut sessions = match self.parts.repo.ids().await {
            Ok(sessions) => sessions,
            Err(error) => {
                right.end(Some(error.to_string()));
                return Err(error);
            }
        };
        self.count_unsent(&sessions).await;
        sessions.reverse();
        let total = sessions.len();
        right.expect(total);
        let cancel = self.parts.tasks.cancel_token().child_token();
        // Ends the threads when nobody waits for them any more.
        let _ended = cancel.clone().drop_guard();
        let work = Arc::new(Work { sessions, next: AtomicUsize::new(0), cancel });
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let readers: Vec<_> = (0..threads.min(THREADS_MAX))
            .map(|_| {
                let (scan, work, right) = (self.clone(), Arc::clone(&work), Arc::clone(&right));
                self.parts.tasks.spawn_blocking(move || scan.read_along(&work, &right))
            })
            .collect();
        let strays = self.parts.repo.store().strays(LogKind::Session);
        let (ended, strays) = future::join(future::join_all(readers), strays).await;
        for error in ended.into_iter().filter_map(Result::err) {
            tracing::error!(%error, "a thread of the scan failed");
        }
        match strays {
            Ok(strays) => add_misplaced(&right, total, &strays.misplaced),
            Err(error) => tracing::warn!(%error, "sessions in wrong folders are not looked for"),
        }
        right.end(None);
        Ok(())
    }

    /// Counts what waits to be sent, before the entries come.
    async fn count_unsent(&self, sessions: &[SessionId]) {
        match self.parts.waiting.among(sessions).await {
            Ok(some) => {
                for session in some {
                    let _queue = self.queue.lock(&session).await;
                    self.queue_changed(&session).await;
                }
            }
            Err(error) => tracing::warn!(%error, "what waits to be sent is not counted"),
        }
    }

    /// Reads sessions until none is left.
    fn read_along(&self, work: &Work, right: &ScanRight) {
        loop {
            let found: Vec<_> = std::iter::from_fn(|| work.next().map(|id| self.scan_one(id)))
                .take(BATCH_ENTRIES)
                .collect();
            if found.is_empty() {
                return;
            }
            right.take(found);
        }
    }

    /// What the logs say of a session, read on this thread; nothing if it is gone.
    fn scan_one(&self, session: &SessionId) -> Option<Scanned> {
        let state = match self.parts.repo.scan(session, drop) {
            Ok(state) => state,
            Err(StoreError::NotFound(_)) => return None,
            Err(error) => return Some(Scanned { entry: errored(session, &error), offset: 0 }),
        };
        let Some(latest) = state.latest() else {
            return Some(Scanned { entry: SessionIndexEntry::new(&state, None), offset: 0 });
        };
        let mut offset = 0;
        Some(match self.parts.turn_logs.scan(&latest.id, |_| offset += 1) {
            Ok(turn) => Scanned { entry: SessionIndexEntry::new(&state, Some(&turn)), offset },
            Err(error) => {
                let error = error.to_string();
                Scanned { entry: SessionIndexEntry::with_damaged_turn(&state, error), offset: 0 }
            }
        })
    }

    /// The ids of all sessions as the store lists them now.
    ///
    /// # Errors
    /// [`StoreError`] if they cannot be listed.
    pub async fn ids(&self) -> Result<Vec<SessionId>, StoreError> {
        self.parts.repo.ids().await
    }

    /// Takes over what the logs say of a session, for whoever looks on while another process writes.
    pub async fn look_again(&self, session: &SessionId) {
        match self.look_at(session).await {
            Some(found) => self.index.put(found.entry, found.offset),
            None => self.index.remove(session),
        }
    }

    /// As the scan, for one session, off this thread.
    pub(super) async fn look_at(&self, session: &SessionId) -> Option<Scanned> {
        let (scan, id) = (self.clone(), session.clone());
        let looked = self.parts.tasks.spawn_blocking(move || scan.scan_one(&id)).await;
        let lost = |error| Some(Scanned { entry: errored(session, &error), offset: 0 });
        looked.unwrap_or_else(lost)
    }
}

struct Work {
    sessions: Vec<SessionId>,
    next: AtomicUsize,
    cancel: CancellationToken,
}

impl Work {
    fn next(&self) -> Option<&SessionId> {
        if self.cancel.is_cancelled() {
            return None;
        }
        self.sessions.get(self.next.fetch_add(1, Ordering::Relaxed))
    }
}

/// Sessions in wrong folders cannot be read by their ids; their entries say where they are.
fn add_misplaced(right: &ScanRight, total: usize, misplaced: &[Misplaced]) {
    if misplaced.is_empty() {
        return;
    }
    right.expect(total + misplaced.len());
    let entries = misplaced.iter().map(|stray| {
        let entry = errored(&SessionId::from(stray.log.id()), stray);
        Some(Scanned { entry, offset: 0 })
    });
    right.take(entries.collect());
}

fn errored(session: &SessionId, error: &dyn std::error::Error) -> SessionIndexEntry {
    let made_at = session.as_str().parse::<IdForm>().map(|form| form.second).unwrap_or_default();
    SessionIndexEntry::damaged(session.clone(), made_at, error.to_string())
}
