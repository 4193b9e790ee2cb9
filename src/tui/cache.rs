//! The rows of items that have been laid out before: a memo of item, revision, width and whatever
//! else changes rows, and nothing else. A screen drawn with an empty cache looks the same.

use std::num::NonZeroUsize;
use std::rc::Rc;
use std::sync::Arc;

use lru::LruCache;

use crate::base::id::{ToolCallId, TurnId};
use crate::domain::turn::state::ToolCall;
use crate::tui::rich::code::Highlighter;
use crate::tui::rich::stream::Flow;
use crate::tui::rows::raw::Raw;
use crate::tui::rows::request::{self, Extent};
use crate::tui::rows::{self, Laid, Look, Rows, Way};
use crate::tui::state::conversation::Form;
use crate::tui::state::item::{Body, Growth, Item, ItemId, Standing};

/// Several screens of one-line items at several widths; each takes a few hundred bytes.
const ENTRIES_MAX: usize = 4_096;
/// About what thirty long answers take. A single item that is larger is kept while it is in sight.
const BYTES_MAX: usize = 32 * 1024 * 1024;
/// One model call streams one text at a time; a few more for those that have just ended.
const GROWING_MAX: usize = 4;

/// The prompt and its full view, at two widths.
const REQUESTS_MAX: NonZeroUsize = NonZeroUsize::new(4).unwrap();

/// See the module.
#[derive(Debug)]
pub struct Cache {
    highlighter: Arc<Highlighter>,
    kept: LruCache<Key, Rc<Rows>>,
    bytes: usize,
    /// What calls would do that wait for a decision.
    requests: LruCache<RequestKey, Rc<Rows>>,
    /// Texts that grow, the latest last.
    growing: Vec<Growing>,
    #[cfg(test)]
    pub(super) work: Work,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    item: ItemId,
    revision: u64,
    width: u16,
    way: Way,
}

/// What a call would do does not change once it is asked; what is thought of it does.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct RequestKey {
    turn: TurnId,
    call: ToolCallId,
    extent: Extent,
    width: u16,
    is_classified: bool,
    has_no_class: bool,
}

/// A text that grows, at one width.
#[derive(Debug)]
struct Growing {
    item: ItemId,
    width: u16,
    text: Text,
}

#[derive(Debug)]
enum Text {
    Rendered(Rc<Flow>),
    Raw(Raw),
}

impl Text {
    /// Whether a text begins as this one does.
    fn begins(&self, text: &str) -> bool {
        match self {
            Self::Rendered(flow) => text.starts_with(flow.text()),
            Self::Raw(raw) => raw.begins(text),
        }
    }
}

impl Growing {
    fn is_of(&self, item: &Item<'_>, form: Form) -> bool {
        let has_form = match self.text {
            Text::Rendered(_) => form == Form::Rendered,
            Text::Raw(_) => form == Form::Raw,
        };
        has_form && self.item == item.id
    }
}

/// What a test counts.
#[cfg(test)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Work {
    /// Items that were looked at.
    pub(super) items: usize,
    /// Rows of items that were laid out whole.
    pub(super) rows: usize,
}

impl Cache {
    /// An empty cache. The highlighter colours code.
    #[must_use]
    pub fn new(highlighter: Arc<Highlighter>) -> Self {
        Self {
            highlighter,
            kept: LruCache::unbounded(),
            bytes: 0,
            requests: LruCache::new(REQUESTS_MAX),
            growing: Vec::new(),
            #[cfg(test)]
            work: Work::default(),
        }
    }

    /// What colours code.
    #[must_use]
    pub fn highlighter(&self) -> Arc<Highlighter> {
        Arc::clone(&self.highlighter)
    }

    /// The rows of an item.
    pub fn rows(&mut self, item: &Item<'_>, look: &Look<'_>) -> Rc<Rows> {
        #[cfg(test)]
        {
            self.work.items += 1;
        }
        if !is_still(item) {
            return Rc::new(rows::of(item, look, Laid::Not));
        }
        if let Some(text) = rows::growing_text(item, &look.way) {
            let flow = self.grow(item, text, look);
            return Rc::new(rows::of(item, look, flow));
        }
        let (id, way) = (item.id.clone(), look.way);
        let key = Key { item: id, revision: item.revision, width: look.width, way };
        if let Some(rows) = self.kept.get(&key) {
            return Rc::clone(rows);
        }
        let laid = self.finish(item, look);
        let rows = Rc::new(rows::of(item, look, laid));
        #[cfg(test)]
        {
            self.work.rows += rows.len();
        }
        self.keep(key, &rows);
        rows
    }

    /// The rows of what a call would do.
    pub fn request(
        &mut self,
        turn: &TurnId,
        call: &ToolCall,
        extent: Extent,
        look: &Look<'_>,
    ) -> Rc<Rows> {
        let permission = call.permission.as_ref();
        let key = RequestKey {
            turn: turn.clone(),
            call: call.id.clone(),
            extent,
            width: look.width,
            is_classified: permission.is_some_and(|it| it.classified.is_some()),
            has_no_class: permission.is_some_and(|it| it.classification_failed.is_some()),
        };
        let rows = || Rc::new(request::rows(call, extent, look));
        Rc::clone(self.requests.get_or_insert(key, rows))
    }

    /// Brings the rows of a growing text up to date.
    fn grow(&mut self, item: &Item<'_>, text: &str, look: &Look<'_>) -> Laid {
        let width = look.width.saturating_sub(rows::text_indent(item)).max(1);
        let form = look.way.form;
        let at = self.growing.iter().position(|known| known.is_of(item, form));
        let known = at.map(|at| self.growing.remove(at)).filter(|known| known.width == width);
        let known = known.filter(|known| known.text.begins(text));
        let mut growing = known.unwrap_or_else(|| Growing {
            item: item.id.clone(),
            width,
            text: match form {
                Form::Rendered => Text::Rendered(self.flow(width)),
                Form::Raw => Text::Raw(Raw::new(width)),
            },
        });
        let laid = match &mut growing.text {
            Text::Raw(raw) => Laid::Chunks(raw.rows(text)),
            Text::Rendered(flow) => {
                let more = text.get(flow.text().len()..).unwrap_or_default();
                match Rc::get_mut(flow) {
                    Some(flow) if !more.is_empty() => flow.push(more),
                    Some(_) => {}
                    // Somebody still holds the rows of an earlier frame.
                    None => {
                        let mut anew = Flow::new(width, self.highlighter());
                        anew.push(text);
                        *flow = Rc::new(anew);
                    }
                }
                Laid::Growing(Rc::clone(flow))
            }
        };
        if self.growing.len() == GROWING_MAX {
            self.growing.remove(0);
        }
        self.growing.push(growing);
        laid
    }

    fn flow(&self, width: u16) -> Rc<Flow> {
        Rc::new(Flow::new(width, self.highlighter()))
    }

    /// The rows of a text that has grown up to now, if it was laid out as it grew.
    fn finish(&mut self, item: &Item<'_>, look: &Look<'_>) -> Laid {
        let text = match &item.body {
            Body::Text { text, growth: Growth::Settled }
            | Body::Reasoning { text, growth: Growth::Settled } => *text,
            _ => return Laid::Not,
        };
        let width = look.width.saturating_sub(rows::text_indent(item)).max(1);
        let known = self.growing.iter().position(|known| known.is_of(item, look.way.form));
        let Some(known) = known.map(|at| self.growing.remove(at)) else { return Laid::Not };
        match known.text {
            Text::Rendered(flow) if known.width == width && flow.text() == text => {
                Rc::into_inner(flow).map_or(Laid::Not, |flow| Laid::Whole(flow.finish()))
            }
            Text::Rendered(_) | Text::Raw(_) => Laid::Not,
        }
    }

    fn keep(&mut self, key: Key, rows: &Rc<Rows>) {
        self.bytes += rows.weight();
        if let Some((_, replaced)) = self.kept.push(key, Rc::clone(rows)) {
            self.bytes -= replaced.weight();
        }
        while self.kept.len() > ENTRIES_MAX || (self.bytes > BYTES_MAX && self.kept.len() > 1) {
            let Some((_, gone)) = self.kept.pop_lru() else { break };
            self.bytes -= gone.weight();
        }
    }
}

/// Whether an item looks the same until it has another revision: one that shows how long it has run
/// does not.
fn is_still(item: &Item<'_>) -> bool {
    !matches!(&item.body, Body::End(end) if matches!(end.standing, Standing::Running { .. }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::id::TurnId;
    use crate::base::sanitize::Policy;
    use crate::tui::line::Fade;
    use crate::tui::rich::plain;
    use crate::tui::rows::Lead;
    use crate::tui::scenes;
    use crate::tui::state::folds::Fold;
    use crate::tui::state::item::Part;

    fn rows(lines: usize) -> Rc<Rows> {
        let mut rows = Rows::default();
        let text = "A line of an answer.\n".repeat(lines);
        rows.text(plain::rows(&text, 80, Policy::Reading), 0, Fade::Front);
        Rc::new(rows)
    }

    #[test]
    fn what_is_kept_is_bounded_in_number_and_in_size() {
        let mut cache = scenes::cache();
        let item = ItemId { turn: TurnId::from("t"), part: Part::Input };
        let lead = Lead { gap: false, head: None };
        let way = Way { fold: Fold::Open, form: Form::Raw, lead, runs: false };
        let mut keep = |revision: u64, rows: &Rc<Rows>| {
            cache.keep(Key { item: item.clone(), revision, width: 80, way }, rows);
            assert!(cache.kept.len() <= ENTRIES_MAX, "{} entries", cache.kept.len());
            assert!(cache.bytes <= BYTES_MAX, "{} bytes", cache.bytes);
            (cache.kept.len(), cache.bytes)
        };
        let (long, short) = (rows(2_000), rows(1));
        let fits = BYTES_MAX / long.weight();
        let full = (0..500).map(|revision| keep(revision, &long)).last();
        assert_eq!(full, Some((fits, fits * long.weight())));
        let many = (500..10_000).map(|revision| keep(revision, &short)).last();
        assert_eq!(many, Some((ENTRIES_MAX, ENTRIES_MAX * short.weight())));
    }
}
