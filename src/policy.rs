//! Whether a call may run: the checker that judges by rules, and the seam for an opinion on what
//! the rules leave open. It touches no file: paths arrive resolved.

pub mod built_in;
pub mod checker;
pub mod classifier;
