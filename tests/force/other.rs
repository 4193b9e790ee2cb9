//! Another process that runs one test of this program, which is told by its environment what to do
//! and says on standard output how far it is.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use turnstile::base::clock::{Clock as _, System};

/// How every line begins that is meant for whoever started the process.
const MARK: &str = "> ";
/// How long something may take on a loaded machine. What takes longer does not happen.
const WAIT_MAX: Duration = Duration::from_mins(1);
/// More lines than are ever waiting.
const LINES_MAX: usize = 4_096;

/// Says something to whoever started this process. What is said before something is begun is with
/// them before it happens, whenever the process ends.
#[expect(clippy::print_stdout, reason = "it is how another process says how far it is")]
pub(crate) fn say(line: &str) {
    println!("{MARK}{line}");
}

/// Ends the line that the test harness has begun.
#[expect(clippy::print_stdout, reason = "what is said begins on a line of its own")]
pub(crate) fn begin() {
    println!();
}

/// What the environment says under this name.
#[expect(clippy::disallowed_methods, reason = "it is how this process is told what to do")]
pub(crate) fn told(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// This program once more, to run only the test of this name.
pub(crate) fn this_program(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this test has a program"));
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]);
    command
}

/// The program, for a person whose files are below `home`. They are in `home/project`.
pub(crate) fn turnstile(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_turnstile"));
    command
        .current_dir(home.join("project"))
        .env_clear()
        .env("HOME", home.join("home"))
        .env("TURNSTILE_HOME", home.join("work"))
        .env("TURNSTILE_GUIDE_PACE_MS", "0")
        .stdin(Stdio::null());
    command
}

/// A process that says lines.
pub(crate) struct Other {
    process: Child,
    lines: Receiver<String>,
}

impl Other {
    /// Starts it. Every line that it writes is heard.
    pub(crate) fn start(command: &mut Command) -> Self {
        let piped = command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut process = piped.spawn().expect("it starts");
        let mut said = BufReader::new(process.stdout.take().expect("it is piped"));
        let (heard, lines) = sync_channel(LINES_MAX);
        thread::spawn(move || {
            let mut line = Vec::new();
            // What is no whole line was not said.
            while said.read_until(b'\n', &mut line).is_ok() && line.pop() == Some(b'\n') {
                let text = String::from_utf8_lossy(&line).into_owned();
                if heard.send(text).is_err() {
                    return;
                }
                line.clear();
            }
        });
        Self { process, lines }
    }

    /// Hears so many lines, and then those of so long a time; fewer, if the process ends. It is about
    /// a moment that nothing marks, so time itself is waited for.
    pub(crate) fn hear(&self, lines: usize, time: Duration) -> Vec<String> {
        let mut heard = Vec::new();
        while heard.len() < lines {
            match self.lines.recv_timeout(WAIT_MAX) {
                Ok(line) => heard.push(line),
                Err(RecvTimeoutError::Disconnected) => return heard,
                Err(RecvTimeoutError::Timeout) => panic!("nothing more is said after {heard:?}"),
            }
        }
        let clock = System::new();
        while let Some(rest) = time.checked_sub(clock.elapsed())
            && let Ok(line) = self.lines.recv_timeout(rest)
        {
            heard.push(line);
        }
        heard
    }

    /// Hears until a line ends with this, which is the last of what it gives.
    pub(crate) fn hear_until(&self, what: &str) -> Vec<String> {
        let mut heard = Vec::new();
        while heard.last().is_none_or(|line: &String| !line.ends_with(what)) {
            match self.lines.recv_timeout(WAIT_MAX) {
                Ok(line) => heard.push(line),
                Err(why) => panic!("{what:?} is not said ({why}): {heard:?}"),
            }
        }
        heard
    }

    /// Kills it; gives all that it had said and was not heard yet.
    pub(crate) fn kill(mut self) -> Vec<String> {
        self.process.kill().expect("it is our child");
        self.end().1
    }

    /// Lets it go on for so long, and kills it; whether it had not ended by itself.
    pub(crate) fn kill_after(mut self, time: Duration) -> bool {
        drop(self.hear(0, time));
        self.process.kill().expect("it is our child");
        self.end().0.code().is_none()
    }

    /// Waits for its end; gives that, and all that was not heard yet.
    pub(crate) fn end(&mut self) -> (ExitStatus, Vec<String>) {
        let mut rest = Vec::new();
        loop {
            match self.lines.recv_timeout(WAIT_MAX) {
                Ok(line) => rest.push(line),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("it does not end after {rest:?}"),
            }
        }
        (self.process.wait().expect("it is our child"), rest)
    }
}

/// Nobody outlives who started it.
impl Drop for Other {
    fn drop(&mut self) {
        // One that has ended already is no error.
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// What lines say, without those of the test harness.
pub(crate) fn marked(lines: &[String]) -> impl Iterator<Item = &str> {
    lines.iter().filter_map(|line| line.strip_prefix(MARK))
}
