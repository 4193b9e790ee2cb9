//! Every place at which something in a simulation can be held up. Whoever comes to a gate waits until
//! the simulation opens it; which one that is decides the order of everything.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// The gates, with those who stand before them. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(super) struct Gates(Arc<Mutex<Inner>>);

/// All gates stand open until this is dropped.
pub(super) struct HeldOpen(Gates);

#[derive(Debug, Default)]
struct Inner {
    /// Nobody waits as long as somebody looks at how things are.
    is_held_open: bool,
    next: u64,
    waiting: BTreeMap<u64, (String, oneshot::Sender<()>)>,
}

impl Drop for HeldOpen {
    fn drop(&mut self) {
        self.0.lock().is_held_open = false;
    }
}

impl Gates {
    /// Waits until the gate is opened. Whoever is dropped meanwhile stands there no more.
    pub(super) async fn pass(&self, name: impl Into<String>) {
        let opened = {
            let mut inner = self.lock();
            if inner.is_held_open {
                return;
            }
            let (open, opened) = oneshot::channel();
            inner.next += 1;
            let number = inner.next;
            inner.waiting.insert(number, (name.into(), open));
            opened
        };
        // Gates that are gone hold nobody up.
        opened.await.ok();
    }

    /// Lets everybody pass until the guard is dropped.
    pub(super) fn hold_open(&self) -> HeldOpen {
        self.lock().is_held_open = true;
        HeldOpen(self.clone())
    }

    /// Where somebody waits, in the order of coming.
    #[must_use]
    pub(super) fn waiting(&self) -> Vec<String> {
        self.lock().waiting.values().map(|(name, _)| name.clone()).collect()
    }

    /// Opens the gate before which the `number`th waits; says which one that was.
    pub(super) fn open(&self, number: usize) -> Option<String> {
        let mut inner = self.lock();
        let at = *inner.waiting.keys().nth(number)?;
        let (name, open) = inner.waiting.remove(&at)?;
        drop(inner);
        open.send(()).ok()?;
        Some(name)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        inner.waiting.retain(|_, (_, open)| !open.is_closed());
        inner
    }
}
