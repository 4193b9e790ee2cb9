//! Text that is being typed: a wrapper around the edit model of `tui-textarea` that moves and
//! deletes by grapheme cluster and by word, and keeps long pastes as chips.
//!
//! Everything that a person types goes through here: the composer, filters, titles, reasons,
//! answers. It knows no keys; `update` calls its verbs.

pub mod chips;
pub mod expand;
mod past;
pub mod rows;
mod words;

use std::fmt;
use std::ops::Range;

use tui_textarea::{CursorMove, TextArea};

use crate::app::command::Draft;
use crate::tui::action::EditAction;
use chips::Chips;
use expand::Expanded;
use past::Past;
use rows::Rows;

/// As many bytes are edited character by character.
const TEXT_BYTES_MAX: usize = 20_000;
/// Nobody types more in one piece, nor commits more from an input method.
const PIECE_BYTES_MAX: usize = 200;

/// How a text may look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shape {
    /// Many lines; long pastes become chips.
    #[default]
    Page,
    /// One line; line ends and tabs become spaces.
    Line,
}

/// What an edit did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edited {
    /// The text is another.
    Changed,
    /// Only the caret moved, or nothing happened.
    Kept,
}

/// A text with a caret, its pasted blocks, and its past.
#[derive(Clone)]
pub struct Editor {
    area: Box<TextArea<'static>>,
    shape: Shape,
    chips: Chips,
    /// What was last cut, for [`EditAction::Yank`].
    cut: String,
    past: Past,
    /// The column that moving up and down keeps, in cells.
    column: Option<usize>,
}

impl Editor {
    /// An empty text.
    #[must_use]
    pub fn new(shape: Shape) -> Self {
        let mut area = Box::new(TextArea::default());
        area.set_max_histories(past::EDITS_MAX);
        let (cut, past) = (String::new(), Past::default());
        Self { area, shape, chips: Chips::default(), cut, past, column: None }
    }

    /// A text of one or more lines, with the caret at its end.
    #[must_use]
    pub fn with_text(shape: Shape, text: &str) -> Self {
        let mut editor = Self::new(shape);
        let text = editor.cleaned(text);
        let text = if chips::is_too_long(&text) {
            editor.chips.hold(&text)
        } else {
            editor.chips.absorb(&text)
        };
        editor.begin_with(&text);
        editor
    }

    /// What was kept as a draft.
    #[must_use]
    pub fn with_draft(shape: Shape, draft: &Draft) -> Self {
        let mut editor = Self::new(shape);
        let text = editor.cleaned(&draft.text);
        let text = editor.chips.restore(&text, &draft.pastes);
        editor.begin_with(&text);
        editor.place(draft.caret);
        editor
    }

    /// Whether there is nothing in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.area.is_empty()
    }

    /// Whether there is nothing in it that anybody could see.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        self.area.lines().iter().all(|line| line.trim().is_empty())
    }

    /// The text with every pasted block written out.
    #[must_use]
    pub fn text(&self) -> String {
        self.chips.resolve(&self.raw())
    }

    /// The text with one private-use character for each pasted block; [`Editor::caret`] counts in
    /// its bytes.
    #[must_use]
    pub fn raw(&self) -> String {
        self.area.lines().join("\n")
    }

    /// Where the caret stands, in bytes of [`Editor::raw`].
    #[must_use]
    pub fn caret(&self) -> usize {
        let cursor = self.area.cursor();
        let lines = self.area.lines();
        let before: usize = lines.iter().take(cursor.0).map(|line| line.len() + 1).sum();
        let line = lines.get(cursor.0).map_or("", String::as_str);
        before + line.char_indices().nth(cursor.1).map_or(line.len(), |(at, _)| at)
    }

    /// As a draft is kept.
    #[must_use]
    pub fn draft(&self) -> Draft {
        let text = self.raw();
        let pastes = self.chips.held_in(&text).map(str::to_owned).collect();
        Draft { text, caret: self.caret(), pastes }
    }

    /// The rows in which it is drawn, `cols` columns wide. The caret may stand right behind the last
    /// column of a row.
    #[must_use]
    pub fn rows(&self, cols: usize) -> Rows {
        Rows::of(&self.raw(), self.caret(), &self.chips, cols)
    }

    /// Inserts text that was typed or committed by an input method, as one step. A long one was
    /// pasted, whatever the terminal says.
    pub fn insert(&mut self, text: &str) -> Edited {
        let text = self.cleaned(text);
        let text = self.in_place(&text);
        self.insert_raw(&text)
    }

    /// Inserts text that was pasted, as one step; a long one as a chip.
    pub fn paste(&mut self, text: &str) -> Edited {
        let text = self.cleaned(text);
        let text = self.in_place(&text);
        self.past.pause();
        let edited = self.insert_raw(&text);
        self.past.pause();
        edited
    }

    /// Inserts what was kept as a draft behind everything else, as one step.
    pub fn append(&mut self, draft: &Draft) {
        let text = self.cleaned(&draft.text);
        let text = self.chips.restore(&text, &draft.pastes);
        self.move_to(usize::MAX);
        self.insert_raw(&text);
        self.past.pause();
    }

    /// Takes everything out, as one step that can be undone.
    pub fn clear(&mut self) -> Edited {
        let all = 0..self.raw().len();
        self.delete(all)
    }

    /// Takes a part out, in bytes of [`Editor::raw`], as one step.
    pub fn delete(&mut self, range: Range<usize>) -> Edited {
        self.column = None;
        self.past.pause();
        let raw = self.raw();
        let gone = raw.get(range.clone()).unwrap_or_default().chars().count();
        if gone == 0 {
            return Edited::Kept;
        }
        self.place(range.start);
        self.area.delete_str(gone);
        self.past.did();
        Edited::Changed
    }

    /// Moves the caret to a byte of [`Editor::raw`], or to the start of the cluster there.
    pub fn move_to(&mut self, at: usize) {
        self.column = None;
        self.past.pause();
        self.place(words::floor(&self.raw(), at));
    }

    /// Does what an action says, in a text drawn `cols` columns wide.
    pub fn edit(&mut self, action: EditAction, cols: usize) -> Edited {
        match action {
            EditAction::LineUp => {
                self.move_by_row(RowMove::Up, cols);
                Edited::Kept
            }
            EditAction::LineDown => {
                self.move_by_row(RowMove::Down, cols);
                Edited::Kept
            }
            EditAction::ExpandPaste => match self.expand() {
                Expanded::Written => Edited::Changed,
                Expanded::TooLong | Expanded::NoBlock => Edited::Kept,
            },
            EditAction::Undo => self.undo(),
            EditAction::Redo => self.redo(),
            EditAction::Yank => {
                let cut = self.cut.clone();
                self.past.pause();
                self.insert_raw(&cut)
            }
            EditAction::DeleteBack => self.delete(self.to(words::before)),
            EditAction::DeleteForward => self.delete(self.to(words::after)),
            EditAction::DeleteWordBack => self.cut(self.to(words::word_before)),
            EditAction::DeleteWordForward => self.cut(self.to(words::word_after)),
            EditAction::KillToStart => self.cut(self.to(words::line_start_or_before)),
            EditAction::KillToEnd => self.cut(self.to(words::line_end_or_after)),
            EditAction::CharLeft => self.go(words::before),
            EditAction::CharRight => self.go(words::after),
            EditAction::WordLeft => self.go(words::word_before),
            EditAction::WordRight => self.go(words::word_after),
            EditAction::LineStart => self.go(words::line_start),
            EditAction::LineEnd => self.go(words::line_end),
            EditAction::TextStart => self.go(|_, _| 0),
            EditAction::TextEnd => self.go(|raw, _| raw.len()),
        }
    }

    /// Moves the caret to the row above or below, if there is one.
    pub fn move_by_row(&mut self, way: RowMove, cols: usize) -> Moved {
        let rows = self.rows(cols);
        let caret = rows.caret();
        let column = self.column.unwrap_or(caret.column);
        let row = match way {
            RowMove::Up => caret.row.checked_sub(1),
            RowMove::Down => Some(caret.row + 1).filter(|row| *row < rows.len()),
        };
        let Some(row) = row else { return Moved::AtTheEdge };
        self.move_to(rows.source_at(row, column));
        self.column = Some(column);
        Moved::ToRow
    }

    fn undo(&mut self) -> Edited {
        self.column = None;
        let Some(edits) = self.past.take_last() else { return Edited::Kept };
        let undone = (0..edits).take_while(|_| self.area.undo()).count();
        self.past.undid(undone);
        Edited::Changed
    }

    fn redo(&mut self) -> Edited {
        self.column = None;
        let Some(edits) = self.past.take_next() else { return Edited::Kept };
        let redone = (0..edits).take_while(|_| self.area.redo()).count();
        self.past.redid(redone);
        Edited::Changed
    }

    /// From the caret to where `find` leads, in order.
    fn to(&self, find: fn(&str, usize) -> usize) -> Range<usize> {
        let caret = self.caret();
        let end = find(&self.raw(), caret);
        caret.min(end)..caret.max(end)
    }

    fn go(&mut self, find: fn(&str, usize) -> usize) -> Edited {
        let at = find(&self.raw(), self.caret());
        self.move_to(at);
        Edited::Kept
    }

    fn cut(&mut self, range: Range<usize>) -> Edited {
        if let Some(cut) = self.raw().get(range.clone()).filter(|cut| !cut.is_empty()) {
            cut.clone_into(&mut self.cut);
        }
        self.delete(range)
    }

    fn insert_raw(&mut self, text: &str) -> Edited {
        self.column = None;
        if text.is_empty() {
            return Edited::Kept;
        }
        self.area.insert_str(text);
        self.past.typed(text);
        Edited::Changed
    }

    /// What stands in the text for a piece of it: the piece, or a chip. Where the text is long already
    /// every further piece that no hand types at once is one, so that a key stays quick.
    fn in_place(&mut self, piece: &str) -> String {
        let is_full = || self.area.lines().iter().map(String::len).sum::<usize>() > TEXT_BYTES_MAX;
        let is_long = chips::is_long(piece) || (piece.len() > PIECE_BYTES_MAX && is_full());
        match self.shape {
            Shape::Page if is_long => self.chips.hold(piece),
            Shape::Page | Shape::Line => self.chips.absorb(piece),
        }
    }

    /// What may not stand in a text is taken out: controls but line ends and tabs, and these too in
    /// a single line.
    fn cleaned(&self, text: &str) -> String {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let kept = text.chars().filter(|c| matches!(c, '\n' | '\t') || !c.is_control());
        match self.shape {
            Shape::Page => kept.collect(),
            Shape::Line => kept.map(|c| if matches!(c, '\n' | '\t') { ' ' } else { c }).collect(),
        }
    }

    /// A text without a past.
    fn begin_with(&mut self, raw: &str) {
        let mut area = Box::new(TextArea::from(raw.split('\n')));
        area.set_max_histories(past::EDITS_MAX);
        self.area = area;
        self.place(raw.len());
    }

    fn place(&mut self, at: usize) {
        let (mut row, mut rest) = (0, at);
        for line in self.area.lines() {
            if rest <= line.len() || row + 1 == self.area.lines().len() {
                break;
            }
            rest -= line.len() + 1;
            row += 1;
        }
        let line = self.area.lines().get(row).map_or("", String::as_str);
        let column = line.char_indices().take_while(|(start, _)| *start < rest).count();
        // The model jumps to 16 bits only; what lies beyond is walked to.
        let near = |place: usize| u16::try_from(place).unwrap_or(u16::MAX);
        self.area.move_cursor(CursorMove::Jump(near(row), near(column)));
        for _ in usize::from(near(row))..row {
            self.area.move_cursor(CursorMove::Down);
        }
        for _ in usize::from(near(column))..column {
            self.area.move_cursor(CursorMove::Forward);
        }
    }
}

/// Which row to move to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowMove {
    /// The one above.
    Up,
    /// The one below.
    Down,
}

/// Whether there was such a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moved {
    /// The caret stands in it.
    ToRow,
    /// There was none; the caret stands where it stood.
    AtTheEdge,
}

impl Default for Editor {
    fn default() -> Self {
        Self::new(Shape::default())
    }
}

impl fmt::Debug for Editor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Editor").field(&self.draft()).finish()
    }
}

/// Two texts are one if they read the same and have the caret in the same place, whatever their past.
impl PartialEq for Editor {
    fn eq(&self, other: &Self) -> bool {
        self.shape == other.shape && self.draft() == other.draft()
    }
}

#[cfg(test)]
mod tests;
