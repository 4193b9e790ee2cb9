//! What the status line and the toasts say, and what is known about the window.

use std::collections::VecDeque;
use std::time::Duration;

use crate::base::id::{SessionId, TurnId};
use crate::domain::agent::ModelDescriptor;
use crate::store::coordinate::Stall;
use crate::tui::input::Rgb;

/// More would hide the conversation; the oldest goes first.
pub const TOASTS_MAX: usize = 3;
/// Long enough to read two lines.
const TOAST_STAYS: Duration = Duration::from_secs(5);
/// What went wrong takes longer to read.
const PROBLEM_STAYS: Duration = Duration::from_secs(12);

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Short messages, the oldest first; at most [`TOASTS_MAX`].
    pub toasts: VecDeque<Toast>,
    /// Which model answers when nothing else is said.
    pub model: Option<ChosenModel>,
    /// How the last run ended, as long as that matters.
    pub last_run: LastRun,
    /// What the disk has not taken.
    pub stalls: Stalls,
    /// Whether the window has the focus.
    pub window: Window,
    /// Whether the last frame showed anything that turns.
    pub spinner_in_sight: bool,
    /// The colours that the terminal says it has.
    pub colours: Colours,
}

/// What the disk has not taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stalls {
    /// The logs of which it has not taken all.
    pub list: Vec<Stall>,
    /// When the last try of each was told, on the clock of [`Now::elapsed`](super::Now::elapsed).
    told_at: Vec<Duration>,
    /// Whether what is held is to be given up.
    pub end: StallEnd,
}

/// How a stall is about to end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StallEnd {
    /// When the disk takes what is held.
    #[default]
    Written,
    /// The person gave it up.
    GivenUp,
}

impl Stalls {
    /// What is known now. A stall that only holds more than before is tried again when it was to be.
    pub fn change(&mut self, list: Vec<Stall>, now: Duration) {
        let is_same = |a: &Stall, b: &Stall| (&a.log, a.tries) == (&b.log, b.tries);
        let known = self.list.iter().zip(&self.told_at);
        let told_at = |stall: &Stall| {
            let known = known.clone().find(|(known, _)| is_same(known, stall));
            known.map_or(now, |(_, told_at)| *told_at)
        };
        self.told_at = list.iter().map(told_at).collect();
        self.list = list;
    }

    /// How many events are held.
    #[must_use]
    pub fn records(&self) -> usize {
        self.list.iter().map(|stall| stall.records).sum()
    }

    /// After how many seconds the next try comes by itself, if one does.
    #[must_use]
    pub fn retry_in_s(&self, now: Duration) -> Option<u64> {
        let left = self.due()?.saturating_sub(now);
        Some(left.as_millis().div_ceil(1_000).try_into().unwrap_or(u64::MAX))
    }

    /// When the seconds that are shown are others.
    fn deadline(&self, now: Duration) -> Option<Duration> {
        let left = self.retry_in_s(now).filter(|left| *left > 0)?;
        Some(self.due()?.saturating_sub(Duration::from_secs(left - 1)))
    }

    /// When the next try comes by itself.
    fn due(&self) -> Option<Duration> {
        let due = |(stall, told_at): (&Stall, &Duration)| Some(*told_at + stall.retry_in?);
        self.list.iter().zip(&self.told_at).filter_map(due).min()
    }
}

/// A short message that goes by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Toast {
    /// What it says.
    pub text: String,
    /// What it is.
    pub tone: Tone,
    /// When it goes, on the clock of [`Now::elapsed`](super::Now::elapsed).
    pub until: Duration,
    /// The turn with whose rest it goes before that.
    pub turn: Option<TurnId>,
}

/// What a toast is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Something happened.
    Plain,
    /// Something did not happen that was asked for.
    Problem,
}

/// Which model answers when nothing else is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChosenModel {
    /// The model.
    pub model: ModelDescriptor,
    /// Why it.
    pub why: String,
}

/// How the last run ended, as long as that matters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LastRun {
    /// As it should, or everything that it left has been dealt with.
    #[default]
    EndedWell,
    /// By a crash, or something of the kind.
    EndedBadly {
        /// The sessions whose turns it interrupted and that nobody has dealt with.
        interrupted: Vec<SessionId>,
    },
}

impl LastRun {
    /// Something became of the interrupted turn of this session; with the last one, all is well.
    pub fn dealt_with(&mut self, session: &SessionId) {
        let Self::EndedBadly { interrupted } = self else { return };
        let before = interrupted.len();
        interrupted.retain(|it| it != session);
        if interrupted.is_empty() && before > 0 {
            *self = Self::EndedWell;
        }
    }

    /// The person has gone on; that matters where nothing is left to be dealt with.
    pub fn went_on(&mut self) {
        if matches!(self, Self::EndedBadly { interrupted } if interrupted.is_empty()) {
            *self = Self::EndedWell;
        }
    }
}

/// Whether the window has the focus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Window {
    /// It has, or the terminal does not tell.
    #[default]
    Focused,
    /// It has not.
    Unfocused,
}

/// The default colours of the terminal, as far as it told them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Colours {
    /// Of text.
    pub foreground: Option<Rgb>,
    /// Behind it.
    pub background: Option<Rgb>,
}

impl Status {
    /// Shows a message for a while. One that is shown already stays longer instead of twice.
    pub fn toast(&mut self, tone: Tone, text: impl Into<String>, now: Duration) {
        self.show(tone, text.into(), now);
    }

    /// Shows a message for a while, and not once this turn rests.
    pub fn toast_of(&mut self, turn: TurnId, text: impl Into<String>, now: Duration) {
        self.show(Tone::Plain, text.into(), now).turn = Some(turn);
    }

    /// A turn rests.
    pub fn rested(&mut self, turn: &TurnId) {
        self.toasts.retain(|toast| toast.turn.as_ref() != Some(turn));
    }

    fn show(&mut self, tone: Tone, text: String, now: Duration) -> &mut Toast {
        self.toasts.retain(|toast| toast.text != text);
        if self.toasts.len() == TOASTS_MAX {
            self.toasts.pop_front();
        }
        let stays = match tone {
            Tone::Plain => TOAST_STAYS,
            Tone::Problem => PROBLEM_STAYS,
        };
        self.toasts.push_back_mut(Toast { text, tone, until: now + stays, turn: None })
    }

    /// Lets go of what has been shown long enough.
    pub fn expire(&mut self, now: Duration) {
        self.toasts.retain(|toast| toast.until > now);
    }

    pub(super) fn deadline(&self, now: Duration) -> Option<Duration> {
        let toasts = self.toasts.iter().map(|toast| toast.until);
        toasts.chain(self.stalls.deadline(now)).min()
    }
}
