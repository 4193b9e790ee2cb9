//! Why the store did not do what it was asked. Every error names the log and its file, and what to
//! do. They are `Clone`, because reads are shared.

mod unsupported;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::base::id::MalformedId;
use crate::domain::event::LineError;
use crate::domain::session::apply::SessionRefusal;
use crate::domain::turn::refusal::TurnRefusal;
use crate::store::frames::fault::FrameFault;
use crate::store::log::{LogId, MalformedRecord};

pub use unsupported::Unsupported;

/// A log and, where it has one, its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Which log.
    pub log: LogId,
    /// The file; none for logs that share one artifact or have none.
    pub path: Option<PathBuf>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.path {
            Some(path) => write!(f, "{} ({})", self.log, path.display()),
            None => write!(f, "{}", self.log),
        }
    }
}

/// An operation on files that the system refused.
#[derive(Clone, Debug, thiserror::Error)]
#[error("cannot {action} {}: {cause}", path.display())]
pub struct IoFailure {
    /// What was tried, as a verb.
    pub action: &'static str,
    /// On which file or folder.
    pub path: PathBuf,
    /// What the system said.
    pub cause: Arc<io::Error>,
}

impl IoFailure {
    /// For `map_err`: what was tried, and where.
    pub(crate) fn of(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |cause| Self { action, path: path.to_path_buf(), cause: Arc::new(cause) }
    }
}

/// The program is ending; the operation was not begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the program is ending; nothing was done")]
pub struct Ending;

/// Why an operation on a small file, which is no log, failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum FileError {
    /// The system refused.
    #[error(transparent)]
    Io(#[from] IoFailure),
    /// The program is ending.
    #[error(transparent)]
    Ending(#[from] Ending),
}

/// Why a log cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Corruption {
    /// The file is empty, or its first line has no end.
    #[error("the first record is missing")]
    NoFirstRecord,
    /// The end of the log, without the end of its line or frame: a write that was never acknowledged.
    #[error("a torn write, which was never acknowledged")]
    Torn,
    /// A row is missing, in the middle or at the end.
    #[error("the record is missing")]
    Missing,
    /// The first record is not the one that lists show.
    #[error("the first record is not the one that the list of logs holds")]
    Header,
    /// The pages of the database in which the record lies cannot be read.
    #[error("{0}")]
    Pages(String),
    /// A frame is damaged, or none; nothing behind it is read.
    #[error("the frame at byte {offset}: {why}")]
    Frame {
        /// Where it begins in the file.
        offset: u64,
        /// What is wrong with it.
        why: FrameFault,
    },
    /// A whole line is no record.
    #[error(transparent)]
    Record(#[from] MalformedRecord),
    /// A record is no event.
    #[error(transparent)]
    Event(#[from] LineError),
    /// An event belongs to another log.
    #[error("the event belongs to {0}")]
    Foreign(String),
    /// An event cannot follow those before it in its turn.
    #[error(transparent)]
    Turn(#[from] TurnRefusal),
    /// An event cannot follow those before it in its session.
    #[error(transparent)]
    Session(#[from] SessionRefusal),
}

impl Corruption {
    /// Whether nothing is wrong but that there was no memory for it.
    fn is_for_want_of_memory(&self) -> bool {
        matches!(self, Self::Frame { why: FrameFault::NoMemory { .. }, .. })
    }
}

/// Why an operation on a log failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// The text is no id, so there is no such log.
    #[error(transparent)]
    Id(#[from] MalformedId),
    /// There is no such log.
    #[error("there is no {0}")]
    NotFound(Place),
    /// The log is there already; nothing was changed.
    #[error("{0} exists already")]
    AlreadyExists(Place),
    /// The log is being written in this process; whoever does must let go first.
    #[error("{0} has a writer already; close that first")]
    AlreadyOwned(Place),
    /// A log begins with a record; a batch without any makes none.
    #[error("{0} cannot be created without a first record")]
    NoFirstRecord(Place),
    /// A whole record is damaged. It is never skipped or repaired in place.
    #[error(
        "{place} is corrupt at line {line}: {why}; `turnstile storage salvage` saves what is left of it"
    )]
    Corrupt {
        /// Which log.
        place: Place,
        /// The line, from 1.
        line: u64,
        /// What is wrong with it.
        why: Arc<Corruption>,
    },
    /// An event was refused before it was written: a fault of this program. Nothing was written.
    #[error("{place} would be corrupt at line {line}: {why}; nothing was written")]
    Refused {
        /// Which log.
        place: Place,
        /// The line that the event would be, from 1.
        line: u64,
        /// What is wrong with it.
        why: Arc<Corruption>,
    },
    /// A turn is under way in this process; what needs it whole has to wait for its end.
    #[error("{0} is under way; wait until it has ended, or stop it")]
    LiveTurnOpen(Place),
    /// Bytes follow the last whole record, and the strict reading is configured.
    #[error(
        "{place} ends in {bytes} bytes that are no whole record, after byte {offset}; \
         storage.torn_tail = \"cut\" sets them aside"
    )]
    Torn {
        /// Which log.
        place: Place,
        /// Where the whole records end.
        offset: u64,
        /// How many bytes follow.
        bytes: u64,
    },
    /// Somebody else changed the log under its writer. Nothing was written; open it again.
    #[error(
        "{place} was changed by another program: {expected} bytes expected, {found} found; end that \
         program and open the session again"
    )]
    Changed {
        /// Which log.
        place: Place,
        /// How many bytes this writer left.
        expected: u64,
        /// How many there are, 0 if the file is gone.
        found: u64,
    },
    /// Somebody else changed the log under its writer. Nothing was written; open it again.
    #[error(
        "{place} was changed by another program: {expected} records expected, {found} found; end \
         that program and open the session again"
    )]
    Overtaken {
        /// Which log.
        place: Place,
        /// How many records this writer left.
        expected: u64,
        /// How many there are, in whatever log has that id now.
        found: u64,
    },
    /// What stands in the place of the database is none that this version can use. Nothing was
    /// written.
    #[error("{} {found}", path.display())]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// What it is.
        found: Unsupported,
    },
    /// The database is damaged beyond one log.
    #[error(
        "the database {} is damaged: {why}; copy it, with the -wal file beside it, before anything \
         else writes to it; `turnstile storage salvage` saves what can still be read",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What SQLite says.
        why: String,
    },
    /// The device did not take what was acknowledged before, even when written again. That is kept
    /// in memory; nothing more is written until it is safe. Every later append and flush tries.
    #[error("{place} is not safe on the device: {cause}; free it and flush")]
    Poisoned {
        /// Which log.
        place: Place,
        /// Why the last attempt failed.
        cause: IoFailure,
    },
    /// The lock on the work directory is not ours any more; nothing was written.
    #[error("the lock {} was replaced by another program; end one of the two", .0.display())]
    LockLost(PathBuf),
    /// The disk did not take what was to be written.
    #[error(
        "{} of {place} not written: {cause}; see to that",
        records_are(*records)
    )]
    Stalled {
        /// Which log.
        place: Place,
        /// How many records that are.
        records: usize,
        /// What the disk said last.
        cause: Box<StoreError>,
    },
    /// Whoever wrote the log failed in the middle of it: a fault of this program. What was being
    /// written may be there or not. The log is free.
    #[error(
        "{0} was being written when that failed, and may lack the last of it: a fault of this \
         program, which its log tells; open it again"
    )]
    WriterLost(Place),
    /// The system refused; nothing was changed.
    #[error(transparent)]
    Io(#[from] IoFailure),
    /// The program is ending.
    #[error(transparent)]
    Ending(#[from] Ending),
}

fn records_are(records: usize) -> String {
    match records {
        1 => "1 record".to_owned(),
        _ => format!("{records} records"),
    }
}

/// Why the disk did not take what was to be written; the same may be given again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// It wants space, quota or descriptors, or somebody else has it just now: that may pass by itself.
    Want,
    /// Something that somebody has to look at.
    Other,
}

impl IoFailure {
    fn trouble(&self) -> Trouble {
        let no_descriptors = [rustix::io::Errno::MFILE, rustix::io::Errno::NFILE];
        let is_want = match self.cause.kind() {
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::ResourceBusy => true,
            _ => self
                .cause
                .raw_os_error()
                .is_some_and(|code| no_descriptors.iter().any(|it| it.raw_os_error() == code)),
        };
        if is_want { Trouble::Want } else { Trouble::Other }
    }
}

impl StoreError {
    /// What the system said, where it said something: without what was tried, and where.
    #[must_use]
    pub fn cause(&self) -> String {
        match self {
            Self::Io(failure) | Self::Poisoned { cause: failure, .. } => {
                let said = failure.cause.to_string();
                said.split(" (os error").next().unwrap_or_default().to_owned()
            }
            other => other.to_string(),
        }
    }

    /// What is wrong with the disk, if a batch was not written for that reason and the same may be
    /// given again.
    #[must_use]
    pub fn trouble(&self) -> Option<Trouble> {
        match self {
            Self::Io(failure) | Self::Poisoned { cause: failure, .. } => Some(failure.trouble()),
            Self::Stalled { cause, .. } => cause.trouble(),
            // What was taken away can be put back, and of two programs one can end.
            Self::NotFound(_)
            | Self::LockLost(_)
            | Self::Unsupported {
                found: Unsupported::Replaced | Unsupported::JournalAlone, ..
            } => Some(Trouble::Other),
            Self::Refused { why, .. } => why.is_for_want_of_memory().then_some(Trouble::Other),
            Self::Id(_)
            | Self::AlreadyExists(_)
            | Self::AlreadyOwned(_)
            | Self::NoFirstRecord(_)
            | Self::Corrupt { .. }
            | Self::LiveTurnOpen(_)
            | Self::Torn { .. }
            | Self::Changed { .. }
            | Self::Overtaken { .. }
            | Self::Unsupported {
                found:
                    Unsupported::NoDatabase
                    | Unsupported::Foreign(_)
                    | Unsupported::Version(_)
                    | Unsupported::Unshared,
                ..
            }
            | Self::Damaged { .. }
            | Self::WriterLost(_)
            | Self::Ending(_) => None,
        }
    }
}

/// What a flush could not make safe. Everything else in its scope is.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{first}{}", and_more(more))]
pub struct FlushError {
    /// What went wrong with one log.
    pub first: StoreError,
    /// What went wrong with others.
    pub more: Vec<StoreError>,
}

impl FlushError {
    /// An error of these failures, if there are any.
    pub(crate) fn of(failures: Vec<StoreError>) -> Result<(), Self> {
        let mut failures = failures.into_iter();
        match failures.next() {
            None => Ok(()),
            Some(first) => Err(Self { first, more: failures.collect() }),
        }
    }
}

fn and_more(more: &[StoreError]) -> String {
    if more.is_empty() { String::new() } else { format!("; and {} further logs", more.len()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::log::LogKind;

    #[test]
    fn what_may_be_given_again_is_kept_and_what_cannot_help_is_not() {
        let log = LogId::new(LogKind::Turn, "2025-11-01T04-36-29Z-0001234-000").expect("an id");
        let place = Place { log, path: None };
        let path = PathBuf::from("/somewhere");
        let io = |kind: io::ErrorKind| IoFailure::of("write", &path)(kind.into()).into();
        let frame = |why| StoreError::Refused {
            place: place.clone(),
            line: 1,
            why: Arc::new(Corruption::Frame { offset: 0, why }),
        };
        let unsupported = |found| StoreError::Unsupported { path: path.clone(), found };
        let stalled: StoreError = io(io::ErrorKind::StorageFull);
        let stalled =
            StoreError::Stalled { place: place.clone(), records: 1, cause: Box::new(stalled) };
        for (error, trouble) in [
            (io(io::ErrorKind::QuotaExceeded), Some(Trouble::Want)),
            (stalled, Some(Trouble::Want)),
            (io(io::ErrorKind::ReadOnlyFilesystem), Some(Trouble::Other)),
            (StoreError::NotFound(place.clone()), Some(Trouble::Other)),
            (StoreError::LockLost(path.clone()), Some(Trouble::Other)),
            (unsupported(Unsupported::Replaced), Some(Trouble::Other)),
            (frame(FrameFault::NoMemory { bytes: 9 }), Some(Trouble::Other)),
            (
                StoreError::Refused {
                    place: place.clone(),
                    line: 1,
                    why: Arc::new(Corruption::Missing),
                },
                None,
            ),
            (unsupported(Unsupported::NoDatabase), None),
            (StoreError::Changed { place: place.clone(), expected: 1, found: 2 }, None),
            (StoreError::WriterLost(place.clone()), None),
        ] {
            assert_eq!(error.trouble(), trouble, "{error}");
        }
    }
}
