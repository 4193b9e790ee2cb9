//! The session list: the filter, days, sessions with their marks, and more about the one under the
//! cursor.

use ratatui::layout::Rect;

use super::canvas::{Canvas, row_of};
use crate::app::command::SortBy;
use crate::base::text;
use crate::domain::session::entry::SessionIndexEntry;
use crate::domain::session::event::Origin;
use crate::tui::action::{Action, ListAction};
use crate::tui::keymap::context::Context;
use crate::tui::layout::list::{field, mark, parts};
use crate::tui::layout::{Layout, ListArea, ListRow, focused_pane};
use crate::tui::line::{Line, led};
use crate::tui::state::list::Scan;
use crate::tui::state::list::tree::Shown;
use crate::tui::state::{Focus, State};
use crate::tui::theme::Ui;
use crate::tui::words;

/// From this width on a row has room for the time.
const TIME_COLS: u16 = 30;
/// From this width on a row has room for the folder.
const FOLDER_COLS: u16 = 56;
/// Deeper sessions stand no further in.
const DEPTH_MAX: usize = 4;

pub(super) fn draw(canvas: &mut Canvas<'_>, state: &State, layout: &Layout, area: &ListArea) {
    let Some(rect) = layout.drawn.screen.list else { return };
    let parts = parts(state, rect);
    if let Some(filter) = parts.filter {
        draw_filter(canvas, state, filter);
    }
    for (row, day) in &layout.drawn.days {
        canvas.text(row_of(area.rect, *row), &format!(" {day}"), Ui::Day);
    }
    for row in &area.rows {
        draw_row(canvas, state, row_of(area.rect, row.row), row);
    }
    if area.rows.is_empty() {
        let text = empty(state);
        canvas.text(row_of(area.rect, 0), text, Ui::Muted);
    }
    if let Some(details) = parts.details {
        draw_details(canvas, state, details);
    }
}

fn empty(state: &State) -> &'static str {
    match (&state.list.scan, &state.list.filter) {
        (Scan::Failed(_), _) => " Cannot be listed",
        (Scan::Running { .. }, _) => " Reading…",
        (Scan::Ended { .. }, Some(filter)) if filter.is_looking() => " Looking…",
        (Scan::Ended { .. }, Some(_)) => " Nothing found",
        (Scan::Ended { .. }, None) if state.list.shown == Shown::Archived => " Nothing is put away",
        (Scan::Ended { .. }, None) => " No sessions yet",
    }
}

fn draw_filter(canvas: &mut Canvas<'_>, state: &State, rect: Rect) {
    let contexts = [Context::List, Context::Moving, Context::Global];
    let Some(filter) = &state.list.filter else {
        let hint = state.settings.keymap.hint(&contexts, Action::List(ListAction::Filter));
        let Some(key) = hint else { return };
        let line = Line::of(&format!(" {key} filter"), Ui::Placeholder);
        let right = Line::of(&format!("{} ", sorted(state)), Ui::Placeholder);
        canvas.line(rect, &line.beside(right, usize::from(rect.width)));
        return;
    };
    let line = field(rect, &filter.field);
    let sign = if filter.is_typed { Ui::FocusBar } else { Ui::Muted };
    canvas.text(rect, " / ", sign);
    let place = Rect { x: line.x, width: rect.right().saturating_sub(line.x), ..rect };
    let taken = canvas.text(place, &line.text, Ui::Plain);
    let found = words::grouped(filter.found_count());
    let more = if filter.is_looking() { "…" } else { "" };
    let left = Rect { x: place.x + taken, width: place.width - taken, ..place };
    let count = Line::of(&format!(" {found}{more} "), Ui::Muted);
    if count.width() < usize::from(left.width) {
        canvas.line_right(left, &count);
    }
}

fn sorted(state: &State) -> &'static str {
    match state.list.settings.sort {
        SortBy::Activity => "",
        SortBy::Creation => "by creation",
        SortBy::Title => "by title",
    }
}

fn draw_row(canvas: &mut Canvas<'_>, state: &State, rect: Rect, row: &ListRow) {
    let Some(entry) = state.list.entry(&row.session) else { return };
    let depth = state.list.row(&row.session).map_or(0, |row| row.depth);
    let marked = if state.list.marks.contains(&row.session) { "*" } else { " " };
    let start = Line::of(marked, Ui::Marked).with_line(sign(state, entry)).with_space(1);
    let start = start.with_space(depth.min(DEPTH_MAX) * 2);
    if let Some(rename) = state.list.rename.as_ref().filter(|rename| rename.session == row.session)
    {
        let line = field(rect, &rename.field);
        canvas.line(rect, &Line::of(marked, Ui::Marked).with("✎ ", Ui::Key));
        let place = Rect { x: line.x, width: rect.right().saturating_sub(line.x), ..rect };
        canvas.fill(place, canvas.theme.ui(Ui::Chip));
        canvas.text(place, &line.text, Ui::Chip);
        return;
    }
    let is_shown = state.session() == Some(&row.session);
    let title = match &entry.title {
        Some(title) if is_shown => Line::of(title, Ui::Strong),
        Some(title) => Line::of(title, Ui::Plain),
        None if entry.error.is_some() => Line::of(entry.session_id.as_str(), Ui::Muted),
        None => Line::of("Untitled", Ui::Muted),
    };
    let right = right(state, entry, depth, rect.width);
    let line = start.with_line(title).with_line(forked(state, entry));
    let line = line.beside(right, usize::from(rect.width));
    let cursor = state.list.cursor().is_some_and(|cursor| cursor.session == row.session);
    let part = match focused_pane(state) {
        Some(Focus::List) if cursor => Some(Ui::Cursor),
        Some(Focus::List) => None,
        _ => is_shown.then_some(Ui::CursorResting),
    };
    match part {
        Some(part) => {
            canvas.fill(rect, canvas.theme.ui(part));
            canvas.line(rect, &line.repainted(part));
        }
        None => drop(canvas.line(rect, &line)),
    }
}

/// What a fork was made of.
fn forked(state: &State, entry: &SessionIndexEntry) -> Line {
    let (None, Some(parent)) = (entry.origin, &entry.parent_session) else { return Line::new() };
    let parent = state.list.entry(parent).and_then(|parent| parent.title.as_deref());
    Line::of(&format!(" ⑂ {}", parent.unwrap_or_default()), Ui::Muted)
}

fn sign(state: &State, entry: &SessionIndexEntry) -> Line {
    mark(state, entry).map_or(Line::of(" ", Ui::Plain), |mark| Line::new().with_mark(mark))
}

/// The folder and the time, as far as there is room.
fn right(state: &State, entry: &SessionIndexEntry, depth: usize, cols: u16) -> Line {
    if cols < TIME_COLS {
        return Line::new();
    }
    let (now, zone) = (state.now.wall, &state.settings.zone);
    let time = match state.list.settings.sort {
        SortBy::Activity if depth == 0 => words::clock(entry.active_at, zone),
        SortBy::Creation if depth == 0 => words::clock(entry.created_at, zone),
        SortBy::Activity | SortBy::Creation | SortBy::Title => {
            words::short_day(entry.active_at, now, zone)
        }
    };
    let folder = entry.cwd.as_deref().filter(|_| cols >= FOLDER_COLS).map(|folder| {
        let name = folder.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next();
        name.unwrap_or(folder).to_owned()
    });
    let line = folder.map_or(Line::new(), |folder| Line::of(&folder, Ui::Muted).with_space(2));
    line.with(&format!("{time} "), Ui::Muted)
}

/// What else there is to know of the session under the cursor.
fn draw_details(canvas: &mut Canvas<'_>, state: &State, rect: Rect) {
    let cursor = state.list.cursor();
    let Some(entry) = cursor.as_ref().and_then(|row| state.list.entry(&row.session)) else {
        return;
    };
    let cols = usize::from(rect.width).saturating_sub(1);
    let rule: String = "─".repeat(usize::from(rect.width));
    canvas.text(row_of(rect, 0), &rule, Ui::Border);
    let lines = match &entry.error {
        Some(error) => led(Line::new().with_space(1), error, Ui::Plain, cols),
        None => vec![
            Line::of(" ", Ui::Plain).with(&folder(entry, cols.saturating_sub(1)), Ui::Muted),
            Line::of(" ", Ui::Plain).with(&kin(state, entry), Ui::Muted).cut(cols),
        ],
    };
    let below = Rect { y: rect.y + 1, height: rect.height.saturating_sub(1), ..rect };
    canvas.lines(below, &lines);
}

/// The end of the folder, which says more than its start.
fn folder(entry: &SessionIndexEntry, cols: usize) -> String {
    let Some(folder) = &entry.cwd else { return "no folder".to_owned() };
    if text::width(folder) <= cols {
        return folder.clone();
    }
    let mut kept = 0;
    let mut from = folder.len();
    let clusters: Vec<_> = text::clusters(folder).collect();
    for cluster in clusters.iter().rev() {
        kept += cluster.cols;
        if kept + 1 > cols {
            break;
        }
        from = cluster.at;
    }
    format!("…{}", folder.get(from..).unwrap_or_default())
}

/// Where a session comes from, and who answered in it last.
fn kin(state: &State, entry: &SessionIndexEntry) -> String {
    let parent = entry.parent_session.as_ref().map(|parent| {
        let title = state.list.entry(parent).and_then(|parent| parent.title.as_deref());
        title.unwrap_or(parent.as_str()).to_owned()
    });
    let from = match (entry.origin, parent) {
        (Some(Origin::Job), _) => Some("job".to_owned()),
        (Some(Origin::Subagent), Some(parent)) => Some(format!("under {parent}")),
        (None, Some(parent)) => Some(format!("fork of {parent}")),
        (Some(Origin::Subagent) | None, None) => None,
    };
    let model = entry.last_model.as_ref().map(|model| model.model.clone());
    let parts =
        [from, entry.last_agent_id.clone(), model, Some(words::count(entry.turn_count, "turn"))];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}
