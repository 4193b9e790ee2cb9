//! The floor below everything: ids, clock and entropy, owned tasks, text width and safety, secrets.

pub mod clock;
pub mod id;
pub mod secret;
pub mod tasks;
