//! The advances that this layer has started and that have not come to rest. A turn can have several
//! at once: one that runs and others that wait for it (`spec/session-layer.md` section 9.3).

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use crate::base::id::{SessionId, TurnId};
use crate::runtime::api::StopSignal;

/// The live advances, in the order in which they began.
#[derive(Clone, Default)]
pub(super) struct LiveAdvances(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    next: u64,
    advances: BTreeMap<u64, LiveAdvance>,
    /// The turns of which an advance has rested and left what follows to those that have not.
    due: HashSet<TurnId>,
    stops: BTreeMap<u64, Stop>,
}

#[derive(Clone)]
struct LiveAdvance {
    session: SessionId,
    turn: TurnId,
    stop: StopSignal,
    rested: CancellationToken,
    /// Whether it has come to rest, and only what follows from that is still done.
    resting: bool,
}

/// How an advance came to rest, as far as others are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    /// It took part in its turn.
    TookPart,
    /// Its input was refused.
    Refused,
}

/// What a stop is about.
#[derive(Clone, Debug)]
pub(super) enum Scope {
    /// The advances of one turn.
    Turn(TurnId),
    /// All advances in a session.
    Session(SessionId),
}

struct Stop {
    scope: Scope,
    reason: Option<String>,
}

/// An advance that is counted as live until this is dropped.
pub(super) struct Registration {
    live: LiveAdvances,
    number: u64,
    /// What stops it.
    pub(super) stop: StopSignal,
    rested: CancellationToken,
}

/// A stop under way, until this is dropped: what is live in its scope has got the signal, and what
/// begins in it gets the signal before it starts, so that nothing outruns a stop.
pub(super) struct Stopping {
    live: LiveAdvances,
    number: u64,
    scope: Scope,
}

impl LiveAdvances {
    /// Counts an advance as live; done before it starts, so that a stop never misses it.
    pub(super) fn register(&self, session: &SessionId, turn: &TurnId) -> Registration {
        let (stop, rested) = (StopSignal::new(), CancellationToken::new());
        let advance = LiveAdvance {
            session: session.clone(),
            turn: turn.clone(),
            stop: stop.clone(),
            rested: rested.clone(),
            resting: false,
        };
        let mut inner = self.lock();
        if let Some(under_way) = inner.stops.values().find(|stop| stop.scope.holds(&advance)) {
            stop.stop(under_way.reason.as_deref());
        }
        let number = inner.number();
        inner.advances.insert(number, advance);
        Registration { live: self.clone(), number, stop, rested }
    }

    /// Whether any advance of the turn is live.
    pub(super) fn is_live(&self, turn: &TurnId) -> bool {
        self.lock().advances.values().any(|advance| advance.turn == *turn)
    }

    /// The turns that have a live advance, each with its session.
    pub(super) fn turns(&self) -> Vec<(SessionId, TurnId)> {
        let inner = self.lock();
        let advances = inner.advances.values();
        let mut turns: Vec<_> =
            advances.map(|advance| (advance.session.clone(), advance.turn.clone())).collect();
        turns.sort_unstable();
        turns.dedup();
        turns
    }

    /// The session of a turn of which an advance is live.
    pub(super) fn session_of(&self, turn: &TurnId) -> Option<SessionId> {
        let inner = self.lock();
        let mut advances = inner.advances.values();
        advances.find(|advance| advance.turn == *turn).map(|advance| advance.session.clone())
    }

    /// Stops everything in a scope, and what begins in it as long as the result lives.
    pub(super) fn stop(&self, scope: Scope, reason: Option<&str>) -> Stopping {
        let mut inner = self.lock();
        let number = inner.number();
        for advance in inner.advances.values().filter(|advance| scope.holds(advance)) {
            advance.stop.stop(reason);
        }
        let stop = Stop { scope: scope.clone(), reason: reason.map(str::to_owned) };
        inner.stops.insert(number, stop);
        Stopping { live: self.clone(), number, scope }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}

impl Scope {
    fn holds(&self, advance: &LiveAdvance) -> bool {
        match self {
            Self::Turn(turn) => advance.turn == *turn,
            Self::Session(session) => advance.session == *session,
        }
    }
}

impl Stopping {
    /// Waits until nothing in the scope is live.
    pub(super) async fn rested(&self) {
        while let Some(rested) = self.next_live() {
            rested.cancelled().await;
        }
    }

    fn next_live(&self) -> Option<CancellationToken> {
        let inner = self.live.lock();
        let mut advances = inner.advances.values();
        advances.find(|advance| self.scope.holds(advance)).map(|advance| advance.rested.clone())
    }
}

impl Drop for Stopping {
    fn drop(&mut self) {
        self.live.lock().stops.remove(&self.number);
    }
}

impl Registration {
    /// The advance has come to rest, and counts as live until what follows is done. Gives whether it
    /// is for this one to do that: for the last of its turn, unless all were refused.
    pub(super) fn is_last_to_rest(&self, rest: Rest) -> bool {
        let mut inner = self.live.lock();
        let Some(own) = inner.advances.get_mut(&self.number) else { return false };
        own.resting = true;
        let turn = own.turn.clone();
        match rest {
            Rest::TookPart => drop(inner.due.insert(turn.clone())),
            Rest::Refused => {}
        }
        let mut all = inner.advances.values().filter(|advance| advance.turn == turn);
        all.all(|advance| advance.resting) && inner.due.remove(&turn)
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut inner = self.live.lock();
        if let Some(own) = inner.advances.remove(&self.number)
            && inner.advances.values().all(|advance| advance.turn != own.turn)
        {
            inner.due.remove(&own.turn);
        }
        drop(inner);
        self.rested.cancel();
    }
}
