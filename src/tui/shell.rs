//! The shell around the pure half: the one place that touches the real terminal.

pub mod attention;
pub mod decode;
pub mod input;
pub mod paint;
#[cfg(test)]
mod pty;
pub mod run;
pub mod signal;
pub mod terminal;
pub mod tty;
