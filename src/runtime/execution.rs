//! One advance under way, as its caller holds it: what the turn tells meanwhile, and how the advance
//! comes to rest (`design/turn-runtime.md` section 6).

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock, Weak};

use tokio_util::sync::CancellationToken;

use crate::base::error::with_causes;
use crate::base::id::TurnId;
use crate::base::tasks::{Ended, Tasks};
use crate::runtime::api::TurnOutcome;
use crate::runtime::error::AdvanceError;
use crate::runtime::hub::{Hub, Interest, Received, Subscription};
use crate::store::error::{Ending, StoreError};

/// One advance under way. Its events and its outcome are independent of each other, and it goes on
/// whether or not anybody listens.
pub struct TurnExecution {
    /// What the turn tells from now on. To drop it cancels nothing.
    pub events: ExecutionEvents,
    /// How the advance comes to rest.
    pub outcome: OutcomeFuture,
}

/// How an advance comes to rest, once it has.
pub type OutcomeFuture = Pin<Box<dyn Future<Output = TurnResult> + Send>>;

/// How an advance came to rest, or why it came to none.
pub type TurnResult = Result<TurnOutcome, AdvanceError>;

/// What a turn tells while one advance of it is under way, for one consumer. It ends with the
/// advance.
pub struct ExecutionEvents {
    told: Arc<Subscription>,
    end: Arc<End>,
    /// Whether the end was given to the consumer.
    is_over: bool,
}

/// The advance came to no rest, and told nothing more; for people. The outcome has the error itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Rejected(pub String);

#[derive(Default)]
struct End {
    has_come: CancellationToken,
    rejected: OnceLock<Rejected>,
}

/// Says that the advance has ended when it is dropped.
struct EndTeller {
    turn: TurnId,
    /// Why it came to no rest, as long as it has not.
    rejected: Option<Rejected>,
    /// Weak, so that nothing is kept for a consumer who is gone.
    told: Weak<Subscription>,
    end: Arc<End>,
}

impl TurnExecution {
    /// Starts an advance of `turn` as a task of its own. When the tasks are to end it breaks off, as
    /// if the program had been killed: the turn is there to be resumed.
    pub(crate) fn start(
        tasks: &Tasks,
        hub: &Hub,
        turn: TurnId,
        work: impl Future<Output = TurnResult> + Send + 'static,
    ) -> Self {
        let told = Arc::new(hub.subscribe(Interest::Watched));
        drop(told.watch(&turn));
        let end = Arc::new(End::default());
        let ending = EndTeller {
            turn: turn.clone(),
            rejected: Some(Rejected(format!("the advance of turn {turn} broke off"))),
            told: Arc::downgrade(&told),
            end: Arc::clone(&end),
        };
        let stopped = tasks.cancel_token().clone();
        let running = tasks.spawn("advance", async move {
            let outcome = tokio::select! {
                biased;
                // Safe to drop: what is recorded is whole, and nothing else counts.
                () = stopped.cancelled() => Err(StoreError::Ending(Ending).into()),
                outcome = work => outcome,
            };
            ending.with(&outcome);
            outcome
        });
        let outcome = async move {
            let message = match running.await {
                Ok(Ended::Done(outcome)) => return outcome,
                Ok(Ended::Panicked(message)) => message,
                Err(error) => error.to_string(),
            };
            Err(AdvanceError::Panicked { turn, message })
        };
        let events = ExecutionEvents { told, end, is_over: false };
        Self { events, outcome: Box::pin(outcome) }
    }
}

impl EndTeller {
    fn with(mut self, outcome: &TurnResult) {
        self.rejected = outcome.as_ref().err().map(|error| Rejected(with_causes(error)));
    }
}

impl Drop for EndTeller {
    fn drop(&mut self) {
        if let Some(rejected) = self.rejected.take() {
            self.end.rejected.get_or_init(|| rejected);
        }
        // What another advance of the turn tells is not this one's.
        if let Some(told) = self.told.upgrade() {
            told.unwatch(&self.turn);
        }
        self.end.has_come.cancel();
    }
}

impl ExecutionEvents {
    /// What is told next; nothing once the advance has come to rest and all of it was given.
    /// Dropping the future loses nothing.
    ///
    /// # Errors
    /// [`Rejected`], once and as the last, if the advance came to no rest.
    pub async fn next(&mut self) -> Option<Result<Received, Rejected>> {
        if self.is_over {
            return None;
        }
        tokio::select! {
            biased;
            // Both are safe to drop: what was told stays in its queue, and the end stays.
            received = self.told.next() => return Some(Ok(received)),
            () = self.end.has_come.cancelled() => {}
        }
        // Another thread may have told it between the two.
        if let Some(received) = self.told.try_next() {
            return Some(Ok(received));
        }
        self.is_over = true;
        self.end.rejected.get().cloned().map(Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::turn::event::TurnCancelled;
    use crate::domain::turn::live::{LiveEvent, News};
    use crate::domain::usage::TurnUsage;

    fn told(hub: &Hub) -> LiveEvent {
        let event = LiveEvent { session: None, turn: TurnId::from("t"), news: News::Started };
        hub.publish(&event);
        event
    }

    async fn check_end(work: impl Future<Output = TurnResult> + Send + 'static, why: Option<&str>) {
        let hub = Hub::new();
        let mut execution = TurnExecution::start(&Tasks::new(), &hub, TurnId::from("t"), work);
        let event = told(&hub);
        drop(execution.outcome.await);
        told(&hub);
        assert_eq!(execution.events.next().await, Some(Ok(Received::Event(event))));
        let end = execution.events.next().await;
        assert_eq!(end, why.map(|why| Err(Rejected(why.to_owned()))));
        assert_eq!(execution.events.next().await, None, "what is told later belongs to others");
    }

    #[tokio::test]
    async fn what_is_told_ends_with_the_advance_and_says_whether_it_came_to_rest() {
        let cancelled =
            TurnOutcome::Cancelled(TurnCancelled { reason: None, usage: TurnUsage::default() });
        check_end(async { Ok(cancelled) }, None).await;
        let not_ended = AdvanceError::NotEnded(TurnId::from("t"));
        let why = not_ended.to_string();
        check_end(async { Err(not_ended) }, Some(&why)).await;
        check_end(async { panic!("boom") }, Some("the advance of turn t broke off")).await;
    }

    #[tokio::test]
    async fn an_outcome_needs_nobody_who_listens() {
        let hub = Hub::new();
        let work = async { Err(AdvanceError::NotEnded(TurnId::from("t"))) };
        let execution = TurnExecution::start(&Tasks::new(), &hub, TurnId::from("t"), work);
        drop(execution.events);
        assert!(execution.outcome.await.is_err());
    }
}
