//! What a person does, in steps that wait for what they see, and what else the tests share.

use std::path::PathBuf;

use turnstile::base::id::SessionId;
use turnstile::base::tasks::Tasks;
use turnstile::testing::beside;
use turnstile::testing::fixture::{Archive, Shape};
use turnstile::testing::folder::files;
use turnstile::testing::pty::{Ended, Exit, Home, Launch, Program, Screen};

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_turnstile");

pub(crate) const CTRL_C: &str = "\x03";
pub(crate) const CTRL_D: &str = "\x04";
pub(crate) const CTRL_L: &str = "\x0c";
const CTRL_X: &str = "\x18";
pub(crate) const CTRL_Y: &str = "\x19";
pub(crate) const CTRL_Z: &str = "\x1a";
pub(crate) const DOWN: &str = "\x1b[B";
pub(crate) const ENTER: &str = "\r";
pub(crate) const ESC: &str = "\x1b";

/// Where the cursor stands while the list has the focus.
const LIST_COLUMNS: u16 = 5;

/// Starts the program in a home, and waits until it knows who answers.
pub(crate) fn start(home: &Home) -> Program {
    let program = Launch::new(PROGRAM, home).start();
    program.wait_for_text("guide/guide");
    program
}

/// Starts the program with the session that was used last.
pub(crate) fn go_on(home: &Home) -> Program {
    Launch::new(PROGRAM, home).argument("--continue").start()
}

/// Types into the empty composer, and waits until it stands there.
pub(crate) fn write(program: &mut Program, text: &str) {
    program.send(text);
    program.wait_for_text(&format!("› {text}"));
}

/// Takes back what stands in the composer.
pub(crate) fn clear(program: &mut Program, text: &str) {
    program.send(CTRL_C);
    program.wait_until_gone(&format!("› {text}"));
}

/// Writes a message and sends it.
pub(crate) fn say(program: &mut Program, text: &str) {
    write(program, text);
    program.send(ENTER);
}

/// Sends a message, and waits until it is answered with this and nothing runs.
pub(crate) fn ask(program: &mut Program, text: &str, answer: &str) {
    say(program, text);
    program.wait_for_text(answer);
    program.wait_until_gone("1 session running");
}

/// Goes to the question of the guide's tour and dismisses it; the tour is over with that.
pub(crate) fn dismiss_question(program: &mut Program) {
    go_to_prompt(program, "What would you like to see now?");
    program.send(CTRL_X);
    program.wait_for_text("Ctrl-X …");
    program.send("d");
    program.wait_for_text("✓ done");
}

/// Goes to the prompt that waits, and waits until its keys are live.
pub(crate) fn go_to_prompt(program: &mut Program, about: &str) {
    program.wait_for(about, |screen| shows(screen, about) && shows(screen, "Ctrl-Y to review"));
    program.send(CTRL_Y);
    program.wait_for("a prompt with live keys", |screen| {
        shows(screen, "Esc later") && !shows(screen, "keys work in a moment")
    });
}

/// Says yes to a question once its keys are live.
pub(crate) fn confirm(program: &mut Program, yes: &str) {
    program.wait_for(yes, |screen| {
        shows(screen, &format!("y {yes}")) && !shows(screen, "keys work in a moment")
    });
    program.send("y");
}

/// Goes to the session list once `session` is in it.
pub(crate) fn go_to_list(program: &mut Program, session: &str) {
    program.wait_for_text(session);
    // Escape and a letter in one go would be another key.
    go_to_timeline(program);
    program.send("h");
    program.wait_for("the cursor in the list", |screen| screen.cursor_position().1 < LIST_COLUMNS);
}

/// Goes from the composer to the conversation.
pub(crate) fn go_to_timeline(program: &mut Program) {
    program.send(ESC);
    program.wait_for("help on keys that are no text", |screen| shows(screen, "? help"));
}

/// Goes from the conversation or the list to the composer.
pub(crate) fn go_to_composer(program: &mut Program) {
    program.send("i");
    program.wait_for("help while text is typed", |screen| shows(screen, "F1 help"));
}

/// Leaves from the composer once nothing runs; the program ends as it should.
pub(crate) fn quit(mut program: Program) -> Ended {
    program.wait_until_gone("session running");
    program.send(CTRL_D);
    let ended = program.wait_for_end();
    assert_eq!(ended.exit, Exit::Code(0), "{}", ended.screen.contents());
    ended
}

/// Whether `text` stands on the screen.
pub(crate) fn shows(screen: &Screen, text: &str) -> bool {
    screen.contents().contains(text)
}

/// Fills a home with sessions of one short turn each; their titles begin with `Session 0:` and so on.
pub(crate) fn with_sessions(count: usize) -> (Home, Vec<SessionId>) {
    let home = Home::new();
    let tasks = Tasks::new();
    let archive = Archive::new(&home.work_dir(), &tasks);
    let sessions = beside::runtime().block_on(archive.add(count, Shape::SMALL));
    (home, sessions)
}

/// The logs of all sessions and turns.
pub(crate) fn logs(home: &Home) -> Vec<PathBuf> {
    let kinds = ["sessions", "turns"].map(|kind| home.work_dir().join("storage").join(kind));
    kinds.iter().flat_map(|folder| files(folder)).collect()
}

/// The log of a session or a turn whose id is in `id`.
pub(crate) fn log_of(home: &Home, kind: &str, id: &str) -> PathBuf {
    let logs = files(&home.work_dir().join("storage").join(kind));
    let name = format!("{id}.jsonl");
    logs.into_iter().find(|log| log.ends_with(&name)).expect("the log is there")
}
