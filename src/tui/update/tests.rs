//! Key scripts: what a person does and what the program tells, and what comes of it.

mod app;
mod archive;
mod compaction;
mod composer;
mod events;
mod fork;
mod keys;
mod list;
mod live;
mod monitor;
mod promises;
mod prompts;
mod questions;
mod reading;
mod script;
mod stalled;
mod stopping;
mod stream;
mod unsent;
mod world;
