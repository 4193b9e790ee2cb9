//! Background work that is owned: every task belongs to a [`Tasks`], ends on its cancellation and
//! says how it ended. Nothing below `app` starts a task in any other way.

use std::future::Future;
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt as _;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How a task ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended<T> {
    /// It returned.
    Done(T),
    /// It panicked, with this message.
    Panicked(String),
}

/// An owner of background tasks.
#[derive(Debug, Clone, Default)]
pub struct Tasks {
    tracker: TaskTracker,
    cancel: CancellationToken,
    blocking: Blocking,
}

/// Where blocking work is done.
#[derive(Debug, Clone, Copy, Default)]
enum Blocking {
    /// On threads of its own.
    #[default]
    Aside,
    /// Among the tasks.
    Inline,
}

impl Tasks {
    /// An owner without tasks.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An owner without tasks that does blocking work where it runs tasks: on a runtime of one thread
    /// everything happens in one order then, which is the same in every run.
    #[must_use]
    pub fn inline() -> Self {
        Self { blocking: Blocking::Inline, ..Self::default() }
    }

    /// The token that says to all tasks of this owner that it is time to end.
    #[must_use]
    pub fn cancel_token(&self) -> &CancellationToken {
        &self.cancel
    }

    /// Starts a task. A panic in it is caught, logged under `name` and told to whoever joins.
    pub fn spawn<T, F>(&self, name: &'static str, work: F) -> JoinHandle<Ended<T>>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        self.tracker.spawn(async move {
            match AssertUnwindSafe(work).catch_unwind().await {
                Ok(value) => Ended::Done(value),
                Err(panic) => {
                    let message = panic_message(panic.as_ref());
                    tracing::error!(task = name, message, "a task panicked");
                    Ended::Panicked(message)
                }
            }
        })
    }

    /// Runs blocking work (files, parsing) on the threads that may block.
    pub fn spawn_blocking<T, F>(&self, work: F) -> JoinHandle<T>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        match self.blocking {
            Blocking::Aside => self.tracker.spawn_blocking(work),
            Blocking::Inline => self.tracker.spawn(async move { work() }),
        }
    }

    /// Tells every task to end and waits until all have.
    pub async fn shut_down(&self) {
        self.cancel.cancel();
        self.wait().await;
    }

    /// Waits until all tasks have ended by themselves.
    pub async fn wait(&self) {
        self.tracker.close();
        self.tracker.wait().await;
    }
}

/// The text of a caught panic.
#[must_use]
pub fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "panic without a message".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_told_to_whoever_joins() {
        let tasks = Tasks::new();
        let handle = tasks.spawn("test", async { panic!("boom") });
        let ended: Ended<()> = handle.await.expect("the task catches its own panic");
        assert_eq!(ended, Ended::Panicked("boom".to_owned()));
    }

    #[tokio::test]
    async fn blocking_work_is_done_aside_or_among_the_tasks() {
        let here = std::thread::current().id();
        let there = Tasks::new().spawn_blocking(|| std::thread::current().id()).await;
        assert_ne!(there.expect("it is done"), here);
        let there = Tasks::inline().spawn_blocking(|| std::thread::current().id()).await;
        assert_eq!(there.expect("it is done"), here);
    }

    #[tokio::test]
    async fn shutting_down_waits_for_tasks_to_see_the_token() {
        let tasks = Tasks::new();
        let token = tasks.cancel_token().clone();
        let handle = tasks.spawn("test", async move { token.cancelled().await });
        tasks.shut_down().await;
        assert!(handle.is_finished());
    }
}
