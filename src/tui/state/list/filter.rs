//! The filter of the session list: fuzzy over title and folder, a bounded number of sessions at a
//! time, in the order of the list.

use std::collections::{BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32String};

use crate::app::command::SortBy;
use crate::base::id::SessionId;
use crate::domain::session::entry::SessionIndexEntry;
use crate::tui::editor::{Editor, Shape};
use crate::tui::state::list::tree::{Order, Place, Tree};

/// As many sessions are looked at between two messages: about two milliseconds.
const LOOKED_AT_MAX: usize = 2_000;
/// What stands beyond this of a title or a folder is not looked at.
const HAYSTACK_CHARS_MAX: usize = 512;

/// See the module.
#[derive(Clone, Debug, PartialEq)]
pub struct Filter {
    /// The pattern, as it is typed.
    pub field: Editor,
    /// Whether keys go into the pattern; else they go to the list that it has narrowed down.
    pub is_typed: bool,
    found: BTreeSet<Place>,
    looking: Looking,
}

/// How far the sessions have been looked at.
#[derive(Clone, Debug, PartialEq)]
enum Looking {
    From(Option<Place>),
    Done,
}

impl Filter {
    /// A filter that begins to be typed.
    #[must_use]
    pub fn new() -> Self {
        let field = Editor::new(Shape::Line);
        Self { field, is_typed: true, found: BTreeSet::new(), looking: Looking::From(None) }
    }

    /// Whether some sessions have not been looked at.
    #[must_use]
    pub fn is_looking(&self) -> bool {
        self.looking != Looking::Done
    }

    /// How many sessions it has found so far.
    #[must_use]
    pub fn found_count(&self) -> usize {
        self.found.len()
    }

    pub(super) fn restart(&mut self) {
        self.found.clear();
        self.looking = Looking::From(None);
    }

    /// Looks at the next sessions.
    pub(super) fn look(
        &mut self,
        tree: &Tree,
        entries: &HashMap<SessionId, Arc<SessionIndexEntry>>,
        order: Order,
    ) {
        let sort = order.sort;
        let Looking::From(from) = &self.looking else { return };
        let mut roots = match from {
            Some(place) => tree.roots_after(place, order),
            None => tree.roots(order),
        };
        let mut judge = Judge::new(&self.field);
        let mut looked_at = 0;
        self.looking = loop {
            let Some(root) = roots.next() else { break Looking::Done };
            let family = tree.family(root.session());
            looked_at += family.len();
            let found = family.iter().filter_map(|id| entries.get(id));
            let found = found.filter(|entry| judge.accepts(entry));
            self.found.extend(found.map(|entry| Place::of(entry, sort)));
            if looked_at >= LOOKED_AT_MAX {
                break Looking::From(Some(root.clone()));
            }
        };
    }

    pub(super) fn put(
        &mut self,
        old: Option<&SessionIndexEntry>,
        entry: &SessionIndexEntry,
        sort: SortBy,
    ) {
        if let Some(old) = old {
            self.remove(old, sort);
        }
        if Judge::new(&self.field).accepts(entry) {
            self.found.insert(Place::of(entry, sort));
        }
    }

    pub(super) fn remove(&mut self, old: &SessionIndexEntry, sort: SortBy) {
        self.found.remove(&Place::of(old, sort));
    }

    pub(super) fn has(&self, entry: &SessionIndexEntry, sort: SortBy) -> bool {
        self.found.contains(&Place::of(entry, sort))
    }

    pub(super) fn first(&self) -> Option<&SessionId> {
        self.found.first().map(Place::session)
    }

    pub(super) fn last(&self) -> Option<&SessionId> {
        self.found.last().map(Place::session)
    }

    pub(super) fn after(&self, entry: &SessionIndexEntry, sort: SortBy) -> Option<&SessionId> {
        let behind = (Bound::Excluded(Place::of(entry, sort)), Bound::Unbounded);
        self.found.range(behind).next().map(Place::session)
    }

    pub(super) fn before(&self, entry: &SessionIndexEntry, sort: SortBy) -> Option<&SessionId> {
        self.found.range(..Place::of(entry, sort)).next_back().map(Place::session)
    }
}

impl Default for Filter {
    fn default() -> Self {
        Self::new()
    }
}

/// Says which sessions match the pattern.
struct Judge {
    pattern: Pattern,
    matcher: Matcher,
}

impl Judge {
    fn new(field: &Editor) -> Self {
        let pattern = Pattern::parse(&field.text(), CaseMatching::Smart, Normalization::Smart);
        Self { pattern, matcher: Matcher::new(Config::DEFAULT) }
    }

    /// Each word of the pattern has to stand in the title or in the folder; a word that must not
    /// stand there (`!word`) in neither.
    fn accepts(&mut self, entry: &SessionIndexEntry) -> bool {
        let title = Utf32String::from(beginning(entry.title.as_deref().unwrap_or("")));
        let folder = Utf32String::from(beginning(entry.cwd.as_deref().unwrap_or("")));
        let Self { pattern, matcher } = self;
        pattern.atoms.iter().all(|word| {
            let mut fits = |text: &Utf32String| word.score(text.slice(..), matcher).is_some();
            if word.negative {
                fits(&title) && fits(&folder)
            } else {
                fits(&title) || fits(&folder)
            }
        })
    }
}

fn beginning(text: &str) -> &str {
    let end = text.char_indices().nth(HAYSTACK_CHARS_MAX).map_or(text.len(), |(at, _)| at);
    text.get(..end).unwrap_or_default()
}
