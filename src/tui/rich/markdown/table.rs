//! Tables: columns side by side that share the width, or one value below the other where they
//! cannot.

use std::ops::Range;

use pulldown_cmark::Alignment;

use super::super::flat::Flat;
use super::super::{Mods, Role, RowBuilder, Style};
use super::canvas::Canvas;
use super::cut::{Opening, Place, Resume};
use crate::base::sanitize::Policy;

/// No column is made narrower than its longest word, unless that is longer than this.
const WORD_COLS_MAX: usize = 12;
/// No column is made narrower than this, unless it needs less.
const COLUMN_COLS_MIN: usize = 4;
/// The rule between the rows of a table that is drawn value by value.
const STACK_RULE_COLS: usize = 16;
const SEPARATOR: &str = " │ ";
const SEPARATOR_COLS: usize = 3;

/// A table in the making.
pub(super) struct Table {
    start: usize,
    alignments: Vec<Alignment>,
    head: Vec<Flat>,
    rows: Vec<TableRow>,
    open: Vec<Flat>,
}

struct TableRow {
    start: usize,
    cells: Vec<Flat>,
}

/// How the columns of a table share the width.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Columns {
    /// Each with its own columns on the screen.
    Side(Vec<usize>),
    /// Not at all: each row is a list of `head: value`.
    Stacked,
}

/// A drawn row of a table.
struct Line {
    row: RowBuilder,
    source: Range<usize>,
    /// Whether a row of the body begins with it.
    opens_row: bool,
    /// Whether it goes on with the row of the table that the line before shows.
    continued: bool,
}

impl Table {
    pub(super) fn new(start: usize, alignments: Vec<Alignment>) -> Self {
        Self { start, alignments, head: Vec::new(), rows: Vec::new(), open: Vec::new() }
    }

    /// Whether the cells that come belong to the head.
    pub(super) fn is_in_head(&self) -> bool {
        self.head.is_empty()
    }

    pub(super) fn push_cell(&mut self, cell: Flat) {
        self.open.push(cell);
    }

    pub(super) fn end_head(&mut self) {
        self.head = std::mem::take(&mut self.open);
    }

    pub(super) fn end_row(&mut self, start: usize) {
        self.rows.push(TableRow { start, cells: std::mem::take(&mut self.open) });
    }

    /// Draws the table, which ends at `end`, and notes where it could be cut.
    pub(super) fn close(self, canvas: &mut Canvas<'_>, end: usize) {
        canvas.draw_loose_markers(self.start);
        let (cols, skip) = (canvas.frames.text_cols(), canvas.part.skip);
        let columns = match &canvas.part.resume.columns {
            Some(columns) if self.start < skip => columns.clone(),
            _ => self.columns(cols),
        };
        let mut last = None;
        for line in self.lines(&columns, cols, skip) {
            if line.opens_row {
                last = Some((canvas.line_start(line.source.start), canvas.len()));
            }
            let mut row = canvas.frames.begin_row();
            row.extend(&line.row);
            canvas.push_row(row, line.source, line.continued);
        }
        if canvas.cuts.is_open(end)
            && let Some((at, row)) = last
        {
            let place = Place { frames: &canvas.frames, row, gap: false };
            let opening = Opening { at: self.start, lines: 2 };
            let rest = Resume { columns: Some(columns), ..Resume::default() };
            canvas.cuts.in_block(at, opening, rest, &place);
        }
    }

    /// Shares `cols` among the columns: each gets what it needs, and if that is too much, the widest
    /// give way first.
    fn columns(&self, cols: usize) -> Columns {
        let count = self.alignments.len().max(1);
        let mut needs = vec![0; count];
        let mut floors = vec![0; count];
        for cells in std::iter::once(&self.head).chain(self.rows.iter().map(|row| &row.cells)) {
            for ((cell, need), floor) in cells.iter().zip(&mut needs).zip(&mut floors) {
                let (line, word) = cell.widths();
                *need = line.max(*need);
                *floor = word.clamp(COLUMN_COLS_MIN, WORD_COLS_MAX).max(*floor);
            }
        }
        for (floor, need) in floors.iter_mut().zip(&needs) {
            *floor = (*floor).min(*need).max(1);
        }
        let room = cols.saturating_sub(SEPARATOR_COLS * (count - 1));
        let shared = |level: usize| {
            let share = |(&need, &floor): (&usize, &usize)| need.min(level).max(floor);
            needs.iter().zip(&floors).map(share).collect::<Vec<_>>()
        };
        if shared(0).iter().sum::<usize>() > room {
            return Columns::Stacked;
        }
        let (mut low, mut high) = (0, needs.iter().copied().max().unwrap_or(0).min(room));
        while low < high {
            let middle = (low + high).div_ceil(2);
            if shared(middle).iter().sum::<usize>() <= room {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        Columns::Side(shared(low))
    }

    /// The rows from the byte `skip` on; the head only if the table starts there or later.
    fn lines(&self, columns: &Columns, cols: usize, skip: usize) -> Vec<Line> {
        let mut lines = Vec::new();
        match columns {
            Columns::Side(widths) => {
                if self.start >= skip {
                    self.side(&self.head, widths, self.start, &mut lines);
                    lines.push(side_rule(widths, self.start));
                }
                for row in self.rows.iter().filter(|row| row.start >= skip) {
                    let first = lines.len();
                    self.side(&row.cells, widths, row.start, &mut lines);
                    open_row(&mut lines, first);
                }
            }
            Columns::Stacked => {
                if self.rows.is_empty() && self.start >= skip {
                    stack_row(&[], &self.head, cols, &mut lines);
                }
                for row in self.rows.iter().filter(|row| row.start >= skip) {
                    let first = lines.len();
                    if first > 0 || self.start < skip {
                        lines.push(stack_rule(cols, row.start));
                    }
                    stack_row(&self.head, &row.cells, cols, &mut lines);
                    open_row(&mut lines, first);
                }
            }
        }
        lines
    }

    fn side(&self, cells: &[Flat], widths: &[usize], start: usize, lines: &mut Vec<Line>) {
        let wrapped: Vec<Vec<Range<usize>>> =
            cells.iter().zip(widths).map(|(cell, &width)| cell.wrap(width)).collect();
        let height = wrapped.iter().map(Vec::len).max().unwrap_or(1);
        for line in 0..height {
            let mut row = RowBuilder::default();
            let mut source = start..start;
            for (index, &width) in widths.iter().enumerate() {
                if index > 0 {
                    row.push(SEPARATOR, Style::from(Role::Rule));
                }
                let part = wrapped.get(index).and_then(|parts| parts.get(line));
                let (Some(range), Some(cell)) = (part, cells.get(index)) else {
                    row.push(&" ".repeat(width), Style::default());
                    continue;
                };
                let mut drawn = RowBuilder::default();
                cell.draw(range.clone(), width, &mut drawn);
                let alignment = self.alignments.get(index).copied().unwrap_or(Alignment::None);
                push_aligned(&mut row, &drawn, width, alignment);
                source.end = source.end.max(cell.source_of(range).end);
            }
            lines.push(Line { row, source, opens_row: false, continued: line > 0 });
        }
    }
}

fn open_row(lines: &mut [Line], first: usize) {
    if let Some(line) = lines.get_mut(first) {
        line.opens_row = true;
    }
}

fn push_aligned(row: &mut RowBuilder, cell: &RowBuilder, width: usize, alignment: Alignment) {
    let free = width.saturating_sub(cell.width());
    let left = match alignment {
        Alignment::None | Alignment::Left => 0,
        Alignment::Center => free / 2,
        Alignment::Right => free,
    };
    row.push(&" ".repeat(left), Style::default());
    row.extend(cell);
    row.push(&" ".repeat(free - left), Style::default());
}

fn side_rule(widths: &[usize], start: usize) -> Line {
    let parts: Vec<_> = widths.iter().map(|&width| "─".repeat(width)).collect();
    let mut row = RowBuilder::default();
    row.push(&parts.join("─┼─"), Style::from(Role::Rule));
    Line { row, source: start..start, opens_row: false, continued: false }
}

fn stack_rule(cols: usize, start: usize) -> Line {
    let mut row = RowBuilder::default();
    row.push(&"─".repeat(cols.min(STACK_RULE_COLS)), Style::from(Role::Rule));
    Line { row, source: start..start, opens_row: false, continued: false }
}

fn stack_row(head: &[Flat], cells: &[Flat], cols: usize, lines: &mut Vec<Line>) {
    for (index, cell) in cells.iter().enumerate() {
        let at = cell.source_at(0);
        let mut flat = Flat::new(Policy::Reading, at);
        if let Some(name) = head.get(index).filter(|name| !name.is_empty()) {
            let style = Style::from(Role::Strong).with(Mods::BOLD);
            flat.push_own(&name.text().replace('\n', " "), at..at, style);
            flat.push_own(": ", at..at, style);
        }
        flat.append(cell);
        for (line, range) in flat.wrap(cols).into_iter().enumerate() {
            let mut row = RowBuilder::default();
            let source = flat.source_of(&range);
            flat.draw(range, cols, &mut row);
            lines.push(Line { row, source, opens_row: false, continued: line > 0 });
        }
    }
}
