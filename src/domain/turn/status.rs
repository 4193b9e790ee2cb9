//! How a turn stands, derived from its reduced state in one place for everybody.

use serde::Serialize;

use crate::domain::turn::state::{Terminal, TerminalKind, TurnState};

/// The reason of a turn that was closed after a crash; no stop writes it.
pub const INTERRUPTED: &str = "interrupted";

/// How a turn stands. "Running" is no status: who runs is known in memory only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TurnStatus {
    /// It ended with an answer.
    Completed,
    /// It ended without one.
    Failed,
    /// It was ended from outside.
    Cancelled,
    /// It waits for a decision or an answer from outside.
    Suspended,
    /// It has not ended and waits for nobody: it runs, or a crash interrupted it.
    Idle,
}

impl TurnStatus {
    /// Whether the turn has ended.
    #[must_use]
    pub fn is_terminal(self) -> bool {
        match self {
            Self::Completed | Self::Failed | Self::Cancelled => true,
            Self::Suspended | Self::Idle => false,
        }
    }
}

impl std::fmt::Display for TurnStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Suspended => "suspended",
            Self::Idle => "idle",
        })
    }
}

impl TurnState {
    /// How the turn stands. What is outstanding decides, not whether the suspension was written
    /// before a crash (`spec/session-layer.md` section 8.1 as `design/turn-runtime.md` reads it).
    #[must_use]
    pub fn status(&self) -> TurnStatus {
        match self.terminal.as_ref().map(|terminal| &terminal.kind) {
            Some(TerminalKind::Completed(_)) => TurnStatus::Completed,
            Some(TerminalKind::Failed(_)) => TurnStatus::Failed,
            Some(TerminalKind::Cancelled(_)) => TurnStatus::Cancelled,
            None if self.is_waiting() => TurnStatus::Suspended,
            None => TurnStatus::Idle,
        }
    }
}

impl Terminal {
    /// Whether this is a turn that a crash interrupted and a person then closed.
    #[must_use]
    pub fn is_closed_interruption(&self) -> bool {
        match &self.kind {
            TerminalKind::Cancelled(cancelled) => cancelled.reason.as_deref() == Some(INTERRUPTED),
            TerminalKind::Completed(_) | TerminalKind::Failed(_) => false,
        }
    }
}
