//! Ending in order.

use std::time::Duration;

use crate::app::App;
use crate::app::keep::Keep;
use crate::store::error::{FlushError, StoreError, Trouble};
use crate::store::seam::LogStore;

/// How long leaving waits for what is still to be written; then it says what was not.
const LAST_WRITES_MAX: Duration = Duration::from_secs(5);
/// How long it waits before it tries again what the disk had no room for: as short as somebody who has
/// just freed some would notice.
const LAST_PAUSE: Duration = Duration::from_millis(500);

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
    /// Gives up what the disk has not taken, and from now on whatever it does not take at once: nobody
    /// is there who could ask for it again. Gives what was held.
    #[must_use]
    pub fn hold_nothing(&self) -> Vec<StoreError> {
        self.graph.storage.coordinator.end()
    }

    /// Ends the program: what is to be kept is kept, what was acknowledged is safe, and turns that
    /// run are left as they are, to be resumed.
    ///
    /// # Errors
    /// [`LeaveError`] says what is not safe.
    pub async fn shut_down(&self) -> Result<(), LeaveError> {
        let mut refused = None;
        let last = async {
            let unsaved: usize = self.wait_for(Keep::Done).await;
            flush(&*self.graph.storage.logs, &mut refused).await?;
            if let Err(error) = self.run_mark.clear(&self.graph.scratch).await {
                tracing::warn!(%error, "the next start will say that this run ended badly");
            }
            if unsaved == 0 { Ok(()) } else { Err(LeaveError::Drafts(unsaved)) }
        };
        let left = tokio::time::timeout(LAST_WRITES_MAX, last).await;
        // Whatever still waits for the disk is told that it waits in vain.
        let given_up = FlushError::of(self.hold_nothing());
        let left = match (left, given_up) {
            // It names what is held too.
            (Ok(Err(LeaveError::Flush(error))), _) | (_, Err(error)) => Err(error.into()),
            (Ok(left), Ok(())) => left,
            (Err(_), Ok(())) => Err(refused.map_or(LeaveError::TooSlow, LeaveError::Flush)),
        };
        if let Err(error) = &left {
            tracing::error!(%error, "not everything is safe");
        }
        left
    }
}

/// Makes the logs safe; tries again for as long as the disk wants nothing but room. Leaves what it said
/// last in `refused`, for whoever waits no longer.
async fn flush(logs: &dyn LogStore, refused: &mut Option<FlushError>) -> Result<(), FlushError> {
    loop {
        let Err(error) = logs.flush(None).await else { return Ok(()) };
        let mut all = std::iter::once(&error.first).chain(&error.more);
        if !all.any(|it| it.trouble() == Some(Trouble::Want)) {
            return Err(error);
        }
        *refused = Some(error);
        tokio::time::sleep(LAST_PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use crate::base::tasks::Tasks;
    use crate::store::coordinate::Coordinator;
    use crate::store::jsonl::Options;
    use crate::store::seam::Durability;
    use crate::testing::disk::{Call, EIO, ENOSPC, Fault, Plan};
    use crate::testing::store::{Home, record, records, turn};

    /// Leaves a log of which the disk, for this reason, does not take the last record.
    async fn held(home: &Home, error: i32) -> Coordinator {
        let files = home.store(Options::default());
        let store = Coordinator::new(Arc::new(files), Tasks::new());
        let mut writer = store.create(&turn(0), &records(0..1)).await.expect("created");
        let (only, fault) = (Some(Call::Write), Fault::Error(error));
        home.disk.fail(Plan { only, from: 0, times: u64::MAX, fault });
        let batch = [record(1)];
        let waits = writer.append(&batch, Durability::Barrier);
        assert!(futures_util::FutureExt::now_or_never(waits).is_none());
        store.follow_stalls().wait_for(|stalls| !stalls.is_empty()).await.expect("it is there");
        store
    }

    #[tokio::test(start_paused = true)]
    async fn room_that_comes_a_moment_later_is_not_too_late() {
        let home = Home::new();
        let store = held(&home, ENOSPC).await;
        let mut refused = None;
        let freed = async {
            tokio::time::sleep(LAST_PAUSE * 3).await;
            home.disk.heal();
        };
        let (flushed, ()) = tokio::join!(flush(&store, &mut refused), freed);
        flushed.expect("there is room in the end");
        assert!(refused.is_some(), "there was none at first");
        assert_eq!(store.inspect(&turn(0)).await.expect("there").records, records(0..2));
        assert_eq!(store.end().len(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn what_never_gets_room_is_named_when_nobody_waits_any_longer() {
        let home = Home::new();
        let store = held(&home, ENOSPC).await;
        let mut refused = None;
        let flushed = tokio::time::timeout(LAST_WRITES_MAX, flush(&store, &mut refused)).await;
        assert!(flushed.is_err(), "it is tried to the end");
        let said = refused.expect("it was refused").to_string();
        assert!(said.starts_with("1 record of turn") && said.contains("No space left"), "{said}");
    }

    #[tokio::test(start_paused = true)]
    async fn what_waiting_does_not_mend_is_not_waited_for() {
        let home = Home::new();
        let store = held(&home, EIO).await;
        let mut refused = None;
        let said = flush(&store, &mut refused).await.expect_err("the device is broken").to_string();
        assert!(said.starts_with("1 record of turn"), "{said}");
        assert!(refused.is_none());
    }
}
