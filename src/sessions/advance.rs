//! Advances that this layer starts: each is followed until it rests, so that the index keeps up, and
//! whoever gave it an input hears when that is recorded (`spec/session-layer.md` section 10).

use std::sync::Arc;

use tokio::sync::oneshot;

use crate::base::id::{SessionId, TurnId};
use crate::domain::agent::Execution;
use crate::domain::session::state::SessionState;
use crate::domain::turn::event::{DecisionSource, ResultSource, TurnEvent, TurnFact};
use crate::domain::turn::live::{LiveEvent, News};
use crate::domain::turn::state::ToolCall;
use crate::runtime::api::{AdvanceOptions, ExternalInput, OutcomeFuture, Turn, TurnExecution};
use crate::runtime::error::{AdvanceError, InputRefused};
use crate::runtime::hub::{Received, Subscription};
use crate::sessions::Sessions;
use crate::sessions::error::SessionError;
use crate::sessions::live::Registration;
use crate::sessions::trouble::Trouble;

/// An advance under way, for whoever wants to know how it goes on.
pub(super) struct Followed {
    taken: oneshot::Receiver<()>,
    rested: oneshot::Receiver<Result<(), AdvanceError>>,
}

impl Followed {
    /// Waits until the advance has come to rest.
    pub(super) async fn outcome(self) -> Result<(), SessionError> {
        // A closed channel means that the program is ending; nothing is to be told then.
        Ok(self.rested.await.unwrap_or(Ok(()))?)
    }

    /// Waits until the input of the advance is recorded; the advance goes on after that.
    pub(super) async fn taken(mut self) -> Result<(), SessionError> {
        tokio::select! {
            biased;
            // Both are safe to drop: they are channels of one value.
            Ok(()) = &mut self.taken => Ok(()),
            rested = &mut self.rested => Ok(rested.unwrap_or(Ok(()))?),
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
        let options = AdvanceOptions {
            stop: registration.stop.clone(),
            folder: self.folder_of(session),
            take_inputs: None,
        };
        let execution = self.parts.turns.advance_turn(turn, input.clone(), options);
        let (taken, taken_receiver) = oneshot::channel();
        let (rested, rested_receiver) = oneshot::channel();
        let follower = Follower {
            sessions: self.clone(),
            session: session.id.clone(),
            turn: turn.clone(),
            awaited: input.filter(is_recorded).map(|input| Awaited { input, taken }),
        };
        let TurnExecution { events, outcome } = execution;
        drop(self.parts.tasks.spawn("follow an advance", async move {
            let (sessions, session) = (follower.sessions.clone(), follower.session.clone());
            let turn = follower.turn.clone();
            let outcome = follower.follow(events, outcome).await;
            drop(registration);
            // A refusal that nobody waits for any more is nobody's trouble.
            if let Err(Err(error)) = rested.send(outcome)
                && !matches!(error, AdvanceError::Refused(_))
            {
                sessions.troubles.tell(Trouble { session, turn, error: Arc::new(error) });
            }
        }));
        Followed { taken: taken_receiver, rested: rested_receiver }
    }
}

/// Follows one advance.
struct Follower {
    sessions: Sessions,
    session: SessionId,
    turn: TurnId,
    awaited: Option<Awaited>,
}

/// An input that is to be recorded.
struct Awaited {
    input: ExternalInput,
    taken: oneshot::Sender<()>,
}

impl Follower {
    async fn follow(
        mut self,
        events: Subscription,
        mut outcome: OutcomeFuture,
    ) -> Result<(), AdvanceError> {
        let outcome = loop {
            tokio::select! {
                biased;
                // Safe to drop: an event stays in its queue until it is taken, and the outcome is
                // polled on.
                received = events.next() => self.heed(received).await,
                outcome = &mut outcome => break outcome,
            }
        };
        let turn = self.look().await;
        outcome?;
        // It came to rest without the input: something had ended the turn, or stopped it, before.
        match (self.awaited, turn) {
            (Some(Awaited { input, .. }), Some(turn)) if !is_answered(&turn, &input) => {
                let (turn, status) = (self.turn, turn.state.status());
                Err(InputRefused::Ended { turn, status }.into())
            }
            (Some(_) | None, Some(_) | None) => Ok(()),
        }
    }

    async fn heed(&mut self, received: Received) {
        match received {
            Received::Event(LiveEvent { news: News::Recorded { event, .. }, .. }) => {
                if changes_what_waits(&event) {
                    self.look().await;
                }
                self.acknowledge(&event);
            }
            Received::Event(_) => {}
            Received::Lagged => drop(self.look().await),
        }
    }

    /// Looks at the turn, so that the index keeps up with it.
    async fn look(&self) -> Option<Turn> {
        match self.sessions.parts.turns.get_turn(&self.turn).await {
            Ok(turn) => {
                let offset = turn.events.len() as u64;
                self.sessions.index.observe(&self.session, &turn.state, offset);
                Some(turn)
            }
            Err(error) => {
                tracing::warn!(turn = %self.turn, %error, "a turn cannot be read");
                None
            }
        }
    }

    fn acknowledge(&mut self, event: &TurnEvent) {
        let recorded = self.awaited.take_if(|awaited| is_record_of(event, &awaited.input));
        if let Some(Awaited { taken, .. }) = recorded {
            // Nobody waiting for it is no error.
            taken.send(()).ok();
        }
    }
}

/// Whether the call of an input has what the input was to give it.
fn is_answered(turn: &Turn, input: &ExternalInput) -> bool {
    let answered = |call, is_answered: fn(&ToolCall) -> bool| {
        turn.state.tool_calls.get(call).is_some_and(is_answered)
    };
    match input {
        ExternalInput::PermissionDecision { call, .. } => {
            answered(call, |call| call.permission.as_ref().is_some_and(|it| it.resolved.is_some()))
        }
        ExternalInput::AsyncToolResult { call, .. } => answered(call, |call| {
            call.result.as_ref().is_some_and(|result| result.source == ResultSource::Async)
        }),
        ExternalInput::AsyncToolProgress { call, progress } => {
            let told = turn.state.tool_calls.get(call).map(|call| &call.progress);
            told.is_some_and(|told| told.contains(progress))
        }
        ExternalInput::Cancel { .. } => true,
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
    match (&event.fact, input) {
        (
            TurnFact::PermissionResolved(fact),
            ExternalInput::PermissionDecision { call, decision, metadata },
        ) => {
            fact.source == DecisionSource::Human
                && fact.tool_call_id == *call
                && fact.decision == *decision
                && fact.metadata == *metadata
        }
        (TurnFact::ToolProgress(fact), ExternalInput::AsyncToolProgress { call, progress }) => {
            fact.tool_call_id == *call && fact.progress == *progress
        }
        (TurnFact::ToolResult(fact), ExternalInput::AsyncToolResult { call, result }) => {
            fact.tool_call_id == *call && fact.result == *result
        }
        _ => false,
    }
}

/// Whether the index has to show something new although the advance goes on: a person is asked, or
/// no longer is. What the loop runs by itself concerns nobody.
fn changes_what_waits(event: &TurnEvent) -> bool {
    match &event.fact {
        TurnFact::PermissionRequired(_) | TurnFact::PermissionResolved(_) => true,
        TurnFact::InvocationRequested(fact) => fact.execution == Execution::Async,
        TurnFact::ToolResult(fact) => fact.source != ResultSource::Sync,
        _ => false,
    }
}
