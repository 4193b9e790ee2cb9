//! Reading the conversation: moving, folding, jumping.

use crate::tui::action::{MoveAction, TimelineAction};
use crate::tui::layout::{ItemArea, Layout};
use crate::tui::state::State;
use crate::tui::state::conversation::Form;
use crate::tui::state::item::{Body, Item, ItemId, Items};
use crate::tui::update::focus::Way;
use crate::tui::update::{Effects, clipboard, events, fork, reading};

/// Does what an action says with the item that has the focus.
pub(super) fn perform(
    state: &mut State,
    layout: &Layout,
    action: TimelineAction,
    out: &mut Effects,
) {
    match action {
        TimelineAction::ToggleFold => {
            let Some(focus) = reading::focus(state, layout) else { return };
            reading::hold(state, layout);
            let State { conversation, activity, .. } = state;
            if let Some(item) = Items::new(&conversation.turns, activity).find(&focus) {
                conversation.folds.toggle(&item);
            }
            conversation.focus = Some(focus);
        }
        TimelineAction::FoldAll => {
            reading::hold_source(state, layout);
            state.conversation.folds.toggle_all();
        }
        TimelineAction::FoldReasoning => {
            reading::hold_source(state, layout);
            state.conversation.folds.toggle_reasoning();
        }
        TimelineAction::ToggleRaw => {
            reading::hold_source(state, layout);
            state.conversation.form = match state.conversation.form {
                Form::Rendered => Form::Raw,
                Form::Raw => Form::Rendered,
            };
        }
        TimelineAction::PreviousTurn => jump_turn(state, layout, Way::Backwards),
        TimelineAction::NextTurn => jump_turn(state, layout, Way::Forwards),
        TimelineAction::PreviousOwn => jump_own(state, layout, Way::Backwards),
        TimelineAction::NextOwn => jump_own(state, layout, Way::Forwards),
        TimelineAction::CopyMessage => clipboard::copy_item(state, layout, out),
        TimelineAction::CopyCode => clipboard::copy_code(state, layout, out),
        TimelineAction::CopyTurn => clipboard::copy_turn(state, layout, out),
        TimelineAction::Edit => fork::edit(state, layout, out),
        TimelineAction::Fork => fork::fork(state, layout, out),
        TimelineAction::Events => events::show(state, layout, out),
    }
}

/// Moves the focus by item, and the view by row where an item is longer than what is in sight.
pub(super) fn move_through(state: &mut State, layout: &Layout, action: MoveAction) {
    match action {
        MoveAction::Up => move_focus(state, layout, Way::Backwards),
        MoveAction::Down => move_focus(state, layout, Way::Forwards),
        MoveAction::PageUp
        | MoveAction::PageDown
        | MoveAction::HalfPageUp
        | MoveAction::HalfPageDown
        | MoveAction::Top
        | MoveAction::Bottom
        | MoveAction::ToList
        | MoveAction::ToTimeline
        | MoveAction::ToComposer => scroll(state, layout, action),
    }
}

/// Moves the view.
pub(super) fn scroll(state: &mut State, layout: &Layout, action: MoveAction) {
    let height = layout.timeline.as_ref().map_or(0, |area| i64::from(area.rect.height));
    let page = (height - 1).max(1);
    let rows = match action {
        MoveAction::Up => -1,
        MoveAction::Down => 1,
        MoveAction::PageUp => -page,
        MoveAction::PageDown => page,
        MoveAction::HalfPageUp => -(height / 2).max(1),
        MoveAction::HalfPageDown => (height / 2).max(1),
        MoveAction::Top => {
            if let Some(first) = state.items().first().map(|item| item.id) {
                reading::jump(state, first);
            }
            return;
        }
        MoveAction::Bottom => return state.conversation.follow(),
        MoveAction::ToList | MoveAction::ToTimeline | MoveAction::ToComposer => return,
    };
    state.conversation.focus = None;
    reading::scroll(state, layout, rows);
}

fn move_focus(state: &mut State, layout: &Layout, way: Way) {
    let Some(area) = &layout.timeline else { return };
    let Some(focus) = reading::focus(state, layout) else { return };
    let shown = |id: &ItemId| area.items.iter().find(|shown| shown.item == *id);
    let (rows, is_cut): (_, fn(&ItemArea) -> bool) = match way {
        Way::Forwards => (1, |area| area.rows_below > 0),
        Way::Backwards => (-1, |area| area.rows_above > 0),
    };
    if shown(&focus).is_some_and(is_cut) {
        state.conversation.focus = Some(focus);
        return reading::scroll(state, layout, rows);
    }
    let next = match way {
        Way::Forwards => state.items().after(&focus),
        Way::Backwards => state.items().before(&focus),
    };
    let Some(next) = next.map(|item| item.id) else {
        if way == Way::Forwards {
            state.conversation.follow();
        }
        return;
    };
    let in_sight = shown(&next).is_some();
    if !in_sight {
        reading::scroll(state, layout, rows);
    }
    state.conversation.focus = Some(next);
}

/// To the first item of the turn after, or of this turn, or of the one before.
fn jump_turn(state: &mut State, layout: &Layout, way: Way) {
    let Some(focus) = reading::focus(state, layout) else { return };
    let items = state.items();
    let turns = &state.conversation.turns;
    let Some(slot) = turns.slot(&focus.turn) else { return };
    let first = items.first_of(slot).map(|item| item.id);
    let to = match way {
        Way::Forwards => turns.after(slot).next().and_then(|slot| items.first_of(slot)),
        Way::Backwards if first.as_ref() != Some(&focus) => items.first_of(slot),
        Way::Backwards => turns.before(slot).next().and_then(|slot| items.first_of(slot)),
    };
    arrive(state, to.map(|item| item.id), way);
}

/// To the next message of the person's own.
fn jump_own(state: &mut State, layout: &Layout, way: Way) {
    let Some(focus) = reading::focus(state, layout) else { return };
    let items = state.items();
    let next = |item: &Item<'_>| match way {
        Way::Forwards => items.after(&item.id),
        Way::Backwards => items.before(&item.id),
    };
    let way_there = std::iter::successors(items.find(&focus), next).skip(1);
    let mut own = way_there.filter(|item| matches!(item.body, Body::Message { .. }));
    let to = own.next().map(|item| item.id);
    arrive(state, to, way);
}

fn arrive(state: &mut State, to: Option<ItemId>, way: Way) {
    match (to, way) {
        (Some(item), _) => reading::jump(state, item),
        (None, Way::Forwards) => state.conversation.follow(),
        (None, Way::Backwards) => {}
    }
}
