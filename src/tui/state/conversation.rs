//! The session on screen, or the empty page: what is shown of it and from where.

use std::sync::Arc;

use crate::app::notice::UnsentMessage;
use crate::base::id::SessionId;
use crate::domain::session::state::SessionState;
use crate::tui::state::folds::Folds;
use crate::tui::state::item::ItemId;
use crate::tui::state::turns::Turns;

/// See the module.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conversation {
    /// What is on screen.
    pub page: Page,
    /// Its turns.
    pub turns: Turns,
    /// Where the person reads.
    pub reading: Reading,
    /// The item that keys act on; none for the one that is nearest to where the person reads.
    pub focus: Option<ItemId>,
    /// What is folded.
    pub folds: Folds,
    /// How texts are shown.
    pub form: Form,
    /// How many items have come below the place where the person reads.
    pub new_below: usize,
    /// What waits to be delivered, the oldest first.
    pub unsent: Vec<UnsentMessage>,
}

/// What is on screen.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Page {
    /// The empty page: a session is made from it by its first message.
    #[default]
    New,
    /// A session.
    Session {
        /// Which.
        id: SessionId,
        /// How far it has been loaded.
        load: Load,
    },
}

/// How far a session has been loaded.
#[derive(Clone, Debug, PartialEq)]
pub enum Load {
    /// It was asked for.
    Asked,
    /// It is there.
    Open {
        /// What its log amounts to.
        state: Arc<SessionState>,
        /// How many of its turns are still to come.
        left: usize,
    },
    /// It cannot be read, and why.
    Unreadable(String),
}

/// Where the person reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Reading {
    /// At the bottom, whatever comes.
    #[default]
    Follow,
    /// Here, whatever comes.
    Pinned(Place),
}

/// A place in the conversation: what stands in the first row of the view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The item.
    pub item: ItemId,
    /// Where in the item.
    pub at: At,
}

/// A place in an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// This row of it. A negative number, or one beyond its last row, is a place in the items before
    /// or after it; layout finds it, and holds it inside the conversation.
    Row(i64),
    /// The row that shows this byte of its source: what stays in place when rows are made for
    /// another width.
    Source(usize),
}

/// How texts are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Form {
    /// As markdown.
    #[default]
    Rendered,
    /// As they came.
    Raw,
}

impl Conversation {
    /// Whether a message goes only when the person says so.
    #[must_use]
    pub fn holds_a_message(&self) -> bool {
        self.unsent.iter().any(|message| message.held)
    }

    /// A session that has been asked for.
    #[must_use]
    pub fn opening(id: SessionId) -> Self {
        Self { page: Page::Session { id, load: Load::Asked }, ..Self::default() }
    }

    /// The session on screen; none on the empty page.
    #[must_use]
    pub fn session(&self) -> Option<&SessionId> {
        match &self.page {
            Page::Session { id, .. } => Some(id),
            Page::New => None,
        }
    }

    /// Reads at the bottom from now on.
    pub fn follow(&mut self) {
        self.reading = Reading::Follow;
        self.focus = None;
        self.new_below = 0;
    }

    /// Reads at a place from now on.
    pub fn pin(&mut self, place: Place) {
        self.reading = Reading::Pinned(place);
    }
}
