//! `turnstile sessions gc`: destroying what was deleted long ago and the turns that nothing reaches.

use std::fmt::Write as _;

use serde_json::json;

use crate::app::App;
use crate::cli::report::{Exit, Form, Problem, print, tell};
use crate::sessions::gc::Garbage;

/// What is to happen to what is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Named,
    Destroyed,
}

/// Names what can be destroyed, and destroys it if that was said.
pub(super) async fn gc(app: &App, fate: Fate, form: Form) -> Result<Exit, Problem> {
    let found = app.find_garbage().await.map_err(|error| Problem::of(Exit::Disk, &error))?;
    let garbage = match fate {
        Fate::Named => found,
        Fate::Destroyed => {
            let destroyed = app.graph().sessions.destroy_garbage(&found).await;
            destroyed.map_err(|error| Problem::of(Exit::Disk, &error))?
        }
    };
    print(&match form {
        Form::Json => as_json(&garbage, fate),
        Form::Text => as_text(&garbage, fate),
    })?;
    if garbage.unsure.is_empty() {
        return Ok(Exit::Done);
    }
    let why = garbage.unsure.join("; ");
    tell(&Problem::new(Exit::Failed, format!("it cannot be told which turns are needed: {why}")));
    Ok(Exit::Failed)
}

fn as_json(garbage: &Garbage, fate: Fate) -> String {
    let destroyed = fate == Fate::Destroyed;
    let expired =
        garbage.expired.iter().map(|removed| (removed.log.kind().as_str(), removed.log.id()));
    let turns = garbage.turns.iter().map(|turn| ("turn", turn.as_str()));
    let line =
        |(kind, id): (&str, &str)| format!("{}\n", json!({kind: id, "destroyed": destroyed}));
    expired.chain(turns).map(line).collect()
}

fn as_text(garbage: &Garbage, fate: Fate) -> String {
    let done = match fate {
        Fate::Named => "would destroy",
        Fate::Destroyed => "destroyed",
    };
    let mut text = String::new();
    for removed in &garbage.expired {
        writeln!(text, "{done} deleted {}", removed.log).ok();
    }
    for turn in &garbage.turns {
        writeln!(text, "{done} turn {turn}").ok();
    }
    if text.is_empty() {
        text.push_str("nothing to destroy\n");
    } else if fate == Fate::Named {
        text.push_str("nothing was destroyed yet; --yes does it\n");
    }
    text
}
