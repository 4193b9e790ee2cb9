//! What lies over everything else and takes the keys: one thing at a time.

use std::sync::Arc;
use std::time::Duration;

use crate::app::command::TextOf;
use crate::app::notice::EventLine;
use crate::app::paged::Paged;
use crate::base::id::{EventId, SessionId, TurnId};
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
    /// The events of a turn.
    Events(Events),
    /// The word that destroys sessions.
    Purge(Purge),
    /// Another text for a message that waits.
    Rewrite(Rewrite),
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
    /// Whether to go on with the interrupted turn of this session, or to close it, before the text
    /// is sent.
    Interrupted(SessionId),
    /// Whether to stop this turn, which waits for somebody.
    Stop(TurnId),
    /// Whether to give up what the disk does not take.
    GiveUp,
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

/// What has to be typed before something is destroyed.
pub const PURGE_WORD: &str = "purge";

/// The word that destroys sessions.
#[derive(Clone, Debug, PartialEq)]
pub struct Purge {
    /// The sessions.
    pub sessions: Vec<SessionId>,
    /// What has been typed of it.
    pub field: Editor,
}

impl Purge {
    /// Whether the word stands there.
    #[must_use]
    pub fn is_meant(&self) -> bool {
        self.field.text().trim() == PURGE_WORD
    }
}

/// Another text for a message that waits.
#[derive(Clone, Debug, PartialEq)]
pub struct Rewrite {
    /// Its session.
    pub session: SessionId,
    /// The message.
    pub event: EventId,
    /// What it says now.
    pub was: String,
    /// What it is to say.
    pub field: Editor,
    /// Whether that would survive a crash.
    pub safety: Safety,
}

/// Whether what was typed would survive a crash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Safety {
    /// Nothing was typed.
    #[default]
    AsItWas,
    /// Not yet: it goes to the disk then.
    DueAt(Duration),
    /// It would.
    OnDisk,
}

impl Rewrite {
    /// The text, if it is another one.
    #[must_use]
    pub fn changed(&self) -> Option<String> {
        let text = self.field.text();
        (text != self.was).then_some(text)
    }
}

/// The events of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Events {
    /// The turn.
    pub turn: TurnId,
    /// Its events.
    pub lines: Fetched<Arc<[EventLine]>>,
    /// The event under the cursor, from 0.
    pub selected: usize,
    /// What is shown in place of the events.
    pub page: Option<EventPage>,
}

/// An event or a request, all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventPage {
    /// Which.
    pub what: TextOf,
    /// Its JSON.
    pub text: Fetched<Arc<Paged>>,
    /// How many lines are above the view.
    pub scroll: usize,
}

/// Something that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fetched<T> {
    /// It has not come yet.
    Asked,
    /// It is there.
    There(T),
    /// It cannot be had, and why.
    Failed(String),
}

impl<T> Fetched<T> {
    /// What came.
    #[must_use]
    pub fn of(came: Result<T, String>) -> Self {
        came.map_or_else(Self::Failed, Self::There)
    }
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
    /// The prompt that it belongs to.
    #[must_use]
    pub fn prompt(&self) -> Option<&Prompt> {
        match self {
            Self::Reason(reason) => Some(&reason.prompt),
            Self::Full(full) => Some(&full.prompt),
            Self::Help(_)
            | Self::Confirm(_)
            | Self::Waiting(_)
            | Self::Codes(_)
            | Self::Events(_)
            | Self::Purge(_)
            | Self::Rewrite(_) => None,
        }
    }

    /// The prompt that it shows whole, so that it can be decided there.
    #[must_use]
    pub fn full_prompt(&self) -> Option<&Prompt> {
        match self {
            Self::Full(full) => Some(&full.prompt),
            Self::Help(_)
            | Self::Confirm(_)
            | Self::Reason(_)
            | Self::Waiting(_)
            | Self::Codes(_)
            | Self::Events(_)
            | Self::Purge(_)
            | Self::Rewrite(_) => None,
        }
    }

    /// The text that is being typed in it.
    pub fn field_mut(&mut self) -> Option<&mut Editor> {
        match self {
            Self::Reason(reason) => Some(&mut reason.field),
            Self::Purge(purge) => Some(&mut purge.field),
            Self::Rewrite(rewrite) => Some(&mut rewrite.field),
            Self::Help(_)
            | Self::Confirm(_)
            | Self::Full(_)
            | Self::Waiting(_)
            | Self::Codes(_)
            | Self::Events(_) => None,
        }
    }

    /// When something has to be done even if nothing happens: its keys become live, or what was typed
    /// goes to the disk.
    pub(super) fn deadline(&self, keys: &Keys) -> Option<Duration> {
        match self {
            Self::Confirm(confirm) => confirm.arming.due(keys),
            Self::Rewrite(Rewrite { safety: Safety::DueAt(due), .. }) => Some(*due),
            Self::Help(_)
            | Self::Reason(_)
            | Self::Full(_)
            | Self::Waiting(_)
            | Self::Codes(_)
            | Self::Events(_)
            | Self::Purge(_)
            | Self::Rewrite(Rewrite { safety: Safety::AsItWas | Safety::OnDisk, .. }) => None,
        }
    }

    /// Where its keys are looked up, the nearest place first.
    #[must_use]
    pub fn contexts(&self) -> &'static [Context] {
        match self {
            Self::Help(_) => &[Context::Help, Context::Moving, Context::Global],
            Self::Confirm(Confirm { about: About::Interrupted(_), .. }) => {
                &[Context::Interrupted, Context::Global]
            }
            Self::Confirm(_) => &[Context::Confirm, Context::Global],
            Self::Reason(_) | Self::Purge(_) => {
                &[Context::Field, Context::Editing, Context::Global]
            }
            Self::Rewrite(_) => &[Context::Rewrite, Context::Editing, Context::Global],
            Self::Full(_) => &[Context::Permission, Context::Moving, Context::Global],
            Self::Waiting(_) => &[Context::Waiting, Context::Moving, Context::Global],
            Self::Codes(_) => &[Context::Global],
            Self::Events(_) => &[Context::Events, Context::Moving, Context::Global],
        }
    }
}
