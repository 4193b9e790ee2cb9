//! What a call would do, for a person to decide: everything that the stored request says, spelled
//! out so that what is shown is what is approved.

use super::{Look, Rows, command, json};
use crate::base::sanitize::{self, Policy};
use crate::domain::json::Json;
use crate::domain::permission::plan::{LocatedPath, PermissionRequest, Preview};
use crate::domain::turn::event::Classification;
use crate::domain::turn::state::{Permission, ToolCall};
use crate::tui::line::{Fade, Line, folded, led};
use crate::tui::rich::{diff, plain};
use crate::tui::theme::Ui;

/// How far in what would happen stands.
const DETAIL: u16 = 2;

/// How much is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Extent {
    /// What will happen, and why it is asked.
    Prompt,
    /// That and the arguments as the model gave them.
    Whole,
}

/// Everything that a call would do, and why it is asked.
#[must_use]
pub fn rows(call: &ToolCall, extent: Extent, look: &Look<'_>) -> Rows {
    let mut rows = Rows::default();
    let Some(permission) = &call.permission else {
        json::whole(&mut rows, &call.arguments, 0, Policy::Approval, look);
        return rows;
    };
    if let Ok(request) = permission.request.read::<PermissionRequest>() {
        planned(&mut rows, call, &request, look);
        why(&mut rows, &request.rule, permission, look);
    } else {
        foreign(&mut rows, &permission.request, call, look);
        why(&mut rows, "", permission, look);
    }
    if extent == Extent::Whole {
        rows.line(Line::new());
        rows.line(Line::of("Arguments, as the model gave them", Ui::Muted).cut(look.cols(0)));
        json::whole(&mut rows, &call.arguments, DETAIL, Policy::Approval, look);
    }
    rows
}

fn planned(rows: &mut Rows, call: &ToolCall, request: &PermissionRequest, look: &Look<'_>) {
    let plan = &request.plan;
    for line in &plan.commands {
        rows.lines(command::rows(line, look.width));
    }
    let made = match &request.preview {
        Preview::Diff { path, created: true, .. } => Some(path),
        Preview::Diff { .. } | Preview::Text { .. } | Preview::None => None,
    };
    let writes = |path: &LocatedPath| if made == Some(&path.path) { "makes" } else { "writes" };
    let paths = plan.writes.iter().map(|path| (writes(path), path));
    for (what, path) in paths.chain(plan.reads.iter().map(|path| ("reads", path))) {
        located(rows, what, path, look);
    }
    for host in &plan.hosts {
        fact(rows, "reaches", host, look);
    }
    match &request.preview {
        Preview::None => {
            let says_nothing = plan.commands.is_empty()
                && plan.writes.is_empty()
                && plan.reads.is_empty()
                && plan.hosts.is_empty();
            if says_nothing {
                json::whole(rows, &call.arguments, DETAIL, Policy::Approval, look);
            }
        }
        Preview::Text { text } => {
            rows.text(plain::rows(text, width(look), Policy::Approval), DETAIL, Fade::Front);
        }
        Preview::Diff { path, diff, created } => {
            let what = if *created { "makes" } else { "changes" };
            // A path that the plan named already says nothing new.
            if plan.writes.iter().all(|known| known.path != *path) {
                fact(rows, what, path, look);
            }
            rows.text(diff::patch_rows(diff, width(look), Policy::Approval), DETAIL, Fade::Front);
        }
    }
    if !plan.commands.is_empty() {
        fact(rows, "in", &plan.folder, look);
    }
}

fn located(rows: &mut Rows, what: &str, path: &LocatedPath, look: &Look<'_>) {
    if !path.inside && path.resolved == path.path {
        let note = Line::of("! outside the folder", Ui::Caution);
        let line = named(what).with(&shown(&path.path), Ui::Plain).with_space(2);
        let line = line.with_line(note.clone());
        if line.width() <= look.cols(2 * DETAIL) {
            return hanging(rows, line, look);
        }
        fact(rows, what, &path.path, look);
        return rows.line(note.indented(usize::from(DETAIL) * 2).cut(look.cols(0)));
    }
    fact(rows, what, &path.path, look);
    if path.inside && path.resolved.ends_with(&path.path) {
        return;
    }
    let (note, part) = if path.inside {
        ("which is ", Ui::Muted)
    } else {
        ("! outside the folder: ", Ui::Caution)
    };
    let line = Line::new().with_space(usize::from(DETAIL) * 2).with(note, part);
    let resolved = sanitize::for_approval(&path.resolved).into_owned();
    rows.lines(folded(line.with(&resolved, Ui::Plain), look.cols(0)));
}

fn fact(rows: &mut Rows, what: &str, of: &str, look: &Look<'_>) {
    hanging(rows, named(what).with(&shown(of), Ui::Plain), look);
}

fn named(what: &str) -> Line {
    Line::of(&format!("{what:<8}"), Ui::Muted)
}

fn shown(of: &str) -> String {
    sanitize::for_approval(of).replace('\n', "␊")
}

/// A line of which what does not fit stands further in below it.
fn hanging(rows: &mut Rows, line: Line, look: &Look<'_>) {
    let indent = usize::from(DETAIL);
    let folded = folded(line, look.cols(2 * DETAIL)).into_iter().enumerate();
    rows.lines(folded.map(|(at, row)| row.indented(if at == 0 { indent } else { 2 * indent })));
}

/// A request of another implementation: as it is.
fn foreign(rows: &mut Rows, request: &Json, call: &ToolCall, look: &Look<'_>) {
    json::whole(rows, request, DETAIL, Policy::Approval, look);
    json::whole(rows, &call.arguments, DETAIL, Policy::Approval, look);
}

/// Why the person is asked.
fn why(rows: &mut Rows, rule: &str, permission: &Permission, look: &Look<'_>) {
    if !rule.is_empty() {
        let head = named("rule").indented(DETAIL.into());
        rows.lines(led(head, &shown(rule), Ui::Plain, look.cols(0)));
    }
    let mut say = |text: &str, part: Ui| {
        let space = Line::new().with_space(DETAIL.into());
        rows.lines(led(space, &sanitize::for_approval(text), part, look.cols(0)));
    };
    if let Some(error) = &permission.checker_error {
        say(&format!("! the rules could not be applied: {error}"), Ui::Caution);
    }
    if let Some((opinion, reason)) = &permission.classified {
        let opinion = match opinion {
            Classification::Allow => "allows it",
            Classification::Deny => "would deny it",
            Classification::Defer => "leaves it to you",
        };
        say(&format!("the classifier {opinion}: {reason}"), Ui::Muted);
    }
    if let Some(error) = &permission.classification_failed {
        say(&format!("the classifier could not say: {error}"), Ui::Muted);
    }
}

fn width(look: &Look<'_>) -> u16 {
    look.width.saturating_sub(DETAIL).max(1)
}
