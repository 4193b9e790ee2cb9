//! Blocks of code: a row with the language, and the lines with their colours, broken where they are
//! too long.

use std::ops::Range;

use super::super::code::{self, CodeState};
use super::super::flat::Flat;
use super::super::{Mods, Role, Style};
use super::canvas::Canvas;
use super::cut::{Opening, Place, Resume};
use crate::base::sanitize::Policy;

/// Stands before a line, and before the rest of a line that had to be broken.
const INDENT: &str = "  ";
const CONTINUATION: &str = "↳ ";
const INDENT_COLS: usize = 2;
/// Where less is left for code, it is not indented.
const CODE_COLS_MIN: usize = 8;

/// A block of code in the making.
pub(super) struct CodeBlock {
    fenced: bool,
    /// Where it starts.
    opening: usize,
    highlighting: Option<CodeState>,
    /// The line that is not complete, and where it stands.
    line: String,
    source: Range<usize>,
    /// Whether the line goes on with one that was cut.
    mid_line: bool,
    /// The place after the last complete line, and the rows before it.
    complete: Option<(usize, usize)>,
}

impl CodeBlock {
    /// Begins a block; `info` is what follows its fence, if it has one.
    pub(super) fn open(canvas: &mut Canvas<'_>, info: Option<&str>, start: usize) -> Self {
        let part = canvas.part;
        let resumed = start < part.skip;
        let language = code::language(info.unwrap_or_default());
        let highlighting = match &part.resume.code {
            Some(state) if resumed => Some(state.clone()),
            _ => part.highlighter.begin(language),
        };
        if !resumed && !language.is_empty() {
            let mut tag = Flat::new(Policy::Reading, start);
            tag.push(language, start..start, Style::from(Role::Muted).with(Mods::ITALIC));
            draw(canvas, &tag, false);
        }
        Self {
            fenced: info.is_some(),
            opening: start,
            highlighting,
            line: String::new(),
            source: start..start,
            mid_line: resumed && part.resume.mid_line,
            complete: None,
        }
    }

    /// Takes what stands at `source`, which may be a part of a line or several.
    pub(super) fn text(&mut self, canvas: &mut Canvas<'_>, text: &str, source: Range<usize>) {
        let in_place = text.len() == source.len();
        let mut at = source.start;
        for piece in text.split_inclusive('\n') {
            let end = if in_place { at + piece.len() } else { source.end };
            if self.line.is_empty() {
                self.source = at..at;
            }
            self.line.push_str(piece);
            self.source.end = end;
            at = end.min(source.end);
            if piece.ends_with('\n') {
                self.draw_line(canvas);
                self.complete = Some((end, canvas.len()));
            }
        }
    }

    /// Draws the line and goes on with an empty one. Says where its last row begins, if that is not
    /// its first.
    fn draw_line(&mut self, canvas: &mut Canvas<'_>) -> Option<usize> {
        let line = std::mem::take(&mut self.line);
        let plain = vec![(line.len(), Role::Code)];
        let mid_line = std::mem::take(&mut self.mid_line);
        let runs = match &mut self.highlighting {
            Some(state) if !mid_line => canvas.part.highlighter.line(state, &line),
            _ => plain,
        };
        let mut flat = Flat::new(Policy::Reading, self.source.start);
        let mut start = 0;
        for (end, role) in runs {
            let piece = line.get(start..end).unwrap_or_default();
            let place = |at: usize| self.source.end.min(self.source.start + at);
            flat.push(piece, place(start)..place(end), Style::from(role));
            start = end;
        }
        let flat = flat.without_last_line_end();
        let rows = draw(canvas, &flat, mid_line);
        rows.last().filter(|row| row.start > 0).map(|row| flat.source_at(row.start))
    }

    /// Draws the line that is still open and notes where the block could be cut.
    pub(super) fn close(mut self, canvas: &mut Canvas<'_>, end: usize) {
        let state = self.highlighting.clone();
        let broken_at = if self.line.is_empty() { None } else { self.draw_line(canvas) };
        if !canvas.cuts.is_open(end) {
            return;
        }
        let frames = &canvas.frames;
        if let Some((at, row)) = self.complete {
            let place = Place { frames, row, gap: false };
            if self.fenced {
                canvas.cuts.in_code(at, self.opening, state.clone(), &place);
            } else {
                let opening = Opening { at: self.opening, lines: 1 };
                canvas.cuts.in_block(at, opening, Resume::default(), &place);
            }
        }
        if let Some(at) = broken_at {
            let place = Place { frames, row: canvas.len().saturating_sub(1), gap: false };
            canvas.cuts.in_code_line(at, self.opening, state, &place);
        }
    }
}

/// Draws a line of code, or the rest of one.
fn draw(canvas: &mut Canvas<'_>, flat: &Flat, rest_of_line: bool) -> Vec<Range<usize>> {
    let room = canvas.frames.text_cols();
    let indented = room >= CODE_COLS_MIN + INDENT_COLS;
    let cols = if indented { room - INDENT_COLS } else { room };
    let rows = flat.wrap(cols);
    for (index, range) in rows.iter().enumerate() {
        let continued = index > 0 || rest_of_line;
        let mut row = canvas.frames.begin_row();
        if indented {
            let before = if continued { CONTINUATION } else { INDENT };
            row.push(before, Style::from(Role::Muted));
        }
        flat.draw(range.clone(), cols, &mut row);
        canvas.push_row(row, flat.source_of(range), continued);
    }
    rows
}
