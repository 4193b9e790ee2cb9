//! Titles that a model gives (`spec/session-layer.md` section 12.6), where the configuration asks for
//! them. A title of a person's is never replaced.

use crate::base::id::{SessionId, TurnId};
use crate::base::text;
use crate::domain::session::event::{SessionFact, TitleChanged};
use crate::domain::session::state::SessionState;
use crate::domain::turn::event::TurnCompleted;
use crate::domain::turn::state::TurnState;
use crate::domain::turn::status::TurnStatus;
use crate::runtime::api::StopSignal;
use crate::sessions::Sessions;
use crate::sessions::aside::Question;
use crate::sessions::error::SessionError;

/// How much of the first message, and of the answer, the model sees, in characters: what they are
/// about is said by then.
const SEEN_CHARS_MAX: usize = 4_000;

const INSTRUCTIONS: &str = include_str!("../../assets/agents/title.md");

impl Sessions {
    /// Gives a session a title once one of its turns has completed for the first time, in the
    /// background. What goes wrong is no trouble of the person's: the session has a title.
    pub(super) fn title_after(
        &self,
        session: &SessionId,
        turn: &TurnState,
        completed: &TurnCompleted,
    ) {
        let (sessions, session, turn_id) = (self.clone(), session.clone(), turn.id.clone());
        let (said, answer) = (turn.definition.input.plain_text(), completed.output.plain_text());
        let both = format!(
            "## The person\n\n{}\n\n## The assistant\n\n{}\n",
            text::beginning(&said, SEEN_CHARS_MAX),
            text::beginning(&answer, SEEN_CHARS_MAX)
        );
        let ending = self.parts.tasks.cancel_token().clone();
        drop(self.parts.tasks.spawn("title a session", async move {
            let stop = StopSignal::new();
            tokio::select! {
                biased;
                // Safe to drop: nothing is recorded before there is a title, and that is one event.
                () = ending.cancelled() => stop.stop(None),
                titled = sessions.title(&session, &turn_id, &both, &stop) => {
                    if let Err(error) = titled {
                        tracing::warn!(%session, %error, "a session keeps its default title");
                    }
                }
            }
        }));
    }

    async fn title(
        &self,
        session: &SessionId,
        turn: &TurnId,
        text: &str,
        stop: &StopSignal,
    ) -> Result<(), SessionError> {
        let state = self.get_session(session).await?;
        let (Some(default), Some(latest)) =
            (self.default_title(&state, turn).await?, state.latest())
        else {
            return Ok(());
        };
        let (name, instructions) = ("title", INSTRUCTIONS);
        let question = Question { name, instructions, model: &latest.model, text };
        let title = match self.ask_aside(&state, &question, stop).await {
            Ok(answer) => text::title(&answer),
            Err(error) => {
                tracing::warn!(%session, %error, "no name was given");
                return Ok(());
            }
        };
        if title.is_empty() {
            return Ok(());
        }
        let titled = SessionFact::TitleChanged(TitleChanged { title });
        self.say(session, |state| (state.title == Some(default)).then_some(titled)).await
    }

    /// The title that this layer gave a session, if it still has it and this turn is the first of its
    /// own to complete.
    async fn default_title(
        &self,
        session: &SessionState,
        turn: &TurnId,
    ) -> Result<Option<String>, SessionError> {
        let Some(first) = session.turns.first() else { return Ok(None) };
        let first = self.parts.turns.get_turn(&first.id).await?.state;
        let default = text::title(&first.definition.input.plain_text());
        if session.title.as_ref() != Some(&default) {
            return Ok(None);
        }
        let inherited = session.header.seed_length.unwrap_or(0);
        let before = session.turns.iter().take_while(|before| before.id != *turn);
        for before in before.skip_while(|before| before.session_seq <= inherited) {
            let state = self.parts.turns.get_turn(&before.id).await?.state;
            if state.status() == TurnStatus::Completed {
                return Ok(None);
            }
        }
        Ok(Some(default))
    }
}
