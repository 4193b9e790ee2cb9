//! The session list: moving, narrowing down, renaming, deleting.

use crate::app::command::{Command, SortBy};
use crate::base::id::SessionId;
use crate::tui::action::{ListAction, MoveAction};
use crate::tui::editor::{Editor, Shape};
use crate::tui::effect::Effect;
use crate::tui::layout::{Layout, ListArea};
use crate::tui::state::list::tree::Shown;
use crate::tui::state::list::{Rename, Row, Undo};
use crate::tui::state::overlay::{About, Overlay, Purge};
use crate::tui::state::{Focus, State};
use crate::tui::update::{Effects, drafts, focus, may_write, overlay, reading, session, tell};
use crate::tui::words;

/// A page before the first frame.
const PAGE_ROWS: usize = 10;

/// Does what an action says with the session under the cursor, or with the marked ones.
pub(super) fn perform(state: &mut State, layout: &Layout, action: ListAction, out: &mut Effects) {
    match action {
        ListAction::Open => {
            if let Some(row) = state.list.cursor() {
                session::open(state, &row.session, out);
            }
        }
        ListAction::Filter => {
            let filter = state.list.filter.get_or_insert_default();
            filter.is_typed = true;
            state.list.filter_more();
        }
        ListAction::Sort => {
            state.list.sort(match state.list.settings.sort {
                SortBy::Activity => SortBy::Creation,
                SortBy::Creation => SortBy::Title,
                SortBy::Title => SortBy::Activity,
            });
            save_settings(state, out);
        }
        ListAction::Mark => {
            let Some(row) = state.list.cursor() else { return };
            if !state.list.marks.remove(&row.session) {
                state.list.marks.insert(row.session);
            }
            move_through(state, layout, MoveAction::Down);
        }
        ListAction::Rename => begin_rename(state),
        ListAction::Delete => {
            let chosen = state.list.chosen();
            if !chosen.is_empty() && may_write(state) {
                overlay::ask(state, About::Delete(chosen), out);
            }
        }
        ListAction::Purge => {
            let sessions = state.list.chosen();
            if !sessions.is_empty() && may_write(state) {
                let field = Editor::new(Shape::Line);
                overlay::show(state, Overlay::Purge(Purge { sessions, field }), out);
            }
        }
        ListAction::Undo => undo(state, out),
        ListAction::Archive => archive(state, out),
        ListAction::ShowArchived => state.list.show(state.list.shown.other()),
    }
}

/// Takes the last deletion or putting away back. What is refused comes again, behind all others.
fn undo(state: &mut State, out: &mut Effects) {
    if state.list.undo.is_empty() {
        return tell(state, "Nothing was deleted or put away since the start");
    }
    if !may_write(state) {
        return;
    }
    out.extend(state.list.undo.pop().map(|last| {
        Effect::App(match last {
            Undo::Deleted(sessions) => Command::Restore(sessions),
            Undo::Archived(sessions) => Command::Archive { sessions, archived: false },
        })
    }));
}

/// Puts sessions away, or gets them back. What stands under another session goes where that goes.
fn archive(state: &mut State, out: &mut Effects) {
    let mut sessions = state.list.chosen();
    if sessions.is_empty() || !may_write(state) {
        return;
    }
    sessions.retain(|session| !state.list.is_under_another(session));
    if sessions.is_empty() {
        let what = "It was begun by the session above it, and is put away with that one";
        return tell(state, what);
    }
    state.list.marks.clear();
    let archived = state.list.shown == Shown::Current;
    out.push(Effect::App(Command::Archive { sessions, archived }));
}

/// Destroys sessions: the word was typed.
pub(super) fn purge(state: &mut State, sessions: Vec<SessionId>, out: &mut Effects) {
    state.list.marks.clear();
    state.list.undone(&sessions);
    tell(state, format!("Destroying {}", words::count(sessions.len(), "session")));
    out.push(Effect::App(Command::Purge(sessions)));
}

/// Moves the cursor.
pub(super) fn move_through(state: &mut State, layout: &Layout, action: MoveAction) {
    let area = layout.list.as_ref();
    let page = area.map_or(PAGE_ROWS, |area| usize::from(area.rect.height)).max(2);
    let (way, steps) = match action {
        MoveAction::Up => (focus::Way::Backwards, 1),
        MoveAction::Down => (focus::Way::Forwards, 1),
        MoveAction::PageUp => (focus::Way::Backwards, page - 1),
        MoveAction::PageDown => (focus::Way::Forwards, page - 1),
        MoveAction::HalfPageUp => (focus::Way::Backwards, page / 2),
        MoveAction::HalfPageDown => (focus::Way::Forwards, page / 2),
        MoveAction::Top => {
            state.list.selected = state.list.first().map(|row| row.session);
            state.list.selected_row = 0;
            return;
        }
        MoveAction::Bottom => {
            state.list.selected = state.list.last().map(|row| row.session);
            state.list.selected_row = u16::try_from(page - 1).unwrap_or(u16::MAX);
            return;
        }
        MoveAction::ToList | MoveAction::ToTimeline | MoveAction::ToComposer => return,
    };
    step(state, area, way, steps);
}

fn step(state: &mut State, area: Option<&ListArea>, way: focus::Way, steps: usize) {
    let list = &state.list;
    let Some(from) = list.cursor() else { return };
    let next = |row: &Row| match way {
        focus::Way::Forwards => list.after(&row.session),
        focus::Way::Backwards => list.before(&row.session),
    };
    let way_there = std::iter::successors(Some(from.clone()), next).take(steps + 1);
    let Some((moved, to)) = way_there.enumerate().last() else { return };
    let row = row_after_move(area, &from.session, &to.session, way, moved);
    state.list.selected = Some(to.session);
    state.list.selected_row = row;
}

/// The row of the area where the cursor stands after a move: where the session is in sight already,
/// else at the edge over which it went.
fn row_after_move(
    area: Option<&ListArea>,
    from: &SessionId,
    to: &SessionId,
    way: focus::Way,
    moved: usize,
) -> u16 {
    let Some(area) = area else { return 0 };
    let row_of = |session: &SessionId| {
        area.rows.iter().find(|row| row.session == *session).map(|row| row.row)
    };
    let last = area.rect.height.saturating_sub(1);
    let moved = u16::try_from(moved).unwrap_or(u16::MAX);
    row_of(to).unwrap_or_else(|| {
        let from = row_of(from).unwrap_or(0);
        match way {
            focus::Way::Forwards => from.saturating_add(moved).min(last),
            focus::Way::Backwards => from.saturating_sub(moved),
        }
    })
}

/// Escape in the list: out of what is being typed, then the filter, then the marks, then what is put
/// away, then the list.
pub(super) fn escape(state: &mut State, out: &mut Effects) {
    if state.list.rename.take().is_some() || state.list.filter.take().is_some() {
        return;
    }
    match (state.list.marks.is_empty(), state.list.shown) {
        (false, _) => state.list.marks.clear(),
        (true, Shown::Archived) => state.list.show(Shown::Current),
        (true, Shown::Current) => focus::go(state, Focus::Timeline, out),
    }
}

/// Leaves the text that is being typed in the list, if one is.
pub(super) fn leave_text(state: &mut State) -> bool {
    if state.focus != Focus::List {
        return false;
    }
    let typed = state.list.filter.as_ref().is_some_and(|filter| filter.is_typed);
    if typed {
        state.list.filter = None;
    }
    state.list.rename.take().is_some() || typed
}

/// Takes over the text that is being typed in the list.
pub(super) fn accept(state: &mut State, out: &mut Effects) {
    if let Some(Rename { session, field }) = state.list.rename.take() {
        let title = field.text().trim().to_owned();
        if !title.is_empty() && may_write(state) {
            out.push(Effect::App(Command::Rename { session, title }));
        }
        return;
    }
    if let Some(filter) = &mut state.list.filter {
        filter.is_typed = false;
        if filter.field.is_empty() {
            state.list.filter = None;
        }
    }
}

/// Shows or hides the list. Where it takes the whole page, it comes with the focus and goes with it.
pub(super) fn toggle(state: &mut State, layout: &Layout, out: &mut Effects) {
    if state.size.width < focus::WIDE_COLS {
        let to = if state.focus == Focus::List { Focus::Composer } else { Focus::List };
        return focus::go(state, to, out);
    }
    reading::hold_source(state, layout);
    state.list.settings.hidden = !state.list.settings.hidden;
    save_settings(state, out);
    if state.list.settings.hidden && state.focus == Focus::List {
        focus::go(state, Focus::Composer, out);
    }
}

fn begin_rename(state: &mut State) {
    let Some(entry) = state.list.cursor().and_then(|row| state.list.entry(&row.session)).cloned()
    else {
        return;
    };
    if entry.error.is_some() {
        return tell(state, "A damaged session cannot be renamed");
    }
    if may_write(state) {
        let field = Editor::with_text(Shape::Line, entry.title.as_deref().unwrap_or(""));
        let session = entry.session_id.clone();
        state.list.rename = Some(Rename { session, field });
    }
}

fn save_settings(state: &State, out: &mut Effects) {
    drafts::keep(state, Command::SaveListSettings(state.list.settings), out);
}
