//! How the last run ended: a mark is there while the program runs, and one that is there at a start was
//! left by a run that did not end as it should. Only a run that may change everything makes it.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Mutex;

use crate::app::App;
use crate::base::id::SessionId;
use crate::domain::session::entry::{LatestTurnStatus, SessionIndexEntry};
use crate::domain::turn::status::TurnStatus;
use crate::store::error::FileError;
use crate::store::scratch::{Scratch, ScratchError, ScratchName};

const NAME: &str = "running.json";

/// The mark.
#[derive(Default)]
pub(super) struct RunMark {
    standing: Mutex<Standing>,
    left_behind: AtomicBool,
}

#[derive(Default)]
enum Standing {
    #[default]
    Unmarked,
    Marked,
    /// The program is ending: it is not marked any more.
    Over,
}

impl RunMark {
    /// Makes the mark, and finds out whether the last run left one.
    pub(super) async fn make(&self, scratch: &Scratch) -> Result<(), ScratchError> {
        let mut standing = self.standing.lock().await;
        if matches!(*standing, Standing::Marked | Standing::Over) {
            return Ok(());
        }
        let Some(name) = name() else { return Ok(()) };
        self.left_behind.store(scratch.get(&name).await?.is_some(), Ordering::Relaxed);
        scratch.put(&name, "{}").await?;
        *standing = Standing::Marked;
        Ok(())
    }

    /// Whether the last run left its mark.
    pub(super) fn was_left_behind(&self) -> bool {
        self.left_behind.load(Ordering::Relaxed)
    }

    /// Takes the mark away, if this run has made it.
    pub(super) async fn clear(&self, scratch: &Scratch) -> Result<(), FileError> {
        let mut standing = self.standing.lock().await;
        if let (Standing::Marked, Some(name)) = (&*standing, name()) {
            scratch.remove(&name).await?;
        }
        *standing = Standing::Over;
        Ok(())
    }
}

fn name() -> Option<ScratchName> {
    NAME.parse().ok()
}

impl App {
    /// The sessions whose latest turn was interrupted, as far as the list has been read.
    pub(super) fn interrupted_sessions(&self) -> Vec<SessionId> {
        let sessions = &self.graph.sessions;
        let interrupted = |entry: &SessionIndexEntry| {
            let latest = entry.latest_turn_id.as_ref();
            entry.error.is_none()
                && entry.latest_turn_status == LatestTurnStatus::Turn(TurnStatus::Idle)
                && !latest.is_some_and(|turn| sessions.is_running(turn))
        };
        let entries = sessions.list_sessions();
        let interrupted = entries.iter().filter(|entry| interrupted(entry));
        interrupted.map(|entry| entry.session_id.clone()).collect()
    }
}
