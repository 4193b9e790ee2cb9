//! What a process that writes says of each step before it takes it, and once the step is acknowledged.

use std::fmt;
use std::str::FromStr;

use crate::other::say;

/// One thing that is said of the log of this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) log: usize,
    pub(crate) what: What,
}

/// What is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// It was found with so many records.
    Found(u64),
    /// It is about to have so many.
    Tries(u64),
    /// It has so many.
    Acknowledged(u64),
    Removes,
    Removed,
    Restores,
    Restored,
}

/// That the batch which is tried now is big.
pub(crate) const BIG: &str = "big";
/// That everything was found, and writing begins.
pub(crate) const READY: &str = "ready";

impl Told {
    pub(crate) fn say(log: usize, what: What) {
        say(&Self { log, what }.to_string());
    }
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let log = self.log;
        match self.what {
            What::Found(records) => write!(f, "found {log} {records}"),
            What::Tries(records) => write!(f, "tries {log} {records}"),
            What::Acknowledged(records) => write!(f, "acknowledged {log} {records}"),
            What::Removes => write!(f, "removes {log}"),
            What::Removed => write!(f, "removed {log}"),
            What::Restores => write!(f, "restores {log}"),
            What::Restored => write!(f, "restored {log}"),
        }
    }
}

/// The line says something else.
#[derive(Debug)]
pub(crate) struct OfNoLog;

impl FromStr for Told {
    type Err = OfNoLog;

    fn from_str(line: &str) -> Result<Self, OfNoLog> {
        let mut words = line.split(' ');
        let what = words.next().unwrap_or_default();
        let log = words.next().and_then(|word| word.parse().ok()).ok_or(OfNoLog)?;
        let mut records = || words.next().and_then(|word| word.parse().ok()).ok_or(OfNoLog);
        let what = match what {
            "found" => What::Found(records()?),
            "tries" => What::Tries(records()?),
            "acknowledged" => What::Acknowledged(records()?),
            "removes" => What::Removes,
            "removed" => What::Removed,
            "restores" => What::Restores,
            "restored" => What::Restored,
            _ => return Err(OfNoLog),
        };
        Ok(Self { log, what })
    }
}
