//! What the screen says, claim by claim.

use ratatui::layout::Size;

use super::screen;
use crate::domain::agent::Execution;
use crate::domain::json::Json;
use crate::domain::question::Answer;
use crate::domain::tool::{Cut, ResultMetadata};
use crate::domain::turn::event::{ResultSource, ToolResultData};
use crate::tui::scenes::{self, Turn, call};

const NORMAL: Size = Size { width: 80, height: 24 };

/// The row of the screen that holds a text.
#[track_caller]
fn row_with<'a>(shown: &'a str, text: &str) -> &'a str {
    let found = shown.lines().find(|row| row.contains(text));
    found.unwrap_or_else(|| panic!("{text:?} is not in\n{shown}"))
}

#[test]
fn a_call_that_was_stopped_interrupted_or_dismissed_has_not_failed() {
    let cut = |by: Cut| ToolResultData {
        output: Json::text("it was cut off"),
        is_error: true,
        metadata: Some(ResultMetadata::cut(by).to_json()),
    };
    let turn = Turn::begin("t-1", "10:31:00", "Go on").ask().answer(vec![
        call("c1", "shell", r#"{"command":"sleep 60"}"#),
        call("c2", "shell", r#"{"command":"sleep 70"}"#),
        call("c3", "ask-human", r#"{"question":"Which one?"}"#),
    ]);
    let turn = turn
        .invoke("c3", Execution::Async)
        .settle("c1", ResultSource::Runtime, cut(Cut::Stopped))
        .settle("c2", ResultSource::Runtime, cut(Cut::Interrupted))
        .settle("c3", ResultSource::Async, Answer::Dismissed.to_result());
    let shown = screen(&scenes::conversation(NORMAL, vec![turn]), NORMAL);
    for (call, stands) in
        [("sleep 60", "■ stopped"), ("sleep 70", "~ interrupted"), ("Which one?", "■ dismissed")]
    {
        let row = row_with(&shown, call);
        assert!(row.contains(stands), "{row}");
    }
}
