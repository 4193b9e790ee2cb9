//! Everything that can reach the screen from outside, as values.

use ratatui::layout::Size;

use crate::app::notice::Notice;
use crate::tui::input::Input;
use crate::tui::state::Now;

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Msg {
    /// Time has passed. Comes before every message that came at another time than the one before,
    /// and when [`State::next_deadline`](crate::tui::state::State::next_deadline) has come.
    Tick(Now),
    /// The terminal told something.
    Input(Input),
    /// The terminal has another size.
    Resize(Size),
    /// The program told something.
    Notice(Notice),
    /// A frame was drawn: it is on the screen, and is the layout that comes with this message.
    Drawn,
    /// Something that was wanted cannot be done by this terminal.
    Trouble(String),
    /// A text was copied, or was not.
    Copied(Copied),
}

/// Which way a copied text went. None of them can be checked but the last two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Copied {
    /// To the terminal (OSC 52), which may or may not keep it.
    Terminal,
    /// To the clipboard of the desktop.
    Desktop,
    /// Into a file, for want of a clipboard.
    File(String),
    /// Nowhere.
    Failed(String),
}
