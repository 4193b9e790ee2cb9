//! Advances that this layer starts: each is followed until it rests, so that the index keeps up, and
//! whoever gave it an input hears when that is recorded (`spec/session-layer.md` section 10).

use std::sync::Arc;

use tokio::sync::oneshot;

use crate::base::id::{SessionId, TurnId};
use crate::domain::agent::Execution;
use crate::domain::json::Json;
use crate::domain::session::state::SessionState;
use crate::domain::turn::event::{DecisionSource, ResultSource, TurnEvent, TurnFact};
use crate::domain::turn::live::{LiveEvent, News};
use crate::runtime::api::{AdvanceOptions, ExternalInput, Receipt, Turn};
use crate::runtime::error::{AdvanceError, InputRefused, ReadError};
use crate::runtime::execution::TurnExecution;
use crate::runtime::hub::Received;
use crate::sessions::Sessions;
use crate::sessions::deliver::Steering;
use crate::sessions::error::SessionError;
use crate::sessions::live::{Registration, Rest};
use crate::sessions::trouble::{Trouble, Troubles};
use crate::tools::output;

/// What whoever waits for an advance hears of it, once.
enum Heard {
    /// Its input is recorded; it goes on.
    Taken,
    /// It has come to rest, or not.
    Rested(Result<(), AdvanceError>),
}

/// An advance under way, for whoever wants to know how it goes on. When nobody does any more, it is
/// dropped, and what it would still have said of trouble goes where trouble goes.
pub(super) struct Followed {
    heard: oneshot::Receiver<Heard>,
    telling: Telling,
}

impl Followed {
    /// Waits until the advance has come to rest; of one with an input that is recorded, until then.
    pub(super) async fn outcome(mut self) -> Result<(), SessionError> {
        match (&mut self.heard).await {
            Ok(Heard::Rested(rested)) => Ok(rested?),
            // A closed channel means that the program is ending; nothing is to be told then.
            Ok(Heard::Taken) | Err(_) => Ok(()),
        }
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        self.heard.close();
        // Said, but not heard any more.
        if let Ok(Heard::Rested(rested)) = self.heard.try_recv() {
            self.telling.tell(rested);
        }
    }
}

/// Where the trouble of an advance goes that nobody waits for.
#[derive(Clone)]
struct Telling {
    troubles: Troubles,
    session: SessionId,
    turn: TurnId,
}

impl Telling {
    fn tell(&self, rested: Result<(), AdvanceError>) {
        match rested {
            // A refusal that nobody waits for any more is nobody's trouble.
            Ok(()) | Err(AdvanceError::Refused(_)) => {}
            Err(error) => {
                let (session, turn) = (self.session.clone(), self.turn.clone());
                self.troubles.tell(Trouble::Advance { session, turn, error: Arc::new(error) });
            }
        }
    }
}

impl Sessions {
    /// Starts an advance and follows it in the background until it rests. Called under the session's
    /// lock, so that a deletion never misses it.
    pub(super) fn advance(
        &self,
        session: &SessionState,
        turn: &TurnId,
        input: Option<ExternalInput>,
    ) -> Followed {
        self.start(self.live.register(&session.id, turn), session, turn, input)
    }

    /// As [`Sessions::advance`], of an advance that is registered already.
    pub(super) fn start(
        &self,
        registration: Registration,
        session: &SessionState,
        turn: &TurnId,
        input: Option<ExternalInput>,
    ) -> Followed {
        let folder = self.folder_of(session);
        let steering = Steering {
            sessions: self.clone(),
            session: session.id.clone(),
            folder: folder.clone(),
        };
        let receipt = Receipt::default();
        let options = AdvanceOptions {
            stop: registration.stop.clone(),
            folder,
            take_inputs: Some(Arc::new(steering)),
            receipt: receipt.clone(),
        };
        let execution = self.parts.turns.advance_turn(turn, input.clone(), options);
        let (waits, heard) = oneshot::channel();
        let follower = Follower {
            sessions: self.clone(),
            session: session.id.clone(),
            turn: turn.clone(),
            awaited: input.filter(is_recorded),
            receipt,
            waits: Some(waits),
        };
        let telling = Telling {
            troubles: self.troubles.clone(),
            session: session.id.clone(),
            turn: turn.clone(),
        };
        let in_background = telling.clone();
        drop(self.parts.tasks.spawn("follow an advance", async move {
            let (outcome, waits) = follower.follow(execution, &registration).await;
            drop(registration);
            let unheard = match waits {
                Some(waits) => waits.send(Heard::Rested(outcome)).err(),
                // Its input was taken, and that was all that was waited for.
                None => Some(Heard::Rested(outcome)),
            };
            if let Some(Heard::Rested(outcome)) = unheard {
                in_background.tell(outcome);
            }
        }));
        Followed { heard, telling }
    }
}

/// Follows one advance.
struct Follower {
    sessions: Sessions,
    session: SessionId,
    turn: TurnId,
    /// The input that is to be recorded, until it is.
    awaited: Option<ExternalInput>,
    /// Says when it is.
    receipt: Receipt,
    /// Who waits, until something was said.
    waits: Option<oneshot::Sender<Heard>>,
}

impl Follower {
    /// Follows the advance until it rests; gives how it rested and who still waits for that.
    async fn follow(
        mut self,
        execution: TurnExecution,
        registration: &Registration,
    ) -> (Result<(), AdvanceError>, Option<oneshot::Sender<Heard>>) {
        let TurnExecution { mut events, outcome } = execution;
        loop {
            tokio::select! {
                biased;
                // Both are safe to drop: a receipt stays given, an event stays in its queue until it
                // is taken.
                () = self.receipt.given(), if self.awaited.is_some() => {
                    drop(self.look().await);
                    self.acknowledge();
                }
                told = events.next() => match told {
                    Some(Ok(received)) => self.heed(received).await,
                    // The outcome says why.
                    Some(Err(_)) | None => break,
                },
            }
        }
        let outcome = outcome.await;
        let turn = self.look().await;
        if self.receipt.is_given() {
            self.acknowledge();
        }
        let rest = match &outcome {
            Err(AdvanceError::Refused(_)) => Rest::Refused,
            Ok(_) | Err(_) => Rest::TookPart,
        };
        if registration.is_last_to_rest(rest) {
            match &turn {
                Ok(turn) => self.sessions.after_rest(&self.session, &turn.state).await,
                Err(error) => {
                    self.sessions.after_unknown_rest(&self.session, error.to_string()).await;
                }
            }
        }
        let turn = turn.ok();
        let outcome = match (outcome, turn) {
            // What was recorded before things went wrong was taken all the same.
            (Err(error), Some(turn)) if !matches!(error, AdvanceError::Refused(_)) => {
                self.acknowledge_what_stands(&turn);
                Err(error)
            }
            (Err(error), _) => Err(error),
            (Ok(_), turn) => match self.passed_over(turn) {
                Some(refused) => Err(refused.into()),
                None => Ok(()),
            },
        };
        (outcome, self.waits)
    }

    /// Whether the advance came to rest without its input: something had ended the turn, or stopped
    /// it, before.
    fn passed_over(&self, turn: Option<Turn>) -> Option<InputRefused> {
        self.awaited.as_ref()?;
        Some(InputRefused::Ended { turn: self.turn.clone(), status: turn?.state.status() })
    }

    async fn heed(&self, received: Received) {
        match received {
            Received::Event(LiveEvent { news: News::Recorded { event, .. }, .. }) => {
                if changes_what_waits(&event) {
                    // That it cannot be read now is told when the advance has come to rest.
                    drop(self.look().await);
                }
            }
            Received::Event(_) => {}
            Received::Lagged => {
                drop(self.look().await);
            }
        }
    }

    /// Looks at the turn, so that the index keeps up with it.
    async fn look(&self) -> Result<Turn, ReadError> {
        let read = self.sessions.parts.turns.get_turn(&self.turn).await;
        match &read {
            Ok(turn) => {
                let offset = turn.events.len() as u64;
                self.sessions.index.observe(&self.session, &turn.state, offset);
            }
            Err(error) => tracing::warn!(turn = %self.turn, %error, "a turn cannot be read"),
        }
        read
    }

    /// As [`acknowledge`](Self::acknowledge), if the log has the input although nobody said so: its
    /// record was written, and the writing broke off.
    fn acknowledge_what_stands(&mut self, turn: &Turn) {
        let stands = |input| turn.events.iter().any(|event| is_record_of(event, input));
        if self.awaited.as_ref().is_some_and(stands) {
            self.acknowledge();
        }
    }

    fn acknowledge(&mut self) {
        if self.awaited.take().is_some()
            && let Some(waits) = self.waits.take()
        {
            // Nobody waiting for it is no error.
            drop(waits.send(Heard::Taken));
        }
    }
}

/// Whether an input stands in the log as an event of its own.
fn is_recorded(input: &ExternalInput) -> bool {
    match input {
        ExternalInput::PermissionDecision { .. }
        | ExternalInput::AsyncToolProgress { .. }
        | ExternalInput::AsyncToolResult { .. } => true,
        ExternalInput::Cancel { .. } => false,
    }
}

/// Whether an event is what this very input was recorded as, and not what somebody else said of the
/// same call.
fn is_record_of(event: &TurnEvent, input: &ExternalInput) -> bool {
    match input {
        ExternalInput::PermissionDecision { call, decision, metadata } => {
            matches!(&event.fact, TurnFact::PermissionResolved(fact)
            if fact.source == DecisionSource::Human
                && fact.tool_call_id == *call
                && fact.decision == *decision
                && match (metadata, &fact.metadata) {
                    (Some(metadata), Some(recorded)) => became(metadata, recorded),
                    (metadata, recorded) => metadata == recorded,
                })
        }
        ExternalInput::AsyncToolProgress { call, progress } => {
            matches!(&event.fact, TurnFact::ToolProgress(fact)
                if fact.tool_call_id == *call && became(progress, &fact.progress))
        }
        ExternalInput::AsyncToolResult { call, result } => {
            matches!(&event.fact, TurnFact::ToolResult(fact)
                if fact.source == ResultSource::Async
                    && fact.tool_call_id == *call
                    && fact.result.is_error == result.is_error
                    && became(&result.output, &fact.result.output))
        }
        ExternalInput::Cancel { .. } => false,
    }
}

/// Whether this is what a value became in the log, which every reader can take.
fn became(given: &Json, recorded: &Json) -> bool {
    output::sound(given).is_ok_and(|sound| sound == *recorded)
}

/// Whether the index has to show something new although the advance goes on: a person is asked, or
/// no longer is. What the loop runs by itself concerns nobody.
fn changes_what_waits(event: &TurnEvent) -> bool {
    match &event.fact {
        TurnFact::PermissionRequired(_) | TurnFact::PermissionResolved(_) => true,
        TurnFact::InvocationRequested(fact) => fact.execution == Execution::Async,
        TurnFact::ToolResult(fact) => fact.source != ResultSource::Sync,
        TurnFact::Created(_)
        | TurnFact::ModelCallRequested(_)
        | TurnFact::ModelStep(_)
        | TurnFact::ModelCallCompleted(_)
        | TurnFact::ModelCallFailed(_)
        | TurnFact::PermissionClassified(_)
        | TurnFact::ClassificationFailed(_)
        | TurnFact::ToolProgress(_)
        | TurnFact::ToolsExtended(_)
        | TurnFact::InputAdded(_)
        | TurnFact::Suspended(_)
        | TurnFact::Completed(_)
        | TurnFact::Failed(_)
        | TurnFact::Cancelled(_) => false,
    }
}
