//! turnstile: a full-screen terminal program for working with AI agents that never loses work.
//!
//! # From above
//!
//! Everything that happens is an **event** in an append-only **log**: one log for each session, one
//! for each turn. State is always the fold of a log by a pure reducer; there are no summary files and
//! no checkpoints. A **turn** begins with one message of a person and holds all the work that it
//! causes: model calls, permission decisions, tool runs, and exactly one end. A **session** is a
//! chain of turns with a title. What waits for a person is in the log too, so it survives every
//! crash. The terminal draws the list of sessions from an index in memory, a timeline of turns from
//! their reduced states, and live text as an overlay that the recorded answer replaces.
//!
//! # Floors
//!
//! A module uses strictly lower floors only; modules of one floor are strangers. A test keeps it
//! (`tests/architecture.rs`).
//!
//! | floor | modules | what lives there |
//! |---|---|---|
//! | 9 | [`cli`] | arguments, exit codes, the process |
//! | 8 | [`tui`] | state, update, layout and view (pure); the shell (terminal, loop, effects) |
//! | 7 | [`app`] | builds the graph; commands in, notices out; no screen |
//! | 5 | [`agents`] | what an agent is: its prompt, its model, its tools |
//! | 4 | [`sessions`] | one writer for each session, the index, forks, compaction, deletion |
//! | 3 | [`runtime`] | runs one turn: the loop, recovery, context, requests, the live stream |
//! | 2 | [`store`], [`models`], [`tools`], [`policy`], [`config`] | seams and their real parts |
//! | 1 | [`domain`] | events, reducers, transcripts, references, rules, plans; pure |
//! | 0 | [`base`] | ids, clock and chance, owned tasks, text, secrets |
//!
//! `testing` (feature `testing`) stands above all floors and is used by none.
//!
//! # How data flows
//!
//! A key: `tui::shell` reads it, the keymap makes an action of it, `tui::update` changes the state and
//! returns effects as values, the shell performs them, [`app`] takes the commands among them to
//! [`sessions`], which calls [`runtime`], which writes to [`store`]. Back: the runtime tells what it
//! recorded on its hub, sessions on their index, [`app`] makes notices of both, and `tui::update` folds
//! them in. Nothing flows sideways; nothing but the shell touches the terminal.
//!
//! # What each floor must never know
//!
//! - [`domain`]: time, files, tasks, terminals. It is given events and gives answers.
//! - [`store`]: what a record means. Records are JSON objects; the typed repositories know more.
//! - [`models`], [`tools`], [`policy`], [`config`]: each other. What one makes, another gets as a
//!   value of [`domain`].
//! - [`runtime`]: sessions. It runs one turn and keeps nothing between calls.
//! - [`sessions`]: the screen. Everything it changes is told on the index.
//! - [`app`]: how anything is drawn.
//! - the pure half of [`tui`]: clocks, tasks, files, the terminal library's events.
//!
//! # Ways in
//!
//! - An event, or a rule of what may follow what: [`domain::turn::event`], [`domain::turn::apply`].
//! - What happens in a turn: `runtime::advance`.
//! - What a key does: `assets/keymap.toml`, then `tui::update`.
//! - A new provider: [`models`]; a new tool: [`tools`]; a rule of permission: [`policy`].

pub mod agents;
pub mod app;
pub mod base;
pub mod cli;
pub mod config;
pub mod domain;
pub mod models;
pub mod policy;
pub mod runtime;
pub mod sessions;
pub mod store;
#[cfg(feature = "testing")]
pub mod testing;
pub mod tools;
pub mod tui;
