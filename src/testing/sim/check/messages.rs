//! Where the messages are: each in one place, and in the order in which they were put.

use crate::base::id::{EventId, SessionId, TurnId};
use crate::sessions::circumstances::event_ids;
use crate::testing::sim::Sim;
use crate::testing::sim::check::Found;
use crate::testing::sim::left::{Fate, Message};
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
        for (number, message) in left.messages.iter().enumerate() {
            // What is deleted cannot be looked at.
            if !found.sessions.contains_key(&message.session) {
                continue;
            }
            let (texts, places): (Vec<_>, Vec<_>) =
                found.places_of(&message.session, number).into_iter().unzip();
            let says = texts.iter().map(|text| text.trim_end_matches('x')).collect::<Vec<_>>();
            let is_known = texts.iter().all(|text| message.texts.contains(text));
            assert!(is_known, "message {number} of {} says {says:?}", message.session);
            let is_right = match &message.fate {
                Fate::Turn(turn) => places == [Place::Began(turn)],
                Fate::Waits if message.asked_back == 0 => places.len() == 1,
                Fate::Waits | Fate::Unknown => places.len() <= 1,
                Fate::TakenBack | Fate::Refused => places.is_empty(),
            };
            assert!(
                is_right,
                "message {number} of {}, {:?}, is in {places:?}",
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
    /// Where a message is, and what it says there.
    fn places_of(&self, session: &SessionId, number: usize) -> Vec<(String, Place<'_>)> {
        let mut places = Vec::new();
        for turn in &self.session(session).turns {
            let state = self.turn(&turn.id);
            places.push((&state.definition.input, Place::Began(&turn.id)));
            let added = state.inputs.iter();
            places.extend(added.map(|it| (&it.message, Place::TakenIn(&turn.id))));
        }
        let undelivered = self.undelivered_in(session);
        places.extend(undelivered.waiting.iter().map(|it| (&it.message, Place::Waits)));
        places.extend(undelivered.claimed.iter().map(|it| (&it.message, Place::Claimed)));
        let said = places.into_iter().map(|(message, place)| (message.plain_text(), place));
        said.filter(|(text, _)| Message::number_of(text) == Some(number)).collect()
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
