//! The one writer of a log: hands batches to the log's end, on a thread that may block.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use crate::store::blocking::blocking;
use crate::store::error::StoreError;
use crate::store::jsonl::append::Batch;
use crate::store::jsonl::files::Files;
use crate::store::jsonl::live::{Claim, Live};
use crate::store::log::{LogId, Record, Revision, join};
use crate::store::seam::{Durability, LogWriter};

pub(super) struct Writer {
    files: Arc<Files>,
    /// Shared with the append under way, so that the log is free only after it.
    claim: Arc<Claim>,
    live: Arc<Live>,
}

impl Writer {
    /// The writer of a log that is live from now on.
    pub(super) fn new(files: &Arc<Files>, claim: Claim, live: Arc<Live>) -> Self {
        claim.own(&live);
        Self { files: Arc::clone(files), claim: Arc::new(claim), live }
    }
}

#[async_trait]
impl LogWriter for Writer {
    fn log(&self) -> &LogId {
        self.claim.log()
    }

    fn records(&self) -> u64 {
        self.live.acked().records
    }

    async fn append(
        &mut self,
        batch: &[Record],
        durability: Durability,
    ) -> Result<Revision, StoreError> {
        if batch.is_empty() {
            return Ok(self.live.acked().revision);
        }
        let (lines, records) = (join(batch), batch.len() as u64);
        let mut tail = Arc::clone(&self.live.tail).lock_owned().await;
        let (files, live, claim) =
            (Arc::clone(&self.files), Arc::clone(&self.live), Arc::clone(&self.claim));
        blocking(&self.files.tasks, move || {
            let bytes = files.options.encoding.encode(lines, tail.size());
            let bytes =
                bytes.map_err(|why| files.unmade(claim.log(), live.acked().records, why))?;
            let acked = tail.append(&files, Batch { bytes: &bytes, records }, durability)?;
            live.acknowledge(acked);
            // The end first: whoever lets go of the log looks at it.
            drop(tail);
            drop(claim);
            Ok(acked.revision)
        })
        .await?
    }

    async fn close(self: Box<Self>) -> Result<(), StoreError> {
        settle(&self.files, &self.live).await
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer")
            .field("log", self.claim.log())
            .field("acked", &self.live.acked())
            .finish_non_exhaustive()
    }
}

/// Makes the end of a log safe, if it is not.
pub(super) async fn settle(files: &Arc<Files>, live: &Arc<Live>) -> Result<(), StoreError> {
    let mut tail = Arc::clone(&live.tail).lock_owned().await;
    if !tail.is_unsettled() {
        return Ok(());
    }
    let tasks = &files.tasks;
    let (files, live) = (Arc::clone(files), Arc::clone(live));
    blocking(tasks, move || {
        live.acknowledge(tail.settle(&files)?);
        Ok(())
    })
    .await?
}
