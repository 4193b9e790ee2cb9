//! The history of what was typed: each text once, the newest ones.

use serde::{Deserialize, Serialize};

/// How many typed texts are kept.
const TEXTS_MAX: usize = 1_000;
/// How many bytes of typed texts are kept: older ones go first.
const BYTES_MAX: usize = 1024 * 1024;

/// What was typed, the oldest first.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct History {
    pub(super) texts: Vec<String>,
}

impl History {
    /// Adds a text. One that would push all others out is not kept.
    pub(super) fn add(&mut self, text: String) {
        if text.len() > BYTES_MAX {
            return;
        }
        self.texts.retain(|known| *known != text);
        self.texts.push(text);
        let mut bytes = 0;
        let fits = |text: &&String| {
            bytes += text.len();
            bytes <= BYTES_MAX
        };
        let kept = self.texts.iter().rev().take(TEXTS_MAX).take_while(fits).count();
        self.texts.drain(..self.texts.len() - kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_history_keeps_each_text_once_and_the_newest() {
        let mut history = History::default();
        for text in ["a", "b", "a"] {
            history.add(text.to_owned());
        }
        assert_eq!(history.texts, ["b", "a"]);
        for number in 0..TEXTS_MAX {
            history.add(number.to_string());
        }
        assert_eq!(history.texts.len(), TEXTS_MAX);
        assert_eq!(history.texts.first().map(String::as_str), Some("0"));
        history.add("x".repeat(BYTES_MAX + 1));
        assert_eq!(history.texts.len(), TEXTS_MAX, "it pushes nothing out");
        history.add("x".repeat(BYTES_MAX));
        assert_eq!(history.texts.len(), 1);
    }
}
