//! Which sessions may be missing, as whoever deletes and restores them is told: only of those may the
//! layer say that there is none.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::id::SessionId;

/// Where sessions are missing.
#[derive(Debug, Default)]
pub(super) struct Absences {
    gone: BTreeSet<SessionId>,
    /// How many are deleting each of them now.
    under_way: BTreeMap<SessionId, usize>,
    /// How often each was about to go.
    times: BTreeMap<SessionId, usize>,
}

/// How it was with a session when an operation in it began.
#[derive(Clone, Debug)]
pub(super) struct Since {
    session: SessionId,
    was_absent: bool,
    times: usize,
}

impl Absences {
    /// A process starts: these sessions are missing, and nobody deletes any.
    pub(super) fn begin(&mut self, gone: impl Iterator<Item = SessionId>) {
        self.gone = gone.collect();
        self.under_way.clear();
    }

    /// Somebody begins to delete a session.
    pub(super) fn begin_deletion(&mut self, session: &SessionId) {
        *self.times.entry(session.clone()).or_default() += 1;
        *self.under_way.entry(session.clone()).or_default() += 1;
    }

    /// It is deleted.
    pub(super) fn deleted(&mut self, session: &SessionId) {
        self.gone.insert(session.clone());
        self.end_deletion(session);
    }

    /// It is deleted, or was not.
    pub(super) fn end_deletion(&mut self, session: &SessionId) {
        if let Some(count) = self.under_way.get_mut(session) {
            *count -= 1;
        }
    }

    /// It is back.
    pub(super) fn restored(&mut self, session: &SessionId) {
        self.gone.remove(session);
    }

    /// An operation in a session begins.
    pub(super) fn since(&self, session: &SessionId) -> Since {
        let times = self.times.get(session).copied().unwrap_or_default();
        Since { session: session.clone(), was_absent: self.is_absent(session), times }
    }

    /// Whether the session may have been missing at any moment since then.
    pub(super) fn was_absent(&self, since: &Since) -> bool {
        let times = self.times.get(&since.session).copied().unwrap_or_default();
        since.was_absent || self.is_absent(&since.session) || times > since.times
    }

    fn is_absent(&self, session: &SessionId) -> bool {
        let is_going = self.under_way.get(session).is_some_and(|count| *count > 0);
        is_going || self.gone.contains(session)
    }
}

impl Since {
    /// The session.
    pub(super) fn session(&self) -> &SessionId {
        &self.session
    }
}
