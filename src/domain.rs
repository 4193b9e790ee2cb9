//! What happened and what follows from it: events, reducers, transcripts, references, permission
//! plans. Pure: it knows no clock, no file, no task and no terminal.

pub mod agent;
pub mod brief;
pub mod event;
pub mod json;
pub mod message;
pub mod permission;
pub mod question;
pub mod session;
pub mod tool;
pub mod turn;
pub mod usage;
