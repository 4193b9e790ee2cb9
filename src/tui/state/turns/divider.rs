//! Places in a conversation where what was said before was summed up.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use crate::domain::session::state::Compaction;

/// See the module. The turn that follows it begins with the summary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Divider {
    /// Its number among those of the session, from 0.
    pub number: usize,
    /// What the model is told in place of what was said before.
    pub summary: Arc<str>,
    /// The same only for the same summary: forks share turns, and number their own.
    pub revision: u64,
}

/// The dividers beside a turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Beside {
    /// Those before it.
    pub before: Vec<Divider>,
    /// Those behind it: it is the last turn, and the next one begins with them.
    pub after: Vec<Divider>,
}

impl Divider {
    pub(super) fn of(number: usize, compaction: &Compaction) -> Self {
        let mut hasher = DefaultHasher::new();
        compaction.fact.compaction_id.hash(&mut hasher);
        compaction.fact.summary.hash(&mut hasher);
        let summary = Arc::from(compaction.fact.summary.as_str());
        Self { number, summary, revision: hasher.finish() }
    }
}
