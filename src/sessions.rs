//! Conversations: chains of turns with a title, one writer for each, the index of all, the way from a
//! person's answer to the turn that waits for it, and the messages that wait for a turn
//! (`spec/session-layer.md`, `design/sessions.md`).

mod advance;
pub mod api;
pub(crate) mod circumstances;
mod deliver;
pub mod error;
mod external;
pub mod index;
mod live;
mod queue;
mod record;
mod removal;
mod scan;
mod send;
mod service;
mod stop;
pub mod trouble;
pub mod waiting;

pub use service::{Sessions, SessionsParts};
