//! The window of the terminal: what has been read of the program, and who waits for more.

use std::io::Read;
use std::num::NonZeroU16;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::base::clock::{Clock as _, System};
use crate::testing::pty::emulator::Emulator;
use crate::testing::pty::{Keyboard, Manners};

/// More than the kernel keeps of what a program wrote.
const READ_BYTES: usize = 64 * 1024;

/// The window that shows what the program writes.
pub(super) struct Window {
    pub(super) seen: Mutex<Seen>,
    pub(super) changed: Condvar,
}

pub(super) struct Seen {
    pub(super) emulator: Emulator,
    /// The person closes the window.
    pub(super) closed: bool,
    /// Nothing more will come.
    pub(super) over: bool,
}

impl Window {
    pub(super) fn new((columns, rows): (u16, u16), manners: Manners) -> Self {
        let size = (cells(columns), cells(rows));
        let emulator = Emulator::new(size, manners);
        Self {
            seen: Mutex::new(Seen { emulator, closed: false, over: false }),
            changed: Condvar::new(),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows what comes until the program has ended or the window is closed.
    pub(super) fn show(
        &self,
        mut reader: Box<dyn Read + Send>,
        keyboard: &Keyboard,
        clock: &System,
    ) {
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

pub(super) fn cells(count: u16) -> NonZeroU16 {
    NonZeroU16::new(count).expect("a window has a size")
}
