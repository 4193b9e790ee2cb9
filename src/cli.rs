//! The command line: arguments, what each command does, exit codes. The only floor that knows the
//! process.

pub mod args;
mod chat;
mod doctor;
mod progress;
mod report;
mod run;
mod sessions;
mod stalled;
mod start;
mod storage;

use std::process::ExitCode;

use crate::cli::args::{Arguments, Command};
use crate::cli::report::Exit;

/// Does what the arguments of the process say.
#[must_use]
pub fn main() -> ExitCode {
    let arguments = match Arguments::read(std::env::args_os()) {
        Ok(arguments) => arguments,
        // Help and version are no errors; clap knows where each belongs.
        Err(told) => {
            told.print().ok();
            return ExitCode::from(if told.use_stderr() { Exit::Usage.code() } else { 0 });
        }
    };
    let Arguments { command, common, chat } = arguments;
    let done = match command {
        None => chat::chat(&common, &chat),
        Some(Command::Run(run)) => run::run(&common, &run),
        Some(Command::Sessions(sessions)) => sessions::sessions(&common, &sessions),
        Some(Command::Storage(storage)) => storage::storage(&common, &storage),
        Some(Command::Doctor) => doctor::doctor(&common),
        Some(Command::ResetTerminal) => chat::reset_terminal(),
    };
    match done {
        Ok(exit) => ExitCode::from(exit.code()),
        Err(problem) => report::tell(&problem),
    }
}
