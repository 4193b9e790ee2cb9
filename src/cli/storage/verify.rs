//! `turnstile storage verify`.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::app::App;
use crate::base::sanitize;
use crate::cli::progress::Bar;
use crate::cli::report::{Exit, Form, Problem, count, print};
use crate::store::error::StoreError;
use crate::store::verify::{Fault, Verdict};

/// Reads everything and says what is wrong.
pub(super) async fn verify(app: &App, form: Form) -> Result<Exit, Problem> {
    let mut bar = Bar::new();
    let verdict = app.verify(&mut |progress| bar.show(progress)).await;
    drop(bar);
    let verdict = verdict.map_err(|error| Problem::of(Exit::Disk, &error))?;
    print(&match form {
        Form::Json => as_json(&verdict),
        Form::Text => as_text(&verdict),
    })?;
    Ok(match verdict.faults.as_slice() {
        [] => Exit::Done,
        [_, ..] => Exit::Failed,
    })
}

fn as_text(verdict: &Verdict) -> String {
    let Verdict { sessions, turns, removed, records, torn, open, faults } = verdict;
    let mut text = String::new();
    for fault in faults {
        writeln!(text, "! {}", sanitize::for_line(&fault.to_string())).ok();
    }
    for place in torn {
        let place = sanitize::for_line(&place.to_string()).into_owned();
        writeln!(text, "  {place} ends in a torn write; the next opening sets it aside").ok();
    }
    let (sessions, turns) = (count(*sessions, "session"), count(*turns, "turn"));
    writeln!(text, "{sessions}, {turns}, {removed} deleted, {}", count(*records, "record")).ok();
    if *open > 0 {
        writeln!(text, "not ended: {}", count(*open, "turn")).ok();
    }
    let found = match faults.len() {
        0 => "all is well".to_owned(),
        more => count(more as u64, "fault"),
    };
    writeln!(text, "{found}").ok();
    if faults.iter().any(is_damage) {
        text.push_str("`turnstile storage salvage` saves what can still be read\n");
    }
    text
}

fn is_damage(fault: &Fault) -> bool {
    matches!(
        fault,
        Fault::Store(StoreError::Corrupt { .. } | StoreError::Torn { .. })
            | Fault::Removed { error: StoreError::Corrupt { .. } | StoreError::Torn { .. }, .. }
    )
}

fn as_json(verdict: &Verdict) -> String {
    let Verdict { sessions, turns, removed, records, torn, open, faults } = verdict;
    let line = |value: Value| format!("{value}\n");
    let mut lines: String = faults.iter().map(|fault| line(fault_as_json(fault))).collect();
    lines.push_str(&line(json!({
        "sessions": sessions,
        "turns": turns,
        "removed": removed,
        "records": records,
        "torn": torn.iter().map(|place| place.log.id()).collect::<Vec<_>>(),
        "open": open,
        "faults": faults.len(),
    })));
    lines
}

fn fault_as_json(fault: &Fault) -> Value {
    let why = fault.to_string();
    match fault {
        Fault::Store(StoreError::Corrupt { place, line, .. }) => json!({
            "fault": "corrupt",
            "kind": place.log.kind().as_str(),
            "id": place.log.id(),
            "line": line,
            "why": why,
        }),
        Fault::Removed { removed, .. } => json!({
            "fault": "removed",
            "kind": removed.log.kind().as_str(),
            "id": removed.log.id(),
            "why": why,
        }),
        Fault::Store(_) => json!({"fault": "store", "why": why}),
        Fault::Misplaced(stray) => json!({
            "fault": "misplaced",
            "kind": stray.log.kind().as_str(),
            "id": stray.log.id(),
            "why": why,
        }),
        Fault::Dangling { from, to, .. } => json!({
            "fault": "dangling",
            "kind": from.kind().as_str(),
            "id": from.id(),
            "to": to.id(),
            "why": why,
        }),
        Fault::Circle(turn) => {
            json!({"fault": "circle", "kind": "turn", "id": turn.id(), "why": why})
        }
    }
}
