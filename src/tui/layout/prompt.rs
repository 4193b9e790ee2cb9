//! The prompt above the composer: one line in its dock, or open with what it asks and its keys.

use ratatui::layout::{Position, Rect};

use super::composer::Room;
use super::{Layout, PromptArea, focused_pane};
use crate::domain::brief;
use crate::domain::turn::state::ToolCall;
use crate::tui::action::{Action, AppAction};
use crate::tui::cache::Cache;
use crate::tui::keymap::context::Context;
use crate::tui::line::Line;
use crate::tui::mark::Mark;
use crate::tui::rows::request::Extent;
use crate::tui::rows::{Lead, Look, Rows, Way, choices, question};
use crate::tui::state::conversation::Form;
use crate::tui::state::folds::Fold;
use crate::tui::state::prompts::{Prompt, PromptKind, Room as Found};
use crate::tui::state::{Focus, State};
use crate::tui::theme::Ui;

/// Rows of the conversation that stay in sight above an open prompt, where there is room.
const TIMELINE_ROWS_MIN: u16 = 3;
/// What an open prompt shows at least of what it asks, the note that there is more included.
const ROWS_MIN: usize = 2;
/// Below this room one row of it has to do.
const ROOMY_ROWS: u16 = 16;
/// What an open question shows of itself before it shows more than one row of keys: itself in two
/// rows, the option with the focus and the next, and the note that there are more.
const QUESTION_ROWS_MIN: usize = 5;
/// In less than this no keys are shown at all.
const KEYS_ROWS_MIN: usize = 3;
/// The bar beside a prompt.
const BAR_COLS: u16 = 1;
/// The bar, and the space at the other side.
const SIDES_COLS: u16 = BAR_COLS + 1;

/// Lays the first prompt at the foot of `room`; gives what is left for the conversation.
pub(super) fn lay(layout: &mut Layout, state: &State, room: &Room, cache: &mut Cache) -> Rect {
    let left = |rows: u16| {
        let height = room.rect.height.saturating_sub(rows + room.rule_rows);
        Rect { height, ..room.rect }
    };
    let prompt = state.prompts.open().or_else(|| state.prompts.first());
    let Some(prompt) = prompt else { return left(0) };
    let call = tool_call(state, prompt);
    let fitting = call.and_then(|call| {
        let asked = Asked { state, prompt, call, width: room.rect.width };
        match prompt.kind {
            PromptKind::Permission => asked.permission(available(room), cache),
            PromptKind::Question => asked.question(room),
        }
    });
    let found = if fitting.is_some() { Found::Enough } else { Found::TooLittle };
    let open = fitting.filter(|_| state.prompts.open().is_some());
    let text_cols = usize::from(question::text_cols(room.rect.width.saturating_sub(SIDES_COLS)));
    let is_open = open.is_some();
    let Opened { lines, caret } =
        open.unwrap_or_else(|| docked(state, prompt, call, room.rect.width));
    let rows = u16::try_from(lines.len()).unwrap_or(u16::MAX).min(room.rect.height);
    let rect = Rect { y: room.rect.bottom() - rows, height: rows, ..room.rect };
    let has_focus = focused_pane(state) == Some(Focus::Prompt);
    if has_focus {
        let (row, column) = caret.unwrap_or((0, 0));
        let x = (rect.x + BAR_COLS + column).min(rect.right().saturating_sub(1));
        let y = (rect.y + row).min(rect.bottom().saturating_sub(1));
        layout.drawn.caret = Some(Position { x, y });
    }
    let bar = if has_focus { Ui::FocusBar } else { Ui::Muted };
    let barred = |line: Line| Line::of("▌", bar).with_line(line).cut(usize::from(rect.width));
    layout.drawn.prompt = lines.into_iter().map(barred).collect();
    let call = prompt.call.clone();
    layout.prompt = Some(PromptArea { rect, call, is_open, room: found, text_cols });
    left(rows)
}

fn available(room: &Room) -> u16 {
    let min = if room.rect.height >= ROOMY_ROWS { TIMELINE_ROWS_MIN } else { 1 };
    room.rect.height.saturating_sub(room.rule_rows + min)
}

/// The call of a prompt, as its turn has it.
pub(super) fn tool_call<'a>(state: &'a State, prompt: &Prompt) -> Option<&'a ToolCall> {
    let slot = state.conversation.turns.slot(&prompt.turn)?;
    slot.state()?.tool_calls.get(&prompt.call)
}

/// The rows of a prompt, and the row and column of its caret.
struct Opened {
    lines: Vec<Line>,
    caret: Option<(u16, u16)>,
}

/// One line that says what waits and how to get there.
fn docked(state: &State, prompt: &Prompt, call: Option<&ToolCall>, width: u16) -> Opened {
    let cols = usize::from(width.saturating_sub(SIDES_COLS));
    let (ask, about) = match prompt.kind {
        PromptKind::Permission => {
            (format!("Allow {}?", prompt.name), call.map(brief::call).unwrap_or_default())
        }
        PromptKind::Question => {
            let form = state.prompts.forms.get(&prompt.call).and_then(|form| form.fields.first());
            (
                "Asks you:".to_owned(),
                form.map(|field| field.question.text.clone()).unwrap_or_default(),
            )
        }
    };
    let contexts = [Context::Global];
    let key = state.settings.keymap.hint(&contexts, Action::App(AppAction::GoToPrompt));
    let more = state.prompts.queue.len().saturating_sub(1);
    let more = if more > 0 { format!("+{more}  ") } else { String::new() };
    let right = match key {
        // It is to be open, and could not be.
        Some(key) if cols >= 40 && state.prompts.open().is_some() => {
            Line::of("no room · ", Ui::Caution).with(&key.to_string(), Ui::Key)
        }
        Some(key) => Line::of(&more, Ui::Muted)
            .with(&key.to_string(), Ui::Key)
            .with(if cols >= 40 { " to review" } else { "" }, Ui::Muted),
        None => Line::of(&more, Ui::Muted),
    };
    let left = Line::new().with_mark(Mark::Waiting).with_space(1).with(&ask, Ui::Strong);
    let left = left.with_space(1).with(&about, Ui::Muted);
    Opened { lines: vec![left.beside(right, cols)], caret: None }
}

/// A prompt that is to be open.
struct Asked<'a> {
    state: &'a State,
    prompt: &'a Prompt,
    call: &'a ToolCall,
    width: u16,
}

impl Asked<'_> {
    /// The rows of an open permission in so much room; nothing if there is not enough for its keys
    /// and some of what it asks, for what is not seen is not to be approved.
    fn permission(&self, room: u16, cache: &mut Cache) -> Option<Opened> {
        let choices = choices::permission(self.state, self.is_armed(), self.cols());
        let room = usize::from(room).checked_sub(choices.len() + 1)?;
        let highlighter = cache.highlighter();
        let look = look(self.state, self.width.saturating_sub(SIDES_COLS).max(1), &highlighter);
        let body = cache.request(&self.prompt.turn, self.call, Extent::Prompt, &look);
        // Something of what is asked has to be seen beside the notes that there is more.
        if room < body.len().min(ROWS_MIN) {
            return None;
        }
        let (body, _) = self.window(&body, 0, room);
        let mut lines = vec![self.head()];
        lines.extend(body);
        lines.extend(choices);
        Some(Opened { lines, caret: Some((0, 0)) })
    }

    /// The rows of an open question. The option with the focus is always among them: for want of
    /// room the conversation gives way, then the head, then the keys that help shows too.
    fn question(&self, room: &Room) -> Option<Opened> {
        let form = self.state.prompts.forms.get(&self.prompt.call)?;
        let (body, focus) = question::rows(form, self.width.saturating_sub(SIDES_COLS).max(1));
        let body = Rows::of_lines(body);
        let mut choices = choices::question(self.state, self.is_armed(), self.cols());
        let least = body.len().min(QUESTION_ROWS_MIN);
        let (beside, all) = (usize::from(available(room)), usize::from(room.rect.height));
        let most = if beside > choices.len() + least { beside } else { all };
        let keys_min = usize::from(most >= KEYS_ROWS_MIN);
        choices.truncate(most.saturating_sub(least).max(keys_min));
        let head_rows = usize::from(most > choices.len() + least);
        let left = most.checked_sub(choices.len() + head_rows).filter(|rows| *rows > 0)?;
        let (body, row) = self.window(&body, focus.0, left);
        let mut lines: Vec<Line> = (0..head_rows).map(|_| self.head()).collect();
        lines.extend(body);
        lines.extend(choices);
        let row = u16::try_from(row + head_rows).unwrap_or(u16::MAX);
        Some(Opened { lines, caret: Some((row, focus.1)) })
    }

    fn is_armed(&self) -> bool {
        self.state.prompts.armed() == Some(self.prompt)
    }

    fn cols(&self) -> usize {
        usize::from(self.width.saturating_sub(SIDES_COLS))
    }

    /// As many lines as there is room for, the one with the focus among them, and below them a note
    /// of what is not in sight; and the row of the focus.
    fn window(&self, rows: &Rows, focus: usize, room: usize) -> (Vec<Line>, usize) {
        let all = rows.len();
        if all <= room {
            return (rows.range(0, all).collect(), focus);
        }
        // The note takes a row, where there is more than one.
        let note_rows = usize::from(room > 1);
        let room = room - note_rows;
        // One row below the focus stays in sight: an option may take two.
        let first = (focus + 2).min(all).saturating_sub(room.max(2)).min(focus);
        let first = first.max((focus + 1).saturating_sub(room));
        let mut shown: Vec<Line> = rows.range(first, room).collect();
        let below = all - first - shown.len();
        if note_rows > 0 {
            shown.push(choices::more(self.state, self.prompt.kind, (first, below)));
        }
        (shown, focus - first)
    }

    fn head(&self) -> Line {
        let is_armed = self.is_armed();
        let title = match self.prompt.kind {
            PromptKind::Permission => format!("Allow {}?", self.prompt.name),
            PromptKind::Question => "The assistant asks you".to_owned(),
        };
        let left = Line::new().with_mark(Mark::Waiting).with_space(1).with(&title, Ui::Strong);
        let waiting = self.state.prompts.queue.len();
        let mut right = Line::new();
        if !is_armed {
            right = right.with("keys work in a moment", Ui::Muted);
        }
        if waiting > 1 {
            let gap = if is_armed { "" } else { " · " };
            right = right.with(&format!("{gap}1 of {waiting}"), Ui::Muted);
        }
        left.beside(right, self.cols())
    }
}

/// How a request is looked at.
pub(super) fn look<'a>(
    state: &'a State,
    width: u16,
    highlighter: &'a std::sync::Arc<crate::tui::rich::code::Highlighter>,
) -> Look<'a> {
    let lead = Lead { gap: false, head: None };
    Look {
        width,
        way: Way { fold: Fold::Open, form: Form::Rendered, lead, runs: false },
        zone: &state.settings.zone,
        now: state.now,
        keymap: &state.settings.keymap,
        access: state.settings.access,
        highlighter,
    }
}
