//! File work off the threads that must not wait.

use std::sync::Arc;

use tokio::sync::Mutex as AsyncMutex;

use crate::base::tasks::Tasks;
use crate::store::disk::Disk;
use crate::store::error::{Ending, FileError, IoFailure};

/// Runs `work` on a thread that may block. If the future is dropped, work that has begun goes on.
/// A panic in it goes on here.
pub(super) async fn blocking<T: Send + 'static>(
    tasks: &Tasks,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Ending> {
    match tasks.spawn_blocking(work).await {
        Ok(value) => Ok(value),
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(Ending),
        },
    }
}

/// Work on small files, one thing at a time, in the order in which it was asked for.
#[derive(Clone)]
pub(crate) struct InOrder {
    disk: Arc<dyn Disk>,
    tasks: Tasks,
    turn: Arc<AsyncMutex<()>>,
}

impl InOrder {
    pub(crate) fn new(disk: Arc<dyn Disk>, tasks: Tasks) -> Self {
        Self { disk, tasks, turn: Arc::default() }
    }

    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn Disk) -> Result<T, IoFailure> + Send + 'static,
    ) -> Result<T, FileError> {
        let turn = Arc::clone(&self.turn).lock_owned().await;
        let disk = Arc::clone(&self.disk);
        let done = blocking(&self.tasks, move || {
            let done = work(&*disk);
            drop(turn);
            done
        });
        Ok(done.await??)
    }
}
