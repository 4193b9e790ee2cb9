//! One row of the screen before it has colours: pieces of safe text, each with what it is.

use std::borrow::Cow;

use crate::base::{sanitize, text};
use crate::tui::mark::Mark;
use crate::tui::rich::{Role, Row, Style};
use crate::tui::theme::{Tint, Ui};

/// A piece of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Safe text without controls.
    pub text: Cow<'static, str>,
    /// What it is.
    pub tint: Tint,
}

/// One row of the screen, from left to right.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    spans: Vec<Span>,
}

impl Line {
    /// An empty row.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The row of a text of our own.
    #[must_use]
    pub fn of(text: &str, part: Ui) -> Self {
        Self::new().with(text, part)
    }

    /// The pieces.
    #[must_use]
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// The cells that it fills.
    #[must_use]
    pub fn width(&self) -> usize {
        self.spans.iter().map(|span| text::width(&span.text)).sum()
    }

    /// The row and a text behind it, which is made safe.
    #[must_use]
    pub fn with(mut self, text: &str, part: Ui) -> Self {
        self.push(Cow::Owned(sanitize::for_line(text).into_owned()), Tint::Ui(part));
        self
    }

    /// The row and a mark behind it.
    #[must_use]
    pub fn with_mark(mut self, mark: Mark) -> Self {
        self.push(Cow::Borrowed(mark.sign()), Tint::Mark(mark));
        self
    }

    /// The row and so many spaces behind it.
    #[must_use]
    pub fn with_space(mut self, cols: usize) -> Self {
        self.push(Cow::Owned(" ".repeat(cols)), Tint::Ui(Ui::Plain));
        self
    }

    /// The row and another behind it.
    #[must_use]
    pub fn with_line(mut self, other: Self) -> Self {
        self.spans.extend(other.spans);
        self
    }

    /// The row and a row of rich text behind it.
    #[must_use]
    pub fn with_row(mut self, row: &Row, fade: Fade) -> Self {
        for span in row.spans() {
            let style = match (fade, span.style.role) {
                (Fade::Back, Role::Text) => Style { role: Role::Muted, ..span.style },
                _ => span.style,
            };
            self.push(Cow::Owned(span.text.to_owned()), Tint::Text(style));
        }
        self
    }

    /// As much of it as fits in `cols` together with an ellipsis.
    #[must_use]
    pub fn cut(mut self, cols: usize) -> Self {
        if self.width() <= cols {
            return self;
        }
        let mut left = cols;
        let mut kept = Vec::new();
        for span in std::mem::take(&mut self.spans) {
            let width = text::width(&span.text);
            // One cell is needed for the ellipsis, for something is cut in the end.
            if width < left {
                left -= width;
                kept.push(span);
                continue;
            }
            let room =
                if width == left { format!("{}…", span.text) } else { span.text.into_owned() };
            let cut = text::truncate(&room, left).into_owned();
            kept.push(Span { text: Cow::Owned(cut), tint: span.tint });
            break;
        }
        Self { spans: kept }
    }

    /// This row to the left and another to the right of `cols` columns. Where there is no room for
    /// both, the left one is cut, down to half of the room; then the right one.
    #[must_use]
    pub fn beside(self, right: Self, cols: usize) -> Self {
        if right.spans.is_empty() {
            return self.cut(cols);
        }
        let right = right.cut((cols / 2).max(cols.saturating_sub(self.width() + 2)));
        let right_cols = right.width();
        let left = self.cut(cols.saturating_sub(right_cols + 2));
        let gap = cols.saturating_sub(left.width() + right_cols);
        left.with_space(gap).with_line(right)
    }

    /// This row in the middle of `cols` columns.
    #[must_use]
    pub fn centred(self, cols: usize) -> Self {
        let line = self.cut(cols);
        let before = cols.saturating_sub(line.width()) / 2;
        Self::new().with_space(before).with_line(line)
    }

    /// This row, `cols` columns further in.
    #[must_use]
    pub fn indented(self, cols: usize) -> Self {
        Self::new().with_space(cols).with_line(self)
    }

    /// All of it drawn as another part of the screen; marks stay what they are.
    #[must_use]
    pub fn repainted(mut self, part: Ui) -> Self {
        for span in &mut self.spans {
            if !matches!(span.tint, Tint::Mark(_)) {
                span.tint = Tint::Ui(part);
            }
        }
        self
    }

    fn push(&mut self, text: Cow<'static, str>, tint: Tint) {
        if !text.is_empty() {
            self.spans.push(Span { text, tint });
        }
    }
}

/// Whether plain text steps back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fade {
    /// It is what is to be read.
    Front,
    /// It stands behind what is to be read.
    Back,
}

/// The rows of a text of ours or somebody else's, wrapped.
#[must_use]
pub fn wrapped(source: &str, part: Ui, cols: usize) -> Vec<Line> {
    let clean = sanitize::for_reading(source);
    let rows = text::wrap(&clean, cols.max(1)).into_iter();
    let drawn = rows.map(|row| {
        let mut drawn = String::new();
        text::draw(clean.get(row).unwrap_or_default(), cols.max(1), |_, piece| {
            drawn.push_str(piece);
        });
        Line::of(&drawn, part)
    });
    drawn.collect()
}

/// Lines beside a first one that leads them: `head` before the first, as much space before the rest.
#[must_use]
pub fn led(head: Line, source: &str, part: Ui, cols: usize) -> Vec<Line> {
    let indent = head.width();
    let mut rows = wrapped(source, part, cols.saturating_sub(indent)).into_iter();
    let first = rows.next().map(|first| head.with_line(first));
    first.into_iter().chain(rows.map(|row| row.indented(indent))).collect()
}

/// A line broken into as many rows as it takes, wherever they end.
#[must_use]
pub fn folded(line: Line, cols: usize) -> Vec<Line> {
    if line.width() <= cols {
        return vec![line];
    }
    let mut rows = vec![Line::new()];
    let mut used = 0;
    for span in line.spans {
        for cluster in text::clusters(&span.text) {
            if used + cluster.cols > cols && used > 0 {
                rows.push(Line::new());
                used = 0;
            }
            used += cluster.cols;
            let Some(row) = rows.last_mut() else { continue };
            match row.spans.last_mut() {
                Some(last) if last.tint == span.tint => last.text.to_mut().push_str(cluster.text),
                Some(_) | None => row.push(Cow::Owned(cluster.text.to_owned()), span.tint),
            }
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(line: &Line) -> String {
        line.spans().iter().map(|span| span.text.as_ref()).collect()
    }

    fn check_beside(left: &str, right: &str, cols: usize, expected: &str) {
        let line = Line::of(left, Ui::Plain).beside(Line::of(right, Ui::Muted), cols);
        assert_eq!(drawn(&line), expected);
        assert!(line.width() <= cols);
    }

    #[test]
    fn what_stands_to_the_right_stays_and_the_left_is_cut() {
        check_beside("read-file src/a.rs", "12 lines", 30, "read-file src/a.rs    12 lines");
        check_beside("read-file src/a.rs", "12 lines", 20, "read-file…  12 lines");
        check_beside("read-file src/a.rs", "", 10, "read-file…");
        check_beside("ab", "much more than fits", 12, "ab  much mo…");
        check_beside("wide 漢字", "x", 9, "wide …  x");
    }

    #[test]
    fn a_cut_line_ends_with_an_ellipsis_wherever_its_pieces_meet() {
        let line = || Line::of("abc", Ui::Plain).with("def", Ui::Muted);
        assert_eq!(drawn(&line().cut(6)), "abcdef");
        assert_eq!(drawn(&line().cut(5)), "abcd…");
        assert_eq!(drawn(&line().cut(4)), "abc…");
        assert_eq!(drawn(&line().cut(3)), "ab…");
        assert_eq!(drawn(&line().cut(0)), "");
    }

    #[test]
    fn nothing_that_steers_a_terminal_gets_into_a_line() {
        assert_eq!(drawn(&Line::of("a\u{1b}[2J\nb\tc\u{202e}", Ui::Plain)), "a␛[2J␊b␉c⟨U+202E⟩");
    }
}
