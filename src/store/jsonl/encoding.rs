//! How the records of a log become the bytes of its file and come back: the one thing in which the
//! forms of this backend differ. Everything else moves bytes about and looks into none.

use std::sync::Arc;

use bytes::Bytes;

use crate::store::error::Corruption;
use crate::store::frames::fault::{Broken, FrameFault};
use crate::store::frames::salvage::Piece;
use crate::store::frames::{self, Decoders};
use crate::store::log::{LogText, Record, Revision, Torn};
use crate::store::remnant::{self, Lost, Remnant, Span};

/// How records stand in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    /// One line each, which people can grep.
    #[default]
    Lines,
    /// Lines in compressed frames with checksums; see [`frames`].
    Frames,
}

/// A damaged place in a log.
pub(super) struct Damage {
    /// The line with which it begins, from 1.
    pub(super) line: u64,
    /// What is wrong there.
    pub(super) why: Corruption,
}

impl Encoding {
    /// What it is called where it is chosen.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Lines => "jsonl",
            Self::Frames => "jsonl-zst",
        }
    }

    /// How the name of a log's file ends, after its id.
    #[must_use]
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Lines => ".jsonl",
            Self::Frames => ".jsonl.zst",
        }
    }

    /// The bytes of a log that begins with these whole lines.
    pub(super) fn begin(self, lines: Vec<u8>) -> Result<Vec<u8>, Corruption> {
        match self {
            Self::Lines => Ok(lines),
            Self::Frames => frames::begin(&lines).map_err(|why| frame(0, why)),
        }
    }

    /// The bytes that these whole lines add to a log of so many bytes. The same lines are the same bytes.
    pub(super) fn encode(self, lines: Vec<u8>, offset: u64) -> Result<Vec<u8>, Corruption> {
        match self {
            Self::Lines => Ok(lines),
            Self::Frames => frames::encode(&lines).map_err(|why| frame(offset, why)),
        }
    }

    /// The text of a log, without its torn end.
    pub(super) fn decode(
        self,
        bytes: Vec<u8>,
        revision: Revision,
        decoders: &Decoders,
    ) -> Result<LogText, Damage> {
        match self {
            Self::Lines => Ok(LogText::new(Bytes::from(bytes), revision)),
            Self::Frames => {
                let decoded = frames::decode(&bytes, decoders).map_err(|broken| {
                    let Broken { line, offset, why } = broken;
                    Damage { line, why: frame(offset, why) }
                })?;
                let torn = (bytes.len() - decoded.whole) as u64;
                let torn = (torn > 0).then_some(Torn { offset: decoded.whole as u64, bytes: torn });
                Ok(LogText::whole(Bytes::from(decoded.text), revision, torn))
            }
        }
    }

    /// What can still be had of the bytes of a log.
    pub(super) fn remnants(self, bytes: Vec<u8>, decoders: &Decoders) -> Vec<Remnant> {
        match self {
            Self::Lines => remnant::lines(&Bytes::from(bytes), 0),
            Self::Frames => {
                let pieces = frames::salvage(&bytes, decoders).into_iter();
                pieces.flat_map(remnants_of).collect()
            }
        }
    }

    /// The first record of a log, of which these are the first bytes; `None` if it goes beyond them.
    pub(super) fn first(
        self,
        bytes: Vec<u8>,
        decoders: &Decoders,
    ) -> Result<Option<Record>, Corruption> {
        let line = match self {
            Self::Lines => {
                let end = memchr::memchr(b'\n', &bytes);
                end.map(|end| Bytes::from(bytes).slice(..end))
            }
            Self::Frames => match frames::first(&bytes, decoders).map_err(|why| frame(0, why))? {
                frames::First::GoesOn => None,
                frames::First::Line(mut line) => {
                    line.pop();
                    Some(Bytes::from(line))
                }
            },
        };
        Ok(line.map(Record::of_line).transpose()?)
    }

    /// The records that a torn end holds in whole and that reading left out. Only those up to the first
    /// that is none: nothing else vouches for them.
    pub(super) fn recover(self, torn: &[u8]) -> Vec<Record> {
        match self {
            // A line counts once its end is there.
            Self::Lines => Vec::new(),
            Self::Frames => {
                let text = Bytes::from(frames::recover(torn));
                let lines = text.split_inclusive(|byte| *byte == b'\n');
                let lines = lines.map(|line| line.strip_suffix(b"\n").unwrap_or(line));
                lines.map_while(|line| Record::of_line(text.slice_ref(line)).ok()).collect()
            }
        }
    }
}

fn remnants_of(piece: Piece) -> Vec<Remnant> {
    match piece {
        Piece::Text { offset, text } => remnant::lines(&Bytes::from(text), offset),
        Piece::Lost { offset, bytes, why, text } => {
            let lines = remnant::lines(&Bytes::from(text), offset).into_iter();
            let lost = |why| {
                Remnant::Lost(Lost { span: Span::Bytes { offset, bytes }, why: Arc::new(why) })
            };
            match why {
                Some(why) => {
                    let unproven = lines.map(Remnant::unproven);
                    [lost(frame(offset, why))].into_iter().chain(unproven).collect()
                }
                // The lines of a write that was torn are all the same what was written.
                None => lines.chain([lost(Corruption::Torn)]).collect(),
            }
        }
    }
}

fn frame(offset: u64, why: FrameFault) -> Corruption {
    Corruption::Frame { offset, why }
}
