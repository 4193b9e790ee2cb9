//! Trouble in the background: an advance that nobody waits for ended without coming to rest.

use std::sync::Arc;

use tokio::sync::broadcast;

use crate::base::id::{SessionId, TurnId};
use crate::runtime::error::AdvanceError;
use crate::sessions::Sessions;

/// How many troubles wait for whoever follows. Each is a broken disk or a missing model, of which
/// one is worth a word and a hundred are not.
const TROUBLES_WAITING_MAX: usize = 64;

/// An advance ended by trouble of the program's own. Its turn is as its log says, and can be gone on
/// with.
#[derive(Clone, Debug)]
pub struct Trouble {
    /// The session.
    pub session: SessionId,
    /// The turn.
    pub turn: TurnId,
    /// What happened.
    pub error: Arc<AdvanceError>,
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
        let Trouble { session, turn, error } = &trouble;
        tracing::warn!(%session, %turn, %error, "an advance did not come to rest");
        // Nobody following is no error.
        drop(self.0.send(trouble));
    }
}

impl Sessions {
    /// Follows the trouble of advances that nobody waits for, from now on.
    #[must_use]
    pub fn follow_trouble(&self) -> broadcast::Receiver<Trouble> {
        self.troubles.0.subscribe()
    }
}
