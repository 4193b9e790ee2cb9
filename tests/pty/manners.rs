//! What the program does to the terminal: it is as it was on every way out, and no terminal has to
//! answer.

use rustix::process::Signal;
use turnstile::testing::pty::{Ended, Exit, Home, Launch, Manners, Traffic};

use crate::person::{CTRL_C, CTRL_Z, PROGRAM, clear, quit, shows, start, write};

/// The cursor is the one thing that is on.
fn check_restored(ended: &Ended) {
    let Traffic { modes_on, keyboard_pushes, clears, .. } = ended.traffic();
    assert_eq!((modes_on, keyboard_pushes, clears), ([25].into(), 0, 0));
    assert!(!ended.screen.alternate_screen() && !ended.screen.hide_cursor());
}

#[test]
fn the_terminal_is_as_it_was_after_leaving_by_keys() {
    let home = Home::new();
    check_restored(&quit(start(&home)));
    let mut program = start(&home);
    program.send(CTRL_C);
    program.wait_for_text("again quits");
    program.send(CTRL_C);
    let ended = program.wait_for_end();
    assert_eq!(ended.exit, Exit::Code(0));
    check_restored(&ended);
}

#[test]
fn the_terminal_is_as_it_was_after_a_signal() {
    let home = Home::new();
    for signal in [Signal::TERM, Signal::HUP, Signal::INT] {
        let program = start(&home);
        program.signal(signal);
        let ended = program.wait_for_end();
        assert_eq!(ended.exit, Exit::Code(130), "{signal:?}");
        check_restored(&ended);
    }
}

#[test]
fn keyboard_flags_are_used_by_terminals_that_know_them_and_given_back() {
    let home = Home::new();
    let launch = Launch::new(PROGRAM, &home).manners(Manners::Keyboard);
    let mut program = launch.start();
    program.wait_for_text("guide/guide");
    program.wait_for_outside("the flags", || program.traffic().keyboard_pushes == 1);
    // Ctrl-D, as such a terminal reports it.
    program.send("\x1b[100;5u");
    let ended = program.wait_for_end();
    assert_eq!(ended.exit, Exit::Code(0));
    check_restored(&ended);
}

#[test]
fn a_terminal_that_answers_nothing_does_as_well() {
    let home = Home::new();
    let mut program = Launch::new(PROGRAM, &home).manners(Manners::Silent).start();
    write(&mut program, "typed");
    clear(&mut program, "typed");
    check_restored(&quit(program));
}

#[test]
fn without_a_shell_to_wake_it_the_program_does_not_stop() {
    let home = Home::new();
    let mut program = start(&home);
    program.send(CTRL_Z);
    write(&mut program, "still here");
    clear(&mut program, "still here");
    check_restored(&quit(program));
}

#[test]
fn a_terminal_that_a_killed_program_left_is_repaired() {
    let home = Home::new();
    let killed = start(&home).kill();
    assert!(killed.screen.alternate_screen());
    let ended = Launch::new(PROGRAM, &home).argument("reset-terminal").start().wait_for_end();
    assert_eq!(ended.exit, Exit::Code(0));
    let traffic = Traffic::of(&[killed.raw, ended.raw].concat());
    assert!(traffic.modes_on.is_subset(&[7, 25].into()), "{:?}", traffic.modes_on);
}

#[test]
fn no_colour_is_written_where_none_is_wanted() {
    let home = Home::new();
    let program = Launch::new(PROGRAM, &home).variable("NO_COLOR", "1").start();
    program.wait_for_text("guide/guide");
    program.wait_for("cells without colours", |screen| {
        let (rows, columns) = screen.size();
        let cells = (0..rows.get()).flat_map(|row| (0..columns.get()).map(move |col| (row, col)));
        let mut cells = cells.filter_map(|(row, column)| screen.cell(row, column));
        shows(screen, "F1 help")
            && cells.all(|cell| {
                (cell.fgcolor(), cell.bgcolor()) == (vt100::Color::Default, vt100::Color::Default)
            })
    });
    quit(program);
}
