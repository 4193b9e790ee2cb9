//! Runs that ended in the middle: what was asked, said and typed is there at the next start.

use turnstile::testing::pty::{Home, Launch};

use crate::person::{
    CTRL_X, ENTER, PROGRAM, files, go_on, go_to_list, go_to_prompt, go_to_timeline, quit, say,
    start,
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
    go_to_prompt(&mut program, "What would you like to see now?");
    program.send(CTRL_X);
    program.wait_for_text("Ctrl-X …");
    program.send("d");
    program.wait_for_text("✓ done");
    assert!(files(home.folder()).iter().any(|file| file.ends_with("notes.md")));
    quit(program);
}

#[test]
fn a_turn_that_was_killed_while_it_streamed_is_told_of_and_can_be_resumed() {
    let home = Home::new();
    let launch = Launch::new(PROGRAM, &home).variable("TURNSTILE_GUIDE_PACE_MS", "25");
    let mut program = launch.size(120, 40).start();
    say(&mut program, "hello");
    program.wait_for_text("everything is on disk as it happens");
    program.kill();

    let program = Launch::new(PROGRAM, &home).size(120, 40).start();
    program.wait_for_text("The last run ended badly");
    quit(program);
    let mut program = Launch::new(PROGRAM, &home).argument("--continue").size(120, 40).start();
    program.wait_for_text("Interrupted: the program ended");
    go_to_timeline(&mut program);
    program.send("C");
    program.wait_for_text("Allow write-file?");
    program.kill();
}

#[test]
fn a_draft_survives_kill_9() {
    let home = Home::new();
    let mut program = start(&home);
    program.send("half a sent");
    program.wait_for_text("› half a sent");
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
    program.send("y");
    let ended = program.wait_for_end();
    assert!(ended.traffic().modes_on.iter().eq([&25]), "{:?}", ended.traffic().modes_on);
    let program = go_on(&home);
    program.wait_for_text("Interrupted: the program ended");
    quit(program);
}
