//! The person's key tables, kept as they are written until the terminal checks them.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use toml::de::{DeTable, DeValue};

/// The name of the table.
pub(super) const NAME: &str = "keys";

/// The `[keys]` table of a configuration file: `preset`, and one table for each context.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyTables {
    /// The file in which it stands.
    pub file: PathBuf,
    /// All of the file's text; the spans of [`table`](Self::table) are offsets into it.
    pub text: Arc<str>,
}

impl KeyTables {
    /// The table, with the place of everything in it. Whoever made this has read the text as TOML
    /// before, so that nothing can go wrong here.
    #[must_use]
    pub fn table(&self) -> DeTable<'_> {
        let document = DeTable::parse(&self.text).map(toml::Spanned::into_inner);
        match document.unwrap_or_default().remove(NAME).map(toml::Spanned::into_inner) {
            Some(DeValue::Table(table)) => table,
            _ => DeTable::default(),
        }
    }
}

/// Without the text, which is that of the whole configuration and may hold what must not print.
impl fmt::Debug for KeyTables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyTables").field("file", &self.file).finish_non_exhaustive()
    }
}
