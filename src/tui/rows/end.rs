//! How a turn ended, or how it stands.

use super::{INDENT, Look, Rows};
use crate::domain::turn::event::{MODEL_CALL_LIMIT, TurnCompleted, TurnFailed};
use crate::domain::turn::state::{Terminal, TerminalKind};
use crate::domain::usage::TurnUsage;
use crate::runtime::CONTEXT_OVERFLOW;
use crate::tui::action::{Action, AppAction, TurnAction};
use crate::tui::keymap::context::Context;
use crate::tui::line::{Line, led};
use crate::tui::mark::Mark;
use crate::tui::state::item::{EndBody, Standing};
use crate::tui::state::settings::Access;
use crate::tui::theme::Ui;
use crate::tui::words;

/// Where the focus is on the conversation.
const HERE: [Context; 3] = [Context::Timeline, Context::Moving, Context::Global];

pub(super) fn rows(rows: &mut Rows, body: &EndBody<'_>, look: &Look<'_>) {
    match &body.standing {
        Standing::Ended(terminal) => ended(rows, terminal, body, look),
        Standing::Running { run, wait } => {
            let doing = match wait {
                Some(wait) => {
                    let again = words::clock_seconds(wait.until, look.zone);
                    format!("waiting for the model: {} · again at {again}", wait.why)
                }
                None => "working".to_owned(),
            };
            let time = words::whole_seconds(look.now.elapsed.saturating_sub(run.since));
            let facts = joined([Some(time), used(body.usage)]);
            let text = format!("{doing}{facts}");
            rows.lines(led(start(Mark::Running), &text, Ui::Muted, look.cols(0)));
        }
        Standing::Suspended => {
            let line = start(Mark::Waiting).with("waits for you", Ui::Strong);
            let hint = |key: Option<String>, does: &str| {
                let text = key.map_or(String::new(), |key| format!(" · {key} {does}"));
                Line::of(&text, Ui::Muted)
            };
            let review = key(look, &[Context::Global], Action::App(AppAction::GoToPrompt));
            let stop = hint(key(look, &HERE, Action::Turn(TurnAction::Close)), "here to stop");
            // The prompt below says too how it is reviewed.
            let all = line.clone().with_line(hint(review, "to review")).with_line(stop.clone());
            let fits = all.width() <= look.cols(0);
            rows.line(if fits { all } else { line.with_line(stop).cut(look.cols(0)) });
        }
        Standing::Interrupted => interrupted(rows, look),
        Standing::Elsewhere(holder) => {
            let since = holder.since.map(|at| format!("since {}", words::clock(at, look.zone)));
            let text = format!("open in {}{}", words::holder(holder), joined([since]));
            rows.lines(led(start(Mark::Running), &text, Ui::Muted, look.cols(0)));
        }
    }
}

fn interrupted(rows: &mut Rows, look: &Look<'_>) {
    let text = "Interrupted: this turn was cut off while it was running";
    rows.lines(led(start(Mark::Interrupted), text, Ui::Strong, look.cols(0)));
    if look.access == Access::ReadOnly {
        return;
    }
    let actions = [(TurnAction::Resume, "goes on with it"), (TurnAction::Close, "closes it")];
    let mut line = Line::new().with_space(usize::from(INDENT) * 2);
    for (action, does) in actions {
        let Some(key) = key(look, &HERE, Action::Turn(action)) else { continue };
        line = line.with(&key, Ui::Key).with(&format!(" {does}   "), Ui::Muted);
    }
    let whole = line.clone().with("with the focus here", Ui::Muted);
    rows.line(if whole.width() <= look.cols(0) { whole } else { line.cut(look.cols(0)) });
}

/// The key of something that can be done.
fn key(look: &Look<'_>, contexts: &[Context], action: Action) -> Option<String> {
    if !look.access.allows(action) {
        return None;
    }
    look.keymap.hint(contexts, action).map(ToString::to_string)
}

fn ended(rows: &mut Rows, terminal: &Terminal, body: &EndBody<'_>, look: &Look<'_>) {
    let took = words::span(terminal.at.since(body.began_at));
    let facts = [Some(words::clock(terminal.at, look.zone)), Some(took), used(body.usage)];
    let facts = joined(facts);
    let mut say = |head: Line, what: &str, part: Ui| {
        rows.lines(led(head, what, part, look.cols(0)));
    };
    let below = || Line::new().with_space(usize::from(INDENT) * 2);
    match &terminal.kind {
        TerminalKind::Completed(completed) => match caution(completed) {
            None => say(start(Mark::Done), &format!("done{facts}"), Ui::Muted),
            Some(caution) => {
                let head = Line::new().with_space(INDENT.into()).with("! ", Ui::Caution);
                say(head, &caution, Ui::Caution);
                say(below(), &format!("ended{facts}"), Ui::Muted);
            }
        },
        TerminalKind::Failed(failed) => {
            say(start(Mark::Failed), &format!("failed{facts}"), Ui::Muted);
            if body.failure != Some(failed.error.as_str()) {
                say(below(), &why(failed), Ui::Plain);
            }
            let key = key(look, &HERE, Action::App(AppAction::Compact));
            if let (Some(CONTEXT_OVERFLOW), Some(key)) = (failed.code.as_deref(), key) {
                say(below(), &format!("{key} sums up what was said, to make room"), Ui::Muted);
            }
        }
        TerminalKind::Cancelled(_) if terminal.is_closed_interruption() => {
            let text = format!("interrupted when the program ended, and closed{facts}");
            say(start(Mark::Interrupted), &text, Ui::Muted);
        }
        TerminalKind::Cancelled(cancelled) => {
            say(start(Mark::Stopped), &format!("stopped{facts}"), Ui::Muted);
            if let Some(reason) = &cancelled.reason {
                say(below(), reason, Ui::Muted);
            }
        }
    }
}

fn start(mark: Mark) -> Line {
    Line::new().with_space(INDENT.into()).with_mark(mark).with_space(1)
}

/// What a reader must know about an answer that ended otherwise than it should.
fn caution(completed: &TurnCompleted) -> Option<String> {
    match completed.finish_reason.as_str() {
        "stop" => None,
        "length" => Some("cut off: the answer reached the length limit of the model".into()),
        "content-filter" => Some("cut off by the content filter of the provider".into()),
        other => Some(format!("the answer ended with the reason: {other}")),
    }
}

fn why(failed: &TurnFailed) -> String {
    match failed.code.as_deref() {
        Some(MODEL_CALL_LIMIT) => {
            format!("{}; send a message to let it go on", failed.error)
        }
        Some(_) | None => failed.error.clone(),
    }
}

fn used(usage: &TurnUsage) -> Option<String> {
    let part = |tokens: Option<u64>, way: &str| {
        tokens.map(|tokens| format!("{} {way}", words::tokens(tokens)))
    };
    let parts = [part(usage.input_tokens, "tokens in"), part(usage.output_tokens, "out")];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn joined<const N: usize>(facts: [Option<String>; N]) -> String {
    facts.into_iter().flatten().fold(String::new(), |line, fact| line + " · " + &fact)
}
