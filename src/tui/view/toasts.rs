//! Short messages over the conversation.

use ratatui::layout::Rect;

use super::canvas::{Canvas, row_of};
use crate::tui::layout::{Layout, TimelineArea};
use crate::tui::line::{Line, wrapped};
use crate::tui::state::State;
use crate::tui::state::item::Part;
use crate::tui::state::status::{Toast, Tone};
use crate::tui::theme::Ui;

/// Wider messages are broken.
const COLS_MAX: u16 = 56;
/// The space beside the text of a message, on both sides together.
const SIDES_COLS: u16 = 2;

/// The latest message stands highest. Neither the row where the latest turn stands, with its keys, nor
/// anything below the conversation is ever covered, where there is a row besides.
pub(super) fn draw(canvas: &mut Canvas<'_>, state: &State, layout: &Layout) {
    let timeline = layout.timeline.as_ref().map(free_of_end);
    let Some(room) = timeline.or_else(|| layout.list.as_ref().map(|area| area.rect)) else {
        return;
    };
    let mut top = room.y;
    for toast in state.status.toasts.iter().rev() {
        let lines = lines(toast, room.width);
        let height = u16::try_from(lines.len()).unwrap_or(u16::MAX).min(room.bottom() - top);
        let widest = lines.iter().map(Line::width).max().unwrap_or(0);
        let width = u16::try_from(widest).unwrap_or(u16::MAX).saturating_add(SIDES_COLS);
        let width = width.min(room.width);
        let rect = Rect { x: room.right() - width, y: top, width, height };
        let style = canvas.theme.ui(part(toast));
        canvas.fill(rect, style);
        for (row, line) in (0..height).zip(&lines) {
            let inner = Rect { x: rect.x + 1, width: width.saturating_sub(1), ..row_of(rect, row) };
            canvas.line(inner, line);
        }
        top = rect.bottom();
    }
}

/// The part of the conversation above the row where its latest turn stands, or the one below, if that
/// is larger.
fn free_of_end(area: &TimelineArea) -> Rect {
    let room = area.rect;
    let Some(end) = area.items.last().filter(|shown| shown.item.part == Part::End) else {
        return room;
    };
    let (from, to) = (end.row.min(room.height), (end.row + end.rows).min(room.height));
    let above = Rect { height: from, ..room };
    let below = Rect { y: room.y + to, height: room.height - to, ..room };
    let larger = if above.height >= below.height { above } else { below };
    if larger.height == 0 { room } else { larger }
}

fn lines(toast: &Toast, cols: u16) -> Vec<Line> {
    let sign = match toast.tone {
        Tone::Plain => "",
        Tone::Problem => "! ",
    };
    let cols = cols.min(COLS_MAX).saturating_sub(SIDES_COLS).max(1);
    wrapped(&format!("{sign}{}", toast.text), part(toast), usize::from(cols))
}

fn part(toast: &Toast) -> Ui {
    match toast.tone {
        Tone::Plain => Ui::Toast,
        Tone::Problem => Ui::ToastProblem,
    }
}
