//! A text as it is drawn: cleaned, with its chips spelled out, broken into rows, with the caret.

use std::ops::Range;

use crate::base::{sanitize, text};
use crate::tui::editor::chips::{self, Chips};
use crate::tui::editor::words;

/// See the module. Rows count from the top, columns in cells; both from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rows {
    shown: String,
    /// Where each piece of the source begins in `shown`, and what it is.
    pieces: Vec<Piece>,
    /// Which bytes of `shown` each row draws.
    drawn: Vec<Range<usize>>,
    cols: usize,
    source_len: usize,
    caret: Caret,
}

/// Where the caret stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caret {
    /// The row.
    pub row: usize,
    /// The cell before which it stands.
    pub column: usize,
}

/// A part of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// What is drawn; tabs are spaces already.
    pub text: String,
    /// Whether it is a chip.
    pub is_chip: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    shown: usize,
    source: usize,
    is_chip: bool,
}

impl Rows {
    pub(super) fn of(raw: &str, caret: usize, held: &Chips, cols: usize) -> Self {
        let cols = cols.max(1);
        let (mut shown, mut pieces, mut at) = (String::with_capacity(raw.len()), Vec::new(), 0);
        for piece in words::pieces(raw) {
            let chip = piece.chars().next().filter(|c| chips::is_chip(*c));
            let label = chip.and_then(|c| held.label(c));
            pieces.push(Piece { shown: shown.len(), source: at, is_chip: label.is_some() });
            match label {
                Some(label) => shown.push_str(label),
                None => shown.push_str(&sanitize::for_reading(piece)),
            }
            at += piece.len();
        }
        let drawn = text::wrap(&shown, cols);
        let caret_unknown = Caret::default();
        let mut made =
            Self { shown, pieces, drawn, cols, source_len: raw.len(), caret: caret_unknown };
        made.caret = made.find(caret);
        made
    }

    /// How many rows there are; at least one.
    #[must_use]
    pub fn len(&self) -> usize {
        self.drawn.len()
    }

    /// Never: an empty text has a row for its caret.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.drawn.is_empty()
    }

    /// Where the caret stands.
    #[must_use]
    pub fn caret(&self) -> Caret {
        self.caret
    }

    /// What is drawn in a row.
    #[must_use]
    pub fn spans(&self, row: usize) -> Vec<Span> {
        let mut spans: Vec<Span> = Vec::new();
        self.draw(row, |at, piece| {
            let is_chip = self.piece_at(at).is_some_and(|piece| piece.is_chip);
            match spans.last_mut() {
                Some(last) if last.is_chip == is_chip => last.text.push_str(piece),
                Some(_) | None => spans.push(Span { text: piece.to_owned(), is_chip }),
            }
        });
        spans
    }

    /// The place in the source that is nearest to a column of a row, not behind it.
    #[must_use]
    pub fn source_at(&self, row: usize, column: usize) -> usize {
        let Some(range) = self.drawn.get(row) else { return self.source_len };
        let (mut used, mut last, mut found) = (0, range.start, None);
        self.draw(row, |at, piece| {
            used += text::width(piece);
            last = at;
            if found.is_none() && used > column {
                found = Some(at);
            }
        });
        // Behind the last column of a row that ends inside a word is the start of the next row.
        let is_broken = self.drawn.get(row + 1).is_some_and(|next| next.start == range.end);
        let end = if is_broken { last } else { range.end };
        self.source_of(found.unwrap_or(end))
    }

    fn find(&self, caret: usize) -> Caret {
        let piece = self.pieces.iter().find(|piece| piece.source >= caret);
        let shown = piece.map_or(self.shown.len(), |piece| piece.shown);
        let after = self.drawn.partition_point(|row| row.start <= shown);
        let row = after.saturating_sub(1);
        let mut column = 0;
        self.draw(row, |at, piece| {
            if at < shown {
                column += text::width(piece);
            }
        });
        Caret { row, column }
    }

    fn draw<'a>(&'a self, row: usize, mut piece: impl FnMut(usize, &'a str)) {
        let Some(range) = self.drawn.get(row) else { return };
        let text = self.shown.get(range.clone()).unwrap_or_default();
        text::draw(text, self.cols, |at, part| piece(range.start + at, part));
    }

    fn piece_at(&self, shown: usize) -> Option<Piece> {
        let after = self.pieces.partition_point(|piece| piece.shown <= shown);
        after.checked_sub(1).and_then(|at| self.pieces.get(at)).copied()
    }

    /// The start of the piece of the source that is drawn at a byte.
    fn source_of(&self, shown: usize) -> usize {
        if shown >= self.shown.len() {
            return self.source_len;
        }
        self.piece_at(shown).map_or(0, |piece| piece.source)
    }
}
