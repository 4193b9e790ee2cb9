//! What the seam speaks of: logs, their records and revisions, and what is read of them.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use crate::base::clock::Timestamp;
use crate::base::id::{IdForm, MalformedId, SessionId, TurnId};

/// The two kinds of logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogKind {
    /// A session: its header and references to its turns.
    Session,
    /// A turn: everything that one message caused.
    Turn,
}

impl LogKind {
    /// The word for one log of this kind.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Turn => "turn",
        }
    }
}

/// How much of an id is its day.
const DAY_BYTES: usize = 10;

/// The name of a log: its kind and an id whose form has been checked, so that a path may be made
/// of it. Sorts by kind, then by the time at which the log was made.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogId {
    kind: LogKind,
    id: Arc<str>,
}

impl LogId {
    /// The log of `kind` with the id `id`.
    ///
    /// # Errors
    /// [`MalformedId`] for everything that has not the whole form of an id.
    pub fn new(kind: LogKind, id: &str) -> Result<Self, MalformedId> {
        let _checked: IdForm = id.parse()?;
        Ok(Self { kind, id: Arc::from(id) })
    }

    /// The log of a session.
    ///
    /// # Errors
    /// As [`LogId::new`].
    pub fn session(id: &SessionId) -> Result<Self, MalformedId> {
        Self::new(LogKind::Session, id.as_str())
    }

    /// The log of a turn.
    ///
    /// # Errors
    /// As [`LogId::new`].
    pub fn turn(id: &TurnId) -> Result<Self, MalformedId> {
        Self::new(LogKind::Turn, id.as_str())
    }

    /// Which kind of log this is.
    #[must_use]
    pub fn kind(&self) -> LogKind {
        self.kind
    }

    /// The id as text.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The day on which the log was made, as the id begins: `YYYY-MM-DD`.
    #[must_use]
    pub fn day(&self) -> &str {
        self.id.get(..DAY_BYTES).unwrap_or_default()
    }
}

impl fmt::Display for LogId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.as_str(), self.id)
    }
}

impl fmt::Debug for LogId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// One record of a log: the JSON object of an event, on one line, without the line's end. Records
/// that were read together share one buffer; a clone copies nothing.
#[derive(Clone, PartialEq, Eq)]
pub struct Record(Bytes);

/// Why bytes are no record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MalformedRecord {
    /// A line's end stands inside.
    #[error("a record must be one line")]
    Lines,
    /// The bytes are no text.
    #[error("not UTF-8 from byte {0} of the line")]
    Utf8(usize),
    /// The text is no JSON, for the reason that the parser gives.
    #[error("not JSON: {0}")]
    Json(String),
    /// The text is JSON, but no object.
    #[error("not a JSON object")]
    Object,
}

impl Record {
    /// Takes one line in, byte for byte.
    ///
    /// # Errors
    /// [`MalformedRecord`] if it is not exactly one JSON object on one line.
    pub fn new(line: impl Into<Bytes>) -> Result<Self, MalformedRecord> {
        let line = line.into();
        if memchr::memchr(b'\n', &line).is_some() {
            return Err(MalformedRecord::Lines);
        }
        Self::of_line(line)
    }

    /// As [`Record::new`], of bytes that were found between line ends.
    pub(super) fn of_line(line: Bytes) -> Result<Self, MalformedRecord> {
        let text = std::str::from_utf8(&line)
            .map_err(|error| MalformedRecord::Utf8(error.valid_up_to()))?;
        serde_json::from_str::<IgnoredAny>(text)
            .map_err(|error| MalformedRecord::Json(error.to_string()))?;
        if !text.trim_start().starts_with('{') {
            return Err(MalformedRecord::Object);
        }
        Ok(Self(line))
    }

    /// The bytes of the line: UTF-8, without the line's end.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

/// The state of a log's storage, as a token: equal means that nothing has changed. It says nothing
/// of order. The backend owns what it means.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Revision(pub(super) [u64; 5]);

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = self.0.map(|part| format!("{part:x}"));
        f.write_str(&parts.join("-"))
    }
}

impl fmt::Debug for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Where a log of its own artifact lies: absolute, perhaps not there yet; a hint and never an
/// authorisation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// Which backend wrote it, for example `jsonl`.
    pub kind: &'static str,
    /// The file.
    pub path: PathBuf,
}

/// Bytes after the last whole record: the rest of a write that was never acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Torn {
    /// How many bytes the whole records take; the torn ones follow.
    pub offset: u64,
    /// How many torn bytes there are.
    pub bytes: u64,
}

/// The torn end of a log that was kept beside it when it was cut off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetAside {
    /// Which log.
    pub log: LogId,
    /// How many bytes there were.
    pub bytes: u64,
    /// How many records among them were whole, and count.
    pub recovered: u64,
    /// Where they are.
    pub path: PathBuf,
}

impl fmt::Display for SetAside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { log, bytes, recovered, path } = self;
        let path = path.display();
        write!(f, "{log} ended in {bytes} bytes of a torn write; they are kept in {path}")?;
        match recovered {
            0 => Ok(()),
            1 => f.write_str(", and one record was recovered"),
            more => write!(f, ", and {more} records were recovered"),
        }
    }
}

/// A log that lies elsewhere than its id says, so that it cannot be read by its id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{log} lies in {}; move it to {}", found.display(), belongs.display())]
pub struct Misplaced {
    /// Which log.
    pub log: LogId,
    /// The file.
    pub found: PathBuf,
    /// Where it belongs.
    pub belongs: PathBuf,
}

/// What stands among the logs of a kind and is none of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Strays {
    /// Logs in wrong places.
    pub misplaced: Vec<Misplaced>,
    /// What was cut off logs.
    pub set_aside: Vec<PathBuf>,
}

/// A log as it was read, whole and immutable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspection {
    /// The first record, the log's header.
    pub first: Record,
    /// All records, the first one too.
    pub records: Vec<Record>,
    /// What was read.
    pub revision: Revision,
    /// What was left out at the end; it goes when the log is opened for writing.
    pub torn: Option<Torn>,
}

impl Inspection {
    /// How much memory this holds, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let text: usize = self.records.iter().map(|record| record.0.len() + 1).sum();
        text + self.records.len() * size_of::<Record>()
    }
}

/// The records as lines.
pub(super) fn join(records: &[Record]) -> Vec<u8> {
    let size = records.iter().map(|record| record.0.len() + 1).sum();
    let mut lines = Vec::with_capacity(size);
    for record in records {
        lines.extend_from_slice(record.as_bytes());
        lines.push(b'\n');
    }
    lines
}

/// A log as its text, of which nothing has been looked at but where the lines end: for readers that
/// check more than [`Record::new`] does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogText {
    /// The whole lines, one for each record, each with its end.
    text: Bytes,
    /// What was read.
    pub revision: Revision,
    /// What was left out at the end; it goes when the log is opened for writing.
    pub torn: Option<Torn>,
}

impl LogText {
    /// The text up to its last line's end; what follows is torn.
    #[must_use]
    pub fn new(mut text: Bytes, revision: Revision) -> Self {
        let whole = memchr::memrchr(b'\n', &text).map_or(0, |end| end + 1);
        let torn = text.len() - whole;
        let torn = (torn > 0).then_some(Torn { offset: whole as u64, bytes: torn as u64 });
        text.truncate(whole);
        Self { text, revision, torn }
    }

    /// Whole lines, after which the file goes on with what is torn.
    #[must_use]
    pub(super) fn whole(text: Bytes, revision: Revision, torn: Option<Torn>) -> Self {
        Self { text, revision, torn }
    }

    /// The lines in their order, without their ends.
    pub fn lines(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        memchr::memchr_iter(b'\n', &self.text).map(move |end| {
            let line = self.text.get(start..end).unwrap_or_default();
            start = end + 1;
            line
        })
    }

    /// The lines as records, which share one buffer.
    ///
    /// # Errors
    /// The number (from 1) of the first line that is no record, and why.
    pub fn records(&self) -> Result<Vec<Record>, (u64, MalformedRecord)> {
        let numbered = (1..).zip(self.lines());
        numbered
            .map(|(number, line)| {
                Record::of_line(self.text.slice_ref(line)).map_err(|why| (number, why))
            })
            .collect()
    }
}

/// What a list needs of a log: its header and its revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Which log this is.
    pub log: LogId,
    /// Its first record.
    pub first: Record,
    /// The revision of the whole log.
    pub revision: Revision,
}

/// A log that was taken out of the store and can still be put back.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Removed {
    /// Which log this was.
    pub log: LogId,
    /// When it was removed.
    pub at: Timestamp,
    /// How the backend finds it again.
    pub(super) key: String,
}

impl Removed {
    /// What tells it from every other removal, also of the same log.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_refused(line: &str, why: &MalformedRecord) {
        assert_eq!(Record::new(line.to_owned()).as_ref(), Err(why), "{line:?}");
    }

    #[test]
    fn a_text_is_its_whole_lines_and_looks_into_none() {
        let text = |bytes: &'static [u8]| LogText::new(Bytes::from_static(bytes), Revision([0; 5]));
        let torn = text(b"{\"a\":1}\n\nnone\n{\"b\"");
        assert_eq!(torn.torn, Some(Torn { offset: 14, bytes: 4 }));
        assert_eq!(torn.lines().collect::<Vec<_>>(), [&b"{\"a\":1}"[..], b"", b"none"]);
        let (line, why) = torn.records().expect_err("an empty line is no record");
        assert_eq!((line, matches!(why, MalformedRecord::Json(_))), (2, true));
        let whole = text(b"{\"a\":1}\n{\"b\":2}\n");
        assert_eq!(join(&whole.records().expect("records")), b"{\"a\":1}\n{\"b\":2}\n");
        assert_eq!((whole.torn, text(b"").lines().count()), (None, 0));
        assert_eq!(text(b"{").torn, Some(Torn { offset: 0, bytes: 1 }));
    }

    #[test]
    fn a_record_is_one_object_on_one_line_and_keeps_its_bytes() {
        let line = r#"{ "type" : "x", "n": 1.50, "s": "a\nb" }"#;
        let record = Record::new(line).expect("an object");
        assert_eq!(record.as_bytes(), line.as_bytes());
        check_refused("{\"a\":\n1}", &MalformedRecord::Lines);
        check_refused("[1]", &MalformedRecord::Object);
        check_refused("7", &MalformedRecord::Object);
        for broken in ["", "{", "{}x", "{\"a\":}", "\0\0\0", "\u{feff}{}"] {
            let refused = Record::new(broken);
            assert!(matches!(refused, Err(MalformedRecord::Json(_))), "{broken:?}: {refused:?}");
        }
        assert_eq!(Record::new(&b"{\"a\":\"\xff\"}"[..]), Err(MalformedRecord::Utf8(6)));
    }

    #[test]
    fn only_the_whole_form_of_an_id_names_a_log() {
        for id in ["", "..", "2025-02-30T04-36-29Z-0001234-000", "../2025", &"9".repeat(300), "é"]
        {
            assert!(LogId::new(LogKind::Session, id).is_err(), "{id:?}");
        }
        let log = LogId::turn(&TurnId::from("2025-11-11T04-36-29Z-0001234-000")).expect("valid");
        assert_eq!(log.to_string(), "turn 2025-11-11T04-36-29Z-0001234-000");
    }
}
