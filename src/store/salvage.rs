//! Saves what can still be had of a log that is damaged: every line that is an event of it.

use bytes::Bytes;

use crate::store::error::{Corruption, StoreError};
use crate::store::log::LogId;
use crate::store::remnant::{Kept, Lost, Remnant, Span};
use crate::store::repo::{Kind, Repo, event_of, fold};

/// What was saved of a log.
#[derive(Clone, Debug)]
pub struct Salvaged {
    /// The lines that are events of the log, in their order, without their ends.
    pub lines: Vec<Bytes>,
    /// What could not be had.
    pub lost: Vec<Lost>,
    /// How many of the lines come from parts that are damaged, so that nothing proves that they are as they
    /// were written.
    pub unproven: usize,
    /// How many of the first lines are a log by themselves: nothing is missing between them, and each
    /// can follow those before it.
    pub sound: usize,
}

impl Salvaged {
    /// The lines as a file of them.
    #[must_use]
    pub fn text(&self) -> Vec<u8> {
        self.lines.iter().flat_map(|line| [line, &b"\n"[..]].concat()).collect()
    }
}

impl<K: Kind> Repo<K> {
    /// All that can still be had of a log of this kind, on this thread. Changes nothing.
    ///
    /// # Errors
    /// As [`LogStore::remnants`](crate::store::seam::LogStore::remnants).
    pub fn salvage(&self, kept: &Kept) -> Result<Salvaged, StoreError> {
        Ok(sorted::<K>(kept.log(), self.store().remnants(kept)?))
    }
}

fn sorted<K: Kind>(log: &LogId, remnants: Vec<Remnant>) -> Salvaged {
    let mut salvaged = Salvaged { lines: Vec::new(), lost: Vec::new(), unproven: 0, sound: 0 };
    let (mut state, mut is_sound, mut number) = (None, true, 0);
    if remnants.is_empty() {
        let (span, why) = (Span::Line(1), Corruption::NoFirstRecord.into());
        salvaged.lost.push(Lost { span, why });
    }
    for remnant in remnants {
        let (line, unproven) = match remnant {
            Remnant::Line(line) => (line, 0),
            Remnant::Unproven(line) => (line, 1),
            Remnant::Lost(lost) => {
                is_sound = false;
                salvaged.lost.push(lost);
                continue;
            }
        };
        number += 1;
        match event_of::<K>(log, &line) {
            Ok(event) => {
                is_sound = is_sound && unproven == 0 && fold::<K>(&mut state, &event).is_ok();
                salvaged.lines.push(line);
                salvaged.sound += usize::from(is_sound);
                salvaged.unproven += unproven;
            }
            Err(why) => {
                is_sound = false;
                salvaged.lost.push(Lost { span: Span::Line(number), why: why.into() });
            }
        }
    }
    salvaged
}
