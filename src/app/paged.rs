//! A long text, broken into lines ahead, so that to show any part of it costs no more than that part.

use std::ops::Range;

use crate::base::text;

/// Lines are broken before anybody knows where they will be shown, so at what fits into a frame on a
/// screen of 80 columns: a wider one leaves some of it free, a narrower one breaks them once more.
const LINE_COLS_MAX: usize = 68;

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Paged {
    text: String,
    lines: Vec<Range<usize>>,
}

impl Paged {
    /// Breaks a text into lines.
    #[must_use]
    pub fn new(text: String) -> Self {
        let lines = text::wrap(&text, LINE_COLS_MAX);
        Self { text, lines }
    }

    /// All of it, unbroken.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// How many lines there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// The lines from one on.
    pub fn from(&self, first: usize) -> impl Iterator<Item = &str> {
        let lines = self.lines.get(first..).unwrap_or_default();
        lines.iter().map(|line| self.text.get(line.clone()).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_broken_and_the_text_stays_whole() {
        let text = format!("{{\n  \"a\": \"{}\"\n}}", "x".repeat(200));
        let paged = Paged::new(text.clone());
        assert_eq!(paged.text(), text);
        assert_eq!(paged.from(0).next(), Some("{"));
        assert!(paged.from(0).all(|line| line.len() <= LINE_COLS_MAX));
        assert_eq!(paged.from(paged.len() - 1).collect::<Vec<_>>(), ["}"]);
        assert_eq!(paged.from(paged.len()).count(), 0);
    }
}
