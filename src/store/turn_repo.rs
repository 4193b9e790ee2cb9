//! The logs of turns as their events.

use crate::base::id::TurnId;
use crate::domain::turn::event::{TurnEvent, TurnFact};
use crate::domain::turn::state::TurnState;
use crate::store::error::Corruption;
use crate::store::log::LogKind;
use crate::store::repo::{EventLog, Kind, Repo, Stored};

/// Logs of turns.
#[derive(Clone, Copy, Debug)]
pub struct TurnKind;

/// All turns.
pub type TurnRepo = Repo<TurnKind>;
/// The one writer of a turn.
pub type TurnLog = EventLog<TurnKind>;
/// A turn as it was read.
pub type StoredTurn = Stored<TurnKind>;

impl Kind for TurnKind {
    type Id = TurnId;
    type Fact = TurnFact;
    type State = TurnState;

    const KIND: LogKind = LogKind::Turn;

    fn begin(event: &TurnEvent) -> Result<TurnState, Corruption> {
        Ok(TurnState::begin(event)?)
    }

    fn apply(state: &mut TurnState, event: &TurnEvent) -> Result<(), Corruption> {
        Ok(state.apply(event)?)
    }

    fn check_whole(_state: &TurnState) -> Result<(), Corruption> {
        Ok(())
    }

    fn is_open(state: &TurnState) -> bool {
        state.terminal.is_none()
    }
}
