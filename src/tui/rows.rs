//! What an item of the conversation looks like, row by row, at one width. Prompts and overlays are
//! made of the same pieces.

mod call;
pub mod choices;
mod command;
pub mod dialog;
mod end;
pub mod events;
pub mod help;
mod json;
mod message;
pub mod page;
pub mod question;
pub mod raw;
pub mod request;
pub mod typed;
pub mod unsent;

use std::rc::Rc;
use std::sync::Arc;

use jiff::tz::TimeZone;

use crate::base::clock::Timestamp;
use crate::base::sanitize::Policy;
use crate::tui::keymap::Keymap;
use crate::tui::line::{Fade, Line};
use crate::tui::rich::code::Highlighter;
use crate::tui::rich::stream::Flow;
use crate::tui::rich::{Row, markdown, plain};
use crate::tui::rows::raw::Chunk;
use crate::tui::state::Now;
use crate::tui::state::conversation::Form;
use crate::tui::state::folds::Fold;
use crate::tui::state::item::{Body, Growth, Item};
use crate::tui::state::settings::Access;
use crate::tui::theme::Ui;

/// How far what is said stands in from its head.
pub const INDENT: u16 = 2;

/// What an item looks like depends on this, besides the item itself.
#[derive(Clone, Copy, Debug)]
pub struct Look<'a> {
    /// How wide it is.
    pub width: u16,
    /// What changes its rows.
    pub way: Way,
    /// Where the person's clock stands.
    pub zone: &'a TimeZone,
    /// The moment.
    pub now: Now,
    /// The keys, for hints.
    pub keymap: &'a Keymap,
    /// Whether anything may be changed, so that a hint for it is one.
    pub access: Access,
    /// Colours code.
    pub highlighter: &'a Arc<Highlighter>,
}

/// What changes the rows of an item beside its content and its width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Way {
    /// Whether it is folded.
    pub fold: Fold,
    /// How texts are shown.
    pub form: Form,
    /// What stands above it.
    pub lead: Lead,
    /// Whether its turn runs.
    pub runs: bool,
}

/// What stands above an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lead {
    /// Whether a blank row does.
    pub gap: bool,
    /// When what is said here began to be said, if it is the first of its kind.
    pub head: Option<Timestamp>,
}

/// The rows of an item. Pieces that take long to make are shared.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    parts: Vec<Part>,
    len: usize,
    source_len: usize,
    weight: usize,
}

#[derive(Clone, Debug)]
struct Part {
    /// How many rows come before it.
    row: usize,
    /// How much of the source comes before it.
    source: usize,
    content: Content,
}

#[derive(Clone, Debug)]
enum Content {
    /// Rows of our own; each counts as one byte of source.
    Lines(Rc<[Line]>),
    /// Rows of a text.
    Text { rows: Rc<[Row]>, indent: u16, fade: Fade },
    /// Rows of a text that grows; always the last part.
    Flow { flow: Rc<Flow>, indent: u16, fade: Fade },
}

impl Content {
    fn len(&self) -> usize {
        match self {
            Self::Lines(lines) => lines.len(),
            Self::Text { rows, .. } => rows.len(),
            Self::Flow { flow, .. } => flow.rows().len(),
        }
    }

    fn rows(&self) -> &[Row] {
        match self {
            Self::Lines(_) => &[],
            Self::Text { rows, .. } => rows,
            Self::Flow { flow, .. } => flow.rows(),
        }
    }
}

impl Rows {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Rows of our own.
    #[must_use]
    pub fn of_lines(lines: Vec<Line>) -> Self {
        let mut rows = Self::default();
        rows.lines(lines);
        rows
    }

    /// Adds rows of our own.
    pub fn lines(&mut self, lines: impl IntoIterator<Item = Line>) {
        let lines: Rc<[Line]> = lines.into_iter().collect();
        let source_len = lines.len();
        self.add(Content::Lines(lines), source_len);
    }

    /// Adds one row of our own.
    pub fn line(&mut self, line: Line) {
        self.lines([line]);
    }

    /// Adds the rows of a text, `indent` columns further in.
    pub fn text(&mut self, rows: Vec<Row>, indent: u16, fade: Fade) {
        let source_len = rows.last().map_or(0, |row| row.source().end as usize) + 1;
        self.add(Content::Text { rows: rows.into(), indent, fade }, source_len);
    }

    /// Adds the rows of a text that grows, behind which nothing comes.
    pub fn flow(&mut self, flow: Rc<Flow>, indent: u16, fade: Fade) {
        let source_len = flow.text().len() + 1;
        self.add(Content::Flow { flow, indent, fade }, source_len);
    }

    /// Adds what somebody said, in the form that is wanted.
    fn said(&mut self, text: &str, (indent, fade): (u16, Fade), look: &Look<'_>, laid: Laid) {
        let width = look.width.saturating_sub(indent).max(1);
        let rows = match (laid, look.way.form) {
            (Laid::Growing(flow), _) => return self.flow(flow, indent, fade),
            (Laid::Chunks(chunks), _) => {
                for Chunk { rows, source_len } in chunks {
                    self.add(Content::Text { rows, indent, fade }, source_len);
                }
                return;
            }
            (Laid::Whole(rows), _) => rows,
            (Laid::Not, Form::Rendered) => markdown::rows(text, width, look.highlighter),
            (Laid::Not, Form::Raw) => plain::rows(text, width, Policy::Reading),
        };
        self.text(rows, indent, fade);
    }

    fn add(&mut self, content: Content, source_len: usize) {
        /// A row, its text and its marks, beside the bytes of the text.
        const ROW_BYTES: usize = 96;
        let len = content.len();
        // Text and source are about as long.
        self.weight += source_len + len * ROW_BYTES;
        self.parts.push(Part { row: self.len, source: self.source_len, content });
        self.len += len;
        self.source_len += source_len;
    }

    /// A row, from 0.
    #[must_use]
    pub fn get(&self, at: usize) -> Option<Line> {
        let part = self.part_of(at)?;
        let row = at - part.row;
        match &part.content {
            Content::Lines(lines) => lines.get(row).cloned(),
            Content::Text { rows, indent, fade } => {
                rows.get(row).map(|row| drawn(row, *indent, *fade))
            }
            Content::Flow { flow, indent, fade } => {
                flow.rows().get(row).map(|row| drawn(row, *indent, *fade))
            }
        }
    }

    /// As many rows as there are of `count`, from the row `first` on.
    pub fn range(&self, first: usize, count: usize) -> impl Iterator<Item = Line> {
        (first..first.saturating_add(count).min(self.len)).filter_map(|at| self.get(at))
    }

    /// Where a row begins in the source: in the texts of the item and the rows of our own between
    /// them, each of which counts as one byte. The same at every width.
    #[must_use]
    pub fn source_of(&self, at: usize) -> usize {
        let Some(part) = self.part_of(at) else { return 0 };
        let row = at - part.row;
        part.source + part.content.rows().get(row).map_or(row, |row| row.source().start as usize)
    }

    /// The row that shows a byte of the source: of those that begin there, or else last before it,
    /// the first that shows anything.
    #[must_use]
    pub fn row_at(&self, source: usize) -> usize {
        let after = self.parts.partition_point(|part| part.source <= source);
        let parts = self.parts.get(..after).unwrap_or_default();
        // A part without rows stands nowhere.
        let Some(part) = parts.iter().rev().find(|part| part.content.len() > 0) else { return 0 };
        let within = source - part.source;
        if let Content::Lines(lines) = &part.content {
            return part.row + within.min(lines.len().saturating_sub(1));
        }
        let rows = part.content.rows();
        let starts = |row: &Row| row.source().start as usize;
        let behind = rows.partition_point(|row| starts(row) <= within);
        let found = behind.checked_sub(1).and_then(|last| rows.get(last)).map_or(0, starts);
        let first = rows.partition_point(|row| starts(row) < found);
        let alike = rows.get(first..behind).unwrap_or_default();
        part.row + first + alike.iter().position(|row| !row.source().is_empty()).unwrap_or(0)
    }

    /// About how many bytes it takes to keep these.
    #[must_use]
    pub fn weight(&self) -> usize {
        self.weight
    }

    fn part_of(&self, at: usize) -> Option<&Part> {
        if at >= self.len {
            return None;
        }
        let after = self.parts.partition_point(|part| part.row <= at);
        let parts = self.parts.get(..after).unwrap_or_default();
        parts.iter().rev().find(|part| part.content.len() > 0)
    }
}

fn drawn(row: &Row, indent: u16, fade: Fade) -> Line {
    Line::new().with_space(usize::from(indent)).with_row(row, fade)
}

/// What is laid out of the text of an item already.
#[derive(Debug)]
pub enum Laid {
    /// Nothing.
    Not,
    /// All of it so far; it grows.
    Growing(Rc<Flow>),
    /// All of it so far, as it came.
    Chunks(Vec<Chunk>),
    /// All of it.
    Whole(Vec<Row>),
}

/// The rows of an item.
#[must_use]
pub fn of(item: &Item<'_>, look: &Look<'_>, laid: Laid) -> Rows {
    let mut rows = Rows::default();
    lead(&mut rows, item, look);
    match &item.body {
        Body::Loading => rows.line(Line::of("Loading…", Ui::Muted).indented(INDENT.into())),
        Body::Damaged(why) => message::damaged(&mut rows, why, look),
        Body::Message { message, .. } => message::user(&mut rows, message, look),
        Body::Text { text, growth } => {
            rows.said(text, (INDENT, Fade::Front), look, laid);
            message::cut_off(&mut rows, *growth, look);
        }
        Body::Reasoning { text, growth } => {
            message::reasoning(&mut rows, text, *growth, look);
            if look.way.fold == Fold::Open {
                rows.said(text, (text_indent(item), Fade::Back), look, laid);
                message::cut_off(&mut rows, *growth, look);
            }
        }
        Body::Call(body) => call::rows(&mut rows, body, look),
        Body::Failure { error, came } => message::failure(&mut rows, error, *came, look),
        Body::End(body) => end::rows(&mut rows, body, look),
        Body::Divider(summary) => {
            message::divider(&mut rows, look);
            if look.way.fold == Fold::Open {
                rows.said(summary, (2 * INDENT, Fade::Back), look, laid);
            }
        }
    }
    rows
}

/// Whether a text of this item is to be laid out as it grows.
#[must_use]
pub fn growing_text<'a>(item: &Item<'a>, way: &Way) -> Option<&'a str> {
    match item.body {
        Body::Text { text, growth: Growth::Growing } => Some(text),
        Body::Reasoning { text, growth: Growth::Growing } if way.fold == Fold::Open => Some(text),
        _ => None,
    }
}

/// How far in the text of an item that grows stands.
#[must_use]
pub fn text_indent(item: &Item<'_>) -> u16 {
    match item.body {
        Body::Reasoning { .. } => 2 * INDENT,
        _ => INDENT,
    }
}

/// What stands above an item.
fn lead(rows: &mut Rows, item: &Item<'_>, look: &Look<'_>) {
    if look.way.lead.gap {
        rows.line(Line::new());
    }
    let Some(at) = look.way.lead.head else { return };
    let (name, part) = match item.body {
        Body::Message { .. } => ("You", Ui::You),
        _ => ("Assistant", Ui::Assistant),
    };
    let time = crate::tui::words::clock(at, look.zone);
    rows.line(Line::of(name, part).with(" · ", Ui::Muted).with(&time, Ui::Muted).cut(look.cols(0)));
}

/// A text that is too long to be laid out whole, in three parts, each of whole lines where they are
/// not too long themselves.
struct Ends<'a> {
    head: &'a str,
    middle: &'a str,
    tail: &'a str,
}

impl<'a> Ends<'a> {
    /// The parts of a text of more than twice `end_bytes`, with about so many in its head and its tail.
    fn of(text: &'a str, end_bytes: usize) -> Option<Self> {
        if text.len() <= 2 * end_bytes {
            return None;
        }
        let (head, rest) = text.split_at(line_end_before(text, end_bytes));
        let (middle, tail) = rest.split_at(line_end_before(rest, rest.len() - end_bytes));
        Some(Self { head, middle, tail })
    }
}

/// The end of the last line before a byte, or where there is none a byte between two characters.
fn line_end_before(text: &str, at: usize) -> usize {
    let mut end = at.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).and_then(|before| before.rfind('\n')).map_or(end, |line| line + 1)
}

impl Look<'_> {
    /// The columns that are left behind an indent; at least one.
    #[must_use]
    pub fn cols(&self, indent: u16) -> usize {
        usize::from(self.width.saturating_sub(indent).max(1))
    }
}

#[cfg(test)]
mod tests;
