//! What stood between the marks of a bracketed paste: its text, and what the terminal told
//! meanwhile.

use crate::tui::input::Input;
use crate::tui::key::{Key, KeyCode, Mods};
use crate::tui::shell::decode::csi;

/// The text of a paste, and the reports that came in the middle of it and are no part of it.
///
/// Lines end with `\n` afterwards. Some versions of tmux send a line end inside of a paste as the
/// key Ctrl-J in a sequence of its own, which would get lost.
pub(super) fn unwrap(body: &[u8]) -> (String, Vec<Input>) {
    let body = String::from_utf8_lossy(body);
    let mut text = String::with_capacity(body.len());
    let mut reports = Vec::new();
    let mut pieces = body.split("\x1b[");
    text.push_str(pieces.next().unwrap_or_default());
    for piece in pieces {
        let end = piece.find(|c: char| ('\x40'..='\x7e').contains(&c)).map_or(0, |last| last + 1);
        let (sequence, rest) = piece.split_at_checked(end).unwrap_or(("", piece));
        match csi::control(sequence.as_bytes(), Mods::NONE) {
            Some(Input::Key(key)) if is_line_end(key) => text.push('\n'),
            Some(report @ (Input::Mouse(_) | Input::FocusGained | Input::FocusLost)) => {
                reports.push(report);
            }
            // The mouse has moved without a button: no event, and no text either.
            None if sequence.starts_with('<') && sequence.ends_with(['M', 'm']) => {}
            _ => {
                text.push_str("\x1b[");
                text.push_str(sequence);
            }
        }
        text.push_str(rest);
    }
    (line_ends(&text), reports)
}

/// The text with `\n` at the end of every line.
pub(super) fn line_ends(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

fn is_line_end(key: Key) -> bool {
    key == Key::new(KeyCode::Char('j'), Mods::CTRL) || key == Key::plain(KeyCode::Enter)
}
