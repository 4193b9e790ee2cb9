//! What is done with a conversation as a whole.

use crate::app::App;
use crate::app::command::{Draft, DraftOf};
use crate::app::notice::{Came, Compaction, Notice, Refused};
use crate::base::id::{SessionId, TurnId};
use crate::sessions::error::SessionError;

impl App {
    /// Forks a session. The draft is safe before anybody is told that there is a fork.
    pub(super) async fn fork(&self, of: SessionId, at: Option<TurnId>, draft: Draft) {
        let session = match self.graph.sessions.fork_session(&of, at.as_ref()).await {
            Ok(session) => session,
            Err(error) => return self.tell(super::refused(Refused::Session(of), &error)).await,
        };
        if draft != Draft::default() {
            // What was not kept has been told of, and its text is still in the session it is from.
            self.keep_draft(DraftOf::Session(session.clone()), draft).await.ok();
        }
        self.tell(Notice::Forked { of, session }).await;
    }

    /// Puts sessions away, or gets them back; each for itself.
    pub(super) async fn archive(&self, ids: Vec<SessionId>, archived: bool) {
        let mut sessions = Vec::new();
        for session in ids {
            match self.graph.sessions.set_archived(&session, archived).await {
                Ok(()) => sessions.push(session),
                Err(error) => {
                    self.tell(super::refused(Refused::Session(session), &error)).await;
                }
            }
        }
        if !sessions.is_empty() {
            self.tell(Notice::Archived { sessions, archived }).await;
        }
    }

    /// Sums up what was said in a session.
    pub(super) async fn compact(&self, session: SessionId) {
        let came = match self.graph.sessions.compact(&session).await {
            Ok(()) => Came::Done,
            Err(SessionError::NothingToCompact(_)) => Came::NothingToSum,
            Err(error) if error.was_stopped() => Came::Stopped,
            Err(error) => {
                return self.tell(super::refused(Refused::Session(session), &error)).await;
            }
        };
        self.tell(Notice::Compaction(Compaction::Over { session, came })).await;
    }
}
