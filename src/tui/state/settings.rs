//! What was configured, checked and resolved before the screen begins.

use std::sync::Arc;

use jiff::tz::TimeZone;

use crate::tui::action::Action;
use crate::tui::keymap::Keymap;

/// What the configuration says about the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The keys.
    pub keymap: Arc<Keymap>,
    /// Whether anything may be changed.
    pub access: Access,
    /// Whether anything moves by itself.
    pub motion: Motion,
    /// When a notice goes to the desktop.
    pub notify: NotifyWhen,
    /// What becomes of a session that is deleted.
    pub deleted: Deleted,
    /// Where the clock on the wall stands.
    pub zone: TimeZone,
}

/// What the program may do with sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Everything.
    Full,
    /// Look at them: another process holds the work directory, or the person wished it so. Whatever
    /// would write is refused with a word.
    ReadOnly,
}

impl Access {
    /// Whether that may be done.
    #[must_use]
    pub fn allows(self, action: Action) -> bool {
        match self {
            Self::Full => true,
            Self::ReadOnly => !action.changes(),
        }
    }
}

/// What becomes of a session that is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deleted {
    /// It can be restored for some days.
    Kept,
    /// It is destroyed at once.
    Destroyed,
}

/// Whether anything moves by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Motion {
    /// Spinners turn.
    Full,
    /// Nothing moves.
    Reduced,
}

/// When a notice goes to the desktop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotifyWhen {
    /// While the window has not the focus.
    Unfocused,
    /// Always, except about what is on screen in a window with the focus.
    Always,
    /// Never.
    Never,
}
