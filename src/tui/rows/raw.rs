//! The rows of a text that grows, as it came: line by line, so that what stands stays as it is.

use std::rc::Rc;

use crate::base::sanitize::Policy;
use crate::tui::rich::{Row, plain};

/// As much of the end of a text is laid out again with every piece, up to a line end.
const OPEN_BYTES: usize = 4 * 1024;

/// Rows of some lines of a text.
#[derive(Clone, Debug)]
pub struct Chunk {
    /// The rows; their places in the source count from the start of the chunk.
    pub rows: Rc<[Row]>,
    /// How many bytes of the source they are made of.
    pub source_len: usize,
}

/// A growing text at one width.
#[derive(Debug)]
pub struct Raw {
    width: u16,
    /// What has been laid out for good.
    settled: String,
    chunks: Vec<Chunk>,
}

impl Raw {
    /// An empty text.
    #[must_use]
    pub fn new(width: u16) -> Self {
        Self { width, settled: String::new(), chunks: Vec::new() }
    }

    /// Whether a text begins as this one does.
    #[must_use]
    pub fn begins(&self, text: &str) -> bool {
        text.starts_with(&self.settled)
    }

    /// The rows of the text as it is now, which begins as the one before.
    pub fn rows(&mut self, text: &str) -> Vec<Chunk> {
        while let Some(lines) = text.get(self.settled.len()..).and_then(closed) {
            self.chunks.push(self.lay(lines));
            self.settled.push_str(lines);
        }
        let open = text.get(self.settled.len()..).unwrap_or_default();
        let rest = (!open.is_empty()).then(|| self.lay(open));
        self.chunks.iter().cloned().chain(rest).collect()
    }

    fn lay(&self, lines: &str) -> Chunk {
        let rows = plain::rows(lines, self.width, Policy::Reading).into();
        Chunk { rows, source_len: lines.len() }
    }
}

/// The lines at the start of a text that further text leaves as they are; where they end depends on
/// nothing that is still to come.
fn closed(text: &str) -> Option<&str> {
    let bytes = text.as_bytes();
    let begun = bytes.get(..OPEN_BYTES)?;
    let end = memchr::memrchr(b'\n', begun).or_else(|| memchr::memchr(b'\n', bytes))?;
    text.get(..=end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::sanitize::hostile;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn a_text_that_grows_has_the_rows_of_the_whole(
            pieces in prop::collection::vec((hostile::text(), 0..60_usize), 1..8),
            width in 1..100_u16,
        ) {
            let mut raw = Raw::new(width);
            let mut text = String::new();
            for (piece, times) in pieces {
                text.push_str(&piece.repeat(times));
                prop_assert!(raw.begins(&text));
                let grown: Vec<String> = raw
                    .rows(&text)
                    .iter()
                    .flat_map(|chunk| chunk.rows.iter())
                    .map(|row| row.text().to_owned())
                    .collect();
                let whole = plain::rows(&text, width, Policy::Reading);
                let whole: Vec<&str> = whole.iter().map(Row::text).collect();
                prop_assert_eq!(grown, if text.is_empty() { Vec::new() } else { whole });
            }
        }
    }
}
