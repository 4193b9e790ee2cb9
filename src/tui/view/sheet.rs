//! What lies over everything else: a frame with a title, rows, and keys in its lower border.

use ratatui::layout::Rect;

use super::canvas::Canvas;
use crate::tui::layout::Sheet;
use crate::tui::line::Line;
use crate::tui::theme::Ui;

pub(super) fn draw(canvas: &mut Canvas<'_>, sheet: &Sheet) {
    let rect = sheet.rect;
    canvas.clear(rect);
    border(canvas, rect);
    let text = Rect {
        x: rect.x + 2,
        y: rect.y + 1,
        width: rect.width.saturating_sub(4),
        height: rect.height.saturating_sub(2),
    };
    canvas.lines(text, &sheet.lines);
    let end = |y| Rect { x: rect.x + 1, y, width: rect.width.saturating_sub(2), height: 1 };
    let cols = usize::from(text.width);
    let title = Line::of(&format!(" {} ", sheet.title), Ui::TitleFocused).cut(cols);
    canvas.line(end(rect.y), &title);
    if sheet.hints.width() > 0 {
        let hints = Line::new().with_space(1).with_line(sheet.hints.clone()).with_space(1);
        canvas.line_right(end(rect.bottom().saturating_sub(1)), &hints);
    }
}

fn border(canvas: &mut Canvas<'_>, rect: Rect) {
    let (right, bottom) = (rect.right().saturating_sub(1), rect.bottom().saturating_sub(1));
    for x in rect.x..=right {
        canvas.sign(x, rect.y, "─", Ui::BorderFocused);
        canvas.sign(x, bottom, "─", Ui::BorderFocused);
    }
    for y in rect.y..=bottom {
        canvas.sign(rect.x, y, "│", Ui::BorderFocused);
        canvas.sign(right, y, "│", Ui::BorderFocused);
    }
    for (x, y, corner) in
        [(rect.x, rect.y, "┌"), (right, rect.y, "┐"), (rect.x, bottom, "└"), (right, bottom, "┘")]
    {
        canvas.sign(x, y, corner, Ui::BorderFocused);
    }
}
