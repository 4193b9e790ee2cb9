//! Sessions in order, child sessions under their parents, in every order at once: changing the
//! order costs nothing.

use std::cmp::Reverse;
use std::collections::btree_set::Range;
use std::collections::{BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use crate::app::command::SortBy;
use crate::base::clock::Timestamp;
use crate::base::id::SessionId;
use crate::domain::session::entry::SessionIndexEntry;
use crate::domain::session::event::Origin;
use crate::tui::state::list::Row;

type Entries = HashMap<SessionId, Arc<SessionIndexEntry>>;

/// Where a session stands in an order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    rank: Rank,
    session: SessionId,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Newest(Reverse<Timestamp>),
    Title(String),
}

impl Shown {
    /// Where an entry belongs that stands at the top.
    fn of(entry: &SessionIndexEntry) -> Self {
        if entry.archived { Self::Archived } else { Self::Current }
    }

    /// The others.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Current => Self::Archived,
            Self::Archived => Self::Current,
        }
    }
}

impl Place {
    /// The place of a session in an order.
    #[must_use]
    pub fn of(entry: &SessionIndexEntry, sort: SortBy) -> Self {
        let rank = match sort {
            SortBy::Activity => Rank::Newest(Reverse(entry.active_at)),
            SortBy::Creation => Rank::Newest(Reverse(entry.created_at)),
            SortBy::Title => Rank::Title(entry.title.as_deref().unwrap_or("").to_lowercase()),
        };
        Self { rank, session: entry.session_id.clone() }
    }

    /// The session.
    #[must_use]
    pub fn session(&self) -> &SessionId {
        &self.session
    }
}

/// Which sessions are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shown {
    /// Those that are not put away.
    #[default]
    Current,
    /// Those that are.
    Archived,
}

/// Which sessions, and in which order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// Which.
    pub shown: Shown,
    /// In which order.
    pub sort: SortBy,
}

/// The sessions at the top, in every order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Roots {
    activity: BTreeSet<Place>,
    creation: BTreeSet<Place>,
    title: BTreeSet<Place>,
}

/// See the module. It keeps ids and what they are sorted by; the entries are the list's. A session
/// that is put away takes along what stands under it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    current: Roots,
    archived: Roots,
    /// The sessions that stand under each, by age. Children of a parent that is not there (yet)
    /// stand at the top until it is.
    children: HashMap<SessionId, BTreeSet<SessionId>>,
}

impl Tree {
    /// Takes an entry in, in place of the `old` one; `entries` has it already.
    pub(super) fn put(
        &mut self,
        old: Option<&SessionIndexEntry>,
        entry: &SessionIndexEntry,
        entries: &Entries,
    ) {
        if let Some(old) = old {
            self.unlink(old);
        }
        match parent_of(entry) {
            Some(parent) => {
                self.children.entry(parent.clone()).or_default().insert(entry.session_id.clone());
                if !entries.contains_key(parent) {
                    self.insert_root(entry);
                }
            }
            None => self.insert_root(entry),
        }
        if old.is_none() {
            for child in self.children_of(&entry.session_id, entries) {
                self.remove_root(&child);
            }
        }
    }

    /// Lets an entry go; `entries` has it no more. Its children stand at the top from now on.
    pub(super) fn remove(&mut self, old: &SessionIndexEntry, entries: &Entries) {
        self.unlink(old);
        for child in self.children_of(&old.session_id, entries) {
            self.insert_root(&child);
        }
    }

    /// The first row.
    pub(super) fn first(&self, order: Order) -> Option<Row> {
        self.order(order).first().map(|place| Row { session: place.session.clone(), depth: 0 })
    }

    /// The last row.
    pub(super) fn last(&self, order: Order) -> Option<Row> {
        self.order(order).last().map(|place| self.deepest(place.session.clone(), 0))
    }

    /// The row after that of an entry.
    pub(super) fn after(
        &self,
        entry: &SessionIndexEntry,
        entries: &Entries,
        order: Order,
    ) -> Option<Row> {
        let mut depth = depth_of(entry, entries);
        if let Some(child) = self.children.get(&entry.session_id).and_then(BTreeSet::first) {
            return Some(Row { session: child.clone(), depth: depth + 1 });
        }
        let mut at = entry;
        while let Some(parent) = parent_in(at, entries) {
            let siblings = self.children.get(&parent.session_id);
            let behind = (Bound::Excluded(&at.session_id), Bound::Unbounded);
            if let Some(next) = siblings.and_then(|ids| ids.range::<SessionId, _>(behind).next()) {
                return Some(Row { session: next.clone(), depth });
            }
            depth = depth.saturating_sub(1);
            at = parent;
        }
        let next = self.roots_after(&Place::of(at, order.sort), order).next();
        next.map(|place| Row { session: place.session.clone(), depth: 0 })
    }

    /// The row before that of an entry.
    pub(super) fn before(
        &self,
        entry: &SessionIndexEntry,
        entries: &Entries,
        order: Order,
    ) -> Option<Row> {
        let depth = depth_of(entry, entries);
        let Some(parent) = parent_in(entry, entries) else {
            let before = self.order(order).range(..Place::of(entry, order.sort)).next_back()?;
            return Some(self.deepest(before.session.clone(), 0));
        };
        let siblings = self.children.get(&parent.session_id);
        let before =
            siblings.and_then(|ids| ids.range::<SessionId, _>(..&entry.session_id).next_back());
        Some(before.map_or_else(
            || Row { session: parent.session_id.clone(), depth: depth.saturating_sub(1) },
            |sibling| self.deepest(sibling.clone(), depth),
        ))
    }

    /// The sessions at the top that come after a place.
    pub(super) fn roots_after(&self, place: &Place, order: Order) -> Range<'_, Place> {
        self.order(order).range((Bound::Excluded(place.clone()), Bound::Unbounded))
    }

    /// The sessions at the top.
    pub(super) fn roots(&self, order: Order) -> Range<'_, Place> {
        self.order(order).range::<Place, _>(..)
    }

    /// A session and all that stand under it, in order.
    pub(super) fn family(&self, session: &SessionId) -> Vec<SessionId> {
        let mut family = Vec::new();
        let mut open = vec![session.clone()];
        while let Some(next) = open.pop() {
            open.extend(self.children.get(&next).into_iter().flatten().rev().cloned());
            family.push(next);
        }
        family
    }

    fn order(&self, order: Order) -> &BTreeSet<Place> {
        let roots = match order.shown {
            Shown::Current => &self.current,
            Shown::Archived => &self.archived,
        };
        match order.sort {
            SortBy::Activity => &roots.activity,
            SortBy::Creation => &roots.creation,
            SortBy::Title => &roots.title,
        }
    }

    fn roots_of(&mut self, entry: &SessionIndexEntry) -> &mut Roots {
        match Shown::of(entry) {
            Shown::Current => &mut self.current,
            Shown::Archived => &mut self.archived,
        }
    }

    fn insert_root(&mut self, entry: &SessionIndexEntry) {
        let roots = self.roots_of(entry);
        roots.activity.insert(Place::of(entry, SortBy::Activity));
        roots.creation.insert(Place::of(entry, SortBy::Creation));
        roots.title.insert(Place::of(entry, SortBy::Title));
    }

    fn remove_root(&mut self, entry: &SessionIndexEntry) {
        let roots = self.roots_of(entry);
        roots.activity.remove(&Place::of(entry, SortBy::Activity));
        roots.creation.remove(&Place::of(entry, SortBy::Creation));
        roots.title.remove(&Place::of(entry, SortBy::Title));
    }

    fn unlink(&mut self, old: &SessionIndexEntry) {
        self.remove_root(old);
        let Some(parent) = parent_of(old) else { return };
        let Some(siblings) = self.children.get_mut(parent) else { return };
        siblings.remove(&old.session_id);
        if siblings.is_empty() {
            self.children.remove(parent);
        }
    }

    /// Whether what stands under an entry would stand elsewhere without it.
    pub(super) fn moves_others(&self, entry: &SessionIndexEntry, entries: &Entries) -> bool {
        let shown = shown_in(entry, entries);
        let children = self.children_of(&entry.session_id, entries);
        children.iter().any(|child| Shown::of(child) != shown)
    }

    fn children_of(&self, session: &SessionId, entries: &Entries) -> Vec<Arc<SessionIndexEntry>> {
        let ids = self.children.get(session).into_iter().flatten();
        ids.filter_map(|id| entries.get(id)).cloned().collect()
    }

    /// The last row of a session and all that stand under it.
    fn deepest(&self, session: SessionId, depth: usize) -> Row {
        let mut row = Row { session, depth };
        while let Some(last) = self.children.get(&row.session).and_then(BTreeSet::last) {
            row = Row { session: last.clone(), depth: row.depth + 1 };
        }
        row
    }
}

/// Where an entry is shown: where the session at the top belongs under which it stands.
pub(super) fn shown_in(entry: &SessionIndexEntry, entries: &Entries) -> Shown {
    let up = std::iter::successors(Some(entry), |at| parent_in(at, entries));
    up.last().map_or(Shown::Current, Shown::of)
}

/// Under how many sessions an entry stands.
pub(super) fn depth_of(entry: &SessionIndexEntry, entries: &Entries) -> usize {
    std::iter::successors(parent_in(entry, entries), |at| parent_in(at, entries)).count()
}

/// The session under which one stands, if it is there.
fn parent_in<'a>(entry: &SessionIndexEntry, entries: &'a Entries) -> Option<&'a SessionIndexEntry> {
    parent_of(entry).and_then(|parent| entries.get(parent)).map(Arc::as_ref)
}

/// The session under which one belongs. Ids sort by time, so a parent whose id is not the smaller
/// one is a mistake of its log, and going by ids there is no circle.
fn parent_of(entry: &SessionIndexEntry) -> Option<&SessionId> {
    match entry.origin {
        Some(Origin::Subagent) => {
            entry.parent_session.as_ref().filter(|parent| **parent < entry.session_id)
        }
        Some(Origin::Job) | None => None,
    }
}
