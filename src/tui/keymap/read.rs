//! Reading key tables: from TOML with spans to bindings with places, and everything that can be
//! wrong with one.

use std::fmt;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::tui::action::{Action, UnknownAction};
use crate::tui::key::{KeySequence, MalformedKey};
use crate::tui::keymap::context::{Context, UnknownContext};

/// The preset that changes nothing.
const PRESET_DEFAULT: &str = "default";
/// What stands in the place of an action to take a binding away.
const NONE: &str = "none";
/// How alike two names must be, from 0 to 1, for one to be the other misspelt.
const LIKENESS_LEAST: f32 = 0.6;

/// The text of a file that holds key tables, for the places in its problems.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// How the file is called, such as its path.
    pub name: &'a str,
    /// All of its text; the spans of the tables are offsets into it.
    pub text: &'a str,
}

impl Source<'_> {
    fn place(self, offset: usize) -> Place {
        let before = self.text.get(..offset).unwrap_or(self.text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Place {
            file: self.name.to_owned(),
            line: before.bytes().filter(|byte| *byte == b'\n').count() + 1,
            column: before.get(line_start..).map_or(0, |line| line.chars().count()) + 1,
        }
    }
}

/// A place in a file. Lines and columns count from 1, columns in characters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The name of the file.
    pub file: String,
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// What is wrong with a key table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeymapProblem {
    /// The file is no TOML.
    #[error("{at}: {message}")]
    Syntax {
        /// Where reading stopped.
        at: Place,
        /// What the TOML reader says.
        message: String,
    },
    /// Something else stands where `expected` must stand.
    #[error("{at}: expected {expected}")]
    Shape {
        /// Where it stands.
        at: Place,
        /// What should be there.
        expected: &'static str,
    },
    /// A table of a context that does not exist.
    #[error("{at}: {source}")]
    Context {
        /// Where its name stands.
        at: Place,
        /// Which name.
        source: UnknownContext,
    },
    /// A preset that does not exist.
    #[error("{at}: no preset is called {name:?}; there are {known}")]
    Preset {
        /// Where its name stands.
        at: Place,
        /// Which name.
        name: String,
        /// The names that exist.
        known: String,
    },
    /// A text that spells no keys.
    #[error("{at}: {source}")]
    Keys {
        /// Where it stands.
        at: Place,
        /// What is wrong with it.
        source: MalformedKey,
    },
    /// An action that does not exist.
    #[error("{at}: {source}; {remedy}")]
    Action {
        /// Where its name stands.
        at: Place,
        /// Which name.
        source: UnknownAction,
        /// The name that was probably meant, or all that can stand there.
        remedy: String,
    },
    /// An action that does nothing in this context.
    #[error("{at}: {action} does nothing in {context}")]
    NotHere {
        /// Where its name stands.
        at: Place,
        /// Which action.
        action: Action,
        /// In which context.
        context: Context,
    },
    /// Two bindings of which only one can ever be reached.
    #[error("{at}: {keys} in {context} is bound twice, also at {other} as {other_keys}")]
    Twice {
        /// Where the later one stands.
        at: Place,
        /// Its keys.
        keys: KeySequence,
        /// In which context.
        context: Context,
        /// Where the earlier one stands.
        other: Place,
        /// The keys of the earlier one: the same, or the beginning of the others.
        other_keys: KeySequence,
    },
}

impl KeymapProblem {
    /// Where it is.
    #[must_use]
    pub fn at(&self) -> &Place {
        match self {
            Self::Syntax { at, .. }
            | Self::Shape { at, .. }
            | Self::Context { at, .. }
            | Self::Preset { at, .. }
            | Self::Keys { at, .. }
            | Self::Action { at, .. }
            | Self::NotHere { at, .. }
            | Self::Twice { at, .. } => at,
        }
    }
}

/// One line of a key table. `action` is `None` where a binding is taken away.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) context: Context,
    pub(super) keys: KeySequence,
    pub(super) action: Option<Action>,
    at: Place,
}

/// A preset: the name by which a person chooses it, and its tables.
pub(super) type Preset = (&'static str, Source<'static>);

/// What a set of key tables says.
#[derive(Debug, Default)]
pub(super) struct Tables {
    /// The preset on which they stand; none for the defaults alone.
    pub(super) preset: Option<Source<'static>>,
    /// The bindings, in the order in which they are written.
    pub(super) entries: Vec<Entry>,
}

/// The tables of a whole file of key tables.
pub(super) fn file(source: Source<'_>) -> Result<Tables, Vec<KeymapProblem>> {
    let document = DeTable::parse(source.text).map_err(|error| {
        let at = source.place(error.span().map_or(0, |span| span.start));
        vec![KeymapProblem::Syntax { at, message: error.message().to_owned() }]
    })?;
    tables(source, document.get_ref(), &[])
}

/// The key tables in `table`, which stands somewhere in `source`.
pub(super) fn tables(
    source: Source<'_>,
    table: &DeTable<'_>,
    presets: &[Preset],
) -> Result<Tables, Vec<KeymapProblem>> {
    let mut reader = Reader { source, problems: Vec::new() };
    let mut tables = Tables::default();
    for (name, value) in table {
        if name.get_ref() == "preset" {
            tables.preset = reader.preset(value, presets);
            continue;
        }
        match name.get_ref().parse() {
            Ok(context) => reader.bindings(context, value, &mut tables.entries),
            Err(error) => {
                let at = source.place(name.span().start);
                reader.problems.push(KeymapProblem::Context { at, source: error });
            }
        }
    }
    tables.entries.sort_by(|a, b| a.at.cmp(&b.at));
    reader.find_twice(&tables.entries);
    reader.problems.sort_by(|a, b| a.at().cmp(b.at()));
    if reader.problems.is_empty() { Ok(tables) } else { Err(reader.problems) }
}

/// Gathers the problems of one file while its tables are read.
#[derive(Debug)]
struct Reader<'a> {
    source: Source<'a>,
    problems: Vec<KeymapProblem>,
}

impl Reader<'_> {
    fn preset(
        &mut self,
        value: &Spanned<DeValue<'_>>,
        presets: &[Preset],
    ) -> Option<Source<'static>> {
        let name = self.text(value, "the name of a preset")?;
        let found = presets.iter().find(|(known, _)| *known == name);
        if found.is_none() && name != PRESET_DEFAULT {
            let names = presets.iter().map(|(known, _)| *known);
            let known: Vec<&str> = [PRESET_DEFAULT].into_iter().chain(names).collect();
            let at = self.source.place(value.span().start);
            let (name, known) = (name.to_owned(), known.join(", "));
            self.problems.push(KeymapProblem::Preset { at, name, known });
        }
        found.map(|(_, source)| *source)
    }

    fn bindings(&mut self, context: Context, table: &Spanned<DeValue<'_>>, into: &mut Vec<Entry>) {
        let Some(table) = self.table(table, "a table of keys") else {
            return;
        };
        for (keys, action) in table {
            let at = self.source.place(keys.span().start);
            let keys = keys.get_ref().parse();
            let action = self.action(context, action);
            match (keys, action) {
                (Ok(keys), Some(action)) => into.push(Entry { context, keys, action, at }),
                (Err(source), _) => self.problems.push(KeymapProblem::Keys { at, source }),
                (Ok(_), None) => {}
            }
        }
    }

    /// `Some(None)` is "none".
    #[expect(clippy::option_option, reason = "a broken line and an unbound key are two things")]
    fn action(&mut self, context: Context, value: &Spanned<DeValue<'_>>) -> Option<Option<Action>> {
        let name = self.text(value, "the name of an action")?;
        if name == NONE {
            return Some(None);
        }
        let at = self.source.place(value.span().start);
        match name.parse() {
            Ok(action) if context.takes(action) => return Some(Some(action)),
            Ok(action) => self.problems.push(KeymapProblem::NotHere { at, action, context }),
            Err(source) => {
                let remedy = remedy(name, context);
                self.problems.push(KeymapProblem::Action { at, source, remedy });
            }
        }
        None
    }

    /// The table that must stand here.
    fn table<'t, 'i>(
        &mut self,
        value: &'t Spanned<DeValue<'i>>,
        expected: &'static str,
    ) -> Option<&'t DeTable<'i>> {
        let table = value.get_ref().as_table();
        if table.is_none() {
            let at = self.source.place(value.span().start);
            self.problems.push(KeymapProblem::Shape { at, expected });
        }
        table
    }

    /// The text that must stand here.
    fn text<'t>(
        &mut self,
        value: &'t Spanned<DeValue<'_>>,
        expected: &'static str,
    ) -> Option<&'t str> {
        let text = value.get_ref().as_str();
        if text.is_none() {
            let at = self.source.place(value.span().start);
            self.problems.push(KeymapProblem::Shape { at, expected });
        }
        text
    }

    fn find_twice(&mut self, entries: &[Entry]) {
        for (position, later) in entries.iter().enumerate() {
            let clash = entries.iter().take(position).find(|earlier| clash(earlier, later));
            if let Some(earlier) = clash {
                self.problems.push(KeymapProblem::Twice {
                    at: later.at.clone(),
                    keys: later.keys.clone(),
                    context: later.context,
                    other: earlier.at.clone(),
                    other_keys: earlier.keys.clone(),
                });
            }
        }
    }
}

/// What can be done about a name that no action has: with such a file the program does not start, so
/// there is no help to look it up in.
fn remedy(name: &str, context: Context) -> String {
    let known = Action::all().filter(|action| context.takes(*action)).map(Action::name);
    let known: Vec<&str> = known.chain([NONE]).collect();
    match similar::get_close_matches(name, &known, 1, LIKENESS_LEAST).first() {
        Some(meant) => format!("did you mean {meant:?}?"),
        None => format!("{context} takes {}", known.join(", ")),
    }
}

/// The same keys twice, or keys of which one binding hides the other.
fn clash(a: &Entry, b: &Entry) -> bool {
    let hides = a.keys.starts_with(b.keys.keys()) || b.keys.starts_with(a.keys.keys());
    let both_bound = a.action.is_some() && b.action.is_some();
    a.context == b.context && (a.keys == b.keys || (hides && both_bound))
}
