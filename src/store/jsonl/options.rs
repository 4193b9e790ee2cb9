//! How this backend is configured.

use crate::store::cache::CacheBounds;
use crate::store::jsonl::encoding::Encoding;
use crate::store::seam::SyncMode;

/// What happens to bytes after the last whole record (`storage.torn_tail`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TornTail {
    /// Set aside when the log is opened for writing, left out when it is only read.
    #[default]
    Cut,
    /// An error, for reading and writing.
    Reject,
}

/// The configuration of a store in files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// How records stand in the files.
    pub encoding: Encoding,
    /// When to wait for the device.
    pub sync: SyncMode,
    /// What to do with torn ends.
    pub torn_tail: TornTail,
    /// How much to keep of what was read.
    pub cache: CacheBounds,
}
