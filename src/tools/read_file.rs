//! The tool that reads a text file, or a range of its lines.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::path::Path;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use crate::domain::agent::{Execution, ToolDescriptor};
use crate::domain::json::Json;
use crate::domain::permission::plan::Plan;
use crate::domain::tool::ResultMetadata;
use crate::domain::turn::event::ToolResultData;
use crate::tools::files::OpenFile;
use crate::tools::input::{self, InputError};
use crate::tools::lines::{Content, LineReader, SNIFFED_BYTES};
use crate::tools::output::{Lines, count};
use crate::tools::tool::{Tool, ToolContext, ToolError, blocking, located, text_result};

/// The tool `read-file`.
#[derive(Debug)]
pub struct ReadFile {
    descriptor: ToolDescriptor,
}

/// Why a file is not read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It is an image.
    #[error("{path} is an image of {bytes} bytes; images cannot be read")]
    Image {
        /// The file.
        path: String,
        /// Its size.
        bytes: u64,
    },
    /// It is something else that is no text.
    #[error(
        "{path} is no text file: NUL bytes are among its first {SNIFFED_BYTES} (it has {bytes} bytes in all)"
    )]
    Binary {
        /// The file.
        path: String,
        /// Its size.
        bytes: u64,
    },
    /// The system stopped in the middle.
    #[error("the file cannot be read to its end")]
    System(#[from] io::Error),
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The file, absolute or relative to the session's folder.
    path: String,
    /// The first line to read, from 1.
    start_line: Option<NonZeroU32>,
    /// The last line to read.
    end_line: Option<NonZeroU32>,
}

impl ReadFile {
    /// The tool.
    #[must_use]
    pub fn new() -> Self {
        let description = "Reads a text file, or a range of its lines. Each line comes with its \
            number and a tab before it, which are not part of the file.";
        Self {
            descriptor: ToolDescriptor {
                tool_id: "read_file".to_owned(),
                name: "read-file".to_owned(),
                description: description.to_owned(),
                input_schema: input::schema::<Input>(),
                execution: Execution::Sync,
                requires_human: false,
            },
        }
    }
}

impl Default for ReadFile {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Tool for ReadFile {
    fn descriptor(&self) -> &ToolDescriptor {
        &self.descriptor
    }

    fn plan(&self, input: &Json) -> Result<Plan, InputError> {
        let Input { path, .. } = read(input)?;
        Ok(Plan { reads: vec![path], ..Plan::default() })
    }

    async fn run(&self, input: &Json, context: &ToolContext) -> Result<ToolResultData, ToolError> {
        let Input { path, start_line, end_line } = read(input)?;
        let resolved = located(&context.permit.plan().reads, &path)?.resolved.clone();
        let first = start_line.map_or(1, NonZeroU32::get);
        let range = first..=end_line.map_or(u32::MAX, NonZeroU32::get);
        let (bytes_max, cancel) = (context.output_bytes_max, context.cancel.clone());
        blocking(&context.tasks, move || {
            let file = OpenFile::open(Path::new(&resolved))?;
            let lines = read_lines(text_of(file, &path)?, &range, bytes_max, &cancel)?;
            lines.into_result(&range)
        })
        .await
    }
}

fn read(input: &Json) -> Result<Input, InputError> {
    let input: Input = input::read(input)?;
    match (input.start_line, input.end_line) {
        (Some(start), Some(end)) if end < start => {
            Err(InputError::field("end_line", format!("it lies before start_line {start}")))
        }
        _ => Ok(input),
    }
}

/// Beyond this, lines are no longer counted: nobody needs to know how many there are.
const COUNTED_BYTES_MAX: u64 = 512 * 1024 * 1024;

/// The file as text, refused if it holds something else.
fn text_of(file: OpenFile, path: &str) -> Result<LineReader<BufReader<File>>, ReadError> {
    let (path, bytes) = (path.to_owned(), file.bytes());
    let mut reader = BufReader::with_capacity(8 * SNIFFED_BYTES, file.file);
    match Content::of(reader.fill_buf()?) {
        Content::Text => Ok(LineReader::new(reader)),
        Content::Image => Err(ReadError::Image { path, bytes }),
        Content::Binary => Err(ReadError::Binary { path, bytes }),
    }
}

/// The lines of a range, as far as they fit.
struct Found {
    lines: Lines,
    /// The last line that is among them; the one before the range if none is.
    last: u32,
    /// Whether a line of the range found no room.
    is_full: bool,
    /// How many lines the file has.
    all: u32,
    /// Whether it has more than that.
    is_endless: bool,
}

fn read_lines(
    mut reader: LineReader<BufReader<File>>,
    range: &RangeInclusive<u32>,
    bytes_max: usize,
    cancel: &CancellationToken,
) -> Result<Found, ToolError> {
    let (lines, last) = (Lines::new(bytes_max), range.start() - 1);
    let mut found = Found { lines, last, is_full: false, all: 0, is_endless: false };
    loop {
        if cancel.is_cancelled() {
            return Err(ToolError::Cancelled);
        }
        let number = found.all + 1;
        let is_done = found.is_full || number > *range.end();
        if is_done && reader.bytes() > COUNTED_BYTES_MAX {
            found.is_endless = true;
            return Ok(found);
        }
        if is_done || number < *range.start() {
            if !reader.skip().map_err(ReadError::System)? {
                return Ok(found);
            }
        } else {
            let Some(line) = reader.read().map_err(ReadError::System)? else { return Ok(found) };
            found.is_full = !found.lines.push(&format!("{number:>6}\t{line}"));
            found.last = if found.is_full { found.last } else { number };
        }
        found.all = number;
    }
}

impl Found {
    fn into_result(self, range: &RangeInclusive<u32>) -> Result<ToolResultData, ToolError> {
        let Self { lines, last, is_full, all, is_endless } = self;
        let first = *range.start();
        if all == 0 {
            return Ok(text_result("[the file is empty]", &ResultMetadata::summary("empty")));
        }
        if all < first {
            let why = format!("the file has only {}", count(all as usize, "line", "lines"));
            return Err(InputError::field("start_line", why).into());
        }
        let all_text = if is_endless { format!("more than {all}") } else { all.to_string() };
        let shown = format!("lines {first} to {last} of {all_text}");
        let note = if is_full {
            Some(format!("{shown}; the next is start_line {}", last + 1))
        } else {
            (first > 1 || last < all || is_endless).then_some(shown)
        };
        let summary = count((last + 1 - first) as usize, "line", "lines");
        Ok(text_result(&lines.into_text(note.as_deref()), &ResultMetadata::summary(summary)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::rig::Rig;
    use serde_json::json;

    async fn check(rig: &Rig, input: serde_json::Value, expected: &str) {
        rig.check(&ReadFile::new(), input, expected).await;
    }

    #[tokio::test]
    async fn lines_come_with_their_numbers() {
        let rig = Rig::new();
        rig.write("a.txt", "one\r\n\ttwo\n\nfour");
        rig.write("empty", "");
        let whole = "     1\tone\n     2\t\ttwo\n     3\t\n     4\tfour\n";
        check(&rig, json!({ "path": "a.txt" }), whole).await;
        let middle = "     2\t\ttwo\n     3\t\n[lines 2 to 3 of 4]\n";
        check(&rig, json!({ "path": "a.txt", "start_line": 2, "end_line": 3 }), middle).await;
        let end = "     4\tfour\n[lines 4 to 4 of 4]\n";
        check(&rig, json!({ "path": "a.txt", "start_line": 4, "end_line": 90 }), end).await;
        check(&rig, json!({ "path": "empty" }), "[the file is empty]").await;
        let ran = rig.run(&ReadFile::new(), json!({ "path": "a.txt" })).await;
        assert_eq!((ran.metadata, ran.is_error), (ResultMetadata::summary("4 lines"), false));
    }

    #[tokio::test]
    async fn what_is_too_long_says_where_to_go_on() {
        let mut rig = Rig::new();
        rig.output_bytes_max = 30;
        rig.write("a.txt", "first line\nsecond line\nthird\n");
        let part = "     1\tfirst line\n[lines 1 to 1 of 3; the next is start_line 2]\n";
        check(&rig, json!({ "path": "a.txt" }), part).await;
    }

    #[tokio::test]
    async fn what_is_no_text_is_refused_with_a_reason() {
        let rig = Rig::new();
        rig.write("photo.png", b"\x89PNG\r\n\x1a\n\0\0");
        rig.write("program", b"\x7fELF\0");
        rig.write("latin", b"caf\xe9\n");
        rig.write("folder/a", "");
        check(
            &rig,
            json!({ "path": "photo.png" }),
            "photo.png is an image of 10 bytes; images cannot be read",
        )
        .await;
        check(
            &rig,
            json!({ "path": "program" }),
            "program is no text file: NUL bytes are among its first 8192 (it has 5 bytes in all)",
        )
        .await;
        check(&rig, json!({ "path": "latin" }), "     1\tcaf\u{fffd}\n").await;
        let folder = "<root>/in/folder is a folder; list-dir shows what is in it";
        check(&rig, json!({ "path": "folder" }), folder).await;
        check(&rig, json!({ "path": "gone" }), "<root>/in/gone does not exist").await;
    }

    #[tokio::test]
    async fn a_range_that_the_file_does_not_have_names_its_field() {
        let rig = Rig::new();
        rig.write("a.txt", "one\n");
        let beyond = "the input field `start_line` does not fit: the file has only 1 line";
        check(&rig, json!({ "path": "a.txt", "start_line": 2 }), beyond).await;
        let input = Json::from_value(&json!({ "path": "a", "start_line": 3, "end_line": 2 }));
        assert_eq!(
            ReadFile::new().plan(&input).unwrap_err().to_string(),
            "the input field `end_line` does not fit: it lies before start_line 3"
        );
    }
}
