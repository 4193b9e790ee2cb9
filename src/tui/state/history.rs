//! What was sent or cleared before, over all sessions, and the way back through it.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::app::command::Draft;

/// As many texts are kept in memory; the store keeps its own.
const TEXTS_MAX: usize = 1_000;

/// See the module. The draft is its newest slot.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    /// The oldest first.
    texts: VecDeque<Arc<str>>,
    browsing: Option<Browsing>,
}

/// A text of the history stands in the composer, as it was.
#[derive(Clone, Debug, PartialEq)]
struct Browsing {
    at: usize,
    draft: Draft,
}

/// What is to stand in the composer.
#[derive(Clone, Debug, PartialEq)]
pub enum Recalled {
    /// A text of the history.
    Text(Arc<str>),
    /// The draft.
    Draft(Draft),
}

impl History {
    /// Takes over what was kept from the last run, the oldest first.
    pub fn begin_with(&mut self, kept: Vec<String>) {
        let new = std::mem::take(&mut self.texts);
        let new_count = new.len();
        let browsing = self.browsing.take();
        let kept = kept.into_iter().map(Arc::from).chain(new);
        kept.for_each(|text: Arc<str>| self.push(&text));
        let older_count = self.texts.len().saturating_sub(new_count);
        self.browsing =
            browsing.map(|browsing| Browsing { at: browsing.at + older_count, ..browsing });
    }

    /// Adds a text, unless it is the newest already.
    pub fn push(&mut self, text: &str) {
        if text.trim().is_empty() || self.texts.back().is_some_and(|newest| **newest == *text) {
            return;
        }
        if self.texts.len() == TEXTS_MAX {
            self.texts.pop_front();
            if let Some(browsing) = &mut self.browsing {
                browsing.at = browsing.at.saturating_sub(1);
            }
        }
        self.texts.push_back(Arc::from(text));
    }

    /// The next older text, if there is one; `draft` is what stands in the composer now.
    pub fn older(&mut self, draft: Draft) -> Option<Recalled> {
        let (at, draft) = match self.browsing.take() {
            Some(Browsing { at: 0, draft }) => {
                self.browsing = Some(Browsing { at: 0, draft });
                return None;
            }
            Some(Browsing { at, draft }) => (at - 1, draft),
            None => (self.texts.len().checked_sub(1)?, draft),
        };
        self.browsing = Some(Browsing { at, draft });
        self.texts.get(at).cloned().map(Recalled::Text)
    }

    /// The next newer text, or in the end the draft; none from the draft on.
    pub fn newer(&mut self) -> Option<Recalled> {
        let Browsing { at, draft } = self.browsing.take()?;
        let Some(text) = self.texts.get(at + 1).cloned() else {
            return Some(Recalled::Draft(draft));
        };
        self.browsing = Some(Browsing { at: at + 1, draft });
        Some(Recalled::Text(text))
    }

    /// The draft that stands back while a text of the history is in the composer.
    #[must_use]
    pub fn draft(&self) -> Option<&Draft> {
        self.browsing.as_ref().map(|browsing| &browsing.draft)
    }

    /// As [`draft`](Self::draft), to take something out of it.
    pub fn draft_mut(&mut self) -> Option<&mut Draft> {
        self.browsing.as_mut().map(|browsing| &mut browsing.draft)
    }

    /// Ends the way through the history; gives the draft that stood back.
    pub fn leave(&mut self) -> Option<Draft> {
        self.browsing.take().map(|browsing| browsing.draft)
    }
}
