//! The conversation: from where the person reads outwards, until the view is full.

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use ratatui::layout::{Position, Rect};

use super::{ItemArea, Layout, TimelineArea, Top, focused_pane};
use crate::base::clock::Timestamp;
use crate::tui::cache::Cache;
use crate::tui::line::Line;
use crate::tui::rich::code::Highlighter;
use crate::tui::rows::{Lead, Look, Rows, Way, page};
use crate::tui::state::conversation::{At, Load, Page, Place, Reading};
use crate::tui::state::folds::Fold;
use crate::tui::state::item::{Body, Item, ItemId, Items, Part, Standing};
use crate::tui::state::{Focus, State};

/// The bar beside the item that has the focus.
const BAR_COLS: u16 = 1;

pub(super) fn lay(layout: &mut Layout, state: &State, rect: Rect, cache: &mut Cache) {
    let pad = u16::from(rect.width > 40);
    let width = rect.width.saturating_sub(BAR_COLS + pad).max(1);
    let highlighter = cache.highlighter();
    let mut walk = Walk { state, items: state.items(), width, highlighter, cache };
    let shown = walk.shown(usize::from(rect.height));
    let mut area = TimelineArea {
        rect,
        reading: state.conversation.reading.clone(),
        is_at_bottom: walk.is_last(&shown, usize::from(rect.height)),
        ..TimelineArea::default()
    };
    let in_place = shown.is_empty().then(|| walk.in_place(rect));
    layout.drawn.timeline = in_place.unwrap_or_else(|| place(&mut area, shown, rect.height));
    area.focus = focus(state, &area);
    if focused_pane(state) == Some(Focus::Timeline) {
        let item = area.items.iter().find(|item| Some(&item.item) == area.focus.as_ref());
        let y = rect.y + item.map_or(0, |item| item.row);
        layout.drawn.caret = (rect.height > 0).then_some(Position { x: rect.x, y });
    }
    layout.timeline = Some(area);
}

/// Notes where each item stands; gives the rows in sight.
fn place(area: &mut TimelineArea, shown: VecDeque<Shown<'_>>, height: u16) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut row = 0;
    for Shown { item, rows, first } in shown {
        let left = usize::from(height - row);
        let count = rows.len().saturating_sub(first).min(left);
        if count == 0 {
            continue;
        }
        if area.top.is_none() {
            let source = rows.source_of(first);
            area.top = Some(Top { item: item.id.clone(), row: first, source });
        }
        lines.extend((first..first + count).filter_map(|at| rows.get(at)));
        let rows_below = rows.len() - first - count;
        let rows_in_sight = u16::try_from(count).unwrap_or(u16::MAX);
        area.items.push(ItemArea {
            item: item.id,
            row,
            rows: rows_in_sight,
            rows_above: first,
            rows_below,
        });
        row += rows_in_sight;
    }
    lines
}

/// The item that keys act on.
fn focus(state: &State, area: &TimelineArea) -> Option<ItemId> {
    let chosen = state.conversation.focus.as_ref();
    let in_sight = |id: &&ItemId| area.items.iter().any(|item| item.item == **id);
    if let Some(chosen) = chosen.filter(in_sight) {
        return Some(chosen.clone());
    }
    let seq = |id: &ItemId| state.conversation.turns.slot(&id.turn).map(|slot| slot.seq);
    let (first, last) = (area.items.first()?, area.items.last()?);
    let nearest = match chosen.and_then(seq) {
        Some(turn) if Some(turn) < seq(&first.item) => first,
        Some(turn) if Some(turn) > seq(&last.item) => last,
        Some(_) | None if state.conversation.reading == Reading::Follow => last,
        Some(_) | None => first,
    };
    Some(nearest.item.clone())
}

/// An item in sight, and its first row that is.
struct Shown<'a> {
    item: Item<'a>,
    rows: Rc<Rows>,
    first: usize,
}

/// The way through the conversation.
struct Walk<'a, 'c> {
    state: &'a State,
    items: Items<'a>,
    width: u16,
    highlighter: Arc<Highlighter>,
    cache: &'c mut Cache,
}

impl<'a> Walk<'a, '_> {
    /// The items in sight of a view that is so high.
    fn shown(&mut self, height: usize) -> VecDeque<Shown<'a>> {
        let place = match &self.state.conversation.reading {
            Reading::Follow => None,
            Reading::Pinned(place) => self.find(place),
        };
        let Some(top) = place else { return self.at_bottom(height) };
        let mut used = top.rows.len() - top.first;
        let mut shown = VecDeque::from([top]);
        while used < height {
            let Some(next) = shown.back().and_then(|last| self.items.after(&last.item.id)) else {
                return self.fill_above(shown, used, height);
            };
            let next = self.lay(next);
            used += next.rows.len();
            shown.push_back(next);
        }
        shown
    }

    /// The last items, as many as there is room for.
    fn at_bottom(&mut self, height: usize) -> VecDeque<Shown<'a>> {
        let Some(last) = self.items.last() else { return VecDeque::new() };
        let mut last = self.lay(last);
        let used = last.rows.len();
        last.first = used.saturating_sub(height);
        self.fill_above(VecDeque::from([last]), used, height)
    }

    /// Fills a view that is not full with what stands above.
    fn fill_above(
        &mut self,
        mut shown: VecDeque<Shown<'a>>,
        mut used: usize,
        height: usize,
    ) -> VecDeque<Shown<'a>> {
        if let Some(top) = shown.front_mut() {
            let more = top.first.min(height.saturating_sub(used));
            top.first -= more;
            used += more;
        }
        while used < height {
            let above = shown.front().and_then(|top| self.items.before(&top.item.id));
            let Some(above) = above else { break };
            let mut above = self.lay(above);
            let more = above.rows.len().min(height - used);
            above.first = above.rows.len() - more;
            used += more;
            shown.push_front(above);
        }
        shown
    }

    /// The item and row of a place; where the row lies outside the item, those before or after it.
    fn find(&mut self, place: &Place) -> Option<Shown<'a>> {
        let item = self.items.resolve(&place.item)?;
        let mut at = self.lay(item);
        let mut row = match place.at {
            At::Row(row) => row,
            At::Source(source) => signed(at.rows.row_at(source)),
        };
        while row < 0 {
            let Some(before) = self.items.before(&at.item.id) else { break };
            at = self.lay(before);
            row += signed(at.rows.len());
        }
        while row >= signed(at.rows.len()) {
            let Some(after) = self.items.after(&at.item.id) else { break };
            row -= signed(at.rows.len());
            at = self.lay(after);
        }
        at.first = usize::try_from(row).unwrap_or(0).min(at.rows.len());
        Some(at)
    }

    /// Whether the last row of the conversation is in sight.
    fn is_last(&self, shown: &VecDeque<Shown<'a>>, height: usize) -> bool {
        let rows: usize = shown.iter().map(|shown| shown.rows.len() - shown.first).sum();
        let last = shown.back().is_none_or(|last| self.items.after(&last.item.id).is_none());
        last && rows <= height
    }

    fn lay(&mut self, item: Item<'a>) -> Shown<'a> {
        let before = self.items.before(&item.id);
        let way = Way {
            fold: self.state.conversation.folds.of(&item),
            form: self.state.conversation.form,
            lead: self.lead(&item, before.as_ref()),
            runs: self.state.activity.may_run(&item.id.turn),
        };
        let look = Look {
            width: self.width,
            way,
            zone: &self.state.settings.zone,
            now: self.state.now,
            keymap: &self.state.settings.keymap,
            access: self.state.settings.access,
            highlighter: &self.highlighter,
        };
        let rows = self.cache.rows(&item, &look);
        Shown { item, rows, first: 0 }
    }

    fn lead(&self, item: &Item<'_>, before: Option<&Item<'_>>) -> Lead {
        let in_turn = before.filter(|before| before.id.turn == item.id.turn);
        let head = match &item.body {
            Body::Message { at, .. } => Some(*at),
            Body::Text { .. } | Body::Reasoning { .. } | Body::Call(_) | Body::Failure { .. } => {
                let begins = in_turn.is_none_or(|b| matches!(b.body, Body::Message { .. }));
                self.asked_at(&item.id).filter(|_| begins)
            }
            Body::Loading | Body::Damaged(_) | Body::End(_) | Body::Divider(_) => None,
        };
        let Some(before) = before else { return Lead { gap: false, head } };
        let gap = head.is_some() || self.stands_apart(item, before);
        Lead { gap, head }
    }

    /// Whether a blank row stands between two items without a head.
    fn stands_apart(&self, item: &Item<'_>, before: &Item<'_>) -> bool {
        match (&before.body, &item.body) {
            (_, Body::End(end)) => !matches!(end.standing, Standing::Ended(_)),
            (_, Body::Call(_) | Body::Failure { .. }) | (Body::Call(_), Body::Reasoning { .. }) => {
                false
            }
            (Body::Reasoning { .. }, Body::Text { .. } | Body::Reasoning { .. }) => {
                self.state.conversation.folds.of(before) == Fold::Open
            }
            _ => true,
        }
    }

    /// When the model was asked for what an item holds.
    fn asked_at(&self, id: &ItemId) -> Option<Timestamp> {
        let turn = self.state.conversation.turns.slot(&id.turn)?.state()?;
        let call = match &id.part {
            Part::Block { call, .. } | Part::Failure(call) => *call,
            Part::Call(call) => match turn.tool_calls.get(call) {
                Some(call) => call.model_call_index,
                None => turn.next_call_index().saturating_sub(1),
            },
            Part::Whole | Part::Input | Part::Added(_) | Part::End | Part::Divider(_) => {
                return None;
            }
        };
        let call = turn.model_calls.get(usize::try_from(call).ok()?);
        call.map(|call| call.requested_at)
    }

    /// What stands in place of the items where there are none.
    fn in_place(&self, rect: Rect) -> Vec<Line> {
        match &self.state.conversation.page {
            Page::New => page::new(self.state, rect),
            Page::Session { load, .. } => match load {
                Load::Asked => page::opening(rect),
                Load::Open { .. } => page::without_turns(rect),
                Load::Unreadable(why) => page::unreadable(why, rect),
            },
        }
    }
}

fn signed(rows: usize) -> i64 {
    i64::try_from(rows).unwrap_or(i64::MAX)
}
