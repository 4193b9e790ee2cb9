//! Damaged logs and lines: they are read or refused, nothing panics, and what is read can be written
//! and read again.

use proptest::prelude::*;
use proptest::sample::Index;
use turnstile::domain::session::apply::reduce_session;
use turnstile::domain::turn::apply::reduce_turn;
use turnstile::testing::strategy::{session_history, turn_history};

use crate::domain_golden::{LogSort, golden_lines};

proptest! {
    #[test]
    fn an_altered_turn_log_is_read_or_refused(events in turn_history(), how in alteration()) {
        let altered = how.of(&events);
        if let Err(corruption) = reduce_turn(&altered) {
            prop_assert!((1..=altered.len().max(1)).contains(&corruption.number));
            let legal = &altered[..corruption.number - 1];
            prop_assert!(legal.is_empty() || reduce_turn(legal).is_ok());
        }
    }

    #[test]
    fn an_altered_session_log_is_read_or_refused(events in session_history(), how in alteration()) {
        let altered = how.of(&events);
        if let Err(corruption) = reduce_session(&altered) {
            prop_assert!((1..=altered.len().max(1)).contains(&corruption.number));
            let legal = &altered[..corruption.number - 1];
            prop_assert!(legal.is_empty() || reduce_session(legal).is_ok());
        }
    }

    #[test]
    fn a_refused_event_changes_nothing(
        events in turn_history(),
        others in turn_history(),
        at in any::<Index>(),
    ) {
        let state = reduce_turn(&events[..=at.index(events.len())]).expect("legal");
        for other in &others {
            let mut tried = state.clone();
            if tried.apply(other).is_err() {
                prop_assert_eq!(&tried, &state);
            }
        }
    }

    #[test]
    fn a_damaged_line_is_read_or_refused(
        events in turn_history(),
        at in any::<Index>(),
        damage in proptest::collection::vec(byte_damage(), 1..4),
    ) {
        let line = events[at.index(events.len())].to_line();
        check_damaged(LogSort::Turn, line, &damage)?;
    }

    #[test]
    fn a_damaged_golden_line_is_read_or_refused(
        at in any::<Index>(),
        damage in proptest::collection::vec(byte_damage(), 1..4),
    ) {
        let mut lines = golden_lines();
        let golden = lines.swap_remove(at.index(lines.len()));
        check_damaged(golden.log, golden.line, &damage)?;
    }
}

fn check_damaged(log: LogSort, line: String, damage: &[ByteDamage]) -> Result<(), TestCaseError> {
    let mut line = line.into_bytes();
    for damage in damage {
        damage.apply(&mut line);
    }
    if let Ok(written) = log.read(&line) {
        prop_assert_eq!(log.read(written.as_bytes()).ok(), Some(written));
    }
    Ok(())
}

/// A damage of a line, byte by byte.
#[derive(Clone, Debug)]
enum ByteDamage {
    Put(Index, u8),
    Insert(Index, u8),
    Cut(Index, Index),
    Repeat(Index, Index),
}

fn byte_damage() -> impl Strategy<Value = ByteDamage> {
    let byte = prop_oneof![
        proptest::sample::select(&b"{}[]\",:\\ud8eE+-.0129 \t\n\x00\xff\xc3tn"[..]),
        any::<u8>(),
    ];
    let at = any::<Index>;
    prop_oneof![
        (at(), byte.clone()).prop_map(|(at, byte)| ByteDamage::Put(at, byte)),
        (at(), byte).prop_map(|(at, byte)| ByteDamage::Insert(at, byte)),
        (at(), at()).prop_map(|(from, to)| ByteDamage::Cut(from, to)),
        (at(), at()).prop_map(|(from, to)| ByteDamage::Repeat(from, to)),
    ]
}

impl ByteDamage {
    fn apply(&self, line: &mut Vec<u8>) {
        let len = line.len();
        let span = |a: &Index, b: &Index| {
            let (a, b) = (a.index(len + 1), b.index(len + 1));
            a.min(b)..a.max(b)
        };
        match self {
            Self::Put(..) if line.is_empty() => {}
            Self::Put(at, byte) => line[at.index(len)] = *byte,
            Self::Insert(at, byte) => line.insert(at.index(len + 1), *byte),
            Self::Cut(from, to) => drop(line.drain(span(from, to))),
            Self::Repeat(from, to) => {
                let span = span(from, to);
                let repeated = line[span.clone()].to_vec();
                line.splice(span.end..span.end, repeated);
            }
        }
    }
}

/// A damage of a log, line by line.
#[derive(Clone, Debug)]
enum Alteration {
    Drop(Index),
    Double(Index),
    Swap(Index, Index),
}

fn alteration() -> impl Strategy<Value = Alteration> {
    prop_oneof![
        any::<Index>().prop_map(Alteration::Drop),
        any::<Index>().prop_map(Alteration::Double),
        (any::<Index>(), any::<Index>()).prop_map(|(a, b)| Alteration::Swap(a, b)),
    ]
}

impl Alteration {
    fn of<T: Clone>(&self, items: &[T]) -> Vec<T> {
        let mut items = items.to_vec();
        match self {
            Self::Drop(at) => drop(items.remove(at.index(items.len()))),
            Self::Double(at) => {
                let at = at.index(items.len());
                items.insert(at, items[at].clone());
            }
            Self::Swap(a, b) => {
                let (a, b) = (a.index(items.len()), b.index(items.len()));
                items.swap(a, b);
            }
        }
        items
    }
}
