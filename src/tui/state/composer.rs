//! The composer: the text of a session's next message, its way to the disk and out.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::app::command::{Draft, DraftOf};
use crate::base::id::{EventId, SessionId};
use crate::tui::editor::Editor;
use crate::tui::state::history::History;

/// A change is on the disk at most this long after it was made (`design/experience.md`, composer).
pub const SAVED_WITHIN: Duration = Duration::from_millis(500);

/// See the module.
#[derive(Clone, Debug, PartialEq)]
pub struct Composer {
    /// Whose text it is.
    pub of: DraftOf,
    /// The text.
    pub editor: Editor,
    /// What was written before.
    pub history: History,
    /// Whether the draft from the disk is in the text.
    pub kept: Kept,
    /// When the text has to go to the disk; none if it is there as it is.
    pub save_at: Option<Duration>,
    /// What is on its way out, by the composer that it was sent from.
    pub sending: BTreeMap<DraftOf, Draft>,
    /// What was typed into other composers before their drafts came from the disk.
    pub strays: BTreeMap<DraftOf, Draft>,
    /// The session whose interrupted turn is being closed so that the text can be sent.
    pub send_after_close: Option<SessionId>,
    /// The message that is being taken back.
    pub taking_back: Option<TakingBack>,
    /// What has to go out of drafts on the disk again: texts of messages that were not taken back,
    /// while another session was on screen.
    pub refused: BTreeMap<DraftOf, Draft>,
}

/// A message that waited and is being taken back: its text stands before everything else already, and
/// goes again if the message was on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakingBack {
    /// Its session.
    pub session: SessionId,
    /// The message.
    pub event: EventId,
    /// Its text, as it was put into the composer.
    pub text: Draft,
}

/// Whether the draft from the disk is in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// It was asked for; what is typed meanwhile comes behind it.
    Asked,
    /// It was asked for, and the person has sent: if there was no draft, the text goes at once.
    AskedToSend,
    /// It is.
    Loaded,
}

impl Default for Composer {
    fn default() -> Self {
        Self {
            of: DraftOf::NewSession,
            editor: Editor::default(),
            history: History::default(),
            kept: Kept::Asked,
            save_at: None,
            sending: BTreeMap::new(),
            strays: BTreeMap::new(),
            send_after_close: None,
            taking_back: None,
            refused: BTreeMap::new(),
        }
    }
}

impl Composer {
    /// Whether its text is on its way out.
    #[must_use]
    pub fn is_sending(&self) -> bool {
        self.sending.contains_key(&self.of)
    }

    /// Whether a message is being taken back into its text.
    #[must_use]
    pub fn is_taking_back(&self) -> bool {
        let of = |taking: &TakingBack| self.of == DraftOf::Session(taking.session.clone());
        self.taking_back.as_ref().is_some_and(of)
    }

    /// What belongs on the disk: the draft, also while a text of the history stands in its place.
    #[must_use]
    pub fn draft(&self) -> Draft {
        self.history.draft().cloned().unwrap_or_else(|| self.editor.draft())
    }

    pub(super) fn deadline(&self) -> Option<Duration> {
        self.save_at.filter(|_| self.kept == Kept::Loaded)
    }
}
