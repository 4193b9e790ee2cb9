//! The program without a screen: it builds the graph of everything below, takes commands in and
//! gives notices out.

pub mod command;
pub mod notice;
