//! Tool calls: folded to one line, or with their arguments, what was decided, progress and result.

use super::{Ends, INDENT, Look, Rows, json};
use crate::base::sanitize::Policy;
use crate::domain::brief;
use crate::domain::question::{self, ASK_HUMAN};
use crate::domain::tool::{Cut, ResultMetadata};
use crate::domain::turn::event::{Decision, DecisionSource};
use crate::domain::turn::state::{Outcome, Permission, Resolution, ToolCall};
use crate::tui::action::{Action, TimelineAction};
use crate::tui::keymap::context::Context;
use crate::tui::line::{Fade, Line, led};
use crate::tui::mark::Mark;
use crate::tui::rich::{Row, ansi, diff, plain};
use crate::tui::state::conversation::Form;
use crate::tui::state::folds::Fold;
use crate::tui::state::item::CallBody;
use crate::tui::theme::Ui;
use crate::tui::words;

/// How far in the details of a call stand.
const DETAIL: u16 = 2 * INDENT;
/// Of longer output this many rows at the start and at the end are shown.
const OUTPUT_END_ROWS: usize = 200;
/// Of longer output no more than this is laid out at the start and at the end: about what
/// [`OUTPUT_END_ROWS`] of wide lines take.
const OUTPUT_END_BYTES: usize = 64 * 1024;
/// Older reports of a running tool are counted only.
const REPORTS_SHOWN: usize = 5;

pub(super) fn rows(rows: &mut Rows, body: &CallBody<'_>, look: &Look<'_>) {
    let is_open = look.way.fold == Fold::Open;
    let sign = if is_open { "▾ " } else { "▸ " };
    let head = Line::of(sign, Ui::Muted).indented(INDENT.into()).with(body.name, Ui::Strong);
    let head = head.with_space(1).with(&brief::arguments(body.arguments), Ui::Muted);
    rows.line(head.beside(standing(body, look), look.cols(0)));
    if is_open {
        details(rows, body, look);
    }
}

/// How a call stands, in a few words.
fn standing(body: &CallBody<'_>, look: &Look<'_>) -> Line {
    let Some(call) = body.call else { return said(Mark::Running, "writing", look) };
    if let Some(outcome) = &call.result {
        return ended(call, outcome);
    }
    if call.awaits_permission() {
        return Line::new().with_mark(Mark::Waiting).with(" waiting", Ui::Strong);
    }
    if call.awaits_async_result() {
        let whom = if call.name == ASK_HUMAN { " asks you" } else { " waiting" };
        return Line::new().with_mark(Mark::Waiting).with(whom, Ui::Strong);
    }
    match &call.invocation {
        Some(_) => said(Mark::Running, "running", look),
        None => said(Mark::Running, "to run", look),
    }
}

/// What goes on only while the turn runs.
fn said(mark: Mark, what: &str, look: &Look<'_>) -> Line {
    if look.way.runs {
        Line::new().with_mark(mark).with_space(1).with(what, Ui::Muted)
    } else {
        Line::new().with_mark(Mark::Interrupted).with(" interrupted", Ui::Muted)
    }
}

fn ended(call: &ToolCall, outcome: &Outcome) -> Line {
    let metadata = ResultMetadata::read(outcome.data.metadata.as_ref());
    let denied = resolution(call).is_some_and(|resolved| resolved.decision == Decision::Deny);
    if denied || metadata.denied_by.is_some() {
        return Line::new().with_mark(Mark::Failed).with(" denied", Ui::Muted);
    }
    let (mark, summary) = match metadata.cut {
        Some(Cut::Stopped) => (Mark::Stopped, "stopped".to_owned()),
        Some(Cut::Interrupted) => (Mark::Interrupted, "interrupted".to_owned()),
        None if is_dismissed(call, outcome) => (Mark::Stopped, "dismissed".to_owned()),
        None => {
            let mark = if outcome.data.is_error { Mark::Failed } else { Mark::Done };
            (mark, metadata.summary.unwrap_or_else(|| summary(outcome)))
        }
    };
    let line = Line::new().with_mark(mark).with_space(1).with(&summary, Ui::Muted);
    match &call.invocation {
        Some(run) => {
            let took = words::span(outcome.at.since(run.at));
            line.with(&format!(" · {took}"), Ui::Muted)
        }
        None => line,
    }
}

/// Whether the person did not want to answer.
fn is_dismissed(call: &ToolCall, outcome: &Outcome) -> bool {
    call.name == ASK_HUMAN && question::is_dismissed(&outcome.data.output)
}

/// A result that does not say what it is: how long it is.
fn summary(outcome: &Outcome) -> String {
    let is_error = outcome.data.is_error;
    match outcome.data.output.as_text() {
        _ if is_error => "failed".to_owned(),
        Some(text) => words::count(text.lines().count(), "line"),
        None => "done".to_owned(),
    }
}

fn resolution(call: &ToolCall) -> Option<&Resolution> {
    call.permission.as_ref().and_then(|permission| permission.resolved.as_ref())
}

fn details(rows: &mut Rows, body: &CallBody<'_>, look: &Look<'_>) {
    let metadata = body.call.and_then(|call| call.result.as_ref());
    let metadata =
        ResultMetadata::read(metadata.and_then(|outcome| outcome.data.metadata.as_ref()));
    arguments(rows, body, metadata.diff.as_deref(), look);
    let Some(call) = body.call else { return };
    if let Some(permission) = &call.permission {
        decided(rows, permission, look);
    }
    match &call.result {
        Some(outcome) => result(rows, outcome, &metadata, look),
        None => progress(rows, call, body, look),
    }
}

/// The arguments: a command as it would be typed, an edit as a diff, all else by their names.
fn arguments(rows: &mut Rows, body: &CallBody<'_>, known: Option<&str>, look: &Look<'_>) {
    let value = body.arguments.to_value();
    let text = |name: &str| value.get(name).and_then(serde_json::Value::as_str);
    if let Some(command) = text("command") {
        rows.lines(led(prompt_sign(), command, Ui::Plain, look.cols(0)));
    } else if let (Some(old), Some(new)) = (text("old_text"), text("new_text")) {
        // The result says it better, with the lines around.
        if known.is_none() {
            let change = diff::Change { old, new };
            rows.text(diff::rows(change, width(look), Policy::Reading), DETAIL, Fade::Front);
        }
    } else {
        json::whole(rows, body.arguments, DETAIL, Policy::Reading, look);
    }
}

fn prompt_sign() -> Line {
    Line::new().with_space(DETAIL.into()).with("$ ", Ui::Muted)
}

fn decided(rows: &mut Rows, permission: &Permission, look: &Look<'_>) {
    let Some(resolved) = &permission.resolved else { return };
    let verdict = match resolved.decision {
        Decision::Allow => "allowed",
        Decision::Deny => "denied",
    };
    let who = match resolved.source {
        DecisionSource::Human => "by you",
        DecisionSource::Classifier => "by the classifier",
        DecisionSource::HumanUnavailable => "because nobody was there to ask",
    };
    let time = words::clock(resolved.at, look.zone);
    let text = match &resolved.reason {
        Some(reason) => format!("{verdict} {who} · {time}: {reason}"),
        None => format!("{verdict} {who} · {time}"),
    };
    rows.lines(led(Line::new().with_space(DETAIL.into()), &text, Ui::Muted, look.cols(0)));
}

fn progress(rows: &mut Rows, call: &ToolCall, body: &CallBody<'_>, look: &Look<'_>) {
    let older = call.progress.len().saturating_sub(REPORTS_SHOWN);
    let space = || Line::new().with_space(DETAIL.into());
    if older > 0 {
        rows.line(space().with(&format!("… {} before", words::count(older, "report")), Ui::Muted));
    }
    for report in call.progress.iter().skip(older) {
        let head = space().with("· ", Ui::Muted);
        rows.lines(led(head, &brief::arguments(report), Ui::Muted, look.cols(0)));
    }
    if let Some(tail) = body.tail {
        rows.text(ansi::rows(&tail.text, width(look)), DETAIL, Fade::Back);
    }
}

fn result(rows: &mut Rows, outcome: &Outcome, metadata: &ResultMetadata, look: &Look<'_>) {
    let mut say = |text: &str| {
        rows.lines(led(Line::new().with_space(DETAIL.into()), text, Ui::Muted, look.cols(0)));
    };
    if let Some(rule) = &metadata.denied_by {
        say(&format!("denied by the rule: {rule}"));
    }
    if let Some(file) = &metadata.whole_output {
        say(&format!("the model got the start and the end of it; all of it is in {file}"));
    }
    if let Some(diff) = metadata.diff.as_deref() {
        rows.text(diff::patch_rows(diff, width(look), Policy::Reading), DETAIL, Fade::Front);
        return;
    }
    match outcome.data.output.as_text() {
        Some(text) => output(rows, &text, look),
        None => json::whole(rows, &outcome.data.output, DETAIL, Policy::Reading, look),
    }
}

/// The output of a tool: its start and its end, with a count of what lies between, or all of it in
/// the raw form.
fn output(rows: &mut Rows, text: &str, look: &Look<'_>) {
    if look.way.form == Form::Raw {
        rows.text(plain::rows(text, width(look), Policy::Reading), DETAIL, Fade::Front);
        return;
    }
    let Some(Ends { head, middle, tail }) = Ends::of(text, OUTPUT_END_BYTES) else {
        let mut all = ansi::rows(text, width(look));
        if all.len() <= 2 * OUTPUT_END_ROWS + 1 {
            rows.text(all, DETAIL, Fade::Front);
            return;
        }
        let tail = all.split_off(all.len() - OUTPUT_END_ROWS);
        let hidden = all.split_off(OUTPUT_END_ROWS);
        let lines = hidden.iter().filter(|row| !row.is_continued()).count();
        ends(rows, (all, tail), lines, look);
        return;
    };
    let mut head = ansi::rows(head, width(look));
    let mut tail = ansi::rows(tail, width(look));
    let count = |rows: &[Row]| rows.iter().filter(|row| !row.is_continued()).count();
    let dropped = head.split_off(OUTPUT_END_ROWS.min(head.len()));
    let kept = tail.split_off(tail.len().saturating_sub(OUTPUT_END_ROWS));
    let lines = middle.lines().count() + count(&dropped) + count(&tail);
    ends(rows, (head, kept), lines, look);
}

fn ends(rows: &mut Rows, (head, tail): (Vec<Row>, Vec<Row>), lines: usize, look: &Look<'_>) {
    rows.text(head, DETAIL, Fade::Front);
    let contexts = [Context::Timeline, Context::Moving, Context::Global];
    let raw = look.keymap.hint(&contexts, Action::Timeline(TimelineAction::ToggleRaw));
    let hint = raw.map_or(String::new(), |key| format!(" · {key} shows all"));
    let note = format!("… {} more{hint} …", words::count(lines, "line"));
    rows.line(Line::of(&note, Ui::Muted).indented(DETAIL.into()).cut(look.cols(0)));
    rows.text(tail, DETAIL, Fade::Front);
}

fn width(look: &Look<'_>) -> u16 {
    look.width.saturating_sub(DETAIL).max(1)
}
