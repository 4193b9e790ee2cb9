//! Permissions: what a call would touch, what a person is shown and approves, and the rules that
//! say whether it may run.

pub mod decide;
pub mod pattern;
pub mod plan;
pub mod rule;
