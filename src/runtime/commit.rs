//! The short lock of a turn: an event is checked against the folded state, appended, and told, in
//! that order and one batch at a time, so that the log, the memory and the stream agree.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Mutex as AsyncMutex, Notify};

use crate::base::id::TurnId;
use crate::domain::event::Event;
use crate::domain::turn::event::{DecisionSource, ResultSource, TurnEvent, TurnFact};
use crate::domain::turn::live::{LiveEvent, News};
use crate::domain::turn::state::TurnState;
use crate::runtime::Parts;
use crate::runtime::api::Turn;
use crate::runtime::error::{AdvanceError, InputRefused, ReadError};
use crate::store::seam::Durability;
use crate::store::turn_repo::TurnLog;

/// The turns that somebody works on right now. Nothing is kept of the others.
#[derive(Default)]
pub(super) struct Cells(Mutex<HashMap<TurnId, Shared>>);

/// A cell and how many hold it.
struct Shared {
    cell: Arc<Cell>,
    holders: usize,
}

impl Cells {
    /// The cell of a turn, the same one for all who work on it at a time.
    pub(super) fn of(self: &Arc<Self>, turn: &TurnId) -> Held {
        let mut cells = self.lock();
        let shared = cells.entry(turn.clone()).or_insert_with(|| {
            let cell = Arc::new(Cell {
                turn: turn.clone(),
                executing: Arc::default(),
                ledger: AsyncMutex::default(),
                committed: Notify::new(),
            });
            Shared { cell, holders: 0 }
        });
        self.hold(shared)
    }

    /// The cell of a turn, if anybody works on it.
    pub(super) fn live(self: &Arc<Self>, turn: &TurnId) -> Option<Held> {
        self.lock().get_mut(turn).map(|shared| self.hold(shared))
    }

    fn hold(self: &Arc<Self>, shared: &mut Shared) -> Held {
        shared.holders += 1;
        Held { cells: Arc::clone(self), cell: Arc::clone(&shared.cell) }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<TurnId, Shared>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A cell, held. Whoever holds it last closes the turn's log as it lets go, before anybody can ask
/// for the cell again: a log has one writer.
pub(super) struct Held {
    cells: Arc<Cells>,
    cell: Arc<Cell>,
}

impl Deref for Held {
    type Target = Cell;

    fn deref(&self) -> &Cell {
        &self.cell
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut cells = self.cells.lock();
        let Entry::Occupied(mut entry) = cells.entry(self.cell.turn.clone()) else { return };
        entry.get_mut().holders -= 1;
        if entry.get().holders > 0 {
            return;
        }
        entry.remove();
        // Free, since only holders take it.
        if let Ok(mut slot) = self.cell.ledger.try_lock() {
            *slot = None;
        }
    }
}

/// A turn that somebody works on.
pub(super) struct Cell {
    /// The turn.
    pub(super) turn: TurnId,
    /// The long lock: one advance at a time, in the order of asking.
    pub(super) executing: Arc<AsyncMutex<()>>,
    /// The short lock, with the log and what it amounts to, once read.
    ledger: AsyncMutex<Option<Ledger>>,
    /// An input from outside was recorded: the advance that runs has something to act on.
    pub(super) committed: Notify,
}

struct Ledger {
    log: TurnLog,
    events: Vec<Arc<TurnEvent>>,
    state: TurnState,
}

/// Facts to be recorded, made from the state that they follow.
pub(super) type Facts = Result<Vec<TurnFact>, InputRefused>;

impl Cell {
    /// Looks at the state.
    pub(super) async fn look<T>(
        &self,
        parts: &Parts,
        look: impl FnOnce(&TurnState) -> T,
    ) -> Result<T, AdvanceError> {
        let mut slot = self.ledger.lock().await;
        let ledger = self.take(parts, &mut slot).await?;
        Ok(look(&slot.insert(ledger).state))
    }

    /// The whole turn, if its log is open here and nothing is being recorded at this moment: nobody
    /// who only reads waits for the disk.
    pub(super) fn turn(&self) -> Option<Turn> {
        let slot = self.ledger.try_lock().ok()?;
        let ledger = slot.as_ref()?;
        Some(Turn { events: ledger.events.clone(), state: ledger.state.clone(), interrupted: None })
    }

    /// Records these facts.
    pub(super) async fn commit(
        &self,
        parts: &Parts,
        facts: Vec<TurnFact>,
    ) -> Result<(), AdvanceError> {
        self.commit_with(parts, |_| Ok(facts)).await
    }

    /// Records the facts that `make` makes of the state; nothing can come between.
    pub(super) async fn commit_with(
        &self,
        parts: &Parts,
        make: impl FnOnce(&TurnState) -> Facts,
    ) -> Result<(), AdvanceError> {
        let mut slot = self.ledger.lock().await;
        // It goes back once all agrees. Should this end before, by an error, a panic or because it
        // is dropped, the log is read anew before it is used again.
        let mut ledger = self.take(parts, &mut slot).await?;
        let recorded = match make(&ledger.state) {
            Ok(facts) => {
                ledger.record(parts, facts).await?;
                Ok(())
            }
            Err(refused) => Err(refused.into()),
        };
        *slot = Some(ledger);
        recorded
    }

    /// Takes the ledger out of its place, or reads it.
    async fn take(&self, parts: &Parts, slot: &mut Option<Ledger>) -> Result<Ledger, ReadError> {
        match slot.take() {
            Some(ledger) => Ok(ledger),
            None => Ledger::open(parts, &self.turn).await,
        }
    }
}

impl Ledger {
    async fn open(parts: &Parts, turn: &TurnId) -> Result<Self, ReadError> {
        let (log, stored) = parts.turns.open(turn).await?;
        Ok(Self { log, events: stored.events.clone(), state: stored.state.clone() })
    }

    /// Folds, appends and tells.
    async fn record(&mut self, parts: &Parts, facts: Vec<TurnFact>) -> Result<(), AdvanceError> {
        let barrier = facts.iter().any(|fact| durability(fact) == Durability::Barrier);
        let durability = if barrier { Durability::Barrier } else { Durability::Written };
        let turn = self.state.id.clone();
        let event = |fact| Event { id: turn.clone(), ts: parts.clock.now(), fact };
        let events: Vec<TurnEvent> = facts.into_iter().map(event).collect();
        if events.is_empty() {
            return Ok(());
        }
        for event in &events {
            let refused = self.state.apply(event);
            refused.map_err(|refusal| AdvanceError::Illegal { turn: turn.clone(), refusal })?;
        }
        let first_offset = self.log.append(&events, durability).await?;
        for (offset, event) in (first_offset..).zip(events) {
            let event = Arc::new(event);
            self.events.push(Arc::clone(&event));
            parts.hub.publish(&LiveEvent {
                session: self.state.definition.session_id.clone(),
                turn: turn.clone(),
                news: News::Recorded { offset, event },
            });
        }
        Ok(())
    }
}

/// How safe a fact must be before what follows from it may happen: intents before their effects,
/// decisions of people, and every rest (`design/storage.md`, sync).
fn durability(fact: &TurnFact) -> Durability {
    match fact {
        TurnFact::ModelCallRequested(_)
        | TurnFact::InvocationRequested(_)
        | TurnFact::InputAdded(_)
        | TurnFact::Suspended(_)
        | TurnFact::Completed(_)
        | TurnFact::Failed(_)
        | TurnFact::Cancelled(_) => Durability::Barrier,
        TurnFact::PermissionResolved(fact) if fact.source == DecisionSource::Human => {
            Durability::Barrier
        }
        TurnFact::ToolResult(fact) if fact.source == ResultSource::Async => Durability::Barrier,
        TurnFact::Created(_)
        | TurnFact::ModelStep(_)
        | TurnFact::ModelCallCompleted(_)
        | TurnFact::ModelCallFailed(_)
        | TurnFact::PermissionRequired(_)
        | TurnFact::PermissionClassified(_)
        | TurnFact::ClassificationFailed(_)
        | TurnFact::PermissionResolved(_)
        | TurnFact::ToolProgress(_)
        | TurnFact::ToolResult(_)
        | TurnFact::ToolsExtended(_) => Durability::Written,
    }
}
