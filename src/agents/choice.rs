//! Which model answers when nothing else is said. It is known at the start, and can be found better
//! a moment later, when a local server answers.

use std::sync::{Arc, PoisonError, RwLock};

use crate::domain::agent::ModelDescriptor;

/// A model, and why it was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// The model.
    pub model: ModelDescriptor,
    /// Why it, in words for the status line.
    pub why: String,
}

/// The choice, shared by all who need it.
#[derive(Clone, Debug)]
pub struct DefaultModel(Arc<RwLock<Chosen>>);

impl DefaultModel {
    /// The choice at the start.
    #[must_use]
    pub fn new(chosen: Chosen) -> Self {
        Self(Arc::new(RwLock::new(chosen)))
    }

    /// The choice now.
    #[must_use]
    pub fn get(&self) -> Chosen {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A better choice.
    pub fn set(&self, chosen: Chosen) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = chosen;
    }
}
