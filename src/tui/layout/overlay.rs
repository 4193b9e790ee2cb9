//! What lies over everything else: a frame in the middle of the screen.

mod events;

use std::rc::Rc;

use ratatui::layout::{Position, Rect, Size};

use super::prompt::{look, tool_call};
use super::{Layout, OverlayArea, Sheet};
use crate::tui::cache::Cache;
use crate::tui::editor::Editor;
use crate::tui::keymap::context::Context;
use crate::tui::line::Line;
use crate::tui::rows::Rows;
use crate::tui::rows::request::Extent;
use crate::tui::rows::typed::{Typed, one_line};
use crate::tui::rows::{choices, dialog, help};
use crate::tui::state::State;
use crate::tui::state::keys::Arming;
use crate::tui::state::list::waiting::WaitingCall;
use crate::tui::state::overlay::{
    About, Confirm, Full, Help, Overlay, Purge, Reason, Rewrite, Waiting,
};
use crate::tui::theme::Ui;

/// Where yes or no is said.
const CONFIRM: [Context; 2] = [Context::Confirm, Context::Global];
/// Where a reason is typed.
const REASON: [Context; 3] = [Context::Field, Context::Editing, Context::Global];
/// Wider frames are hard to read.
const COLS_MAX: u16 = 76;
/// Below this width a frame takes all of it.
const NARROW_COLS: u16 = 64;
/// The border, and a space inside of it, on both sides.
const SIDES_COLS: u16 = 4;
/// The border above and below.
const ENDS_ROWS: u16 = 2;

pub(super) fn lay(layout: &mut Layout, state: &State, size: Size, cache: &mut Cache) {
    let Some(overlay) = &state.overlay else { return };
    if size.width < super::screen::SMALLEST.width || size.height < super::screen::SMALLEST.height {
        return;
    }
    let place = Place { layout, state, size };
    match overlay {
        Overlay::Help(help) => place.help(help),
        Overlay::Confirm(confirm) => place.confirm(confirm),
        Overlay::Reason(reason) => place.reason(reason),
        Overlay::Full(full) => place.full(full, cache),
        Overlay::Waiting(waiting) => place.waiting(waiting),
        Overlay::Events(view) => events::lay(place, view),
        Overlay::Purge(purge) => place.purge(purge),
        Overlay::Rewrite(rewrite) => place.rewrite(rewrite),
        Overlay::Codes(codes) => {
            let lines = Rc::new(Rows::of_lines(dialog::codes(&codes.blocks)));
            let hints = Line::of("a number copies · Esc", Ui::Muted);
            let scrolled = Scrolled { lines, scroll: 0, foot: Vec::new(), hints };
            place.scrolled("Copy which code block?", scrolled);
        }
    }
}

/// How wide a text is that is typed in a frame of this width: the caret has a column of its own.
pub(super) fn text_cols(frame_cols: u16) -> u16 {
    frame_cols.saturating_sub(SIDES_COLS + 1).max(1)
}

/// Lines of which some are in sight.
struct Scrolled {
    lines: Rc<Rows>,
    /// How many of them are above those in sight.
    scroll: usize,
    /// What stays in sight below them.
    foot: Vec<Line>,
    /// What stands in the border.
    hints: Line,
}

/// Where an overlay is laid.
struct Place<'a> {
    layout: &'a mut Layout,
    state: &'a State,
    size: Size,
}

impl Place<'_> {
    /// How wide the text of a frame is.
    fn cols(&self) -> u16 {
        self.frame_cols().saturating_sub(SIDES_COLS).max(1)
    }

    fn frame_cols(&self) -> u16 {
        if self.size.width < NARROW_COLS {
            self.size.width
        } else {
            COLS_MAX.min(self.size.width - SIDES_COLS)
        }
    }

    /// As many rows as a frame can show.
    fn rows_max(&self) -> usize {
        usize::from(self.size.height.saturating_sub(ENDS_ROWS)).max(1)
    }

    /// Lays a frame around lines, of which all are in sight.
    fn frame(&mut self, title: &str, lines: Vec<Line>, hints: Line) -> Rect {
        let rows = u16::try_from(lines.len()).unwrap_or(u16::MAX).max(1);
        let height = rows.saturating_add(ENDS_ROWS).min(self.size.height);
        let width = self.frame_cols();
        let x = (self.size.width - width) / 2;
        let y = (self.size.height - height) / 2;
        let rect = Rect { x, y, width, height };
        self.layout.overlay = Some(OverlayArea {
            rect,
            rows_in_sight: lines.len(),
            rows: lines.len(),
            waiting: Vec::new(),
        });
        self.layout.drawn.caret = Some(Position { x: x + 2, y: y + 1 });
        let hints = hints.cut(usize::from(width.saturating_sub(SIDES_COLS)));
        self.layout.drawn.overlay = Some(Sheet { rect, title: title.to_owned(), lines, hints });
        rect
    }

    /// Lays a frame around as many lines as there is room for.
    fn scrolled(mut self, title: &str, content: Scrolled) {
        let Scrolled { lines, scroll, mut foot, hints } = content;
        // What is shown comes before what can be done with it.
        foot.truncate(self.rows_max() - 1);
        let (all, rows) = (lines.len(), self.rows_max().saturating_sub(foot.len()).max(1));
        let first = scroll.min(all.saturating_sub(rows));
        let mut shown: Vec<Line> = lines.range(first, rows).collect();
        let in_sight = shown.len();
        let hints = if all > rows {
            let place = format!("{}–{} of {all} ", first + 1, first + in_sight);
            Line::of(&place, Ui::Caution).with_line(hints)
        } else {
            hints
        };
        shown.extend(foot);
        self.frame(title, shown, hints);
        if let Some(area) = &mut self.layout.overlay {
            area.rows_in_sight = in_sight;
            area.rows = all;
        }
    }

    fn help(self, help: &Help) {
        let lines =
            help::rows(&self.state.settings.keymap, help.contexts, usize::from(self.cols()));
        let lines = Rc::new(Rows::of_lines(lines));
        let hints = help::hints(&self.state.settings.keymap);
        self.scrolled("Keys", Scrolled { lines, scroll: help.scroll, foot: Vec::new(), hints });
    }

    fn confirm(mut self, confirm: &Confirm) {
        let (cols, rows) = (usize::from(self.cols()), self.rows_max());
        let asked = dialog::confirm(self.state, confirm, (cols, rows));
        let mut lines: Vec<Line> = asked.lines.into_iter().take(rows).collect();
        if lines.len() + asked.details.len() <= rows {
            lines.extend(asked.details);
        }
        let hints = match confirm.about {
            About::Interrupted(_) => {
                choices::back(self.state, &choices::INTERRUPTED, confirm.arming, "no")
            }
            About::Delete(_) | About::Quit | About::Stop(_) | About::GiveUp => {
                choices::dialog(self.state, &CONFIRM, (asked.yes, confirm.arming), "no")
            }
        };
        self.frame(asked.title, lines, hints);
    }

    fn reason(self, reason: &Reason) {
        let hints = choices::dialog(self.state, &REASON, ("deny", Arming::Armed), "back");
        let title = format!("Deny {}: why? The model reads this", reason.prompt.name);
        self.typed(&title, &reason.field, hints);
    }

    fn rewrite(self, rewrite: &Rewrite) {
        let hints = choices::rewrite(self.state, rewrite);
        self.typed("A message that waits", &rewrite.field, hints);
    }

    /// Lays a frame around a text that is being typed.
    fn typed(mut self, title: &str, field: &Editor, hints: Line) {
        let cols = text_cols(self.frame_cols());
        let text = Typed::new(field, cols);
        let rows = self.rows_max();
        let first = text.first_row(rows);
        let lines: Vec<Line> = text.lines(first, rows).collect();
        let rect = self.frame(title, lines, hints);
        let caret = text.caret();
        let row = u16::try_from(caret.row.saturating_sub(first)).unwrap_or(0);
        let column = u16::try_from(caret.column).unwrap_or(u16::MAX).min(cols);
        let (x, y) = (rect.x + 2 + column, rect.y + 1 + row);
        self.layout.drawn.caret = Some(Position {
            x: x.min(rect.right().saturating_sub(1)),
            y: y.min(rect.bottom().saturating_sub(1)),
        });
    }

    /// What would be destroyed, and the word below it.
    fn purge(mut self, purge: &Purge) {
        let cols = self.cols();
        let mut lines = dialog::purge(self.state, purge, (usize::from(cols), self.rows_max() - 1));
        let (text, column) = one_line(&purge.field, cols.saturating_sub(1).max(1));
        let row = u16::try_from(lines.len()).unwrap_or(0);
        lines.push(Line::of(&text, Ui::Strong));
        let hints = if purge.is_meant() {
            choices::dialog(self.state, &REASON, ("destroy", Arming::Armed), "no")
        } else {
            choices::back(self.state, &REASON, Arming::Armed, "no")
        };
        let rect = self.frame("Destroy for good?", lines, hints);
        let (x, y) = (rect.x + 2 + column, rect.y + 1 + row);
        self.layout.drawn.caret = Some(Position { x: x.min(rect.right().saturating_sub(1)), y });
    }

    fn full(self, full: &Full, cache: &mut Cache) {
        let Some(call) = tool_call(self.state, &full.prompt) else { return };
        let highlighter = cache.highlighter();
        let look = look(self.state, self.cols(), &highlighter);
        let lines = cache.request(&full.prompt.turn, call, Extent::Whole, &look);
        let is_armed = self.state.prompts.armed() == Some(&full.prompt);
        let choices = choices::full_view(self.state, is_armed, usize::from(self.cols()));
        let session = self.state.session().and_then(|session| self.state.list.entry(session));
        let session = session.and_then(|entry| entry.title.as_deref()).unwrap_or("this session");
        let title = format!("Allow {}? · {session}", full.prompt.name);
        let hints = match is_armed {
            true => Line::new(),
            false if full.seen_rows < lines.len() => Line::of("read to the end", Ui::Muted),
            false => Line::of("keys work in a moment", Ui::Muted),
        };
        self.scrolled(&title, Scrolled { lines, scroll: full.scroll, foot: choices, hints });
    }

    fn waiting(mut self, waiting: &Waiting) {
        let calls = self.waiting_in_sight(waiting);
        let cols = usize::from(self.cols());
        let cursor = self.state.list.waiting().cursor(waiting.selected.as_ref());
        let lines = dialog::waiting(self.state, &calls, cursor, cols);
        let cursor = lines.cursor;
        let hints = dialog::waiting_hints(self.state);
        let rect = self.frame("Waiting for you", lines.lines, hints);
        if let Some(area) = &mut self.layout.overlay {
            area.rows = self.state.list.waiting().len();
            area.rows_in_sight = calls.len();
            area.waiting = calls;
        }
        let row = u16::try_from(cursor).unwrap_or(0);
        let y = (rect.y + 1 + row).min(rect.bottom().saturating_sub(1));
        self.layout.drawn.caret = Some(Position { x: rect.x + 1, y });
    }

    /// The calls around the one under the cursor, as many as there is room for.
    fn waiting_in_sight(&self, waiting: &Waiting) -> Vec<WaitingCall> {
        let calls = self.state.list.waiting();
        let rows = (self.rows_max() / dialog::WAITING_ROWS).max(1);
        let Some(from) = calls.cursor(waiting.selected.as_ref()) else { return Vec::new() };
        let below = std::iter::successors(Some(from), |call| calls.after(call)).take(rows);
        let below: Vec<WaitingCall> = below.cloned().collect();
        let room = (rows - below.len()).max(rows / 2);
        let above = std::iter::successors(calls.before(from), |call| calls.before(call)).take(room);
        let mut shown: Vec<WaitingCall> = above.cloned().collect();
        shown.reverse();
        shown.extend(below);
        shown.truncate(rows);
        shown
    }
}
