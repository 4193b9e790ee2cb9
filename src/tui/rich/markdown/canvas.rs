//! Where the rows of a part are drawn, below the open containers: blank rows where blocks stand
//! apart, and the places where the part could be cut.

use std::ops::Range;

use super::super::flat::Flat;
use super::super::{Role, Row, RowBuilder, Style};
use super::Part;
use super::cut::{self, Cuts, Finder, Place};
use super::frames::Frames;
use crate::base::sanitize::Policy;

/// What the parser takes for white space; other blanks are text.
const WHITE_SPACE: [char; 6] = [' ', '\t', '\n', '\r', '\u{b}', '\u{c}'];

/// The rows so far, and what has to be known to draw the next.
pub(super) struct Canvas<'a> {
    pub(super) part: &'a Part<'a>,
    pub(super) frames: Frames,
    pub(super) cuts: Finder<'a>,
    rows: Vec<Row>,
    /// Whether the first row goes on with the line of the row before the part.
    mid_line: bool,
    /// Whether something has been drawn, and whether the last block at top level was text.
    started: bool,
    after_text: bool,
}

impl<'a> Canvas<'a> {
    pub(super) fn new(part: &'a Part<'a>) -> Self {
        Self {
            part,
            frames: Frames::new(usize::from(part.width.max(1))),
            cuts: Finder::new(part.text, part.skip),
            rows: Vec::new(),
            mid_line: part.resume.mid_line,
            started: false,
            after_text: false,
        }
    }

    pub(super) fn finish(self) -> (Vec<Row>, Cuts) {
        (self.rows, self.cuts.into_cuts())
    }

    /// The number of rows so far.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether what stands at `at` belongs to the context, and is not drawn.
    pub(super) fn is_context(&self, at: usize) -> bool {
        at < self.part.skip
    }

    /// Where the line begins that holds the byte `at`.
    pub(super) fn line_start(&mut self, at: usize) -> usize {
        self.cuts.line_start(at)
    }

    /// As [`line_start`](Self::line_start), of a block that begins at `at` or behind the white space
    /// there: the parser counts a line end to a block that is indented by a tab.
    fn first_line_start(&mut self, at: usize) -> usize {
        let rest = self.part.text.get(at..).unwrap_or_default();
        self.line_start(at + rest.len() - rest.trim_start_matches(WHITE_SPACE).len())
    }

    /// Begins a block, or an item of the innermost list: a blank row before it where one belongs, and
    /// a place to cut. What makes it a block stands in its first `lines` lines.
    pub(super) fn begin(&mut self, start: usize, lines: usize) {
        if self.is_context(start) {
            return;
        }
        let (top, line_start) = (self.frames.is_top(), self.first_line_start(start));
        let fresh = !self.started || self.frames.enter();
        self.resume();
        let gap = !fresh && (top || cut::is_blank_before(self.part.text, line_start));
        if gap {
            self.push_row(self.frames.blank_row(), line_start..line_start, false);
        }
        let place = Place { frames: &self.frames, row: self.rows.len(), gap };
        if top {
            self.cuts.before_block(start, lines, &place);
        } else if self.frames.is_top_list() && !fresh {
            self.cuts.before_item(start, &place);
        } else {
            self.cuts.before_inner_block(start, &place);
        }
    }

    /// Begins a list, which stays with the text directly above it.
    pub(super) fn begin_list(&mut self, start: usize) {
        let line_start = self.first_line_start(start);
        let apart = !self.after_text || cut::is_blank_before(self.part.text, line_start);
        if apart || !self.frames.is_top() {
            self.begin(start, 1);
        } else if !self.is_context(start) {
            let place = Place { frames: &self.frames, row: self.rows.len(), gap: false };
            self.cuts.before_block(start, 1, &place);
        }
    }

    /// From here on rows are drawn, so that what comes next may stand apart from them.
    fn resume(&mut self) {
        if !self.started {
            self.started = true;
            self.frames.enter_all();
        }
    }

    /// A block that is not text has ended.
    pub(super) fn end_block(&mut self, end: usize) {
        self.after_text = false;
        if !self.is_context(end.saturating_sub(1)) {
            self.resume();
        }
        if self.frames.is_top() {
            self.cuts.end_block(end);
        }
    }

    /// Draws a paragraph or a heading.
    pub(super) fn text(&mut self, flat: &Flat, source: Range<usize>) {
        if self.is_context(source.start) && flat.is_empty() {
            return;
        }
        self.resume();
        let first = self.rows.len();
        let rows = self.draw(flat);
        if self.frames.is_top() {
            self.after_text = true;
            self.cuts.end_block(source.end);
        }
        if !self.cuts.is_open(source.end) {
            return;
        }
        // Before the last row, or before an earlier one that no emphasis reaches.
        let later = rows.iter().enumerate().skip(1);
        let plain = later.clone().rev().find(|(_, row)| flat.is_plain_at(row.start));
        if let Some((index, row)) = plain.or(later.last()) {
            let place = Place { frames: &self.frames, row: first + index, gap: false };
            self.cuts.in_text(flat.source_at(row.start), &place);
        }
    }

    /// Draws a text and says which part of it each row took.
    pub(super) fn draw(&mut self, flat: &Flat) -> Vec<Range<usize>> {
        let cols = self.frames.text_cols();
        let ranges = flat.wrap(cols);
        for range in &ranges {
            let mut row = self.frames.begin_row();
            flat.draw(range.clone(), cols, &mut row);
            self.push_row(row, flat.source_of(range), flat.is_continuation(range));
        }
        ranges
    }

    pub(super) fn push_row(&mut self, row: RowBuilder, source: Range<usize>, continued: bool) {
        let place = |at: usize| self.part.base + at.saturating_sub(self.part.skip);
        let continued = continued || std::mem::take(&mut self.mid_line);
        self.rows.push(row.finish(place(source.start)..place(source.end), continued));
    }

    /// Draws a row of our own.
    pub(super) fn draw_mark(&mut self, text: &str, style: Style, source: Range<usize>) {
        let mut flat = Flat::new(Policy::Reading, source.start);
        flat.push_own(text, source, style);
        self.draw(&flat);
    }

    /// Markers that had no room stand on a row of their own before a block that is not text.
    pub(super) fn draw_loose_markers(&mut self, at: usize) {
        let loose = self.frames.take_loose();
        if !loose.is_empty() && !self.is_context(at) {
            self.draw_mark(&loose, Style::from(Role::ListMark), at..at);
        }
    }

    /// Draws the marker of an item in which nothing was drawn.
    pub(super) fn draw_empty_item(&mut self, at: usize) {
        if self.frames.has_marker() {
            let loose = self.frames.take_loose();
            self.draw_mark(&loose, Style::from(Role::ListMark), at..at);
        }
    }
}
