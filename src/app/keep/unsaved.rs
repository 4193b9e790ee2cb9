//! Drafts that the disk did not take: the newest of each composer waits, and is tried again.

use std::future::pending;
use std::pin::Pin;
use std::time::Duration;

use tokio::time::{Sleep, sleep};

use crate::app::command::{Draft, DraftOf};

/// After how long a draft is tried again for the first time.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause between two tries: each is twice as long as the one before.
const PAUSE_MAX: Duration = Duration::from_mins(1);

/// The drafts that wait, one for each composer at most.
pub(super) struct Unsaved {
    drafts: Vec<(DraftOf, Draft)>,
    pause: Duration,
    again: Option<Pin<Box<Sleep>>>,
}

impl Unsaved {
    /// Nothing waits.
    pub(super) fn new() -> Self {
        Self { drafts: Vec::new(), pause: FIRST_PAUSE, again: None }
    }

    /// The newest draft of a composer waits.
    pub(super) fn put(&mut self, of: DraftOf, draft: Draft) {
        self.take(&of);
        self.drafts.push((of, draft));
        self.again.get_or_insert_with(|| Box::pin(sleep(self.pause)));
    }

    /// The draft of a composer, which waits no more.
    pub(super) fn take(&mut self, of: &DraftOf) -> Option<Draft> {
        let at = self.drafts.iter().position(|(whose, _)| whose == of)?;
        Some(self.drafts.remove(at).1)
    }

    /// How many drafts wait.
    pub(super) fn len(&self) -> usize {
        self.drafts.len()
    }

    /// What is on its way to the disk, if the disk has not taken it yet.
    pub(super) fn draft(&self, of: &DraftOf) -> Option<&Draft> {
        self.drafts.iter().find(|(whose, _)| whose == of).map(|(_, draft)| draft)
    }

    /// Returns when it is time to try again. Dropping it loses nothing.
    pub(super) async fn due(&mut self) {
        match &mut self.again {
            Some(again) => again.await,
            None => pending().await,
        }
    }

    /// Everything that waits, for a try; what fails again is [put](Self::put) back.
    pub(super) fn take_all(&mut self) -> Vec<(DraftOf, Draft)> {
        self.again = None;
        self.pause = if self.drafts.is_empty() {
            FIRST_PAUSE
        } else {
            self.pause.saturating_mul(2).min(PAUSE_MAX)
        };
        std::mem::take(&mut self.drafts)
    }
}
