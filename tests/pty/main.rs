//! The real program in a real pseudo-terminal: what a person does, and what comes of it.
#![expect(clippy::expect_used, reason = "tests stop where they fail")]

mod archiving;
mod bad_input;
mod broken_off;
mod deleting;
mod events;
mod forking;
mod full_device;
mod guide;
mod hostile;
mod manners;
mod person;
mod server;
mod typing;
mod waiting;
mod window;
