//! Markdown that is still being written: what cannot change any more is laid out once, and each
//! piece of new text costs what stands open, which is bounded, not what came before.
//!
//! Blocks at top level, items of top-level lists and lines of top-level code settle exactly. A block
//! that grows beyond a few KiB is cut inside: what comes after is laid out behind the lines
//! that opened it, and may differ a little (the columns of a table stay as they are, emphasis ends)
//! until the block has ended and is laid out once as a whole. A link finds a target that is defined
//! further down only at the end. [`Flow::finish`] gives the rows of the whole text in every case.

use std::sync::Arc;

use super::Row;
use super::code::Highlighter;
use super::markdown::{self, Cut, Definitions, Page, Part, Resume};

/// As much of the end of a text is laid out again with every piece: about a screen, a few
/// milliseconds if all of it is code.
const OPEN_BYTES_MAX: usize = 4 * 1024;
/// Text that offers no place to cut (link definitions, line after line) is cut anywhere beyond this.
const UNCUT_BYTES_MAX: usize = 4 * OPEN_BYTES_MAX;
/// A longer last line is no marker in the making.
const MARKER_BYTES_MAX: usize = 80;

/// A growing text and its rows at one width. Another width needs another flow, fed with
/// [`Flow::text`].
#[derive(Debug)]
pub struct Flow {
    width: u16,
    highlighter: Arc<Highlighter>,
    text: String,
    rows: Vec<Row>,
    /// The rows before the open end.
    settled: usize,
    /// Where the open end begins, and how to go on there.
    open: usize,
    resume: Resume,
    block: Block,
    definitions: Definitions,
    /// Whether the rows are those of the whole text.
    is_exact: bool,
    #[cfg(test)]
    parsed_bytes: std::cell::Cell<usize>,
}

/// The top-level block, or item of a top-level list, that holds the open end.
#[derive(Debug, Default)]
struct Block {
    at: usize,
    row: usize,
    resume: Resume,
    /// Whether it was cut inside.
    is_cut: bool,
}

impl Flow {
    /// An empty text.
    #[must_use]
    pub fn new(width: u16, highlighter: Arc<Highlighter>) -> Self {
        Self {
            width,
            highlighter,
            text: String::new(),
            rows: Vec::new(),
            settled: 0,
            open: 0,
            resume: Resume::default(),
            block: Block::default(),
            definitions: Definitions::default(),
            is_exact: true,
            #[cfg(test)]
            parsed_bytes: std::cell::Cell::default(),
        }
    }

    /// All that has been written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The rows so far. A last line that may yet become the marker of a block is not among them.
    #[must_use]
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Adds text. Whoever gets many small pieces between two frames adds them together.
    pub fn push(&mut self, more: &str) {
        self.text.push_str(more);
        let end = self.shown_end();
        let page = self.lay_open(end);
        self.settle(page);
        if self.text.len() - self.open > UNCUT_BYTES_MAX {
            self.cut_anywhere();
        }
    }

    /// The rows of the whole text, as [`markdown::rows`] gives them.
    #[must_use]
    pub fn finish(mut self) -> Vec<Row> {
        if self.shown_end() < self.text.len() {
            let page = self.lay_open(self.text.len());
            self.rows.truncate(self.settled);
            self.rows.extend(page.rows);
            self.is_exact &= page.definitions.is_empty();
        }
        if self.is_exact {
            self.rows
        } else {
            markdown::rows(&self.text, self.width, &self.highlighter)
        }
    }

    /// Where the text ends that is drawn: a last line of marks only (`-`, `|--`) is held back, or the
    /// paragraph above would be a heading for a moment.
    fn shown_end(&self) -> usize {
        let open = self.text.get(self.open..).unwrap_or_default();
        let line = open.rsplit('\n').next().unwrap_or_default();
        let marks = |c| "-=*+_#`~>|: \t".contains(c);
        let held = line.len() <= MARKER_BYTES_MAX && line.chars().all(marks);
        self.text.len() - if held { line.len() } else { 0 }
    }

    fn lay_open(&self, end: usize) -> Page {
        let text = self.text.get(self.open..end).unwrap_or_default();
        self.lay(text, self.open, &self.resume)
    }

    fn lay(&self, text: &str, base: usize, resume: &Resume) -> Page {
        let context = &resume.context;
        #[cfg(test)]
        self.parsed_bytes.update(|bytes| bytes + context.len() + text.len());
        markdown::lay(&Part {
            text: &format!("{context}{text}"),
            skip: context.len(),
            base,
            width: self.width,
            highlighter: &self.highlighter,
            resume,
            definitions: &self.definitions,
        })
    }

    /// Takes the rows of the open end, and shortens it.
    fn settle(&mut self, page: Page) {
        self.rows.truncate(self.settled);
        self.rows.extend(page.rows);
        self.is_exact &= page.definitions.is_empty();
        let origin = Origin {
            open: self.open,
            context: self.resume.context.len(),
            settled: self.settled,
            rows: self.rows.len(),
        };
        if let Some(boundary) = page.cuts.boundary {
            let gap_rows = usize::from(boundary.gap);
            self.cut(boundary, &origin);
            self.end_block(gap_rows);
        }
        if let Some(line) = page.cuts.line {
            self.cut(line, &origin);
        }
        if let Some(inside) = page.cuts.inexact
            && self.text.len() - self.open > OPEN_BYTES_MAX
            && origin.open + inside.at > self.open + origin.context
        {
            self.cut(inside, &origin);
            self.block.is_cut = true;
            self.is_exact = false;
        }
        let settled = origin.context + self.open - origin.open;
        for (label, target, end) in page.definitions {
            if end <= settled {
                self.definitions.entry(label).or_insert(target);
            }
        }
    }

    /// Moves the open end to a cut of the page that was laid out at `origin`.
    fn cut(&mut self, cut: Cut, origin: &Origin) {
        self.open = origin.open + cut.at - origin.context;
        // A block that was laid out anew meanwhile has moved all rows after it.
        self.settled = (origin.settled + cut.row + self.rows.len()).saturating_sub(origin.rows);
        self.resume = cut.resume;
    }

    /// The open end begins with a new block: lays out the one before it as a whole if it was cut.
    fn end_block(&mut self, gap_rows: usize) {
        if self.block.is_cut {
            let text = self.text.get(self.block.at..self.open).unwrap_or_default();
            let page = self.lay(text, self.block.at, &self.block.resume);
            let end = self.settled - gap_rows;
            let start = self.block.row.min(end);
            let count = page.rows.len();
            self.rows.splice(start..end, page.rows);
            self.settled = start + count + gap_rows;
        }
        self.block =
            Block { at: self.open, row: self.settled, resume: self.resume.clone(), is_cut: false };
    }

    fn cut_anywhere(&mut self) {
        let end = self.shown_end();
        let open = self.text.get(self.open..end).unwrap_or_default();
        self.open += open.rfind('\n').map_or(open.len(), |at| at + 1);
        self.settled = self.rows.len();
        self.resume = Resume::default();
        self.block.is_cut = true;
        self.is_exact = false;
    }
}

/// Where a page was laid out: the open end and its context, the rows before it and all rows.
struct Origin {
    open: usize,
    context: usize,
    settled: usize,
    rows: usize,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::markdown::fixtures;
    use super::*;

    fn whole(text: &str, width: u16) -> Vec<Row> {
        markdown::rows(text, width, &fixtures::HIGHLIGHTER)
    }

    /// Pushes the pieces and, after each, compares with the rows of what is shown so far.
    fn check_every_prefix(pieces: &[&str], width: u16) {
        let mut flow = Flow::new(width, Arc::clone(&fixtures::HIGHLIGHTER));
        for piece in pieces {
            flow.push(piece);
            let shown = flow.text().get(..flow.shown_end()).unwrap();
            if flow.is_exact {
                check_same(flow.rows(), &whole(shown, width), shown);
            }
        }
        let text = pieces.concat();
        check_same(&flow.finish(), &whole(&text, width), &text);
    }

    fn check_same(rows: &[Row], whole: &[Row], text: &str) {
        let same = rows.iter().zip(whole).take_while(|(row, expected)| row == expected).count();
        assert_eq!(rows.get(same..), whole.get(same..), "after {text:?}");
    }

    #[test]
    fn a_document_that_comes_letter_by_letter_is_drawn_like_the_whole_at_every_letter() {
        for width in [80, 23] {
            check_every_prefix(&pieces(fixtures::SAMPLE, 1), width);
        }
    }

    #[test]
    fn a_list_that_is_indented_by_a_tab_stands_where_it_begins() {
        let text = "# \n\n- ***\n\t- # ";
        check_every_prefix(&pieces(text, 1), 10);
        let rows = whole(text, 10);
        let rows: Vec<_> = rows.iter().map(|row| &*row.text).collect();
        assert_eq!(rows, ["#", "", "• ────────", "  ◦ #"]);
    }

    /// The most bytes that were parsed for one piece, piece by piece of 512 bytes.
    fn work_per_piece(text: &str) -> usize {
        let mut flow = Flow::new(60, Arc::clone(&fixtures::HIGHLIGHTER));
        let mut most = 0;
        for piece in text.as_bytes().chunks(512) {
            let before = flow.parsed_bytes.get();
            flow.push(std::str::from_utf8(piece).unwrap());
            most = most.max(flow.parsed_bytes.get() - before);
        }
        most
    }

    #[test]
    fn the_work_of_a_piece_does_not_grow_with_what_came_before() {
        // What stands open, a piece, and the lines that open the block again.
        let check = |limit: usize, text: &str| {
            let most = work_per_piece(text);
            let head = text.get(..40).unwrap();
            assert!(most <= limit + 512 + 256, "{most} bytes for a piece of {head:?}");
        };
        let many = |line: &str| line.repeat(12_000 / line.len());
        for text in [
            many("One paragraph.\n\n"),
            many("one paragraph that never ends "),
            many("with *emphasis\nand lines* "),
            many("- an item of a list\n"),
            many("word"),
            format!("- one item\n{}", many("  - with many items\n")),
            format!("```rust\n{}", many("let x = 1;\n")),
            format!("1. step\n   ```rust\n{}", many("   let x = 1;\n")),
            format!("```\n{}", many("x")),
            format!("|a|b|\n|-|-|\n{}", many("|some|cells|\n")),
            many("> quoted\n"),
            format!("<div>\n{}", many("<b>text</b>\n")),
            many("    indented\n"),
        ] {
            check(OPEN_BYTES_MAX, &text);
        }
        for text in ["[a]: /b\n", "\n", "-"] {
            check(UNCUT_BYTES_MAX, &text.repeat(3 * UNCUT_BYTES_MAX / text.len()));
        }
    }

    #[test]
    fn a_block_that_is_cut_inside_goes_on_as_it_was() {
        let many = |line: &str| line.repeat(12_000 / line.len());
        for text in [
            many("one paragraph that never ends "),
            many("with *emphasis* and lines\n"),
            format!("- one item\n{}", many("  - with many items\n")),
            format!("1. step\n   ```rust\n{}", many("   let x = 1;\n")),
            format!("```\n{}", many("x")),
            format!("|a|b|\n|-|-|\n{}", many("|some|cells|\n")),
            many("> quoted\n"),
            format!("> # Quote\n>\n{}", many("> 1. quoted\n>    > list\n>\n")),
            format!("- item\n\n{}", many("  one paragraph that never ends\n")),
            format!("<div>\n{}", many("<b>text</b>\n")),
            many("    indented\n"),
        ] {
            let mut flow = Flow::new(40, Arc::clone(&fixtures::HIGHLIGHTER));
            for piece in text.as_bytes().chunks(1500) {
                flow.push(std::str::from_utf8(piece).unwrap());
                let shown = flow.text().get(..flow.shown_end()).unwrap();
                check_same(flow.rows(), &whole(shown, 40), shown);
            }
            assert!(!flow.is_exact, "{:?} is not cut inside", text.get(..40));
        }
    }

    /// The text in pieces of so many characters.
    fn pieces(text: &str, chars: usize) -> Vec<&str> {
        let mut count = 0;
        let ends_piece = |_| {
            count += 1;
            count % chars == 0
        };
        text.split_inclusive(ends_piece).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn pushed_in_any_pieces_a_text_is_drawn_like_the_whole(
            text in fixtures::text(),
            size in prop_oneof![1..20usize, 20..400usize],
            width in 1..60u16,
        ) {
            check_every_prefix(&pieces(&text, size), width);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(8))]

        #[test]
        fn long_texts_are_cut_without_harm(text in fixtures::text(), width in 1..60u16) {
            let text = text.repeat(8_000 / text.len().max(1));
            check_every_prefix(&pieces(&text, 900), width);
        }
    }
}
