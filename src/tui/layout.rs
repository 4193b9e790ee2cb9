//! Where everything stood in the last frame: what page moves, pins and clicks need to know.
//!
//! [`layout`] makes it, from the state alone; the view draws by it and `update` reads it. It walks
//! outwards from where the person reads and looks at nothing that is out of sight.

mod composer;
pub(super) mod list;
mod overlay;
mod prompt;
pub(super) mod screen;
mod timeline;

use ratatui::layout::{Position, Rect, Size};

use crate::base::id::{SessionId, ToolCallId};
use crate::tui::cache::Cache;
use crate::tui::line::Line;
use crate::tui::mark::Mark;
use crate::tui::state::conversation::Reading;
use crate::tui::state::item::ItemId;
use crate::tui::state::list::waiting::WaitingCall;
use crate::tui::state::prompts::Room;
use crate::tui::state::{Focus, State};
use crate::tui::theme::Tint;
use screen::Screen;

/// See the module. A part that is not on the screen is not there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// The session list.
    pub list: Option<ListArea>,
    /// The conversation.
    pub timeline: Option<TimelineArea>,
    /// The prompt, docked or open.
    pub prompt: Option<PromptArea>,
    /// The composer.
    pub composer: Option<TextAreaBox>,
    /// What lies over everything else.
    pub overlay: Option<OverlayArea>,
    /// Whether anything in sight turns.
    pub has_spinner: bool,
    /// What stands there, for the view.
    pub(super) drawn: Drawn,
}

/// What the view draws: the rows that are in sight.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Drawn {
    /// How the screen is divided.
    pub(super) screen: Screen,
    /// The heads of days in the session list, each with its row.
    pub(super) days: Vec<(u16, String)>,
    /// The rows of the conversation, or of what stands in its place.
    pub(super) timeline: Vec<Line>,
    /// The rows of the prompt.
    pub(super) prompt: Vec<Line>,
    /// The rows of the composer.
    pub(super) composer: Vec<Line>,
    /// What lies over everything else.
    pub(super) overlay: Option<Sheet>,
    /// Where the caret stands, or the cursor of what is no text.
    pub(super) caret: Option<Position>,
}

/// What lies over everything else: a frame with a title and rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sheet {
    /// With its border.
    pub(super) rect: Rect,
    /// In the border above.
    pub(super) title: String,
    /// The rows in sight.
    pub(super) lines: Vec<Line>,
    /// In the border below: the keys.
    pub(super) hints: Line,
}

/// Finds where everything stands on a screen of this size.
#[must_use]
pub fn layout(state: &State, size: Size, cache: &mut Cache) -> Layout {
    let mut layout = Layout::default();
    let Some(screen) = Screen::split(state, size) else { return layout };
    layout.drawn.screen = screen;
    if let Some(list) = screen.list {
        list::lay(&mut layout, state, list);
    }
    if let Some(right) = screen.right {
        let below = composer::lay(&mut layout, state, right, size);
        let below = prompt::lay(&mut layout, state, &below, cache);
        if below.height > 0 {
            timeline::lay(&mut layout, state, below, cache);
        }
    }
    overlay::lay(&mut layout, state, size, cache);
    let list = layout.list.as_ref().is_some_and(|area| list::has_spinner(area, state));
    layout.has_spinner = list || layout.drawn.has_spinner();
    layout
}

impl Drawn {
    fn has_spinner(&self) -> bool {
        let sheet = self.overlay.iter().flat_map(|sheet| &sheet.lines);
        let lines = self.timeline.iter().chain(&self.prompt).chain(&self.composer).chain(sheet);
        let mut spans = lines.flat_map(Line::spans);
        spans.any(|span| span.tint == Tint::Mark(Mark::Running))
    }
}

/// Which pane has the focus; none while something lies over all of them.
pub(super) fn focused_pane(state: &State) -> Option<Focus> {
    state.overlay.is_none().then_some(state.focus)
}

/// The session list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListArea {
    /// Where its rows are, without heading and border; headings of days take rows too.
    pub rect: Rect,
    /// The sessions in sight, from the top.
    pub rows: Vec<ListRow>,
}

/// A session in sight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListRow {
    /// The row of the area, from 0.
    pub row: u16,
    /// The session.
    pub session: SessionId,
}

/// The conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimelineArea {
    /// Where its rows are.
    pub rect: Rect,
    /// The place that was asked for when this was laid out.
    pub reading: Reading,
    /// What is in sight, from the top; empty only if there is no item.
    pub items: Vec<ItemArea>,
    /// What the first row shows.
    pub top: Option<Top>,
    /// The item that keys act on: the one that has the focus, or if that is not in sight the nearest
    /// one that is.
    pub focus: Option<ItemId>,
    /// Whether the last row of the conversation is in sight.
    pub is_at_bottom: bool,
}

/// An item in sight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemArea {
    /// Which.
    pub item: ItemId,
    /// Its first row in sight, from the top of the area.
    pub row: u16,
    /// How many rows of it are in sight.
    pub rows: u16,
    /// How many rows of it are above the area.
    pub rows_above: usize,
    /// How many rows of it are below the area.
    pub rows_below: usize,
}

/// What the first row of the conversation shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Top {
    /// The item.
    pub item: ItemId,
    /// The row of the item, from 0.
    pub row: usize,
    /// Where that row begins in the source of the item, in bytes.
    pub source: usize,
}

/// The prompt, docked or open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptArea {
    /// Where it is.
    pub rect: Rect,
    /// The call that it is about.
    pub call: ToolCallId,
    /// Whether the frame shows it open, with its request and its keys. In a dock, or where there is
    /// no room, it does not.
    pub is_open: bool,
    /// Whether there is room to show it open.
    pub room: Room,
    /// How wide the free text of a question is, in columns.
    pub text_cols: usize,
}

/// A text that is typed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TextAreaBox {
    /// Where it is.
    pub rect: Rect,
    /// How wide its text is, in columns; one column behind it is left for the caret.
    pub cols: usize,
}

/// What lies over everything else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OverlayArea {
    /// Where it is.
    pub rect: Rect,
    /// How many rows of what scrolls in it are in sight.
    pub rows_in_sight: usize,
    /// How many rows there are.
    pub rows: usize,
    /// The calls in sight in the waiting list, from the top.
    pub waiting: Vec<WaitingCall>,
}

impl OverlayArea {
    /// How wide a text is that is typed in it: the caret has a column of its own.
    pub(in crate::tui) fn text_cols(&self) -> usize {
        usize::from(overlay::text_cols(self.rect.width))
    }
}

/// What is under a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hit {
    /// The overlay, or what it covers.
    Overlay,
    /// The session list; a session if there is one in that row.
    List(Option<SessionId>),
    /// The conversation; an item if there is one in that row.
    Timeline(Option<ItemId>),
    /// The prompt.
    Prompt,
    /// The composer.
    Composer,
}

impl Layout {
    /// What is under a cell.
    #[must_use]
    pub fn hit(&self, cell: Position) -> Option<Hit> {
        if self.overlay.is_some() {
            return Some(Hit::Overlay);
        }
        if let Some(area) = self.list.as_ref().filter(|area| area.rect.contains(cell)) {
            let row = cell.y - area.rect.y;
            let found = area.rows.iter().find(|listed| listed.row == row);
            return Some(Hit::List(found.map(|listed| listed.session.clone())));
        }
        if self.prompt.as_ref().is_some_and(|area| area.rect.contains(cell)) {
            return Some(Hit::Prompt);
        }
        if self.composer.is_some_and(|area| area.rect.contains(cell)) {
            return Some(Hit::Composer);
        }
        let area = self.timeline.as_ref().filter(|area| area.rect.contains(cell))?;
        let row = cell.y - area.rect.y;
        let in_row = |item: &&ItemArea| (item.row..item.row + item.rows).contains(&row);
        let found = area.items.iter().find(in_row);
        Some(Hit::Timeline(found.map(|area| area.item.clone())))
    }
}

#[cfg(test)]
mod tests;
