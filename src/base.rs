//! The floor below everything: ids, clock and entropy, owned tasks, text width and safety, secrets.

pub mod clock;
pub mod error;
pub mod id;
pub mod locks;
pub mod sanitize;
pub mod secret;
pub mod tasks;
pub mod text;
