//! The turns of the session on screen: loaded, folded from the live stream, and what streams beyond
//! their logs.

mod divider;
mod slot;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::app::notice::LoadedTurn;
use crate::base::clock::Timestamp;
use crate::base::id::{ToolCallId, TurnId};
use crate::domain::session::state::SessionState;
use crate::domain::turn::event::TurnEvent;
use crate::domain::turn::live::{Delta, OpenCall};
use crate::domain::turn::state::TurnState;
use crate::tui::state::item::Growth;

pub use divider::{Beside, Divider};
pub use slot::Slot;

/// See the module.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Turns {
    slots: Vec<Slot>,
    places: HashMap<TurnId, usize>,
    item_count: usize,
}

/// What is known of a turn.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// Nothing yet.
    Asked,
    /// Its log cannot be read, and why.
    Damaged(String),
    /// What its log amounts to.
    Loaded(Loaded),
}

/// A turn as its log has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// How many events the log holds.
    pub offset: u64,
    /// What they amount to.
    pub state: Arc<TurnState>,
}

/// What is known of a turn beyond its log, from the live stream.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Live {
    /// The answer of the open model call.
    pub streaming: Option<Streaming>,
    /// The ends of the output of tools that run.
    pub tails: BTreeMap<ToolCallId, Tail>,
    /// Why the model is not asked right now, if so.
    pub wait: Option<ModelWait>,
    /// How many times that has changed.
    pub waits: u64,
}

/// The answer of a model call that has no settlement in the log.
#[derive(Clone, Debug, PartialEq)]
pub struct Streaming {
    /// What it says so far.
    pub call: OpenCall,
    /// Whether more comes, or a crash ended it.
    pub growth: Growth,
}

/// The end of a tool's output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tail {
    /// The last lines.
    pub text: String,
    /// How many times it has changed.
    pub revision: u64,
}

/// Why the model is not asked right now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelWait {
    /// Until when.
    pub until: Timestamp,
    /// Why, in words.
    pub why: String,
}

/// What became of something that was to be folded in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Folded {
    /// It is in.
    Taken,
    /// It was in already, or is kept until the turn has been loaded.
    Kept,
    /// Something before it is missing; the session has to be asked for again. Said once for each
    /// time that the turn is loaded.
    Gap,
}

impl Turns {
    /// Makes room for the turns that a session is said to have, and for the dividers between them. A
    /// turn that began since comes last.
    pub fn announce(&mut self, session: &SessionState) {
        let turns = &session.turns;
        let last = turns.last().map_or(0, |turn| turn.session_seq);
        let seqs: HashMap<&TurnId, u64> =
            turns.iter().map(|turn| (&turn.id, turn.session_seq)).collect();
        for (slot, seq) in self.slots.iter_mut().zip(last + 1..) {
            slot.seq = seqs.get(&slot.id).copied().unwrap_or(seq);
        }
        let unknown = turns.iter().filter(|turn| !self.places.contains_key(&turn.id));
        let made: Vec<Slot> =
            unknown.map(|turn| Slot::new(turn.id.clone(), turn.session_seq)).collect();
        self.item_count += made.iter().map(Slot::item_count).sum::<usize>();
        self.slots.extend(made);
        self.slots.sort_by_key(|slot| slot.seq);
        self.note_places(0);
        self.divide(session);
    }

    fn divide(&mut self, session: &SessionState) {
        let mut beside: HashMap<usize, Beside> = HashMap::new();
        for (number, compaction) in session.compactions.iter().enumerate() {
            let next = session.turns.get(compaction.after_turns);
            let next = next.and_then(|turn| self.places.get(&turn.id).copied());
            // A turn that is not in the session's log yet comes after all that are.
            let at = next.unwrap_or(session.turns.len());
            let divider = Divider::of(number, compaction);
            match self.slots.len().checked_sub(1) {
                Some(last) if at > last => beside.entry(last).or_default().after.push(divider),
                Some(_) => beside.entry(at).or_default().before.push(divider),
                None => {}
            }
        }
        for (at, slot) in self.slots.iter_mut().enumerate() {
            let count = slot.item_count();
            slot.stand_beside(beside.remove(&at).unwrap_or_default());
            self.item_count = self.item_count - count + slot.item_count();
        }
    }

    /// Takes a loaded turn in, unless more of it is known already.
    pub fn load(&mut self, turn: LoadedTurn) -> Folded {
        let at = self.make_room(&turn.id, turn.session_seq);
        self.change(at, |slot| slot.load(turn.content))
    }

    /// Takes an event of a turn of this session in, which may be the first of a new turn.
    pub fn record(&mut self, turn: &TurnId, offset: u64, event: &Arc<TurnEvent>) -> Folded {
        if let Some(at) = self.places.get(turn).copied() {
            return self.change(at, |slot| slot.record(offset, event));
        }
        let last = self.slots.last().map_or(0, |slot| slot.seq);
        let at = self.make_room(turn, last + 1);
        self.change(at, |slot| match offset {
            1 => slot.record(offset, event),
            _ => slot.fall_behind(offset, event),
        })
    }

    /// Takes a piece of an answer in.
    pub fn delta(&mut self, turn: &TurnId, delta: &Delta) -> Folded {
        let Some(at) = self.places.get(turn).copied() else { return Folded::Kept };
        self.change(at, |slot| slot.delta(delta))
    }

    /// Takes over what the open call of a turn says so far.
    pub fn join(&mut self, turn: &TurnId, call: Option<OpenCall>) {
        let Some(at) = self.places.get(turn).copied() else { return };
        let _joined = self.change(at, |slot| {
            slot.join(call);
            Folded::Taken
        });
    }

    /// Ends what streamed of a turn: it rests.
    pub fn rest(&mut self, turn: &TurnId) {
        if let Some(slot) = self.places.get(turn).and_then(|at| self.slots.get_mut(*at)) {
            slot.rest();
        }
    }

    /// Shows the end of a tool's output.
    pub fn tail(&mut self, turn: &TurnId, call: &ToolCallId, text: String) {
        let Some(live) = self.live_mut(turn) else { return };
        let revision = live.tails.get(call).map_or(0, |tail| tail.revision) + 1;
        live.tails.insert(call.clone(), Tail { text, revision });
    }

    /// Shows why the model is not asked right now.
    pub fn wait(&mut self, turn: &TurnId, wait: ModelWait) {
        let Some(live) = self.live_mut(turn) else { return };
        live.waits += 1;
        live.wait = Some(wait);
    }

    fn live_mut(&mut self, turn: &TurnId) -> Option<&mut Live> {
        let at = self.places.get(turn)?;
        self.slots.get_mut(*at).map(|slot| &mut slot.live)
    }

    /// The turn with this id.
    #[must_use]
    pub fn slot(&self, turn: &TurnId) -> Option<&Slot> {
        self.places.get(turn).and_then(|at| self.slots.get(*at))
    }

    /// The turns, in order.
    #[must_use]
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// The turns that come after one, in order.
    pub fn after(&self, slot: &Slot) -> std::slice::Iter<'_, Slot> {
        let at = self.places.get(&slot.id).map_or(usize::MAX, |at| at + 1);
        self.slots.get(at..).unwrap_or_default().iter()
    }

    /// The turns that come before one, the nearest first.
    pub fn before(&self, slot: &Slot) -> std::iter::Rev<std::slice::Iter<'_, Slot>> {
        let at = self.places.get(&slot.id).copied().unwrap_or(0);
        self.slots.get(..at).unwrap_or_default().iter().rev()
    }

    /// The latest turn.
    #[must_use]
    pub fn latest(&self) -> Option<&Slot> {
        self.slots.last()
    }

    /// How many items the loaded turns have.
    #[must_use]
    pub fn item_count(&self) -> usize {
        self.item_count
    }

    fn change(&mut self, at: usize, change: impl FnOnce(&mut Slot) -> Folded) -> Folded {
        let Some(slot) = self.slots.get_mut(at) else { return Folded::Kept };
        let before = slot.item_count();
        let folded = change(slot);
        self.item_count = self.item_count - before + slot.item_count();
        folded
    }

    /// The place of a turn, which is made if there is none.
    fn make_room(&mut self, turn: &TurnId, seq: u64) -> usize {
        if let Some(at) = self.places.get(turn) {
            return *at;
        }
        let at = self.slots.partition_point(|slot| slot.seq <= seq);
        let mut slot = Slot::new(turn.clone(), seq);
        // What waited for the next turn has found it.
        if at == self.slots.len()
            && let Some(last) = self.slots.last_mut()
        {
            let before = last.beside().after.clone();
            last.stand_beside(Beside { after: Vec::new(), ..last.beside().clone() });
            slot.stand_beside(Beside { before, after: Vec::new() });
        }
        self.slots.insert(at, slot);
        self.item_count += 1;
        self.note_places(at);
        at
    }

    fn note_places(&mut self, from: usize) {
        for (place, slot) in self.slots.iter().enumerate().skip(from) {
            self.places.insert(slot.id.clone(), place);
        }
    }
}
