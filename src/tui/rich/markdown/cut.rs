//! Where a growing text can be cut, so that what stands before is laid out for good, and what has to
//! be known to go on after the cut.

use super::super::code::CodeState;
use super::frames::Frames;
use super::table::Columns;

/// Of an opening line, as much is repeated as a list marker, a fence or the head of a table needs.
const OPENING_BYTES_MAX: usize = 512;
/// The most lines that are repeated; deeper nesting is drawn less deep until its block has ended.
const OPENINGS_MAX: usize = 8;

/// How to go on after a cut.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Resume {
    /// Lines that open what is open at the cut: list items, quotations, a fence, the head of a table.
    pub(in super::super) context: String,
    /// The next number of each open list, outermost first; nothing for bullets.
    pub(super) numbers: Vec<Option<u64>>,
    /// The highlighting, inside code.
    pub(super) code: Option<CodeState>,
    /// The columns, inside a table.
    pub(super) columns: Option<Columns>,
    /// Whether the cut lies inside a line, at the start of a row.
    pub(super) mid_line: bool,
}

/// A place to cut.
pub(in super::super) struct Cut {
    /// The byte of the part's text.
    pub(in super::super) at: usize,
    /// The rows before the cut.
    pub(in super::super) row: usize,
    /// Whether the last of them is the blank row before what follows.
    pub(in super::super) gap: bool,
    pub(in super::super) resume: Resume,
}

/// The last place of each kind. A cut only lies before or after whole lines, or it is not exact.
#[derive(Default)]
pub(in super::super) struct Cuts {
    /// Between two top-level blocks, or two items of a top-level list. Exact.
    pub(in super::super) boundary: Option<Cut>,
    /// Between two lines of a fenced block at top level. Exact, and never before the boundary.
    pub(in super::super) line: Option<Cut>,
    /// Inside a block. The rows after it may differ from those of the whole.
    pub(in super::super) inexact: Option<Cut>,
}

/// Looks for places to cut while a part is laid out.
pub(super) struct Finder<'a> {
    text: &'a str,
    /// The bytes of the context, in which nothing is cut.
    skip: usize,
    /// Lines that end before this byte are complete.
    complete: usize,
    /// Where the last top-level block ended.
    block_end: usize,
    /// A byte and where its line starts: most questions are about the same line.
    line: (usize, usize),
    cuts: Cuts,
}

/// Where the layout stands at a possible cut.
pub(super) struct Place<'f> {
    pub(super) frames: &'f Frames,
    pub(super) row: usize,
    /// Whether the row before is the blank one before what follows.
    pub(super) gap: bool,
}

/// The lines that have to be repeated to be inside a block again.
#[derive(Clone, Copy)]
pub(super) struct Opening {
    /// A byte of the first.
    pub(super) at: usize,
    pub(super) lines: usize,
}

impl<'a> Finder<'a> {
    pub(super) fn new(text: &'a str, skip: usize) -> Self {
        let complete = text.rfind('\n').map_or(0, |end| end + 1);
        Self { text, skip, complete, block_end: skip, line: (0, 0), cuts: Cuts::default() }
    }

    pub(super) fn into_cuts(self) -> Cuts {
        self.cuts
    }

    /// Where the line begins that holds the byte `at`.
    pub(super) fn line_start(&mut self, at: usize) -> usize {
        let (known, start) = self.line;
        let line_start = match self.text.as_bytes().get(known..at) {
            Some(since) => last_line_end(since).map_or(start, |end| known + end),
            None => line_start(self.text, at),
        };
        self.line = (at, line_start);
        line_start
    }

    /// A top-level block has ended.
    pub(super) fn end_block(&mut self, end: usize) {
        self.block_end = self.block_end.max(end);
    }

    /// Whether nothing but white space follows the block that ends at `end`.
    pub(super) fn is_open(&self, end: usize) -> bool {
        self.text.get(end..).is_none_or(|rest| rest.trim().is_empty())
    }

    /// A cut before the top-level block that starts at `start`. What makes it a block stands in its
    /// first `lines` lines, which have to be complete; and a definition directly above might still
    /// take it in.
    pub(super) fn before_block(&mut self, start: usize, lines: usize, place: &Place<'_>) {
        let at = self.line_start(start);
        let between = self.text.get(self.block_end..at);
        if between.is_some_and(|between| between.trim().is_empty()) {
            self.boundary(start, lines, Vec::new(), place);
        }
    }

    /// A cut before an item of a top-level list that has earlier ones.
    pub(super) fn before_item(&mut self, start: usize, place: &Place<'_>) {
        self.boundary(start, 1, place.frames.numbers(), place);
    }

    fn boundary(
        &mut self,
        start: usize,
        lines: usize,
        numbers: Vec<Option<u64>>,
        place: &Place<'_>,
    ) {
        let at = self.line_start(start);
        let after = self.text.get(start..self.complete.max(start)).unwrap_or_default();
        let complete = after.bytes().filter(|&byte| byte == b'\n').take(lines).count() == lines;
        if at > self.skip && complete {
            let resume = Resume { numbers, ..Resume::default() };
            self.cuts.boundary = Some(Cut { at, row: place.row, gap: place.gap, resume });
            self.cuts.inexact = None;
        }
    }

    /// A cut before a block inside a container.
    pub(super) fn before_inner_block(&mut self, start: usize, place: &Place<'_>) {
        let at = self.line_start(start);
        let opened = place.frames.openings().next_back().unwrap_or(0);
        if at <= self.skip.max(opened) || start >= self.complete {
            return;
        }
        let mut resume = self.resume(None, place.frames, Resume::default());
        if is_blank_before(self.text, at) {
            let before = line_start(self.text, at.saturating_sub(1));
            resume.context.push_str(lead(self.text.get(before..at).unwrap_or_default()));
            resume.context.push('\n');
        }
        self.cuts.inexact = Some(Cut { at, row: place.row, gap: place.gap, resume });
    }

    /// A cut inside a paragraph, before the row that begins at `at`.
    pub(super) fn in_text(&mut self, at: usize, place: &Place<'_>) {
        let mut resume = self.resume(None, place.frames, Resume::default());
        if resume.context.is_empty() {
            resume.context.push_str("a\n");
        }
        let line = line_start(self.text, at);
        let before = self.text.get(line..at).unwrap_or_default();
        let lead = lead(before);
        if lead.len() < before.len() {
            resume.context.push_str(lead);
            resume.context.push_str("a ");
            resume.mid_line = true;
        }
        let at = if resume.mid_line { at } else { line };
        self.inexact(at, resume, place);
    }

    /// A cut before a line, or the rest of a line, of a block that is not text.
    pub(super) fn in_block(
        &mut self,
        at: usize,
        opening: Opening,
        rest: Resume,
        place: &Place<'_>,
    ) {
        let resume = self.resume(Some(opening), place.frames, rest);
        self.inexact(at, resume, place);
    }

    /// A cut before a line of a fenced block.
    pub(super) fn in_code(
        &mut self,
        at: usize,
        opening: usize,
        code: Option<CodeState>,
        place: &Place<'_>,
    ) {
        let rest = Resume { code, ..Resume::default() };
        let opening = Opening { at: opening, lines: 1 };
        if !place.frames.is_top() {
            self.in_block(at, opening, rest, place);
        } else if at > self.skip {
            let resume = self.resume(Some(opening), place.frames, rest);
            self.cuts.line = Some(Cut { at, row: place.row, gap: false, resume });
        }
    }

    /// A cut inside a line of code.
    pub(super) fn in_code_line(
        &mut self,
        at: usize,
        opening: usize,
        code: Option<CodeState>,
        place: &Place<'_>,
    ) {
        let rest = Resume { code, mid_line: true, ..Resume::default() };
        let mut resume = self.resume(Some(Opening { at: opening, lines: 1 }), place.frames, rest);
        let before = self.text.get(line_start(self.text, at)..at).unwrap_or_default();
        resume.context.push_str(lead(before));
        resume.context.push('a');
        self.inexact(at, resume, place);
    }

    fn inexact(&mut self, at: usize, resume: Resume, place: &Place<'_>) {
        if at > self.skip {
            self.cuts.inexact = Some(Cut { at, row: place.row, gap: false, resume });
        }
    }

    /// Repeats the lines that open the containers and then the block, in their order and each once,
    /// so that what is open after them is what is open here.
    fn resume(&self, block: Option<Opening>, frames: &Frames, rest: Resume) -> Resume {
        let containers = frames.openings().map(|at| Opening { at, lines: 1 });
        let mut context = String::new();
        let mut repeated = 0;
        for opening in containers.take(OPENINGS_MAX).chain(block) {
            let mut at = line_start(self.text, opening.at);
            for line in
                self.text.get(at..).unwrap_or_default().split_inclusive('\n').take(opening.lines)
            {
                at += line.len();
                if at > repeated {
                    push_line(&mut context, line);
                    repeated = at;
                }
            }
        }
        Resume { context, numbers: frames.numbers(), ..rest }
    }
}

fn push_line(context: &mut String, line: &str) {
    let mut end = line.len().min(OPENING_BYTES_MAX);
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    context.push_str(line.get(..end).unwrap_or_default());
    if !context.ends_with('\n') {
        context.push('\n');
    }
}

/// Where the line begins that holds the byte `at`.
fn line_start(text: &str, at: usize) -> usize {
    let before = text.as_bytes().get(..at).unwrap_or_default();
    last_line_end(before).unwrap_or(0)
}

/// The byte after the last line end.
fn last_line_end(text: &[u8]) -> Option<usize> {
    memchr::memrchr2(b'\n', b'\r', text).map(|at| at + 1)
}

/// Whether the line before the one that begins at `at` is blank, or holds only the bars of quotations.
pub(super) fn is_blank_before(text: &str, at: usize) -> bool {
    let before = text.get(..at).unwrap_or_default();
    let before = before.strip_suffix('\n').unwrap_or(before);
    let before = before.strip_suffix('\r').unwrap_or(before);
    let line = before.get(line_start(before, before.len())..).unwrap_or_default();
    at > 0 && lead(line).len() == line.len()
}

/// The white space and the bars of quotations that a line begins with.
pub(super) fn lead(line: &str) -> &str {
    let rest = line.trim_start_matches([' ', '\t', '>']);
    line.get(..line.len() - rest.len()).unwrap_or_default()
}
