//! Conversations: chains of turns with a title, one writer for each, the index of all, the way from a
//! person's answer to the turn that waits for it, and the messages that wait for a turn
//! (`spec/session-layer.md`, `design/sessions.md`).

mod advance;
pub mod api;
pub mod aside;
pub(crate) mod circumstances;
mod compact;
mod context;
mod deliver;
pub mod error;
mod external;
mod fork;
pub mod gc;
pub mod index;
mod live;
mod locks;
mod queue;
mod reach;
mod record;
mod removal;
mod scan;
mod send;
mod service;
mod stop;
mod titles;
pub mod trouble;
mod unasked;
pub mod waiting;

pub use service::{Options, Sessions, SessionsParts};
