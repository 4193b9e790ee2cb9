//! What is folded to one line, and what is open.

use std::collections::BTreeSet;

use crate::tui::state::item::{Body, Item, ItemId, Part};

/// See the module. Tool calls, reasoning and summaries are folded until the person opens them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Folds {
    calls: Fold,
    reasoning: Fold,
    /// The items that are not as the rest of their kind.
    others: BTreeSet<ItemId>,
}

/// Whether something is folded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Fold {
    /// It shows one line.
    #[default]
    Folded,
    /// It shows all of it.
    Open,
}

impl Fold {
    fn other(self) -> Self {
        match self {
            Self::Folded => Self::Open,
            Self::Open => Self::Folded,
        }
    }
}

impl Folds {
    /// Whether an item is folded.
    #[must_use]
    pub fn of(&self, item: &Item<'_>) -> Fold {
        let kind = match item.body {
            Body::Call(_) => self.calls,
            Body::Reasoning { .. } => self.reasoning,
            Body::Divider(_) => Fold::Folded,
            Body::Loading
            | Body::Damaged(_)
            | Body::Message { .. }
            | Body::Text { .. }
            | Body::Failure { .. }
            | Body::End(_) => return Fold::Open,
        };
        if self.others.contains(&item.id) { kind.other() } else { kind }
    }

    /// Folds an item that is open, and opens one that is folded.
    pub fn toggle(&mut self, item: &Item<'_>) {
        if item.body.folds() && !self.others.remove(&item.id) {
            self.others.insert(item.id.clone());
        }
    }

    /// Opens all tool calls and reasoning, or folds all.
    pub fn toggle_all(&mut self) {
        let fold = self.calls.other();
        *self = Self { calls: fold, reasoning: fold, others: BTreeSet::new() };
    }

    /// Opens all reasoning, or folds all. What the person did to anything else stays.
    pub fn toggle_reasoning(&mut self) {
        self.reasoning = self.reasoning.other();
        self.others.retain(|id| matches!(id.part, Part::Call(_) | Part::Divider(_)));
    }
}
