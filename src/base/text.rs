//! How wide text is on a terminal, and how to cut and wrap it without splitting what is one cluster.
//!
//! Widths agree with the cells that ratatui fills: clusters are measured one by one, with the same
//! tables. Nothing here makes text safe; that is `base::sanitize`.

use std::borrow::Cow;
use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::sanitize;

/// Tabs are drawn up to the next multiple of this; in the source they stay tabs.
pub const TAB_COLS: usize = 4;
/// The longest default title of a session.
pub const TITLE_COLS_MAX: usize = 60;
/// Stands for a cluster that is wider than the whole place it should be drawn in.
const TOO_WIDE: &str = "\u{FFFD}";

/// One grapheme cluster of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cluster<'a> {
    /// The byte at which it starts.
    pub at: usize,
    /// The cluster itself.
    pub text: &'a str,
    /// The cells it fills: none for controls, tabs among them.
    pub cols: usize,
}

/// The clusters of a text, from its start.
#[must_use]
pub fn clusters(text: &str) -> Clusters<'_> {
    Clusters { text, at: 0 }
}

/// The iterator of [`clusters`].
#[derive(Clone, Debug)]
pub struct Clusters<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Iterator for Clusters<'a> {
    type Item = Cluster<'a>;

    fn next(&mut self) -> Option<Cluster<'a>> {
        let at = self.at;
        let bytes = self.text.as_bytes();
        let first = *bytes.get(at)?;
        let next = bytes.get(at + 1).copied().unwrap_or(0);
        let rest = self.text.get(at..)?;
        // Two ASCII bytes are two clusters, unless they are one line end.
        let text = if first.is_ascii() && next.is_ascii() && first != b'\r' {
            rest.get(..1)?
        } else {
            rest.graphemes(true).next()?
        };
        self.at += text.len();
        Some(Cluster { at, text, cols: cluster_cols(text) })
    }
}

/// As `Buffer::set_stringn` does it: clusters with controls are not drawn, and the two halfwidth
/// sound marks, zero-width by the tables, fill a cell of their own.
fn cluster_cols(cluster: &str) -> usize {
    match cluster.as_bytes() {
        [byte] => usize::from(!byte.is_ascii_control()),
        _ if cluster.contains(char::is_control) => 0,
        _ => {
            let marks = cluster.chars().filter(|c| matches!(c, '\u{FF9E}' | '\u{FF9F}')).count();
            cluster.width() + marks
        }
    }
}

/// The cells that a text fills when drawn on one row. Controls, tabs among them, fill none.
#[must_use]
pub fn width(text: &str) -> usize {
    if text.is_ascii() {
        return text.bytes().filter(|byte| !byte.is_ascii_control()).count();
    }
    clusters(text).map(|cluster| cluster.cols).sum()
}

/// The text, or as much of it as fits in `cols` together with an ellipsis. Looks only as far as the
/// cut.
#[must_use]
pub fn truncate(text: &str, cols: usize) -> Cow<'_, str> {
    let mut used = 0;
    let mut cut = 0;
    for cluster in clusters(text) {
        if used < cols {
            cut = cluster.at;
        }
        used += cluster.cols;
        if used > cols {
            let kept = text.get(..cut).unwrap_or_default();
            return Cow::Owned(if cols == 0 { String::new() } else { format!("{kept}…") });
        }
    }
    Cow::Borrowed(text)
}

/// The first characters of a text.
#[must_use]
pub fn beginning(text: &str, chars_max: usize) -> &str {
    let end = text.char_indices().nth(chars_max).map_or(text.len(), |(at, _)| at);
    text.get(..end).unwrap_or_default()
}

/// Bytes in lowercase hexadecimal digits.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).unwrap_or_default();
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 0xf)]).collect()
}

/// The default title of a session by its first message: its first line, controls removed, cut at
/// [`TITLE_COLS_MAX`] columns at a word boundary. Empty if the message has no visible character.
#[must_use]
pub fn title(message: &str) -> String {
    /// What comes later in a line does not get into a title.
    const LINE_CHARS_MAX: usize = 1_000;
    let mut lines = message.lines().map(|line| {
        let line = sanitize::for_title(beginning(line, LINE_CHARS_MAX));
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    });
    let line = lines.find(|line| !line.is_empty()).unwrap_or_default();
    if width(&line) <= TITLE_COLS_MAX {
        return line;
    }
    let first = wrap(&line, TITLE_COLS_MAX - 1).into_iter().next().unwrap_or_default();
    format!("{}…", line.get(first).unwrap_or_default())
}

/// Breaks a text into rows of at most `cols` columns, as [`draw`] draws them, and says which bytes
/// each row draws. Lines end at `\n` only; there is always one row, and a `\n` at the end opens
/// another.
///
/// Rows break after white space, which is not drawn there, and beside wide characters; a word that
/// is longer than a row is broken between clusters. A row depends on nothing before its own start,
/// and on what follows only as far as the word after it: to append text is to wrap again from the
/// start of the last row that does not begin inside a cluster too wide for one.
#[must_use]
pub fn wrap(text: &str, cols: usize) -> Vec<Range<usize>> {
    let mut rows = Vec::new();
    let mut start = 0;
    for line in text.split('\n') {
        let mut wrapper = Wrapper::new(start, cols.max(1), &mut rows);
        for cluster in clusters(line) {
            wrapper.take(Cluster { at: start + cluster.at, ..cluster });
        }
        start += line.len();
        wrapper.finish(start);
        start += 1;
    }
    rows
}

struct Wrapper<'r> {
    rows: &'r mut Vec<Range<usize>>,
    cols: usize,
    /// Where the open row starts, how many columns it fills and whether it holds a word yet.
    start: usize,
    used: usize,
    worded: bool,
    /// The last place where the row may end.
    gap: Option<Gap>,
    /// Where the word before the white space ended, while in white space.
    space: Option<usize>,
    /// White space beyond the row's end is dropped, up to the next word.
    overflowed: bool,
    after_wide: bool,
}

/// A place where a row may end: the end of what it draws, and where the next one would start.
struct Gap {
    end: usize,
    next: usize,
    used: usize,
}

impl<'r> Wrapper<'r> {
    fn new(start: usize, cols: usize, rows: &'r mut Vec<Range<usize>>) -> Self {
        Self {
            rows,
            cols,
            start,
            used: 0,
            worded: false,
            gap: None,
            space: None,
            overflowed: false,
            after_wide: false,
        }
    }

    fn take(&mut self, cluster: Cluster<'_>) {
        if is_breaking_space(cluster.text) {
            self.take_space(cluster);
        } else {
            self.take_word(cluster);
        }
    }

    fn take_space(&mut self, cluster: Cluster<'_>) {
        let word_end = *self.space.get_or_insert(cluster.at);
        self.after_wide = false;
        let cols = step(cluster, self.used);
        if self.overflowed || self.used + cols > self.cols {
            self.overflowed = true;
            return;
        }
        self.used += cols;
        if self.worded {
            let next = cluster.at + cluster.text.len();
            self.gap = Some(Gap { end: word_end, next, used: self.used });
        }
    }

    fn take_word(&mut self, cluster: Cluster<'_>) {
        if self.overflowed {
            let end = self.space.unwrap_or(cluster.at);
            self.end_row(end, cluster.at, 0);
            self.overflowed = false;
        }
        let wide = cluster.cols > 1;
        if (wide || self.after_wide) && self.worded && self.space.is_none() {
            self.gap = Some(Gap { end: cluster.at, next: cluster.at, used: self.used });
        }
        self.space = None;
        self.after_wide = wide;
        if self.used + cluster.cols > self.cols && self.used > 0 {
            if let Some(gap) = self.gap.take() {
                self.end_row(gap.end, gap.next, self.used - gap.used);
            }
            if self.used + cluster.cols > self.cols && self.used > 0 {
                self.end_row(cluster.at, cluster.at, 0);
            }
        }
        if cluster.cols > self.cols {
            self.take_wide(cluster);
        } else {
            self.used += cluster.cols;
        }
        self.worded = true;
    }

    /// A cluster that is wider than a row is broken into its characters, as [`draw`] draws it.
    fn take_wide(&mut self, cluster: Cluster<'_>) {
        for (offset, c) in cluster.text.char_indices() {
            let cols = char_cols(c).min(self.cols);
            if self.used + cols > self.cols {
                self.end_row(cluster.at + offset, cluster.at + offset, 0);
            }
            self.used += cols;
        }
    }

    fn end_row(&mut self, end: usize, next: usize, used: usize) {
        self.rows.push(self.start..end);
        self.start = next;
        self.used = used;
        self.worded = used > 0;
        self.gap = None;
    }

    fn finish(self, line_end: usize) {
        let end = if self.overflowed { self.space.unwrap_or(line_end) } else { line_end };
        self.rows.push(self.start..end.max(self.start));
    }
}

fn is_breaking_space(cluster: &str) -> bool {
    matches!(cluster, " " | "\t" | "\u{3000}")
        || matches!(cluster.chars().next(), Some('\u{2000}'..='\u{2006}' | '\u{2008}'..='\u{200A}'))
}

/// The columns that a cluster takes when it is drawn at column `at`.
fn step(cluster: Cluster<'_>, at: usize) -> usize {
    if cluster.text == "\t" { TAB_COLS - at % TAB_COLS } else { cluster.cols }
}

/// The columns of a character of a cluster that has to be broken. A variation selector counts, since
/// what it makes of the character before it may be wider than that.
fn char_cols(c: char) -> usize {
    let more = matches!(c, '\u{FF9E}' | '\u{FF9F}' | '\u{FE00}'..='\u{FE0F}');
    c.width().unwrap_or(0) + usize::from(more)
}

/// Draws one row of [`wrap`]: hands on its pieces, each with the byte it comes from. Tabs become
/// spaces, controls are left out, and a cluster wider than `cols` comes character by character.
pub fn draw<'a>(row: &'a str, cols: usize, mut piece: impl FnMut(usize, &'a str)) {
    let cols = cols.max(1);
    let mut used = 0;
    for cluster in clusters(row) {
        let step = step(cluster, used);
        if cluster.text == "\t" {
            piece(cluster.at, "    ".get(..step.min(cols - used.min(cols))).unwrap_or_default());
        } else if step > cols {
            for (offset, c) in cluster.text.char_indices() {
                let end = offset + c.len_utf8();
                let text = cluster.text.get(offset..end).unwrap_or_default();
                match width(text) {
                    0 => {}
                    wide if wide > cols => piece(cluster.at + offset, TOO_WIDE),
                    _ => piece(cluster.at + offset, text),
                }
            }
        } else if step > 0 {
            piece(cluster.at, cluster.text);
        }
        used += step;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use ratatui::buffer::Buffer;
    use ratatui::layout::Rect;
    use ratatui::style::Style;

    use super::super::sanitize::hostile;
    use super::*;

    fn drawn(row: &str, cols: usize) -> String {
        let mut out = String::new();
        draw(row, cols, |_, piece| out.push_str(piece));
        out
    }

    fn check_wrap(text: &str, cols: usize, rows: &[&str]) {
        let wrapped: Vec<_> = wrap(text, cols)
            .into_iter()
            .map(|range| drawn(text.get(range).unwrap(), cols))
            .collect();
        assert_eq!(wrapped, rows, "{text:?} in {cols} columns");
    }

    #[test]
    fn words_move_to_the_next_row_whole() {
        check_wrap("the quick  brown fox", 10, &["the quick", "brown fox"]);
        check_wrap("a\n\nb\n", 10, &["a", "", "b", ""]);
        check_wrap("", 10, &[""]);
        check_wrap("word", 4, &["word"]);
        check_wrap("word      ", 4, &["word"]);
    }

    #[test]
    fn a_word_longer_than_a_row_is_broken_between_clusters() {
        check_wrap("a abcdefgh b", 4, &["a", "abcd", "efgh", "b"]);
        check_wrap("👨\u{200d}👩\u{200d}👧👍🏽", 3, &["👨\u{200d}👩\u{200d}👧", "👍🏽"]);
    }

    #[test]
    fn wide_characters_are_never_split_and_break_anywhere() {
        check_wrap("日本語abc", 5, &["日本", "語abc"]);
        check_wrap("日本", 1, &["\u{FFFD}", "\u{FFFD}"]);
    }

    #[test]
    fn tabs_are_drawn_to_the_next_stop() {
        check_wrap("\tx\ty", 12, &["    x   y"]);
        check_wrap("ab\tc", 3, &["ab", "c"]);
        check_wrap("    indented word", 10, &["    indent", "ed word"]);
    }

    #[test]
    fn a_cut_text_ends_in_an_ellipsis_and_fits() {
        assert_eq!(truncate("abcdef", 6), "abcdef");
        assert_eq!(truncate("abcdef", 5), "abcd…");
        assert_eq!(truncate("日本語", 4), "日…");
        assert_eq!(truncate("日本語", 1), "…");
        assert_eq!(truncate("abc", 0), "");
    }

    #[test]
    fn a_title_is_the_first_line_cut_between_words() {
        assert_eq!(
            title("\n  Fix the\tflaky \u{1b}[1mtest\u{202e} \nand more"),
            "Fix the flaky [1mtest"
        );
        let long = "The watcher test fails one time in ten and nobody has found out why";
        assert_eq!(title(long), "The watcher test fails one time in ten and nobody has found…");
        assert_eq!(width(&title(&"x".repeat(200))), TITLE_COLS_MAX);
        assert_eq!(title(" \n\u{200b}\n"), "");
    }

    /// How many cells ratatui fills with the text.
    fn cells(text: &str) -> usize {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 2000, 1));
        usize::from(buffer.set_stringn(0, 0, text, 2000, Style::new()).0)
    }

    proptest! {
        #[test]
        fn widths_are_those_of_the_cells(text in hostile::text()) {
            prop_assert_eq!(width(&text), cells(&text));
        }

        #[test]
        fn no_row_is_too_wide_and_no_word_is_lost(text in hostile::text(), cols in 1..30usize) {
            let rows = wrap(&text, cols);
            let mut end = 0;
            for range in rows {
                prop_assert!(range.start >= end);
                let skipped = text.get(end..range.start).unwrap();
                prop_assert!(skipped.chars().all(char::is_whitespace), "{skipped:?} lost");
                end = range.end;
                let row = drawn(text.get(range).unwrap(), cols);
                prop_assert!(width(&row) <= cols, "{row:?}");
            }
            prop_assert!(text.get(end..).unwrap().chars().all(char::is_whitespace));
        }

        #[test]
        fn appended_text_changes_the_last_row_only(
            text in hostile::text(), more in "[a-z ]{0,9}", cols in 1..30usize,
        ) {
            let before = wrap(&text, cols);
            let after = wrap(&format!("{text}{more}"), cols);
            let kept = before.len() - 1;
            prop_assert_eq!(&after[..kept], &before[..kept]);
        }

        #[test]
        fn a_row_does_not_depend_on_the_rows_before_it(text in hostile::text(), cols in 1..30usize) {
            let rows = wrap(&text, cols);
            let starts: Vec<_> = clusters(&text).map(|cluster| cluster.at).collect();
            for (index, row) in rows.iter().enumerate() {
                if !starts.contains(&row.start) && row.start < text.len() {
                    continue; // inside a cluster that is wider than a row
                }
                let tail = wrap(text.get(row.start..).unwrap(), cols).into_iter();
                let tail: Vec<_> =
                    tail.map(|tail| tail.start + row.start..tail.end + row.start).collect();
                prop_assert_eq!(&tail, &rows[index..]);
            }
        }

        #[test]
        fn a_truncated_text_fits(text in hostile::text(), cols in 0..30usize) {
            prop_assert!(width(&truncate(&text, cols)) <= cols);
        }
    }

    #[test]
    fn a_beginning_has_whole_characters() {
        for (chars_max, expected) in [(0, ""), (1, "é"), (2, "éx"), (3, "éx日"), (4, "éx日")]
        {
            assert_eq!(beginning("éx日", chars_max), expected);
        }
    }

    #[test]
    fn bytes_are_two_digits_each() {
        assert_eq!(hex(&[]), "");
        assert_eq!(hex(&[0, 0x0f, 0xa0, 0xff]), "000fa0ff");
    }
}
