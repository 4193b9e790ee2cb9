//! Lines that are no events: what is missing, of the wrong type or out of range is refused when the
//! line is parsed, and the refusal names the cause.

use serde_json::{Value, json};
use turnstile::domain::event::LineError;

use crate::domain_golden::{Field, Fields, Found, GoldenLine, LogSort, golden_lines};

fn check_malformed(log: LogSort, line: &Value, cause: &str) {
    match log.read(line.to_string().as_bytes()) {
        Err(error @ LineError::Malformed(_)) => {
            assert!(error.to_string().contains(cause), "{error} names no {cause:?}: {line}");
        }
        other => panic!("{other:?} for {line}"),
    }
}

fn golden_fields(table: &Fields) -> impl Iterator<Item = (GoldenLine, Found)> {
    let with_fields = |golden: GoldenLine| {
        let fields = golden.fields(table);
        fields.into_iter().map(move |field| {
            let GoldenLine { log, kind, line } = &golden;
            (GoldenLine { log: *log, kind: kind.clone(), line: line.clone() }, field)
        })
    };
    golden_lines().into_iter().flat_map(with_fields)
}

/// The line without the field at `pointer`.
fn without(mut line: Value, pointer: &str) -> Value {
    let (parent, name) = pointer.rsplit_once('/').expect("a pointer");
    let parent = line.pointer_mut(parent).and_then(Value::as_object_mut).expect("an object");
    parent.shift_remove(name).expect("the field");
    line
}

/// The line with `value` in the field at `pointer`.
fn with(mut line: Value, pointer: &str, value: Value) -> Value {
    *line.pointer_mut(pointer).expect("the field") = value;
    line
}

#[test]
fn a_line_without_a_required_field_is_refused() {
    let table = Fields::load();
    let mut checked = 0;
    for (golden, found) in golden_fields(&table).filter(|(_, found)| found.field.need == "required")
    {
        let cause = match &*found.place {
            "agent/requested/agentId" | "agent/requested/inline" => {
                "a requested agent has neither `agentId` nor `inline`".to_owned()
            }
            "agent/resolved/systemPrompt"
            | "agent/resolved/tools"
            | "agent/resolved/inheritedFrom" => {
                "a resolved agent has neither `systemPrompt` and `tools` nor `inheritedFrom`"
                    .to_owned()
            }
            place => format!("missing field `{}`", place.rsplit('/').next().unwrap_or(place)),
        };
        check_malformed(golden.log, &without(golden.value(), &found.pointer), &cause);
        checked += 1;
    }
    assert!(checked > 300, "{checked}");
}

#[test]
fn a_line_without_an_optional_field_is_read() {
    let table = Fields::load();
    for (golden, found) in golden_fields(&table).filter(|(_, found)| found.field.need == "optional")
    {
        let line = without(golden.value(), &found.pointer).to_string();
        assert!(golden.log.read(line.as_bytes()).is_ok(), "{line}");
    }
}

/// Values that a field of this shape cannot hold, and what the refusal calls them.
fn wrong_values(field: &Field, now: &Value) -> Vec<Value> {
    let null = || json!(null);
    match &*field.shape {
        "text" => vec![null(), json!(5), json!(true), json!([]), json!({})],
        "text-or-null" => vec![json!(5), json!(false), json!([]), json!({})],
        "word" => vec![
            null(),
            json!(5),
            json!("other"),
            json!([]),
            json!({now.as_str().unwrap_or(""): null}),
        ],
        "time" => {
            vec![null(), json!(5), json!("yesterday"), json!("2026-02-30T00:00:00Z"), json!({})]
        }
        "number" => vec![null(), json!("1"), json!(-1), json!(1.5), json!([]), json!({})],
        "bool" => vec![null(), json!(0), json!("true"), json!([])],
        "object" => {
            let fields = now.as_object().expect("an object").values().cloned().collect();
            vec![null(), json!(5), json!("x"), json!([]), Value::Array(fields)]
        }
        "list" => vec![null(), json!(5), json!("x"), json!({})],
        "map" => vec![null(), json!(5), json!("x"), json!([])],
        "text-or-list" => vec![null(), json!(5), json!({})],
        "object-or-list" => vec![null(), json!(5), json!("x")],
        "json" => Vec::new(),
        other => panic!("no such shape: {other}"),
    }
}

#[test]
fn a_line_with_a_field_of_the_wrong_type_is_refused() {
    let table = Fields::load();
    let mut checked = 0;
    for (golden, found) in golden_fields(&table) {
        let line = golden.value();
        let now = line.pointer(&found.pointer).expect("the field");
        for wrong in wrong_values(&found.field, now) {
            check_malformed(golden.log, &with(line.clone(), &found.pointer, wrong), "");
            checked += 1;
        }
    }
    assert!(checked > 2_000, "{checked}");
}

#[test]
fn what_holds_anything_may_hold_null() {
    let table = Fields::load();
    for (golden, found) in golden_fields(&table).filter(|(_, found)| found.field.shape == "json") {
        let line = with(golden.value(), &found.pointer, json!(null)).to_string();
        assert_eq!(golden.log.read(line.as_bytes()).expect(&line), line);
    }
}
