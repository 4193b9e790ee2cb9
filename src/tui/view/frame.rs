//! What stands around the panes: lines, titles, and which pane has the focus.

use ratatui::layout::Rect;

use super::canvas::{Canvas, row_of};
use crate::tui::layout::screen::{Borders, SMALLEST, Screen};
use crate::tui::layout::{Layout, focused_pane};
use crate::tui::line::{Line, wrapped};
use crate::tui::state::conversation::{Load, Page};
use crate::tui::state::list::tree::Shown;
use crate::tui::state::{Focus, State};
use crate::tui::theme::Ui;

/// The notice that stands in place of the program.
pub(super) fn too_small(canvas: &mut Canvas<'_>) {
    let area = canvas.buffer.area;
    let text = format!("turnstile needs {}×{}", SMALLEST.width, SMALLEST.height);
    let cols = usize::from(area.width.max(1));
    let lines = wrapped(&text, Ui::Strong, cols);
    let above = usize::from(area.height).saturating_sub(lines.len()) / 2;
    for (row, line) in (0..area.height).skip(above).zip(lines) {
        canvas.line(row_of(area, row), &line.centred(cols));
    }
}

pub(super) fn draw(canvas: &mut Canvas<'_>, state: &State, layout: &Layout) {
    let screen = &layout.drawn.screen;
    let panes = Panes::of(screen, layout);
    match screen.borders {
        Borders::Framed => panes.framed(canvas, screen.area),
        Borders::Ruled | Borders::Bare => panes.ruled(canvas, screen),
    }
    if screen.borders == Borders::Framed
        && let Some(pane) = focused_pane(state).and_then(|focus| panes.around(focus, screen.area))
    {
        outline(canvas, pane);
    }
    titles(canvas, state, screen);
}

/// Where the lines between the panes run.
struct Panes {
    /// The column between the list and the rest.
    middle: Option<u16>,
    /// The row between the conversation and what is below it.
    rule: Option<u16>,
    /// The row above the status line.
    foot: u16,
}

impl Panes {
    fn of(screen: &Screen, layout: &Layout) -> Self {
        let middle = screen.list.filter(|_| screen.right.is_some()).map(Rect::right);
        let timeline = layout.timeline.as_ref();
        let rule = timeline.filter(|_| screen.rule_rows() > 0).map(|area| area.rect.bottom());
        Self { middle, rule, foot: screen.status.y.saturating_sub(1) }
    }

    fn framed(&self, canvas: &mut Canvas<'_>, area: Rect) {
        let (right, bottom) = (area.right() - 1, area.bottom() - 1);
        for (y, ends) in [(0, ("┌", "┐")), (self.foot, ("├", "┤")), (bottom, ("└", "┘"))]
        {
            horizontal(canvas, 0, right, y, ends);
        }
        for y in (1..self.foot).chain(self.foot + 1..bottom) {
            canvas.sign(0, y, "│", Ui::Border);
            canvas.sign(right, y, "│", Ui::Border);
        }
        if let Some(x) = self.middle {
            canvas.sign(x, 0, "┬", Ui::Border);
            (1..self.foot).for_each(|y| canvas.sign(x, y, "│", Ui::Border));
            canvas.sign(x, self.foot, "┴", Ui::Border);
        }
        if let Some(y) = self.rule {
            horizontal(canvas, self.middle.unwrap_or(0), right, y, ("├", "┤"));
        }
    }

    fn ruled(&self, canvas: &mut Canvas<'_>, screen: &Screen) {
        if let (Some(x), Some(list)) = (self.middle, screen.list) {
            (0..list.bottom()).for_each(|y| canvas.sign(x, y, "│", Ui::Border));
        }
        if let (Some(y), Some(right)) = (self.rule, screen.right) {
            horizontal(canvas, right.x, right.right() - 1, y, ("─", "─"));
        }
    }

    /// A pane with the lines around it.
    fn around(&self, focus: Focus, area: Rect) -> Option<Rect> {
        let middle = self.middle.unwrap_or(0);
        let (x, right, y, bottom) = match focus {
            Focus::List => (0, self.middle.unwrap_or(area.right() - 1), 0, self.foot),
            Focus::Timeline => (middle, area.right() - 1, 0, self.rule?),
            Focus::Composer | Focus::Prompt => (middle, area.right() - 1, self.rule?, self.foot),
        };
        Some(Rect { x, y, width: right - x + 1, height: bottom - y + 1 })
    }
}

fn horizontal(canvas: &mut Canvas<'_>, x: u16, right: u16, y: u16, (first, last): (&str, &str)) {
    (x..=right).for_each(|x| canvas.sign(x, y, "─", Ui::Border));
    canvas.sign(x, y, first, Ui::Border);
    canvas.sign(right, y, last, Ui::Border);
}

fn outline(canvas: &mut Canvas<'_>, pane: Rect) {
    let side = |x| Rect { x, width: 1, ..pane };
    let end = |y| Rect { y, height: 1, ..pane };
    let lines = [side(pane.x), side(pane.right() - 1), end(pane.y), end(pane.bottom() - 1)];
    for line in lines {
        canvas.restyle(line, Ui::BorderFocused);
    }
}

fn titles(canvas: &mut Canvas<'_>, state: &State, screen: &Screen) {
    let focus = focused_pane(state);
    let part = |pane| if focus == Some(pane) { Ui::TitleFocused } else { Ui::Title };
    let inset = u16::from(screen.borders == Borders::Framed);
    let row = |pane: Rect| Rect {
        x: pane.x + inset,
        y: 0,
        width: pane.width.saturating_sub(2 * inset),
        height: 1,
    };
    if let Some(list) = screen.list {
        let title = match state.list.shown {
            Shown::Current => " Sessions ",
            Shown::Archived => " Archived ",
        };
        canvas.text(row(list), title, part(Focus::List));
    }
    let Some(right) = screen.right else { return };
    let title = Line::of(&format!(" {} ", title(state)), part(Focus::Timeline));
    let who = Line::of(&who(state), Ui::Title);
    let row = row(right);
    // Half of the row is the title's before anything else.
    let room = usize::from(row.width) - title.width().min(usize::from(row.width) / 2);
    let taken = if who.width() < room { canvas.line_right(row, &who) } else { 0 };
    let left = row.width.saturating_sub(taken + u16::from(taken > 0));
    canvas.line(Rect { width: left, ..row }, &title.cut(usize::from(left)));
}

/// What the conversation on screen is called.
fn title(state: &State) -> String {
    let Page::Session { id, load } = &state.conversation.page else {
        return "New session".to_owned();
    };
    let loaded = match load {
        Load::Open { state, .. } => state.title.clone(),
        Load::Asked | Load::Unreadable(_) => None,
    };
    let listed = state.list.entry(id).and_then(|entry| entry.title.clone());
    listed.or(loaded).unwrap_or_else(|| "Untitled".to_owned())
}

/// The agent and the model of the latest turn, or those that a first message would go to.
fn who(state: &State) -> String {
    let turn = state.conversation.turns.latest().and_then(|slot| slot.state());
    if let Some(agent) = turn.map(|turn| &turn.definition.agent.resolved) {
        return format!(" {} · {} ", agent.agent_id(), agent.model().model);
    }
    let entry = state.session().and_then(|session| state.list.entry(session));
    let listed =
        entry.and_then(|entry| entry.last_agent_id.as_ref().zip(entry.last_model.as_ref()));
    match (listed, &state.status.model) {
        (Some((agent, model)), _) => format!(" {agent} · {} ", model.model),
        (None, Some(chosen)) if state.session().is_none() => format!(" {} ", chosen.model.model),
        (None, _) => String::new(),
    }
}
