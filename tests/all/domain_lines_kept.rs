//! Spellings of lines that other programs may use: what is read as the same event, and what comes
//! back byte for byte.

use crate::domain_golden::LogSort::Turn;
use crate::domain_lines_odd::{
    TURN_ENVELOPE, check_kept, check_malformed, check_read_as, nested, turn_line,
};

#[test]
fn what_is_not_known_is_ignored() {
    let extra = |json: &str| {
        let fields = format!(r#""x":{json},"usage":{{"y":{json}}},"reason":"r","\u007a":{json}"#);
        turn_line("turn_cancelled", &fields)
    };
    let written = turn_line("turn_cancelled", r#""reason":"r","usage":{}"#);
    for json in ["null", "-1e400", r#""\ud83d\ude00""#, r#"{"type":"turn_failed","ts":5}"#, "[[]]"]
    {
        check_read_as(Turn, &extra(json), &written);
    }
    check_read_as(Turn, &extra(&nested(100_000)), &written);
}

#[test]
fn opaque_values_keep_their_spelling_and_lose_the_space_between_tokens() {
    let line = |json: &str, options: &str| {
        let message = format!(r#"{{"role":"assistant","content":"","providerOptions":{options}}}"#);
        let fields = format!(
            r#""modelCallIndex":0,"message":{message},"finishReason":"stop","usage":{{}},"providerMetadata":{json}"#
        );
        turn_line("model_call_completed", &fields)
    };
    for json in [
        "1.50",
        "1e2",
        "1E+2",
        "-0",
        "-0.0",
        "12345678901234567890",
        "123456789012345678901234567890",
        "1e400",
        "0.1e-7",
        "null",
        "true",
        r#""\/\u0041\u00e4ä\b\f 😀\ud83d\ude00""#,
        r#"{"a":1,"a":2}"#,
        r#"{"":{"\u0000":[]}}"#,
        r#"" spaces  stay\t""#,
    ] {
        check_kept(Turn, &line(json, &format!(r#"{{"lab":{{"k":{json}}}}}"#)));
    }
    let spaced = line(
        "\t{ \"a\" : [ 1.50 ,\r\n\"x \\\" y\" ] }  ",
        " { \"lab\" : { \"k\" : 1.0 , \"\\\\\" : \" \" } } ",
    );
    let written = line(r#"{"a":[1.50,"x \" y"]}"#, r#"{"lab":{"k":1.0,"\\":" "}}"#);
    check_read_as(Turn, &spaced, &written);
}

#[test]
fn ids_are_any_text() {
    let odd = r#""a\"b\n\u0000 / 🦀""#;
    let envelope = format!(r#""turnId":{odd},"ts":"2026-03-04T05:06:07.002Z""#);
    let progress = format!(r#""toolCallId":{odd},"source":"sync","progress":1"#);
    check_kept(Turn, &format!(r#"{{"type":"tool_progress",{envelope},{progress}}}"#));
    check_kept(
        Turn,
        r#"{"type":"turn_cancelled","turnId":"","ts":"2026-03-04T05:06:07.002Z","usage":{}}"#,
    );
}

#[test]
fn other_spellings_of_a_time_are_read_as_the_same_moment() {
    let at = |ts| format!(r#"{{"type":"turn_cancelled","turnId":"t","ts":"{ts}","usage":{{}}}}"#);
    let written = at("2026-03-04T05:06:07.120Z");
    for ts in
        ["2026-03-04T05:06:07.12Z", "2026-03-04T06:06:07.1209+01:00", "2026-03-04t05:06:07.120z"]
    {
        check_read_as(Turn, &at(ts), &written);
    }
    for ts in
        ["", "2026-03-04", "2026-03-04T05:06:07", "05:06:07Z", "1772600767", "2026-13-04T05:06:07Z"]
    {
        check_malformed(Turn, &at(ts), "not an RFC 3339 time");
    }
}

#[test]
fn the_fields_may_stand_in_any_order() {
    let message = r#"{"content":[{"providerOptions":{"lab":{"n":1.50}},"text":"x","type":"text"},{"arguments":{"b":1e2,"a":-0},"toolName":"t","type":"tool-call","toolCallId":"c1"}],"providerOptions":{"lab":{"s":"\/"}},"role":"assistant"}"#;
    let fields =
        format!(r#""usage":{{}},"finishReason":"stop","message":{message},"modelCallIndex":0"#);
    let written = turn_line(
        "model_call_completed",
        r#""modelCallIndex":0,"message":{"role":"assistant","content":[{"type":"text","text":"x","providerOptions":{"lab":{"n":1.50}}},{"type":"tool-call","toolCallId":"c1","toolName":"t","arguments":{"b":1e2,"a":-0}}],"providerOptions":{"lab":{"s":"\/"}}},"finishReason":"stop","usage":{}"#,
    );
    let kind = r#""type":"model_call_completed""#;
    for line in [
        format!("{{{fields},{TURN_ENVELOPE},{kind}}}"),
        format!("{{{TURN_ENVELOPE},{fields},{kind}}}"),
        format!("{{{kind},{fields},{TURN_ENVELOPE}}}"),
        format!("{{{fields},{kind},{TURN_ENVELOPE}}}"),
        format!(" {{ {fields} , {kind} , {TURN_ENVELOPE} }} "),
    ] {
        check_read_as(Turn, &line, &written);
    }
    let late_step = turn_line(
        "model_step_event",
        r#""event":{"providerMetadata":1.0,"finishReason":"stop","type":"finish_step"},"modelCallIndex":0"#,
    );
    let step = turn_line(
        "model_step_event",
        r#""modelCallIndex":0,"event":{"type":"finish_step","finishReason":"stop","providerMetadata":1.0}"#,
    );
    check_read_as(Turn, &late_step, &step);
}

#[test]
fn of_two_fields_of_one_name_the_first_counts_in_the_envelope_and_neither_within_a_fact() {
    let written = turn_line("turn_failed", r#""error":"x","usage":{}"#);
    for again in [r#""ts":5"#, r#""type":"turn_cancelled""#, r#""turnId":null"#] {
        let fields = format!(r#""error":"x",{again},"usage":{{}}"#);
        check_read_as(Turn, &turn_line("turn_failed", &fields), &written);
    }
    let early = format!(
        r#"{{"type":"turn_failed","type":"turn_cancelled",{TURN_ENVELOPE},"error":"x","usage":{{}}}}"#
    );
    check_read_as(Turn, &early, &written);
    let twice = turn_line("turn_failed", r#""error":"x","error":"y","usage":{}"#);
    check_malformed(Turn, &twice, "duplicate field `error`");
}
