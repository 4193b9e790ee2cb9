//! The window: every size, changes of it, and its end.

use turnstile::testing::pty::{Exit, Home, Launch, Program, Screen};

use crate::person::{CTRL_L, PROGRAM, quit, shows, start, with_sessions, write};

#[test]
fn a_window_that_is_too_small_says_so_and_what_was_typed_is_there_when_it_grows() {
    let home = Home::new();
    let mut program = Launch::new(PROGRAM, &home).size(18, 4).start();
    program.wait_for_text("turnstile needs");
    program.wait_for_text("20×5");
    program.send("typed blindly");
    program.resize(80, 24);
    program.wait_for_text("› typed blindly");
    program.resize(10, 2);
    program.wait_until_gone("typed");
    program.resize(40, 10);
    program.wait_for_text("› typed blindly");
    program.kill();
}

#[test]
fn the_program_begins_in_a_window_of_any_size() {
    let home = Home::new();
    for (columns, rows) in [(1, 1), (20, 5), (40, 10), (79, 24), (300, 100)] {
        let mut program = Launch::new(PROGRAM, &home).size(columns, rows).start();
        program.wait_for_frame_after(0);
        program.send("x");
        program.send("\x7f");
        quit(program);
    }
}

#[test]
fn after_a_storm_of_sizes_the_screen_is_as_drawn_anew() {
    let (home, sessions) = with_sessions(1);
    let launch = Launch::new(PROGRAM, &home).argument("--session").argument(sessions[0].as_str());
    let mut program = launch.start();
    program.wait_for_text("✓ done");
    program.wait_for_text("  Session 0: why");
    for step in 0..120_u16 {
        program.resize(20 + step * 37 % 150, 5 + step * 17 % 60);
    }
    program.resize(91, 27);
    check_as_drawn_anew(&mut program);
    program.resize(60, 14);
    check_as_drawn_anew(&mut program);
    quit(program);
}

fn check_as_drawn_anew(program: &mut Program) {
    program.wait_for("a frame of the whole window", |screen| {
        let (rows, columns) = screen.size();
        let at = |row, column| screen.cell(row, column).map(|cell| cell.contents().to_owned());
        let last = (rows.get() - 1, columns.get() - 1);
        at(0, last.1).as_deref() == Some("┐")
            && at(last.0, 0).as_deref() == Some("└")
            && at(last.0, last.1).as_deref() == Some("┘")
            && shows(screen, "F1 help")
            && !shows(screen, "reading sessions")
    });
    let (frames, before) = (program.frames().len(), program.screen());
    program.send(CTRL_L);
    program.wait_for_frame_after(frames);
    assert_eq!(program.screen(), before);
}

#[test]
fn nothing_is_written_while_nothing_happens() {
    let (home, sessions) = with_sessions(5);
    let launch = Launch::new(PROGRAM, &home).argument("--session").argument(sessions[4].as_str());
    let program = launch.start();
    program.wait_for_text("✓ done");
    program.wait_for_text("Session 0:");
    program.wait_for_text("guide/guide");
    program.wait_for_silence();
    quit(program);
}

#[test]
fn a_closed_window_ends_the_program() {
    let home = Home::new();
    let mut program = start(&home);
    write(&mut program, "a draft");
    let ended = program.hang_up();
    // By the signal that the window is gone, or by the frame that could not be written any more.
    assert!(matches!(ended.exit, Exit::Code(130 | 1)), "{:?}", ended.exit);
    let program = start(&home);
    program.wait_for("the draft", |screen: &Screen| shows(screen, "› a draft"));
    program.kill();
}
