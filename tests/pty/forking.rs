//! Going another way from an earlier place of a conversation.

use turnstile::testing::folder::files;

use crate::person::{ENTER, ask, go_to_composer, go_to_timeline, quit, shows};
use crate::server::{Lab, answers};

#[test]
fn a_conversation_is_forked_and_a_message_of_it_is_written_anew() {
    let lab = Lab::new([answers("One."), answers("Two."), answers("Three.")]);
    let mut program = lab.start();
    ask(&mut program, "First?", "One.");
    ask(&mut program, "Second?", "Two.");

    go_to_timeline(&mut program);
    program.send("f");
    program.wait_for("a fork with all that was said", |screen| {
        shows(screen, "First? ⑂ First?") && shows(screen, "F1 help") && shows(screen, "Two.")
    });
    go_to_timeline(&mut program);
    program.send("{");
    program.wait_for_text("▌You");
    program.send("e");
    program.wait_for("the message in a fork before it", |screen| {
        shows(screen, "› Second?") && shows(screen, "One.") && !shows(screen, "Two.")
    });
    program.send(" Again?");
    program.wait_for_text("› Second? Again?");
    program.send(ENTER);
    program.wait_for_text("Three.");
    program.wait_until_gone("1 session running");

    go_to_timeline(&mut program);
    program.send("g");
    program.wait_for_text("▌You");
    program.send("e");
    program.wait_for("the first message in a fork of nothing", |screen| {
        shows(screen, "› First?") && shows(screen, "Nothing was said here yet")
    });
    let sessions = files(&lab.home.work_dir().join("storage/sessions"));
    assert_eq!(sessions.len(), 4, "{sessions:?}");
    go_to_timeline(&mut program);
    go_to_composer(&mut program);
    program.send("\x15");
    program.wait_until_gone("› First?");
    quit(program);
}
