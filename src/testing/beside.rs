//! What a test does beside the program that it tries: a server for it, files for it to find.

use tokio::runtime::{Builder, Runtime};

/// A runtime that goes on by itself, whatever the test waits for.
///
/// # Panics
/// When there is no thread to be had.
#[must_use]
pub fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a thread")
}
