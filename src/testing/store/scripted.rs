//! A store that stops where a test says, fails where it says, and counts what is read and flushed.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use crate::store::error::{FlushError, IoFailure, StoreError};
use crate::store::log::{
    Inspection, Location, LogId, LogKind, LogText, Record, Removed, Revision, Snapshot, Strays,
};
use crate::store::remnant::{Kept, Remnant};
use crate::store::seam::{Durability, LogStore, LogWriter};
use crate::testing::disk::ENOSPC;
use crate::testing::gate::Gate;

/// Another store behind a script. Clones share the script.
#[derive(Clone, Debug)]
pub struct ScriptedStore {
    inner: Arc<dyn LogStore>,
    script: Arc<Mutex<Script>>,
    watch: Option<Arc<dyn Watch>>,
}

/// Stands before and after every change of a log, and before whatever is read, and can hold it up
/// there.
#[async_trait]
pub trait Watch: fmt::Debug + Send + Sync {
    /// The change is about to be made.
    async fn before(&self, log: &LogId, change: Change<'_>);

    /// The change is made, and whoever asked for it does not know yet.
    async fn after(&self, log: &LogId, change: Change<'_>);

    /// Something is about to be read; `what` is for people.
    async fn read(&self, what: &str);
}

/// What happens to a log.
#[derive(Clone, Copy, Debug)]
pub enum Change<'a> {
    /// It begins with these records.
    Create(&'a [Record]),
    /// It gets these records.
    Append(&'a [Record]),
    /// It is taken out.
    Remove,
    /// It is put back.
    Restore,
    /// What was taken out is destroyed.
    Destroy,
}

#[derive(Debug, Default)]
struct Script {
    stops: Vec<(String, Gate)>,
    failures: Vec<String>,
    panics: Vec<String>,
    flush_stops: Vec<Gate>,
    flush_failures: Vec<FlushError>,
    flushes: usize,
    closes: usize,
    reads: Vec<LogId>,
    batches: Vec<(Vec<Record>, Durability)>,
}

impl ScriptedStore {
    /// `inner`, which goes its way until the script says otherwise.
    #[must_use]
    pub fn new(inner: Arc<dyn LogStore>) -> Self {
        Self { inner, script: Arc::default(), watch: None }
    }

    /// The same with somebody who stands at every change.
    #[must_use]
    pub fn watched_by(self, watch: Arc<dyn Watch>) -> Self {
        Self { watch: Some(watch), ..self }
    }

    /// The next batch with a record that holds `text` is appended once this gate is open.
    #[must_use]
    pub fn stop_before(&self, text: &str) -> Gate {
        let gate = Gate::new();
        self.script().stops.push((text.to_owned(), gate.clone()));
        gate
    }

    /// The next batch with a record that holds `text` is not appended: the device is full.
    pub fn fail_at(&self, text: &str) {
        self.script().failures.push(text.to_owned());
    }

    /// The next batch with a record that holds `text` is not appended: whoever was to do it panics.
    /// A failure at the same text comes first.
    pub fn panic_at(&self, text: &str) {
        self.script().panics.push(text.to_owned());
    }

    /// The next flush begins once this gate is open.
    #[must_use]
    pub fn stop_before_flush(&self) -> Gate {
        let gate = Gate::new();
        self.script().flush_stops.push(gate.clone());
        gate
    }

    /// The next flush fails with this.
    pub fn fail_flush(&self, error: FlushError) {
        self.script().flush_failures.push(error);
    }

    /// How many flushes were begun so far.
    #[must_use]
    pub fn flushes(&self) -> usize {
        self.script().flushes
    }

    /// How many writers were closed so far.
    #[must_use]
    pub fn closes(&self) -> usize {
        self.script().closes
    }

    /// The logs that were read so far, each as often as it was read.
    #[must_use]
    pub fn reads(&self) -> Vec<LogId> {
        self.script().reads.clone()
    }

    /// The batches that were appended so far, each with how safe it had to be.
    #[must_use]
    pub fn batches(&self) -> Vec<(Vec<Record>, Durability)> {
        self.script().batches.clone()
    }

    async fn before(&self, log: &LogId, change: Change<'_>) {
        if let Some(watch) = &self.watch {
            watch.before(log, change).await;
        }
    }

    async fn after(&self, log: &LogId, change: Change<'_>) {
        if let Some(watch) = &self.watch {
            watch.after(log, change).await;
        }
    }

    async fn read(&self, what: &str) {
        if let Some(watch) = &self.watch {
            watch.read(what).await;
        }
    }

    fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wrap(&self, writer: Box<dyn LogWriter>) -> Box<dyn LogWriter> {
        Box::new(ScriptedWriter { store: self.clone(), writer })
    }

    /// Takes the first entry out that a record of the batch holds.
    fn take<T>(entries: &mut Vec<T>, batch: &[Record], text: impl Fn(&T) -> &str) -> Option<T> {
        let holds = |entry: &T| {
            let mut records = batch.iter().map(|it| String::from_utf8_lossy(it.as_bytes()));
            records.any(|record| record.contains(text(entry)))
        };
        let at = entries.iter().position(holds)?;
        Some(entries.remove(at))
    }
}

#[async_trait]
impl LogStore for ScriptedStore {
    fn locate(&self, log: &LogId) -> Option<Location> {
        self.inner.locate(log)
    }

    fn is_live(&self, log: &LogId) -> bool {
        self.inner.is_live(log)
    }

    async fn create(
        &self,
        log: &LogId,
        batch: &[Record],
    ) -> Result<Box<dyn LogWriter>, StoreError> {
        self.before(log, Change::Create(batch)).await;
        let writer = self.wrap(self.inner.create(log, batch).await?);
        self.after(log, Change::Create(batch)).await;
        Ok(writer)
    }

    async fn open(&self, log: &LogId) -> Result<Box<dyn LogWriter>, StoreError> {
        self.read(&format!("{log} for writing")).await;
        Ok(self.wrap(self.inner.open(log).await?))
    }

    async fn inspect(&self, log: &LogId) -> Result<Arc<Inspection>, StoreError> {
        self.script().reads.push(log.clone());
        self.read(&log.to_string()).await;
        self.inner.inspect(log).await
    }

    fn scan(&self, log: &LogId) -> Result<LogText, StoreError> {
        self.inner.scan(log)
    }

    fn remnants(&self, kept: &Kept) -> Result<Vec<Remnant>, StoreError> {
        self.inner.remnants(kept)
    }

    fn size(&self, log: &LogId) -> Result<u64, StoreError> {
        self.inner.size(log)
    }

    async fn check(&self) -> Result<Vec<StoreError>, StoreError> {
        self.inner.check().await
    }

    async fn list(&self, kind: LogKind) -> Result<Vec<LogId>, StoreError> {
        self.read(&format!("the list of every {}", kind.as_str())).await;
        self.inner.list(kind).await
    }

    async fn strays(&self, kind: LogKind) -> Result<Strays, StoreError> {
        self.read(&format!("what is no {}", kind.as_str())).await;
        self.inner.strays(kind).await
    }

    async fn snapshots(
        &self,
        kind: LogKind,
    ) -> Result<Vec<Result<Snapshot, StoreError>>, StoreError> {
        self.read(&format!("the beginning of every {}", kind.as_str())).await;
        self.inner.snapshots(kind).await
    }

    async fn revision(&self, log: &LogId) -> Result<Revision, StoreError> {
        self.inner.revision(log).await
    }

    async fn remove(&self, log: &LogId) -> Result<Removed, StoreError> {
        self.before(log, Change::Remove).await;
        let removed = self.inner.remove(log).await?;
        self.after(log, Change::Remove).await;
        Ok(removed)
    }

    async fn removed(&self) -> Result<Vec<Removed>, StoreError> {
        self.read("the list of what was removed").await;
        self.inner.removed().await
    }

    async fn inspect_removed(&self, removed: &Removed) -> Result<Inspection, StoreError> {
        self.read(&format!("{}, which was removed", removed.log)).await;
        self.inner.inspect_removed(removed).await
    }

    async fn restore(&self, removed: &Removed) -> Result<(), StoreError> {
        self.before(&removed.log, Change::Restore).await;
        self.inner.restore(removed).await?;
        self.after(&removed.log, Change::Restore).await;
        Ok(())
    }

    async fn take_over(&self, removed: &Removed, records: &[Record]) -> Result<(), StoreError> {
        self.inner.take_over(removed, records).await
    }

    async fn destroy(&self, removed: &Removed) -> Result<(), StoreError> {
        self.before(&removed.log, Change::Destroy).await;
        self.inner.destroy(removed).await?;
        self.after(&removed.log, Change::Destroy).await;
        Ok(())
    }

    async fn finish_destroying(&self) -> Result<(), StoreError> {
        self.inner.finish_destroying().await
    }

    async fn flush(&self, scope: Option<&LogId>) -> Result<(), FlushError> {
        let stop = {
            let mut script = self.script();
            script.flushes += 1;
            script.flush_stops.pop()
        };
        if let Some(gate) = stop {
            gate.pass().await;
        }
        if let Some(error) = self.script().flush_failures.pop() {
            return Err(error);
        }
        self.inner.flush(scope).await
    }
}

#[derive(Debug)]
struct ScriptedWriter {
    store: ScriptedStore,
    writer: Box<dyn LogWriter>,
}

#[async_trait]
impl LogWriter for ScriptedWriter {
    fn log(&self) -> &LogId {
        self.writer.log()
    }

    fn records(&self) -> u64 {
        self.writer.records()
    }

    async fn append(
        &mut self,
        batch: &[Record],
        durability: Durability,
    ) -> Result<Revision, StoreError> {
        let stop = ScriptedStore::take(&mut self.store.script().stops, batch, |(text, _)| text);
        if let Some((_, gate)) = stop {
            gate.pass().await;
        }
        let failure = ScriptedStore::take(&mut self.store.script().failures, batch, |text| text);
        if failure.is_some() {
            let (action, path) = ("append to", self.log().to_string().into());
            let cause = Arc::new(io::Error::from_raw_os_error(ENOSPC));
            return Err(IoFailure { action, path, cause }.into());
        }
        let panic = ScriptedStore::take(&mut self.store.script().panics, batch, |text| text);
        assert!(panic.is_none(), "the script says so");
        self.store.script().batches.push((batch.to_vec(), durability));
        self.store.before(self.log(), Change::Append(batch)).await;
        let revision = self.writer.append(batch, durability).await?;
        self.store.after(self.log(), Change::Append(batch)).await;
        Ok(revision)
    }

    async fn close(self: Box<Self>) -> Result<(), StoreError> {
        self.store.script().closes += 1;
        self.writer.close().await
    }
}
