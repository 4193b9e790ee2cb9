//! The terminal: state, update, layout and view (pure), and the shell that touches the real one.

pub mod action;
pub mod cache;
pub mod editor;
pub mod effect;
pub mod input;
pub mod key;
pub mod keymap;
pub mod layout;
pub mod line;
pub mod mark;
pub mod msg;
pub mod rich;
pub mod rows;
#[cfg(test)]
mod scenes;
pub mod shell;
pub mod state;
pub mod theme;
pub mod update;
pub mod view;
pub mod words;
