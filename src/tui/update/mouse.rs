//! The mouse: a click moves the focus, the wheel moves what is under it. Nothing is ever decided by
//! the mouse.

use ratatui::layout::Position;

use crate::tui::action::MoveAction;
use crate::tui::input::{Button, Mouse, MouseKind};
use crate::tui::layout::{Hit, Layout};
use crate::tui::state::keys::FOCUS_CLICK_WITHIN;
use crate::tui::state::{Focus, State};
use crate::tui::update::{Effects, focus, list, overlay, prompts, reading, session};

/// A notch of the wheel.
const WHEEL_ROWS: i64 = 3;

/// Does what an event of the mouse says.
pub(super) fn take(state: &mut State, layout: &Layout, event: Mouse, out: &mut Effects) {
    let cell = Position { x: event.column, y: event.row };
    match event.kind {
        MouseKind::Press(Button::Left) => click(state, layout, cell, out),
        MouseKind::WheelUp => wheel(state, layout, cell, -WHEEL_ROWS),
        MouseKind::WheelDown => wheel(state, layout, cell, WHEEL_ROWS),
        MouseKind::Press(Button::Middle | Button::Right)
        | MouseKind::Release(_)
        | MouseKind::Drag(_)
        | MouseKind::WheelLeft
        | MouseKind::WheelRight => {}
    }
}

fn click(state: &mut State, layout: &Layout, cell: Position, out: &mut Effects) {
    // The click that gave the window the focus was not meant for anything in it.
    let focused = state.keys.window_focused_at.take();
    if focused.is_some_and(|at| state.now.elapsed < at + FOCUS_CLICK_WITHIN) {
        return;
    }
    match layout.hit(cell) {
        Some(Hit::List(Some(session))) => {
            let again =
                state.focus == Focus::List && state.list.selected.as_ref() == Some(&session);
            if again {
                return session::open(state, &session, out);
            }
            focus::go(state, Focus::List, out);
            let row = layout.list.as_ref().map_or(0, |area| cell.y - area.rect.y);
            state.list.selected = Some(session);
            state.list.selected_row = row;
        }
        Some(Hit::List(None)) => focus::go(state, Focus::List, out),
        Some(Hit::Timeline(item)) => {
            focus::go(state, Focus::Timeline, out);
            if item.is_some() {
                state.conversation.focus = item;
            }
        }
        Some(Hit::Prompt) if state.prompts.open().is_none() => prompts::go(state, out),
        Some(Hit::Composer) => focus::go(state, Focus::Composer, out),
        Some(Hit::Prompt | Hit::Overlay) | None => {}
    }
}

fn wheel(state: &mut State, layout: &Layout, cell: Position, rows: i64) {
    let action = if rows < 0 { MoveAction::Up } else { MoveAction::Down };
    match layout.hit(cell) {
        Some(Hit::Overlay) => overlay::move_through(state, layout, action),
        Some(Hit::List(_)) => list::move_through(state, layout, action),
        Some(Hit::Timeline(_)) => {
            state.conversation.focus = None;
            reading::scroll(state, layout, rows);
        }
        Some(Hit::Prompt | Hit::Composer) | None => {}
    }
}
