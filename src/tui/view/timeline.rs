//! The conversation: its rows, the bar beside the item that has the focus, and what is below.

use ratatui::layout::Rect;

use super::canvas::{Canvas, row_of};
use crate::tui::layout::{Layout, TimelineArea, focused_pane};
use crate::tui::line::Line;
use crate::tui::state::{Focus, State};
use crate::tui::theme::Ui;

pub(super) fn draw(canvas: &mut Canvas<'_>, state: &State, layout: &Layout, area: &TimelineArea) {
    // The bar has a column of its own, which is free of text where there is no item.
    let inset = u16::from(!area.items.is_empty());
    let text =
        Rect { x: area.rect.x + inset, width: area.rect.width.saturating_sub(inset), ..area.rect };
    canvas.lines(text, &layout.drawn.timeline);
    if focused_pane(state) == Some(Focus::Timeline) {
        bar(canvas, area);
    }
    pill(canvas, state, area);
}

fn bar(canvas: &mut Canvas<'_>, area: &TimelineArea) {
    let focus = area.items.iter().find(|item| Some(&item.item) == area.focus.as_ref());
    let Some(item) = focus else { return };
    for row in item.row..item.row + item.rows {
        canvas.sign(area.rect.x, area.rect.y + row, "▌", Ui::FocusBar);
    }
}

/// Says how much has come below.
fn pill(canvas: &mut Canvas<'_>, state: &State, area: &TimelineArea) {
    let new = state.conversation.new_below;
    if new == 0 || area.is_at_bottom || area.rect.height < 2 {
        return;
    }
    let line = Line::of(&format!(" ↓ {new} new "), Ui::Pill);
    let cols = u16::try_from(line.width()).unwrap_or(u16::MAX);
    let row = row_of(area.rect, area.rect.height - 1);
    let x = row.right().saturating_sub(cols + 1).max(row.x);
    let place = Rect { x, width: cols.min(row.right() - x), ..row };
    canvas.clear(place);
    canvas.line(place, &line);
}
