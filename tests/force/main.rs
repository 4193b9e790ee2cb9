//! What the program promises of what it was told to keep, by force: processes that are killed at any
//! moment, devices without room, folders that two want.
//!
//! `TURNSTILE_KILL_ROUNDS=500 cargo test --test force` kills so often for each form of the logs;
//! `TURNSTILE_SEED=42` draws the same work again. When exactly a kill comes is in nobody's hand.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests stop where they fail"
)]

mod backend;
mod calls;
mod commands;
mod full;
mod kills;
mod other;
mod told;
mod turns;
mod writer;
