//! The golden lines: every event with every field, written by hand from the tables of the design,
//! and the table of fields that they are held to.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::Value;
use turnstile::domain::event::{Event, LineError};
use turnstile::domain::json::Json;
use turnstile::domain::permission::plan::PermissionRequest;
use turnstile::domain::session::event::SessionFact;
use turnstile::domain::turn::event::TurnFact;

/// A line of a golden file.
pub(crate) struct GoldenLine {
    pub(crate) log: LogSort,
    pub(crate) kind: String,
    pub(crate) line: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogSort {
    Turn,
    Session,
}

impl LogSort {
    /// The line as it is written again, or why it is none.
    pub(crate) fn read(self, line: &[u8]) -> Result<String, LineError> {
        match self {
            Self::Turn => Event::<TurnFact>::parse_line(line).map(|event| event.to_line()),
            Self::Session => Event::<SessionFact>::parse_line(line).map(|event| event.to_line()),
        }
    }

    fn section(self) -> &'static str {
        match self {
            Self::Turn => "every turn event",
            Self::Session => "every session event",
        }
    }
}

/// All golden lines; a file holds the variants of the event that it is named after.
pub(crate) fn golden_lines() -> Vec<GoldenLine> {
    let read = |log, folder| {
        let files = fs::read_dir(golden_folder().join(folder)).expect("the golden folder");
        files.flat_map(move |file| {
            let path = file.expect("a golden file").path();
            let kind = path.file_stem().and_then(|stem| stem.to_str()).expect("a name").to_owned();
            let text = fs::read_to_string(&path).expect("text");
            let lines: Vec<_> = text.lines().map(str::to_owned).collect();
            lines.into_iter().map(move |line| GoldenLine { log, kind: kind.clone(), line })
        })
    };
    read(LogSort::Turn, "turn").chain(read(LogSort::Session, "session")).collect()
}

fn golden_folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/events"))
}

/// What the table says of a field.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) need: String,
    pub(crate) shape: String,
}

impl Field {
    fn is_opaque(&self) -> bool {
        self.shape == "json" || self.shape == "map"
    }
}

/// The table of fields, by event and place.
pub(crate) struct Fields(BTreeMap<(String, String), Field>);

impl Fields {
    pub(crate) fn load() -> Self {
        let text = fs::read_to_string(golden_folder().join("fields.txt")).expect("the table");
        let (mut section, mut fields) = (String::new(), BTreeMap::new());
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                name.clone_into(&mut section);
                continue;
            }
            let [place, need, shape] = line.split_whitespace().collect::<Vec<_>>()[..] else {
                panic!("place, need and shape, not {line:?}");
            };
            let field = Field { need: need.to_owned(), shape: shape.to_owned() };
            fields.insert((section.clone(), place.to_owned()), field);
        }
        Self(fields)
    }

    pub(crate) fn get(&self, golden: &GoldenLine, place: &str) -> Option<&Field> {
        let of = |section: &str| self.0.get(&(section.to_owned(), place.to_owned()));
        of(&golden.kind).or_else(|| of(golden.log.section()))
    }
}

/// A field of a line: where it is (a JSON pointer) and which place of the table that is.
pub(crate) struct Found {
    pub(crate) pointer: String,
    pub(crate) place: String,
    pub(crate) field: Field,
}

impl GoldenLine {
    pub(crate) fn value(&self) -> Value {
        serde_json::from_str(&self.line).expect("a golden line is JSON")
    }

    /// All fields down to those that are kept as they came; each has to be in the table.
    pub(crate) fn fields(&self, table: &Fields) -> Vec<Found> {
        let mut found = Vec::new();
        self.walk(&self.value(), ("", ""), table, &mut found);
        found
    }

    fn walk(&self, value: &Value, at: (&str, &str), table: &Fields, found: &mut Vec<Found>) {
        let children: Vec<(String, String, &Value)> = match value {
            Value::Object(fields) => {
                fields.iter().map(|(name, value)| (name.clone(), name.clone(), value)).collect()
            }
            Value::Array(items) => (0..)
                .zip(items)
                .map(|(index, item): (usize, _)| (index.to_string(), "*".to_owned(), item))
                .collect(),
            _ => Vec::new(),
        };
        for (step, name, child) in children {
            let pointer = format!("{}/{step}", at.0);
            let place = if at.1.is_empty() { name } else { format!("{}/{name}", at.1) };
            let field = table.get(self, &place).unwrap_or_else(|| {
                panic!("{place} of {} is not in the table of fields", self.kind)
            });
            if !field.is_opaque() {
                self.walk(child, (&pointer, &place), table, found);
            }
            found.push(Found { pointer, place, field: field.clone() });
        }
    }
}

#[test]
fn every_golden_line_comes_back_byte_for_byte() {
    for golden in golden_lines() {
        let read = golden.log.read(golden.line.as_bytes()).expect(&golden.line);
        assert_eq!(read, golden.line);
        assert_eq!(golden.value()["type"], golden.kind.as_str());
    }
}

#[test]
fn every_stored_permission_request_comes_back_byte_for_byte() {
    for line in include_str!("../golden/permission_requests.jsonl").lines() {
        let request: PermissionRequest = Json::parse(line).expect(line).read().expect(line);
        assert_eq!(request.to_json().get(), line);
    }
}

/// One name per variant: a new event does not compile here until it has a golden file.
fn golden_file_of(fact: &TurnFact) -> &'static str {
    match fact {
        TurnFact::Created(_) => "turn_created",
        TurnFact::ModelCallRequested(_) => "model_call_requested",
        TurnFact::ModelStep(_) => "model_step_event",
        TurnFact::ModelCallCompleted(_) => "model_call_completed",
        TurnFact::ModelCallFailed(_) => "model_call_failed",
        TurnFact::PermissionRequired(_) => "tool_permission_required",
        TurnFact::PermissionClassified(_) => "tool_permission_classified",
        TurnFact::ClassificationFailed(_) => "tool_permission_classification_failed",
        TurnFact::PermissionResolved(_) => "tool_permission_resolved",
        TurnFact::InvocationRequested(_) => "tool_invocation_requested",
        TurnFact::ToolProgress(_) => "tool_progress",
        TurnFact::ToolResult(_) => "tool_result",
        TurnFact::ToolsExtended(_) => "tools_extended",
        TurnFact::InputAdded(_) => "input_added",
        TurnFact::Suspended(_) => "turn_suspended",
        TurnFact::Completed(_) => "turn_completed",
        TurnFact::Failed(_) => "turn_failed",
        TurnFact::Cancelled(_) => "turn_cancelled",
    }
}

fn golden_file_of_session(fact: &SessionFact) -> &'static str {
    match fact {
        SessionFact::Created(_) => "session_created",
        SessionFact::TurnAppended(_) => "turn_appended",
        SessionFact::TitleChanged(_) => "title_changed",
        SessionFact::SchemaUpgraded(_) => "schema_upgraded",
        SessionFact::GrantAdded(_) => "permission_grant_added",
        SessionFact::GrantRemoved(_) => "permission_grant_removed",
        SessionFact::Compacted(_) => "compacted",
        SessionFact::Archived(_) => "archived",
    }
}

#[test]
fn every_event_has_a_golden_file_of_its_name() {
    let mut kinds = BTreeSet::new();
    for golden in golden_lines() {
        let line = golden.line.as_bytes();
        let named = match golden.log {
            LogSort::Turn => golden_file_of(&Event::parse_line(line).expect("a turn event").fact),
            LogSort::Session => {
                golden_file_of_session(&Event::parse_line(line).expect("a session event").fact)
            }
        };
        assert_eq!(named, golden.kind);
        kinds.insert(golden.kind);
    }
    assert_eq!(kinds.len(), 18 + 8);
}

#[test]
fn every_field_of_the_table_stands_in_a_golden_line_and_every_optional_one_is_left_out_in_one() {
    let table = Fields::load();
    let (mut seen, mut left_out) = (BTreeSet::new(), BTreeSet::new());
    for golden in golden_lines() {
        let value = golden.value();
        let found = golden.fields(&table);
        for (kind, place) in table.0.keys().filter(|(kind, _)| *kind == golden.kind) {
            let (parent, name) = place.rsplit_once('/').unwrap_or(("", place));
            let parents = found.iter().filter(|it| it.place == parent).map(|it| &*it.pointer);
            let mut parents = parents.chain(parent.is_empty().then_some(""));
            if parents.any(|at| value.pointer(at).is_some_and(|it| it.get(name).is_none())) {
                left_out.insert((kind.clone(), place.clone()));
            }
        }
        for field in found {
            let known = table.0.contains_key(&(golden.kind.clone(), field.place.clone()));
            let section = if known { &*golden.kind } else { golden.log.section() };
            seen.insert((section.to_owned(), field.place));
        }
    }
    let all: BTreeSet<_> = table.0.keys().cloned().collect();
    assert_eq!(all.difference(&seen).collect::<Vec<_>>(), Vec::<&(String, String)>::new());
    let optional = table.0.iter().filter(|(_, field)| field.need == "optional");
    let never_absent: Vec<_> =
        optional.map(|(at, _)| at).filter(|at| !left_out.contains(*at)).collect();
    assert_eq!(never_absent, Vec::<&(String, String)>::new());
}
