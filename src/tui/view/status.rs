//! The status line: the model, what the conversation has used, what waits and what runs.

use ratatui::layout::Rect;

use super::canvas::Canvas;
use crate::domain::turn::state::Settlement;
use crate::store::coordinate::Stall;
use crate::tui::action::{Action, AppAction};
use crate::tui::keymap::context::Context;
use crate::tui::line::Line;
use crate::tui::mark::Mark;
use crate::tui::state::State;
use crate::tui::state::activity::Work;
use crate::tui::state::keys::StepKind;
use crate::tui::state::list::Scan;
use crate::tui::state::settings::Access;
use crate::tui::theme::Ui;
use crate::tui::words;

pub(super) fn draw(canvas: &mut Canvas<'_>, state: &State, rect: Rect) {
    let inner = Rect { x: rect.x + 1, width: rect.width.saturating_sub(2), ..rect };
    let help = help(state);
    let cols = usize::from(inner.width);
    if let Some(step) = begun(state) {
        canvas.line(inner, &step.cut(cols));
        return;
    }
    if let Some(first) = state.status.stalls.list.first() {
        canvas.line(inner, &stalled(state, first, cols));
        return;
    }
    let room = cols.saturating_sub(help.width() + 2);
    canvas.line(inner, &joined(parts(state), room));
    canvas.line_right(inner, &help);
}

/// A step that a second key takes, or keys that wait for more.
fn begun(state: &State) -> Option<Line> {
    if !state.keys.pending.is_empty() {
        let keys: Vec<String> = state.keys.pending.iter().map(ToString::to_string).collect();
        return Some(Line::of(&keys.join(" "), Ui::Key).with(" …", Ui::Muted));
    }
    let step = state.keys.step.as_ref()?;
    let keymap = &state.settings.keymap;
    let (action, what) = match &step.kind {
        StepKind::Stop(Work::Turn(_)) => (AppAction::Escape, " again stops the turn"),
        StepKind::Stop(Work::Compaction(_)) => (AppAction::Escape, " again stops the summing up"),
        StepKind::Quit => (AppAction::Interrupt, " again quits"),
    };
    let key = keymap.hint(&[Context::Global], Action::App(action))?;
    Some(Line::of(&key.to_string(), Ui::Key).with(what, Ui::Caution))
}

/// What the disk does not take, in place of everything else: that goes on only when this is dealt
/// with. Where there is little room its reason goes first, which a notice has told, and the keys last.
fn stalled(state: &State, first: &Stall, cols: usize) -> Line {
    let stalls = &state.status.stalls;
    let caution = |text: &str| Line::of(text, Ui::Caution);
    let key = |action, what: &str| {
        let key = state.settings.keymap.hint(state.contexts(), Action::App(action));
        key.map(|key| Line::of(&key.to_string(), Ui::Key).with(what, Ui::Muted))
    };
    let keys = |retry, give_up| {
        [key(AppAction::RetryWrites, retry), key(AppAction::GiveUpWrites, give_up)]
    };
    let why = caution(&format!("! storage stalled: {}", first.cause));
    let held = caution(&format!("{} held", words::count(stalls.records(), "event")));
    let retry_in = stalls.retry_in_s(state.now.elapsed);
    let retry_in = retry_in.map(|left| caution(&format!("retry in {left} s")));
    let [retry, give_up] = keys(" retry", " give up");
    let [retry_key, give_up_key] = keys("", "");
    let (stalled, count) = (caution("! storage stalled"), caution(&stalls.records().to_string()));
    let short = caution("! stalled");
    let lines = [
        vec![Some(&why), Some(&held), retry_in.as_ref(), retry.as_ref(), give_up.as_ref()],
        vec![Some(&why), Some(&held), retry.as_ref(), give_up.as_ref()],
        vec![Some(&stalled), Some(&held), retry.as_ref(), give_up.as_ref()],
        vec![Some(&stalled), Some(&count), retry_key.as_ref(), give_up_key.as_ref()],
        vec![Some(&short), Some(&count), retry_key.as_ref(), give_up_key.as_ref()],
    ];
    let mut lines = lines.into_iter().map(|parts| dotted(parts.into_iter().flatten()));
    lines.find(|line| line.width() <= cols).unwrap_or_else(|| stalled.clone().cut(cols))
}

fn help(state: &State) -> Line {
    let key = state.settings.keymap.hint(state.contexts(), Action::App(AppAction::Help));
    match key {
        Some(key) => Line::of(&key.to_string(), Ui::Key).with(" help", Ui::Muted),
        None => Line::new(),
    }
}

/// What stands between parts of the line.
const DOT: &str = " · ";

/// A part of the line; those of less weight go first where there is no room.
struct Part {
    weight: u8,
    line: Line,
}

fn parts(state: &State) -> Vec<Part> {
    let part = |weight, line| Some(Part { weight, line });
    let muted = |text: &str| Line::of(text, Ui::Muted);
    let waiting = state.list.waiting().len();
    let running = state.activity.session_count();
    let model = state.status.model.as_ref();
    let parts = [
        (state.settings.access == Access::ReadOnly)
            .then(|| Part { weight: 8, line: Line::of("read only", Ui::Caution) }),
        model.and_then(|chosen| part(5, Line::of(&chosen.model.to_string(), Ui::Plain))),
        model.and_then(|chosen| part(2, muted(&chosen.why))),
        context_tokens(state)
            .and_then(|used| part(3, muted(&format!("{} tokens", words::tokens(used))))),
        (waiting > 0).then(|| {
            let line = Line::new().with_mark(Mark::Waiting);
            Part { weight: 9, line: line.with(&format!(" {waiting} waiting"), Ui::Plain) }
        }),
        (running > 0).then(|| {
            let what = if running == 1 { "session running" } else { "sessions running" };
            Part { weight: 6, line: muted(&format!("{running} {what}")) }
        }),
        matches!(state.work(), Some(Work::Compaction(_)))
            .then(|| Part { weight: 9, line: Line::of("summing up", Ui::Plain) }),
        scan(state).and_then(|line| part(7, line)),
    ];
    parts.into_iter().flatten().collect()
}

/// How many tokens the latest answer of the conversation took in and gave out.
fn context_tokens(state: &State) -> Option<u64> {
    let turn = state.conversation.turns.latest()?.state()?;
    let usage = turn.model_calls.iter().rev().find_map(|call| match &call.settlement {
        Some(Settlement::Completed(response)) => Some(response.usage),
        Some(Settlement::Failed { .. }) | None => None,
    })?;
    Some(usage.input_tokens?.saturating_add(usage.output_tokens.unwrap_or(0)))
}

fn scan(state: &State) -> Option<Line> {
    match &state.list.scan {
        Scan::Running { total: 0, .. } | Scan::Ended { .. } => None,
        Scan::Running { done, total } => {
            let text =
                format!("reading sessions {}/{}", words::grouped(*done), words::grouped(*total));
            Some(Line::of(&text, Ui::Muted))
        }
        Scan::Failed(why) => Some(Line::of(
            &format!("! sessions cannot be listed; `turnstile doctor` helps: {why}"),
            Ui::Caution,
        )),
    }
}

/// The parts with dots between them, as many as there is room for.
fn joined(mut parts: Vec<Part>, cols: usize) -> Line {
    loop {
        let widths: usize = parts.iter().map(|part| part.line.width() + DOT.chars().count()).sum();
        if widths.saturating_sub(DOT.chars().count()) <= cols || parts.len() <= 1 {
            break;
        }
        let least = parts.iter().enumerate().min_by_key(|(_, part)| part.weight);
        let Some(least) = least.map(|(at, _)| at) else { break };
        parts.remove(least);
    }
    dotted(parts.iter().map(|part| &part.line)).cut(cols)
}

/// Lines one after the other, with a dot between them.
fn dotted<'a>(lines: impl Iterator<Item = &'a Line>) -> Line {
    lines.fold(Line::new(), |all, line| {
        let all = if all.width() == 0 { all } else { all.with(DOT, Ui::Muted) };
        all.with_line(line.clone())
    })
}
