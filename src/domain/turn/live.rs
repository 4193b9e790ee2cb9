//! The live stream of turns: what the hub carries, and the fold of the call that is open. Deltas
//! are never in a log; they make up an overlay that the settled call replaces.

use std::sync::Arc;

use crate::base::clock::Timestamp;
use crate::base::id::{SessionId, ToolCallId, TurnId};
use crate::domain::turn::event::TurnEvent;

/// Something that a turn tells while it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveEvent {
    /// The turn's own session, if it has one.
    pub session: Option<SessionId>,
    /// The turn.
    pub turn: TurnId,
    /// What it tells.
    pub news: News,
}

/// What a turn tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// An advance began (`turn-processing-start`).
    Started,
    /// An event was recorded.
    Recorded {
        /// Its line in the log, from 1.
        offset: u64,
        /// The event.
        event: Arc<TurnEvent>,
    },
    /// The open call's answer grew.
    Delta(Delta),
    /// The provider client waits before it tries again (`model_waiting`).
    ModelWaiting {
        /// Until when.
        until: Timestamp,
        /// Why, in words.
        why: String,
    },
    /// The end of a running tool's output changed; it is stored nowhere.
    ToolTail {
        /// The call.
        call: ToolCallId,
        /// The last lines.
        tail: String,
    },
    /// The advance came to rest (`turn-processing-end`).
    Rested,
}

/// A piece of an answer that streams (`text_delta`, `reasoning_delta`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delta {
    /// The model call.
    pub model_call_index: u64,
    /// What grows.
    pub kind: DeltaKind,
    /// The block of the answer, from 0; a new number begins a new block.
    pub block: u32,
    /// How many bytes of this call were streamed before this piece.
    pub at: u64,
    /// The piece.
    pub text: String,
}

impl Delta {
    /// Joins a later piece to this one, if it follows without a gap in the same block.
    pub fn join(&mut self, later: &Self) -> bool {
        let follows = self.model_call_index == later.model_call_index
            && self.block == later.block
            && self.at + self.text.len() as u64 == later.at;
        if follows {
            self.text.push_str(&later.text);
        }
        follows
    }
}

/// What grows in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeltaKind {
    /// The text.
    Text,
    /// The reasoning before it.
    Reasoning,
}

/// The answer of the open call so far: the overlay over the timeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenCall {
    /// The model call.
    pub model_call_index: u64,
    /// Its blocks, in the order in which they came.
    pub blocks: Vec<OpenBlock>,
    /// How many bytes were streamed.
    pub len: u64,
}

/// A block of an answer that streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenBlock {
    /// Its number in the call.
    pub block: u32,
    /// What it is.
    pub kind: DeltaKind,
    /// Its text so far.
    pub text: String,
}

/// What became of a delta that was to be folded in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Folded {
    /// It was new.
    Grown,
    /// It was there already.
    Known,
    /// Something before it is missing: fetch the open call again.
    Gap,
}

impl OpenCall {
    /// A call without text so far.
    #[must_use]
    pub fn new(model_call_index: u64) -> Self {
        Self { model_call_index, blocks: Vec::new(), len: 0 }
    }

    /// Takes a delta of this call in.
    pub fn fold(&mut self, delta: &Delta) -> Folded {
        if delta.model_call_index < self.model_call_index || delta.at < self.len {
            return Folded::Known;
        }
        if delta.model_call_index > self.model_call_index || delta.at > self.len {
            return Folded::Gap;
        }
        self.len += delta.text.len() as u64;
        match self.blocks.last_mut() {
            Some(last) if last.block == delta.block => last.text.push_str(&delta.text),
            Some(_) | None => self.blocks.push(OpenBlock {
                block: delta.block,
                kind: delta.kind,
                text: delta.text.clone(),
            }),
        }
        Folded::Grown
    }
}
