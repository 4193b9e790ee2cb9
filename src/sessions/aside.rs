//! Questions that the layer itself puts to a model, beside the conversation: one call without tools,
//! as a turn of no session, of which nothing is kept.

use std::sync::Arc;

use crate::domain::agent::{InlineAgent, InlineSpec, ModelDescriptor, RequestedAgent};
use crate::domain::message::UserMessage;
use crate::domain::session::state::SessionState;
use crate::runtime::api::{StopSignal, TurnOutcome};
use crate::runtime::headless::{HeadlessError, HeadlessTurn, start_headless};
use crate::sessions::Sessions;

/// What is asked.
pub(super) struct Question<'a> {
    /// The name of who answers.
    pub(super) name: &'static str,
    /// What it is to do.
    pub(super) instructions: &'static str,
    /// The model that it runs on.
    pub(super) model: &'a ModelDescriptor,
    /// What it is to do it with.
    pub(super) text: &'a str,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AsideError {
    /// The model was not asked, or nothing is known of what it said.
    #[error(transparent)]
    Headless(#[from] HeadlessError),
    /// It gave no answer.
    #[error("{0}")]
    NoAnswer(String),
    /// It was stopped.
    #[error("it was stopped")]
    Stopped,
}

impl Sessions {
    /// Asks, and waits for the answer, which says something.
    pub(super) async fn ask_aside(
        &self,
        session: &SessionState,
        question: &Question<'_>,
        stop: &StopSignal,
    ) -> Result<String, AsideError> {
        let inline = InlineSpec {
            name: question.name.to_owned(),
            instructions: question.instructions.to_owned(),
            model: Some(question.model.clone()),
            tools: Some(Vec::new()),
            composition: None,
        };
        let turn = HeadlessTurn {
            agent: RequestedAgent::Inline(InlineAgent { inline }),
            context: Vec::new(),
            input: Arc::new(UserMessage::text(question.text)),
            max_model_calls: Some(1),
            folder: self.folder_of(session),
            now: self.parts.clock.now(),
            reasoning_effort: None,
        };
        let turns = &*self.parts.turns;
        let run = start_headless(turns, turn, stop.clone()).await.map_err(HeadlessError::from)?;
        let turn = run.turn.clone();
        let result = run.finish(turns).await;
        if let Err(error) = self.destroy_turn(&turn).await {
            tracing::warn!(%turn, %error, "what was asked aside is still kept");
        }
        let result = result?;
        match result.outcome {
            TurnOutcome::Completed(_) if !result.text.trim().is_empty() => Ok(result.text),
            TurnOutcome::Completed(_) => {
                Err(AsideError::NoAnswer("the model said nothing".to_owned()))
            }
            TurnOutcome::Failed(failed) => Err(AsideError::NoAnswer(failed.error)),
            TurnOutcome::Suspended(_) => {
                Err(AsideError::NoAnswer("the model asked for something".to_owned()))
            }
            TurnOutcome::Cancelled(_) => Err(AsideError::Stopped),
        }
    }
}
