//! Takes the events of the parser and draws the blocks that they make.

use std::ops::Range;

use pulldown_cmark::{BlockQuoteKind, CodeBlockKind, Event, HeadingLevel, Tag, TagEnd};

use super::super::{Mods, Role, Row, Style};
use super::Part;
use super::canvas::Canvas;
use super::code_block::CodeBlock;
use super::cut::{Cuts, Opening, Place, Resume};
use super::inline::Inline;
use super::table::Table;

/// The layout of one part.
pub(super) struct Layout<'a> {
    canvas: Canvas<'a>,
    inline: Inline,
    leaf: Leaf,
    /// The numbers that open lists go on with, outermost first, until each has begun.
    numbers: std::vec::IntoIter<Option<u64>>,
}

/// The block that takes text.
enum Leaf {
    None,
    Text { source: Range<usize> },
    Html { start: usize },
    Code(CodeBlock),
    Table(Table),
}

impl<'a> Layout<'a> {
    pub(super) fn new(part: &'a Part<'a>) -> Self {
        Self {
            canvas: Canvas::new(part),
            inline: Inline::begin(0, Style::default()),
            leaf: Leaf::None,
            numbers: part.resume.numbers.clone().into_iter(),
        }
    }

    pub(super) fn finish(mut self) -> (Vec<Row>, Cuts) {
        self.close_text();
        self.canvas.finish()
    }

    pub(super) fn take(&mut self, event: Event<'_>, range: Range<usize>) {
        match event {
            Event::Start(tag) => self.start(tag, range),
            Event::End(tag) => self.end(tag, &range),
            Event::Text(text)
            | Event::InlineMath(text)
            | Event::DisplayMath(text)
            | Event::Html(text)
            | Event::FootnoteReference(text) => self.text(&text, range),
            Event::Code(code) => self.inline(range, |inline, range| inline.push_code(&code, range)),
            Event::InlineHtml(text) if is_break(&text) => self.inline(range, Inline::break_line),
            Event::InlineHtml(text) => {
                self.inline(range, |inline, range| inline.push_as(Role::Muted, &text, range));
            }
            Event::SoftBreak | Event::HardBreak => self.inline(range, Inline::break_line),
            Event::TaskListMarker(done) => {
                let mark = if done { "[x] " } else { "[ ] " };
                self.inline(range, |inline, range| inline.push_as(Role::ListMark, mark, range));
            }
            Event::Rule => self.rule(&range),
        }
    }

    fn start(&mut self, tag: Tag<'_>, range: Range<usize>) {
        match tag {
            Tag::Paragraph => self.open_text(range, Style::default()),
            Tag::Heading { level, .. } => self.heading(level, range),
            Tag::BlockQuote(kind) => self.quote(kind, range.start),
            Tag::List(first) => self.list(first, range.start),
            Tag::Item => self.item(range.start),
            Tag::CodeBlock(kind) => self.code(&kind, range.start),
            Tag::HtmlBlock => {
                self.open_block(range.start, 1);
                self.inline = Inline::begin(range.start, Style::from(Role::Muted));
                self.leaf = Leaf::Html { start: range.start };
            }
            Tag::Table(alignments) => {
                // Only the line under the head makes it a table.
                self.open_block(range.start, 2);
                self.leaf = Leaf::Table(Table::new(range.start, alignments));
            }
            Tag::TableCell => {
                let head = matches!(&self.leaf, Leaf::Table(table) if table.is_in_head());
                let style = Style::default();
                let style = if head { style.or_role(Role::Strong).with(Mods::BOLD) } else { style };
                self.inline = Inline::begin(range.start, style);
            }
            Tag::Emphasis
            | Tag::Strong
            | Tag::Strikethrough
            | Tag::Superscript
            | Tag::Subscript
            | Tag::Link { .. }
            | Tag::Image { .. } => {
                let source = range.clone();
                self.inline(range, |inline, _| inline.start(tag, &source));
            }
            // The first two are known by their cells and their ends, the others are not asked for.
            Tag::TableHead
            | Tag::TableRow
            | Tag::FootnoteDefinition(_)
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::MetadataBlock(_) => {}
        }
    }

    fn end(&mut self, tag: TagEnd, range: &Range<usize>) {
        match tag {
            TagEnd::Paragraph | TagEnd::Heading(_) => {
                self.reach(range.end);
                self.close_text();
            }
            TagEnd::BlockQuote(_) | TagEnd::List(_) => {
                self.close_text();
                self.canvas.frames.pop();
                self.canvas.end_block(range.end);
            }
            TagEnd::Item => {
                self.close_text();
                self.canvas.draw_empty_item(range.start);
                self.canvas.frames.pop();
            }
            TagEnd::CodeBlock | TagEnd::HtmlBlock | TagEnd::Table => self.close_block(range.end),
            TagEnd::TableCell | TagEnd::TableHead | TagEnd::TableRow => {
                if let Leaf::Table(table) = &mut self.leaf {
                    match tag {
                        TagEnd::TableCell => table.push_cell(self.inline.take()),
                        TagEnd::TableHead => table.end_head(),
                        _ => table.end_row(range.start),
                    }
                }
            }
            TagEnd::Emphasis
            | TagEnd::Strong
            | TagEnd::Strikethrough
            | TagEnd::Superscript
            | TagEnd::Subscript
            | TagEnd::Link
            | TagEnd::Image => self.inline.end(tag, range),
            TagEnd::FootnoteDefinition
            | TagEnd::DefinitionList
            | TagEnd::DefinitionListTitle
            | TagEnd::DefinitionListDefinition
            | TagEnd::MetadataBlock(_) => {}
        }
    }

    // Text

    fn heading(&mut self, level: HeadingLevel, range: Range<usize>) {
        let at = range.start;
        self.open_text(range, Style::from(Role::Heading).with(Mods::BOLD));
        if !self.canvas.is_context(at) {
            let marks = "#".repeat(level as usize);
            self.inline.push_as(Role::Muted, &format!("{marks} "), at..at);
        }
    }

    fn open_text(&mut self, range: Range<usize>, style: Style) {
        self.close_text();
        self.canvas.begin(range.start, 1);
        self.inline = Inline::begin(range.start, style);
        let loose = self.canvas.frames.take_loose();
        self.inline.push_as(Role::ListMark, &loose, range.start..range.start);
        self.leaf = Leaf::Text { source: range.start..range.start };
    }

    /// Text of an item without blank lines comes without a paragraph around it.
    fn inline(&mut self, range: Range<usize>, write: impl FnOnce(&mut Inline, Range<usize>)) {
        let in_context = range.end <= self.canvas.part.skip;
        match &self.leaf {
            Leaf::None if in_context => return,
            Leaf::None => self.open_text(range.clone(), Style::default()),
            Leaf::Text { .. } | Leaf::Html { .. } | Leaf::Code(_) | Leaf::Table(_) => {}
        }
        self.reach(range.end);
        // The head of a table is needed behind the context too.
        if !in_context || matches!(self.leaf, Leaf::Table(_)) {
            write(&mut self.inline, range);
        }
    }

    fn text(&mut self, text: &str, range: Range<usize>) {
        let skip = self.canvas.part.skip;
        match &mut self.leaf {
            Leaf::Code(block) => {
                let (text, range) = after_context(skip, text, range);
                block.text(&mut self.canvas, text, range);
            }
            Leaf::Table(_) => self.inline(range, |inline, range| inline.push(text, range)),
            Leaf::None | Leaf::Text { .. } | Leaf::Html { .. } => {
                self.inline(range, |inline, range| {
                    let (text, range) = after_context(skip, text, range);
                    inline.push(text, range);
                });
            }
        }
    }

    fn reach(&mut self, to: usize) {
        if let Leaf::Text { source } = &mut self.leaf {
            source.end = to.max(source.end);
        }
    }

    /// Draws the open paragraph or heading.
    fn close_text(&mut self) {
        if let Leaf::Text { source } = &mut self.leaf {
            let source = source.clone();
            self.leaf = Leaf::None;
            let flat = self.inline.take();
            self.canvas.text(&flat, source);
        }
    }

    // Containers

    fn quote(&mut self, kind: Option<BlockQuoteKind>, start: usize) {
        self.open_block(start, 1);
        let opening = self.canvas.line_start(start);
        self.canvas.frames.push_quote(opening);
        let (name, role) = match kind {
            None => return,
            Some(BlockQuoteKind::Note) => ("Note", Role::Accent),
            Some(BlockQuoteKind::Tip) => ("Tip", Role::Accent),
            Some(BlockQuoteKind::Important) => ("Important", Role::Accent),
            Some(BlockQuoteKind::Warning) => ("Warning", Role::Warning),
            Some(BlockQuoteKind::Caution) => ("Caution", Role::Warning),
        };
        if !self.canvas.is_context(start) {
            self.canvas.draw_loose_markers(start);
            self.canvas.draw_mark(name, Style::from(role).with(Mods::BOLD), start..start);
        }
    }

    fn list(&mut self, first: Option<u64>, start: usize) {
        self.close_text();
        self.canvas.begin_list(start);
        let number = match self.numbers.next() {
            Some(next) => first.and(next),
            None => first,
        };
        let opening = self.canvas.line_start(start);
        self.canvas.frames.push_list(opening, number);
    }

    fn item(&mut self, start: usize) {
        self.open_block(start, 1);
        let opening = self.canvas.line_start(start);
        self.canvas.frames.push_item(opening);
        if self.canvas.is_context(start) {
            self.canvas.frames.drop_marker();
        }
    }

    // Other blocks

    fn open_block(&mut self, start: usize, lines: usize) {
        self.close_text();
        self.canvas.begin(start, lines);
    }

    fn rule(&mut self, range: &Range<usize>) {
        self.open_block(range.start, 1);
        self.canvas.draw_loose_markers(range.start);
        let line = "─".repeat(self.canvas.frames.text_cols());
        self.canvas.draw_mark(&line, Style::from(Role::Rule), range.clone());
        self.canvas.end_block(range.end);
    }

    fn code(&mut self, kind: &CodeBlockKind<'_>, start: usize) {
        self.open_block(start, 1);
        self.canvas.draw_loose_markers(start);
        let info = match kind {
            CodeBlockKind::Fenced(info) => Some(&**info),
            CodeBlockKind::Indented => None,
        };
        self.leaf = Leaf::Code(CodeBlock::open(&mut self.canvas, info, start));
    }

    fn close_block(&mut self, end: usize) {
        match std::mem::replace(&mut self.leaf, Leaf::None) {
            Leaf::Code(block) => block.close(&mut self.canvas, end),
            Leaf::Html { start } => self.close_html(start, end),
            Leaf::Table(table) => table.close(&mut self.canvas, end),
            Leaf::None | Leaf::Text { .. } => {}
        }
        self.canvas.end_block(end);
    }

    fn close_html(&mut self, start: usize, end: usize) {
        let flat = self.inline.take().without_last_line_end();
        self.canvas.draw_loose_markers(start);
        if self.canvas.is_context(start) && flat.is_empty() {
            return;
        }
        let rows = self.canvas.draw(&flat);
        if self.canvas.cuts.is_open(end)
            && let Some(last) = rows.last().filter(|row| row.start > 0)
        {
            let row = self.canvas.len() - 1;
            let place = Place { frames: &self.canvas.frames, row, gap: false };
            let opening = Opening { at: start, lines: 1 };
            let at = flat.source_at(last.start);
            self.canvas.cuts.in_block(at, opening, Resume::default(), &place);
        }
    }
}

/// The part of a text that does not stand in the context.
fn after_context(skip: usize, text: &str, range: Range<usize>) -> (&str, Range<usize>) {
    if range.start >= skip {
        return (text, range);
    }
    let in_place = text.len() == range.len();
    let rest = if in_place { text.get(skip - range.start..) } else { None };
    (rest.unwrap_or_default(), skip..range.end.max(skip))
}

fn is_break(html: &str) -> bool {
    matches!(html, "<br>" | "<br/>" | "<br />" | "<BR>")
}
