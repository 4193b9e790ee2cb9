//! Deleting sessions, and taking that back.

use turnstile::testing::pty::Program;

use crate::person::{confirm, go_to_composer, go_to_list, quit, shows, start, with_sessions};

#[test]
fn a_deleted_session_comes_back_with_undo_and_stays_away_when_deleted_again() {
    let (home, _) = with_sessions(3);
    let mut program = start(&home);
    go_to_list(&mut program, "Session 2:");
    delete(&mut program);
    program.send("u");
    program.wait_for_text("Restored 1 session");
    program.wait_for_text("Session 2:");
    delete(&mut program);
    go_to_composer(&mut program);
    quit(program);

    let program = start(&home);
    program.wait_for("the others alone", |screen| {
        shows(screen, "Session 0:") && shows(screen, "Session 1:") && !shows(screen, "Session 2:")
    });
    quit(program);
}

/// Deletes the session under the cursor, the first.
fn delete(program: &mut Program) {
    program.send("d");
    confirm(program, "delete");
    program.wait_for("a list without it", |screen| {
        shows(screen, "Deleted 1 session") && !shows(screen, "Session 2:")
    });
}
