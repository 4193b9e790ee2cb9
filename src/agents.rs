//! What an agent is: its prompt, its model, its tools.

pub mod builtin;
pub mod choice;
pub mod resolver;
pub mod scratch;
