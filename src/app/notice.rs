//! What the program tells whoever looks at it, as plain values.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::app::command::{Draft, DraftOf, ListSettings, TextOf};
use crate::app::paged::Paged;
use crate::base::clock::Timestamp;
use crate::base::id::{EventId, SessionId, TurnId};
use crate::domain::agent::ModelDescriptor;
use crate::domain::session::entry::SessionIndexEntry;
use crate::domain::session::state::SessionState;
use crate::domain::turn::live::{LiveEvent, OpenCall};
use crate::domain::turn::state::TurnState;
use crate::store::coordinate::Stall;
use crate::store::lock::Holder;
use crate::store::log::SetAside;

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Notice {
    /// Sessions were read from the disk; they come in any order while the scan runs.
    Scanned {
        /// What was read since the last of these notices.
        entries: Vec<Arc<SessionIndexEntry>>,
        /// How many have been read.
        done: usize,
        /// How many there are.
        total: usize,
    },
    /// The list is complete.
    ScanEnded {
        /// How long the scan took, in milliseconds.
        took_ms: u64,
        /// Why the sessions could not be listed, if so.
        error: Option<String>,
    },
    /// A session changed, or went (`session-index-changed`).
    IndexChanged {
        /// The session.
        session: SessionId,
        /// Its entry now; none once it is deleted.
        entry: Option<Arc<SessionIndexEntry>>,
    },
    /// The session that was to be opened.
    SessionOpened {
        /// The session.
        session: SessionId,
        /// Its state, or why it cannot be read.
        state: Result<Arc<SessionState>, String>,
    },
    /// The session that is open amounts to something else now, beyond a new turn.
    SessionChanged {
        /// The session.
        session: SessionId,
        /// Its state.
        state: Arc<SessionState>,
    },
    /// Turns of the open session: all of them once after opening, the latest first; again for a
    /// turn whose live stream had a gap.
    TurnsLoaded {
        /// The session that they were loaded for.
        session: SessionId,
        /// The turns.
        turns: Vec<LoadedTurn>,
        /// How many turns of the session are still to come.
        left: usize,
    },
    /// The answer of the open call so far, for a turn that is watched from now on.
    Joined {
        /// The turn.
        turn: TurnId,
        /// The open call; none if no model call streams.
        open_call: Option<OpenCall>,
    },
    /// A turn told something: whether it runs and what was recorded, of every turn; deltas, of the
    /// turns of the open session.
    Live(LiveEvent),
    /// A message was sent: its turn exists and runs.
    Sent {
        /// The composer that it came from.
        from: DraftOf,
        /// Its session, which may be new.
        session: SessionId,
        /// Its turn.
        turn: TurnId,
    },
    /// A message was taken and waits: its session cannot take it yet, or others wait before it.
    Queued {
        /// The composer that it came from.
        from: DraftOf,
        /// Its session.
        session: SessionId,
    },
    /// What waits to be delivered in the open session, the oldest first: once after opening, and
    /// when it changes.
    UnsentChanged {
        /// The session.
        session: SessionId,
        /// What waits.
        messages: Vec<UnsentMessage>,
    },
    /// A message that waited was taken back; it is in the draft and nowhere else.
    TakenBack {
        /// Its session.
        session: SessionId,
        /// The message.
        event: EventId,
    },
    /// Something about the summing up of what was said.
    Compaction(Compaction),
    /// What was found in the log of a turn.
    Inspected(Inspected),
    /// A session was forked.
    Forked {
        /// The session.
        of: SessionId,
        /// The fork, with its draft.
        session: SessionId,
    },
    /// Sessions were deleted and can be restored.
    Deleted(Vec<SessionId>),
    /// Sessions were put away, or are back.
    Archived {
        /// The sessions.
        sessions: Vec<SessionId>,
        /// Whether they were put away.
        archived: bool,
    },
    /// Sessions were restored.
    Restored(Vec<SessionId>),
    /// What was in a composer, as it was asked for; empty if nothing was.
    Draft {
        /// Whose it is.
        of: DraftOf,
        /// What was in it.
        draft: Draft,
    },
    /// What was kept from the last run: the history of what was typed (oldest first) and how the
    /// list was sorted.
    Remembered {
        /// The history.
        history: Vec<String>,
        /// The list.
        list: ListSettings,
    },
    /// Which model answers when nothing else is said, and why.
    ModelChosen {
        /// The model.
        model: ModelDescriptor,
        /// Why it.
        why: String,
    },
    /// The last run did not end as it should; these sessions have interrupted turns.
    LastRunEndedBadly {
        /// The sessions.
        interrupted: Vec<SessionId>,
    },
    /// Which other process works in the folder, where this one only looks; none if nobody does. Told
    /// at the start and when it changes.
    HeldBy(Option<Holder>),
    /// Something about how logs are kept.
    Storage(Storage),
    /// A command was not carried out.
    Refused {
        /// What was asked for.
        what: Refused,
        /// Why not, and what to do.
        why: String,
    },
}

/// What is told of how logs are kept.
#[derive(Clone, Debug, PartialEq)]
pub enum Storage {
    /// A log ended in a torn write, which was cut off and kept.
    SetAside(SetAside),
    /// What the disk has not taken; told when that changes. Nothing, once it has taken all.
    Stalled(Vec<Stall>),
}

/// What is told of the summing up of what was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compaction {
    /// In which sessions it is under way now; told when that changes.
    UnderWay(BTreeSet<SessionId>),
    /// What came of it in a session.
    Over {
        /// The session.
        session: SessionId,
        /// What.
        came: Came,
    },
}

/// What came of summing up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Came {
    /// The next turn begins with the summary.
    Done,
    /// All that was said would have been kept as it is.
    NothingToSum,
    /// Somebody stopped it.
    Stopped,
}

/// What was found in the log of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Inspected {
    /// Its events.
    Events {
        /// The turn.
        turn: TurnId,
        /// The events in order, or why there are none.
        events: Result<Arc<[EventLine]>, String>,
    },
    /// One of them, or a request.
    Text {
        /// The turn.
        turn: TurnId,
        /// Which.
        what: TextOf,
        /// Its JSON, or why there is none.
        text: Result<Arc<Paged>, String>,
    },
}

/// An event of a turn's log, in a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventLine {
    /// Its offset, from 1.
    pub offset: u64,
    /// When it was recorded.
    pub at: Timestamp,
    /// What happened, as the log names it.
    pub kind: &'static str,
    /// The model call that it belongs to, if to one.
    pub model_call: Option<u64>,
    /// The tool that it is about, if about one.
    pub tool: Option<String>,
}

/// A message that waits to be delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnsentMessage {
    /// The message.
    pub id: EventId,
    /// What it says.
    pub text: String,
    /// Whether it goes only when the person says so.
    pub held: bool,
}

/// A turn of the open session.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadedTurn {
    /// The turn.
    pub id: TurnId,
    /// Its place in the session, from 1.
    pub session_seq: u64,
    /// What its log amounts to, or why it cannot be read.
    pub content: Result<TurnView, String>,
}

/// A turn as its log has it.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnView {
    /// How many events the log holds: the offset of the last.
    pub offset: u64,
    /// What they amount to.
    pub state: Arc<TurnState>,
    /// What had streamed of the open call when the program was killed, if the turn is interrupted.
    pub interrupted: Option<OpenCall>,
    /// Whether it is being advanced.
    pub running: bool,
}

/// What was not carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Sending from this composer; the draft is still there.
    Send(DraftOf),
    /// Taking this message back into the composer of this session.
    TakeBack {
        /// The session.
        session: SessionId,
        /// The message.
        event: EventId,
    },
    /// A decision or an answer to a call of this turn.
    Respond(TurnId),
    /// Stopping this turn.
    Stop(TurnId),
    /// Going on with, or closing, the latest turn of this session.
    Resume(SessionId),
    /// Changing or reading this session.
    Session(SessionId),
    /// Taking the deletion of this session back; it may be tried again.
    Restore(SessionId),
    /// Keeping something on disk (a draft, the history, a setting).
    Keep,
    /// An advance of this turn ended by trouble of the program's own (the disk, a missing model).
    Advance(TurnId),
}
