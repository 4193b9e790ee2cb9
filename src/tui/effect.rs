//! Everything that an update wants done outside, as values.

use crate::app::command::Command;
use crate::base::id::SessionId;

/// Something to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Something for the program to do.
    App(Command),
    /// Put a text on the clipboard; [`Msg::Copied`](crate::tui::msg::Msg::Copied) says how it went.
    Copy {
        /// The text, as it came from its source.
        text: String,
    },
    /// Tell the person although they may look elsewhere.
    Notify(Note),
    /// Draw another frame, though nothing came from outside since the last one.
    Draw,
    /// Write every cell of the screen again.
    Redraw,
    /// Give the terminal back and stop, until the shell brings the program to the front again.
    Suspend,
    /// End. What has to be kept is in the effects before this one.
    Quit {
        /// The session to name in the line that says how to come back.
        session: Option<SessionId>,
    },
}

/// One event, for a notice on the desktop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The session.
    pub session: SessionId,
    /// Its title, if it has one.
    pub title: Option<String>,
    /// What happened.
    pub about: NoteAbout,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoteAbout {
    /// A turn ended with an answer.
    Completed,
    /// A turn ended without one.
    Failed,
    /// Something waits for a decision.
    Permission,
    /// Something waits for an answer.
    Question,
}
