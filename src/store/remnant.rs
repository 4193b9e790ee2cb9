//! What can still be had of a log that is damaged, and where something cannot.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use crate::store::error::Corruption;
use crate::store::log::{LogId, Removed};

/// Where a log is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    /// In its place.
    There(LogId),
    /// Among what was removed.
    Removed(Removed),
}

impl Kept {
    /// Which log.
    #[must_use]
    pub fn log(&self) -> &LogId {
        match self {
            Self::There(log) | Self::Removed(Removed { log, .. }) => log,
        }
    }
}

/// A piece of a log, in its order.
#[derive(Clone, Debug)]
pub enum Remnant {
    /// A line, without its end. That it is a record nobody has checked.
    Line(Bytes),
    /// A line of a part that is damaged: nothing proves that it is as it was written.
    Unproven(Bytes),
    /// Something is missing here.
    Lost(Lost),
}

impl Remnant {
    /// The same, of a part that is damaged.
    pub(super) fn unproven(self) -> Self {
        match self {
            Self::Line(line) | Self::Unproven(line) => Self::Unproven(line),
            Self::Lost(lost) => Self::Lost(lost),
        }
    }
}

/// Something of a log that cannot be had.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{span}: {why}")]
pub struct Lost {
    /// Where it is.
    pub span: Span,
    /// Why it cannot be had.
    pub why: Arc<Corruption>,
}

/// Where in a log something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// So many bytes of its file.
    Bytes {
        /// Where they begin, from 0.
        offset: u64,
        /// How many.
        bytes: u64,
    },
    /// Some of its rows.
    Rows {
        /// The first, from 0.
        first: u64,
        /// The last.
        last: u64,
    },
    /// One line of what could be read.
    Line(
        /// Its number, from 1.
        u64,
    ),
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes { offset, bytes } => write!(f, "{bytes} bytes from byte {offset}"),
            Self::Rows { first, last } if first == last => write!(f, "row {first}"),
            Self::Rows { first, last } => write!(f, "rows {first} to {last}"),
            Self::Line(number) => write!(f, "line {number}"),
        }
    }
}

/// The whole lines of a text, and what follows the last of them.
pub(super) fn lines(text: &Bytes, offset: u64) -> Vec<Remnant> {
    let mut pieces = Vec::new();
    let mut start = 0;
    for end in memchr::memchr_iter(b'\n', text) {
        pieces.push(Remnant::Line(text.slice(start..end)));
        start = end + 1;
    }
    if start < text.len() {
        let (offset, bytes) = (offset + start as u64, (text.len() - start) as u64);
        let span = Span::Bytes { offset, bytes };
        pieces.push(Remnant::Lost(Lost { span, why: Arc::new(Corruption::Torn) }));
    }
    pieces
}
