//! Putting sessions away, and getting them back.

use crate::person::{go_to_composer, go_to_list, quit, shows, start, with_sessions};

#[test]
fn a_session_that_was_put_away_is_out_of_the_list_and_comes_back_from_its_view() {
    let (home, _) = with_sessions(2);
    let mut program = start(&home);
    go_to_list(&mut program, "Session 1:");
    program.send("a");
    program.wait_for("a list without it", |screen| {
        shows(screen, "Put away 1 session") && !shows(screen, "Session 1:")
    });
    go_to_composer(&mut program);
    quit(program);

    let mut program = start(&home);
    go_to_list(&mut program, "Session 0:");
    program.send("A");
    program.wait_for("what is put away", |screen| {
        shows(screen, "Archived") && shows(screen, "Session 1:") && !shows(screen, "Session 0:")
    });
    program.send("a");
    program.wait_for_text("Nothing is put away");
    program.send("A");
    program.wait_for("both again", |screen| {
        shows(screen, "Session 0:") && shows(screen, "Session 1:")
    });
    go_to_composer(&mut program);
    quit(program);
}
