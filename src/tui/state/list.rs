//! The session list: every session that is known, in order, found in logarithmic time.
//!
//! Nothing here walks over all sessions: rows are reached from a row, as the screen and the person
//! do, and the filter looks at a bounded number of sessions at a time.

pub mod filter;
pub mod tree;
pub mod waiting;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use crate::app::command::{ListSettings, SortBy};
use crate::base::id::SessionId;
use crate::domain::session::entry::SessionIndexEntry;
use crate::tui::editor::Editor;
use crate::tui::keymap::context::Context;
use filter::Filter;
use tree::{Order, Shown, Tree};
use waiting::WaitingCalls;

/// See the module.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct List {
    entries: HashMap<SessionId, Arc<SessionIndexEntry>>,
    tree: Tree,
    waiting: WaitingCalls,
    /// The session under the cursor; none until the person has moved, then the first row has it.
    pub selected: Option<SessionId>,
    /// The row of the list's area where the selected session stands, from 0. What is inserted or
    /// removed around it does not move it, unless all rows fit: then they begin at the top.
    pub selected_row: u16,
    /// The sessions that are marked.
    pub marks: BTreeSet<SessionId>,
    /// How it is sorted and whether it is hidden.
    pub settings: ListSettings,
    /// Which sessions it shows.
    pub shown: Shown,
    /// What narrows it down, if anything does.
    pub filter: Option<Filter>,
    /// The title that is being changed.
    pub rename: Option<Rename>,
    /// How far the reading of all sessions is.
    pub scan: Scan,
    /// What was deleted or put away and can be taken back, the last of it last.
    pub undo: Vec<Undo>,
}

/// Something that can be taken back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undo {
    /// These were deleted.
    Deleted(Vec<SessionId>),
    /// These were put away.
    Archived(Vec<SessionId>),
}

/// A title that is being changed, in its row.
#[derive(Clone, Debug, PartialEq)]
pub struct Rename {
    /// The session.
    pub session: SessionId,
    /// The new title.
    pub field: Editor,
}

/// How far the reading of all sessions is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scan {
    /// It runs.
    Running {
        /// How many have been read.
        done: usize,
        /// How many there are; 0 while that is not known.
        total: usize,
    },
    /// All have been read.
    Ended {
        /// How long that took, in milliseconds.
        took_ms: u64,
    },
    /// They could not be listed.
    Failed(String),
}

impl Default for Scan {
    fn default() -> Self {
        Self::Running { done: 0, total: 0 }
    }
}

/// A session in the list, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The session.
    pub session: SessionId,
    /// How many sessions it stands under; 0 for most. Always 0 while a filter is on.
    pub depth: usize,
}

impl List {
    /// What is known about a session.
    #[must_use]
    pub fn entry(&self, session: &SessionId) -> Option<&Arc<SessionIndexEntry>> {
        self.entries.get(session)
    }

    /// How many sessions there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The calls of all sessions that wait for a person, the oldest first.
    #[must_use]
    pub fn waiting(&self) -> &WaitingCalls {
        &self.waiting
    }

    /// Takes in what is known about a session now.
    pub fn put(&mut self, entry: &Arc<SessionIndexEntry>) {
        let session = entry.session_id.clone();
        let known = self.entries.get(&session);
        let was_shown = known.map(|known| tree::shown_in(known, &self.entries));
        let moved = known.is_some_and(|known| known.archived != entry.archived);
        if moved {
            self.step_aside(&session);
        }
        let old = self.entries.insert(session, Arc::clone(entry));
        if let Some(old) = &old {
            self.waiting.remove_of(old);
        }
        self.waiting.insert_of(entry);
        self.tree.put(old.as_deref(), entry, &self.entries);
        let shown = tree::shown_in(entry, &self.entries);
        let moves_others = match was_shown {
            Some(was_shown) => was_shown != shown,
            None => self.tree.moves_others(entry, &self.entries),
        };
        let is_shown = shown == self.shown;
        let Some(filter) = &mut self.filter else { return };
        if moves_others {
            self.restart_filter();
        } else if is_shown {
            filter.put(old.as_deref(), entry, self.settings.sort);
        } else if let Some(old) = &old {
            filter.remove(old, self.settings.sort);
        }
    }

    /// The cursor leaves a session, and what stands under it, that goes out of sight.
    fn step_aside(&mut self, session: &SessionId) {
        self.marks.remove(session);
        let Some(from) = self.row(session) else { return };
        if self.selected.as_ref() != Some(session) {
            return;
        }
        let below = std::iter::successors(Some(from.clone()), |row| self.after(&row.session));
        let next = below.skip(1).find(|row| row.depth <= from.depth);
        self.selected = next.or_else(|| self.before(session)).map(|row| row.session);
    }

    /// Whether a session is among those that are shown.
    fn is_shown(&self, entry: &SessionIndexEntry) -> bool {
        tree::shown_in(entry, &self.entries) == self.shown
    }

    /// Shows others.
    pub fn show(&mut self, shown: Shown) {
        self.shown = shown;
        self.marks.clear();
        self.selected = None;
        self.restart_filter();
    }

    /// What was done with these sessions cannot be taken back any more, or has been.
    pub fn undone(&mut self, back: &[SessionId]) {
        self.undo.retain_mut(|undo| {
            let (Undo::Deleted(sessions) | Undo::Archived(sessions)) = undo;
            sessions.retain(|session| !back.contains(session));
            !sessions.is_empty()
        });
    }

    fn order(&self) -> Order {
        Order { shown: self.shown, sort: self.settings.sort }
    }

    /// Forgets a session. The cursor goes to the next row, or to the one before.
    pub fn remove(&mut self, session: &SessionId) {
        if self.selected.as_ref() == Some(session) {
            let next = self.after(session).or_else(|| self.before(session));
            self.selected = next.map(|row| row.session);
        }
        let Some(old) = self.entries.remove(session) else { return };
        self.marks.remove(session);
        if self.rename.as_ref().is_some_and(|rename| rename.session == *session) {
            self.rename = None;
        }
        self.waiting.remove_of(&old);
        self.tree.remove(&old, &self.entries);
        let moves_others = self.tree.moves_others(&old, &self.entries);
        let Some(filter) = &mut self.filter else { return };
        filter.remove(&old, self.settings.sort);
        if moves_others {
            self.restart_filter();
        }
    }

    /// The first row.
    #[must_use]
    pub fn first(&self) -> Option<Row> {
        match &self.filter {
            Some(filter) => filter.first().map(Row::top_level),
            None => self.tree.first(self.order()),
        }
    }

    /// The last row.
    #[must_use]
    pub fn last(&self) -> Option<Row> {
        match &self.filter {
            Some(filter) => filter.last().map(Row::top_level),
            None => self.tree.last(self.order()),
        }
    }

    /// The row after that of a session.
    #[must_use]
    pub fn after(&self, session: &SessionId) -> Option<Row> {
        let entry = self.entries.get(session)?;
        match &self.filter {
            Some(filter) => filter.after(entry, self.settings.sort).map(Row::top_level),
            None => self.tree.after(entry, &self.entries, self.order()),
        }
    }

    /// The row before that of a session.
    #[must_use]
    pub fn before(&self, session: &SessionId) -> Option<Row> {
        let entry = self.entries.get(session)?;
        match &self.filter {
            Some(filter) => filter.before(entry, self.settings.sort).map(Row::top_level),
            None => self.tree.before(entry, &self.entries, self.order()),
        }
    }

    /// The row of a session; none if it is not among those shown, or the filter hides it.
    #[must_use]
    pub fn row(&self, session: &SessionId) -> Option<Row> {
        let entry = self.entries.get(session)?;
        if let Some(filter) = &self.filter {
            return filter.has(entry, self.settings.sort).then(|| Row::top_level(session));
        }
        let depth = tree::depth_of(entry, &self.entries);
        self.is_shown(entry).then(|| Row { session: session.clone(), depth })
    }

    /// The row under the cursor: the selected one, or the first while none is.
    #[must_use]
    pub fn cursor(&self) -> Option<Row> {
        self.selected.as_ref().and_then(|session| self.row(session)).or_else(|| self.first())
    }

    /// What an action on sessions is about: the marked ones, or the one under the cursor.
    #[must_use]
    pub fn chosen(&self) -> Vec<SessionId> {
        if self.marks.is_empty() {
            return self.cursor().map(|row| row.session).into_iter().collect();
        }
        self.marks.iter().cloned().collect()
    }

    /// Whether a session stands under another one that is known.
    #[must_use]
    pub fn is_under_another(&self, session: &SessionId) -> bool {
        self.entry(session).is_some_and(|entry| tree::depth_of(entry, &self.entries) > 0)
    }

    /// Sorts in another order.
    pub fn sort(&mut self, sort: SortBy) {
        self.settings.sort = sort;
        self.restart_filter();
    }

    /// Looks at the next sessions for the filter.
    pub fn filter_more(&mut self) {
        let order = self.order();
        if let Some(filter) = &mut self.filter {
            filter.look(&self.tree, &self.entries, order);
        }
    }

    /// Looks at all sessions again, for a pattern or an order that changed.
    pub fn restart_filter(&mut self) {
        if let Some(filter) = &mut self.filter {
            filter.restart();
        }
        self.filter_more();
    }

    pub(super) fn contexts(&self) -> &'static [Context] {
        if self.rename.is_some() {
            return &[Context::Field, Context::Editing, Context::Global];
        }
        match &self.filter {
            Some(filter) if filter.is_typed => {
                &[Context::Filter, Context::Editing, Context::Global]
            }
            Some(_) | None => &[Context::List, Context::Moving, Context::Global],
        }
    }

    pub(super) fn deadline(&self) -> Option<Duration> {
        self.filter.as_ref().filter(|filter| filter.is_looking()).map(|_| Duration::ZERO)
    }
}

impl Row {
    fn top_level(session: &SessionId) -> Self {
        Self { session: session.clone(), depth: 0 }
    }
}

#[cfg(test)]
pub(in crate::tui) mod tests;
