//! Runs one turn: the loop, its recovery, context and requests, and the live stream. It keeps
//! nothing of a turn between calls, and it knows no sessions.

pub mod context;
pub mod hub;
