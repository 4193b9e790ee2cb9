//! What the next turn of a session knows of what was said before (`design/sessions.md`, compaction).

use crate::base::id::TurnId;
use crate::domain::message::{Message, UserMessage};
use crate::domain::session::state::{SessionState, SessionTurn};
use crate::domain::turn::event::{ContextRef, TurnContext};
use crate::runtime::compose::carried_over;
use crate::sessions::Sessions;
use crate::sessions::error::SessionError;

impl Sessions {
    /// What the next turn begins with: the latest turn by reference, or, after a compaction that no
    /// turn has used yet, its summary and the turns that it keeps, written out.
    pub(super) async fn next_context(
        &self,
        session: &SessionState,
    ) -> Result<TurnContext, SessionError> {
        let Some(latest) = session.latest() else { return Ok(TurnContext::Inline(Vec::new())) };
        let Some(compaction) = session.pending_compaction() else {
            let previous_turn_id = latest.id.clone();
            return Ok(TurnContext::Previous(ContextRef { previous_turn_id }));
        };
        let mut messages = vec![summary_message(&compaction.fact.summary)];
        for turn in kept_turns(session, &compaction.fact.first_kept_turn_id) {
            messages.extend(self.carried_over(session, turn).await?);
        }
        Ok(TurnContext::Inline(messages))
    }

    /// What a turn of a session said, for any model to go on from. What later turns send of it is
    /// the same, byte for byte.
    pub(super) async fn carried_over(
        &self,
        session: &SessionState,
        turn: &SessionTurn,
    ) -> Result<Vec<Message>, SessionError> {
        self.check_ended(&session.id, &turn.id).await?;
        let state = self.parts.turns.get_turn(&turn.id).await?.state;
        // A turn that has ended has one.
        Ok(carried_over(&state.transcript().unwrap_or_default()))
    }
}

/// The turns of a session from this one on.
pub(super) fn kept_turns<'a>(session: &'a SessionState, first: &TurnId) -> &'a [SessionTurn] {
    let first = session.place_of(first).unwrap_or(session.turns.len());
    session.turns.get(first..).unwrap_or_default()
}

fn summary_message(summary: &str) -> Message {
    let text = format!(
        "[The older part of this conversation is left out. This is a summary of it.]\n\n{summary}"
    );
    Message::User(UserMessage::text(&text).into())
}
