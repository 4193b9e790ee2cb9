//! What the layer does without being asked for, once a turn has come to rest and where the
//! configuration wants it.

use crate::base::id::SessionId;
use crate::runtime::CONTEXT_OVERFLOW;
use crate::runtime::api::TurnOutcome;
use crate::sessions::Sessions;

impl Sessions {
    /// A turn has come to rest like this.
    pub(super) fn after_rest(&self, session: &SessionId, outcome: &TurnOutcome) {
        let options = self.parts.options;
        match outcome {
            TurnOutcome::Failed(failed)
                if options.auto_compact && failed.code.as_deref() == Some(CONTEXT_OVERFLOW) =>
            {
                let (sessions, session) = (self.clone(), session.clone());
                drop(self.parts.tasks.spawn("compact a session", async move {
                    if let Err(error) = sessions.compact(&session).await {
                        tracing::warn!(%session, %error, "a session stays too long for its model");
                    }
                }));
            }
            TurnOutcome::Completed(_)
            | TurnOutcome::Failed(_)
            | TurnOutcome::Suspended(_)
            | TurnOutcome::Cancelled(_) => {}
        }
    }
}
