//! A configuration file: read, parsed, and every mistake told with its place.

use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, Read as _};
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::OFlags;
use serde::Deserialize as _;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::config::bindings::{self, KeyTables};
use crate::config::origin::Place;
use crate::config::schema::Config;
use crate::config::unknown::{self, UnknownKey};

/// More than anyone writes by hand; whatever is longer is no configuration.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// A file that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed {
    /// What it says, and the defaults where it says nothing.
    pub config: Config,
    /// The values that it sets: dotted key and place.
    pub set: Vec<(String, Place)>,
}

/// Why a configuration file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// There is none.
    #[error("there is no configuration file {}; create it, or name another", .0.display())]
    Missing(PathBuf),
    /// It cannot be read.
    #[error("the configuration {} cannot be read; {remedy}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What to do.
        remedy: &'static str,
        /// What the system says.
        source: io::Error,
    },
    /// It is too long to be a configuration.
    #[error(
        "the configuration {} is longer than {FILE_BYTES_MAX} bytes; is it the right file?",
        .0.display()
    )]
    TooLong(PathBuf),
    /// It holds bytes that are no UTF-8.
    #[error("{at}: the configuration is not UTF-8 from here on; save it as UTF-8")]
    NotText {
        /// The first of them.
        at: Place,
    },
    /// What it says is wrong, in these places.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Wrong(Vec<Problem>),
}

/// Something that is wrong in a configuration file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// It is not TOML.
    #[error("{at}: {message}")]
    Syntax {
        /// Where reading stopped.
        at: Place,
        /// What the TOML reader says.
        message: String,
    },
    /// A key that nothing reads.
    #[error("{at}: unknown key {name:?}{}; {remedy}", Within(table))]
    UnknownKey {
        /// Where it stands.
        at: Place,
        /// The key.
        name: String,
        /// The table in which it stands, with dots; empty for the file itself.
        table: String,
        /// The key that was probably meant, or those that there are.
        remedy: String,
    },
    /// A value that cannot be.
    #[error("{at}: {key}: {message}")]
    Value {
        /// Where it stands.
        at: Place,
        /// Its key, with dots.
        key: String,
        /// What is wrong with it. Never quotes what may be a secret.
        message: String,
    },
}

/// ` in [table]`, or nothing for the file itself.
struct Within<'a>(&'a str);

impl fmt::Display for Within<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, " in [{}]", self.0) }
    }
}

/// Reads a configuration file.
///
/// # Errors
///
/// [`FileError`]; [`FileError::Missing`] if there is none.
pub fn read(path: &Path) -> Result<Parsed, FileError> {
    let bytes = bytes(path).map_err(|source| unreadable(path, source))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(FileError::TooLong(path.to_owned()));
    }
    match String::from_utf8(bytes) {
        Ok(text) => parse(path, &text).map_err(FileError::Wrong),
        Err(why) => {
            let good = why.utf8_error().valid_up_to();
            let text = String::from_utf8_lossy(why.as_bytes());
            Err(FileError::NotText { at: Place::of_byte(path, &text, good) })
        }
    }
}

fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    // Opening a pipe waits for its other end, unless it is told not to.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let kind = file.metadata()?.file_type();
    if !kind.is_file() && !kind.is_dir() {
        let what = "it is a pipe, a socket or a device";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    }
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn unreadable(path: &Path, source: io::Error) -> FileError {
    let path = path.to_owned();
    let remedy = match source.kind() {
        io::ErrorKind::NotFound => return FileError::Missing(path),
        io::ErrorKind::PermissionDenied => "make it readable for you (chmod u+r, and its folders)",
        io::ErrorKind::IsADirectory | io::ErrorKind::InvalidInput => {
            "there must be a file in its place"
        }
        io::ErrorKind::NotADirectory => "a part of its path is a file, move that away",
        _ => "check the disk, or name another file with --config",
    };
    FileError::Unreadable { path, remedy, source }
}

/// Reads the text of a configuration file; `path` is for the places of what is wrong.
///
/// # Errors
///
/// Everything that is wrong, as far as reading came.
pub fn parse(path: &Path, text: &str) -> Result<Parsed, Vec<Problem>> {
    let at = |offset: usize| Place::of_byte(path, text, offset);
    let mut document = DeTable::parse(text).map_err(|why| {
        let offset = why.span().map_or(text.len(), |span| span.start);
        vec![Problem::Syntax { at: at(offset), message: one_line(why.message()) }]
    })?;
    let mut problems: Vec<(usize, Problem)> = Vec::new();
    for key in unknown::keys(document.get_ref()) {
        let span = key.span.clone();
        problems.push((span.start, unknown_key(at(span.start), key)));
        take_out(document.get_mut(), &span);
    }
    let mut entries = Vec::new();
    list(document.get_ref(), "", &mut entries);
    let keys = document.get_mut().remove(bindings::NAME);
    let mut config = Config::default();
    loop {
        let why = match Config::deserialize(toml::Deserializer::from(document.clone())) {
            Ok(read) => {
                config = read;
                break;
            }
            Err(why) => why,
        };
        let span = why.span().unwrap_or_default();
        let (at, key) = (at(span.start), key_at(&entries, &span));
        let message = one_line(why.message());
        problems.push((span.start, Problem::Value { at, key, message }));
        // Without it, what else is wrong is found too.
        if !take_out(document.get_mut(), &span) {
            break;
        }
    }
    match key_tables(path, text, keys) {
        Ok(tables) => config.keys = tables,
        Err((offset, problem)) => problems.push((offset, problem)),
    }
    if !problems.is_empty() {
        problems.sort_by_key(|(offset, _)| *offset);
        return Err(problems.into_iter().map(|(_, problem)| problem).collect());
    }
    let set = entries.into_iter().filter(|entry| entry.is_value);
    Ok(Parsed { config, set: set.map(|entry| (entry.key, at(entry.name.start))).collect() })
}

/// Takes what is wrong at `span` out of a document, with the rest of its key in a table of the first
/// level: what is left of that would be wrong only because a part is missing. Whether it was there.
fn take_out(document: &mut DeTable<'_>, span: &Range<usize>) -> bool {
    let Some(name) = holder(document, span) else { return false };
    if let Some(DeValue::Table(table)) = document.get_mut(name.as_str()).map(Spanned::get_mut)
        && let Some(key) = holder(table, span)
    {
        return table.remove(key.as_str()).is_some();
    }
    document.remove(name.as_str()).is_some()
}

/// The key whose name or value holds `span`, however far inside.
fn holder(table: &DeTable<'_>, span: &Range<usize>) -> Option<String> {
    let holds = |outer: Range<usize>| outer.start <= span.start && span.end <= outer.end;
    let found = table.iter().find(|(name, value)| {
        let inner = value.get_ref().as_table();
        holds(name.span())
            || holds(value.span())
            || inner.is_some_and(|inner| holder(inner, span).is_some())
    });
    found.map(|(name, _)| name.get_ref().to_string())
}

fn unknown_key(at: Place, key: UnknownKey) -> Problem {
    let remedy = match key.suggestion() {
        Some(meant) => format!("did you mean {meant:?}?"),
        None => format!("there are {}", key.known.join(", ")),
    };
    Problem::UnknownKey { at, name: key.name, table: key.table, remedy }
}

fn key_tables(
    path: &Path,
    text: &str,
    keys: Option<Spanned<DeValue<'_>>>,
) -> Result<Option<KeyTables>, (usize, Problem)> {
    let Some(keys) = keys else { return Ok(None) };
    match keys.get_ref() {
        DeValue::Table(table) if table.is_empty() => Ok(None),
        DeValue::Table(_) => Ok(Some(KeyTables { file: path.to_owned(), text: Arc::from(text) })),
        other => {
            let offset = keys.span().start;
            let problem = Problem::Value {
                at: Place::of_byte(path, text, offset),
                key: bindings::NAME.to_owned(),
                message: format!("invalid type: {}, expected a table", other.type_str()),
            };
            Err((offset, problem))
        }
    }
}

/// A key of the file, with the bytes of its name and of its value.
struct Entry {
    key: String,
    name: Range<usize>,
    value: Range<usize>,
    is_value: bool,
}

fn list(table: &DeTable<'_>, path: &str, entries: &mut Vec<Entry>) {
    for (name, value) in table {
        let key = unknown::join(path, name.get_ref());
        let inner = value.get_ref().as_table();
        entries.push(Entry {
            key: key.clone(),
            name: name.span(),
            value: value.span(),
            is_value: inner.is_none(),
        });
        if let Some(inner) = inner {
            list(inner, &key, entries);
        }
    }
}

/// The innermost key whose name or value holds `span`.
fn key_at(entries: &[Entry], span: &Range<usize>) -> String {
    let holds = |outer: &Range<usize>| outer.start <= span.start && span.end <= outer.end;
    let around = entries.iter().filter(|entry| holds(&entry.name) || holds(&entry.value));
    around.min_by_key(|entry| entry.value.len()).map_or_else(String::new, |entry| entry.key.clone())
}

/// A message of the TOML reader on one line; it may quote what a terminal would obey.
fn one_line(message: &str) -> String {
    let line = message.lines().collect::<Vec<_>>().join(", ");
    line.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::schema::SyncMode;
    use proptest::prelude::*;

    /// What is told about a file.
    fn told(text: &str) -> Vec<String> {
        let problems = parse(Path::new("config.toml"), text).expect_err("something is wrong");
        problems.iter().map(ToString::to_string).collect()
    }

    fn check_told(text: &str, expected: &[&str]) {
        assert_eq!(told(text), expected, "{text}");
    }

    #[test]
    fn everything_that_is_wrong_is_told_at_once_in_its_order() {
        let text = "[ui]\ntheme = 1\nmouze = true\n[providers.lab]\nkind = \"x\"\n\
                    [providers.hub]\nbase_url = 3\n[delete]\nkeep_days = -1\n";
        let told = told(text);
        let places: Vec<_> = told.iter().map(|told| told.split(' ').next()).collect();
        let expected = ["config.toml:2:9:", "config.toml:3:1:", "config.toml:5:8:"];
        assert_eq!(places.get(..3), Some(&expected.map(Some)[..]), "{told:#?}");
        assert_eq!(places.last(), Some(&Some("config.toml:9:13:")), "{told:#?}");
        assert_eq!(told.len(), 5, "{told:#?}");
    }

    #[test]
    fn what_a_file_says_is_laid_over_the_defaults_with_its_places() {
        let text = "[storage]\nsync = \"never\"\n\n[models.aliases]\n  work = \"lab/a/b\"\n";
        let parsed = parse(Path::new("config.toml"), text).expect("a good file");
        let mut config = Config::default();
        config.storage.sync = SyncMode::Never;
        let alias = "work".to_owned().try_into().expect("an alias");
        config.models.aliases.insert(alias, "lab/a/b".to_owned());
        let place = |line, column| Place { file: "config.toml".into(), line, column };
        let set = vec![
            ("models.aliases.work".to_owned(), place(5, 3)),
            ("storage.sync".to_owned(), place(2, 1)),
        ];
        assert_eq!(parsed, Parsed { config, set });
    }

    #[test]
    fn all_unknown_keys_are_told_at_once_with_what_was_meant() {
        check_told(
            "stroage = 1\nkyes = 1\n[storage]\n\"ä\" = 1\n[tools.env]\n  kep = []\n[providers.lab]\n\
             kind = \"openai-compatible\"\nbase_url = \"http://localhost\"\nkey = { evn = \"A\" }\n\
             timeouts.ilde_s = 4\n",
            &[
                "config.toml:1:1: unknown key \"stroage\"; did you mean \"storage\"?",
                "config.toml:2:1: unknown key \"kyes\"; did you mean \"keys\"?",
                "config.toml:4:1: unknown key \"ä\" in [storage]; there are format, sync, torn_tail",
                "config.toml:6:3: unknown key \"kep\" in [tools.env]; did you mean \"keep\"?",
                "config.toml:10:9: unknown key \"evn\" in [providers.lab.key]; did you mean \"env\"?",
                "config.toml:11:10: unknown key \"ilde_s\" in [providers.lab.timeouts]; \
                 did you mean \"idle_s\"?",
            ],
        );
    }

    #[test]
    fn a_value_that_cannot_be_is_told_with_its_key_and_place() {
        for (text, expected) in [
            (
                "[storage]\nsync = \"alwys\"",
                "config.toml:2:8: storage.sync: unknown variant `alwys`, expected one of \
                 `barrier`, `always`, `never`",
            ),
            (
                "[ui]\nmouse = \"no\"",
                "config.toml:2:9: ui.mouse: invalid type: string \"no\", expected a boolean",
            ),
            (
                "agents.max_model_calls = 0",
                "config.toml:1:26: agents.max_model_calls: invalid value: integer `0`, expected a \
                 whole number from 1 to 10000",
            ),
            (
                "log.keep_days = 1.5",
                "config.toml:1:17: log.keep_days: invalid type: floating point `1.5`, expected a \
                 whole number from 1 to 3650",
            ),
            (
                "ui.theme = \"\\u001b[31m\"",
                "config.toml:1:12: ui.theme: unknown variant `\u{fffd}[31m`, expected one of \
                 `auto`, `light`, `dark`",
            ),
            ("tools = 3", "config.toml:1:9: tools: invalid type: integer `3`, expected a table"),
            ("keys = 3", "config.toml:1:8: keys: invalid type: integer, expected a table"),
            (
                "[tools.env]\nkeep = [\"A\", \"B C\"]",
                "config.toml:2:8: tools.env.keep: not the name of an environment variable \
                 (letters, digits and _)",
            ),
            (
                "[models.aliases]\n\"a/b\" = \"lab/b\"",
                "config.toml:2:1: models.aliases.\"a/b\": not a short name for a model (no slash, \
                 no spaces)",
            ),
            (
                "[providers.\"a/b\"]",
                "config.toml:1:12: providers.\"a/b\": not a name for a provider (letters, digits, -, _ \
                 and .)",
            ),
            (
                "[providers.lab]\nkind = \"openai-compatible\"",
                "config.toml:1:1: providers.lab: missing field `base_url`",
            ),
        ] {
            check_told(text, &[expected]);
        }
    }

    #[test]
    fn what_is_no_toml_is_told_with_its_place() {
        check_told(
            "[ui]\ntheme = dark\n",
            &["config.toml:2:9: string values must be quoted, expected literal string"],
        );
        check_told("[ui]\nmouse = true\nmouse = true", &["config.toml:3:1: duplicate key"]);
        check_told("[ui", &["config.toml:1:4: unclosed table, expected `]`"]);
    }

    #[test]
    fn a_key_in_the_wrong_place_is_never_quoted() {
        let lab =
            "[providers.lab]\nkind = \"openai-compatible\"\nbase_url = \"http://localhost\"\n";
        for line in [
            "key = \"sk-123\"",
            "key = { env = \"sk-123\" }",
            "key = { command = [] , env = \"sk-123\" }",
            "key = { command = \"sk-123\" }",
            "key = [\"sk-123\"]",
            "headers = \"sk-123\"",
            "headers = { A = \"sk-123\\n\" }",
            "headers = { A = { b = \"sk-123\" } }",
            "base_url = \"sk-123\"",
        ] {
            let told = told(
                &format!("{lab}{line}\n")
                    .replace("base_url = \"http://localhost\"\nbase_url", "base_url"),
            );
            assert!(!told.concat().contains("sk-123"), "{told:?}");
        }
        check_told(
            &format!("{lab}key = \"sk-123\""),
            &["config.toml:4:7: providers.lab.key: invalid type: a text, expected { env = \
               \"NAME\" } or { command = [\"program\", \"argument\"] }; a key itself never stands in \
               this file"],
        );
    }

    #[test]
    fn key_tables_are_kept_with_their_places() {
        let text = "[keys.list]\n\"Ctrl-X\" = \"anything\"\n";
        let parsed = parse(Path::new("config.toml"), text).expect("a good file");
        let keys = parsed.config.keys.expect("key tables");
        let table = keys.table();
        let list = table["list"].get_ref().as_table().expect("a table");
        assert_eq!(list["Ctrl-X"].get_ref().as_str(), Some("anything"));
        assert_eq!(keys.text.get(list["Ctrl-X"].span()), Some("\"anything\""));
        assert_eq!(keys.file, Path::new("config.toml"));
    }

    #[test]
    fn a_file_that_cannot_be_read_says_why_and_what_to_do() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("config.toml");
        let told = |path: &Path| {
            let why = read(path).expect_err("not readable");
            let source = std::error::Error::source(&why).map(|source| format!(": {source}"));
            format!("{why}{}", source.unwrap_or_default())
                .replace(&folder.path().display().to_string(), "")
        };
        assert_eq!(
            told(&path),
            "there is no configuration file /config.toml; create it, or name another"
        );
        assert_eq!(
            told(folder.path()),
            "the configuration  cannot be read; there must be a file in its place: Is a directory \
             (os error 21)"
        );
        std::fs::write(&path, b"[ui]\n# caf\xe9\n").expect("written");
        assert_eq!(
            told(&path),
            "/config.toml:2:6: the configuration is not UTF-8 from here on; save it as UTF-8"
        );
        assert_eq!(
            told(&path.join("below")),
            "the configuration /config.toml/below cannot be read; a part of its path is a file, \
             move that away: Not a directory (os error 20)"
        );
        std::fs::write(&path, "#".repeat(1024 * 1024 + 1)).expect("written");
        assert_eq!(
            told(&path),
            "the configuration /config.toml is longer than 1048576 bytes; is it the right file?"
        );
    }

    /// Lines that are near to a configuration.
    fn line() -> impl Strategy<Value = String> {
        prop_oneof![
            Just("[ui]".to_owned()),
            Just("[providers.lab]".to_owned()),
            "\\[(storage|tools\\.env|keys\\.list|models\\.aliases|x)\\]",
            "(sync|key|mouse|keep|\"ä\"|a\\.b) = (true|3|\"never\"|\\[\\]|\\{ env = \"A\" \\}|)",
            ".{0,20}",
        ]
    }

    proptest! {
        #[test]
        fn every_problem_of_any_text_lies_inside_it(lines in prop::collection::vec(line(), 0..12)) {
            let text = lines.join("\n");
            if let Err(problems) = parse(Path::new("config.toml"), &text) {
                prop_assert!(!problems.is_empty());
                for problem in problems {
                    let (Problem::Syntax { at, .. }
                    | Problem::UnknownKey { at, .. }
                    | Problem::Value { at, .. }) = &problem;
                    let line = text.split('\n').nth(at.line - 1);
                    prop_assert!(line.is_some_and(|line| at.column <= line.chars().count() + 1));
                }
            }
        }
    }
}
