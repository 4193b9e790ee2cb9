//! Paints lines into cells, never outside of the place that they are given.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;
use unicode_width::UnicodeWidthStr;

use crate::base::text;
use crate::tui::line::Line;
use crate::tui::mark::Beat;
use crate::tui::theme::{Theme, Tint, Ui};

/// Where a frame is painted, and with what.
pub(super) struct Canvas<'a> {
    pub(super) buffer: &'a mut Buffer,
    pub(super) theme: &'a Theme,
    pub(super) beat: Beat,
}

impl Canvas<'_> {
    /// Paints lines one below the other.
    pub(super) fn lines(&mut self, rect: Rect, lines: &[Line]) {
        for (row, line) in (0..rect.height).zip(lines) {
            self.line(row_of(rect, row), line);
        }
    }

    /// Paints a line into a row; gives how many columns it took.
    pub(super) fn line(&mut self, row: Rect, line: &Line) -> u16 {
        let row = row.intersection(self.buffer.area);
        if row.is_empty() {
            return 0;
        }
        let mut x = row.x;
        for span in line.spans() {
            let text = match span.tint {
                Tint::Mark(mark) => mark.sign_in(self.beat),
                Tint::Text(_) | Tint::Ui(_) => span.text.as_ref(),
            };
            let style = self.theme.style(span.tint);
            let left = usize::from(row.right() - x);
            if text::width(text) > left {
                let cut = text::truncate(text, left);
                x = self.buffer.set_stringn(x, row.y, cut, left, style).0;
                break;
            }
            x = self.buffer.set_stringn(x, row.y, text, left, style).0;
        }
        x - row.x
    }

    /// Paints a line at the right end of a row; gives how many columns it took.
    pub(super) fn line_right(&mut self, row: Rect, line: &Line) -> u16 {
        let cols = u16::try_from(line.width()).unwrap_or(u16::MAX).min(row.width);
        let place = Rect { x: row.right() - cols, width: cols, ..row };
        self.line(place, line)
    }

    /// Paints one text.
    pub(super) fn text(&mut self, row: Rect, text: &str, part: Ui) -> u16 {
        self.line(row, &Line::of(text, part))
    }

    /// Paints one sign into a cell.
    pub(super) fn sign(&mut self, x: u16, y: u16, sign: &str, part: Ui) {
        let style = self.theme.ui(part);
        if let Some(cell) = self.buffer.cell_mut(Position { x, y }) {
            cell.set_symbol(sign).set_style(style);
        }
    }

    /// Lays a style over cells; what they say stays.
    pub(super) fn restyle(&mut self, rect: Rect, part: Ui) {
        let style = self.theme.ui(part);
        self.buffer.set_style(rect.intersection(self.buffer.area), style);
    }

    /// Empties cells, and those of a wide character that would be left beside them.
    pub(super) fn clear(&mut self, rect: Rect) {
        let rect = rect.intersection(self.buffer.area);
        for y in rect.top()..rect.bottom() {
            self.clear_cut(rect.x, y);
            for x in rect.left()..rect.right() {
                if let Some(cell) = self.buffer.cell_mut(Position { x, y }) {
                    cell.reset();
                }
            }
        }
    }

    /// Empties the cell to the left of a column whose character reaches into it.
    fn clear_cut(&mut self, column: u16, y: u16) {
        for x in (self.buffer.area.left()..column).rev() {
            let Some(cell) = self.buffer.cell_mut(Position { x, y }) else { return };
            // What a wide character covers is blank.
            if cell.symbol() == " " {
                continue;
            }
            if cell.symbol().width() > usize::from(column - x) {
                cell.set_symbol(" ");
            }
            return;
        }
    }

    /// Fills cells with a style.
    pub(super) fn fill(&mut self, rect: Rect, style: Style) {
        self.clear(rect);
        self.buffer.set_style(rect.intersection(self.buffer.area), style);
    }
}

/// A row of a rectangle, from 0.
pub(super) fn row_of(rect: Rect, row: u16) -> Rect {
    Rect { y: rect.y + row.min(rect.height), height: u16::from(row < rect.height), ..rect }
}
