//! The process-wide stream of what turns tell: durable events to everybody, deltas to those who
//! watch the turn. A slow or dead subscriber harms nobody (`design/turn-runtime.md` section 13).

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::base::id::TurnId;
use crate::domain::turn::event::TurnFact;
use crate::domain::turn::live::{Delta, LiveEvent, News, OpenCall};

/// How many events wait for one subscriber before it is told to fetch again. Deltas are joined
/// while they wait, so this is some thousand durable events.
const QUEUE_EVENTS_MAX: usize = 4_096;
/// How much streamed text waits for one subscriber before deltas and tails are dropped.
const QUEUE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The hub. Cheap to clone; all clones are one.
#[derive(Clone, Default)]
pub struct Hub(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    next_subscriber: u64,
    subscribers: BTreeMap<u64, Subscriber>,
    /// The answers of the calls that are open.
    open: HashMap<TurnId, OpenCall>,
    /// The turns that are being advanced, and by how many advances.
    running: HashMap<TurnId, usize>,
}

struct Subscriber {
    interest: Interest,
    watched: HashSet<TurnId>,
    queue: VecDeque<LiveEvent>,
    queued_bytes: usize,
    lagged: bool,
    ready: Arc<Notify>,
}

/// Which durable events a subscriber gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Those of every turn.
    Everything,
    /// Those of the turns that it watches.
    Watched,
}

/// What a subscriber receives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// Something that a turn told.
    Event(LiveEvent),
    /// Events were dropped for this subscriber: what it follows has to be fetched again.
    Lagged,
}

/// A subscription; it ends when dropped.
pub struct Subscription {
    id: u64,
    hub: Hub,
    ready: Arc<Notify>,
}

/// How a turn stood on the hub at the moment from which it is watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Joined {
    /// The open call's answer so far.
    pub open_call: Option<OpenCall>,
    /// Whether the turn is being advanced.
    pub running: bool,
}

impl Hub {
    /// A hub without subscribers.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Subscribes. Nothing from before is repeated.
    #[must_use]
    pub fn subscribe(&self, interest: Interest) -> Subscription {
        let ready = Arc::new(Notify::new());
        let mut inner = self.lock();
        let id = inner.next_subscriber;
        inner.next_subscriber += 1;
        let subscriber = Subscriber {
            interest,
            watched: HashSet::new(),
            queue: VecDeque::new(),
            queued_bytes: 0,
            lagged: false,
            ready: Arc::clone(&ready),
        };
        inner.subscribers.insert(id, subscriber);
        Subscription { id, hub: self.clone(), ready }
    }

    /// Tells all who want to hear it.
    pub fn publish(&self, event: &LiveEvent) {
        let mut inner = self.lock();
        inner.keep_up(event);
        for subscriber in inner.subscribers.values_mut() {
            subscriber.offer(event);
        }
    }

    /// Whether the turn is being advanced.
    #[must_use]
    pub fn is_running(&self, turn: &TurnId) -> bool {
        self.lock().running.contains_key(turn)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Keeps what a late subscriber needs to know.
    fn keep_up(&mut self, event: &LiveEvent) {
        match &event.news {
            News::Started => *self.running.entry(event.turn.clone()).or_default() += 1,
            News::Rested => {
                let left = self.running.get(&event.turn).map_or(0, |count| count - 1);
                if left == 0 {
                    self.running.remove(&event.turn);
                    self.open.remove(&event.turn);
                } else {
                    self.running.insert(event.turn.clone(), left);
                }
            }
            News::Delta(delta) => {
                let fresh = || OpenCall::new(delta.model_call_index);
                self.open.entry(event.turn.clone()).or_insert_with(fresh).fold(delta);
            }
            News::Recorded { event: recorded, .. } => match &recorded.fact {
                TurnFact::ModelCallRequested(request) => {
                    let open = OpenCall::new(request.model_call_index);
                    self.open.insert(event.turn.clone(), open);
                }
                TurnFact::ModelCallCompleted(_) | TurnFact::ModelCallFailed(_) => {
                    self.open.remove(&event.turn);
                }
                _ => {}
            },
            News::ModelWaiting { .. } | News::ToolTail { .. } => {}
        }
    }
}

impl Subscriber {
    fn offer(&mut self, event: &LiveEvent) {
        let watched = self.watched.contains(&event.turn);
        let wanted = match &event.news {
            News::Delta(_) | News::ToolTail { .. } | News::ModelWaiting { .. } => watched,
            News::Started | News::Recorded { .. } | News::Rested => {
                watched || self.interest == Interest::Everything
            }
        };
        if !wanted || self.lagged {
            return;
        }
        match &event.news {
            News::Delta(delta) => self.offer_delta(event, delta),
            News::ToolTail { tail, .. } => {
                self.supersede_tail(event);
                if self.has_room_for(tail) {
                    self.push(event, tail.len());
                }
            }
            _ => self.push(event, 0),
        }
        self.ready.notify_one();
    }

    /// Joins the delta to the last one that waits; drops it if too much text waits already, which
    /// the receiver sees by the gap.
    fn offer_delta(&mut self, event: &LiveEvent, delta: &Delta) {
        if !self.has_room_for(&delta.text) {
            return;
        }
        if let Some(LiveEvent { turn, news: News::Delta(last), .. }) = self.queue.back_mut()
            && *turn == event.turn
            && last.join(delta)
        {
            self.queued_bytes += delta.text.len();
            return;
        }
        self.push(event, delta.text.len());
    }

    /// A newer tail of a tool's output replaces one that still waits.
    fn supersede_tail(&mut self, event: &LiveEvent) {
        let News::ToolTail { call, .. } = &event.news else { return };
        if let Some(LiveEvent { news: News::ToolTail { call: last, tail }, .. }) = self.queue.back()
            && last == call
        {
            self.queued_bytes -= tail.len();
            self.queue.pop_back();
        }
    }

    fn has_room_for(&self, text: &str) -> bool {
        self.queued_bytes + text.len() <= QUEUE_BYTES_MAX
    }

    fn push(&mut self, event: &LiveEvent, bytes: usize) {
        if self.queue.len() >= QUEUE_EVENTS_MAX {
            self.queue.clear();
            self.queued_bytes = 0;
            self.lagged = true;
            return;
        }
        self.queued_bytes += bytes;
        self.queue.push_back(event.clone());
    }

    fn take(&mut self) -> Option<Received> {
        if std::mem::take(&mut self.lagged) {
            return Some(Received::Lagged);
        }
        let event = self.queue.pop_front()?;
        self.queued_bytes -= match &event.news {
            News::Delta(delta) => delta.text.len(),
            News::ToolTail { tail, .. } => tail.len(),
            _ => 0,
        };
        Some(Received::Event(event))
    }
}

impl Subscription {
    /// From now on also receives the deltas of `turn`; in the same step says what has streamed so
    /// far, so that nothing is missed or repeated.
    #[must_use]
    pub fn watch(&self, turn: &TurnId) -> Joined {
        let mut inner = self.hub.lock();
        if let Some(subscriber) = inner.subscribers.get_mut(&self.id) {
            subscriber.watched.insert(turn.clone());
        }
        Joined {
            open_call: inner.open.get(turn).cloned(),
            running: inner.running.contains_key(turn),
        }
    }

    /// No longer receives the deltas of `turn`.
    pub fn unwatch(&self, turn: &TurnId) {
        if let Some(subscriber) = self.hub.lock().subscribers.get_mut(&self.id) {
            subscriber.watched.remove(turn);
        }
    }

    /// The next event, when there is one. Dropping the future loses nothing.
    pub async fn next(&self) -> Received {
        loop {
            let ready = self.ready.notified();
            if let Some(received) = self.try_next() {
                return received;
            }
            ready.await;
        }
    }

    /// The next event, if one waits.
    #[must_use]
    pub fn try_next(&self) -> Option<Received> {
        self.hub.lock().subscribers.get_mut(&self.id).and_then(Subscriber::take)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.hub.lock().subscribers.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::turn::live::{DeltaKind, Folded};

    fn turn() -> TurnId {
        TurnId::from("t")
    }

    fn told(news: News) -> LiveEvent {
        LiveEvent { session: None, turn: turn(), news }
    }

    fn delta(at: u64, text: &str) -> LiveEvent {
        told(News::Delta(Delta {
            model_call_index: 0,
            kind: DeltaKind::Text,
            block: 0,
            at,
            text: text.to_owned(),
        }))
    }

    fn received(subscription: &Subscription) -> Vec<Received> {
        std::iter::from_fn(|| subscription.try_next()).collect()
    }

    #[test]
    fn deltas_reach_only_those_who_watch_and_join_while_they_wait() {
        let hub = Hub::new();
        let all = hub.subscribe(Interest::Everything);
        let watcher = hub.subscribe(Interest::Watched);
        drop(watcher.watch(&turn()));
        for event in [told(News::Started), delta(0, "He"), delta(2, "llo"), told(News::Rested)] {
            hub.publish(&event);
        }
        let ends = [told(News::Started), told(News::Rested)].map(Received::Event);
        assert_eq!(received(&all), ends);
        let [start, rest] = ends;
        assert_eq!(received(&watcher), [start, Received::Event(delta(0, "Hello")), rest]);
    }

    #[test]
    fn joining_in_mid_answer_loses_and_repeats_nothing() {
        let hub = Hub::new();
        hub.publish(&told(News::Started));
        hub.publish(&delta(0, "Hel"));
        let late = hub.subscribe(Interest::Watched);
        let joined = late.watch(&turn());
        assert!(joined.running);
        let mut call = joined.open_call.expect("a call is open");
        hub.publish(&delta(3, "lo"));
        for event in received(&late) {
            let Received::Event(LiveEvent { news: News::Delta(delta), .. }) = event else {
                panic!("only a delta was told");
            };
            call.fold(&delta);
        }
        assert_eq!(call.blocks[0].text, "Hello");
    }

    #[test]
    fn a_subscriber_that_does_not_read_is_told_to_fetch_again() {
        let hub = Hub::new();
        let slow = hub.subscribe(Interest::Everything);
        for _ in 0..=QUEUE_EVENTS_MAX {
            hub.publish(&told(News::Started));
        }
        assert_eq!(received(&slow), [Received::Lagged]);
        hub.publish(&told(News::Rested));
        assert_eq!(received(&slow), [Received::Event(told(News::Rested))]);
    }

    #[test]
    fn text_beyond_the_limit_is_dropped_and_leaves_a_gap() {
        let hub = Hub::new();
        let slow = hub.subscribe(Interest::Watched);
        let mut call = slow.watch(&turn()).open_call.unwrap_or_else(|| OpenCall::new(0));
        let chunk = "x".repeat(1024 * 1024);
        for number in 0..6 {
            hub.publish(&delta(number * 1024 * 1024, &chunk));
        }
        hub.publish(&told(News::ToolTail { call: "c".into(), tail: "half".to_owned() }));
        let waiting = received(&slow);
        let [Received::Event(LiveEvent { news: News::Delta(joined), .. })] = waiting.as_slice()
        else {
            panic!("one joined delta waits: {}", waiting.len());
        };
        assert_eq!(joined.text.len(), QUEUE_BYTES_MAX);
        assert_eq!(call.fold(joined), Folded::Grown);
        hub.publish(&delta(6 * 1024 * 1024, "y"));
        let [Received::Event(LiveEvent { news: News::Delta(next), .. })] = &received(&slow)[..]
        else {
            panic!("there is room again");
        };
        assert_eq!(call.fold(next), Folded::Gap);
        assert_eq!(slow.watch(&turn()).open_call.map(|call| call.len), Some(6 * 1024 * 1024 + 1));
    }

    #[test]
    fn a_turn_runs_until_its_last_advance_rests() {
        let hub = Hub::new();
        for news in [News::Started, News::Started, News::Rested] {
            hub.publish(&told(news));
        }
        assert!(hub.is_running(&turn()));
        hub.publish(&told(News::Rested));
        assert!(!hub.is_running(&turn()));
    }

    #[tokio::test]
    async fn waiting_ends_with_the_next_event() {
        let hub = Hub::new();
        let subscription = hub.subscribe(Interest::Everything);
        let (received, ()) =
            tokio::join!(subscription.next(), async { hub.publish(&told(News::Started)) });
        assert_eq!(received, Received::Event(told(News::Started)));
    }
}
