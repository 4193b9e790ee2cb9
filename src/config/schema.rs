//! The configuration as a person writes it: every table, every key, every default.
//! `config.example.toml` says the same in words; a test compares the two.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::config::bindings::KeyTables;
use crate::config::provider::Provider;
use crate::config::value::{Alias, ProviderId, VariableName, Whole};

/// Everything that can be configured.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Config {
    /// `[storage]`
    pub storage: Storage,
    /// `[delete]`
    pub delete: Delete,
    /// `[models]`
    pub models: Models,
    /// `[providers.<id>]`
    pub providers: BTreeMap<ProviderId, Provider>,
    /// `[agents]`
    pub agents: Agents,
    /// `[tools]`
    pub tools: Tools,
    /// `[ui]`
    pub ui: Ui,
    /// `[keys]`, as it is written; only the terminal knows what it may say.
    #[serde(skip)]
    pub keys: Option<KeyTables>,
    /// `[log]`
    pub log: Log,
}

/// How logs of sessions and turns are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Storage {
    /// In which form they are kept.
    pub format: Format,
    /// When what was written is forced to the disk.
    pub sync: SyncMode,
    /// What happens to the bytes after the last whole record of a log.
    pub torn_tail: TornTail,
}

/// In which form logs are kept: one for all in a work directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// A file of lines for each.
    #[default]
    Jsonl,
    /// A file of compressed frames for each.
    JsonlZst,
    /// One database for all.
    Sqlite,
}

/// When what was written is forced to the disk (`design/storage.md`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SyncMode {
    /// Before every effect, at a person's decisions, and where a turn rests.
    #[default]
    Barrier,
    /// With every write.
    Always,
    /// When the system likes.
    Never,
}

/// What happens to the bytes after the last whole record of a log: a write that a crash cut off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TornTail {
    /// They are kept beside the log and cut off.
    #[default]
    Cut,
    /// The log counts as damaged.
    Reject,
}

/// Deleting sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Delete {
    /// For how many days a deleted session can be restored; with 0 it is destroyed at once.
    pub keep_days: Whole<0, KEEP_DAYS_MAX>,
}

/// A hundred years: for ever, without overflowing a date.
const KEEP_DAYS_MAX: u64 = 36_500;

impl Default for Delete {
    fn default() -> Self {
        Self { keep_days: Whole::new(7) }
    }
}

/// Which model answers. Whether a name leads to one is known to whoever knows the providers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Models {
    /// The name of the model that answers when nothing else is said. Without it the program chooses.
    pub default: Option<String>,
    /// Names for names.
    pub aliases: BTreeMap<Alias, String>,
}

/// Which agent answers, and for how long.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Agents {
    /// The id of the agent that answers when nothing else is said.
    pub default: String,
    /// How many model calls a turn may make after the last input before it stops.
    pub max_model_calls: Whole<1, MODEL_CALLS_MAX>,
    /// Whether a model names a session after its first turn.
    pub auto_title: bool,
    /// Whether the older turns of a session are summarised when its model takes no more.
    pub auto_compact: bool,
}

/// More calls than anyone waits for; a limit above it is a slip of the hand.
const MODEL_CALLS_MAX: u64 = 10_000;

impl Default for Agents {
    fn default() -> Self {
        Self {
            default: "assistant".to_owned(),
            max_model_calls: Whole::new(50),
            auto_title: false,
            auto_compact: false,
        }
    }
}

/// What tools may use.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Tools {
    /// How many bytes of a tool's output the model is given; the rest is kept in a file.
    pub output_bytes_max: Whole<OUTPUT_BYTES_LEAST, OUTPUT_BYTES_MOST>,
    /// After how many seconds a shell command is ended.
    pub shell_timeout_s: Whole<1, SHELL_TIMEOUT_S_MAX>,
    /// The environment that shell commands see.
    pub env: ToolsEnv,
}

/// Below it, a head and a tail say nothing any more.
const OUTPUT_BYTES_LEAST: u64 = 1024;
/// More than any model can read, and still little memory.
const OUTPUT_BYTES_MOST: u64 = 16 * 1024 * 1024;
/// A day.
const SHELL_TIMEOUT_S_MAX: u64 = 24 * 60 * 60;

impl Default for Tools {
    fn default() -> Self {
        Self {
            output_bytes_max: Whole::new(64 * 1024),
            shell_timeout_s: Whole::new(120),
            env: ToolsEnv::default(),
        }
    }
}

/// What shell commands see of the environment: all but the variables whose names look like secrets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct ToolsEnv {
    /// Variables that they see although their names look like secrets.
    pub keep: Vec<VariableName>,
    /// Variables that they do not see, whatever their names look like.
    pub remove: Vec<VariableName>,
}

/// How the terminal looks and behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Ui {
    /// The colours.
    pub theme: Theme,
    /// Whether anything moves by itself.
    pub motion: Motion,
    /// Whether the mouse is used; without it the terminal's own selection works.
    pub mouse: bool,
    /// When a notice is sent to the desktop.
    pub notify: Notify,
}

impl Default for Ui {
    fn default() -> Self {
        Self {
            theme: Theme::default(),
            motion: Motion::default(),
            mouse: true,
            notify: Notify::default(),
        }
    }
}

/// The colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Theme {
    /// As the terminal's background is.
    #[default]
    Auto,
    /// For a light background.
    Light,
    /// For a dark background.
    Dark,
}

/// Whether anything moves by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Motion {
    /// Spinners turn.
    #[default]
    Full,
    /// Nothing is animated.
    Reduced,
}

/// When a notice is sent to the desktop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Notify {
    /// While the terminal's window has not the focus.
    #[default]
    Unfocused,
    /// Whenever a turn ends or something waits.
    Always,
    /// Never.
    Never,
}

/// The program's own log files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Log {
    /// How much is written.
    pub level: Level,
    /// How many days' files are kept beside today's.
    pub keep_days: Whole<1, LOG_DAYS_MAX>,
}

/// Ten years.
const LOG_DAYS_MAX: u64 = 3_650;

impl Default for Log {
    fn default() -> Self {
        Self { level: Level::default(), keep_days: Whole::new(14) }
    }
}

/// How much is logged: this and everything worse.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// What went wrong.
    Error,
    /// What may go wrong.
    Warn,
    /// What happened.
    #[default]
    Info,
    /// Why it happened.
    Debug,
    /// Every step.
    Trace,
}
