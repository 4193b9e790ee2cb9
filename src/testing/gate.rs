//! A point in a script at which it stops until the test lets it go on.

use tokio_util::sync::CancellationToken;

/// A gate, closed at first and open for good once opened. Clones are the same gate.
#[derive(Clone, Debug, Default)]
pub struct Gate {
    reached: CancellationToken,
    open: CancellationToken,
}

impl Gate {
    /// A closed gate.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets whoever stands here go on, now or later.
    pub fn open(&self) {
        self.open.cancel();
    }

    /// Waits until somebody stands here.
    pub async fn reached(&self) {
        self.reached.cancelled().await;
    }

    /// Stands here until the gate is open.
    pub async fn pass(&self) {
        self.reached.cancel();
        self.open.cancelled().await;
    }
}
