//! What is wrong outside of the program is told in words, with what to do, and breaks nothing else.

use std::fs;
use std::process::Stdio;

use process_wrap::tokio::{CommandWrap, ProcessSession};
use turnstile::testing::beside;
use turnstile::testing::pty::{Ended, Exit, Home, Launch};

use crate::person::{
    DOWN, ENTER, PROGRAM, go_on, go_to_composer, go_to_list, log_of, quit, shows, start,
    with_sessions,
};

/// A start that is refused before the screen begins: with this code, and these words.
fn check_refused(launch: Launch, code: u32, words: &[&str]) {
    let ended: Ended = launch.size(200, 30).start().wait_for_end();
    let screen = ended.screen.contents();
    assert_eq!(ended.exit, Exit::Code(code), "{screen}");
    for word in words {
        assert!(screen.contains(word), "no {word:?} in:\n{screen}");
    }
    assert!(ended.traffic().modes_on.is_empty(), "the terminal was not touched");
}

#[test]
fn a_configuration_that_is_no_toml_is_told_with_line_and_column() {
    let home = Home::new();
    home.configure("[ui]\ntheme = \"auto\"\nmouse = tru\n");
    check_refused(Launch::new(PROGRAM, &home), 2, &["config.toml:3:9"]);
}

#[test]
fn a_dumb_terminal_is_told_how_a_prompt_is_answered_without_a_screen() {
    let home = Home::new();
    let launch = Launch::new(PROGRAM, &home).variable("TERM", "dumb");
    check_refused(launch, 2, &["TERM is dumb", "turnstile run"]);
}

#[test]
fn an_unknown_key_is_told_with_its_place_and_what_was_meant() {
    let home = Home::new();
    home.configure("[ui]\nmouze = true\n");
    let words = ["config.toml:2:1", "unknown key \"mouze\" in [ui]", "mouse"];
    check_refused(Launch::new(PROGRAM, &home), 2, &words);
}

#[test]
fn a_key_that_is_bound_to_nothing_known_is_told_with_its_place() {
    let home = Home::new();
    home.configure("[keys.composer]\n\"Enter\" = \"explode\"\n");
    check_refused(Launch::new(PROGRAM, &home), 2, &["config.toml:2:", "explode"]);
}

#[test]
fn a_work_directory_that_cannot_be_written_is_named_with_a_way_out() {
    let home = Home::new();
    let file = home.project().join("file");
    fs::write(&file, "").expect("a file in the way");
    let work_dir = file.join("work");
    let work_dir = work_dir.to_str().expect("temporary folders are text");
    let launch = Launch::new(PROGRAM, &home).argument("--work-dir").argument(work_dir);
    check_refused(launch, 3, &["cannot be used", "--work-dir"]);
}

#[test]
fn a_second_program_is_told_who_holds_the_folder_and_may_look() {
    let (home, _) = with_sessions(1);
    let first = start(&home);
    let holder = first.pid().as_raw_nonzero().to_string();
    check_refused(Launch::new(PROGRAM, &home), 3, &["is in use by", &holder, "--read-only"]);
    let mut second = Launch::new(PROGRAM, &home).argument("--read-only").start();
    second.wait_for_text("read only");
    go_to_list(&mut second, "Session 0:");
    second.send(ENTER);
    second.wait_for_text("✓ done");
    second.send("may I?");
    second.wait_for_text("› may I?");
    second.send(ENTER);
    second.wait_for_text("Read only");
    second.send("\x03");
    second.wait_until_gone("› may I?");
    quit(second);
    quit(first);
}

#[test]
fn a_damaged_session_is_shown_with_the_reason_and_the_others_work() {
    let (home, sessions) = with_sessions(2);
    let log = log_of(&home, "sessions", sessions[1].as_str());
    let text = fs::read_to_string(&log).expect("a log is text");
    fs::write(&log, text.replacen("\"type\":\"turn_appended\"", "\"type\":\"tu", 1))
        .expect("written");
    let mut program = start(&home);
    go_to_list(&mut program, "Session 0:");
    program.wait_for_text("!");
    program.send(ENTER);
    program.wait_for("the reason", |screen| shows(screen, "line 2"));
    // An unreadable session has no composer to go to.
    program.send("h");
    program.wait_for("the cursor in the list", |screen| screen.cursor_position().1 < 5);
    program.send(DOWN);
    program.wait_for("the cursor in the next row", |screen| screen.cursor_position().0 == 4);
    program.send(ENTER);
    program.wait_for_text("✓ done");
    quit(program);
}

#[test]
fn with_no_session_that_can_be_read_there_is_none_to_go_on_with() {
    let (home, sessions) = with_sessions(1);
    fs::write(log_of(&home, "sessions", sessions[0].as_str()), "{}\n").expect("written");
    let program = go_on(&home);
    program.wait_for_text("Nothing can be gone on with: no session can be read");
    quit(program);
}

#[test]
fn a_damaged_turn_is_shown_with_the_reason_in_its_session() {
    let (home, sessions) = with_sessions(2);
    let session =
        fs::read_to_string(log_of(&home, "sessions", sessions[1].as_str())).expect("text");
    let turn = session.split("\"turnId\":\"").nth(1).and_then(|rest| rest.split('"').next());
    let log = log_of(&home, "turns", turn.expect("the session has a turn"));
    let text = fs::read_to_string(&log).expect("a log is text");
    fs::write(&log, text.replacen("model_call_requested", "model_call_req\"uested", 1))
        .expect("written");
    let mut program = start(&home);
    go_to_list(&mut program, "Session 1:");
    program.send(ENTER);
    program.wait_for("the reason", |screen| shows(screen, "line 2"));
    go_to_composer(&mut program);
    quit(program);
}

#[test]
fn where_no_terminal_is_the_program_says_what_to_do_instead() {
    let home = Home::new();
    let output = beside::runtime().block_on(async {
        let mut command = CommandWrap::with_new(PROGRAM, |command| {
            command.env("HOME", home.folder()).env("TURNSTILE_HOME", home.work_dir());
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        });
        // In a session of its own there is no terminal behind the standard streams either.
        let child = command.wrap(ProcessSession).spawn().expect("it starts");
        Box::into_pin(child.wait_with_output()).await.expect("it ends")
    });
    assert_eq!(output.status.code(), Some(2));
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("this is no terminal") && told.contains("turnstile run"), "{told}");
    assert!(output.stdout.is_empty());
}
