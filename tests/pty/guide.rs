//! The first start: the guide answers, asks, and all of it is there the next time.

use turnstile::testing::folder::files;
use turnstile::testing::pty::{Home, Launch};

use crate::person::{
    DOWN, ENTER, PROGRAM, dismiss_question, go_on, go_to_composer, go_to_list, go_to_prompt,
    go_to_timeline, logs, quit, say, shows, start, with_sessions,
};

#[test]
fn starting_makes_no_session_and_the_first_message_makes_one() {
    let home = Home::new();
    quit(start(&home));
    assert_eq!(logs(&home), Vec::<std::path::PathBuf>::new());
    let mut program = start(&home);
    say(&mut program, "hello");
    program.wait_for_text("Allow write-file?");
    quit(program);
    assert_eq!(logs(&home).len(), 2, "a session and its turn");
}

#[test]
fn an_answer_streams_asks_goes_on_and_is_there_after_a_restart() {
    let home = Home::new();
    let launch = Launch::new(PROGRAM, &home).variable("TURNSTILE_GUIDE_PACE_MS", "10");
    let mut program = launch.size(120, 40).start();
    say(&mut program, "hello");
    program.wait_for("text before the end of the turn", |screen| {
        shows(screen, "I am the guide") && shows(screen, "1 session running")
    });
    go_to_prompt(&mut program, "Allow write-file?");
    program.wait_for_text("The guide wrote this file after you allowed it.");
    program.send("y");
    go_to_prompt(&mut program, "What would you like to see now?");
    program.send(DOWN);
    program.wait_for_text("› ( ) The most useful keys");
    program.send(" ");
    program.wait_for_text("(•) The most useful keys");
    program.send(ENTER);
    program.wait_for_text("You can ask me about");
    program.wait_for_text("✓ done");
    let ended = quit(program);
    assert!(shows(&ended.screen, "comes back to this session"), "{}", ended.screen.contents());
    let written = files(home.folder()).into_iter().find(|file| file.ends_with("notes.md"));
    let written = std::fs::read_to_string(written.expect("the file was written"));
    assert!(written.expect("text").contains("after you allowed it"));

    let mut program = start(&home);
    go_to_list(&mut program, "hello");
    program.send(ENTER);
    program.wait_for("the turn of before", |screen| {
        shows(screen, "You can ask me about") && shows(screen, "✓ done")
    });
    go_to_timeline(&mut program);
    program.send("g");
    program.wait_for_text("I am the guide");
    go_to_composer(&mut program);
    quit(program);
}

#[test]
fn the_session_that_was_used_last_can_be_gone_on_with() {
    let (home, _earlier) = with_sessions(2);
    let mut program = start(&home);
    say(&mut program, "hello");
    go_to_prompt(&mut program, "Allow write-file?");
    program.send("n");
    dismiss_question(&mut program);
    quit(program);
    let mut program = go_on(&home);
    program.wait_for("the turn of before", |screen| {
        shows(screen, "You can ask me about") && shows(screen, "✓ done")
    });
    say(&mut program, "delete");
    program.wait_for_text("in the session list deletes a session");
    program.wait_for_text("✓ done");
    quit(program);
}
