//! The program in a real pseudo-terminal: a test is the terminal and the person before it. It waits
//! for what it sees, and looks at the disk again and again for what it does not see. Time itself is
//! waited for only where nothing is to happen.
#![expect(
    clippy::missing_panics_doc,
    clippy::must_use_candidate,
    reason = "the person panics where the program does not do what is waited for, and often waits \
              for nothing else"
)]

mod emulator;
mod home;
mod launch;
mod traffic;
mod window;

use std::io::Write;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use portable_pty::MasterPty;
use rustix::process::{Pid, Signal, kill_process};

use crate::base::clock::{Clock as _, System};
use crate::testing::pty::launch::pty_size;
use crate::testing::pty::window::{Seen, Window};

pub use emulator::{Frame, Manners};
pub use home::Home;
pub use launch::Launch;
pub use traffic::Traffic;
pub use vt100::Screen;

/// How long something may take on a loaded machine. What takes longer does not happen.
const WAIT_MAX: Duration = Duration::from_mins(1);
/// How often the disk is looked at while it is waited for.
const LOOK_AGAIN: Duration = Duration::from_millis(10);
/// Longer than any timer of the program that draws.
const SILENCE: Duration = Duration::from_millis(1_500);

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
