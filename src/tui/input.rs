//! What the terminal tells the program, already decoded: keys, text, pastes, the mouse, focus and
//! answers to questions. The size comes by another way, a signal.

use crate::tui::key::{Key, Mods};

/// One thing that the terminal told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A key was pressed, or repeats. Releases are never told.
    Key(Key),
    /// Several characters at once: what an input method committed, or keys that came in one piece
    /// over a slow line. In a text it is one insertion; nothing that decides may follow from it.
    Text(String),
    /// Pasted text, one event whatever it holds. Lines end with `\n`; nothing else is cleaned.
    /// Never empty.
    Paste(String),
    /// The mouse did something that matters; moving without a button does not.
    Mouse(Mouse),
    /// The window has the focus now.
    FocusGained,
    /// The window has lost the focus.
    FocusLost,
    /// The answer to a question of the program.
    Reply(Reply),
}

/// An event of the mouse and the cell where it happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mouse {
    /// What happened.
    pub kind: MouseKind,
    /// The column of the cell, from 0.
    pub column: u16,
    /// The row of the cell, from 0.
    pub row: u16,
    /// The modifiers that were held.
    pub mods: Mods,
}

/// What the mouse did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MouseKind {
    /// A button went down.
    Press(Button),
    /// A button came up.
    Release(Button),
    /// The mouse moved to another cell with a button held.
    Drag(Button),
    /// The wheel turned away from the person.
    WheelUp,
    /// The wheel turned towards the person.
    WheelDown,
    /// The wheel was tilted left.
    WheelLeft,
    /// The wheel was tilted right.
    WheelRight,
}

/// A button of the mouse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Button {
    /// The first one.
    Left,
    /// The wheel.
    Middle,
    /// The second one.
    Right,
}

/// An answer of the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Primary device attributes: every terminal answers this, so all earlier questions that are
    /// still open will stay so.
    DeviceAttributes,
    /// The terminal speaks the kitty keyboard protocol; these flags are in force.
    KeyboardFlags(u8),
    /// The default colour of text.
    Foreground(Rgb),
    /// The default colour behind text.
    Background(Rgb),
}

/// A colour, eight bits for each part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rgb {
    /// Red.
    pub red: u8,
    /// Green.
    pub green: u8,
    /// Blue.
    pub blue: u8,
}
