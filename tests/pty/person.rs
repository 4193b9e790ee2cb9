//! What a person does, in steps that wait for what they see, and what else the tests share.

use std::fs;
use std::path::{Path, PathBuf};

use turnstile::base::id::SessionId;
use turnstile::base::tasks::Tasks;
use turnstile::testing::fixture::{Archive, Shape};
use turnstile::testing::pty::{Ended, Exit, Home, Launch, Program, Screen};

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_turnstile");

pub(crate) const CTRL_C: &str = "\x03";
pub(crate) const CTRL_D: &str = "\x04";
pub(crate) const CTRL_L: &str = "\x0c";
pub(crate) const CTRL_X: &str = "\x18";
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

/// Writes a message and sends it.
pub(crate) fn say(program: &mut Program, text: &str) {
    program.send(text);
    program.wait_for_text(&format!("› {text}"));
    program.send(ENTER);
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
    let sessions = runtime().block_on(archive.add(count, Shape::SMALL));
    (home, sessions)
}

/// A runtime for what a test does beside the program.
pub(crate) fn runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(1).enable_all().build().expect("a runtime")
}

/// All files below a folder.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

/// The log of a session or a turn whose id is in `id`.
pub(crate) fn log_of(home: &Home, kind: &str, id: &str) -> PathBuf {
    let logs = files(&home.work_dir().join("storage").join(kind));
    let name = format!("{id}.jsonl");
    logs.into_iter().find(|log| log.ends_with(&name)).expect("the log is there")
}
