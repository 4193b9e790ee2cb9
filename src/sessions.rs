//! Conversations: chains of turns with a title, one writer for each, the index of all, and the way
//! from a person's answer to the turn that waits for it (`spec/session-layer.md`,
//! `design/sessions.md`).

mod advance;
pub mod api;
pub mod aside;
mod compact;
mod context;
pub mod error;
mod external;
mod fork;
pub mod gc;
pub mod index;
mod live;
mod locks;
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

pub use service::{Options, Sessions, SessionsParts};
