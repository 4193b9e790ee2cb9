//! The last reads, so that scrolling back and forth, composing a context and a later open share one
//! read and one parse.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use lru::LruCache;

use crate::store::error::StoreError;
use crate::store::log::{Inspection, LogId, Revision};

/// How much is kept of what was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheBounds {
    /// Logs; by default 64, more than a person goes back and forth between.
    pub logs_max: usize,
    /// Memory, roughly; by default 32 MiB for records, and as much again for parsed events.
    pub bytes_max: usize,
}

impl Default for CacheBounds {
    fn default() -> Self {
        Self { logs_max: 64, bytes_max: 32 * 1024 * 1024 }
    }
}

/// Something that was read of a log.
pub(super) trait Readout {
    /// What was read.
    fn revision(&self) -> Revision;
    /// How much memory it holds, roughly.
    fn bytes(&self) -> usize;
}

impl Readout for Inspection {
    fn revision(&self) -> Revision {
        self.revision
    }

    fn bytes(&self) -> usize {
        Self::bytes(self)
    }
}

/// A memo of reads by log and revision. Concurrent reads of one revision are one read; a read never
/// joins one of another revision, so it never sees less than what was there when it began.
pub(super) struct Memo<T> {
    bounds: CacheBounds,
    kept: Mutex<Kept<T>>,
}

struct Kept<T> {
    ready: LruCache<LogId, (Arc<T>, usize)>,
    bytes: usize,
    reading: HashMap<(LogId, Revision), Reading<T>>,
}

type Reading<T> = Arc<OnceLock<Result<Arc<T>, StoreError>>>;

impl<T: Readout> Memo<T> {
    pub(super) fn new(bounds: CacheBounds) -> Self {
        let kept = Kept { ready: LruCache::unbounded(), bytes: 0, reading: HashMap::new() };
        Self { bounds, kept: Mutex::new(kept) }
    }

    /// What is kept of `revision`, else the outcome of `read`, which runs on this thread or on that
    /// of whoever is reading the same already. Blocks.
    pub(super) fn get_or_read(
        &self,
        log: &LogId,
        revision: Revision,
        read: impl FnOnce() -> Result<T, StoreError>,
    ) -> Result<Arc<T>, StoreError> {
        let key = (log.clone(), revision);
        let reading = {
            let mut kept = self.lock();
            if let Some((ready, _)) = kept.ready.get(log)
                && ready.revision() == revision
            {
                return Ok(Arc::clone(ready));
            }
            Arc::clone(kept.reading.entry(key.clone()).or_default())
        };
        let outcome = reading.get_or_init(|| read().map(Arc::new)).clone();
        let mut kept = self.lock();
        if kept.reading.get(&key).is_some_and(|current| Arc::ptr_eq(current, &reading)) {
            kept.reading.remove(&key);
            if let Ok(readout) = &outcome {
                kept.keep(log, readout, self.bounds);
            }
        }
        outcome
    }

    fn lock(&self) -> MutexGuard<'_, Kept<T>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Readout> Kept<T> {
    fn keep(&mut self, log: &LogId, readout: &Arc<T>, bounds: CacheBounds) {
        let weight = readout.bytes();
        let old = self.ready.put(log.clone(), (Arc::clone(readout), weight));
        self.bytes = self.bytes - old.map_or(0, |(_, weight)| weight) + weight;
        while self.ready.len() > bounds.logs_max || self.bytes > bounds.bytes_max {
            let Some((_, (_, weight))) = self.ready.pop_lru() else { return };
            self.bytes -= weight;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::error::Ending;
    use crate::store::log::{LogKind, Record};
    use std::cell::RefCell;

    fn log(second: usize) -> LogId {
        let id = format!("2025-11-11T04-{:02}-{:02}Z-0001234-000", second / 60, second % 60);
        LogId::new(LogKind::Turn, &id).expect("valid")
    }

    fn inspection(revision: u64, bytes: usize) -> Inspection {
        let line = format!("{{\"a\":\"{}\"}}", "x".repeat(bytes));
        let first = Record::new(line).expect("an object");
        let records = vec![first.clone()];
        Inspection { first, records, revision: Revision([revision, 0, 0, 0, 0]), torn: None }
    }

    /// Asks for each (log, revision) of `asked`, 1,000 bytes each, and gives which were read.
    fn check_reads(bounds: CacheBounds, asked: &[(usize, u64)], read: &[(usize, u64)]) {
        let cache = Memo::new(bounds);
        let seen = RefCell::new(Vec::new());
        for &(number, revision) in asked {
            let given = cache.get_or_read(&log(number), Revision([revision, 0, 0, 0, 0]), || {
                seen.borrow_mut().push((number, revision));
                Ok(inspection(revision, 1_000))
            });
            assert_eq!(given.expect("read").revision, Revision([revision, 0, 0, 0, 0]));
        }
        assert_eq!(seen.into_inner(), read);
    }

    #[test]
    fn what_has_not_changed_is_read_once() {
        let bounds = CacheBounds::default();
        check_reads(bounds, &[(1, 1), (2, 1), (1, 1), (2, 1)], &[(1, 1), (2, 1)]);
        check_reads(bounds, &[(1, 1), (1, 2), (1, 2), (1, 1)], &[(1, 1), (1, 2), (1, 1)]);
    }

    #[test]
    fn the_least_used_goes_when_logs_or_bytes_are_too_many() {
        let asked = [(1, 1), (2, 1), (1, 1), (3, 1), (1, 1), (2, 1)];
        let read = [(1, 1), (2, 1), (3, 1), (2, 1)];
        check_reads(CacheBounds { logs_max: 2, bytes_max: 10_000 }, &asked, &read);
        check_reads(CacheBounds { logs_max: 9, bytes_max: 2_500 }, &asked, &read);
        check_reads(
            CacheBounds { logs_max: 9, bytes_max: 900 },
            &[(1, 1), (1, 1)],
            &[(1, 1), (1, 1)],
        );
    }

    #[test]
    fn errors_are_shared_with_those_who_wait_and_not_kept() {
        let cache = Memo::new(CacheBounds::default());
        let revision = Revision([0; 5]);
        let failed = cache.get_or_read(&log(1), revision, || Err(Ending.into()));
        assert!(matches!(failed, Err(StoreError::Ending(_))));
        assert!(cache.get_or_read(&log(1), revision, || Ok(inspection(0, 1))).is_ok());
    }
}
