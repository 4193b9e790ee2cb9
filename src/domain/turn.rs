//! Turns: their events, the reducer, what follows from a reduced turn, and its live stream.

pub mod apply;
pub mod event;
pub mod live;
pub mod reference;
pub mod refusal;
pub mod state;
pub mod status;
pub mod step;
pub mod transcript;
