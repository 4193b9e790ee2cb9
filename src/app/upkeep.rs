//! Looking after what is stored: reading all of it, saving what a damage left, weighing it.

use std::sync::Arc;

use crate::app::App;
use crate::store::disk::RealDisk;
use crate::store::error::{Ending, StoreError};
use crate::store::log::LogKind;
use crate::store::progress::Told;
use crate::store::remnant::Kept;
use crate::store::salvage::Salvaged;
use crate::store::stats::{self, Stats};
use crate::store::verify::{self, Fault, Verdict};

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

    /// The logs that are damaged.
    ///
    /// # Errors
    /// As [`verify`](Self::verify).
    pub async fn damaged_logs(&self, told: Told<'_>) -> Result<Vec<Kept>, StoreError> {
        let faults = self.verify(told).await?.faults.into_iter();
        Ok(faults
            .filter_map(|fault| match fault {
                Fault::Store(
                    StoreError::Corrupt { place, .. } | StoreError::Torn { place, .. },
                ) => Some(Kept::There(place.log)),
                Fault::Removed {
                    removed,
                    error: StoreError::Corrupt { .. } | StoreError::Torn { .. },
                } => Some(Kept::Removed(removed)),
                Fault::Store(_)
                | Fault::Removed { .. }
                | Fault::Misplaced(_)
                | Fault::Dangling { .. }
                | Fault::Circle(_) => None,
            })
            .collect())
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
