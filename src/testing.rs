//! What tests are built from: above all floors, used by none of them, only with the feature
//! `testing`.
#![expect(clippy::expect_used, reason = "a test stops where its own scenery is wrong")]

pub mod agents;
pub mod backend;
pub mod beside;
pub mod checker;
pub mod clock;
pub mod disk;
pub mod fact;
pub mod fixture;
pub mod folder;
pub mod gate;
pub mod lines;
pub mod log;
pub mod measure;
pub mod model;
pub mod model_server;
pub mod pty;
pub mod rights;
pub mod seed;
pub mod session_fact;
pub mod sessions;
pub mod sim;
pub mod store;
pub mod strategy;
pub mod stream_rules;
mod told;
pub mod tools;
pub mod turns;
pub mod whole;
pub mod world;
