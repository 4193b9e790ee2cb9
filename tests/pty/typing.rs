//! The composer in a terminal: pastes, and keys that come before the program is there.

use turnstile::testing::folder::files;
use turnstile::testing::pty::{Home, Launch};

use crate::person::{ENTER, PROGRAM, clear, go_to_prompt, logs, quit, start, write};

#[test]
fn a_long_paste_is_a_chip_never_sends_and_is_sent_whole() {
    let home = Home::new();
    let mut program = start(&home);
    let lines: Vec<String> = (1..=15).map(|number| format!("line {number}")).collect();
    program.paste(&lines.join("\r"));
    program.wait_for_text("[Pasted 15 lines]");
    program.send("!");
    program.wait_for_text("[Pasted 15 lines]!");
    assert!(logs(&home).is_empty(), "nothing was sent");
    program.send(ENTER);
    go_to_prompt(&mut program, "Allow write-file?");
    program.send("\x1b");
    program.wait_until_gone("Esc later");
    quit(program);
    let sent = lines.join("\\n") + "!";
    let logs = files(&home.work_dir().join("storage/turns"));
    let log = std::fs::read_to_string(&logs[0]).expect("a log is text");
    assert!(log.contains(&sent), "{log}");
}

#[test]
fn a_short_paste_is_text_and_keys_in_one_piece_decide_nothing() {
    let home = Home::new();
    let mut program = start(&home);
    program.paste("two\nlines");
    program.wait_for_text("› two");
    program.wait_for_text("lines");
    clear(&mut program, "two");
    // As from a program that pastes without marks.
    program.send("one\rtwo\rthree\r");
    program.wait_for_text("three");
    assert!(logs(&home).is_empty(), "nothing was sent");
    program.kill();
}

#[test]
fn what_is_typed_before_the_program_is_there_is_not_lost() {
    let home = Home::new();
    let mut program = Launch::new(PROGRAM, &home).start();
    write(&mut program, "early words");
    program.kill();
}
