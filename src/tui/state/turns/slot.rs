//! One turn of the session on screen: how loading and the live stream come together in it without a
//! gap and without repeating anything.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::app::notice::TurnView;
use crate::base::id::TurnId;
use crate::domain::turn::event::{TurnEvent, TurnFact};
use crate::domain::turn::live::{self, Delta, OpenCall};
use crate::domain::turn::state::TurnState;
use crate::tui::state::activity::Activity;
use crate::tui::state::item::{Growth, group};
use crate::tui::state::turns::{Beside, Content, Folded, Live, Loaded, Streaming};

/// As many events are kept while a turn is loaded. Beyond it the oldest go, and the turn is loaded
/// once more.
const EARLY_EVENTS_MAX: usize = 4_096;

/// A turn and its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Slot {
    /// The turn.
    pub id: TurnId,
    /// Its place in the session, from 1.
    pub seq: u64,
    /// What is known of it.
    pub content: Content,
    /// What is known of it beyond its log.
    pub live: Live,
    beside: Beside,
    /// Events that came before what they follow.
    early: VecDeque<(u64, Arc<TurnEvent>)>,
    /// Whether something is missing and has been asked for.
    is_behind: bool,
    /// How many items each group has, and all of them.
    counts: Vec<usize>,
    item_count: usize,
}

impl Slot {
    pub(super) fn new(id: TurnId, seq: u64) -> Self {
        Self {
            id,
            seq,
            content: Content::Asked,
            live: Live::default(),
            beside: Beside::default(),
            early: VecDeque::new(),
            is_behind: false,
            counts: vec![1],
            item_count: 1,
        }
    }

    /// The turn, if it is loaded.
    #[must_use]
    pub fn loaded(&self) -> Option<&Loaded> {
        match &self.content {
            Content::Loaded(turn) => Some(turn),
            Content::Asked | Content::Damaged(_) => None,
        }
    }

    /// What the turn's log amounts to, if it is loaded.
    #[must_use]
    pub fn state(&self) -> Option<&TurnState> {
        self.loaded().map(|turn| turn.state.as_ref())
    }

    /// The dividers beside it.
    #[must_use]
    pub fn beside(&self) -> &Beside {
        &self.beside
    }

    pub(super) fn stand_beside(&mut self, beside: Beside) {
        if self.beside != beside {
            self.beside = beside;
            self.count_all();
        }
    }

    pub(super) fn item_count(&self) -> usize {
        self.item_count
    }

    pub(super) fn load(&mut self, content: Result<TurnView, String>) -> Folded {
        let was_behind = std::mem::take(&mut self.is_behind);
        match content {
            Err(why) => {
                self.content = Content::Damaged(why);
                self.early.clear();
            }
            Ok(view) => self.take(view, was_behind),
        }
        self.count_all();
        let early = std::mem::take(&mut self.early).into_iter();
        let gaps = early.filter(|(offset, event)| self.record(*offset, event) == Folded::Gap);
        if gaps.count() > 0 { Folded::Gap } else { Folded::Taken }
    }

    fn take(&mut self, view: TurnView, was_behind: bool) {
        let is_newer = match self.loaded() {
            Some(known) if was_behind => view.offset >= known.offset,
            Some(known) => view.offset > known.offset,
            None => true,
        };
        if !is_newer {
            return;
        }
        self.content = Content::Loaded(Loaded { offset: view.offset, state: view.state });
        let open = self.live.streaming.take();
        self.live.streaming = open.filter(|open| !self.is_settled(open.call.model_call_index));
        if self.live.streaming.is_none() {
            let growth = Growth::Interrupted;
            self.live.streaming = view.interrupted.map(|call| Streaming { call, growth });
        }
    }

    pub(super) fn record(&mut self, offset: u64, event: &Arc<TurnEvent>) -> Folded {
        match &mut self.content {
            // A new turn is known whole from its first event on.
            Content::Asked if offset == 1 => match TurnState::begin(event) {
                Ok(state) => {
                    self.content = Content::Loaded(Loaded { offset, state: Arc::new(state) });
                    self.count_all();
                    Folded::Taken
                }
                Err(_) => self.fall_behind(offset, event),
            },
            Content::Asked => {
                self.keep(offset, event);
                Folded::Kept
            }
            Content::Damaged(_) => Folded::Kept,
            Content::Loaded(turn) if offset <= turn.offset => Folded::Kept,
            Content::Loaded(turn) if offset == turn.offset + 1 && !self.is_behind => {
                if Arc::make_mut(&mut turn.state).apply(event).is_err() {
                    return self.fall_behind(offset, event);
                }
                turn.offset = offset;
                self.after_event(event);
                Folded::Taken
            }
            Content::Loaded(_) => self.fall_behind(offset, event),
        }
    }

    pub(super) fn delta(&mut self, delta: &Delta) -> Folded {
        if self.is_settled(delta.model_call_index) {
            return Folded::Kept;
        }
        let begins = delta.at == 0;
        let open = match &mut self.live.streaming {
            Some(open) if open.call.model_call_index >= delta.model_call_index || !begins => open,
            other if begins => other.insert(Streaming {
                call: OpenCall::new(delta.model_call_index),
                growth: Growth::Growing,
            }),
            Some(_) | None => return self.miss(),
        };
        let blocks = open.call.blocks.len();
        match open.call.fold(delta) {
            live::Folded::Grown => {
                if open.call.blocks.len() > blocks {
                    self.count();
                }
                Folded::Taken
            }
            live::Folded::Known => Folded::Kept,
            live::Folded::Gap => self.miss(),
        }
    }

    pub(super) fn join(&mut self, call: Option<OpenCall>) {
        self.is_behind = false;
        let call = call.filter(|call| !self.is_settled(call.model_call_index));
        let joined = call.map(|call| Streaming { call, growth: Growth::Growing });
        // What a crash left streams nowhere.
        let left = || self.live.streaming.take().filter(|it| it.growth == Growth::Interrupted);
        self.live.streaming = joined.or_else(left);
        self.count();
    }

    /// Ends what streamed: the turn rests.
    pub(super) fn rest(&mut self) {
        self.live.wait = None;
        self.live.tails.clear();
        if let Some(open) = &mut self.live.streaming {
            open.growth = Growth::Interrupted;
        }
    }

    /// Keeps an event that follows something that is missing.
    pub(super) fn fall_behind(&mut self, offset: u64, event: &Arc<TurnEvent>) -> Folded {
        self.keep(offset, event);
        self.miss()
    }

    fn keep(&mut self, offset: u64, event: &Arc<TurnEvent>) {
        if self.early.len() == EARLY_EVENTS_MAX {
            self.early.pop_front();
        }
        self.early.push_back((offset, Arc::clone(event)));
    }

    fn miss(&mut self) -> Folded {
        if std::mem::replace(&mut self.is_behind, true) { Folded::Kept } else { Folded::Gap }
    }

    fn is_settled(&self, model_call: u64) -> bool {
        let call = self.state().zip(usize::try_from(model_call).ok());
        call.and_then(|(state, at)| state.model_calls.get(at))
            .is_some_and(|call| call.settlement.is_some())
    }

    fn after_event(&mut self, event: &TurnEvent) {
        if let TurnFact::ModelCallRequested(requested) = &event.fact {
            let call = OpenCall::new(requested.model_call_index);
            self.live.streaming = Some(Streaming { call, growth: Growth::Growing });
        }
        if let TurnFact::ModelCallCompleted(_) | TurnFact::ModelCallFailed(_) = &event.fact {
            self.live.streaming = None;
        }
        if let TurnFact::ToolResult(result) = &event.fact {
            self.live.tails.remove(&result.tool_call_id);
        }
        self.live.wait = None;
        self.count();
    }

    fn count_all(&mut self) {
        self.counts.clear();
        self.item_count = 0;
        self.count();
    }

    /// Counts the items again from the group of the last model call on: what comes before it does
    /// not change any more.
    fn count(&mut self) {
        let kept = self.counts.len().saturating_sub(2);
        let groups = group::count(self);
        self.item_count -= self.counts.iter().skip(kept).sum::<usize>();
        self.counts.truncate(kept);
        for number in kept..groups {
            let count = group::items(self, &Activity::default(), number).len();
            self.counts.push(count);
            self.item_count += count;
        }
    }
}
