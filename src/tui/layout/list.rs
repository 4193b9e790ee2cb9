//! The session list: rows from the cursor upwards and downwards, with a head for each day.

use ratatui::layout::{Position, Rect};

use super::{Layout, ListArea, ListRow, focused_pane};
use crate::app::command::SortBy;
use crate::base::clock::Timestamp;
use crate::base::id::SessionId;
use crate::domain::session::entry::{LatestTurnStatus, SessionIndexEntry};
use crate::domain::turn::status::TurnStatus;
use crate::tui::mark::Mark;
use crate::tui::rows::typed::one_line;
use crate::tui::state::list::{List, Row};
use crate::tui::state::{Focus, State};
use crate::tui::words;

/// Below this height the line of the filter is there only while one is on.
const FILTER_ROWS: u16 = 8;
/// Below this height nothing more is told of the session under the cursor.
const DETAILS_ROWS: u16 = 14;
/// What is told of it.
const DETAIL_ROWS: u16 = 3;

/// The parts of the list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::tui) struct Parts {
    /// The line of the filter.
    pub(in crate::tui) filter: Option<Rect>,
    /// The rows.
    pub(in crate::tui) rows: Rect,
    /// What else there is to know of the session under the cursor.
    pub(in crate::tui) details: Option<Rect>,
}

/// Divides the list.
pub(in crate::tui) fn parts(state: &State, list: Rect) -> Parts {
    let mut rows = list;
    let filter = (state.list.filter.is_some() || list.height >= FILTER_ROWS).then(|| {
        let filter = Rect { height: 1, ..list };
        rows = Rect { y: list.y + 1, height: list.height.saturating_sub(1), ..list };
        filter
    });
    let tells = state.focus == Focus::List && list.height >= DETAILS_ROWS;
    let details = tells.then(|| {
        rows.height = rows.height.saturating_sub(DETAIL_ROWS);
        Rect { y: rows.bottom(), height: DETAIL_ROWS, ..list }
    });
    Parts { filter, rows, details }
}

pub(super) fn lay(layout: &mut Layout, state: &State, list: Rect) {
    let parts = parts(state, list);
    let mut area = ListArea { rect: parts.rows, rows: Vec::new() };
    let walk = Walk { state, height: usize::from(parts.rows.height) };
    for (row, line) in (0..).zip(walk.lines()) {
        match line {
            ListLine::Session(session) => area.rows.push(ListRow { row, session }),
            ListLine::Day(day) => layout.drawn.days.push((row, day)),
        }
    }
    if focused_pane(state) == Some(Focus::List) {
        layout.drawn.caret = caret(state, &area, parts.filter);
    }
    layout.list = Some(area);
}

/// The caret of the filter or of the title that is being changed, else the cursor.
fn caret(state: &State, area: &ListArea, filter: Option<Rect>) -> Option<Position> {
    let typed = state.list.filter.as_ref().filter(|filter| filter.is_typed);
    if let (Some(typed), Some(rect), None) = (typed, filter, &state.list.rename) {
        let place = field(rect, &typed.field);
        return Some(Position { x: place.caret, y: rect.y });
    }
    let cursor = state.list.cursor()?;
    let row = area.rows.iter().find(|row| row.session == cursor.session)?;
    let y = area.rect.y + row.row;
    if let Some(rename) = &state.list.rename {
        let rect = Rect { y, height: 1, ..area.rect };
        return Some(Position { x: field(rect, &rename.field).caret, y });
    }
    Some(Position { x: area.rect.x, y })
}

/// A one-line text in a row of the list: what of it is in sight, and where the caret stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::tui) struct FieldLine {
    /// What is in sight.
    pub(in crate::tui) text: String,
    /// Where it begins.
    pub(in crate::tui) x: u16,
    /// The column of the caret.
    pub(in crate::tui) caret: u16,
}

/// The columns before a text in the list: a space, a sign, a space.
const SIGN_COLS: u16 = 3;

/// Where a one-line text stands in a row.
pub(in crate::tui) fn field(rect: Rect, editor: &crate::tui::editor::Editor) -> FieldLine {
    let cols = rect.width.saturating_sub(SIGN_COLS + 1).max(1);
    let x = rect.x + SIGN_COLS.min(rect.width.saturating_sub(1));
    let (text, column) = one_line(editor, cols);
    let caret = x.saturating_add(column).min(rect.right().saturating_sub(1));
    FieldLine { text, x, caret }
}

/// How a session stands; nothing for one that is at rest, as it should be.
pub(in crate::tui) fn mark(state: &State, entry: &SessionIndexEntry) -> Option<Mark> {
    if entry.error.is_some() {
        return Some(Mark::Damaged);
    }
    if !entry.waiting.is_empty() {
        return Some(Mark::Waiting);
    }
    if state.activity.turn_of(&entry.session_id).is_some() {
        return Some(Mark::Running);
    }
    let of_turn = match entry.latest_turn_status {
        LatestTurnStatus::Turn(TurnStatus::Suspended) => Some(Mark::Waiting),
        LatestTurnStatus::Turn(TurnStatus::Idle) if state.activity.elsewhere.is_some() => {
            Some(Mark::Running)
        }
        LatestTurnStatus::Turn(TurnStatus::Idle) => Some(Mark::Interrupted),
        LatestTurnStatus::Turn(TurnStatus::Failed) => Some(Mark::Failed),
        // That it was stopped is no news to who stopped it; that something is left to be sent may be.
        LatestTurnStatus::Turn(TurnStatus::Cancelled) if entry.unsent > 0 => Some(Mark::Unsent),
        LatestTurnStatus::Turn(TurnStatus::Cancelled) => Some(Mark::Stopped),
        LatestTurnStatus::Turn(TurnStatus::Completed) | LatestTurnStatus::None => None,
    };
    of_turn.or((entry.unsent > 0).then_some(Mark::Unsent))
}

/// Whether any of the sessions in sight runs here. What runs elsewhere stands still.
pub(super) fn has_spinner(area: &ListArea, state: &State) -> bool {
    let entries = area.rows.iter().filter_map(|row| state.list.entry(&row.session));
    let runs_here = |entry: &SessionIndexEntry| {
        state.activity.turn_of(&entry.session_id).is_some()
            && mark(state, entry) == Some(Mark::Running)
    };
    entries.into_iter().any(|entry| runs_here(entry))
}

enum ListLine {
    Day(String),
    Session(SessionId),
}

/// The way through the list from the cursor.
struct Walk<'a> {
    state: &'a State,
    height: usize,
}

impl Walk<'_> {
    /// The lines in sight, from the top.
    fn lines(&self) -> Vec<ListLine> {
        let list = &self.state.list;
        let Some(cursor) = list.cursor().filter(|_| self.height > 0) else { return Vec::new() };
        let below = self.downwards(list, cursor.clone());
        // Where the rows end before the area does, those above come down.
        let spare = self.height.saturating_sub(below.len());
        let wanted = usize::from(list.selected_row).min(self.height - 1).max(spare);
        let mut lines = self.above(list, &cursor, wanted);
        lines.reverse();
        lines.extend(below);
        lines.truncate(self.height);
        lines
    }

    /// The lines from a row on, as many as fit.
    fn downwards(&self, list: &List, row: Row) -> Vec<ListLine> {
        let mut lines = Vec::new();
        let mut next = Some(row);
        while let Some(row) = next.filter(|_| lines.len() < self.height) {
            next = list.after(&row.session);
            let head = next.as_ref().and_then(|next| self.head_between(&row, next));
            lines.push(ListLine::Session(row.session));
            lines.extend(head.filter(|_| next.is_some()).map(ListLine::Day));
        }
        lines
    }

    /// Up to `wanted` lines above a row, from the nearest on. Where the first of them would hide the
    /// head of the whole list, it is one more.
    fn above(&self, list: &List, from: &Row, wanted: usize) -> Vec<ListLine> {
        let mut lines = Vec::new();
        let mut at = from.clone();
        loop {
            let before = list.before(&at.session);
            let head = match &before {
                Some(before) => self.head_between(before, &at),
                None => self.head(&at),
            };
            let is_first = before.is_none();
            let room =
                wanted.saturating_sub(lines.len()).max(usize::from(is_first && self.height > 1));
            lines.extend(head.filter(|_| room > 0).map(ListLine::Day));
            let Some(before) = before.filter(|_| lines.len() < wanted) else { return lines };
            lines.push(ListLine::Session(before.session.clone()));
            at = before;
        }
    }

    /// The head between two rows, if another day begins there.
    fn head_between(&self, before: &Row, row: &Row) -> Option<String> {
        let (above, here) = (self.head(before), self.head(row));
        here.filter(|here| row.depth == 0 && above.as_ref() != Some(here))
    }

    /// The day of a row; none where the order is not by time.
    fn head(&self, row: &Row) -> Option<String> {
        let at = self.moment(row)?;
        Some(words::day(at, self.state.now.wall, &self.state.settings.zone))
    }

    /// What a row is sorted by, of the session that it stands under.
    fn moment(&self, row: &Row) -> Option<Timestamp> {
        let list = &self.state.list;
        let mut entry = list.entry(&row.session)?;
        for _ in 0..row.depth {
            entry = entry.parent_session.as_ref().and_then(|parent| list.entry(parent))?;
        }
        match list.settings.sort {
            SortBy::Activity => Some(entry.active_at),
            SortBy::Creation => Some(entry.created_at),
            SortBy::Title => None,
        }
    }
}
