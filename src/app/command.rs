//! What a person can ask the program to do, as plain values.

use std::sync::Arc;

use crate::base::id::{EventId, SessionId, ToolCallId, TurnId};
use crate::domain::agent::RequestedAgent;
use crate::domain::message::UserMessage;
use crate::domain::question::Answer;
use crate::domain::turn::event::{Decision, ReasoningEffort};

/// Something to do. What comes of it arrives as a [`Notice`](super::notice::Notice).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Show a session: its state, its turns (the latest first), and from then on its live stream.
    Open(SessionId),
    /// Stop following the session that was opened.
    Close,
    /// Send a message: into the session, where it waits while it cannot be delivered, or into a new
    /// one that it creates.
    Send(Send),
    /// Something about the messages that wait to be delivered.
    Unsent(Unsent),
    /// Decide on a call that waits for permission.
    Decide(Decide),
    /// Answer, or dismiss, a form of questions.
    Answer {
        /// The turn.
        turn: TurnId,
        /// The call.
        call: ToolCallId,
        /// The answer.
        answer: Answer,
    },
    /// Stop a turn, whether it runs or rests.
    Stop(TurnId),
    /// Go on with the latest turn of a session, which a crash interrupted.
    Resume(SessionId),
    /// Close the latest turn of a session, which a crash interrupted, without going on.
    CloseInterrupted(SessionId),
    /// Name a session.
    Rename {
        /// The session.
        session: SessionId,
        /// Its new name.
        title: String,
    },
    /// Make a new session of the turns of one up to a place.
    Fork {
        /// The session.
        session: SessionId,
        /// The last turn that is taken over; without it, none is.
        at: Option<TurnId>,
        /// What stands in the composer of the fork.
        draft: Draft,
    },
    /// Sum up what was said in a session; its next turn begins with that.
    Compact(SessionId),
    /// Stop that.
    StopCompaction(SessionId),
    /// Look at the log of a turn.
    Inspect(Inspect),
    /// Delete sessions; they can be restored for some days.
    Delete(Vec<SessionId>),
    /// Put sessions away, or get them back.
    Archive {
        /// The sessions.
        sessions: Vec<SessionId>,
        /// Whether they are put away.
        archived: bool,
    },
    /// Take deletions back.
    Restore(Vec<SessionId>),
    /// Destroy sessions at once and for good, with the turns that nothing else reaches.
    Purge(Vec<SessionId>),
    /// Keep what is in a composer.
    SaveDraft {
        /// Whose it is.
        of: DraftOf,
        /// What is in it; empty removes it.
        draft: Draft,
    },
    /// Keep what was typed before its draft was given back: behind what is kept.
    AppendDraft {
        /// Whose it is.
        of: DraftOf,
        /// What was typed.
        typed: Draft,
    },
    /// Give back what was in a composer. Always answered, by an empty draft if there is none: only
    /// then is what is typed there saved, and a message sent from there.
    LoadDraft(DraftOf),
    /// Keep a text in the history of what was typed.
    Remember(String),
    /// Keep how the list is sorted and what is shown.
    SaveListSettings(ListSettings),
    /// What is done about writes that the disk does not take.
    Stalled(StalledWish),
}

/// What is done about writes that the disk does not take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StalledWish {
    /// Try them again now.
    Retry,
    /// Give them up: whatever waits for them breaks off.
    GiveUp,
}

/// A message to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Send {
    /// The composer that it comes from; its draft goes once the message is durable.
    pub from: DraftOf,
    /// The message.
    pub message: Arc<UserMessage>,
    /// Who is to answer and how.
    pub settings: SendSettings,
}

/// Something to look at in the log of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspect {
    /// The turn.
    pub turn: TurnId,
    /// What of it.
    pub what: InspectWhat,
}

/// What is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InspectWhat {
    /// All of its events, a line each.
    Events,
    /// One text, whole.
    Text(TextOf),
}

/// A text in the log of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextOf {
    /// The event with this offset, from 1.
    Event(u64),
    /// The exact request of this model call.
    Request(u64),
}

/// What is done about messages that wait to be delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unsent {
    /// Let those of a session go that are held.
    Release(SessionId),
    /// Give one another text; it keeps its place.
    Edit {
        /// The session.
        session: SessionId,
        /// The message.
        event: EventId,
        /// What it says from now on.
        text: String,
    },
    /// Take one back into the composer of its session.
    TakeBack {
        /// The session.
        session: SessionId,
        /// The message.
        event: EventId,
        /// The composer with the message in it: that is kept before the message goes.
        draft: Draft,
    },
}

/// Who is to answer, and how.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct SendSettings {
    /// The agent; without it, the one of the latest turn, else the default.
    pub agent: Option<RequestedAgent>,
    /// How hard the model is to think.
    pub reasoning_effort: Option<ReasoningEffort>,
}

/// A person's decision on a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decide {
    /// The turn.
    pub turn: TurnId,
    /// The call.
    pub call: ToolCallId,
    /// Yes or no.
    pub decision: Decision,
    /// The person's words to the model, with a no.
    pub reason: Option<String>,
}

/// Whose composer a draft belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DraftOf {
    /// The empty page, from which a session is made with its first message.
    NewSession,
    /// A session.
    Session(SessionId),
    /// A half-typed answer or reason in a prompt.
    Prompt(ToolCallId),
    /// A half-typed new text for a message that waits; one at a time is given one.
    Rewrite,
}

/// What is in a composer.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Draft {
    /// The text, with one private-use character for each pasted block.
    pub text: String,
    /// Where the caret stands, in bytes of the text.
    #[serde(default)]
    pub caret: usize,
    /// The pasted blocks, in the order of their characters in the text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pastes: Vec<String>,
}

impl Draft {
    /// This draft with another one behind it, on a line of its own.
    #[must_use]
    pub fn followed_by(mut self, other: &Self) -> Self {
        if !self.text.is_empty() && !other.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(&other.text);
        self.pastes.extend_from_slice(&other.pastes);
        self.caret = self.text.len();
        self
    }
}

/// How the session list is sorted and what it shows; kept for the next start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ListSettings {
    /// The order.
    #[serde(default)]
    pub sort: SortBy,
    /// Whether the list is hidden beside the timeline.
    #[serde(default)]
    pub hidden: bool,
}

/// The order of the session list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SortBy {
    /// Newest activity first.
    #[default]
    Activity,
    /// Newest first.
    Creation,
    /// By title.
    Title,
}
