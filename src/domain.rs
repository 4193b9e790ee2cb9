//! What happened and what follows from it: events, reducers, transcripts, references, permission
//! plans. Pure: it knows no clock, no file, no task and no terminal.

pub mod json;
