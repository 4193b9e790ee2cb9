//! Where the messages are: each in one place, and in the order in which they were put.

use crate::base::id::{EventId, SessionId, TurnId};
use crate::sessions::circumstances::event_ids;
use crate::sessions::waiting::Item;
use crate::testing::sim::Sim;
use crate::testing::sim::check::Found;
use crate::testing::sim::left::Fate;
use crate::testing::sim::life::Life;

/// Where a message is.
#[derive(Debug, PartialEq, Eq)]
enum Place<'a> {
    /// This turn began with it.
    Began(&'a TurnId),
    /// This turn took it in.
    TakenIn(&'a TurnId),
    Waits,
    Claimed,
}

impl Sim {
    /// Each message is in exactly one place of its session, or in none, as whoever sent it was told;
    /// who was told nothing may find it once or not at all.
    pub(super) fn check_messages(&self, found: &Found) {
        let left = self.shared.lock();
        for message in &left.messages {
            // What is deleted cannot be looked at.
            if !found.sessions.contains_key(&message.session) {
                continue;
            }
            let places = found.places_of(&message.session, &message.text);
            let is_right = match &message.fate {
                Fate::Turn(turn) => places == [Place::Began(turn)],
                Fate::Waits if message.asked_back == 0 => places.len() == 1,
                Fate::Waits | Fate::Unknown => places.len() <= 1,
                Fate::TakenBack | Fate::Refused => places.is_empty(),
            };
            let name = message.text.trim_end_matches('x');
            assert!(
                is_right,
                "{name} of {}, {:?}, is in {places:?}",
                message.session, message.fate
            );
        }
    }

    /// Messages that waited come in the order in which they were put; nothing is on its way any more;
    /// and what waits in a session that could go on is held: otherwise it would have gone.
    pub(super) async fn check_waiting(&self, life: &Life, found: &Found) {
        for (session, undelivered) in &found.undelivered {
            let claimed = &undelivered.claimed;
            assert!(claimed.is_empty(), "on its way in {session}: {claimed:?}");
            let mut order = found.delivered(session);
            order.extend(undelivered.waiting.iter().map(|item| item.id.clone()));
            assert!(order.is_sorted(), "the order in {session}: {order:?}");
            let latest = found.session(session).latest();
            let has_ended = latest.is_none_or(|it| found.turn(&it.id).terminal.is_some());
            let waiting = life.sessions.waiting_messages(session).await.expect("it can be read");
            let is_held = waiting.first().is_none_or(|first| first.held);
            assert!(!has_ended || is_held, "nothing wakes what waits in {session}: {waiting:?}");
        }
    }
}

impl Found {
    fn places_of(&self, session: &SessionId, text: &str) -> Vec<Place<'_>> {
        let mut places = Vec::new();
        for turn in &self.session(session).turns {
            let state = self.turn(&turn.id);
            if state.definition.input.plain_text() == text {
                places.push(Place::Began(&turn.id));
            }
            let added = state.inputs.iter().filter(|it| it.message.plain_text() == text);
            places.extend(added.map(|_| Place::TakenIn(&turn.id)));
        }
        let undelivered = self.undelivered_in(session);
        let is_it = |item: &&Item| item.message.plain_text() == text;
        places.extend(undelivered.waiting.iter().filter(is_it).map(|_| Place::Waits));
        places.extend(undelivered.claimed.iter().filter(is_it).map(|_| Place::Claimed));
        places
    }

    /// What had waited, as the turns of a session have it.
    fn delivered(&self, session: &SessionId) -> Vec<EventId> {
        let turns = self.session(session).turns.iter();
        let states = turns.map(|turn| self.turn(&turn.id));
        let ids = states.flat_map(|state| {
            let added = state.inputs.iter().flat_map(|it| event_ids(&it.message));
            event_ids(&state.definition.input).into_iter().chain(added)
        });
        ids.collect()
    }
}
