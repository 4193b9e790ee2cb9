//! Messages that are sent while a turn runs: they wait, can be changed, and are lost by no crash.

use turnstile::testing::gate::Gate;

use crate::person::{ENTER, go_to_composer, go_to_timeline, quit, say, shows};
use crate::server::{Lab, answers, in_two, launch};

const ALT_S: &str = "\x1bs";
const ALT_W: &str = "\x1bw";

#[test]
fn a_message_waits_while_a_turn_runs_is_edited_in_place_and_is_the_next_turn() {
    let gate = Gate::new();
    let lab = Lab::new([in_two(&gate), answers("And that was it.")]);
    let mut program = lab.start();
    say(&mut program, "Why?");
    program.wait_for_text("The first half,");
    say(&mut program, "And then");
    program.wait_for("a message that waits", |screen| {
        shows(screen, "✉ And then") && shows(screen, "waits")
    });
    program.send(ALT_W);
    program.wait_for_text("A message that waits");
    program.send(", finally?");
    program.wait_for_text("And then, finally?");
    program.send(ENTER);
    program.wait_for_text("✉ And then, finally?");
    gate.open();
    program.wait_for_text("And that was it.");
    program.wait_until_gone("✉");
    let requests = lab.server.requests();
    let asked = &requests.last().expect("two").body;
    assert!(asked.contains("And then, finally?"), "{asked}");
    quit(program);
}

#[test]
fn a_message_that_waited_is_held_after_kill_9_and_goes_when_the_person_says_so() {
    let gate = Gate::new();
    let lab = Lab::new([in_two(&gate), answers("And that was it.")]);
    let mut program = lab.start();
    say(&mut program, "Why?");
    program.wait_for_text("The first half,");
    say(&mut program, "And then?");
    program.wait_for_text("✉ And then?");
    program.kill();

    let mut program = launch(&lab.home).argument("--continue").start();
    program.wait_for("what was interrupted, and what is held", |screen| {
        shows(screen, "Interrupted: this turn was cut off")
            && shows(screen, "✉ And then?")
            && shows(screen, "held")
    });
    program.send(ALT_S);
    program.wait_for_text("The last turn was interrupted");
    assert_eq!(lab.server.requests().len(), 1, "nothing goes by itself");
    go_to_timeline(&mut program);
    program.send("X");
    program.wait_for_text("and closed");
    go_to_composer(&mut program);
    program.send(ALT_S);
    program.wait_for_text("And that was it.");
    program.wait_until_gone("✉");
    quit(program);
}
