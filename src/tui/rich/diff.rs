//! Changes of a file as rows: numbers, a mark for each changed line, the changed words emphasised,
//! what did not change folded away with a count.

use std::ops::Range;

use similar::{Algorithm, ChangeTag, DiffOp, InlineChangeOptions, TextDiff};

use super::clip::note;
use super::flat::Flat;
use super::{Mods, Role, Row, RowBuilder, Style};
use crate::base::sanitize::Policy;

/// As many unchanged lines are shown before and after a change.
const CONTEXT_LINES: usize = 3;
/// More lines than this, old and new together, are not compared (that takes tens of milliseconds):
/// what lies between the first and the last difference is shown as removed and added.
const COMPARED_LINES_MAX: usize = 20_000;
/// In longer changes words are not compared: so much changed there that words say nothing.
const COMPARED_WORD_BYTES_MAX: usize = 16 * 1024;
/// The gutter is left out where less than this would be left for text.
const TEXT_COLS_MIN: usize = 16;
const MARK_COLS: usize = 2;

/// A text before and after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change<'a> {
    /// Before; empty for a new file.
    pub old: &'a str,
    /// After; empty for a removed file.
    pub new: &'a str,
}

/// The rows of a change. The source of a row is a place in the new text.
#[must_use]
pub fn rows(change: Change<'_>, width: u16, policy: Policy) -> Vec<Row> {
    let old: Vec<&str> = change.old.split_inclusive('\n').collect();
    let new: Vec<&str> = change.new.split_inclusive('\n').collect();
    let places: Vec<usize> = new
        .iter()
        .scan(0, |at, line| {
            let start = *at;
            *at += line.len();
            Some(start)
        })
        .collect();
    let place = |line: usize| places.get(line).copied().unwrap_or(change.new.len());
    let mut painter = Painter::new(width, policy, old.len().max(new.len()));
    let mut shown = 0;
    let mut draw = |groups: Vec<Vec<DiffOp>>, lines: &dyn Fn(&DiffOp) -> Vec<Line>| {
        for group in groups {
            let Some(first) = group.first() else { continue };
            painter.fold(first.new_range().start - shown, place(shown));
            for line in group.iter().flat_map(lines) {
                painter.line(&line, place(line.at));
            }
            shown = group.last().map_or(shown, |op| op.new_range().end);
        }
        painter.fold(new.len() - shown, place(shown));
    };
    if old.len() + new.len() > COMPARED_LINES_MAX {
        let ops = uncompared(&old, &new);
        draw(similar::group_diff_ops(ops, CONTEXT_LINES), &|op| whole_lines(op, &old, &new));
    } else {
        let diff = TextDiff::configure().algorithm(Algorithm::Myers).diff_slices::<str>(&old, &new);
        draw(diff.grouped_ops(CONTEXT_LINES), &|op| {
            if len_of(&old, op.old_range()) + len_of(&new, op.new_range()) > COMPARED_WORD_BYTES_MAX
            {
                return whole_lines(op, &old, &new);
            }
            let options = InlineChangeOptions::new();
            let changes = diff.iter_inline_changes_with_options_deadline(op, options, None);
            let at = |index: Option<usize>| index.unwrap_or(op.new_range().start);
            changes
                .map(|change| Line {
                    mark: Mark::from(change.tag()),
                    old: change.old_index(),
                    new: change.new_index(),
                    at: at(change.new_index()),
                    parts: change
                        .iter_strings_lossy()
                        .map(|(changed, part)| (changed, part.into_owned()))
                        .collect(),
                })
                .collect()
        });
    }
    painter.rows
}

/// The rows of a change that comes as a unified diff, as tools print it.
#[must_use]
pub fn patch_rows(patch: &str, width: u16, policy: Policy) -> Vec<Row> {
    let last = patch.lines().filter_map(Hunk::parse).map(|hunk| hunk.last()).max();
    let mut painter = Painter::new(width, policy, last.unwrap_or(0));
    let mut hunk = Hunk::default();
    let mut at = 0;
    for line in patch.split_inclusive('\n') {
        let body = line.strip_suffix('\n').unwrap_or(line);
        if hunk.is_over()
            && let Some(next) = Hunk::parse(body)
        {
            hunk = next;
            painter.other(body, Role::DiffHunk, at);
        } else if body.starts_with('\\') || hunk.is_over() {
            painter.other(body, Role::Muted, at);
        } else {
            let line = hunk.take(body);
            painter.line(&line, at);
        }
        at += line.len();
    }
    painter.rows
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    Same,
    Removed,
    Added,
}

impl From<ChangeTag> for Mark {
    fn from(tag: ChangeTag) -> Self {
        match tag {
            ChangeTag::Equal => Self::Same,
            ChangeTag::Delete => Self::Removed,
            ChangeTag::Insert => Self::Added,
        }
    }
}

impl Mark {
    fn sign(self) -> &'static str {
        match self {
            Self::Same => " ",
            Self::Removed => "-",
            Self::Added => "+",
        }
    }

    fn role(self) -> Role {
        match self {
            Self::Same => Role::Text,
            Self::Removed => Role::DiffRemoved,
            Self::Added => Role::DiffAdded,
        }
    }
}

/// A line with its places in both texts, counted from zero.
struct Line {
    mark: Mark,
    old: Option<usize>,
    new: Option<usize>,
    /// The line of the new text where it stands.
    at: usize,
    /// Its text, and which parts of it are what changed.
    parts: Vec<(bool, String)>,
}

impl Line {
    /// A part of the line as it is drawn: a line end of Windows is only of interest where it may be
    /// what changed.
    fn shown<'t>(&self, part: &'t str, policy: Policy) -> &'t str {
        match (self.mark, policy) {
            (Mark::Same, Policy::Reading) => part.strip_suffix('\r').unwrap_or(part),
            _ => part,
        }
    }
}

fn len_of(lines: &[&str], range: Range<usize>) -> usize {
    lines.get(range).unwrap_or_default().iter().map(|line| line.len()).sum()
}

/// What differs without any comparing: all between the first difference and the last.
fn uncompared(old: &[&str], new: &[&str]) -> Vec<DiffOp> {
    let same = |(a, b): &(&&str, &&str)| a == b;
    let head = old.iter().zip(new).take_while(same).count();
    let rest = old.len().min(new.len()) - head;
    let tail = old.iter().rev().zip(new.iter().rev()).take(rest).take_while(same).count();
    let (old_len, new_len) = (old.len() - head - tail, new.len() - head - tail);
    let mut ops = vec![
        DiffOp::Equal { old_index: 0, new_index: 0, len: head },
        DiffOp::Delete { old_index: head, old_len, new_index: head },
        DiffOp::Insert { old_index: head + old_len, new_index: head, new_len },
        DiffOp::Equal { old_index: head + old_len, new_index: head + new_len, len: tail },
    ];
    ops.retain(|op| op.old_range().len() + op.new_range().len() > 0);
    ops
}

/// The lines of an operation, no part of them emphasised.
fn whole_lines(op: &DiffOp, old: &[&str], new: &[&str]) -> Vec<Line> {
    let parts = |text: Option<&&str>| vec![(false, text.copied().unwrap_or_default().to_owned())];
    let added = |index: usize| Line {
        mark: Mark::Added,
        old: None,
        new: Some(index),
        at: index,
        parts: parts(new.get(index)),
    };
    if let DiffOp::Equal { old_index, new_index, len } = *op {
        let same = |line: usize| Line {
            mark: Mark::Same,
            old: Some(old_index + line),
            ..added(new_index + line)
        };
        return (0..len).map(same).collect();
    }
    let removed = |index: usize| Line {
        mark: Mark::Removed,
        old: Some(index),
        new: None,
        at: op.new_range().start,
        parts: parts(old.get(index)),
    };
    op.old_range().map(removed).chain(op.new_range().map(added)).collect()
}

/// Where a part of a unified diff stands, and how many of its lines are still to come.
#[derive(Default)]
struct Hunk {
    old: usize,
    new: usize,
    old_left: usize,
    new_left: usize,
}

impl Hunk {
    /// Reads `@@ -1,2 +3,4 @@`.
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.strip_prefix("@@ -")?.split(' ');
        let range = |text: &str| {
            let (start, count) = text.split_once(',').unwrap_or((text, "1"));
            Some((start.parse::<u32>().ok()? as usize, count.parse::<u32>().ok()? as usize))
        };
        let (old, old_left) = range(words.next()?)?;
        let (new, new_left) = range(words.next()?.strip_prefix('+')?)?;
        let (old, new) = (old.saturating_sub(1), new.saturating_sub(1));
        Some(Self { old, new, old_left, new_left })
    }

    fn last(&self) -> usize {
        (self.old + self.old_left).max(self.new + self.new_left)
    }

    fn is_over(&self) -> bool {
        self.old_left == 0 && self.new_left == 0
    }

    fn take(&mut self, line: &str) -> Line {
        let (mark, text) = match line.split_at_checked(1) {
            Some(("+", text)) => (Mark::Added, text),
            Some(("-", text)) => (Mark::Removed, text),
            Some((" ", text)) => (Mark::Same, text),
            // Some tools drop the space of an empty line.
            _ => (Mark::Same, line),
        };
        let count = |next: &mut usize, left: &mut usize| {
            *left = left.saturating_sub(1);
            *next += 1;
            Some(*next - 1)
        };
        let old = if mark == Mark::Added { None } else { count(&mut self.old, &mut self.old_left) };
        let new =
            if mark == Mark::Removed { None } else { count(&mut self.new, &mut self.new_left) };
        // Whether a line end is missing is said by a line of its own.
        Line { mark, old, new, at: 0, parts: vec![(false, format!("{text}\n"))] }
    }
}

/// Draws lines one below the other.
struct Painter {
    width: u16,
    policy: Policy,
    /// The columns of a line number; none without a gutter.
    digits: usize,
    rows: Vec<Row>,
}

impl Painter {
    fn new(width: u16, policy: Policy, last: usize) -> Self {
        let digits = last.max(1).to_string().len();
        let fits = 2 * digits + 2 + MARK_COLS + TEXT_COLS_MIN <= usize::from(width);
        Self { width, policy, digits: if fits { digits } else { 0 }, rows: Vec::new() }
    }

    fn line(&mut self, line: &Line, at: usize) {
        let style = Style::from(line.mark.role());
        let mut flat = Flat::new(self.policy, at);
        for (changed, part) in &line.parts {
            let mods = if *changed { Mods::BOLD | Mods::UNDERLINE } else { Mods::NONE };
            let part = part.strip_suffix('\n').unwrap_or(part);
            flat.push(line.shown(part, self.policy), at..at, style.with(mods));
        }
        let numbers = gutter(line.old, self.digits) + &gutter(line.new, self.digits);
        self.draw(&flat, &numbers, line.mark);
        let complete = line.parts.last().is_some_and(|(_, part)| part.ends_with('\n'));
        if line.mark != Mark::Same && !complete {
            self.other("\\ no newline at end of file", Role::Muted, at);
        }
    }

    fn draw(&mut self, flat: &Flat, numbers: &str, mark: Mark) {
        let room = usize::from(self.width.max(1));
        let before = numbers.len() + MARK_COLS;
        let cols = if before < room { room - before } else { room };
        for (index, range) in flat.wrap(cols).into_iter().enumerate() {
            let continued = index > 0;
            let mut row = RowBuilder::default();
            let source = flat.source_of(&range);
            if before < room {
                let blank = " ".repeat(numbers.len());
                row.push(if continued { &blank } else { numbers }, Style::from(Role::Muted));
                row.push(mark.sign(), Style::from(mark.role()));
                row.push(if continued { "↳" } else { " " }, Style::from(Role::Muted));
            }
            flat.draw(range, cols, &mut row);
            self.rows.push(row.finish(source, continued));
        }
    }

    fn fold(&mut self, count: usize, at: usize) {
        let text = match count {
            0 => return,
            1 => "… 1 unchanged line …".to_owned(),
            _ => format!("… {count} unchanged lines …"),
        };
        self.rows.extend(note(&text, Role::DiffHunk, self.width, at));
    }

    /// A line that belongs to neither text.
    fn other(&mut self, text: &str, role: Role, at: usize) {
        let mut flat = Flat::new(self.policy, at);
        flat.push(text, at..at, Style::from(role));
        self.rows.extend(flat.rows(self.width));
    }
}

/// A line number and the space after it.
fn gutter(line: Option<usize>, digits: usize) -> String {
    match (line, digits) {
        (_, 0) => String::new(),
        (Some(line), _) => format!("{:>digits$} ", line + 1),
        (None, _) => " ".repeat(digits + 1),
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use proptest::prelude::*;

    use super::*;
    use crate::base::sanitize::hostile;

    fn check(rows: &[Row], drawn: &[&str]) {
        assert_eq!(rows.iter().map(Row::text).collect::<Vec<_>>(), drawn);
    }

    fn check_change(old: &str, new: &str, drawn: &[&str]) {
        check(&rows(Change { old, new }, 40, Policy::Reading), drawn);
    }

    fn numbered(lines: std::ops::RangeInclusive<usize>) -> String {
        lines.fold(String::new(), |mut text, line| {
            writeln!(text, "line {line}").unwrap();
            text
        })
    }

    #[test]
    fn changed_lines_are_marked_and_numbered_and_the_rest_is_folded() {
        let old = numbered(1..=20);
        check_change(
            &old,
            &old.replace("line 10\n", "line ten\nand more\n"),
            &[
                "… 6 unchanged lines …",
                " 7  7   line 7",
                " 8  8   line 8",
                " 9  9   line 9",
                "10    - line 10",
                "   10 + line ten",
                "   11 + and more",
                "11 12   line 11",
                "12 13   line 12",
                "13 14   line 13",
                "… 7 unchanged lines …",
            ],
        );
    }

    #[test]
    fn changed_words_are_emphasised() {
        let change = Change { old: "let a = one;\n", new: "let a = two;\n" };
        let rows = rows(change, 40, Policy::Reading);
        let emphasised: Vec<_> = rows
            .iter()
            .flat_map(Row::spans)
            .filter(|span| span.style.mods.contains(Mods::UNDERLINE))
            .map(|span| (span.text, span.style.role))
            .collect();
        assert_eq!(emphasised, [("one;", Role::DiffRemoved), ("two;", Role::DiffAdded)]);
    }

    #[test]
    fn new_files_and_line_ends_are_changes_too() {
        check_change("", "a\nb\n", &["  1 + a", "  2 + b"]);
        check_change("a\r\n", "a\n", &["1   - a␍", "  1 + a"]);
        check_change("a", "a\n", &["1   - a", "\\ no newline at end of file", "  1 + a"]);
        check_change("a\n", "a\n", &["… 1 unchanged line …"]);
        check_change("", "", &[]);
    }

    #[test]
    fn long_lines_go_on_below_their_mark_and_narrow_rows_do_without_numbers() {
        let change = Change { old: "", new: "one two three four\n" };
        check(&rows(change, 12, Policy::Reading), &["+ one two", "+↳three four"]);
        check(&rows(change, 22, Policy::Reading), &["  1 + one two three", "    +↳four"]);
    }

    #[test]
    fn texts_that_are_too_long_to_compare_are_shown_from_the_first_difference_to_the_last() {
        let old = numbered(1..=COMPARED_LINES_MAX);
        let new = old.replace("line 5\n", "five\n").replace("line 7\n", "seven\n");
        let rows = rows(Change { old: &old, new: &new }, 40, Policy::Reading);
        let drawn: Vec<_> = rows.iter().map(|row| row.text().trim_start()).collect();
        assert_eq!(
            drawn.get(4..10).unwrap(),
            [
                "5       - line 5",
                "6       - line 6",
                "7       - line 7",
                "5 + five",
                "6 + line 6",
                "7 + seven",
            ]
        );
    }

    #[test]
    fn a_patch_is_read_by_the_counts_of_its_parts() {
        let patch = "--- a/x\n+++ b/x\n@@ -8,3 +8,3 @@ fn f()\n same\n--- removed\n+++ added\n\n\
                     \\ No newline at end of file\ndiff --git a/y b/y\n";
        check(
            &patch_rows(patch, 40, Policy::Reading),
            &[
                "--- a/x",
                "+++ b/x",
                "@@ -8,3 +8,3 @@ fn f()",
                " 8  8   same",
                " 9    - -- removed",
                "    9 + ++ added",
                "10 10",
                "\\ No newline at end of file",
                "diff --git a/y b/y",
            ],
        );
    }

    #[test]
    fn a_carriage_return_in_a_patch_is_seen_wherever_it_stands() {
        let patch = "@@ -1,2 +1,3 @@\n same\r\n+safe\rrm -rf ~\n+end\r\n";
        check(
            &patch_rows(patch, 40, Policy::Approval),
            &["@@ -1,2 +1,3 @@", "1 1   same␍", "  2 + safe␍rm -rf ~", "  3 + end␍"],
        );
    }

    #[test]
    fn for_a_decision_nothing_in_a_line_is_hidden() {
        let change = Change { old: "", new: "a\u{200b}\tb \r\n" };
        check(&rows(change, 40, Policy::Approval), &["  1 + a⟨U+200B⟩␉b ␍"]);
    }

    proptest! {
        #[test]
        fn no_row_is_too_wide_and_every_new_line_is_there(
            old in hostile::text(), new in hostile::text(), width in 1..60u16,
        ) {
            for policy in [Policy::Reading, Policy::Approval] {
                let rows = rows(Change { old: &old, new: &new }, width, policy);
                prop_assert!(rows.iter().all(|row| row.width() <= width));
                let patch = patch_rows(&new, width, policy);
                prop_assert!(patch.iter().all(|row| row.width() <= width));
            }
        }
    }
}
