//! Looking after what is stored: reading all of it, saving what a damage left, weighing it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::app::App;
use crate::store::disk::RealDisk;
use crate::store::error::{Ending, IoFailure, StoreError, Unsupported};
use crate::store::lock::{self, Holder};
use crate::store::log::LogKind;
use crate::store::progress::Told;
use crate::store::remnant::Kept;
use crate::store::salvage::Salvaged;
use crate::store::sqlite::Rescued;
use crate::store::stats::{self, Stats};
use crate::store::verify::{self, Fault, Verdict};

/// What is damaged.
#[derive(Debug, Default)]
pub struct Damage {
    /// These logs, each for itself.
    pub logs: Vec<Kept>,
    /// What all logs are in.
    pub of_all: Option<StoreError>,
    /// Why others cannot be read at all, of which nothing can be saved before that is put right.
    pub closed: Vec<StoreError>,
}

/// Whether what is wrong is wrong with the database, and not with one log in it.
fn is_of_all(error: &StoreError) -> bool {
    match error {
        StoreError::Unsupported { found, .. } => {
            matches!(found, Unsupported::NoDatabase | Unsupported::Foreign(_))
        }
        StoreError::Damaged { .. } => true,
        _ => false,
    }
}

/// Why a database cannot be saved.
#[derive(Debug, thiserror::Error)]
pub enum RescueError {
    /// Somebody may be writing it.
    #[error("the database is in use by {0}; end that, and try again")]
    InUse(Holder),
    /// Who holds the work directory cannot be found out.
    #[error(transparent)]
    Io(#[from] IoFailure),
    /// The database cannot be read, or the new one not be written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl App {
    /// Reads everything, strictly; see [`verify::verify`].
    ///
    /// # Errors
    /// [`StoreError`] if the logs cannot be listed.
    pub async fn verify(&self, told: Told<'_>) -> Result<Verdict, StoreError> {
        let graph = &self.graph;
        verify::verify(&graph.session_logs, &graph.turn_logs, &graph.tasks, told).await
    }

    /// Weighs everything.
    ///
    /// # Errors
    /// [`StoreError`] if the logs cannot be listed or a folder cannot be read.
    pub async fn stats(&self) -> Result<Stats, StoreError> {
        let graph = &self.graph;
        let disk = Arc::new(RealDisk);
        stats::stats(&graph.storage.logs, disk, graph.dir.clone(), &graph.tasks).await
    }

    /// The logs of this id, of either kind, removed or not.
    ///
    /// # Errors
    /// [`StoreError`] if they cannot be listed.
    pub async fn logs_of(&self, id: &str) -> Result<Vec<Kept>, StoreError> {
        let logs = &self.graph.storage.logs;
        let mut found = Vec::new();
        for kind in [LogKind::Session, LogKind::Turn] {
            found.extend(logs.list(kind).await?.into_iter().map(Kept::There));
        }
        found.extend(logs.removed().await?.into_iter().map(Kept::Removed));
        found.retain(|kept| kept.log().id() == id);
        Ok(found)
    }

    /// What is damaged.
    ///
    /// # Errors
    /// As [`verify`](Self::verify), but for a damage of all.
    pub async fn damage(&self, told: Told<'_>) -> Result<Damage, StoreError> {
        let mut damage = Damage::default();
        let faults = match self.verify(told).await {
            Err(error) if is_of_all(&error) => {
                damage.of_all = Some(error);
                return Ok(damage);
            }
            verdict => verdict?.faults,
        };
        for fault in faults {
            match fault {
                Fault::Store(
                    StoreError::Corrupt { place, .. } | StoreError::Torn { place, .. },
                ) => damage.logs.push(Kept::There(place.log)),
                Fault::Removed {
                    removed,
                    error: StoreError::Corrupt { .. } | StoreError::Torn { .. },
                } => damage.logs.push(Kept::Removed(removed)),
                Fault::Store(error) | Fault::Removed { error, .. } if is_of_all(&error) => {
                    damage.of_all.get_or_insert(error);
                }
                Fault::Store(error) | Fault::Removed { error, .. } => damage.closed.push(error),
                // Nothing of these is lost.
                Fault::Misplaced(_) | Fault::Dangling { .. } | Fault::Circle(_) => {}
            }
        }
        Ok(damage)
    }

    /// Saves what can still be read of a database that is damaged as a whole in a new one in a folder, and
    /// gives its path; `None` where each log has a file of its own.
    ///
    /// # Errors
    /// [`RescueError`]; nothing is left of the new one then.
    pub async fn rescue(&self, folder: &Path) -> Result<Option<(Rescued, PathBuf)>, RescueError> {
        let dir = &self.graph.dir;
        if let Some(holder) = lock::holder(&RealDisk, dir)? {
            return Err(RescueError::InUse(holder));
        }
        Ok(self.graph.storage.rescue(folder).await.transpose()?)
    }

    /// All that can still be had of a log.
    ///
    /// # Errors
    /// As [`Repo::salvage`](crate::store::repo::Repo::salvage).
    pub async fn salvage(&self, kept: &Kept) -> Result<Salvaged, StoreError> {
        let (sessions, turns) = (self.graph.session_logs.clone(), self.graph.turn_logs.clone());
        let kept = kept.clone();
        let salvage = move || match kept.log().kind() {
            LogKind::Session => sessions.salvage(&kept),
            LogKind::Turn => turns.salvage(&kept),
        };
        self.graph.tasks.spawn_blocking(salvage).await.map_err(|_| Ending)?
    }
}
