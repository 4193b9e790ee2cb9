//! How a command ends: its exit code, and what it says when it cannot be done.

use std::borrow::Cow;
use std::error::Error;
use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;

use crate::base::error::with_causes;
use crate::base::sanitize;

/// The form in which a command prints what was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// For people.
    Text,
    /// For programs: lines of JSON (`--json`).
    Json,
}

impl Form {
    pub(super) fn of(json: bool) -> Self {
        if json { Self::Json } else { Self::Text }
    }
}

/// How a command ended. The numbers are documented in the help of the commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exit {
    /// As it should.
    Done,
    /// It was carried out, and the answer is no: a turn failed, something is missing.
    Failed,
    /// The arguments or the configuration cannot be used, or this is no terminal.
    Usage,
    /// The disk, or another process that holds the folder.
    Disk,
    /// There is an answer, but not the whole of it.
    CutOff,
    /// A person ended it.
    Interrupted,
}

impl Exit {
    pub(super) fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Disk => 3,
            Self::CutOff => 4,
            Self::Interrupted => 130,
        }
    }

    /// The one with the higher code, of what is done about several things.
    pub(super) fn or_worse(self, other: Self) -> Self {
        if other.code() > self.code() { other } else { self }
    }
}

/// What kept a command from being done.
pub(super) struct Problem {
    exit: Exit,
    text: String,
}

impl Problem {
    /// A problem with its whole chain of causes.
    pub(super) fn of(exit: Exit, error: &dyn Error) -> Self {
        Self { exit, text: with_causes(error) }
    }

    /// The same, with a line about what to do.
    pub(super) fn with_hint(mut self, hint: &str) -> Self {
        self.text.push_str("; ");
        self.text.push_str(hint);
        self
    }

    /// The code that a command with this problem ends with.
    pub(super) fn exit(&self) -> Exit {
        self.exit
    }

    /// What kept the command from being done.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// A problem in these words.
    pub(super) fn new(exit: Exit, text: impl Into<String>) -> Self {
        Self { exit, text: text.into() }
    }
}

/// Says what kept a command from being done; gives the code to end with.
pub(super) fn tell(problem: &Problem) -> ExitCode {
    say(&problem.text);
    ExitCode::from(problem.exit.code())
}

/// Says something beside what was asked for.
pub(super) fn say(text: &str) {
    let mut err = std::io::stderr();
    let text = shown(text, err.is_terminal());
    // Nobody reading it is no further error.
    writeln!(err, "turnstile: {text}").ok();
}

/// Prints an answer with a line end: to a terminal as [`readable`], to a program as it is.
pub(super) fn print_answer(text: &str) -> Result<(), Problem> {
    print(&format!("{}\n", shown(text, std::io::stdout().is_terminal())))
}

/// A number of things.
pub(super) fn count(number: u64, one: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {one}s") }
}

fn shown(text: &str, to_terminal: bool) -> Cow<'_, str> {
    if to_terminal { Cow::Owned(readable(text)) } else { Cow::Borrowed(text) }
}

/// Text of somebody else so that it does nothing to a terminal; its lines stay.
pub(super) fn readable(text: &str) -> String {
    text.lines().map(sanitize::for_reading).collect::<Vec<_>>().join("\n")
}

/// Prints lines to standard output. A reader that has gone away (`| head`) ends the command quietly.
pub(super) fn print(text: &str) -> Result<(), Problem> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Problem::of(Exit::Disk, &error))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_gets_no_commands_of_others_and_a_program_gets_what_was_said() {
        let text = "one\u{1b}]0;title\u{7}\r\ntwo\tthree";
        let clean = shown(text, true);
        assert!(!clean.contains(['\u{1b}', '\u{7}', '\r']), "{clean:?}");
        assert_eq!(clean.lines().nth(1), Some("two\tthree"));
        assert_eq!(shown(text, false), text);
    }
}
