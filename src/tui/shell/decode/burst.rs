//! Characters that come in one piece: a single key, committed text, or a paste without marks.

use std::mem;
use std::time::Duration;

use crate::tui::input::Input;
use crate::tui::key::{Key, KeyCode, Mods};
use crate::tui::shell::decode::paste;

/// Fewer characters in one piece are fast typing on a slow line and not a paste.
const PASTE_CHARS_MIN: usize = 3;

/// How long a piece that is a paste waits for the rest of it: a terminal hands over long ones in
/// parts.
const REST_WAIT: Duration = Duration::from_millis(30);

/// How long after a piece with a line end in it another line end still belongs to the same paste.
/// Sending half of a paste is worse than a line end too many.
const LINE_END_WAIT: Duration = Duration::from_millis(120);

/// How long after several characters in one piece, without a line end, a line end still belongs to
/// them: parts of a paste follow each other at once, while a key takes longer, also one that a
/// program presses.
const SAME_PIECE_WAIT: Duration = Duration::from_millis(2);

/// A piece that is longer is told in parts.
const BURST_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The characters that came since the terminal last fell silent.
#[derive(Clone, Debug, Default)]
pub(super) struct Burst {
    text: String,
    /// Until when a line end belongs to what came last.
    goes_on_until: Option<Duration>,
}

impl Burst {
    /// Whether `c` is one of the characters that a paste without marks consists of.
    pub(super) fn takes(c: char) -> bool {
        !c.is_control() || matches!(c, '\r' | '\n' | '\t')
    }

    /// Takes the next character.
    pub(super) fn push(&mut self, c: char, now: Duration, out: &mut Vec<Input>) {
        self.text.push(c);
        if self.text.len() >= BURST_BYTES_MAX {
            self.end(now, out);
        }
    }

    /// The terminal is silent: tells what came, unless it is a paste that may go on.
    pub(super) fn dry(&mut self, now: Duration, out: &mut Vec<Input>) {
        if !self.is_paste(now) {
            self.end(now, out);
        }
    }

    /// How long to wait for the rest of a paste; nothing if there is none.
    pub(super) fn wait(&self) -> Option<Duration> {
        (!self.text.is_empty()).then_some(REST_WAIT)
    }

    /// Tells what came, because something else came or nothing more does.
    pub(super) fn end(&mut self, now: Duration, out: &mut Vec<Input>) {
        if self.text.is_empty() {
            return;
        }
        let is_paste = self.is_paste(now);
        let text = mem::take(&mut self.text);
        if is_paste {
            self.goes_on_until = Some(now + LINE_END_WAIT);
        } else if count_chars(&text) >= PASTE_CHARS_MIN {
            self.goes_on_until = Some(now + SAME_PIECE_WAIT);
        }
        if is_paste {
            out.push(Input::Paste(paste::line_ends(&text)));
        } else {
            tell_keys(&text, out);
        }
    }

    fn is_paste(&self, now: Duration) -> bool {
        let goes_on = self.goes_on_until.is_some_and(|until| now <= until);
        let has_line_end = self.text.contains(['\r', '\n']);
        let has_tab_inside = self.text.trim_end_matches('\t').contains('\t');
        let enough = count_chars(&self.text) >= PASTE_CHARS_MIN;
        (has_line_end && (enough || goes_on)) || (has_tab_inside && enough)
    }
}

fn count_chars(text: &str) -> usize {
    text.chars().filter(|c| !c.is_control()).count()
}

fn tell_keys(text: &str, out: &mut Vec<Input>) {
    for run in text.split_inclusive(char::is_control) {
        let typed = run.trim_end_matches(char::is_control);
        let mut chars = typed.chars();
        match (chars.next(), chars.next()) {
            (Some(c), None) => out.push(Input::Key(Key::plain(KeyCode::Char(c)))),
            (Some(_), Some(_)) => out.push(Input::Text(typed.to_owned())),
            (None, _) => {}
        }
        out.extend(
            run.chars().filter(|c| c.is_control()).map(|c| Input::Key(control_key(c, Mods::NONE))),
        );
    }
}

/// The key that sends a control character, with Alt if ESC came before it.
pub(super) fn control_key(c: char, alt: Mods) -> Key {
    let ctrl =
        |c: u32| Key::new(KeyCode::Char(char::from_u32(c).unwrap_or(' ')), Mods::CTRL.with(alt));
    match u32::from(c) {
        0x00 => ctrl(u32::from(' ')),
        0x1b => Key::new(KeyCode::Esc, alt),
        0x7f => Key::new(KeyCode::Backspace, alt),
        0x1f => ctrl(u32::from('/')),
        code @ 0x01..=0x1a => ctrl(code + 0x60),
        code => ctrl(code + 0x40),
    }
}
