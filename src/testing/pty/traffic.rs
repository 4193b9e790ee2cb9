//! What a program wrote to its terminal, taken apart: which sequences, and what they left switched
//! on.

use std::collections::BTreeSet;

use vte::{Params, Parser, Perform};

/// A program's output in summary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Private modes (`CSI ? n h`) that were switched on and not off again.
    pub modes_on: BTreeSet<u16>,
    /// Keyboard flags that were pushed and not popped again.
    pub keyboard_pushes: i32,
    /// How often the whole screen was cleared.
    pub clears: usize,
    /// Every kind of control sequence that came: `CSI H`, `CSI ?2026 h`, `OSC 52`, `ESC \`,
    /// `control 9b`.
    pub kinds: BTreeSet<String>,
}

impl Traffic {
    /// Takes `raw` apart.
    #[must_use]
    pub fn of(raw: &[u8]) -> Self {
        let mut traffic = Self::default();
        Parser::new().advance(&mut traffic, raw);
        traffic
    }

    /// The operating system commands among the sequences.
    #[must_use]
    pub fn commands(&self) -> BTreeSet<&str> {
        self.kinds.iter().map(String::as_str).filter(|kind| kind.starts_with("OSC")).collect()
    }
}

impl Perform for Traffic {
    fn execute(&mut self, byte: u8) {
        self.kinds.insert(format!("control {byte:02x}"));
    }

    fn csi_dispatch(&mut self, params: &Params, marks: &[u8], _ignored: bool, end: char) {
        let mark = String::from_utf8_lossy(marks);
        let numbers: Vec<u16> = params.iter().flatten().copied().collect();
        let first = numbers.first().copied().unwrap_or_default();
        match (&*mark, end) {
            ("?", 'h') => self.modes_on.extend(&numbers),
            ("?", 'l') => self.modes_on.retain(|mode| !numbers.contains(mode)),
            (">", 'u') => self.keyboard_pushes += 1,
            ("<", 'u') => self.keyboard_pushes -= i32::from(first.max(1)),
            ("", 'J') if first > 1 => self.clears += 1,
            _ => {}
        }
        let kind = match (&*mark, end) {
            ("?", 'h' | 'l') => format!("CSI ?{first} {end}"),
            _ => format!("CSI {mark}{end}"),
        };
        self.kinds.insert(kind);
    }

    fn osc_dispatch(&mut self, params: &[&[u8]], _bell: bool) {
        let name = params.first().copied().unwrap_or_default();
        self.kinds.insert(format!("OSC {}", String::from_utf8_lossy(name)));
    }

    fn esc_dispatch(&mut self, marks: &[u8], _ignored: bool, end: u8) {
        let marks = String::from_utf8_lossy(marks);
        self.kinds.insert(format!("ESC {marks}{}", char::from(end)));
    }

    fn hook(&mut self, _: &Params, _: &[u8], _ignored: bool, end: char) {
        self.kinds.insert(format!("DCS {end}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_switched_on_and_not_off_is_told() {
        let traffic = Traffic::of(b"\x1b[?1049h\x1b[?25l\x1b[>5u\x1b[?2004;1004h\x1b[?2004l");
        assert_eq!(traffic.modes_on, [1004, 1049].into());
        assert_eq!(traffic.keyboard_pushes, 1);
        let traffic = Traffic::of(b"\x1b[?1049h\x1b[>5u\x1b[<u\x1b[?1049l");
        assert_eq!((traffic.modes_on, traffic.keyboard_pushes), ([].into(), 0));
    }

    #[test]
    fn every_kind_of_sequence_is_named() {
        let traffic =
            Traffic::of("\x1b[2J\x1b]52;c;aGk=\x07\x1b\\a\u{9b}\x08\x1bPq\x1b\\".as_bytes());
        let kinds: Vec<_> = traffic.kinds.iter().map(String::as_str).collect();
        assert_eq!(kinds, ["CSI J", "DCS q", "ESC \\", "OSC 52", "control 08", "control 9b"]);
        assert_eq!(traffic.clears, 1);
        assert_eq!(traffic.commands(), ["OSC 52"].into());
    }
}
