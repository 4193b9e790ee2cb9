//! Chance that can be had again: everything that a simulation draws comes from one seed.

use std::sync::{Arc, Mutex, PoisonError};

/// A source of numbers. Clones draw from the same one.
#[derive(Clone, Debug)]
pub struct Seed(Arc<Mutex<u64>>);

impl Seed {
    /// The numbers that belong to `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        // Neighbouring seeds are to have nothing in common, and none is zero.
        let mixed = (seed ^ 0x9E37_79B9_7F4A_7C15).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        Self(Arc::new(Mutex::new((mixed ^ (mixed >> 31)) | 1)))
    }

    /// A number below `count`; 0 if there is none.
    #[must_use]
    pub fn below(&self, count: usize) -> usize {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        usize::try_from((*state >> 16).checked_rem(count).unwrap_or(0)).unwrap_or(0)
    }

    /// Yes, so many times of a hundred.
    #[must_use]
    pub fn chance(&self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of these, drawn by its weight.
    ///
    /// # Panics
    /// When there is none.
    #[must_use]
    pub fn weighted<T: Copy>(&self, all: &[(T, usize)]) -> T {
        let mut at = self.below(all.iter().map(|(_, weight)| weight).sum());
        let drawn = all.iter().find(|(_, weight)| {
            let is_here = at < *weight;
            at = at.saturating_sub(*weight);
            is_here
        });
        drawn.expect("there is something to draw").0
    }
}
