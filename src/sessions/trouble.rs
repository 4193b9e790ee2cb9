//! Trouble in the background: an advance that nobody waits for ended without coming to rest, or
//! something that waited to be sent cannot be read.

use std::sync::Arc;

use tokio::sync::broadcast;

use crate::base::id::{SessionId, TurnId};
use crate::runtime::error::AdvanceError;
use crate::sessions::Sessions;
use crate::sessions::waiting::Rejected;

/// How many troubles wait for whoever follows. Each is a broken disk or a missing model, of which
/// one is worth a word and a hundred are not.
const TROUBLES_WAITING_MAX: usize = 64;

/// Something went wrong in a session that nobody had asked for.
#[derive(Clone, Debug)]
pub enum Trouble {
    /// An advance ended by trouble of the program's own. Its turn is as its log says, and can be gone
    /// on with.
    Advance {
        /// The session.
        session: SessionId,
        /// The turn.
        turn: TurnId,
        /// What happened.
        error: Arc<AdvanceError>,
    },
    /// What waited in a session cannot be read, and was moved out of the way.
    Rejected {
        /// The session.
        session: SessionId,
        /// What, and where it is.
        rejected: Rejected,
    },
}

/// Tells of trouble.
#[derive(Clone)]
pub(super) struct Troubles(broadcast::Sender<Trouble>);

impl Default for Troubles {
    fn default() -> Self {
        Self(broadcast::channel(TROUBLES_WAITING_MAX).0)
    }
}

impl Troubles {
    pub(super) fn tell(&self, trouble: Trouble) {
        match &trouble {
            Trouble::Advance { session, turn, error } => {
                tracing::warn!(%session, %turn, %error, "an advance did not come to rest");
            }
            Trouble::Rejected { session, rejected } => tracing::warn!(%session, %rejected),
        }
        // Nobody following is no error.
        drop(self.0.send(trouble));
    }
}

impl Sessions {
    /// Follows the trouble that comes in the background, from now on.
    #[must_use]
    pub fn follow_trouble(&self) -> broadcast::Receiver<Trouble> {
        self.troubles.0.subscribe()
    }
}
