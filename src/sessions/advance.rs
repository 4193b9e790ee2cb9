//! Advances that this layer starts: each is followed until it rests, so that the index keeps up, and
//! whoever gave it an input hears when that is recorded (`spec/session-layer.md` section 10).

use std::sync::Arc;

use tokio::sync::oneshot;

use crate::base::id::{SessionId, TurnId};
use crate::domain::agent::Execution;
use crate::domain::session::state::SessionState;
use crate::domain::turn::event::{ResultSource, TurnEvent, TurnFact};
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
        let awaited = Awaited::of(input.as_ref());
        let execution = self.parts.turns.advance_turn(turn, input, options);
        let (waits, heard) = oneshot::channel();
        let follower = Follower {
            sessions: self.clone(),
            session: session.id.clone(),
            turn: turn.clone(),
            awaited,
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

/// What is still to be said to whoever waits, beside the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaited {
    /// That its input is recorded.
    Receipt,
    Nothing,
}

impl Awaited {
    /// What is to be said of an input: not all are recorded as an event of their own.
    fn of(input: Option<&ExternalInput>) -> Self {
        match input {
            Some(
                ExternalInput::PermissionDecision { .. }
                | ExternalInput::AsyncToolProgress { .. }
                | ExternalInput::AsyncToolResult { .. },
            ) => Self::Receipt,
            Some(ExternalInput::Cancel { .. }) | None => Self::Nothing,
        }
    }
}

/// Follows one advance.
struct Follower {
    sessions: Sessions,
    session: SessionId,
    turn: TurnId,
    awaited: Awaited,
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
                () = self.receipt.given(), if self.awaited == Awaited::Receipt => {
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
        let outcome = match (outcome, turn) {
            (Err(error), Ok(turn)) => {
                // What was recorded before things went wrong was taken all the same.
                if self.receipt.stands_in(&turn.events) {
                    self.acknowledge();
                }
                Err(error)
            }
            (Err(error), Err(_)) => Err(error),
            (Ok(_), _) if self.awaited == Awaited::Nothing => Ok(()),
            // It came to rest without its input: something had ended the turn, or stopped it, before.
            (Ok(_), Ok(turn)) => {
                let (turn, status) = (self.turn.clone(), turn.state.status());
                Err(InputRefused::Ended { turn, status }.into())
            }
            (Ok(_), Err(unread)) => Err(unread.into()),
        };
        (outcome, self.waits)
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

    fn acknowledge(&mut self) {
        if std::mem::replace(&mut self.awaited, Awaited::Nothing) == Awaited::Receipt
            && let Some(waits) = self.waits.take()
        {
            // Nobody waiting for it is no error.
            drop(waits.send(Heard::Taken));
        }
    }
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
