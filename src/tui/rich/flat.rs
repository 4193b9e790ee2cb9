//! Styled text before it has a width: pieces with their styles and the place in the source that each
//! comes from, made safe as they come in and broken into rows at the end.

use std::ops::Range;

use super::{Row, RowBuilder, Style};
use crate::base::sanitize::{self, Policy};
use crate::base::text;

/// Text in the making. Its line ends are hard.
#[derive(Clone, Debug)]
pub(super) struct Flat {
    policy: Policy,
    /// The place in the source where the text begins.
    origin: usize,
    text: String,
    /// Each style with the byte at which it ends.
    styles: Vec<(usize, Style)>,
    pieces: Vec<Piece>,
}

/// A part of the text that comes from one part of the source.
#[derive(Clone, Debug)]
struct Piece {
    at: usize,
    source: Range<usize>,
}

impl Flat {
    /// An empty text for what begins at `origin` in the source.
    pub(super) fn new(policy: Policy, origin: usize) -> Self {
        Self { policy, origin, text: String::new(), styles: Vec::new(), pieces: Vec::new() }
    }

    /// This text, less the line end at its end.
    pub(super) fn without_last_line_end(mut self) -> Self {
        if self.text.ends_with('\n') {
            self.text.pop();
        }
        if self.text.ends_with('\r') {
            self.text.pop();
        }
        self
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Adds what stands at `source`.
    pub(super) fn push(&mut self, text: &str, source: Range<usize>, style: Style) {
        let clean = sanitize::clean(text, self.policy);
        let in_place = source.len() == text.len();
        if clean == text || !in_place || self.policy == Policy::Approval {
            self.push_own(&clean, source, style);
            return;
        }
        // Word by word, so that what was cleaned moves the places of its own word only.
        let mut at = source.start;
        for word in text.split_inclusive([' ', '\n']) {
            let end = at + word.len();
            self.push_own(&sanitize::clean(word, self.policy), at..end, style);
            at = end;
        }
    }

    /// Adds safe text that stands for what is at `source`.
    pub(super) fn push_own(&mut self, text: &str, source: Range<usize>, style: Style) {
        if text.is_empty() {
            return;
        }
        self.pieces.push(Piece { at: self.text.len(), source });
        self.text.push_str(text);
        let end = self.text.len();
        match self.styles.last_mut() {
            Some((last_end, last)) if *last == style => *last_end = end,
            _ => self.styles.push((end, style)),
        }
    }

    /// Adds another text.
    pub(super) fn append(&mut self, other: &Self) {
        let at = self.text.len();
        self.text.push_str(&other.text);
        self.styles.extend(other.styles.iter().map(|&(end, style)| (at + end, style)));
        let moved = |piece: &Piece| Piece { at: at + piece.at, source: piece.source.clone() };
        self.pieces.extend(other.pieces.iter().map(moved));
    }

    /// The place in the source of a byte of the text; where text was cleaned, near it.
    pub(super) fn source_at(&self, at: usize) -> usize {
        let after = self.pieces.partition_point(|piece| piece.at <= at);
        let Some(piece) = after.checked_sub(1).and_then(|index| self.pieces.get(index)) else {
            return self.origin;
        };
        piece.source.end.min(piece.source.start + (at - piece.at))
    }

    /// Whether the text at a byte is plain, so that no emphasis or link reaches over it.
    pub(super) fn is_plain_at(&self, at: usize) -> bool {
        let index = self.styles.partition_point(|&(end, _)| end <= at);
        self.styles.get(index).is_none_or(|&(_, style)| style == Style::default())
    }

    /// The rows that the text needs; see [`text::wrap`].
    pub(super) fn wrap(&self, cols: usize) -> Vec<Range<usize>> {
        text::wrap(&self.text, cols)
    }

    /// The place in the source of a row of [`Flat::wrap`].
    pub(super) fn source_of(&self, row: &Range<usize>) -> Range<usize> {
        let start = self.source_at(row.start);
        let end = if row.is_empty() { start } else { self.source_at(row.end) };
        start..end.max(start)
    }

    /// Whether a row of [`Flat::wrap`] goes on with the line of the row before it.
    pub(super) fn is_continuation(&self, row: &Range<usize>) -> bool {
        row.start > 0 && !self.text.get(..row.start).is_some_and(|before| before.ends_with('\n'))
    }

    /// Draws a row of [`Flat::wrap`].
    pub(super) fn draw(&self, row: Range<usize>, cols: usize, into: &mut RowBuilder) {
        let mut index = self.styles.partition_point(|&(end, _)| end <= row.start);
        let text = self.text.get(row.clone()).unwrap_or_default();
        text::draw(text, cols, |at, piece| {
            while self.styles.get(index).is_some_and(|&(end, _)| end <= row.start + at) {
                index += 1;
            }
            let style = self.styles.get(index).map_or(Style::default(), |&(_, style)| style);
            into.push(piece, style);
        });
    }

    /// The text as rows of their own.
    pub(super) fn rows(&self, width: u16) -> Vec<Row> {
        let cols = usize::from(width.max(1));
        let row = |range: Range<usize>| {
            let (source, continued) = (self.source_of(&range), self.is_continuation(&range));
            let mut row = RowBuilder::default();
            self.draw(range, cols, &mut row);
            row.finish(source, continued)
        };
        self.wrap(cols).into_iter().map(row).collect()
    }

    /// The cells that the text fills if nothing has to break, and those of its longest word.
    pub(super) fn widths(&self) -> (usize, usize) {
        let longest = |parts: &mut dyn Iterator<Item = &str>| parts.map(text::width).max();
        let line = longest(&mut self.text.split('\n')).unwrap_or(0);
        let word = longest(&mut self.text.split_whitespace()).unwrap_or(0);
        (line, word)
    }
}
