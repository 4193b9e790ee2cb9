//! Sessions that were removed: which can still be restored, and restoring them.

use std::fmt::Write as _;

use serde_json::json;

use crate::app::App;
use crate::base::sanitize;
use crate::cli::report::{Exit, Form, Problem, print};
use crate::cli::sessions::{Said, each};

/// Lists the removed sessions, the last removed first.
pub(super) async fn list(app: &App, form: Form) -> Result<Exit, Problem> {
    let mut removed =
        app.deleted_sessions().await.map_err(|error| Problem::of(Exit::Disk, &error))?;
    removed.sort_by_key(|(session, at)| (std::cmp::Reverse(*at), session.clone()));
    let mut text = String::new();
    for (session, at) in removed {
        let at = at.to_string();
        let line = match form {
            Form::Json => json!({"sessionId": session.as_str(), "deletedAt": at}).to_string(),
            Form::Text => format!("{}  removed {at}", sanitize::for_line(session.as_str())),
        };
        writeln!(text, "{line}").ok();
    }
    print(&text)?;
    Ok(Exit::Done)
}

/// Brings sessions back; each for itself.
pub(super) async fn restore(app: &App, ids: &[String], form: Form) -> Result<Exit, Problem> {
    each(ids, Said { done: "restored", form }, async |session| app.restore_session(session).await)
        .await
}
