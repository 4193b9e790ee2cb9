//! Painting: a frame becomes the bytes that turn what the terminal shows into it.
//!
//! Not ratatui's `Terminal`, which clears the screen on a resize and asks for the cursor through
//! crossterm's reader. Not `Buffer::diff` either: it leaves the cells beside a wide character to
//! the terminal, and terminals do not agree on them.

use std::io;

use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::queue;
use crossterm::style::force_color_output;
use crossterm::terminal::{BeginSynchronizedUpdate, EndSynchronizedUpdate};
use ratatui::backend::{Backend, CrosstermBackend};
use ratatui::buffer::{Buffer, Cell, CellWidth};
use ratatui::layout::Position;

/// What stands where a cell cannot be drawn: half of a wide character, or nothing at all.
static BLANK: Cell = Cell::EMPTY;

/// Knows what one terminal shows, and writes only what differs.
#[derive(Debug, Default)]
pub struct Painter {
    shown: Buffer,
    caret: Option<Position>,
    /// Whether `shown` can be relied on.
    known: bool,
    bytes: Vec<u8>,
}

impl Painter {
    /// For a terminal that may show anything.
    #[must_use]
    pub fn new() -> Self {
        // The theme decides about colours, `NO_COLOR` included. Left to itself, crossterm would
        // write sequences without numbers then, which end bold and underline too.
        force_color_output(true);
        Self::default()
    }

    /// The terminal may show anything: the next frame writes every cell.
    pub fn forget(&mut self) {
        self.known = false;
    }

    /// Writes `frame`, whose area begins at 0, 0, with the cursor at `caret` or hidden. One write,
    /// inside of one synchronised update; none if nothing differs. Nothing is cleared before. A
    /// frame of another size than the last is written whole.
    ///
    /// # Errors
    ///
    /// Those of `to`; the next frame is then written whole.
    pub fn paint(
        &mut self,
        frame: &Buffer,
        caret: Option<Position>,
        to: &mut impl io::Write,
    ) -> io::Result<()> {
        let whole = !self.known || self.shown.area != frame.area;
        let cells = if whole { every_cell(frame) } else { self.differing(frame, caret) };
        if !whole && cells.is_empty() && caret == self.caret {
            return Ok(());
        }
        self.bytes.clear();
        queue!(self.bytes, BeginSynchronizedUpdate)?;
        if whole || self.caret.is_some() {
            queue!(self.bytes, Hide)?;
        }
        if !cells.is_empty() {
            let mut drawn = Vec::new();
            CrosstermBackend::new(&mut drawn).draw(cells.into_iter())?;
            classic_colours(&String::from_utf8_lossy(&drawn), &mut self.bytes);
        }
        if let Some(Position { x, y }) = caret {
            queue!(self.bytes, MoveTo(x, y), Show)?;
        }
        queue!(self.bytes, EndSynchronizedUpdate)?;
        self.known = false;
        to.write_all(&self.bytes)?;
        to.flush()?;
        self.shown.clone_from(frame);
        self.caret = caret;
        self.known = true;
        Ok(())
    }

    /// What differs. A row that has or had a wide character is written whole, and so is that of
    /// the caret, where an input method may have left traces.
    fn differing<'f>(&self, frame: &'f Buffer, caret: Option<Position>) -> Vec<Update<'f>> {
        let mut cells = Vec::new();
        for (y, (new, old)) in (0..).zip(rows(frame).zip(rows(&self.shown))) {
            if new == old {
                continue;
            }
            if caret.is_some_and(|caret| caret.y == y) || !is_narrow(new) || !is_narrow(old) {
                whole_row(y, new, &mut cells);
            } else {
                let changed = (0..).zip(new.iter().zip(old)).filter(|(_, (new, old))| new != old);
                cells.extend(changed.map(|(x, (new, _))| (x, y, new)));
            }
        }
        cells
    }
}

/// The first 16 colours as every terminal knows them, also one that has no more: crossterm asks for
/// them as the first of 256.
fn classic_colours(drawn: &str, out: &mut Vec<u8>) {
    const CSI: &str = "\x1b[";
    let mut sequences = drawn.split(CSI);
    out.extend(sequences.next().unwrap_or_default().as_bytes());
    for sequence in sequences {
        out.extend(CSI.as_bytes());
        let end = sequence.find(|c: char| !c.is_ascii_digit() && c != ';');
        let (parameters, rest) = sequence.split_at(end.unwrap_or(sequence.len()));
        if rest.starts_with('m') {
            out.extend(classic(parameters).join(";").as_bytes());
        } else {
            out.extend(parameters.as_bytes());
        }
        out.extend(rest.as_bytes());
    }
}

/// The parameters of a sequence that sets colours.
fn classic(parameters: &str) -> Vec<String> {
    let mut given = parameters.split(';');
    let mut said = Vec::new();
    while let Some(first) = given.next() {
        let ground = match first {
            "38" => 30,
            "48" => 40,
            _ => {
                said.push(first.to_owned());
                continue;
            }
        };
        let kind = given.next().unwrap_or_default();
        let values = if kind == "2" { 3 } else { 1 };
        let values: Vec<&str> = given.by_ref().take(values).collect();
        match (kind, values.first().and_then(|index| index.parse::<u8>().ok())) {
            ("5", Some(index @ 0..8)) => said.push((ground + index).to_string()),
            ("5", Some(index @ 8..16)) => said.push((ground + 60 + index - 8).to_string()),
            _ => {
                said.extend([first, kind].map(str::to_owned));
                said.extend(values.into_iter().map(str::to_owned));
            }
        }
    }
    said
}

type Update<'f> = (u16, u16, &'f Cell);

fn rows(buffer: &Buffer) -> impl Iterator<Item = &[Cell]> {
    buffer.content.chunks(usize::from(buffer.area.width).max(1))
}

fn is_narrow(row: &[Cell]) -> bool {
    row.iter().all(|cell| cell.cell_width() == 1)
}

fn every_cell(frame: &Buffer) -> Vec<Update<'_>> {
    let mut cells = Vec::with_capacity(frame.content.len());
    for (y, row) in (0..).zip(rows(frame)) {
        whole_row(y, row, &mut cells);
    }
    cells
}

/// Every cell of a row, but for those that a wide character covers.
fn whole_row<'f>(y: u16, row: &'f [Cell], cells: &mut Vec<Update<'f>>) {
    let mut covered = 0;
    for (x, cell) in (0..).zip(row) {
        if covered > 0 {
            covered -= 1;
            continue;
        }
        let behind = row.get(usize::from(x) + 1..).unwrap_or_default();
        let width = usize::from(cell.cell_width());
        if width == 0 || width > behind.len() + 1 {
            cells.push((x, y, &BLANK));
            continue;
        }
        covered = width - 1;
        // Terminals do not agree how wide a sequence such as an emoji with a selector is. Where
        // it turns out narrow, the cells behind it must not keep what they showed.
        if covered > 0 && cell.symbol().chars().nth(1).is_some() {
            cells.extend((x + 1..).zip(behind.iter().take(covered)).map(|(x, _)| (x, y, &BLANK)));
        }
        cells.push((x, y, cell));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use ratatui::layout::Rect;
    use ratatui::style::{Color, Modifier, Style};
    use std::num::NonZeroU16;

    const SIZE: (u16, u16) = (6, 2);

    fn terminal((columns, rows): (u16, u16)) -> vt100::Parser {
        let size = |cells| NonZeroU16::new(cells).expect("the test has a screen");
        vt100::Parser::new(size(rows), size(columns), 0)
    }

    fn frame(lines: &[&str]) -> Buffer {
        let mut frame = Buffer::empty(Rect::new(0, 0, SIZE.0, SIZE.1));
        for (y, line) in (0..).zip(lines) {
            frame.set_string(0, y, line, Style::new());
        }
        frame
    }

    fn painted(painter: &mut Painter, frame: &Buffer, caret: Option<(u16, u16)>) -> String {
        let mut bytes = Vec::new();
        painter.paint(frame, caret.map(Position::from), &mut bytes).expect("memory takes all");
        String::from_utf8(bytes).expect("frames are UTF-8")
    }

    /// A painter whose terminal shows `lines`.
    fn showing(lines: &[&str], caret: Option<(u16, u16)>) -> Painter {
        let mut painter = Painter::new();
        painted(&mut painter, &frame(lines), caret);
        painter
    }

    #[test]
    fn the_first_16_colours_are_asked_for_as_every_terminal_knows_them() {
        let check = |colours: (Color, Color), expected: &str| {
            let mut frame = frame(&[]);
            let style = Style::new().fg(colours.0).bg(colours.1).add_modifier(Modifier::BOLD);
            frame.set_string(0, 0, "a", style);
            let drawn = painted(&mut Painter::new(), &frame, None);
            let (before, _) = drawn.split_once('a').expect("it is drawn");
            assert!(before.ends_with(expected), "{before:?}");
        };
        check((Color::Indexed(1), Color::Indexed(4)), "31;44m");
        check((Color::Indexed(9), Color::Indexed(15)), "91;107m");
        check((Color::Indexed(111), Color::Indexed(0)), "38;5;111;40m");
        check((Color::Rgb(38, 5, 1), Color::Indexed(236)), "38;2;38;5;1;48;5;236m");
    }

    const RESET: &str = "\x1b[39m\x1b[49m\x1b[59m\x1b[0m";

    #[test]
    fn the_first_frame_writes_every_cell_and_clears_nothing() {
        let first = painted(&mut Painter::new(), &frame(&["ab"]), Some((2, 0)));
        let cells = "\x1b[1;1Hab    \x1b[2;1H      ";
        assert_eq!(
            first,
            format!("\x1b[?2026h\x1b[?25l{cells}{RESET}\x1b[1;3H\x1b[?25h\x1b[?2026l")
        );
    }

    #[test]
    fn later_frames_write_what_differs_and_put_the_cursor_at_the_caret() {
        let mut painter = showing(&["ab", "cd"], Some((2, 0)));
        let next = painted(&mut painter, &frame(&["ab", "cx"]), Some((2, 0)));
        let cells = format!("\x1b[2;2Hx{RESET}");
        assert_eq!(next, format!("\x1b[?2026h\x1b[?25l{cells}\x1b[1;3H\x1b[?25h\x1b[?2026l"));
        let moved = painted(&mut painter, &frame(&["ab", "cx"]), Some((1, 0)));
        assert_eq!(moved, "\x1b[?2026h\x1b[?25l\x1b[1;2H\x1b[?25h\x1b[?2026l");
        let hidden = painted(&mut painter, &frame(&["ab", "cx"]), None);
        assert_eq!(hidden, "\x1b[?2026h\x1b[?25l\x1b[?2026l");
    }

    #[test]
    fn an_equal_frame_writes_nothing() {
        let mut painter = showing(&["ab"], Some((2, 0)));
        assert_eq!(painted(&mut painter, &frame(&["ab"]), Some((2, 0))), "");
    }

    #[test]
    fn the_row_of_the_caret_is_written_whole_when_it_changes() {
        let mut painter = showing(&["ab"], Some((2, 0)));
        let next = painted(&mut painter, &frame(&["abc"]), Some((3, 0)));
        assert!(next.contains("\x1b[1;1Habc   "), "{next:?}");
    }

    #[test]
    fn after_a_redraw_or_a_resize_every_cell_is_written() {
        let mut painter = showing(&["ab"], None);
        painter.forget();
        let again = painted(&mut painter, &frame(&["ab"]), None);
        assert!(again.contains("\x1b[1;1Hab    \x1b[2;1H      "), "{again:?}");
        let smaller = Buffer::empty(Rect::new(0, 0, 2, 1));
        let resized = painted(&mut painter, &smaller, None);
        assert!(resized.contains("\x1b[1;1H  "), "{resized:?}");
    }

    #[test]
    fn half_a_wide_character_is_a_blank() {
        let mut cut = frame(&["ab"]);
        cut[(5, 0)].set_symbol("漢");
        cut[(1, 0)].set_symbol("");
        let painted = painted(&mut Painter::new(), &cut, None);
        assert!(painted.contains("\x1b[1;1Ha     \x1b[2;1H"), "{painted:?}");
    }

    #[test]
    fn a_frame_is_one_write_and_after_a_failed_one_every_cell_is_written() {
        struct Broken(usize);
        impl io::Write for Broken {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                self.0 += 1;
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut painter = showing(&["ab"], None);
        let mut broken = Broken(0);
        assert!(painter.paint(&frame(&["x"]), None, &mut broken).is_err());
        assert_eq!(broken.0, 1);
        let again = painted(&mut painter, &frame(&["x"]), None);
        assert!(again.contains("\x1b[1;1Hx     \x1b[2;1H      "), "{again:?}");
    }

    fn style() -> impl Strategy<Value = Style> {
        let color = prop::sample::select(vec![Color::Reset, Color::Red, Color::Indexed(200)]);
        let modifier = prop::sample::select(vec![
            Modifier::empty(),
            Modifier::BOLD,
            Modifier::DIM,
            Modifier::UNDERLINED | Modifier::BOLD,
            Modifier::REVERSED,
            Modifier::ITALIC,
        ]);
        (color.clone(), color, modifier)
            .prop_map(|(fg, bg, modifier)| Style::new().fg(fg).bg(bg).add_modifier(modifier))
    }

    fn text() -> impl Strategy<Value = String> {
        let piece = prop::sample::select(vec![
            "a",
            "b",
            " ",
            "é",
            "漢",
            "字",
            "e\u{301}",
            "─",
            "👍",
            "❤\u{fe0f}",
        ]);
        prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
    }

    /// A frame of some size, with texts written over each other.
    fn any_frame() -> impl Strategy<Value = Buffer> {
        let size = prop::sample::select(vec![(6, 2), (6, 2), (6, 2), (9, 4), (3, 1)]);
        let texts = prop::collection::vec((0..9u16, 0..4u16, text(), style()), 0..6);
        (size, texts).prop_map(|((width, height), texts)| {
            let mut frame = Buffer::empty(Rect::new(0, 0, width, height));
            for (x, y, text, style) in texts {
                if x < width && y < height {
                    frame.set_string(x, y, text, style);
                }
            }
            frame
        })
    }

    fn cells_of(screen: &vt100::Screen) -> Vec<vt100::Cell> {
        let (rows, columns) = screen.size();
        (0..rows.get())
            .flat_map(|row| (0..columns.get()).map(move |column| (row, column)))
            .map(|(row, column)| screen.cell(row, column).expect("inside").clone())
            .collect()
    }

    proptest! {
        #[test]
        fn the_screen_after_any_frames_is_that_of_a_full_repaint(
            frames in prop::collection::vec((any_frame(), any::<bool>()), 1..8)
        ) {
            let (mut painter, mut shown) = (Painter::new(), terminal(SIZE));
            for (frame, forget) in frames {
                let area = frame.area;
                let caret = Some(Position::new(area.width / 2, area.height - 1));
                let fresh_size = terminal((area.width, area.height));
                let (rows, columns) = fresh_size.screen().size();
                shown.screen_mut().set_size(rows, columns);
                if forget {
                    painter.forget();
                }
                let mut bytes = Vec::new();
                painter.paint(&frame, caret, &mut bytes).expect("memory takes all");
                shown.process(&bytes);

                let mut fresh = fresh_size;
                let mut bytes = Vec::new();
                Painter::new().paint(&frame, caret, &mut bytes).expect("memory takes all");
                fresh.process(&bytes);

                prop_assert_eq!(cells_of(shown.screen()), cells_of(fresh.screen()));
                prop_assert_eq!(shown.screen().cursor_position(), fresh.screen().cursor_position());
                let text = fresh.screen().contents();
                let expected: Vec<String> = lines(&frame);
                let got: Vec<&str> = text.lines().collect();
                for (row, line) in expected.iter().enumerate() {
                    prop_assert_eq!(got.get(row).copied().unwrap_or("").trim_end(), line.trim_end());
                }
            }
        }
    }

    /// The text of a frame, without the cells that wide characters cover.
    fn lines(frame: &Buffer) -> Vec<String> {
        let text = |row: &[Cell]| {
            let mut covered = 0;
            let symbols = row.iter().filter(|cell| {
                let is_covered = covered > 0;
                covered = if is_covered { covered - 1 } else { cell.cell_width() - 1 };
                !is_covered
            });
            symbols.map(Cell::symbol).collect()
        };
        rows(frame).map(text).collect()
    }
}
