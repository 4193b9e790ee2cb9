//! Lines in any order, folded as a turn and as a session: what is refused leaves the state as it was,
//! and what is taken gives the same state when it is read again.
//!
//! The lines of the corpus and of the golden logs belong to the same few turns and sessions. Half of the
//! changes put one of them somewhere, take a line away or move it, so that most lines stay events.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use serde::Deserialize;
use serde_json::Value;
use turnstile::domain::event::{Event, Fact};
use turnstile::domain::session::apply::reduce_session;
use turnstile::domain::session::entry::{SessionIndexEntry, waiting_calls};
use turnstile::domain::session::event::SessionFact;
use turnstile::domain::session::state::SessionState;
use turnstile::domain::turn::apply::reduce_turn;
use turnstile::domain::turn::event::TurnFact;
use turnstile::domain::turn::state::TurnState;
use turnstile::domain::turn::transcript::strip_continuation;

/// The state is compared after every line that is refused.
const LINES_MAX: usize = 200;

/// Lines of logs that another implementation of the contract has judged, each once.
static KNOWN: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let turns = include_str!("../../tests/golden/conformance/turns.json");
    let sessions = include_str!("../../tests/golden/conformance/sessions.json");
    let mut lines: Vec<_> = [turns, sessions].into_iter().flat_map(lines_of).collect();
    lines.sort_unstable();
    lines.dedup();
    lines
});

/// A log among the golden ones.
#[derive(Deserialize)]
struct Case {
    lines: Vec<Value>,
}

fn lines_of(cases: &str) -> Vec<Vec<u8>> {
    let cases: Vec<Case> = serde_json::from_str(cases).expect("the golden logs are JSON");
    let lines = cases.into_iter().flat_map(|case| case.lines);
    lines.map(|line| line.to_string().into_bytes()).collect()
}

fuzz_target!(|log: &[u8]| {
    let lines = || log.split(|byte| *byte == b'\n').take(LINES_MAX);
    let session = fold_session(&events::<SessionFact>(lines()));
    let turn = fold_turn(&events::<TurnFact>(lines()));
    if let Some(session) = session {
        let entry = SessionIndexEntry::new(&session, turn.as_ref());
        assert_eq!(entry.session_id, session.id);
    }
});

fn events<'a, F: Fact>(lines: impl Iterator<Item = &'a [u8]>) -> Vec<Event<F>> {
    lines.filter_map(|line| Event::parse_line(line).ok()).collect()
}

fn fold_turn(events: &[Event<TurnFact>]) -> Option<TurnState> {
    let (begin, mut state) = first_state(events, TurnState::begin)?;
    let mut taken = vec![events[begin].clone()];
    for event in &events[begin + 1..] {
        let before = state.clone();
        match state.apply(event) {
            Ok(()) => taken.push(event.clone()),
            Err(refusal) => assert!(state == before, "refused, and changed: {refusal}"),
        }
    }
    let again = reduce_turn(&taken).expect("what was taken one by one is taken at once");
    assert!(again == state, "read again, it is another turn");
    look_at(&state);
    Some(state)
}

fn fold_session(events: &[Event<SessionFact>]) -> Option<SessionState> {
    let (begin, mut state) = first_state(events, SessionState::begin)?;
    let mut taken = vec![events[begin].clone()];
    for event in &events[begin + 1..] {
        let before = state.clone();
        match state.apply(event) {
            Ok(()) => taken.push(event.clone()),
            Err(refusal) => assert!(state == before, "refused, and changed: {refusal}"),
        }
    }
    let again = reduce_session(&taken).expect("what was taken one by one is taken at once");
    assert!(again == state, "read again, it is another session");
    for (place, turn) in state.turns.iter().enumerate() {
        assert_eq!(state.place_of(&turn.id), Some(place));
    }
    Some(state)
}

/// The first event with which a log can begin, and the state after it.
fn first_state<F: Fact, S, E>(
    events: &[Event<F>],
    begin: impl Fn(&Event<F>) -> Result<S, E>,
) -> Option<(usize, S)> {
    events.iter().enumerate().find_map(|(at, event)| Some((at, begin(event).ok()?)))
}

/// Asks a legal turn for all that is made of it.
fn look_at(state: &TurnState) {
    let requests = (0..=state.next_call_index()).map(|index| state.request_messages(index));
    let next = state.next_message_refs();
    let sent: usize = requests.map(|messages| messages.len()).sum();
    let said = state.transcript().map(|messages| strip_continuation(&messages));
    let waits = (state.status(), waiting_calls(state), state.is_waiting(), state.budget_is_spent());
    std::hint::black_box((next, sent, said, waits));
}

fuzz_mutator!(|log: &mut [u8], size: usize, size_max: usize, seed: u32| {
    let mut choices = Choices(seed);
    if choices.below(2) == 0 {
        return fuzzer_mutate(log, size, size_max);
    }
    let mut lines: Vec<Vec<u8>> =
        log[..size].split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    let at = choices.below(lines.len());
    let known = &KNOWN[choices.below(KNOWN.len())];
    match choices.below(5) {
        0 | 1 => lines.insert(at, known.clone()),
        2 => lines.push(known.clone()),
        3 => drop(lines.remove(at)),
        _ => {
            let to = choices.below(lines.len());
            lines.swap(at, to);
        }
    }
    let changed = lines.join(&b'\n');
    if changed.len() > size_max {
        return fuzzer_mutate(log, size, size_max);
    }
    log[..changed.len()].copy_from_slice(&changed);
    changed.len()
});

/// Numbers that follow from a seed.
struct Choices(u32);

impl Choices {
    fn below(&mut self, count: usize) -> usize {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.0 >> 8) as usize % count.max(1)
    }
}
