//! The real program in a real pseudo-terminal: what a person does, and what comes of it.
#![expect(clippy::expect_used, reason = "tests stop where they fail")]

mod bad_input;
mod broken_off;
mod deleting;
mod events;
mod guide;
mod hostile;
mod manners;
mod person;
mod server;
mod typing;
mod window;
