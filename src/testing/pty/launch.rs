//! Starting the program in a terminal of its own.

use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::thread;

use portable_pty::{Child, CommandBuilder, PtySize, native_pty_system};
use rustix::process::Pid;

use crate::base::clock::System;
use crate::testing::pty::window::Window;
use crate::testing::pty::{Exit, Home, Manners, Program};

/// How the program is started.
#[derive(Clone, Debug)]
pub struct Launch {
    binary: String,
    arguments: Vec<String>,
    variables: Vec<(String, String)>,
    size: (u16, u16),
    manners: Manners,
}

impl Launch {
    /// The program at `binary` (`env!("CARGO_BIN_EXE_turnstile")`), as a person in `home` starts it
    /// in a terminal of 100 columns and 30 rows.
    #[must_use]
    pub fn new(binary: &str, home: &Home) -> Self {
        Self {
            binary: binary.to_owned(),
            arguments: Vec::new(),
            variables: home.variables(),
            size: (100, 30),
            manners: Manners::default(),
        }
    }

    /// With one more argument.
    #[must_use]
    pub fn argument(mut self, argument: &str) -> Self {
        self.arguments.push(argument.to_owned());
        self
    }

    /// With this variable in the environment.
    #[must_use]
    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// In a terminal of this size.
    #[must_use]
    pub fn size(mut self, columns: u16, rows: u16) -> Self {
        self.size = (columns, rows);
        self
    }

    /// In a terminal that answers like this.
    #[must_use]
    pub fn manners(mut self, manners: Manners) -> Self {
        self.manners = manners;
        self
    }

    /// Starts it.
    #[must_use]
    pub fn start(self) -> Program {
        let pair = native_pty_system().openpty(pty_size(self.size)).expect("a pseudo-terminal");
        let mut command = CommandBuilder::new(&self.binary);
        command.env_clear();
        command.args(&self.arguments);
        for (name, value) in &self.variables {
            command.env(name, value);
            if name == "PWD" {
                command.cwd(value);
            }
        }
        let (master, slave) = (pair.master, pair.slave);
        let reader = master.try_clone_reader().expect("the terminal can be read");
        let writer = master.take_writer().expect("the terminal can be written");
        let keyboard = Arc::new(Mutex::new(writer));
        let clock = Arc::new(System::new());
        let window = Arc::new(Window::new(self.size, self.manners));
        let child = slave.spawn_command(command).expect("the program starts");
        // The end of the program is then the end of what there is to read.
        drop(slave);
        let pid = child.process_id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        let reading = thread::spawn({
            let (window, keyboard) = (Arc::clone(&window), Arc::clone(&keyboard));
            let clock = Arc::clone(&clock);
            move || window.show(reader, &keyboard, &clock)
        });
        let (exited, exit) = sync_channel(1);
        thread::spawn(move || exited.send(wait(child)));
        Program {
            pid: pid.expect("a process has an id"),
            master: Some(master),
            keyboard: Some(keyboard),
            window,
            clock,
            reading: Some(reading),
            exit,
            ended: None,
        }
    }
}

pub(super) fn pty_size((columns, rows): (u16, u16)) -> PtySize {
    PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 }
}

fn wait(mut child: Box<dyn Child + Send + Sync>) -> Exit {
    let status = child.wait().expect("the process is our child");
    match status.signal() {
        Some(signal) => Exit::Killed(signal.to_owned()),
        None => Exit::Code(status.exit_code()),
    }
}
