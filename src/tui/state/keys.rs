//! Keys that have been pressed and wait for more: unfinished sequences, and steps that take a second
//! key within some time.

use std::time::Duration;

use crate::tui::key::Key;
use crate::tui::keymap::context::Context;
use crate::tui::state::activity::Work;

/// The second key of a step has to come within this time (`design/experience.md`, stopping and
/// leaving).
pub const SECOND_KEY_WITHIN: Duration = Duration::from_secs(2);
/// A click that comes this soon after the window got the focus was made to give it the focus.
pub const FOCUS_CLICK_WITHIN: Duration = Duration::from_millis(500);

/// The keys of what asks for a decision are dead until it has stood on the screen for so long without
/// a key (`design/experience.md`, approvals and questions).
pub const ARMED_AFTER: Duration = Duration::from_millis(400);

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keys {
    /// The keys of a sequence that is not whole yet.
    pub pending: Vec<Key>,
    /// Where the sequence was begun; elsewhere it does not go on.
    pub pending_in: &'static [Context],
    /// When the person last pressed a key or gave text.
    pub last_at: Option<Duration>,
    /// When the window last got the focus, until the first click after it.
    pub window_focused_at: Option<Duration>,
    /// A step that a second key within [`SECOND_KEY_WITHIN`] takes.
    pub step: Option<Step>,
}

/// A step that has been begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// What the second key does.
    pub kind: StepKind,
    /// Until when it does.
    pub until: Duration,
}

/// What a second key does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// Escape stops this.
    Stop(Work),
    /// Ctrl-C quits.
    Quit,
}

/// Whether the keys of something that asks for a decision are live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arming {
    /// Dead: it has not been seen.
    #[default]
    Unseen,
    /// Dead: it stands on the screen since then.
    Seen(Duration),
    /// Live.
    Armed,
}

impl Arming {
    /// When the keys become live if nothing is pressed before.
    #[must_use]
    pub fn due(self, keys: &Keys) -> Option<Duration> {
        match self {
            Self::Unseen | Self::Armed => None,
            Self::Seen(since) => Some(keys.armed_at(since)),
        }
    }
}

impl Keys {
    /// When the keys of what stands on the screen since then become live if nothing is pressed before.
    #[must_use]
    pub fn armed_at(&self, seen: Duration) -> Duration {
        seen.max(self.last_at.unwrap_or_default()) + ARMED_AFTER
    }

    /// Begins a step.
    pub fn begin(&mut self, kind: StepKind, now: Duration) {
        self.step = Some(Step { kind, until: now + SECOND_KEY_WITHIN });
    }

    /// Takes the step that was begun, if its time has not passed.
    pub fn take_step(&mut self, now: Duration) -> Option<StepKind> {
        self.step.take().filter(|step| now <= step.until).map(|step| step.kind)
    }

    /// Lets go of a step whose time has passed.
    pub fn expire(&mut self, now: Duration) {
        if self.step.as_ref().is_some_and(|step| step.until < now) {
            self.step = None;
        }
    }

    pub(super) fn deadline(&self) -> Option<Duration> {
        // Just after the last moment that still counts.
        self.step.as_ref().map(|step| step.until + Duration::from_millis(1))
    }
}
