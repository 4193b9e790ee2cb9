//! Pasted blocks inside a text: each is one private-use character there, and is sent in full.

use std::sync::Arc;

/// A paste of more lines than this becomes a chip (`design/experience.md`, composer).
pub const PASTE_LINES_MAX: usize = 10;
/// A paste of more characters than this becomes a chip.
pub const PASTE_CHARS_MAX: usize = 2_000;
/// A text of more characters than this is not edited character by character: as one chip it can
/// still be sent, cut and added to.
const TEXT_CHARS_MAX: usize = 20_000;
/// The private-use characters of the last plane are ours. One that comes from outside becomes a
/// chip that holds it.
const FIRST: char = '\u{100000}';
const LAST: char = '\u{10FFFD}';
/// How many bytes a chip takes in the text.
pub(super) const CHIP_BYTES: usize = 4;

/// Whether a character stands for a pasted block.
#[must_use]
pub fn is_chip(c: char) -> bool {
    (FIRST..=LAST).contains(&c)
}

/// Whether a paste becomes a chip.
#[must_use]
pub fn is_long(text: &str) -> bool {
    text.chars().nth(PASTE_CHARS_MAX).is_some() || text.lines().nth(PASTE_LINES_MAX).is_some()
}

pub(super) fn is_too_long(text: &str) -> bool {
    text.chars().nth(TEXT_CHARS_MAX).is_some()
}

/// The pasted blocks of a text, by their characters. A block stays as long as the text may be undone
/// back to it.
#[derive(Clone, Debug, Default)]
pub struct Chips {
    blocks: Vec<Block>,
}

/// A pasted block. Its label is made once: the block may be many megabytes long.
#[derive(Clone, Debug)]
struct Block {
    text: Arc<str>,
    label: Arc<str>,
}

impl Chips {
    /// Keeps a block, and gives the character that stands for it. When there are no characters left
    /// the block is the text itself.
    pub(super) fn hold(&mut self, block: &str) -> String {
        let number = u32::try_from(self.blocks.len()).unwrap_or(u32::MAX);
        let code = u32::from(FIRST).checked_add(number).and_then(char::from_u32);
        match code.filter(|c| is_chip(*c)) {
            Some(chip) => {
                self.blocks.push(Block { text: Arc::from(block), label: label(block).into() });
                chip.to_string()
            }
            None => block.chars().filter(|c| !is_chip(*c)).collect(),
        }
    }

    /// The text, with each of our characters that somebody else wrote held as a block.
    pub(super) fn absorb(&mut self, text: &str) -> String {
        self.restore(text, &[])
    }

    /// The text of a draft, with its characters standing for these blocks in their order.
    pub(super) fn restore(&mut self, text: &str, blocks: &[String]) -> String {
        if !text.contains(is_chip) {
            return text.to_owned();
        }
        let mut blocks = blocks.iter();
        let mut own = String::with_capacity(text.len());
        for c in text.chars() {
            if !is_chip(c) {
                own.push(c);
                continue;
            }
            let chip = match blocks.next() {
                Some(block) => self.hold(block),
                None => self.hold(c.encode_utf8(&mut [0; CHIP_BYTES])),
            };
            own.push_str(&chip);
        }
        own
    }

    /// The text with every block written out.
    pub(super) fn resolve(&self, raw: &str) -> String {
        let mut text = String::with_capacity(raw.len());
        for c in raw.chars() {
            match self.block(c) {
                Some(block) => text.push_str(block),
                None => text.push(c),
            }
        }
        text
    }

    /// The blocks of a text, in its order.
    pub(super) fn held_in(&self, raw: &str) -> impl Iterator<Item = &str> {
        raw.chars().filter_map(|c| self.block(c))
    }

    /// How a chip is shown: `[Pasted 214 lines]`.
    pub(super) fn label(&self, c: char) -> Option<&str> {
        self.held(c).map(|block| block.label.as_ref())
    }

    pub(super) fn block(&self, c: char) -> Option<&str> {
        self.held(c).map(|block| block.text.as_ref())
    }

    fn held(&self, c: char) -> Option<&Block> {
        let number = u32::from(c).checked_sub(u32::from(FIRST))?;
        self.blocks.get(usize::try_from(number).ok()?)
    }
}

fn label(block: &str) -> String {
    match (block.lines().count(), block.chars().count()) {
        (_, 1) => "[Pasted 1 character]".to_owned(),
        (0 | 1, chars) => format!("[Pasted {chars} characters]"),
        (lines, _) => format!("[Pasted {lines} lines]"),
    }
}
