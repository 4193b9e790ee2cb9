//! Output in the size that a model can use: head and tail, how much was cut, where the whole is
//! (`design/tools.md`), and the limits that every result has to keep before it is recorded.

use std::collections::VecDeque;

use crate::domain::json::{Json, JsonError};
use crate::domain::turn::event::ToolResultData;

/// How much output of one call the model gets by default: about 16,000 tokens, a tenth of a common
/// context.
pub const OUTPUT_BYTES: usize = 64 * 1024;
/// What a tool may say about its output on top of that: what was cut, how a command ended.
const NOTE_BYTES: usize = 1024;
/// How much a tool, or whoever decides on a call, may tell programs: a diff of some thousand lines.
pub const METADATA_BYTES_MAX: usize = 256 * 1024;
/// Longer lines are data, not text, and would push out all the others.
pub(crate) const LINE_BYTES_MAX: usize = 2_000;

/// The result as it may be recorded and sent, whatever tool it comes from: integers that no reader
/// rounds, nesting that every parser takes, and a size that a model can use
/// (`design/turn-runtime.md` section 3, limits).
#[must_use]
pub fn fit(result: ToolResultData, output_bytes_max: usize) -> ToolResultData {
    let ToolResultData { output, is_error, metadata } = result;
    let metadata = metadata.filter(|json| json.get().len() <= METADATA_BYTES_MAX);
    let metadata = metadata.and_then(|json| sound(&json).ok());
    let refused =
        |why: String| ToolResultData { output: Json::text(&why), is_error: true, metadata: None };
    if let Some(text) = output.as_text() {
        let output = if text.len() <= output_bytes_max + NOTE_BYTES {
            output
        } else {
            Json::text(&head_and_tail(&text, output_bytes_max))
        };
        return ToolResultData { output, is_error, metadata };
    }
    match sound(&output) {
        Ok(output) if output.get().len() <= output_bytes_max => {
            ToolResultData { output, is_error, metadata }
        }
        Ok(output) => refused(format!(
            "the result has {} bytes, more than the {output_bytes_max} that fit; ask for less",
            output.get().len()
        )),
        Err(error) => refused(format!("the result cannot be used: {error}")),
    }
}

/// The value as it may be recorded: integers that no reader rounds.
///
/// # Errors
/// [`JsonError`]: it nests deeper than every parser takes.
pub fn sound(json: &Json) -> Result<Json, JsonError> {
    Json::parse(json.get()).map(Json::with_safe_integers)
}

fn head_and_tail(text: &str, bytes_max: usize) -> String {
    let mut kept = HeadTail::new(bytes_max);
    kept.push(text.as_bytes());
    kept.into_text(|cut| format!("[{cut} bytes are left out here]"))
}

/// The beginning and the end of output that may go on for ever.
#[derive(Debug)]
pub(crate) struct HeadTail {
    half_bytes_max: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    bytes: u64,
}

impl HeadTail {
    /// Keeps at most `bytes_max` bytes, one half of them the beginning, the other the end.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { half_bytes_max: bytes_max / 2, head: Vec::new(), tail: VecDeque::new(), bytes: 0 }
    }

    /// Takes in what comes next.
    pub(crate) fn push(&mut self, chunk: &[u8]) {
        self.bytes += chunk.len() as u64;
        let room = self.half_bytes_max - self.head.len();
        let (head, tail) = chunk.split_at(room.min(chunk.len()));
        self.head.extend_from_slice(head);
        let tail = tail.get(tail.len().saturating_sub(self.half_bytes_max)..).unwrap_or_default();
        let surplus = (self.tail.len() + tail.len()).saturating_sub(self.half_bytes_max);
        self.tail.drain(..surplus);
        self.tail.extend(tail);
    }

    /// Whether nothing has to be left out when this comes too.
    pub(crate) fn has_room_for(&self, chunk: &[u8]) -> bool {
        self.bytes + chunk.len() as u64 <= 2 * self.half_bytes_max as u64
    }

    /// Whether something had to be left out.
    pub(crate) fn is_cut(&self) -> bool {
        self.bytes > (self.head.len() + self.tail.len()) as u64
    }

    /// All that has come, as long as nothing had to be left out.
    pub(crate) fn all(&self) -> Vec<u8> {
        self.head.iter().chain(&self.tail).copied().collect()
    }

    /// Whether the last byte ends a line; so does nothing.
    pub(crate) fn ends_line(&self) -> bool {
        self.tail.back().or(self.head.last()).is_none_or(|&byte| byte == b'\n')
    }

    /// The end of what has come so far: whole lines, as many as `bytes_max` holds.
    pub(crate) fn last(&self, bytes_max: usize) -> String {
        let kept = self.head.len() + self.tail.len();
        let skipped = kept.saturating_sub(bytes_max.min(self.half_bytes_max));
        let bytes: Vec<u8> = self.head.iter().chain(&self.tail).skip(skipped).copied().collect();
        let from = if skipped == 0 { 0 } else { line_start(&bytes) };
        String::from_utf8_lossy(bytes.get(from..).unwrap_or_default()).into_owned()
    }

    /// The text, cut between lines where that is near, with a line that `note` makes of the number
    /// of bytes left out. Bytes that are no UTF-8 become replacement characters.
    pub(crate) fn into_text(self, note: impl FnOnce(u64) -> String) -> String {
        let is_cut = self.is_cut();
        let Self { mut head, tail, bytes, .. } = self;
        let tail = Vec::from(tail);
        if !is_cut {
            head.extend(tail);
            return String::from_utf8_lossy(&head).into_owned();
        }
        let head = head.get(..line_end(&head)).unwrap_or_default();
        let tail = tail.get(line_start(&tail)..).unwrap_or_default();
        let note = note(bytes - (head.len() + tail.len()) as u64);
        let (head, tail) = (String::from_utf8_lossy(head), String::from_utf8_lossy(tail));
        let gap = if head.is_empty() || head.ends_with('\n') { "" } else { "\n" };
        format!("{head}{gap}{note}\n{tail}")
    }
}

/// How far from the cut a line end is looked for.
const LINE_BYTES: usize = 2 * 1024;

/// Where the last whole line ends; if it is far, where the last whole character does.
fn line_end(bytes: &[u8]) -> usize {
    let from = bytes.len().saturating_sub(LINE_BYTES);
    match memchr::memrchr(b'\n', bytes.get(from..).unwrap_or_default()) {
        Some(at) => from + at + 1,
        None => whole_chars(bytes),
    }
}

/// Where the first whole line starts; if it is far, where the first whole character does.
fn line_start(bytes: &[u8]) -> usize {
    let near = bytes.get(..LINE_BYTES.min(bytes.len())).unwrap_or_default();
    match memchr::memchr(b'\n', near) {
        Some(at) => at + 1,
        None => bytes.iter().take_while(|&&byte| byte & 0xC0 == 0x80).count(),
    }
}

/// The beginning of a line of `bytes` bytes, in a bearable length, with a count of what is missing.
/// Bytes that are no UTF-8 become replacement characters.
pub(crate) fn clip_line(line: &[u8], bytes: u64) -> String {
    let kept = line.get(..LINE_BYTES_MAX).map_or(line, |start| {
        let end = whole_chars(start);
        start.get(..end).unwrap_or_default()
    });
    let text = String::from_utf8_lossy(kept);
    match bytes - kept.len() as u64 {
        0 => text.into_owned(),
        missing => format!("{text} [{missing} more bytes]"),
    }
}

/// Where the last whole character ends.
fn whole_chars(bytes: &[u8]) -> usize {
    let broken = bytes.utf8_chunks().last().map_or(0, |chunk| chunk.invalid().len());
    bytes.len() - broken
}

/// Text that is built line by line as long as there is room for a line.
pub(crate) struct Lines {
    text: String,
    bytes_max: usize,
}

impl Lines {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { text: String::new(), bytes_max }
    }

    /// Adds a line; says whether there was room for it.
    pub(crate) fn push(&mut self, line: &str) -> bool {
        let fits = self.text.len() + line.len() < self.bytes_max;
        if fits {
            self.text.push_str(line);
            self.text.push('\n');
        }
        fits
    }

    /// The lines, and last a note that finds room in any case.
    pub(crate) fn into_text(mut self, note: Option<&str>) -> String {
        if let Some(note) = note {
            self.text.push('[');
            self.text.push_str(note);
            self.text.push_str("]\n");
        }
        self.text
    }
}

/// A number with its noun: `1 line`, `2 lines`, `3 matches`.
pub(crate) fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check_kept(bytes_max: usize, output: &str, expected: &str) {
        let mut kept = HeadTail::new(bytes_max);
        for chunk in output.as_bytes().chunks(3) {
            kept.push(chunk);
        }
        assert_eq!(kept.into_text(|cut| format!("<{cut}>")), expected);
    }

    #[test]
    fn head_and_tail_are_kept_in_whole_lines() {
        check_kept(20, "one\ntwo\nthree\n", "one\ntwo\nthree\n");
        check_kept(20, "one\ntwo\nthree\nfour\nfive\nsix\n", "one\ntwo\n<11>\nfive\nsix\n");
        check_kept(8, "äääääääää", "ää\n<10>\nää");
        check_kept(10, "äääääääää", "ää\n<10>\nää");
        check_kept(0, "abc", "<3>\n");
    }

    #[test]
    fn the_last_lines_of_live_output_begin_with_a_line() {
        let mut kept = HeadTail::new(40);
        kept.push(b"one\ntwo\nthree");
        assert_eq!(kept.last(100), "one\ntwo\nthree");
        assert_eq!(kept.last(11), "two\nthree");
        kept.push(&b"x".repeat(100));
        assert_eq!(kept.last(20), "x".repeat(20));
    }

    fn result(output: Json) -> ToolResultData {
        ToolResultData { output, is_error: false, metadata: Some(Json::text("m")) }
    }

    #[test]
    fn what_does_not_fit_is_cut_or_refused_before_it_is_recorded() {
        let check = |output: &str, expected: &str, is_error| {
            let fitted = fit(result(serde_json::from_str(output).unwrap()), 40);
            assert_eq!((fitted.output.get(), fitted.is_error), (expected, is_error));
        };
        check(r#"{"id":9007199254740993}"#, r#"{"id":"9007199254740993"}"#, false);
        check(r#""short""#, r#""short""#, false);
        let long = format!("\"{}\"", "x".repeat(2_000));
        let xs = "x".repeat(20);
        check(&long, &format!(r#""{xs}\n[1960 bytes are left out here]\n{xs}""#), false);
        let list = format!("[{long}]");
        check(
            &list,
            r#""the result has 2004 bytes, more than the 40 that fit; ask for less""#,
            true,
        );
        let deep = "[".repeat(70) + &"]".repeat(70);
        let why = r#""the result cannot be used: nested deeper than 64 levels""#;
        check(&deep, why, true);
    }

    #[test]
    fn a_long_line_says_how_much_is_missing() {
        assert_eq!(clip_line(b"short", 5), "short");
        let line = "ä".repeat(LINE_BYTES_MAX);
        let clipped = clip_line(&line.as_bytes()[1..], 90_000);
        assert!(clipped.starts_with("\u{fffd}ä") && clipped.ends_with("ää [88001 more bytes]"));
    }

    proptest! {
        #[test]
        fn kept_output_is_its_own_head_and_tail_and_accounts_for_every_byte(
            output in "[aä\n]{0,200}", bytes_max in 0_usize..120, chunk in 1_usize..40,
        ) {
            let mut kept = HeadTail::new(bytes_max);
            for chunk in output.as_bytes().chunks(chunk) {
                kept.push(chunk);
            }
            let cut = kept.is_cut();
            let text = kept.into_text(|cut| format!("<{cut}>"));
            if cut {
                let (head, rest) = text.split_once('<').expect("the note");
                let (missing, tail) = rest.split_once(">\n").expect("the note");
                let missing: usize = missing.parse().expect("a number");
                // A line end is put after a head that has none.
                let all = head.len() + missing + tail.len();
                let is_ended = all == output.len() + 1 && head.ends_with('\n');
                prop_assert!(all == output.len() || is_ended);
                let head = if is_ended { head.trim_end_matches('\n') } else { head };
                prop_assert!(output.starts_with(head) && output.ends_with(tail));
                prop_assert!(head.len() + tail.len() <= bytes_max);
            } else {
                prop_assert_eq!(text, output);
            }
        }
    }
}
