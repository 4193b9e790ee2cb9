//! `turnstile storage stats`.

use std::fmt::Write as _;

use serde_json::json;

use crate::app::App;
use crate::cli::report::{Exit, Form, Problem, print};
use crate::store::format::Format;
use crate::store::stats::{Stats, Sum};

/// Says how much there is.
pub(super) async fn stats(app: &App, format: Format, form: Form) -> Result<Exit, Problem> {
    let stats = app.stats().await.map_err(|error| Problem::of(Exit::Disk, &error))?;
    print(&match form {
        Form::Json => as_json(&stats, format.name()),
        Form::Text => as_text(&stats, format.name()),
    })?;
    Ok(Exit::Done)
}

fn as_text(stats: &Stats, format: &str) -> String {
    let Stats { sessions, turns, removed, set_aside, unknown, largest, places } = stats;
    let mut text = String::new();
    let mut row = |what: &str, found: &str| {
        writeln!(text, "{what:<26} {found}").ok();
    };
    row("format", format);
    row("sessions", &sum(sessions));
    row("turns", &sum(turns));
    row("deleted, can be restored", &removed.to_string());
    row("torn ends set aside", &set_aside.to_string());
    if *unknown > 0 {
        row("cannot be weighed", &unknown.to_string());
    }
    text.push_str("\non the disk\n");
    for (what, bytes) in places {
        writeln!(text, "  {what:<24} {}", size(*bytes)).ok();
    }
    if !largest.is_empty() {
        text.push_str("\nlargest\n");
    }
    for (log, bytes) in largest {
        writeln!(text, "  {:<24} {log}", size(*bytes)).ok();
    }
    text
}

fn sum(sum: &Sum) -> String {
    format!("{} ({})", sum.logs, size(sum.bytes))
}

/// Bytes for people, in powers of 1,024.
fn size(bytes: u64) -> String {
    indicatif::BinaryBytes(bytes).to_string()
}

fn as_json(stats: &Stats, format: &str) -> String {
    let Stats { sessions, turns, removed, set_aside, unknown, largest, places } = stats;
    let sum = |sum: &Sum| json!({"logs": sum.logs, "bytes": sum.bytes});
    let largest: Vec<_> = largest
        .iter()
        .map(|(log, bytes)| json!({"kind": log.kind().as_str(), "id": log.id(), "bytes": bytes}))
        .collect();
    let places: Vec<_> =
        places.iter().map(|(what, bytes)| json!({"what": what, "bytes": bytes})).collect();
    let value = json!({
        "format": format,
        "sessions": sum(sessions),
        "turns": sum(turns),
        "removed": removed,
        "setAside": set_aside,
        "unknown": unknown,
        "largest": largest,
        "places": places,
    });
    format!("{value}\n")
}
