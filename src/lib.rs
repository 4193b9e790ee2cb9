//! turnstile: a full-screen terminal program for working with AI agents that never loses work.

pub mod app;
pub mod base;
pub mod domain;
pub mod runtime;
