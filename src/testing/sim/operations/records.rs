//! What is recorded of a session as such: its name, whether it is put away, its summaries. Whoever was
//! told that something was recorded finds it there.

use crate::base::id::SessionId;
use crate::domain::session::event::SessionFact;
use crate::sessions::Sessions;
use crate::sessions::error::SessionError;
use crate::store::session_repo::SessionRepo;
use crate::testing::store::Kept;

const TITLE: &str = "Renamed";

/// A session that a person has named is called so: nobody else names it any more.
pub(super) async fn rename(sessions: Sessions, session: SessionId) -> Result<(), SessionError> {
    sessions.set_title(&session, TITLE).await?;
    let named = sessions.get_session(&session).await?;
    assert_eq!(named.title.as_deref(), Some(TITLE), "{session} was named");
    Ok(())
}

/// Which of both is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Away,
    Back,
}

/// A session that was put away was so already, or its log says so. Somebody else may have taken it back
/// since.
pub(super) async fn archive(
    sessions: Sessions,
    session: SessionId,
    logs: SessionRepo,
    place: Place,
) -> Result<(), SessionError> {
    let archived = place == Place::Away;
    let before = Kept::read(&logs, &session)?;
    sessions.set_archived(&session, archived).await?;
    let after = Kept::read(&logs, &session)?;
    let news = after.events.get(before.events.len()..).unwrap_or_default();
    let is_recorded = news.iter().any(|event| match &event.fact {
        SessionFact::Archived(fact) => fact.archived == archived,
        _ => false,
    });
    let is_so = before.state.archived == archived || is_recorded;
    assert!(is_so, "{session} was put {place:?}, and its log does not say so");
    Ok(())
}

/// A session that was summarised has one summary more, unless one was unused.
pub(super) async fn compact(sessions: Sessions, session: SessionId) -> Result<(), SessionError> {
    let before = sessions.get_session(&session).await?;
    sessions.compact(&session).await?;
    let after = sessions.get_session(&session).await?;
    let is_summarised =
        before.pending_compaction().is_some() || after.compactions.len() > before.compactions.len();
    assert!(is_summarised, "{session} was summarised, and has no summary");
    Ok(())
}
