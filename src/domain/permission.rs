//! Permissions: what a call would touch, and what a person is shown and approves.

pub mod plan;
