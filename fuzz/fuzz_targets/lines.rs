//! One line of a log, as an event of a turn and as one of a session: what is read is written as a line
//! that says the same, and every event is a record.
#![no_main]

use std::fmt::Debug;

use libfuzzer_sys::{Corpus, fuzz_target};
use turnstile::domain::event::{Event, Fact};
use turnstile::domain::session::event::SessionFact;
use turnstile::domain::turn::event::TurnFact;
use turnstile::store::log::{MalformedRecord, Record};

fuzz_target!(|line: &[u8]| -> Corpus {
    let record = Record::new(line.to_vec());
    if let Ok(record) = &record {
        assert_eq!(record.as_bytes(), line, "a record keeps its bytes");
    }
    let is_event = read::<TurnFact>(line, &record) | read::<SessionFact>(line, &record);
    // Among what is neither event nor record, nothing is worth going on from but what is at least text.
    if is_event || !matches!(record, Err(MalformedRecord::Utf8(_))) {
        Corpus::Keep
    } else {
        Corpus::Reject
    }
});

/// Whether the line is an event of this sort.
fn read<F>(line: &[u8], record: &Result<Record, MalformedRecord>) -> bool
where
    F: Fact + Debug + PartialEq,
    F::Id: Debug + PartialEq,
{
    let Ok(event) = Event::<F>::parse_line(line) else { return false };
    // White space between the tokens of an event may be a line's end, and in a log it never is.
    assert!(matches!(record, Ok(_) | Err(MalformedRecord::Lines)), "an event is a record");
    let written = event.to_line();
    let again = Event::<F>::parse_line(written.as_bytes()).expect("what was written is read");
    assert!(again == event, "it says the same:\n{event:?}\n{again:?}");
    assert_eq!(again.to_line(), written, "and is written in the same way");
    Record::new(written).expect("what was written is a record");
    true
}
