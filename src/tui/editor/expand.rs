//! Writing out a pasted block, so that it can be edited like any text.

use super::{Editor, chips};

/// What became of a pasted block that was to be written out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expanded {
    /// Its text stands in its place.
    Written,
    /// It is too long to be edited character by character; it stays a block, and is sent in full.
    TooLong,
    /// There is none beside the caret.
    NoBlock,
}

impl Editor {
    /// Writes out the pasted block before the caret, or else the one behind it, as one step.
    pub fn expand(&mut self) -> Expanded {
        let (raw, caret) = (self.raw(), self.caret());
        let (head, tail) = raw.split_at_checked(caret).unwrap_or((raw.as_str(), ""));
        let before = head.chars().next_back().filter(|c| chips::is_chip(*c));
        let after = tail.chars().next().filter(|c| chips::is_chip(*c));
        let (start, chip) = match (before, after) {
            (Some(chip), _) => (caret - chips::CHIP_BYTES, chip),
            (None, Some(chip)) => (caret, chip),
            (None, None) => return Expanded::NoBlock,
        };
        let Some(block) = self.chips.block(chip).map(str::to_owned) else {
            return Expanded::NoBlock;
        };
        if chips::is_too_long(&block) || chips::is_too_long(&raw) {
            return Expanded::TooLong;
        }
        self.delete(start..start + chips::CHIP_BYTES);
        let text = self.chips.absorb(&block);
        self.insert_raw(&text);
        self.past.join();
        self.past.pause();
        Expanded::Written
    }
}
