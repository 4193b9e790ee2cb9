//! Output of tools as rows: their colours stay, and of all other controls only those that redraw a
//! line (return, backspace, erase in line) have an effect. None of them ever leaves this place.

use unicode_width::UnicodeWidthChar;
use vte::{Params, Parser, Perform};

use super::flat::Flat;
use super::{Colour, Mods, Role, Row, Style};
use crate::base::sanitize::Policy;

/// Tools align their output with tab stops this far apart.
const TAB_COLS: usize = 8;
/// How far a tool may move, or erase, in a line without writing; wider terminals are not in use.
const COLUMN_MAX: usize = 1000;

/// The rows of the output of a tool. A line end at the very end opens no row. All rows of one line
/// have its place in the output as their source.
#[must_use]
pub fn rows(output: &str, width: u16) -> Vec<Row> {
    let mut parser = Parser::new();
    let mut screen = Screen::default();
    let mut rows = Vec::new();
    let mut at = 0;
    for line in output.split_inclusive('\n') {
        let body = line.strip_suffix('\n').unwrap_or(line);
        let body = body.strip_suffix('\r').unwrap_or(body);
        parser.advance(&mut screen, body.as_bytes());
        rows.extend(screen.take_line(at).rows(width));
        at += line.len();
    }
    rows
}

/// One line of a terminal, and the pen.
#[derive(Default)]
struct Screen {
    cells: Vec<Cell>,
    /// The cell that is written next.
    column: usize,
    pen: Style,
}

/// What one column holds; the second column of a wide character holds nothing.
#[derive(Clone)]
struct Cell {
    char: Option<char>,
    /// Marks on the character; few have any.
    #[expect(clippy::box_collection, reason = "one word instead of three in every cell")]
    marks: Option<Box<String>>,
    style: Style,
}

const BLANK: Cell = Cell {
    char: Some(' '),
    marks: None,
    style: Style { role: Role::Text, mods: Mods::NONE, fg: None, bg: None },
};

impl Screen {
    /// The line as text, which stands at the byte `at`; the next one begins empty.
    fn take_line(&mut self, at: usize) -> Flat {
        let mut flat = Flat::new(Policy::Reading, at);
        for run in self.cells.chunk_by(|a, b| a.style == b.style) {
            let mut text = String::new();
            for cell in run {
                text.extend(cell.char);
                text.extend(cell.marks.as_deref().map(String::as_str));
            }
            let style = run.first().map_or(Style::default(), |cell| cell.style);
            flat.push(&text, at..at, style);
        }
        self.cells.clear();
        self.column = 0;
        flat
    }

    fn put(&mut self, c: char, cols: usize) {
        self.reserve(self.column + cols);
        let cells = self.cells.iter_mut().skip(self.column).take(cols);
        let chars = std::iter::once(Some(c)).chain(std::iter::repeat(None));
        for (cell, char) in cells.zip(chars) {
            *cell = Cell { char, marks: None, style: self.pen };
        }
        self.column += cols;
    }

    fn reserve(&mut self, len: usize) {
        if self.cells.len() < len {
            self.cells.resize(len, BLANK);
        }
    }

    /// Erases from the cursor (0), up to it (1), or the whole line (2).
    fn erase(&mut self, what: u16) {
        match what {
            0 => self.cells.truncate(self.column),
            1 => {
                let len = self.column.min(COLUMN_MAX) + 1;
                self.cells.iter_mut().take(len).for_each(|cell| *cell = BLANK);
            }
            _ => self.cells.clear(),
        }
    }
}

impl Perform for Screen {
    fn print(&mut self, c: char) {
        match c.width() {
            Some(0) | None => match self.cells.get_mut(self.column.saturating_sub(1)) {
                // A mark joins the character before it.
                Some(cell) if self.column > 0 => cell.marks.get_or_insert_default().push(c),
                _ => self.put(c, 1),
            },
            Some(cols) => self.put(c, cols),
        }
    }

    fn execute(&mut self, byte: u8) {
        match byte {
            b'\r' => self.column = 0,
            0x08 => self.column = self.column.saturating_sub(1),
            b'\t' => {
                let column = self.column.next_multiple_of(TAB_COLS);
                self.column = if column == self.column { column + TAB_COLS } else { column };
                self.reserve(self.column);
            }
            _ => {}
        }
    }

    fn csi_dispatch(&mut self, params: &Params, intermediates: &[u8], ignore: bool, action: char) {
        if ignore || !intermediates.is_empty() {
            return;
        }
        let first = params.iter().next().and_then(|param| param.first()).copied().unwrap_or(0);
        match action {
            'm' => self.pen = select(self.pen, params),
            'K' => self.erase(first),
            'G' => {
                self.column = usize::from(first.saturating_sub(1)).min(COLUMN_MAX);
                self.reserve(self.column);
            }
            _ => {}
        }
    }
}

/// What `SGR` makes of a style. Text can be made faint, but not invisible.
fn select(pen: Style, params: &Params) -> Style {
    let mut pen = pen;
    let mut params = params.iter();
    while let Some(param) = params.next() {
        let code = param.first().copied().unwrap_or(0);
        match code {
            0 => pen = Style::from(Role::Text),
            1 => pen = pen.with(Mods::BOLD),
            2 => pen = pen.with(Mods::DIM),
            3 => pen = pen.with(Mods::ITALIC),
            4 if param.get(1) == Some(&0) => pen.mods = pen.mods.without(Mods::UNDERLINE),
            4 | 21 => pen = pen.with(Mods::UNDERLINE),
            7 => pen = pen.with(Mods::REVERSED),
            9 => pen = pen.with(Mods::STRIKE),
            22 => pen.mods = pen.mods.without(Mods::BOLD | Mods::DIM),
            23 => pen.mods = pen.mods.without(Mods::ITALIC),
            24 => pen.mods = pen.mods.without(Mods::UNDERLINE),
            27 => pen.mods = pen.mods.without(Mods::REVERSED),
            29 => pen.mods = pen.mods.without(Mods::STRIKE),
            30..=37 | 90..=97 => pen.fg = basic(code),
            40..=47 | 100..=107 => pen.bg = basic(code - 10),
            38 => pen.fg = extended(param, &mut params).or(pen.fg),
            48 => pen.bg = extended(param, &mut params).or(pen.bg),
            39 => pen.fg = None,
            49 => pen.bg = None,
            _ => {}
        }
    }
    pen
}

/// The colour of 30 to 37 and 90 to 97.
fn basic(code: u16) -> Option<Colour> {
    let index = if code < 90 { code - 30 } else { code - 90 + 8 };
    u8::try_from(index).ok().map(Colour::Indexed)
}

/// `38;5;n`, `38:5:n`, `38;2;r;g;b`, `38:2:r:g:b` and `38:2::r:g:b`.
fn extended<'a>(param: &[u16], rest: &mut impl Iterator<Item = &'a [u16]>) -> Option<Colour> {
    let byte = |value: Option<&u16>| value.and_then(|&value| u8::try_from(value).ok());
    let rgb = |parts: &[u16]| {
        Some(Colour::Rgb(byte(parts.first())?, byte(parts.get(1))?, byte(parts.get(2))?))
    };
    if let Some((kind, parts)) = param.get(1..).and_then(<[u16]>::split_first) {
        return match kind {
            5 => byte(parts.first()).map(Colour::Indexed),
            2 => rgb(parts.get(parts.len().saturating_sub(3)..).unwrap_or_default()),
            _ => None,
        };
    }
    let mut next = || rest.next().and_then(|param| param.first()).copied();
    match next()? {
        5 => byte(next().as_ref()).map(Colour::Indexed),
        2 => rgb(&[next()?, next()?, next()?]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::base::sanitize::hostile;

    fn check(output: &str, drawn: &[&str]) {
        let rows = rows(output, 40);
        assert_eq!(rows.iter().map(Row::text).collect::<Vec<_>>(), drawn, "{output:?}");
    }

    fn styles(output: &str) -> Vec<(String, Style)> {
        let rows = rows(output, 40);
        let spans = rows.iter().flat_map(Row::spans);
        spans.map(|span| (span.text.to_owned(), span.style)).collect()
    }

    fn check_fg(output: &str, colour: Colour) {
        let style = Style { fg: Some(colour), ..Style::default() };
        assert_eq!(styles(output), [("x".to_owned(), style)], "{output:?}");
    }

    #[test]
    fn progress_overwrites_its_line() {
        check("10%\r 20%\r100%\ndone\r\n", &["100%", "done"]);
        check("downloading\r\u{1b}[Kok\n", &["ok"]);
        check("abc\u{8}\u{8}X\n", &["aXc"]);
        check("abc\u{1b}[2Kd\u{1b}[1Ge", &["e  d"]);
    }

    #[test]
    fn every_other_control_is_gone() {
        check(
            "\u{1b}]0;title\u{7}a\u{1b}[2Jb\u{1b}[5;5Hc\u{1b}Pq#0\u{1b}\\d\u{7}\u{b}\u{1b}(0e",
            &["abcde"],
        );
        check("\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\", &["link"]);
        check("a\u{9b}31mb\u{202e}", &["a31mb⟨U+202E⟩"]);
    }

    #[test]
    fn tabs_stand_where_the_tool_saw_them() {
        check("a\tb\n12345678\tc", &["a       b", "12345678        c"]);
    }

    #[test]
    fn colours_stay_in_every_spelling() {
        check_fg("\u{1b}[31mx\u{1b}[0m", Colour::Indexed(1));
        check_fg("\u{1b}[92mx", Colour::Indexed(10));
        check_fg("\u{1b}[38;5;200mx", Colour::Indexed(200));
        check_fg("\u{1b}[38:5:200mx", Colour::Indexed(200));
        check_fg("\u{1b}[38;2;1;2;3mx", Colour::Rgb(1, 2, 3));
        check_fg("\u{1b}[38:2:1:2:3mx", Colour::Rgb(1, 2, 3));
        check_fg("\u{1b}[38:2::1:2:3mx", Colour::Rgb(1, 2, 3));
    }

    #[test]
    fn the_pen_keeps_its_style_over_lines_and_conceals_nothing() {
        let red = Style { fg: Some(Colour::Indexed(1)), ..Style::default() };
        let expected = [("a".to_owned(), red.with(Mods::BOLD)), ("b".to_owned(), red)];
        assert_eq!(styles("\u{1b}[1;31;8ma\n\u{1b}[22mb"), expected);
    }

    #[test]
    fn wide_characters_take_two_columns_and_marks_none() {
        check("日本\rab", &["ab本"]);
        check("e\u{301}x\rz", &["zx"]);
    }

    proptest! {
        #[test]
        fn no_control_ever_leaves(text in hostile::text(), width in 1..40u16) {
            for row in rows(&text, width) {
                prop_assert!(!row.text().contains(char::is_control), "{row:?}");
                prop_assert!(row.width() <= width);
            }
        }
    }
}
