//! The items of a conversation: what is drawn, focused, folded and copied as one piece. They are not
//! kept anywhere; each is made from its turn when somebody looks at it.

pub(super) mod group;

use std::fmt::Write as _;
use std::sync::Arc;

use crate::base::clock::Timestamp;
use crate::base::id::{ToolCallId, TurnId};
use crate::domain::json::Json;
use crate::domain::message::UserMessage;
use crate::domain::turn::state::{Terminal, ToolCall};
use crate::domain::usage::TurnUsage;
use crate::store::lock::Holder;
use crate::tui::state::activity::{Activity, Run};
use crate::tui::state::turns::{ModelWait, Slot, Tail, Turns};

/// Which item: stable while its text grows, settles, and is loaded again.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ItemId {
    /// The turn.
    pub turn: TurnId,
    /// The part of it.
    pub part: Part,
}

/// A part of a turn.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Part {
    /// The turn as a whole, while it is not loaded or if it cannot be.
    Whole,
    /// The message that it began with.
    Input,
    /// A message that was added, by its number from 1.
    Added(u64),
    /// A text or a piece of reasoning of an answer, streaming or settled.
    Block {
        /// The model call.
        call: u64,
        /// Its number among the texts and pieces of reasoning of that call, from 0.
        block: usize,
    },
    /// A tool call.
    Call(ToolCallId),
    /// The failure of a model call.
    Failure(u64),
    /// How the turn ended, or how it stands.
    End,
    /// A place beside the turn where what was said before was summed up, by its number in the
    /// session.
    Divider(usize),
}

/// An item, as it is now.
#[derive(Clone, Debug, PartialEq)]
pub struct Item<'a> {
    /// Which.
    pub id: ItemId,
    /// Another number means that the item may look different; rows may be kept by id and revision.
    pub revision: u64,
    /// What is in it.
    pub body: Body<'a>,
}

/// What is in an item.
#[derive(Clone, Debug, PartialEq)]
pub enum Body<'a> {
    /// The turn is being loaded.
    Loading,
    /// The turn cannot be read, and why.
    Damaged(&'a str),
    /// What a person said.
    Message {
        /// The message.
        message: &'a Arc<UserMessage>,
        /// When.
        at: Timestamp,
    },
    /// Text of an answer.
    Text {
        /// The text so far.
        text: &'a str,
        /// Whether more may come.
        growth: Growth,
    },
    /// Reasoning.
    Reasoning {
        /// The text so far; empty if the provider hides it.
        text: &'a str,
        /// Whether more may come.
        growth: Growth,
    },
    /// A tool call.
    Call(CallBody<'a>),
    /// A model call failed.
    Failure {
        /// Why.
        error: &'a str,
        /// What had come of its answer.
        came: Came,
    },
    /// How the turn ended, or how it stands.
    End(EndBody<'a>),
    /// What was said before was summed up, like this.
    Divider(&'a str),
}

/// Whether more of a text may come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// It is whole.
    Settled,
    /// It streams.
    Growing,
    /// A crash ended it; it is in no log yet.
    Interrupted,
    /// It streams in another process; this much of it has been kept there.
    Elsewhere,
}

/// What came of an answer before its call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Came {
    /// Nothing.
    Nothing,
    /// A part, which stands above.
    APart,
}

/// A tool call.
#[derive(Clone, Debug, PartialEq)]
pub struct CallBody<'a> {
    /// The name that the model used.
    pub name: &'a str,
    /// The arguments that it gave.
    pub arguments: &'a Json,
    /// What became of it; none while the answer that holds it still streams.
    pub call: Option<&'a ToolCall>,
    /// The end of its output while it runs.
    pub tail: Option<&'a Tail>,
}

/// How a turn ended, or how it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct EndBody<'a> {
    /// Which of the two.
    pub standing: Standing<'a>,
    /// When it began.
    pub began_at: Timestamp,
    /// What it has used.
    pub usage: &'a TurnUsage,
    /// Why its last model call failed, if it did; an item above says so.
    pub failure: Option<&'a str>,
}

/// How a turn stands.
#[derive(Clone, Debug, PartialEq)]
pub enum Standing<'a> {
    /// It runs.
    Running {
        /// Since when.
        run: &'a Run,
        /// Why the model is not asked right now, if so.
        wait: Option<&'a ModelWait>,
    },
    /// It waits for a person, or for somebody else outside.
    Suspended,
    /// A crash or trouble of the program's own interrupted it. It can be resumed or closed.
    Interrupted,
    /// It is open in another process.
    Elsewhere(Holder),
    /// It ended.
    Ended(&'a Terminal),
}

/// The items of a conversation.
#[derive(Clone, Copy, Debug)]
pub struct Items<'a> {
    turns: &'a Turns,
    activity: &'a Activity,
}

impl<'a> Items<'a> {
    /// The items of these turns, some of which run.
    #[must_use]
    pub fn new(turns: &'a Turns, activity: &'a Activity) -> Self {
        Self { turns, activity }
    }

    /// All items of a turn, in order.
    #[must_use]
    pub fn of(&self, turn: &TurnId) -> Vec<Item<'a>> {
        let Some(slot) = self.turns.slot(turn) else { return Vec::new() };
        (0..group::count(slot)).flat_map(|number| self.group(slot, number)).collect()
    }

    /// The first item.
    #[must_use]
    pub fn first(&self) -> Option<Item<'a>> {
        self.turns.slots().first().and_then(|slot| self.first_of(slot))
    }

    /// The last item.
    #[must_use]
    pub fn last(&self) -> Option<Item<'a>> {
        self.turns.latest().and_then(|slot| self.last_of(slot))
    }

    /// The first item of a turn.
    #[must_use]
    pub fn first_of(&self, slot: &'a Slot) -> Option<Item<'a>> {
        (0..group::count(slot)).find_map(|number| self.group(slot, number).into_iter().next())
    }

    /// The last item of a turn.
    #[must_use]
    pub fn last_of(&self, slot: &'a Slot) -> Option<Item<'a>> {
        (0..group::count(slot)).rev().find_map(|number| self.group(slot, number).pop())
    }

    /// An item by its id; none if there is no such item (any more).
    #[must_use]
    pub fn find(&self, id: &ItemId) -> Option<Item<'a>> {
        let slot = self.turns.slot(&id.turn)?;
        let group = self.group(slot, group::of(slot, &id.part)?);
        group.into_iter().find(|item| item.id == *id)
    }

    /// The item itself, or what stands where it stood: a turn that has been loaded in place of the
    /// turn that was not.
    #[must_use]
    pub fn resolve(&self, id: &ItemId) -> Option<Item<'a>> {
        let found = self.find(id);
        found.or_else(|| self.turns.slot(&id.turn).and_then(|slot| self.nearest(slot, &id.part)))
    }

    /// The item after one.
    #[must_use]
    pub fn after(&self, id: &ItemId) -> Option<Item<'a>> {
        let slot = self.turns.slot(&id.turn)?;
        let number = group::of(slot, &id.part).unwrap_or(0);
        let mut rest = self.group(slot, number).into_iter();
        if let Some(next) = rest.find(|item| item.id == *id).and_then(|_| rest.next()) {
            return Some(next);
        }
        let later = number + 1..group::count(slot);
        let next = later.into_iter().find_map(|number| self.group(slot, number).into_iter().next());
        next.or_else(|| self.turns.after(slot).find_map(|slot| self.first_of(slot)))
    }

    /// The item before one.
    #[must_use]
    pub fn before(&self, id: &ItemId) -> Option<Item<'a>> {
        let slot = self.turns.slot(&id.turn)?;
        let number = group::of(slot, &id.part).unwrap_or(0);
        let group = self.group(slot, number).into_iter();
        if let Some(before) = group.take_while(|item| item.id != *id).last() {
            return Some(before);
        }
        let before = (0..number).rev().find_map(|number| self.group(slot, number).pop());
        before.or_else(|| self.turns.before(slot).find_map(|slot| self.last_of(slot)))
    }

    fn nearest(&self, slot: &'a Slot, part: &Part) -> Option<Item<'a>> {
        let number = group::of(slot, part).unwrap_or(0);
        let here = self.group(slot, number).into_iter().next();
        here.or_else(|| self.first_of(slot))
    }

    fn group(&self, slot: &'a Slot, number: usize) -> Vec<Item<'a>> {
        group::items(slot, self.activity, number)
    }
}

impl Body<'_> {
    /// Whether the item can be folded to one line.
    #[must_use]
    pub fn folds(&self) -> bool {
        match self {
            Self::Reasoning { .. } | Self::Call(_) | Self::Divider(_) => true,
            Self::Loading
            | Self::Damaged(_)
            | Self::Message { .. }
            | Self::Text { .. }
            | Self::Failure { .. }
            | Self::End(_) => false,
        }
    }

    /// The text behind the item, as it came, for copying; none where there is none.
    #[must_use]
    pub fn source(&self) -> Option<String> {
        let source = match self {
            Self::Loading | Self::End(_) => return None,
            Self::Damaged(why) | Self::Failure { error: why, .. } => (*why).to_owned(),
            Self::Message { message, .. } => message.plain_text(),
            Self::Text { text, .. } | Self::Reasoning { text, .. } | Self::Divider(text) => {
                (*text).to_owned()
            }
            Self::Call(call) => call.source(),
        };
        Some(source).filter(|source| !source.is_empty())
    }
}

impl CallBody<'_> {
    fn source(&self) -> String {
        let mut source = format!("{} {}", self.name, self.arguments.to_model_text());
        if let Some(result) = self.call.and_then(|call| call.result.as_ref()) {
            // Writing to a text cannot fail.
            let _written = write!(source, "\n\n{}", result.data.output.to_model_text());
        }
        source
    }
}
