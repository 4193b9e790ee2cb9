//! Contexts: the places whose keys differ, as key tables name them, and what may be bound in each.

use std::fmt;
use std::str::FromStr;

use crate::tui::action::{Action, ComposerAction, DialogAction};

/// A place with keys of its own. What has the focus makes a stack of contexts, the nearest first:
/// `[Composer, Editing, Global]`, or `[Waiting, Moving, Global]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Context {
    /// Everywhere, tried last.
    Global,
    /// Whatever can be moved through and is no text.
    Moving,
    /// The session list.
    List,
    /// The conversation.
    Timeline,
    /// A permission prompt.
    Permission,
    /// The options of a question.
    Question,
    /// The free text of a question; above [`Context::Editing`].
    Answer,
    /// The list of all that waits.
    Waiting,
    /// The composer; above [`Context::Editing`].
    Composer,
    /// Any text that is being typed: below it, characters are text and no keys.
    Editing,
    /// The events of a turn.
    Events,
    /// The help screen.
    Help,
    /// A question with yes and no.
    Confirm,
    /// The question what is to become of an interrupted turn.
    Interrupted,
    /// A message that waits and is given another text; above [`Context::Editing`].
    Rewrite,
    /// One line that was asked for, such as a title; above [`Context::Editing`].
    Field,
    /// The filter of a list; above [`Context::Editing`].
    Filter,
}

impl Context {
    pub(super) const ALL: [Self; 17] = [
        Self::Global,
        Self::Moving,
        Self::List,
        Self::Timeline,
        Self::Permission,
        Self::Question,
        Self::Answer,
        Self::Waiting,
        Self::Composer,
        Self::Editing,
        Self::Events,
        Self::Help,
        Self::Confirm,
        Self::Interrupted,
        Self::Rewrite,
        Self::Field,
        Self::Filter,
    ];

    /// The name of its table.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Global => "global",
            Self::Moving => "moving",
            Self::List => "list",
            Self::Timeline => "timeline",
            Self::Permission => "permission",
            Self::Question => "question",
            Self::Answer => "answer",
            Self::Waiting => "waiting",
            Self::Composer => "composer",
            Self::Editing => "editing",
            Self::Events => "events",
            Self::Help => "help",
            Self::Confirm => "confirm",
            Self::Interrupted => "interrupted",
            Self::Rewrite => "rewrite",
            Self::Field => "field",
            Self::Filter => "filter",
        }
    }

    /// Whether `action` does something here. Where it does not it cannot be bound, so that no key
    /// is dead.
    #[must_use]
    pub fn takes(self, action: Action) -> bool {
        match action {
            Action::App(_) | Action::Move(_) => true,
            Action::List(_) => self == Self::List,
            Action::Turn(_) => matches!(self, Self::List | Self::Timeline),
            Action::Timeline(_) => self == Self::Timeline,
            Action::Permission(_) => self == Self::Permission,
            Action::Question(_) => matches!(self, Self::Question | Self::Answer),
            Action::Waiting(_) => self == Self::Waiting,
            Action::Composer(ComposerAction::Newline | ComposerAction::EditWaiting) => {
                matches!(self, Self::Composer | Self::Rewrite)
            }
            Action::Composer(_) => self == Self::Composer,
            Action::Edit(_) => self.is_text(),
            Action::Inspect(_) => self == Self::Events,
            Action::Dialog(DialogAction::Accept) => matches!(
                self,
                Self::Confirm | Self::Interrupted | Self::Rewrite | Self::Field | Self::Filter
            ),
            Action::Dialog(DialogAction::Resume) => self == Self::Interrupted,
        }
    }

    fn is_text(self) -> bool {
        match self {
            Self::Answer
            | Self::Composer
            | Self::Editing
            | Self::Rewrite
            | Self::Field
            | Self::Filter => true,
            Self::Global
            | Self::Moving
            | Self::List
            | Self::Timeline
            | Self::Permission
            | Self::Question
            | Self::Waiting
            | Self::Events
            | Self::Help
            | Self::Confirm
            | Self::Interrupted => false,
        }
    }
}

impl fmt::Display for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A text that names no context.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no context is called {0:?}; there are {known}", known = Context::ALL.map(Context::name).join(", "))]
pub struct UnknownContext(String);

impl FromStr for Context {
    type Err = UnknownContext;

    fn from_str(name: &str) -> Result<Self, UnknownContext> {
        let found = Self::ALL.into_iter().find(|context| context.name() == name);
        found.ok_or_else(|| UnknownContext(name.to_owned()))
    }
}
