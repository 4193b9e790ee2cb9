//! Where the person reads: moving there, and staying there whatever comes.

use crate::tui::layout::{Layout, TimelineArea};
use crate::tui::state::State;
use crate::tui::state::conversation::{At, Place, Reading};
use crate::tui::state::item::ItemId;

/// Moves the view by rows; at the bottom it follows.
pub(super) fn scroll(state: &mut State, layout: &Layout, rows: i64) {
    let Some(area) = &layout.timeline else { return };
    let is_fresh = area.reading == state.conversation.reading;
    if rows > 0
        && (state.conversation.reading == Reading::Follow || (is_fresh && area.is_at_bottom))
    {
        state.conversation.follow();
        return;
    }
    let Some(from) = here(area, &state.conversation.reading) else { return };
    let (item, row) = from;
    state.conversation.pin(Place { item, at: At::Row(row.saturating_add(rows)) });
}

/// Makes an item the first of the view, and gives it the focus.
pub(super) fn jump(state: &mut State, item: ItemId) {
    state.conversation.focus = Some(item.clone());
    state.conversation.pin(Place { item, at: At::Row(0) });
}

/// Keeps what stands in the first row there, though what is below it changes its height.
pub(super) fn hold(state: &mut State, layout: &Layout) {
    let Some(area) = &layout.timeline else { return };
    if let Some((item, row)) = here(area, &state.conversation.reading) {
        state.conversation.pin(Place { item, at: At::Row(row) });
    }
}

/// Keeps the text that stands in the first row there, though all rows are made anew.
pub(super) fn hold_source(state: &mut State, layout: &Layout) {
    let Some(area) = &layout.timeline else { return };
    let Some(top) = area.top.as_ref().filter(|_| area.reading == state.conversation.reading) else {
        return;
    };
    match &state.conversation.reading {
        Reading::Pinned(Place { at: At::Row(_), .. }) => {
            state.conversation.pin(Place { item: top.item.clone(), at: At::Source(top.source) });
        }
        Reading::Pinned(Place { at: At::Source(_), .. }) | Reading::Follow => {}
    }
}

/// The item that keys act on.
pub(super) fn focus(state: &State, layout: &Layout) -> Option<ItemId> {
    let area = layout.timeline.as_ref();
    let chosen = state.conversation.focus.as_ref();
    let in_sight = |item: &&ItemId| {
        area.is_none_or(|area| area.items.iter().any(|shown| shown.item == **item))
    };
    let shown = area.and_then(|area| area.focus.as_ref());
    chosen.filter(in_sight).or(shown).or(chosen).cloned()
}

/// The item and the row of it that stand in the first row of the view. Between two frames the place
/// that was asked for counts, so that several keys add up.
fn here(area: &TimelineArea, reading: &Reading) -> Option<(ItemId, i64)> {
    match reading {
        Reading::Pinned(Place { item, at: At::Row(row) }) if area.reading != *reading => {
            Some((item.clone(), *row))
        }
        Reading::Pinned(_) | Reading::Follow => {
            let top = area.top.as_ref()?;
            Some((top.item.clone(), i64::try_from(top.row).unwrap_or(i64::MAX)))
        }
    }
}
