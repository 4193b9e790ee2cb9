//! The event view: what a turn's log says, while it waits for somebody.

use crate::person::{ENTER, ask, go_to_composer, go_to_timeline, quit, say, shows, start};
use crate::server::{Lab, answers};
use turnstile::testing::pty::Home;

#[test]
fn a_turn_is_shown_event_by_event_and_each_event_whole() {
    let home = Home::new();
    let mut program = start(&home);
    say(&mut program, "hello");
    program.wait_for_text("Allow write-file?");
    go_to_timeline(&mut program);
    program.send("x");
    program.wait_for_text("tool_permission_required  write-file");
    program.send(ENTER);
    program.wait_for("the first event", |screen| {
        shows(screen, "Event 1") && shows(screen, "\"type\": \"turn_created\"")
    });
    program.send("q");
    program.wait_for_text("Events · 1 of");
    program.send("q");
    program.wait_for("no event view", |screen| !shows(screen, "Events · "));
    go_to_composer(&mut program);
    quit(program);
}

#[test]
fn the_exact_request_of_a_call_is_shown() {
    let lab = Lab::new([answers("So it is.")]);
    let mut program = lab.start();
    ask(&mut program, "Why?", "So it is.");
    go_to_timeline(&mut program);
    program.send("x");
    program.wait_for_text("model_call_requested  call 0");
    program.send("j");
    program.wait_for_text("Events · 2 of");
    program.send("r");
    program.wait_for("its beginning", |screen| {
        shows(screen, "Request of call 0") && shows(screen, "\"systemPrompt\":")
    });
    program.send("G");
    program.wait_for_text("\"content\": \"Why?\"");
    program.send("q");
    program.wait_for_text("Events · 2 of");
    program.send("q");
    program.wait_for("no event view", |screen| !shows(screen, "Events · "));
    go_to_composer(&mut program);
    quit(program);
}
