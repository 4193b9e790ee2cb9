//! What the layer does without being asked for, once a turn has come to rest and where the
//! configuration wants it.

use crate::base::id::SessionId;
use crate::domain::turn::state::{TerminalKind, TurnState};
use crate::runtime::CONTEXT_OVERFLOW;
use crate::sessions::Sessions;

impl Sessions {
    /// A turn of a session has ended like this, whatever has begun since: the first that completes
    /// names the session. Called under the session's lock.
    pub(super) fn name_unasked(&self, session: &SessionId, turn: &TurnState) {
        let Some(terminal) = &turn.terminal else { return };
        match &terminal.kind {
            TerminalKind::Completed(completed) if self.parts.options.auto_title => {
                self.title_after(session, turn, completed);
            }
            TerminalKind::Completed(_) | TerminalKind::Failed(_) | TerminalKind::Cancelled(_) => {}
        }
    }

    /// The latest turn of a session has ended like this. Called under the session's lock.
    pub(super) fn compact_unasked(&self, session: &SessionId, turn: &TurnState) {
        let options = self.parts.options;
        let Some(terminal) = &turn.terminal else { return };
        match &terminal.kind {
            TerminalKind::Failed(failed)
                if options.auto_compact && failed.code.as_deref() == Some(CONTEXT_OVERFLOW) =>
            {
                let (sessions, session) = (self.clone(), session.clone());
                drop(self.parts.tasks.spawn("compact a session", async move {
                    if let Err(error) = sessions.compact(&session).await {
                        tracing::warn!(%session, %error, "a session stays too long for its model");
                    }
                }));
            }
            TerminalKind::Completed(_) | TerminalKind::Failed(_) | TerminalKind::Cancelled(_) => {}
        }
    }
}
