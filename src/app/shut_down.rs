//! Ending in order.

use std::time::Duration;

use crate::app::App;
use crate::app::keep::Keep;
use crate::store::error::FlushError;

/// How long leaving waits for what is still to be written; then it says what was not.
const LAST_WRITES_MAX: Duration = Duration::from_secs(5);

/// What could not be made safe before the program ended.
#[derive(Debug, thiserror::Error)]
pub enum LeaveError {
    /// The logs.
    #[error(transparent)]
    Flush(#[from] FlushError),
    /// What was typed last: the disk took it neither when it was to be saved nor now.
    #[error("the disk did not take what was typed last; {0} unsent texts are not saved")]
    Drafts(usize),
    /// It took too long.
    #[error("the disk did not take everything within {} seconds", LAST_WRITES_MAX.as_secs())]
    TooSlow,
}

impl App {
    /// Ends the program: what is to be kept is kept, what was acknowledged is safe, and turns that
    /// run are left as they are, to be resumed.
    ///
    /// # Errors
    /// [`LeaveError`] says what is not safe.
    pub async fn shut_down(&self) -> Result<(), LeaveError> {
        let last = async {
            let unsaved: usize = self.wait_for(Keep::Done).await;
            self.graph.storage.logs.flush(None).await?;
            if let Err(error) = self.run_mark.clear(&self.graph.scratch).await {
                tracing::warn!(%error, "the next start will say that this run ended badly");
            }
            if unsaved == 0 { Ok(()) } else { Err(LeaveError::Drafts(unsaved)) }
        };
        let left = tokio::time::timeout(LAST_WRITES_MAX, last).await;
        // Whatever still waits for the disk is told that it waits in vain.
        let given_up = FlushError::of(self.graph.storage.coordinator.give_up());
        match (left, given_up) {
            (Ok(left), Ok(())) => left,
            (_, Err(stalled)) => Err(stalled.into()),
            (Err(_), Ok(())) => Err(LeaveError::TooSlow),
        }
    }
}
