//! Sessions: their events, the reducer, and the index entry (`spec/session-layer.md` sections 5, 6
//! and 8, `design/sessions.md`).

pub mod apply;
pub mod entry;
pub mod event;
pub mod state;
