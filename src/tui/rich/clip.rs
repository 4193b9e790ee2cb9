//! Long output shown by its head and its tail, with a count of what is left out between them.

use super::flat::Flat;
use super::{Role, Row, Style};
use crate::base::sanitize::Policy;

/// How many rows of each end stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ends {
    /// Rows at the start.
    pub head: usize,
    /// Rows at the end.
    pub tail: usize,
}

/// The rows, or their ends around a row that counts the lines between them (or the rows, where they
/// are all of one line). Nothing is left out for the sake of one row.
#[must_use]
pub fn clip(mut rows: Vec<Row>, ends: Ends, width: u16) -> Vec<Row> {
    let kept = ends.head.saturating_add(ends.tail);
    if rows.len() <= kept.saturating_add(1) {
        return rows;
    }
    let mut tail = rows.split_off(rows.len() - ends.tail);
    let hidden = rows.split_off(ends.head);
    let lines = hidden.iter().filter(|row| !row.is_continued()).count();
    let at = hidden.first().map_or(0, |row| row.source().start as usize);
    let text = match (lines, hidden.len()) {
        (0, 1) => "… 1 more row …".to_owned(),
        (0, rows) => format!("… {rows} more rows …"),
        (1, _) => "… 1 more line …".to_owned(),
        (lines, _) => format!("… {lines} more lines …"),
    };
    rows.extend(note(&text, Role::Muted, width, at));
    rows.append(&mut tail);
    rows
}

/// Rows of our own between those of a text, at the byte `at` of its source.
pub(super) fn note(text: &str, role: Role, width: u16, at: usize) -> Vec<Row> {
    let mut flat = Flat::new(Policy::Reading, at);
    flat.push_own(text, at..at, Style::from(role));
    flat.rows(width)
}

#[cfg(test)]
mod tests {
    use super::super::plain;
    use super::*;

    fn check(lines: usize, width: u16, drawn: &[&str]) {
        let text: Vec<_> = (1..=lines).map(|line| format!("line {line}")).collect();
        let rows = plain::rows(&text.join("\n"), width, Policy::Reading);
        let rows = clip(rows, Ends { head: 2, tail: 1 }, width);
        assert_eq!(rows.iter().map(Row::text).collect::<Vec<_>>(), drawn);
    }

    #[test]
    fn the_middle_of_long_output_is_counted_and_left_out() {
        check(4, 40, &["line 1", "line 2", "line 3", "line 4"]);
        check(5, 40, &["line 1", "line 2", "… 2 more lines …", "line 5"]);
        check(900, 12, &["line 1", "line 2", "… 897 more", "lines …", "line 900"]);
    }

    #[test]
    fn broken_lines_are_counted_once_and_a_single_one_by_its_rows() {
        check(3, 4, &["line", "1", "… 2", "more", "line", "s …", "3"]);
        let rows = plain::rows(&"x".repeat(40), 4, Policy::Reading);
        let rows = clip(rows, Ends { head: 1, tail: 1 }, 20);
        let drawn: Vec<_> = rows.iter().map(Row::text).collect();
        assert_eq!(drawn, ["xxxx", "… 8 more rows …", "xxxx"]);
    }
}
