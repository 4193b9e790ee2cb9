//! Sessions that were removed: which can still be restored, and restoring them.

use std::fmt::Write as _;

use serde_json::json;

use crate::app::App;
use crate::base::sanitize;
use crate::cli::report::{Exit, Problem, print};
use crate::cli::sessions::{Said, each};

/// Lists the removed sessions, the last removed first.
pub(super) async fn list(app: &App, json: bool) -> Result<Exit, Problem> {
    let mut removed =
        app.deleted_sessions().await.map_err(|error| Problem::of(Exit::Disk, &error))?;
    removed.sort_by_key(|(session, at)| (std::cmp::Reverse(*at), session.clone()));
    let mut text = String::new();
    for (session, at) in removed {
        let at = at.to_string();
        if json {
            let line = json!({"sessionId": session.as_str(), "deletedAt": at});
            writeln!(text, "{line}").ok();
        } else {
            let session = sanitize::for_line(session.as_str());
            writeln!(text, "{session}  removed {at}").ok();
        }
    }
    print(&text)?;
    Ok(Exit::Done)
}

/// Brings sessions back; each for itself.
pub(super) async fn restore(app: &App, ids: &[String], json: bool) -> Result<Exit, Problem> {
    each(ids, Said { done: "restored", json }, async |session| app.restore_session(session).await)
        .await
}
