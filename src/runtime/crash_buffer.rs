//! The text of the open call on its way to the crash buffer (`design/turn-runtime.md` section 12):
//! beside the stream, never on it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, oneshot};
use tokio_util::sync::CancellationToken;

use crate::base::id::TurnId;
use crate::domain::turn::live::{Delta, OpenCall};
use crate::runtime::Parts;
use crate::store::log::LogId;

/// How long streamed text may stay in memory only; with the write itself, less than a quarter of a
/// second is lost to a kill.
const INTERVAL: Duration = Duration::from_millis(100);
/// How much text may wait for a slow disk. After more than that the rest of the answer is not kept:
/// a text with a gap would be worse than a shorter one.
const WAITING_BYTES_MAX: usize = 4 * 1024 * 1024;

/// What has streamed and is not in the buffer yet. Its writer ends when this is dropped; what the
/// buffer holds stays there then, until somebody closes the call.
pub(super) struct CrashBuffer {
    shared: Arc<Shared>,
    written: oneshot::Receiver<bool>,
}

/// What a buffer held when its writer ended.
pub(super) enum Stopped {
    /// Nothing: the answer was quicker.
    Empty,
    /// Something.
    Written,
}

#[derive(Default)]
struct Shared {
    pending: Mutex<Pending>,
    grown: Notify,
    /// Nothing is taken in any more.
    closed: CancellationToken,
}

#[derive(Default)]
struct Pending {
    pieces: Vec<Delta>,
    bytes: usize,
}

impl CrashBuffer {
    /// A buffer for one call of this turn.
    pub(super) fn new(parts: &Arc<Parts>, turn: &TurnId) -> Self {
        let shared = Arc::<Shared>::default();
        let (say, written) = oneshot::channel();
        let (parts, turn, from) = (Arc::clone(parts), turn.clone(), Arc::clone(&shared));
        let tasks = parts.tasks.clone();
        drop(tasks.spawn("crash buffer", async move {
            // Nobody asks after a call that was broken off.
            say.send(write(&parts, &turn, &from).await).ok();
        }));
        Self { shared, written }
    }

    /// Takes a piece in.
    pub(super) fn grow(&self, delta: &Delta) {
        if self.shared.closed.is_cancelled() {
            return;
        }
        let mut pending = self.shared.lock();
        pending.bytes += delta.text.len();
        if pending.bytes > WAITING_BYTES_MAX {
            return self.shared.closed.cancel();
        }
        let is_first = pending.pieces.is_empty();
        if !pending.pieces.last_mut().is_some_and(|last| last.join(delta)) {
            pending.pieces.push(delta.clone());
        }
        if is_first {
            self.shared.grown.notify_one();
        }
    }

    /// Ends the writer. What the buffer holds stays until the call is closed.
    pub(super) async fn stop(mut self) -> Stopped {
        self.shared.closed.cancel();
        match (&mut self.written).await {
            Ok(false) => Stopped::Empty,
            // A writer that ended without a word is taken for one that wrote.
            Ok(true) | Err(_) => Stopped::Written,
        }
    }

    /// The settlement of the call has been recorded: once that is safe, the buffer has done its duty.
    pub(super) async fn settled(self, parts: &Parts, turn: &TurnId) {
        match self.stop().await {
            Stopped::Empty => {}
            Stopped::Written => drop_text(parts, turn).await,
        }
    }
}

impl Drop for CrashBuffer {
    fn drop(&mut self) {
        self.shared.closed.cancel();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes what comes until the buffer is closed; whether anything was written.
async fn write(parts: &Parts, turn: &TurnId, from: &Shared) -> bool {
    let Ok(log) = LogId::turn(turn) else { return false };
    let mut written = false;
    loop {
        tokio::select! {
            biased;
            // Both are safe to drop: a token keeps its state, and the wait begins anew.
            () = from.closed.cancelled() => return written,
            () = pause(from) => {}
        }
        let waiting = std::mem::take(&mut *from.lock());
        written = true;
        if let Err(error) = parts.live_text.put(&log, &waiting.pieces).await {
            tracing::warn!(%turn, %error, "the answer goes on without a crash buffer");
            from.closed.cancel();
            return written;
        }
    }
}

/// Waits for the first new piece, and then for what comes right after it.
async fn pause(from: &Shared) {
    from.grown.notified().await;
    tokio::time::sleep(INTERVAL).await;
}

/// What the buffer holds of this call, which nobody makes any more.
pub(super) async fn left_of_answer(parts: &Parts, turn: &TurnId, call: u64) -> Option<OpenCall> {
    let log = LogId::turn(turn).ok()?;
    let read = parts.live_text.read(&log).await;
    let read =
        read.inspect_err(|error| tracing::warn!(%turn, %error, "the crash buffer is unreadable"));
    read.ok()?.filter(|left| left.model_call_index == call)
}

/// Drops what the buffer holds, once the log is safe.
pub(super) async fn drop_text(parts: &Parts, turn: &TurnId) {
    let Ok(log) = LogId::turn(turn) else { return };
    let safe = parts.turns.store().flush(Some(&log)).await;
    if let Err(error) = safe {
        tracing::warn!(%turn, error = %error.first, "the crash buffer is kept: the log is not safe");
        return;
    }
    if let Err(error) = parts.live_text.drop_text(&log).await {
        tracing::warn!(%turn, %error, "the crash buffer stays; it means nothing any more");
    }
}
