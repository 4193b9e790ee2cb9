//! A terminal as the program sees it: it shows what is written, whole frames at a time, and answers
//! questions.

use std::num::NonZeroU16;
use std::time::Duration;

use memchr::memmem;
use vt100::{Callbacks, Parser, Screen};

use crate::testing::pty::window::cells;

const FRAME_BEGIN: &[u8] = b"\x1b[?2026h";
const FRAME_END: &[u8] = b"\x1b[?2026l";

/// Which questions a terminal answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Manners {
    /// As most do: what it is, and its colours (light on dark).
    #[default]
    Usual,
    /// Also which keyboard flags are in force, so that they can be switched on.
    Keyboard,
    /// None at all.
    Silent,
}

/// The terminal.
pub(super) struct Emulator {
    parser: Parser<Answers>,
    raw: Vec<u8>,
    /// How much of `raw` is on the screen; the rest belongs to a frame that is not complete.
    shown: usize,
    frames: Vec<Frame>,
}

/// A synchronised frame that is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// When it was, since the program was started.
    pub at: Duration,
    /// Where it ends in what the program has written.
    end: usize,
}

impl Emulator {
    pub(super) fn new((columns, rows): (NonZeroU16, NonZeroU16), manners: Manners) -> Self {
        let answers = Answers { manners, given: Vec::new() };
        let parser = Parser::new_with_callbacks(rows, columns, 0, answers);
        Self { parser, raw: Vec::new(), shown: 0, frames: Vec::new() }
    }

    /// Shows `bytes`, which came at `at`; gives what the terminal answers.
    pub(super) fn take(&mut self, bytes: &[u8], at: Duration) -> Vec<u8> {
        // A mark may have begun in what came before.
        let from = self.raw.len().saturating_sub(FRAME_END.len() - 1);
        self.raw.extend_from_slice(bytes);
        let news = self.raw.get(from..).unwrap_or_default();
        let ends = memmem::find_iter(news, FRAME_END).map(|begin| from + begin + FRAME_END.len());
        self.frames.extend(ends.map(|end| Frame { at, end }));
        let waiting = self.raw.get(self.shown..).unwrap_or_default();
        let whole = match (memmem::rfind(waiting, FRAME_BEGIN), memmem::rfind(waiting, FRAME_END)) {
            (Some(begin), end) if end.is_none_or(|end| end < begin) => begin,
            _ => waiting.len(),
        };
        let ready = waiting.get(..whole).unwrap_or_default();
        self.parser.process(ready);
        self.shown += whole;
        std::mem::take(&mut self.parser.callbacks_mut().given)
    }

    pub(super) fn resize(&mut self, columns: u16, rows: u16) {
        self.parser.set_size(cells(rows), cells(columns));
    }

    /// Columns and rows.
    pub(super) fn size(&self) -> (u16, u16) {
        let (rows, columns) = self.screen().size();
        (columns.get(), rows.get())
    }

    pub(super) fn screen(&self) -> &Screen {
        self.parser.screen()
    }

    pub(super) fn raw(&self) -> &[u8] {
        &self.raw
    }

    pub(super) fn frames(&self) -> &[Frame] {
        &self.frames
    }

    /// The first frame that wrote `text` in one go.
    pub(super) fn frame_of(&self, text: &str) -> Option<Frame> {
        let at = memmem::find(&self.raw, text.as_bytes())?;
        self.frames.iter().find(|frame| frame.end > at).copied()
    }
}

/// Answers what the emulator itself leaves to others.
struct Answers {
    manners: Manners,
    given: Vec<u8>,
}

impl Answers {
    fn give(&mut self, answer: &str) {
        if self.manners != Manners::Silent {
            self.given.extend_from_slice(answer.as_bytes());
        }
    }
}

impl Callbacks for Answers {
    fn unhandled_csi(
        &mut self,
        _: &mut Screen,
        mark: Option<u8>,
        _: Option<u8>,
        _: &[&[u16]],
        end: char,
    ) {
        match (mark, end) {
            (None, 'c') => self.give("\x1b[?62;22c"),
            (Some(b'?'), 'u') if self.manners == Manners::Keyboard => self.give("\x1b[?0u"),
            _ => {}
        }
    }

    fn unhandled_osc(&mut self, _: &mut Screen, parts: &[&[u8]]) {
        match parts {
            [b"10", b"?"] => self.give("\x1b]10;rgb:dddd/dddd/dddd\x1b\\"),
            [b"11", b"?"] => self.give("\x1b]11;rgb:1111/1111/1111\x1b\\"),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn emulator(manners: Manners) -> Emulator {
        Emulator::new((cells(20), cells(3)), manners)
    }

    #[test]
    fn a_frame_is_shown_once_it_is_complete() {
        let mut emulator = emulator(Manners::Usual);
        let ms = Duration::from_millis;
        for (bytes, at, shown) in [
            ("a\x1b[?2026hb", 1, "a"),
            ("c\x1b[?20", 2, "a"),
            ("26l", 3, "abc"),
            ("\x1b[?2026hd\x1b[?2026l\x1b[?2026he", 4, "abcd"),
            ("\x1b[?2026lf", 5, "abcdef"),
        ] {
            emulator.take(bytes.as_bytes(), ms(at));
            assert_eq!(emulator.screen().contents().trim_end(), shown, "{bytes:?}");
        }
        let times: Vec<_> = emulator.frames().iter().map(|frame| frame.at).collect();
        assert_eq!(times, [ms(3), ms(4), ms(5)]);
        assert_eq!(emulator.frame_of("c").map(|frame| frame.at), Some(ms(3)));
        assert_eq!(emulator.frame_of("f"), None);
    }

    #[test]
    fn questions_are_answered_by_those_who_have_manners() {
        let questions = b"\x1b[?u\x1b]10;?\x07\x1b]11;?\x07\x1b[c";
        let colors = "\x1b]10;rgb:dddd/dddd/dddd\x1b\\\x1b]11;rgb:1111/1111/1111\x1b\\\x1b[?62;22c";
        for (manners, answers) in [
            (Manners::Usual, colors.to_owned()),
            (Manners::Keyboard, format!("\x1b[?0u{colors}")),
            (Manners::Silent, String::new()),
        ] {
            let given = emulator(manners).take(questions, Duration::ZERO);
            assert_eq!(String::from_utf8_lossy(&given), answers);
        }
    }
}
