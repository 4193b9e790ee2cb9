//! Everything that the screen is made from. Only `update` changes it; layout and view read it.
//!
//! It knows no terminal, no clock and no file: time comes in with
//! [`Msg::Tick`](crate::tui::msg::Msg::Tick), and what is to be done goes out as an
//! [`Effect`](crate::tui::effect::Effect).

pub mod activity;
pub mod composer;
pub mod conversation;
pub mod folds;
pub mod form;
pub mod history;
pub mod item;
pub mod keys;
pub mod list;
pub mod overlay;
pub mod prompts;
pub mod settings;
pub mod status;
pub mod turns;

use std::time::Duration;

use ratatui::layout::Size;

use crate::base::clock::Timestamp;
use crate::base::id::{SessionId, TurnId};
use crate::tui::keymap::context::Context;
use activity::{Activity, Work};
use composer::Composer;
use conversation::Conversation;
use item::Items;
use keys::Keys;
use list::List;
use overlay::Overlay;
use prompts::Prompts;
use settings::Settings;
use status::Status;

/// The state of the whole screen.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    /// The session list.
    pub list: List,
    /// The session on screen, or the empty page.
    pub conversation: Conversation,
    /// What is being written.
    pub composer: Composer,
    /// What the session on screen waits for a person to decide or answer.
    pub prompts: Prompts,
    /// What lies over everything else, if anything does.
    pub overlay: Option<Overlay>,
    /// Where keys go when nothing lies over it.
    pub focus: Focus,
    /// Which turns run now, of all sessions.
    pub activity: Activity,
    /// What the status line and the toasts say, and what is known about the window.
    pub status: Status,
    /// Keys that have been pressed: an unfinished sequence, steps that wait for a second key.
    pub keys: Keys,
    /// The time of the message that is being handled.
    pub now: Now,
    /// What was configured.
    pub settings: Settings,
    /// The size of the terminal, in cells.
    pub size: Size,
}

/// A moment on both clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Since some fixed start; never goes backwards. All deadlines are on this clock.
    pub elapsed: Duration,
    /// The wall clock, for what is shown.
    pub wall: Timestamp,
}

/// The one place that has the focus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Focus {
    /// The session list.
    List,
    /// The conversation.
    Timeline,
    /// The composer.
    Composer,
    /// The prompt that is open; only while one is ([`Prompts::open`]).
    Prompt,
}

impl State {
    /// The screen before anything has been read: the empty page, with the focus in the composer.
    #[must_use]
    pub fn new(settings: Settings, size: Size, now: Now) -> Self {
        Self {
            list: List::default(),
            conversation: Conversation::default(),
            composer: Composer::default(),
            prompts: Prompts::default(),
            overlay: None,
            focus: Focus::Composer,
            activity: Activity::default(),
            status: Status::default(),
            keys: Keys::default(),
            now,
            settings,
            size,
        }
    }

    /// The session on screen; none on the empty page.
    #[must_use]
    pub fn session(&self) -> Option<&SessionId> {
        self.conversation.session()
    }

    /// The items of the conversation on screen, as they are drawn and moved through.
    #[must_use]
    pub fn items(&self) -> Items<'_> {
        Items::new(&self.conversation.turns, &self.activity)
    }

    /// The turn of the session on screen that runs, if one does.
    #[must_use]
    pub fn running_turn(&self) -> Option<&TurnId> {
        self.activity.turn_of(self.session()?)
    }

    /// What runs in the session on screen, if anything does.
    #[must_use]
    pub fn work(&self) -> Option<Work> {
        self.activity.work_in(self.session()?)
    }

    /// Where keys are looked up, the nearest place first.
    #[must_use]
    pub fn contexts(&self) -> &'static [Context] {
        if let Some(overlay) = &self.overlay {
            return overlay.contexts();
        }
        match self.focus {
            Focus::List => self.list.contexts(),
            Focus::Timeline => &[Context::Timeline, Context::Moving, Context::Global],
            Focus::Composer => &[Context::Composer, Context::Editing, Context::Global],
            Focus::Prompt => self.prompts.contexts(),
        }
    }

    /// When the next message has to come even if nothing else happens, on the clock of
    /// [`Now::elapsed`]; none while the program may sleep until something happens.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Duration> {
        let deadlines = [
            self.list.deadline(),
            self.composer.deadline(),
            self.prompts.deadline(&self.keys),
            self.status.deadline(self.now.elapsed),
            self.keys.deadline(),
            self.overlay.as_ref().and_then(|overlay| overlay.deadline(&self.keys)),
            self.spinner_deadline(),
        ];
        deadlines.into_iter().flatten().min()
    }

    /// The frame that spinners show; it moves on four times a second.
    #[must_use]
    pub fn spinner_frame(&self) -> u128 {
        if self.settings.motion == settings::Motion::Reduced {
            return 0;
        }
        self.now.elapsed.as_millis() / SPINNER_MS
    }

    /// Nothing moves out of sight, in a window without the focus, or where motion is unwanted.
    fn spinner_deadline(&self) -> Option<Duration> {
        let still = self.settings.motion == settings::Motion::Reduced
            || !self.status.spinner_in_sight
            || self.status.window == status::Window::Unfocused;
        let next = (self.now.elapsed.as_millis() / SPINNER_MS + 1) * SPINNER_MS;
        (!still).then(|| Duration::from_millis(u64::try_from(next).unwrap_or(u64::MAX)))
    }
}

/// Four frames a second: enough to see that something lives, cheap over a slow line.
const SPINNER_MS: u128 = 250;
