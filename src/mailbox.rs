//! The durable way into a session for everything that is not the composer of an ended one: messages
//! that wait, each a file of its own until a turn has it (`design/mailbox.md`,
//! `spec/runtime-state.md`). Of the folder of a session's runtime state this makes `inbox/`,
//! `mailbox/pending/` and `lock`; what else stands there is left alone.

mod folder;
pub mod inbox;
mod item;
