//! The end of a log in the hands of its writer: adding records so that a failure leaves none, and
//! knowing at any time which acknowledged bytes are safe on the device.

use std::io;
use std::path::PathBuf;

use crate::store::disk::{self, DiskFile, Open, Stat};
use crate::store::error::{IoFailure, StoreError};
use crate::store::jsonl::files::{Files, revision_of};
use crate::store::jsonl::read::Acked;
use crate::store::log::LogId;
use crate::store::seam::{Durability, SyncMode};

/// What is kept in memory for a device that forgets. A batch that would exceed it is a barrier.
const PENDING_BYTES_MAX: usize = 1024 * 1024;

/// Whole records that belong together, as they stand in the file.
#[derive(Clone, Copy)]
pub(super) struct Batch<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) records: u64,
}

const NOTHING: Batch<'static> = Batch { bytes: &[], records: 0 };

/// The end of one log.
pub(super) struct Tail {
    log: LogId,
    path: PathBuf,
    /// None after trouble, until it is opened again.
    file: Option<Box<dyn DiskFile>>,
    /// The acknowledged bytes.
    size: u64,
    records: u64,
    /// The last of the acknowledged bytes, as far as no sync has covered them.
    pending: Vec<u8>,
    /// What a failed append may have left after the acknowledged bytes.
    attempted: Vec<u8>,
    trust: Trust,
}

/// Whether a sync would tell of pending bytes that the device did not take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trust {
    /// It would.
    Sound,
    /// One has failed, or the handle that would have told was closed: pending bytes are written
    /// once more before anything else is.
    Doubtful,
}

impl Tail {
    /// The end of a log whose `size` bytes are all acknowledged.
    pub(super) fn new(
        log: &LogId,
        path: PathBuf,
        file: Box<dyn DiskFile>,
        size: u64,
        records: u64,
    ) -> Self {
        Self {
            log: log.clone(),
            path,
            file: Some(file),
            size,
            records,
            pending: Vec::new(),
            attempted: Vec::new(),
            trust: Trust::Sound,
        }
    }

    /// Adds records, all or none.
    pub(super) fn append(
        &mut self,
        files: &Files,
        batch: Batch<'_>,
        durability: Durability,
    ) -> Result<Acked, StoreError> {
        files.check_lock()?;
        self.heal(files)?;
        let there = self.meet(files, batch)?;
        let acked = self.put(files, batch, there, durability);
        if acked.is_err() {
            self.take_back(batch);
        }
        acked
    }

    /// Makes safe what is not, if the mode asks for that.
    pub(super) fn settle(&mut self, files: &Files) -> Result<Acked, StoreError> {
        files.check_lock()?;
        self.heal(files)?;
        self.meet(files, NOTHING)?;
        if !self.pending.is_empty() {
            self.prove(files, NOTHING)?;
        }
        self.acked(files)
    }

    /// Takes over from a writer that left: the end is where it was, or can be brought there.
    pub(super) fn resume(&mut self, files: &Files) -> Result<Acked, StoreError> {
        self.rest();
        self.meet(files, NOTHING)?;
        self.acked(files)
    }

    /// Whether something remains to be done that a new writer could not know of.
    pub(super) fn is_unsettled(&self) -> bool {
        !self.pending.is_empty() || !self.attempted.is_empty() || self.trust == Trust::Doubtful
    }

    /// Lets go of the file; it is opened again when it is needed.
    pub(super) fn rest(&mut self) {
        self.file = None;
        if !self.pending.is_empty() {
            self.trust = Trust::Doubtful;
        }
    }

    /// The acknowledged state, with the revision that the file has now.
    pub(super) fn acked(&mut self, files: &Files) -> Result<Acked, StoreError> {
        let stat = self.stat(files)?;
        Ok(Acked { size: self.size, records: self.records, revision: revision_of(&stat) })
    }

    fn stat(&mut self, files: &Files) -> Result<Stat, StoreError> {
        self.file(files)?.stat().map_err(files.failed(&self.log, "look at"))
    }

    fn file(&mut self, files: &Files) -> Result<&dyn DiskFile, StoreError> {
        let log = self.log.clone();
        self.reopened(files).map_err(files.refused(&log))
    }

    fn reopened(&mut self, files: &Files) -> Result<&dyn DiskFile, IoFailure> {
        let open = || {
            let opened = files.disk.open(&self.path, Open::Write);
            opened.map_err(IoFailure::of("open", &self.path))
        };
        let file = self.file.take().map_or_else(open, Ok)?;
        Ok(&**self.file.insert(file))
    }

    /// Finds the end of the file where it was left; else opens it again and sees whether what
    /// follows is our own. Gives how many bytes of the batch are there already.
    fn meet(&mut self, files: &Files, batch: Batch<'_>) -> Result<usize, StoreError> {
        let mut met = self.stat(files)?;
        if met.links == 0 || met.size != self.size {
            self.rest();
            met = self.stat(files)?;
        }
        let expected = self.size;
        let changed =
            || StoreError::Changed { place: files.place(&self.log), expected, found: met.size };
        let more = met.size.checked_sub(expected).ok_or_else(changed)?;
        if more > batch.bytes.len().max(self.attempted.len()) as u64 {
            return Err(changed());
        }
        let changed = changed();
        let found = disk::read(self.file(files)?, expected, more)
            .map_err(files.failed(&self.log, "read"))?;
        if !found.is_empty() && batch.bytes.starts_with(&found) {
            return Ok(found.len());
        }
        if !self.attempted.starts_with(&found) {
            return Err(changed);
        }
        if !found.is_empty() {
            self.file(files)?.truncate(expected).map_err(files.failed(&self.log, "cut"))?;
        }
        self.attempted.clear();
        Ok(0)
    }

    fn put(
        &mut self,
        files: &Files,
        batch: Batch<'_>,
        there: usize,
        durability: Durability,
    ) -> Result<Acked, StoreError> {
        let missing = batch.bytes.get(there..).unwrap_or_default();
        let offset = self.size + there as u64;
        disk::write(self.file(files)?, offset, missing)
            .map_err(files.failed(&self.log, "append to"))?;
        let mode = files.sync_mode();
        let full = self.pending.len() + batch.bytes.len() > PENDING_BYTES_MAX;
        let waits = mode.waits_for(durability) || (mode == SyncMode::Barrier && full);
        if waits {
            self.prove(files, batch)?;
        }
        let mut acked = self.acked(files)?;
        if mode != SyncMode::Never && !waits {
            self.pending.extend_from_slice(batch.bytes);
        }
        self.attempted.clear();
        self.size += batch.bytes.len() as u64;
        self.records += batch.records;
        (acked.size, acked.records) = (self.size, self.records);
        Ok(acked)
    }

    /// How many bytes the log has as it was acknowledged.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Leaves nothing of a batch that was not acknowledged, or remembers what may be there.
    fn take_back(&mut self, batch: Batch<'_>) {
        let cut = self.file.as_ref().map(|file| file.truncate(self.size));
        if let Some(Ok(())) = cut {
            self.attempted.clear();
        } else {
            tracing::warn!(log = %self.log, ?cut, "what a failed append wrote cannot be cut yet");
            self.attempted = batch.bytes.to_vec();
            self.rest();
        }
    }

    /// Returns when everything pending, and the batch after it, is safe on the device. After a
    /// failed sync, reading back proves nothing: all of it is written once more, and if that does
    /// not help, to a new file.
    fn prove(&mut self, files: &Files, batch: Batch<'_>) -> Result<(), StoreError> {
        if self.trust == Trust::Sound {
            match self.file(files)?.sync() {
                Ok(()) => {
                    self.pending.clear();
                    return Ok(());
                }
                Err(error) => {
                    tracing::warn!(log = %self.log, %error, "a sync failed; writing once more");
                    self.trust = Trust::Doubtful;
                }
            }
        }
        self.write_again(files, batch)
    }

    fn heal(&mut self, files: &Files) -> Result<(), StoreError> {
        match self.trust {
            Trust::Sound => Ok(()),
            Trust::Doubtful => self.write_again(files, NOTHING),
        }
    }

    fn write_again(&mut self, files: &Files, batch: Batch<'_>) -> Result<(), StoreError> {
        let again = self.rewrite(files, batch).or_else(|error| {
            tracing::warn!(%error, "writing once more failed; trying a new file");
            self.replace(files, batch)
        });
        again.map_err(|cause| StoreError::Poisoned { place: files.place(&self.log), cause })?;
        self.pending.clear();
        self.trust = Trust::Sound;
        Ok(())
    }

    /// Writes what is not proven to be safe at the same offsets, and syncs.
    fn rewrite(&mut self, files: &Files, batch: Batch<'_>) -> Result<(), IoFailure> {
        let path = self.path.clone();
        let bytes = [&self.pending, batch.bytes].concat();
        let (safe, size) = (self.safe(), self.size);
        let file = self.reopened(files)?;
        let stat = file.stat().map_err(IoFailure::of("look at", &path))?;
        if stat.links == 0 || stat.size < size {
            return Err(IoFailure::of("write", &path)(io::ErrorKind::UnexpectedEof.into()));
        }
        disk::write(file, safe, &bytes).map_err(IoFailure::of("write", &path))?;
        file.sync().map_err(IoFailure::of("sync", &path))?;
        files.sync_folder_of(&path)
    }

    /// Writes the whole log to a new file and gives that the log's name.
    fn replace(&mut self, files: &Files, batch: Batch<'_>) -> Result<(), IoFailure> {
        let path = self.path.clone();
        let old = files.disk.open(&path, Open::Read).map_err(IoFailure::of("open", &path))?;
        let old = disk::read(&*old, 0, self.safe()).map_err(IoFailure::of("read", &path))?;
        if (old.len() as u64) < self.safe() {
            return Err(IoFailure::of("read", &path)(io::ErrorKind::UnexpectedEof.into()));
        }
        let bytes = [&old, &self.pending, batch.bytes].concat();
        self.file = Some(files.replace(&path, &bytes)?);
        self.attempted.clear();
        files.sync_folder_of(&path)
    }

    /// How many bytes a sync has covered.
    fn safe(&self) -> u64 {
        self.size - self.pending.len() as u64
    }
}
