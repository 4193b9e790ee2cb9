//! Messages, reasoning, and what went wrong.

use super::{Ends, INDENT, Look, Rows};
use crate::base::sanitize::Policy;
use crate::domain::message::{Content, UserMessage, UserPart};
use crate::tui::action::{Action, TimelineAction};
use crate::tui::keymap::context::Context;
use crate::tui::line::{Fade, Line, led};
use crate::tui::mark::Mark;
use crate::tui::rich::plain;
use crate::tui::state::folds::Fold;
use crate::tui::state::item::{Came, Growth};
use crate::tui::theme::Ui;
use crate::tui::words;

/// Of a longer message so much is laid out at the start and at the end: some hundred rows, so that a
/// pasted file of many megabytes costs no more than a long letter.
const SHOWN_END_BYTES: usize = 32 * 1024;

/// A message of the person's, as it was typed.
pub(super) fn user(rows: &mut Rows, message: &UserMessage, look: &Look<'_>) {
    match &message.content {
        Content::Text(text) => typed(rows, text, look),
        Content::Parts(parts) => parts.iter().for_each(|part| user_part(rows, part, look)),
    }
}

fn user_part(rows: &mut Rows, part: &UserPart, look: &Look<'_>) {
    let about = match part {
        UserPart::Text(part) => return typed(rows, &part.text, look),
        UserPart::Attachment(file) => {
            let size = file.size.map(|size| format!(" ({})", words::bytes(size)));
            let line = file.line_number.map(|line| format!(":{line}"));
            let (line, size) = (line.unwrap_or_default(), size.unwrap_or_default());
            format!("@ {}{line}{size}", file.path)
        }
        UserPart::Image(image) => format!("@ image ({})", image.media_type),
    };
    rows.line(Line::of(&about, Ui::Muted).indented(INDENT.into()).cut(look.cols(0)));
}

fn typed(rows: &mut Rows, text: &str, look: &Look<'_>) {
    let width = look.width.saturating_sub(INDENT).max(1);
    let mut said =
        |text: &str| rows.text(plain::rows(text, width, Policy::Reading), INDENT, Fade::Front);
    let Some(Ends { head, middle, tail }) = Ends::of(text, SHOWN_END_BYTES) else {
        return said(text);
    };
    said(head);
    let contexts = [Context::Timeline, Context::Moving, Context::Global];
    let copy = look.keymap.hint(&contexts, Action::Timeline(TimelineAction::CopyMessage));
    let hint = copy.map_or(String::new(), |key| format!(" · {key} copies all"));
    let note = format!("… {} more{hint} …", words::bytes(middle.len() as u64));
    rows.line(Line::of(&note, Ui::Muted).indented(INDENT.into()).cut(look.cols(0)));
    rows.text(plain::rows(tail, width, Policy::Reading), INDENT, Fade::Front);
}

/// The line of reasoning, folded or not.
pub(super) fn reasoning(rows: &mut Rows, text: &str, growth: Growth, look: &Look<'_>) {
    let sign = if look.way.fold == Fold::Open { "▾ " } else { "▸ " };
    let mut head = Line::of(sign, Ui::Muted).indented(INDENT.into()).with("Reasoning", Ui::Muted);
    match growth {
        Growth::Settled | Growth::Interrupted => {
            let lines = words::count(text.lines().count(), "line");
            head = head.with(&format!(" · {lines}"), Ui::Muted);
        }
        Growth::Growing | Growth::Elsewhere => head = head.with_space(1).with_mark(Mark::Running),
    }
    rows.line(head.cut(look.cols(0)));
}

/// The line where what was said before was summed up, folded or not.
pub(super) fn divider(rows: &mut Rows, look: &Look<'_>) {
    let sign = if look.way.fold == Fold::Open { "▾ " } else { "▸ " };
    let text = "Summed up here for the model";
    let line = Line::of("── ", Ui::Border).with(sign, Ui::Muted).with(text, Ui::Muted);
    let left = look.cols(0).saturating_sub(line.width() + 1);
    rows.line(line.with_space(1).with(&"─".repeat(left), Ui::Border).cut(look.cols(0)));
}

/// Says that a crash ended a text.
pub(super) fn cut_off(rows: &mut Rows, growth: Growth, look: &Look<'_>) {
    if growth == Growth::Interrupted {
        let head = Line::new().with_space(INDENT.into()).with_mark(Mark::Interrupted).with_space(1);
        let text = "cut off when the program ended; the model will not see this";
        rows.lines(led(head, text, Ui::Muted, look.cols(0)));
    }
}

/// A model call failed.
pub(super) fn failure(rows: &mut Rows, error: &str, came: Came, look: &Look<'_>) {
    let head = Line::new().with_space(INDENT.into()).with_mark(Mark::Failed).with_space(1);
    let what = match came {
        Came::Nothing => "The model did not answer",
        Came::APart => "The answer broke off",
    };
    let text = format!("{what}: {error}");
    rows.lines(led(head, &text, Ui::Plain, look.cols(0)));
}

/// A turn cannot be read.
pub(super) fn damaged(rows: &mut Rows, why: &str, look: &Look<'_>) {
    let head = Line::new().with_space(INDENT.into()).with_mark(Mark::Damaged).with_space(1);
    rows.lines(led(head, "This turn cannot be read", Ui::Strong, look.cols(0)));
    let space = Line::new().with_space(usize::from(INDENT) * 2);
    rows.lines(led(space.clone(), why, Ui::Muted, look.cols(0)));
    let way_on = "the other turns can be read, and the session can still be deleted";
    rows.lines(led(space, way_on, Ui::Muted, look.cols(0)));
}
