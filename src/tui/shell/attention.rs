//! Sequences that reach a person past the screen: the clipboard and notices, also through a
//! multiplexer.

use crossterm::Command as _;
use crossterm::clipboard::CopyToClipboard;

use crate::base::sanitize;
use crate::base::text;
use crate::tui::effect::{Note, NoteAbout};

/// How a person is told something who looks elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attention {
    /// Whether the desktop is theirs; over ssh it is somebody else's.
    pub desktop: bool,
    /// What stands between the program and the terminal.
    pub multiplexer: Multiplexer,
}

/// What stands between the program and the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Multiplexer {
    /// Nothing that has to be told to pass sequences on.
    None,
    /// tmux, which passes on what is wrapped.
    Tmux,
}

/// The longest text of a notice, in columns: terminals cut longer ones.
const WORDS_COLS_MAX: usize = 120;

impl Attention {
    /// The sequence of a notice: OSC 9, and the bell for terminals that do not know it.
    #[must_use]
    pub fn in_terminal(self, note: &Note) -> String {
        let (summary, body) = words(note);
        wrapped(&format!("\x1b]9;{summary}: {body}\x07"), self.multiplexer) + "\x07"
    }
}

/// The words of a notice: what happened, and where. Nothing in them is a control character.
#[must_use]
pub fn words(note: &Note) -> (String, String) {
    let what = match note.about {
        NoteAbout::Completed => "The turn has ended",
        NoteAbout::Failed => "The turn failed",
        NoteAbout::Permission => "A call waits for your decision",
        NoteAbout::Question => "A question waits for your answer",
    };
    let title = note.title.as_deref().unwrap_or("a session without a title");
    let title = sanitize::for_title(title);
    (what.to_owned(), text::truncate(&title, WORDS_COLS_MAX).into_owned())
}

/// The sequence that gives a text to the terminal's clipboard (OSC 52).
#[must_use]
pub fn copy(text: &str, multiplexer: Multiplexer) -> String {
    let mut sequence = String::new();
    // A string takes everything.
    CopyToClipboard::to_clipboard_from(text).write_ansi(&mut sequence).ok();
    wrapped(&sequence, multiplexer)
}

/// A sequence as the terminal behind a multiplexer gets it.
fn wrapped(sequence: &str, multiplexer: Multiplexer) -> String {
    match multiplexer {
        Multiplexer::None => sequence.to_owned(),
        Multiplexer::Tmux => {
            format!("\x1bPtmux;{}\x1b\\", sequence.replace('\x1b', "\x1b\x1b"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::id::SessionId;

    fn note(title: &str) -> Note {
        Note {
            session: SessionId::from("s"),
            title: Some(title.to_owned()),
            about: NoteAbout::Permission,
        }
    }

    #[test]
    fn a_hostile_title_ends_no_sequence() {
        let attention = Attention { desktop: false, multiplexer: Multiplexer::None };
        let told = attention.in_terminal(&note("a\x07\x1b]52;c;eA==\x07b\u{202e}"));
        assert_eq!(told.matches('\x1b').count(), 1);
        assert_eq!(told.matches('\x07').count(), 2);
        assert!(!told.contains('\u{202e}'));
    }

    #[test]
    fn a_copied_text_goes_whole_and_through_tmux() {
        assert_eq!(copy("hi\n", Multiplexer::None), "\x1b]52;c;aGkK\x1b\\");
        assert_eq!(copy("hi\n", Multiplexer::Tmux), "\x1bPtmux;\x1b\x1b]52;c;aGkK\x1b\x1b\\\x1b\\");
    }
}
