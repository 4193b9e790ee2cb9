//! Messages that wait to be delivered.

use tokio::sync::oneshot;

use crate::app::App;
use crate::app::command::{Draft, DraftOf, Unsent};
use crate::app::keep::Keep;
use crate::app::notice::{Notice, Refused};
use crate::base::id::{EventId, SessionId};

impl App {
    /// Does something about messages that wait. What is kept for it is handed over at once, in the
    /// order of the commands.
    pub(super) fn unsent(&self, unsent: Unsent) {
        let app = self.clone();
        match unsent {
            Unsent::Release(session) => self.spawn(async move {
                let done = app.graph.sessions.send_waiting(&session).await;
                app.settle(done, Refused::Session(session)).await;
            }),
            Unsent::Edit { session, event, text } => self.spawn(async move {
                let done = app.graph.sessions.edit_waiting(&session, &event, &text).await;
                app.settle(done, Refused::Session(session)).await;
            }),
            Unsent::TakeBack { session, event, draft } => {
                let of = DraftOf::Session(session.clone());
                let is_kept = self.keep_draft(of, draft);
                self.spawn(async move { app.take_message_back(session, event, is_kept).await });
            }
        }
    }

    /// Keeps a draft; tells whether that went well.
    pub(super) fn keep_draft(&self, of: DraftOf, draft: Draft) -> oneshot::Receiver<bool> {
        let (done, is_kept) = oneshot::channel();
        self.keep(Keep::SaveFirst { of, draft, done });
        is_kept
    }

    /// Takes a message back once its text is safe in the draft: a crash between the two leaves it in
    /// both places, and in none never.
    async fn take_message_back(
        &self,
        session: SessionId,
        event: EventId,
        is_kept: oneshot::Receiver<bool>,
    ) {
        let what = Refused::TakeBack { session: session.clone(), event: event.clone() };
        if !is_kept.await.unwrap_or(false) {
            let why = "the message still waits, for the draft cannot be kept".to_owned();
            return self.tell(Notice::Refused { what, why }).await;
        }
        match self.graph.sessions.take_back(&session, &event).await {
            Ok(_) => self.tell(Notice::TakenBack { session, event }).await,
            Err(error) => self.tell(super::refused(what, &error)).await,
        }
    }
}
