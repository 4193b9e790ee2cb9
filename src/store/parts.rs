//! What a backend that keeps logs on the device works with.

use std::sync::Arc;

use crate::base::clock::{Clock, Entropy};
use crate::base::tasks::Tasks;
use crate::store::disk::Disk;
use crate::store::lock::InstanceLock;

/// The surroundings of a backend.
#[derive(Clone)]
pub struct Parts {
    /// The files.
    pub disk: Arc<dyn Disk>,
    /// Gives new files, and removals, their time.
    pub clock: Arc<dyn Clock>,
    /// Gives temporary files and new logs what no other has.
    pub entropy: Arc<dyn Entropy>,
    /// Owns the work that blocks.
    pub tasks: Tasks,
    /// The lock that makes all logs ours. Without it, only logs made here should be written.
    pub lock: Option<Arc<InstanceLock>>,
}
