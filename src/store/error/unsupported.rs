//! Databases that this program leaves alone.

/// What a file is that should be the database of this program, and what to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsupported {
    /// It has not the form of a database.
    #[error(
        "is no database; put the right file in its place, or move it away; `turnstile storage \
         salvage` saves what can still be read"
    )]
    NoDatabase,
    /// Another program made it.
    #[error("is a database of another program ({0:#010x}); move it away")]
    Foreign(u32),
    /// A version that this one does not know made it.
    #[error("is a database of version {0}, which this version cannot read; use one that can")]
    Version(u32),
    /// Somebody took the file away, or put another in its place, while this program used it.
    #[error("was taken away or replaced by another program; put it back and start again")]
    Replaced,
    /// It is the journal of a database that is gone.
    #[error(
        "is the journal of a database that is not there, and may hold what was written last; put the \
         database back in its place, or move the journal away"
    )]
    JournalAlone,
    /// The file system has no shared memory for several readers and a writer.
    #[error(
        "lies on a file system that cannot share it between readers and a writer; move the work \
         directory to another, or choose storage.format = \"jsonl\""
    )]
    Unshared,
}
