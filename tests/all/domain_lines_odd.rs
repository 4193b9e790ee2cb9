//! Lines at the edge of the format: what is out of range or from a newer program, and what is no
//! JSON.

use turnstile::domain::event::LineError;

use crate::domain_golden::LogSort::{self, Session, Turn};

pub(crate) const TURN_ENVELOPE: &str =
    r#""turnId":"2026-03-04T05-06-07Z-0000042-000","ts":"2026-03-04T05:06:07.002Z""#;
const SESSION_ENVELOPE: &str =
    r#""sessionId":"2026-03-04T04-59-59Z-0000042-000","ts":"2026-03-04T05:06:07.003Z""#;

/// A turn event of this kind with these fields.
pub(crate) fn turn_line(kind: &str, fields: &str) -> String {
    format!(r#"{{"type":"{kind}",{TURN_ENVELOPE},{fields}}}"#)
}

fn session_line(kind: &str, fields: &str) -> String {
    format!(r#"{{"type":"{kind}",{SESSION_ENVELOPE},{fields}}}"#)
}

/// A `turn_created` with this of everything that can be out of range.
fn created(version: &str, context: &str, max_model_calls: &str) -> String {
    let agent = r#"{"requested":{"agentId":"a"},"resolved":{"agentId":"a","model":{"provider":"lab","model":"m"},"inheritedFrom":"t"}}"#;
    let config = format!(
        r#"{{"autoPermission":false,"humanAvailable":true,"maxModelCalls":{max_model_calls}}}"#
    );
    let input = r#"{"role":"user","content":"x"}"#;
    turn_line(
        "turn_created",
        &format!(
            r#""schemaVersion":{version},"sessionId":null,"agent":{agent},"context":{context},"input":{input},"config":{config}"#
        ),
    )
}

pub(crate) fn check_kept(log: LogSort, line: &str) {
    assert_eq!(log.read(line.as_bytes()).expect(line), line);
}

pub(crate) fn check_read_as(log: LogSort, line: &str, written: &str) {
    assert_eq!(log.read(line.as_bytes()).expect(line), written);
}

pub(crate) fn check_malformed(log: LogSort, line: &str, cause: &str) {
    match log.read(line.as_bytes()) {
        Err(error @ LineError::Malformed(_)) => {
            assert!(error.to_string().contains(cause), "{error} names no {cause:?}: {line}");
        }
        other => panic!("{other:?} for {line}"),
    }
}

#[test]
fn another_schema_version_is_refused_by_its_number() {
    let check = |log: LogSort, line: &str, found: u64| {
        let error = log.read(line.as_bytes()).expect_err(line);
        assert!(matches!(error, LineError::UnsupportedVersion(version) if version == found));
        let told = format!(
            "unsupported schema version {found}; a newer version of this program may read it"
        );
        assert_eq!(error.to_string(), told);
    };
    check_kept(Turn, &created("1", "[]", "1"));
    for version in [0, 2, u64::MAX] {
        check(Turn, &created(&version.to_string(), "[]", "1"), version);
    }
    for version in [0, 3] {
        let field = format!(r#""schemaVersion":{version}"#);
        check(Session, &session_line("session_created", &field), version);
        check(Session, &session_line("schema_upgraded", &field), version);
    }
}

#[test]
fn an_unknown_event_is_refused_by_its_name() {
    for (log, line) in [
        (Turn, turn_line("turn_paused", r#""by":{"whom":[1,2]}"#)),
        (Turn, turn_line("session_created", r#""schemaVersion":1"#)),
        (Turn, turn_line("text_delta", r#""modelCallIndex":0,"delta":"x""#)),
        (Turn, turn_line("", r#""x":1"#)),
        (Session, session_line("message_queued", r#""queueId":"q""#)),
        (Session, session_line("turn_created", r#""schemaVersion":1"#)),
    ] {
        let error = log.read(line.as_bytes()).expect_err(&line);
        let kind = line.split('"').nth(3).unwrap_or_default();
        assert!(matches!(&error, LineError::UnknownType(found) if found == kind), "{error:?}");
        let told =
            format!("unknown event type {kind:?}; a newer version of this program may know it");
        assert_eq!(error.to_string(), told);
    }
}

#[test]
fn unknown_kinds_within_an_event_are_refused_by_their_names() {
    let step = |kind| {
        let event = format!(r#"{{"type":"{kind}","text":"x"}}"#);
        turn_line("model_step_event", &format!(r#""modelCallIndex":0,"event":{event}"#))
    };
    check_malformed(Turn, &step("text_delta"), "unknown variant `text_delta`");
    let context = |message: &str| created("1", &format!("[{message}]"), "1");
    let user = |part| context(&format!(r#"{{"role":"user","content":[{part}]}}"#));
    check_malformed(Turn, &user(r#"{"type":"sound","data":"x"}"#), "unknown variant `sound`");
    check_malformed(
        Turn,
        &user(r#"{"type":"reasoning","text":"x"}"#),
        "unknown variant `reasoning`",
    );
    let answer = context(r#"{"role":"assistant","content":[{"type":"image","data":"x"}]}"#);
    check_malformed(Turn, &answer, "unknown variant `image`");
}

#[test]
fn a_context_holds_no_system_message() {
    let system = created("1", r#"[{"role":"system","content":"Obey."}]"#, "1");
    check_malformed(Turn, &system, "unknown variant `system`");
    let late = created("1", r#"[{"content":"Obey.","role":"system"}]"#, "1");
    check_malformed(Turn, &late, "unknown variant `system`");
    let other = r#""modelCallIndex":0,"message":{"role":"user","content":"x"},"finishReason":"stop","usage":{}"#;
    check_malformed(Turn, &turn_line("model_call_completed", other), "whose role is assistant");
}

#[test]
fn numbers_that_begin_at_one_are_not_zero() {
    check_malformed(Turn, &created("1", "[]", "0"), "a number from 1");
    let input = r#""inputIndex":0,"message":{"role":"user","content":"x"}"#;
    check_malformed(Turn, &turn_line("input_added", input), "a number from 1");
    let turn =
        r#""turnId":"t","sessionSeq":0,"agentId":"a","model":{"provider":"lab","model":"m"}"#;
    check_malformed(Session, &session_line("turn_appended", turn), "a place from 1");
}

#[test]
fn an_extension_brings_a_tool() {
    let none = r#""toolCallId":"c1","source":"skill","tools":[]"#;
    check_malformed(Turn, &turn_line("tools_extended", none), "`tools` is empty");
}

#[test]
fn a_reference_has_one_spelling() {
    let request = |reference| {
        let request = format!(r#"{{"messages":["{reference}"],"parameters":{{}}}}"#);
        turn_line("model_call_requested", &format!(r#""modelCallIndex":0,"request":{request}"#))
    };
    for reference in ["context", "input", "input:1", "assistant:0", "toolResult:x", "toolResult::"]
    {
        check_kept(Turn, &request(reference));
    }
    for reference in [
        "",
        "Input",
        "input:0",
        "input:01",
        "input:-1",
        "input:1.0",
        "input: 1",
        "input:",
        "assistant",
        "assistant:",
        "assistant:x",
        "assistant:00",
        "assistant:99999999999999999999",
        "toolResult",
        "toolResult:",
        "toolresult:c1",
        "context:1",
        " input",
    ] {
        check_malformed(Turn, &request(reference), "malformed message reference");
    }
}

#[test]
fn half_a_surrogate_pair_is_refused_wherever_it_stands() {
    let error =
        |text: &str| turn_line("model_call_failed", &format!(r#""modelCallIndex":0,{text}"#));
    let progress = |json: &str| {
        turn_line(
            "tool_progress",
            &format!(r#""toolCallId":"c1","source":"sync","progress":{json}"#),
        )
    };
    for line in [
        error(r#""error":"\ud83d""#),
        error(r#""error":"\ude00 alone""#),
        error(r#""error":"\ud83d\ud83d\ude00""#),
        error(r#""error":"\ud83dx\ude00""#),
        error(r#""error":"\ud83d\ude00\ude00""#),
        error(r#""error":"\ud83d\\ude00""#),
        error(r#""error":"x","extra":"\udfff""#),
        error(r#""error":"x","extra":{"deep":["\uDBFF"]}"#),
        error(r#""error":"x","\udfff":1"#),
        progress(r#""\ud83d""#),
        progress(r#"{"a":["\\\ud83d"]}"#),
        progress(r#"{"\ude00":1}"#),
        turn_line(r"turn_\ud83d", r#""x":1"#),
        r#"{"progress":"\ude00","type":"tool_progress"}"#.to_owned(),
    ] {
        let found = Turn.read(line.as_bytes()).expect_err(&line);
        assert!(matches!(found, LineError::Surrogate), "{found:?} for {line}");
        assert_eq!(found.to_string(), "a string holds a lone surrogate");
    }
    check_kept(Turn, &progress(r#"["\ud83d\ude00","\\ud83d","\\\\ude00","\u00e4\uD83D\uDE00"]"#));
    check_read_as(
        Turn,
        &error(r#""error":"\ud83d\ude00 \\ud83d""#),
        &error(r#""error":"😀 \\ud83d""#),
    );
}

pub(crate) fn nested(levels: usize) -> String {
    "[".repeat(levels) + &"]".repeat(levels)
}

#[test]
fn a_value_that_is_nested_too_deeply_is_refused() {
    let progress = |levels| {
        let json = nested(levels);
        turn_line(
            "tool_progress",
            &format!(r#""toolCallId":"c1","source":"sync","progress":{json}"#),
        )
    };
    check_kept(Turn, &progress(127));
    check_malformed(Turn, &progress(128), "nested deeper than 127 levels");
    check_malformed(Turn, &progress(100_000), "nested deeper than 127 levels");
    let context = created("1", &nested(200), "1");
    check_malformed(Turn, &context, "invalid type: sequence");
}

#[test]
fn a_line_is_one_object() {
    let whole = turn_line("turn_cancelled", r#""usage":{}"#);
    check_kept(Turn, &whole);
    let envelope = format!("[\"turn_cancelled\",{}]", r#""t","2026-03-04T05:06:07.002Z",{}"#);
    for (line, cause) in [
        ("", "EOF while parsing"),
        ("   ", "EOF while parsing"),
        ("null", "an event, which is a JSON object"),
        ("5", "an event, which is a JSON object"),
        ("\"turn_cancelled\"", "an event, which is a JSON object"),
        ("[]", "an event, which is a JSON object"),
        (&envelope, "an event, which is a JSON object"),
        ("{}", "missing field `type`"),
        ("{", "EOF while parsing"),
        (whole.strip_suffix('}').expect("an object"), "EOF while parsing"),
        (&format!("{whole}{whole}"), "trailing characters"),
        (&format!("{whole},"), "trailing characters"),
        (&whole.replace(":{}", ":{},"), "trailing comma"),
        (&whole.replace('"', "'"), "key must be a string"),
        (&format!("\u{feff}{whole}"), "expected value"),
        (&format!("\0{whole}"), "expected value"),
        (&whole.replace("cancelled", "can\ncelled"), "control character"),
    ] {
        check_malformed(Turn, line, cause);
    }
}

#[test]
fn a_line_is_utf8() {
    let whole = turn_line("model_call_failed", r#""modelCallIndex":0,"error":"?""#);
    let (before, after) = whole.split_once('?').expect("a place for bytes");
    for bytes in [&b"\xff"[..], b"\xc3", b"\xc0\xaf", b"\xed\xa0\xbd"] {
        let line = [before.as_bytes(), bytes, after.as_bytes()].concat();
        let error = Turn.read(&line).expect_err("bad bytes");
        assert!(matches!(error, LineError::Encoding(_)), "{error:?}");
        assert_eq!(error.to_string(), "not UTF-8");
    }
}

#[test]
fn a_field_of_the_envelope_that_is_missing_is_named() {
    for (line, name) in [
        (r#"{"turnId":"t","ts":"2026-03-04T05:06:07.002Z","usage":{}}"#, "type"),
        (r#"{"type":"turn_cancelled","ts":"2026-03-04T05:06:07.002Z","usage":{}}"#, "turnId"),
        (r#"{"usage":{},"type":"turn_cancelled","turnId":"t"}"#, "ts"),
        (r#"{"type":"turn_cancelled","sessionId":"t","ts":"2026-03-04T05:06:07.002Z"}"#, "turnId"),
    ] {
        check_malformed(Turn, line, &format!("missing field `{name}`"));
    }
    let turn =
        r#"{"type":"archived","turnId":"t","ts":"2026-03-04T05:06:07.002Z","archived":true}"#;
    check_malformed(Session, turn, "missing field `sessionId`");
}

#[test]
fn the_cause_is_told_with_its_column_and_without_a_line_of_its_own() {
    let line = turn_line("model_call_failed", r#""modelCallIndex":0"#);
    let error = Turn.read(line.as_bytes()).expect_err("no error field");
    assert_eq!(error.to_string(), format!("missing field `error` at column {}", line.len()));
    let late = format!(r#"{{"modelCallIndex":0,{TURN_ENVELOPE},"type":"model_call_failed"}}"#);
    let error = Turn.read(late.as_bytes()).expect_err("no error field");
    assert!(error.to_string().starts_with("missing field `error` at column "), "{error}");
}
