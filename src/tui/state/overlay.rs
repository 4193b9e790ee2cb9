//! What lies over everything else and takes the keys: one thing at a time.

use std::time::Duration;

use crate::base::id::{SessionId, TurnId};
use crate::tui::editor::Editor;
use crate::tui::keymap::context::Context;
use crate::tui::state::keys::{Arming, Keys};
use crate::tui::state::list::waiting::WaitingCall;
use crate::tui::state::prompts::Prompt;

/// See the module.
#[derive(Clone, Debug, PartialEq)]
pub enum Overlay {
    /// The keys of the place where the person is.
    Help(Help),
    /// A question with yes and no.
    Confirm(Confirm),
    /// A reason that goes with a denial.
    Reason(Reason),
    /// All that a call would do, whole; the keys of its prompt work here too.
    Full(Full),
    /// Everything that waits, in all sessions.
    Waiting(Waiting),
    /// Several code blocks, of which one is to be copied.
    Codes(Codes),
}

/// The keys of the place where the person is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Help {
    /// Where.
    pub contexts: &'static [Context],
    /// How many rows are above the view.
    pub scroll: usize,
}

/// A question with yes and no. Yes counts only once the question has been read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confirm {
    /// What is asked.
    pub about: About,
    /// Whether its keys are live.
    pub arming: Arming,
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum About {
    /// Whether to delete these sessions.
    Delete(Vec<SessionId>),
    /// Whether to quit although turns run: they are left interrupted and can be resumed.
    Quit,
    /// Whether to close the interrupted turn of this session and send the text then.
    CloseAndSend(SessionId),
    /// Whether to stop this turn, which waits for somebody.
    Stop(TurnId),
}

/// A reason that goes with a denial.
#[derive(Clone, Debug, PartialEq)]
pub struct Reason {
    /// What is denied.
    pub prompt: Prompt,
    /// The reason.
    pub field: Editor,
}

/// All that a call would do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Full {
    /// The call.
    pub prompt: Prompt,
    /// How many rows are above the view.
    pub scroll: usize,
    /// How many rows have been on the screen, from the first without a gap.
    pub seen_rows: usize,
}

/// Everything that waits, in all sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// The call under the cursor; none until the person has moved, then the first row has it.
    pub selected: Option<WaitingCall>,
}

/// Several code blocks, of which one is to be copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Codes {
    /// The blocks; the first one has the number 1.
    pub blocks: Vec<String>,
}

impl Full {
    /// All of a call from its beginning, of which nothing has been seen yet.
    #[must_use]
    pub fn new(prompt: Prompt) -> Self {
        Self { prompt, scroll: 0, seen_rows: 0 }
    }

    /// A frame showed so many rows of so many; whether all have been on the screen.
    pub fn see(&mut self, rows_in_sight: usize, rows: usize) -> bool {
        let first = self.scroll.min(rows.saturating_sub(rows_in_sight));
        if first <= self.seen_rows {
            self.seen_rows = self.seen_rows.max(first + rows_in_sight);
        }
        self.seen_rows >= rows
    }
}

impl Overlay {
    /// When its keys become live if nothing is pressed before.
    pub(super) fn deadline(&self, keys: &Keys) -> Option<Duration> {
        match self {
            Self::Confirm(confirm) => confirm.arming.due(keys),
            Self::Help(_) | Self::Reason(_) | Self::Full(_) | Self::Waiting(_) | Self::Codes(_) => {
                None
            }
        }
    }

    /// Where its keys are looked up, the nearest place first.
    #[must_use]
    pub fn contexts(&self) -> &'static [Context] {
        match self {
            Self::Help(_) => &[Context::Help, Context::Moving, Context::Global],
            Self::Confirm(_) => &[Context::Confirm, Context::Global],
            Self::Reason(_) => &[Context::Field, Context::Editing, Context::Global],
            Self::Full(_) => &[Context::Permission, Context::Moving, Context::Global],
            Self::Waiting(_) => &[Context::Waiting, Context::Moving, Context::Global],
            Self::Codes(_) => &[Context::Global],
        }
    }
}
