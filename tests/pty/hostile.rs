//! Text that is not ours: nothing of it reaches the terminal as anything but text.

use serde_json::json;
use turnstile::testing::folder::files;
use turnstile::testing::model_server::Reply;
use turnstile::testing::pty::{Ended, Traffic};

use crate::person::{go_to_composer, go_to_prompt, go_to_timeline, quit, say};
use crate::server::Lab;

/// Sets the title and the clipboard, clears, hides, asks, reports, switches the screen, rings, reverses
/// the text, and leaves a string open; also in one-byte controls.
const ATTACK: &str = "a\x1b]0;pwned\x07b\x1b]52;c;cHduZWQ=\x1b\\c\x1b[2J\x1b[?25ld\x1b[5n\x1b[?1049le\
    \x07f\u{202e}g\u{9b}31mh\u{9d}0;pwned\u{9c}i\x1bP+q706e\x1b\\j\u{200b}k\x1b[8;1;1tl\u{7f}m\rn\x08o\x1b^x";

/// Everything that the program itself has to say to a terminal.
const OWN: [&str; 25] = [
    "CSI ?1000 h",
    "CSI ?1000 l",
    "CSI ?1002 h",
    "CSI ?1002 l",
    "CSI ?1003 l",
    "CSI ?1004 h",
    "CSI ?1004 l",
    "CSI ?1006 h",
    "CSI ?1006 l",
    "CSI ?1049 h",
    "CSI ?1049 l",
    "CSI ?2004 h",
    "CSI ?2004 l",
    "CSI ?2026 h",
    "CSI ?2026 l",
    "CSI ?25 h",
    "CSI ?25 l",
    "CSI ?u",
    "CSI H",
    "CSI c",
    "CSI m",
    "OSC 10",
    "OSC 11",
    "control 0a",
    "control 0d",
];

fn check_own(ended: &Ended) {
    let Traffic { kinds, modes_on, clears, .. } = ended.traffic();
    let foreign: Vec<_> = kinds.iter().filter(|kind| !OWN.contains(&kind.as_str())).collect();
    assert!(foreign.is_empty(), "{foreign:?}");
    assert_eq!((modes_on, clears), ([25].into(), 0));
    let text = String::from_utf8_lossy(&ended.raw);
    let is_hidden =
        |c: char| matches!(c, '\u{200b}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    assert!(!text.contains(is_hidden), "hidden characters are shown as marks");
}

#[test]
fn an_answer_with_control_sequences_is_only_text() {
    let markdown = format!(
        "{ATTACK}\n\n```sh\n{ATTACK}\n```\n\n| {ATTACK} | b |\n|---|---|\n| c | d |\n\n\
        [{ATTACK}](http://x/{ATTACK}) the end."
    );
    let answer = Reply::stream().reasoning(ATTACK).text(&markdown).finish("stop").done();
    let lab = Lab::new([answer]);
    let mut program = lab.start();
    say(&mut program, "Attack");
    program.wait_for_text("the end.");
    program.wait_for_text("✓ done");
    check_own(&quit(program));
}

#[test]
fn a_tool_with_control_sequences_in_its_name_input_and_result_is_only_text() {
    let path = "f\x1b]0;pwned\x07\u{202e}.md";
    let arguments = json!({"path": path, "content": ATTACK});
    let write =
        Reply::stream().call(0, "call-1", "write-file", &arguments).finish("tool_calls").done();
    let name = "no\x1b[2Jsuch\u{202e}tool";
    let unknown = Reply::stream().call(0, "call-2", name, &json!({"a": ATTACK}));
    let unknown = unknown.finish("tool_calls").done();
    let read = Reply::stream().call(0, "call-3", "read-file", &json!({"path": path}));
    let read = read.finish("tool_calls").done();
    let lab =
        Lab::new([write, unknown, read, Reply::stream().text("the end.").finish("stop").done()]);
    let mut program = lab.start();
    say(&mut program, "Attack");
    go_to_prompt(&mut program, "Allow write-file?");
    let frames = program.frames().len();
    program.send("v");
    program.wait_for_frame_after(frames);
    program.wait_for_text("pwned");
    program.send("y");
    program.wait_for_text("the end.");
    program.wait_for_text("✓ done");
    // Everything unfolded, the result of the read too.
    go_to_timeline(&mut program);
    let frames = program.frames().len();
    program.send("z");
    program.wait_for_frame_after(frames);
    go_to_composer(&mut program);
    check_own(&quit(program));
    assert!(files(&lab.home.project()).iter().any(|file| file.to_string_lossy().contains("pwned")));
}

#[test]
fn a_pasted_text_with_control_sequences_is_only_text_also_as_a_title() {
    let lab = Lab::new([Reply::stream().text("the end.").finish("stop").done()]);
    let mut program = lab.start();
    // What ends a paste cannot be inside of one.
    program.paste(&ATTACK.replace('\r', ""));
    program.wait_for_text("pwned");
    program.send("\r");
    program.wait_for_text("the end.");
    program.wait_for_text("✓ done");
    check_own(&quit(program));
    // The title is shown from the disk.
    let program = lab.start();
    program.wait_for_text("pwned");
    check_own(&quit(program));
}
