//! The composer: as high as its text, up to a third of the screen, below what waits to be delivered.

use ratatui::layout::{Position, Rect, Size};

use super::{Layout, TextAreaBox, focused_pane};
use crate::tui::line::Line;
use crate::tui::rows::typed::Typed;
use crate::tui::rows::unsent;
use crate::tui::state::activity::Work;
use crate::tui::state::conversation::{Load, Page};
use crate::tui::state::prompts::PromptKind;
use crate::tui::state::settings::Access;
use crate::tui::state::{Focus, State};
use crate::tui::theme::Ui;

/// The sign before the text, and the space around it.
const SIGN_COLS: u16 = 3;
/// What waits to be delivered takes at most so great a part of what is left above the text.
const UNSENT_PART: u16 = 3;
/// While a prompt is open, the draft steps back to so many rows.
const BESIDE_PROMPT_ROWS: u16 = 2;

/// The room that is left above the composer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// The room.
    pub(super) rect: Rect,
    /// How many rows the line above the composer takes.
    pub(super) rule_rows: u16,
}

/// Below this height an open question takes all of the pane.
const SCANT_ROWS: u16 = 4;

/// Lays the composer at the foot of `right`.
pub(super) fn lay(layout: &mut Layout, state: &State, right: Rect, size: Size) -> Room {
    let asks = state.prompts.open().is_some_and(|open| open.kind == PromptKind::Question);
    if asks && right.height < SCANT_ROWS {
        return Room { rect: right, rule_rows: 0 };
    }
    let rule_rows = layout.drawn.screen.rule_rows();
    let cols = right.width.saturating_sub(SIGN_COLS + 1).max(1);
    let editor = &state.composer.editor;
    let text = Typed::new(editor, cols);
    let open = state.prompts.open().is_some();
    let most = if open { BESIDE_PROMPT_ROWS } else { size.height / 3 };
    let most = most.min(right.height.saturating_sub(rule_rows + 1)).max(1);
    let rows = u16::try_from(text.row_count()).unwrap_or(u16::MAX).clamp(1, most);
    let free = right.height.saturating_sub(rule_rows + rows);
    let above =
        if open { Vec::new() } else { unsent::rows(state, right.width, free / UNSENT_PART) };
    let above_rows = u16::try_from(above.len()).unwrap_or(0);
    let height = rows + above_rows;
    let rect = Rect { y: right.bottom() - height, height, ..right };

    let first = text.first_row(usize::from(rows));
    let has_focus = focused_pane(state) == Some(Focus::Composer);
    let sign = if has_focus { Ui::FocusBar } else { Ui::Muted };
    let lines = (first..).zip(text.lines(first, usize::from(rows)));
    let typed = lines.map(|(row, line)| {
        let line = if editor.is_empty() { placeholder(state) } else { line };
        let line = match row {
            0 => Line::of(" › ", sign).with_line(line),
            _ => line.indented(usize::from(SIGN_COLS)),
        };
        line.cut(usize::from(right.width))
    });
    layout.drawn.composer = above.into_iter().chain(typed).collect();
    if has_focus {
        let caret = text.caret();
        let row = u16::try_from(caret.row.saturating_sub(first)).unwrap_or(0);
        let column = u16::try_from(caret.column).unwrap_or(u16::MAX).min(cols);
        let (x, y) = (rect.x + SIGN_COLS + column, rect.y + above_rows + row.min(rows - 1));
        layout.drawn.caret = Some(Position { x: x.min(rect.right() - 1), y });
    }
    layout.composer = Some(TextAreaBox { rect, cols: usize::from(cols) });
    Room { rect: Rect { height: right.height - height, ..right }, rule_rows }
}

fn is_unreadable(page: &Page) -> bool {
    matches!(page, Page::Session { load: Load::Unreadable(_), .. })
}

/// What stands in an empty composer.
fn placeholder(state: &State) -> Line {
    let text = match state.settings.access {
        _ if state.composer.is_sending() => "sending…",
        _ if is_unreadable(&state.conversation.page) => "this session cannot be gone on with",
        Access::ReadOnly => "read only",
        Access::Full if state.session().is_none() => "What is to be done?",
        Access::Full => match state.work() {
            Some(Work::Turn(_)) => "A message for the running turn",
            Some(Work::Compaction(_)) => "A message for after the summing up",
            None => "Reply",
        },
    };
    Line::of(text, Ui::Placeholder)
}
