//! The screen in the README is what the program draws.

use super::{scenery, screen};
use crate::tui::scenes::{Turn, call, text};
use ratatui::layout::Size;

const ARGUMENTS: &str =
    r##"{"path":"notes.md","content":"# Notes\n\nIt waits for the event now.\n"}"##;

const REQUEST: &str = r#"{
    "plan": {
        "folder": "/home/ada/work/turnstile",
        "writes": [{"path": "notes.md", "resolved": "/home/ada/work/turnstile/notes.md", "inside": true}]
    },
    "preview": {
        "kind": "diff", "path": "notes.md", "created": true,
        "diff": "--- /dev/null\n+++ b/notes.md\n@@ -0,0 +1,3 @@\n+# Notes\n+\n+It waits for the event now.\n"
    },
    "rule": "ask write [default]"
}"#;

#[test]
fn the_screen_in_the_readme_is_what_is_drawn() {
    let size = Size::new(80, 24);
    let asks = Turn::begin(scenery::SECOND, "10:41:00", "Write down what you changed.")
        .ask()
        .answer(vec![
            text("I'll keep a note of it beside the code."),
            call("w1", "write-file", ARGUMENTS),
        ])
        .require("w1", REQUEST);
    let mut state = scenery::full(size, vec![asks]);
    scenery::open(&mut state, scenery::armed);
    let readme = include_str!("../../../../README.md");
    let kept = readme.split("```\n").nth(1).expect("the README begins with a screen");
    assert_eq!(screen(&state, size), kept);
}
