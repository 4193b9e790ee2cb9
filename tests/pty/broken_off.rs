//! Runs that ended in the middle: what was asked, said and typed is there at the next start.

use serde_json::Value;
use turnstile::testing::folder::files;
use turnstile::testing::pty::{Exit, Home, Launch};

use crate::person::{
    ENTER, PROGRAM, confirm, dismiss_question, go_on, go_to_list, go_to_prompt, go_to_timeline,
    quit, say, start, write,
};

#[test]
fn an_open_approval_survives_kill_9_and_the_turn_ends_after_it() {
    let home = Home::new();
    let mut program = start(&home);
    say(&mut program, "hello");
    program.wait_for_text("Allow write-file?");
    program.wait_for_text("1 waiting");
    program.kill();

    let mut program = start(&home);
    program.wait_for_text("1 waiting");
    go_to_list(&mut program, "◆ hello");
    program.send(ENTER);
    go_to_prompt(&mut program, "Allow write-file?");
    program.send("y");
    dismiss_question(&mut program);
    assert!(files(home.folder()).iter().any(|file| file.ends_with("notes.md")));
    quit(program);
}

#[test]
fn in_every_form_of_the_logs_who_comes_after_kill_9_gets_in_at_once_and_the_turn_goes_on() {
    for format in ["jsonl", "jsonl-zst", "sqlite"] {
        let home = Home::new();
        home.configure(&format!("[storage]\nformat = \"{format}\"\n"));
        let launch = Launch::new(PROGRAM, &home).variable("TURNSTILE_GUIDE_PACE_MS", "25");
        let mut first = launch.size(120, 40).start();
        say(&mut first, "hello");
        first.wait_for_text(STREAMED);
        let holder = format!("in use by process {}", first.pid().as_raw_nonzero());
        let refused = Launch::new(PROGRAM, &home).start().wait_for_end();
        let said = refused.screen.contents().replace('\n', "");
        assert!(said.contains(&holder), "{format}: {said}");
        assert_eq!(refused.exit, Exit::Code(3), "{format}");
        first.kill();

        let mut second = Launch::new(PROGRAM, &home).argument("--continue").size(120, 40).start();
        second.wait_for_text("Interrupted: this turn was cut off");
        second.wait_for_text("cut off when the program ended");
        go_to_timeline(&mut second);
        second.send("C");
        second.wait_for_text("Allow write-file?");
        second.kill();
    }
}

/// What the guide says in the middle of its first answer.
const STREAMED: &str = "everything is on disk as it happens";
/// What it says at the end of it.
const NOT_STREAMED: &str = "needs no approval.";

/// The contents of the files below the work directory whose names end so.
fn contents(home: &Home, ending: &str) -> String {
    let files = files(&home.work_dir());
    let found = files.iter().filter(|file| file.to_string_lossy().ends_with(ending));
    // A file can go between being listed and being read.
    found.filter_map(|file| std::fs::read_to_string(file).ok()).collect()
}

/// A program that was killed while the guide's first answer streamed, a moment after this had.
fn killed_while_it_streams(home: &Home) {
    let launch = Launch::new(PROGRAM, home).variable("TURNSTILE_GUIDE_PACE_MS", "25");
    let mut program = launch.size(120, 40).start();
    say(&mut program, "hello");
    program.wait_for_text(STREAMED);
    program.wait_for_outside("the crash buffer", || {
        let buffer = contents(home, ".live");
        let texts = buffer.lines().filter_map(|line| line.split("\"text\":\"").nth(1));
        let texts: String = texts.filter_map(|text| text.strip_suffix("\"}")).collect();
        texts.contains(STREAMED)
    });
    program.kill();
}

/// The texts of the first model call, which streamed when the program was killed, as the log has them.
/// When the turn goes on the guide says the same again, in a call of its own.
fn texts_of_first_call(home: &Home) -> Vec<String> {
    let log = contents(home, ".jsonl");
    let lines = log.lines().map(|line| serde_json::from_str(line).expect("a line is JSON"));
    let texts = lines.filter_map(|line: Value| {
        let is_text = |kind: &Value| kind == "text_end";
        let is_first = line.get("modelCallIndex") == Some(&Value::from(0));
        let event = line.get("event").filter(|it| is_first && it.get("type").is_some_and(is_text));
        event.and_then(|it| it.get("text")?.as_str()).map(str::to_owned)
    });
    texts.collect()
}

/// The log has what had streamed when the program was killed, and no more of that call.
fn check_broken_off(home: &Home) {
    let texts = texts_of_first_call(home);
    assert_eq!(texts.len(), 1, "one text was cut off: {texts:?}");
    let text = texts.concat();
    assert!(text.contains(STREAMED) && !text.contains(NOT_STREAMED), "{text}");
    assert_eq!(contents(home, ".live"), "");
}

#[test]
fn a_turn_that_was_killed_while_it_streamed_is_told_of_and_can_be_resumed() {
    let home = Home::new();
    killed_while_it_streams(&home);

    let program = Launch::new(PROGRAM, &home).size(120, 40).start();
    program.wait_for_text("The last run ended badly");
    quit(program);
    let mut program = Launch::new(PROGRAM, &home).argument("--continue").size(120, 40).start();
    program.wait_for_text("Interrupted: this turn was cut off");
    program.wait_for_text(STREAMED);
    program.wait_for_text("cut off when the program ended");
    assert_eq!(texts_of_first_call(&home), Vec::<String>::new());
    go_to_timeline(&mut program);
    program.send("C");
    program.wait_for_text("Allow write-file?");
    check_broken_off(&home);
    program.kill();
}

#[test]
fn the_text_of_a_turn_that_was_killed_is_in_its_log_once_it_is_closed() {
    let home = Home::new();
    killed_while_it_streams(&home);
    let mut program = Launch::new(PROGRAM, &home).argument("--continue").size(120, 40).start();
    program.wait_for_text("cut off when the program ended");
    go_to_timeline(&mut program);
    program.send("X");
    program.wait_for_text("and closed");
    program.wait_for_text(STREAMED);
    check_broken_off(&home);
    program.kill();
}

#[test]
fn a_draft_survives_kill_9() {
    let home = Home::new();
    let mut program = start(&home);
    write(&mut program, "half a sent");
    let draft = home.work_dir().join("var/composer/draft-new.json");
    program.wait_for_outside("the draft on the disk", || {
        let draft = std::fs::read_to_string(&draft);
        draft.is_ok_and(|text| text.contains("half a sent"))
    });
    program.kill();
    let mut program = start(&home);
    program.wait_for_text("› half a sent");
    program.send("ence");
    program.wait_for_text("› half a sentence");
    program.kill();
}

#[test]
fn leaving_while_a_turn_runs_says_what_will_happen_to_it() {
    let home = Home::new();
    let launch = Launch::new(PROGRAM, &home).variable("TURNSTILE_GUIDE_PACE_MS", "200");
    let mut program = launch.start();
    say(&mut program, "hello");
    program.wait_for_text("1 session running");
    program.send("\x04");
    program.wait_for_text("resumed");
    confirm(&mut program, "quit");
    let ended = program.wait_for_end();
    assert!(ended.traffic().modes_on.iter().eq([&25]), "{:?}", ended.traffic().modes_on);
    let program = go_on(&home);
    program.wait_for_text("Interrupted: this turn was cut off");
    quit(program);
}
