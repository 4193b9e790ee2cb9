//! Questions that the layer itself puts to a model, beside the conversation: one call without tools,
//! as a turn of no session, of which nothing is kept. What a crash leaves of one is known by its mark,
//! and is garbage.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::base::id::TurnId;
use crate::base::tasks::Ended;
use crate::domain::agent::{InlineAgent, InlineSpec, ModelDescriptor, RequestedAgent};
use crate::domain::json::Json;
use crate::domain::message::UserMessage;
use crate::domain::session::state::SessionState;
use crate::runtime::api::{StopSignal, TurnOutcome};
use crate::runtime::headless::{HeadlessError, HeadlessTurn, start_headless};
use crate::sessions::Sessions;

/// What the `composition` of an agent says whose turn is kept only until the question is answered.
const MARK: &str = r#"{"turnstile":{"kept":"until-answered"}}"#;

/// The turns in which something is being asked: nothing on the disk says that they are wanted.
#[derive(Clone, Default)]
pub(super) struct Asides(Arc<Mutex<BTreeSet<TurnId>>>);

/// A question under way, until this is dropped.
struct Asking {
    asides: Asides,
    turn: TurnId,
}

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

/// Whether this is who answers such a question.
pub(super) fn is_aside(agent: &RequestedAgent) -> bool {
    match agent {
        RequestedAgent::Inline(agent) => {
            agent.inline.composition.as_ref().is_some_and(|json| json.get() == MARK)
        }
        RequestedAgent::ById(_) => false,
    }
}

impl Asides {
    /// The turns in which something is being asked now.
    pub(super) fn under_way(&self) -> BTreeSet<TurnId> {
        self.lock().clone()
    }

    fn begin(&self, turn: &TurnId) -> Asking {
        self.lock().insert(turn.clone());
        Asking { asides: self.clone(), turn: turn.clone() }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<TurnId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.asides.lock().remove(&self.turn);
    }
}

impl Sessions {
    /// Asks, and waits for the answer, which says something. When nobody waits any more, the question
    /// goes on until it is stopped, and is cleared away all the same.
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
            composition: Json::parse(MARK).ok(),
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
        let (sessions, stop) = (self.clone(), stop.clone());
        let work = async move { sessions.ask_and_clear_away(turn, stop).await };
        match self.parts.tasks.spawn("ask aside", work).await {
            Ok(Ended::Done(answer)) => answer,
            Ok(Ended::Panicked(message)) => Err(AsideError::NoAnswer(message)),
            Err(error) => Err(AsideError::NoAnswer(error.to_string())),
        }
    }

    async fn ask_and_clear_away(
        &self,
        turn: HeadlessTurn,
        stop: StopSignal,
    ) -> Result<String, AsideError> {
        let turns = &*self.parts.turns;
        let (run, _asking) = {
            // No collector comes between its log and the word that it is wanted.
            let _lock = self.locks.share().await;
            let run = start_headless(turns, turn, stop).await.map_err(HeadlessError::from)?;
            let asking = self.asides.begin(&run.turn);
            (run, asking)
        };
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
