//! What can be wrong with a frame.

use crate::store::frames::walk::{FRAME_BYTES_MAX, LOG_BYTES_MAX};

/// Why a frame of a log cannot be read, or could not be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameFault {
    /// There are other bytes, or a frame of another kind: one to be skipped, or of an old version.
    #[error("no Zstandard frame begins there")]
    NoFrame,
    /// The format has no such frame yet.
    #[error("its headers say what no frame can be")]
    Reserved,
    /// It can be decoded with a dictionary only, and there is none.
    #[error("it wants a dictionary")]
    Dictionary,
    /// Nobody could say whether its content is sound.
    #[error("it has no checksum")]
    NoChecksum,
    /// Its header leaves out how many bytes it holds.
    #[error("it does not say how long its content is")]
    NoLength,
    /// It says to hold more than any frame does.
    #[error("it says to hold {declared} bytes, more than the {FRAME_BYTES_MAX} of a frame")]
    TooLong {
        /// What it says.
        declared: u64,
    },
    /// It says to hold more than its blocks can.
    #[error("it says to hold {declared} bytes, and its blocks can hold {possible}")]
    Overstated {
        /// What it says.
        declared: u64,
        /// What there can be.
        possible: u64,
    },
    /// The memory for its content is not to be had.
    #[error("there is no memory for its {bytes} bytes")]
    NoMemory {
        /// How much was asked for.
        bytes: usize,
    },
    /// With it, the log says to hold more than any does.
    #[error(
        "with it the log says to hold {declared} bytes, more than the {LOG_BYTES_MAX} of a log"
    )]
    LogTooLong {
        /// What all frames up to this one say.
        declared: u64,
    },
    /// The decoder refuses it; this is what it says.
    #[error("its content is damaged: {0}")]
    Damaged(&'static str),
    /// The encoder failed; this is what it says.
    #[error("it cannot be made: {0}")]
    Unmade(&'static str),
    /// Its headers lead beyond the end of the file, over frames that are whole.
    #[error("its headers are damaged: whole frames begin inside of it")]
    Swallowing,
    /// It ends within a line, or holds nothing.
    #[error("it does not hold whole lines")]
    Lines,
    /// The first frame is the first record and nothing else, so that it can be read alone.
    #[error("the first frame does not hold exactly the first record")]
    First,
}

impl FrameFault {
    /// Whether nothing need be wrong with the log, but that it is more than can be held.
    #[must_use]
    pub fn is_of_memory(&self) -> bool {
        match self {
            Self::NoMemory { .. } | Self::LogTooLong { .. } => true,
            Self::NoFrame
            | Self::Reserved
            | Self::Dictionary
            | Self::NoChecksum
            | Self::NoLength
            | Self::TooLong { .. }
            | Self::Overstated { .. }
            | Self::Damaged(_)
            | Self::Unmade(_)
            | Self::Swallowing
            | Self::Lines
            | Self::First => false,
        }
    }
}

/// Something wrong in a log of frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The line with which the frame begins, from 1.
    pub line: u64,
    /// The byte at which it begins.
    pub offset: u64,
    /// What is wrong with it.
    pub why: FrameFault,
}
