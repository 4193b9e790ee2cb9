//! How far a long piece of work is.

/// What is being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Logs are read.
    Reading,
    /// What logs share is looked at as a whole; how long that takes is not known.
    Checking,
    /// Logs are copied.
    Copying,
    /// Copies are compared with what they were made of.
    Comparing,
}

/// A way to say how far it is.
pub type Told<'a> = &'a mut (dyn FnMut(Progress) + Send);

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// What is being done.
    pub stage: Stage,
    /// How many logs are done.
    pub done: u64,
    /// How many there are; none, if that is not known.
    pub total: u64,
}

impl Progress {
    /// Nothing of it is done.
    #[must_use]
    pub fn new(stage: Stage, total: usize) -> Self {
        Self { stage, done: 0, total: total as u64 }
    }

    /// So many more are done.
    pub fn advance(&mut self, count: usize) {
        self.done += count as u64;
    }
}
