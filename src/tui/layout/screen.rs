//! How the screen is divided into panes.

use ratatui::layout::{Rect, Size};

use crate::tui::state::{Focus, State};

/// Below this a plain notice stands in place of the program (`design/experience.md`, screen).
pub(in crate::tui) const SMALLEST: Size = Size { width: 20, height: 5 };
/// Below this width the list takes the whole screen while it has the focus.
const WIDE_COLS: u16 = 80;
/// Below this lines around the panes would take too much of the room.
const FRAMED: Size = Size { width: 60, height: 14 };
/// The list beside the conversation takes a quarter of the screen, within these bounds.
const LIST_COLS: (u16, u16) = (22, 34);
/// Below this height no line stands between the conversation and what is below it.
const RULED_ROWS: u16 = 8;

/// How the screen is divided; all parts without their borders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::tui) struct Screen {
    /// All of it.
    pub(in crate::tui) area: Rect,
    /// What stands between the panes.
    pub(in crate::tui) borders: Borders,
    /// The session list.
    pub(in crate::tui) list: Option<Rect>,
    /// The conversation, the prompt and the composer; not there where the list takes all.
    pub(in crate::tui) right: Option<Rect>,
    /// The status line.
    pub(in crate::tui) status: Rect,
}

/// What stands between the panes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::tui) enum Borders {
    /// Lines around each of them, with titles in them.
    Framed,
    /// A title above each, and a line between the conversation and what is below it.
    Ruled,
    /// Titles only.
    #[default]
    Bare,
}

impl Screen {
    /// Divides a screen of this size; nothing where it is too small.
    #[must_use]
    pub(in crate::tui) fn split(state: &State, size: Size) -> Option<Self> {
        if size.width < SMALLEST.width || size.height < SMALLEST.height {
            return None;
        }
        let area = Rect::new(0, 0, size.width, size.height);
        let borders = match size {
            Size { width, height } if width >= FRAMED.width && height >= FRAMED.height => {
                Borders::Framed
            }
            Size { height, .. } if height >= RULED_ROWS => Borders::Ruled,
            _ => Borders::Bare,
        };
        let (body, status) = match borders {
            Borders::Framed => (
                Rect::new(1, 1, size.width - 2, size.height - 4),
                Rect::new(1, size.height - 2, size.width - 2, 1),
            ),
            Borders::Ruled | Borders::Bare => (
                Rect::new(0, 1, size.width, size.height - 2),
                Rect::new(0, size.height - 1, size.width, 1),
            ),
        };
        let is_wide = size.width >= WIDE_COLS;
        let has_focus = state.focus == Focus::List;
        let (list, right) = match (is_wide, has_focus) {
            (true, _) if has_focus || !state.list.settings.hidden => {
                let cols = (size.width / 4).clamp(LIST_COLS.0, LIST_COLS.1);
                let list = Rect { width: cols, ..body };
                let x = list.right() + 1;
                (Some(list), Some(Rect { x, width: body.right() - x, ..body }))
            }
            (false, true) => (Some(body), None),
            (true | false, _) => (None, Some(body)),
        };
        Some(Self { area, borders, list, right, status })
    }

    /// How many rows a line between two parts of a pane takes.
    #[must_use]
    pub(in crate::tui) fn rule_rows(&self) -> u16 {
        u16::from(self.borders != Borders::Bare)
    }
}
