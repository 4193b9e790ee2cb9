//! The logs as a whole: their files, who owns which, and what was read of them lately.

use std::sync::Arc;

use tokio::sync::OwnedMutexGuard;

use crate::store::cache::Memo;
use crate::store::error::StoreError;
use crate::store::jsonl::append::Tail;
use crate::store::jsonl::files::Files;
use crate::store::jsonl::live::{Claim, Live, Registry};
use crate::store::jsonl::open;
use crate::store::jsonl::read::{self, Extent};
use crate::store::jsonl::writer::Writer;
use crate::store::log::{Inspection, LogId, LogText, Revision, Snapshot};

pub(super) struct Logs {
    pub(super) files: Arc<Files>,
    pub(super) registry: Arc<Registry>,
    cache: Memo<Inspection>,
}

/// What a writer left that went before everything was safe.
pub(super) struct Left {
    pub(super) live: Arc<Live>,
    pub(super) tail: OwnedMutexGuard<Tail>,
}

impl Logs {
    pub(super) fn new(files: Files) -> Self {
        let cache = Memo::new(files.options.cache);
        Self { files: Arc::new(files), registry: Arc::default(), cache }
    }

    /// Opens a log of which nothing is known.
    pub(super) fn open(&self, claim: Claim) -> Result<Writer, StoreError> {
        let inspection = self.inspect(claim.log())?;
        let (tail, acked) = open::open(&self.files, claim.log(), &inspection)?;
        Ok(Writer::new(&self.files, claim, Arc::new(Live::new(tail, acked))))
    }

    /// Goes on where a writer left, unless somebody else has changed the log since.
    pub(super) fn resume(&self, claim: Claim, left: Left) -> Result<Writer, StoreError> {
        let Left { live, mut tail } = left;
        let met = tail.resume(&self.files);
        drop(tail);
        match met {
            Ok(acked) => {
                live.acknowledge(acked);
                Ok(Writer::new(&self.files, claim, live))
            }
            Err(StoreError::Changed { .. } | StoreError::NotFound(_)) => {
                claim.forget();
                self.open(claim)
            }
            Err(error) => Err(error),
        }
    }

    pub(super) fn inspect(&self, log: &LogId) -> Result<Arc<Inspection>, StoreError> {
        let extent = self.extent(log);
        let revision = self.revision(log, extent)?;
        self.cache.get_or_read(log, revision, || {
            read::inspect(&self.files.place(log), &self.read(log, extent)?)
        })
    }

    pub(super) fn read(&self, log: &LogId, extent: Extent) -> Result<LogText, StoreError> {
        let found = read::read(&self.files, log, extent);
        let torn = matches!(
            found,
            Ok(LogText { torn: Some(_), .. })
                | Err(StoreError::Torn { .. } | StoreError::Corrupt { .. })
        );
        match (extent, self.extent(log)) {
            // A writer has come meanwhile; what looks torn was its append under way.
            (Extent::Cold, live @ Extent::Live(_)) if torn => read::read(&self.files, log, live),
            _ => found,
        }
    }

    pub(super) fn snapshot(&self, log: &LogId) -> Result<Snapshot, StoreError> {
        let snapshot = read::snapshot(&self.files, log)?;
        Ok(match self.extent(log) {
            Extent::Cold => snapshot,
            Extent::Live(acked) => Snapshot { revision: acked.revision, ..snapshot },
        })
    }

    pub(super) fn revision(&self, log: &LogId, extent: Extent) -> Result<Revision, StoreError> {
        match extent {
            Extent::Cold => read::revision(&self.files, log),
            Extent::Live(acked) => Ok(acked.revision),
        }
    }

    pub(super) fn extent(&self, log: &LogId) -> Extent {
        self.registry.live(log).map_or(Extent::Cold, |live| Extent::Live(live.acked()))
    }
}
