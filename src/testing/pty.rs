//! The program in a real pseudo-terminal: a test is the terminal and the person before it. It waits
//! for what it sees, never for time to pass.
#![expect(
    clippy::missing_panics_doc,
    clippy::must_use_candidate,
    reason = "the person panics where the program does not do what is waited for, and often waits \
              for nothing else"
)]

mod emulator;
mod home;
mod traffic;

use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use rustix::process::{Pid, Signal, kill_process};

use crate::base::clock::{Clock, System};
use crate::testing::pty::emulator::Emulator;

pub use emulator::{Frame, Manners};
pub use home::Home;
pub use traffic::Traffic;
pub use vt100::Screen;

/// How long something may take on a loaded machine. What takes longer does not happen.
const WAIT_MAX: Duration = Duration::from_mins(1);
/// How often the disk is looked at while it is waited for.
const LOOK_AGAIN: Duration = Duration::from_millis(10);
/// Longer than any timer of the program that draws.
const SILENCE: Duration = Duration::from_millis(1_500);
/// More than the kernel keeps of what a program wrote.
const READ_BYTES: usize = 64 * 1024;

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

fn pty_size((columns, rows): (u16, u16)) -> PtySize {
    PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 }
}

fn wait(mut child: Box<dyn Child + Send + Sync>) -> Exit {
    let status = child.wait().expect("the process is our child");
    match status.signal() {
        Some(signal) => Exit::Killed(signal.to_owned()),
        None => Exit::Code(status.exit_code()),
    }
}

type Keyboard = Arc<Mutex<Box<dyn Write + Send>>>;

/// How the program ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this code.
    Code(u32),
    /// By the signal that the system describes so.
    Killed(String),
}

/// A running program and its terminal. Dropped, it is killed.
pub struct Program {
    pid: Pid,
    /// None once the window was closed.
    master: Option<Box<dyn MasterPty + Send>>,
    keyboard: Option<Keyboard>,
    window: Arc<Window>,
    clock: Arc<System>,
    reading: Option<JoinHandle<()>>,
    exit: Receiver<Exit>,
    ended: Option<Exit>,
}

impl Program {
    /// Types.
    pub fn send(&mut self, keys: impl AsRef<[u8]>) {
        if let Some(keyboard) = &self.keyboard {
            let mut keyboard = keyboard.lock().unwrap_or_else(PoisonError::into_inner);
            // A program that has ended reads no more; whoever waits for an effect sees that.
            keyboard.write_all(keys.as_ref()).and_then(|()| keyboard.flush()).ok();
        }
    }

    /// Pastes, as a terminal does that was asked to mark it.
    pub fn paste(&mut self, text: &str) {
        self.send(format!("\x1b[200~{text}\x1b[201~"));
    }

    /// Changes the size of the window.
    pub fn resize(&self, columns: u16, rows: u16) {
        self.window.lock().emulator.resize(columns, rows);
        if let Some(master) = &self.master {
            master.resize(pty_size((columns, rows))).expect("the terminal can be resized");
        }
    }

    /// What is on the screen, row by row.
    #[must_use]
    pub fn screen(&self) -> String {
        self.window.lock().emulator.screen().contents()
    }

    /// Waits until `holds` of the screen; `what` says what is waited for.
    pub fn wait_for(&self, what: &str, holds: impl Fn(&Screen) -> bool) {
        self.wait_until(what, |seen| holds(seen.emulator.screen()));
    }

    /// Waits until `text` stands on the screen.
    pub fn wait_for_text(&self, text: &str) {
        self.wait_for(text, |screen| screen.contents().contains(text));
    }

    /// Waits until `text` stands on the screen no more.
    pub fn wait_until_gone(&self, text: &str) {
        self.wait_for(&format!("the end of {text}"), |screen| !screen.contents().contains(text));
    }

    /// Waits until the program has drawn more frames than `seen`; gives how many there are.
    pub fn wait_for_frame_after(&self, seen: usize) -> usize {
        self.wait_until("another frame", |window| window.emulator.frames().len() > seen);
        self.frames().len()
    }

    /// Waits until something is so that the terminal does not show, such as what is on the disk.
    pub fn wait_for_outside(&self, what: &str, holds: impl Fn() -> bool) {
        let deadline = self.clock.elapsed() + WAIT_MAX;
        while !holds() {
            let seen = self.window.lock();
            let late = self.clock.elapsed() > deadline || seen.over;
            let screen = seen.emulator.screen().contents();
            assert!(!late, "waited for {what}:\n{screen}");
            drop(self.window.changed.wait_timeout(seen, LOOK_AGAIN));
        }
    }

    /// Waits until what was under way is drawn, then watches that the program writes nothing.
    ///
    /// # Panics
    /// When the program does not come to rest in time, or writes after it had.
    pub fn wait_for_silence(&self) {
        let deadline = self.clock.elapsed() + WAIT_MAX;
        while let Some(written) = self.written_in(SILENCE) {
            assert!(self.clock.elapsed() <= deadline, "the program does not rest: {written}");
        }
        assert_eq!(self.written_in(SILENCE), None);
    }

    /// What the program wrote before `time` had gone by, as far as it had come at the first change.
    fn written_in(&self, time: Duration) -> Option<String> {
        let seen = self.window.lock();
        let before = seen.emulator.raw().len();
        let silent = |seen: &mut Seen| seen.emulator.raw().len() == before;
        let waited = self.window.changed.wait_timeout_while(seen, time, silent);
        let (seen, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        let written = seen.emulator.raw().get(before..).unwrap_or_default();
        (!waited.timed_out()).then(|| String::from_utf8_lossy(written).escape_debug().to_string())
    }

    /// The synchronised frames that are complete.
    #[must_use]
    pub fn frames(&self) -> Vec<Frame> {
        self.window.lock().emulator.frames().to_vec()
    }

    /// Waits for the first frame that wrote `text` in one go.
    pub fn wait_for_frame_of(&self, text: &str) -> Frame {
        self.wait_until(text, |window| window.emulator.frame_of(text).is_some());
        self.window.lock().emulator.frame_of(text).expect("it was just there")
    }

    /// How long ago the program was started.
    #[must_use]
    pub fn age(&self) -> Duration {
        self.clock.elapsed()
    }

    /// How many bytes the program has written.
    #[must_use]
    pub fn bytes_written(&self) -> usize {
        self.window.lock().emulator.raw().len()
    }

    /// What the program has written, taken apart.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        Traffic::of(self.window.lock().emulator.raw())
    }

    /// The process.
    #[must_use]
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid, signal).expect("the process is there");
    }

    /// Kills the program as `kill -9` does, and waits for its end.
    pub fn kill(self) -> Ended {
        self.signal(Signal::KILL);
        self.wait_for_end()
    }

    /// Closes the window, and waits for the end of the program.
    pub fn hang_up(mut self) -> Ended {
        self.window.lock().closed = true;
        // The program draws for the new size, and whoever reads that sees that the window closes.
        let (columns, rows) = self.window.lock().emulator.size();
        self.resize(columns.saturating_add(1), rows);
        if let Some(reading) = self.reading.take() {
            reading.join().expect("nothing panics while reading");
        }
        drop((self.master.take(), self.keyboard.take()));
        self.wait_for_end()
    }

    /// Waits until the program has ended and everything that it wrote is on the screen.
    pub fn wait_for_end(mut self) -> Ended {
        let exit = self.exit.recv_timeout(WAIT_MAX);
        let screen = self.screen();
        assert!(exit.is_ok(), "the program does not end:\n{screen}");
        self.ended = exit.ok();
        if let Some(reading) = self.reading.take() {
            reading.join().expect("nothing panics while reading");
        }
        let seen = self.window.lock();
        Ended {
            exit: self.ended.clone().expect("it was just set"),
            screen: seen.emulator.screen().clone(),
            raw: seen.emulator.raw().to_vec(),
        }
    }

    fn wait_until(&self, what: &str, holds: impl Fn(&Seen) -> bool) {
        let seen = self.window.lock();
        let waits = |seen: &mut Seen| !seen.over && !holds(seen);
        let waited = self.window.changed.wait_timeout_while(seen, WAIT_MAX, waits);
        let (seen, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let screen = seen.emulator.screen().contents();
        let over = if seen.over { " and the program has ended" } else { "" };
        assert!(holds(&seen), "waited for {what}{over}:\n{screen}");
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if self.ended.is_none() && self.exit.try_recv().is_err() {
            kill_process(self.pid, Signal::KILL).ok();
        }
    }
}

/// What is left of a program that has ended.
#[derive(Debug)]
pub struct Ended {
    /// How it ended.
    pub exit: Exit,
    /// What the terminal shows after it.
    pub screen: Screen,
    /// Every byte that it wrote.
    pub raw: Vec<u8>,
}

impl Ended {
    /// What it wrote, taken apart.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        Traffic::of(&self.raw)
    }
}

/// The window that shows what the program writes.
struct Window {
    seen: Mutex<Seen>,
    changed: Condvar,
}

struct Seen {
    emulator: Emulator,
    /// The person closes the window.
    closed: bool,
    /// Nothing more will come.
    over: bool,
}

impl Window {
    fn new((columns, rows): (u16, u16), manners: Manners) -> Self {
        let size = (cells(columns), cells(rows));
        let emulator = Emulator::new(size, manners);
        Self {
            seen: Mutex::new(Seen { emulator, closed: false, over: false }),
            changed: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows what comes until the program has ended or the window is closed.
    fn show(&self, mut reader: Box<dyn Read + Send>, keyboard: &Keyboard, clock: &System) {
        let mut bytes = vec![0; READ_BYTES];
        while let Ok(count @ 1..) = reader.read(&mut bytes) {
            let at = clock.elapsed();
            let mut seen = self.lock();
            let answers = seen.emulator.take(bytes.get(..count).unwrap_or_default(), at);
            let closed = seen.closed;
            drop(seen);
            self.changed.notify_all();
            if closed {
                break;
            }
            if !answers.is_empty() {
                let mut keyboard = keyboard.lock().unwrap_or_else(PoisonError::into_inner);
                keyboard.write_all(&answers).ok();
            }
        }
        self.lock().over = true;
        self.changed.notify_all();
    }
}

fn cells(count: u16) -> NonZeroU16 {
    NonZeroU16::new(count).expect("a window has a size")
}
