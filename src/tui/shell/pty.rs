//! A pseudo-terminal for tests: the test is the terminal, the code under test its program.

use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use portable_pty::{MasterPty, PtyPair, PtySize, SlavePty, native_pty_system};
use rustix::fs::{Mode, OFlags, open};
use rustix::termios::Termios;

use crate::tui::shell::tty::Tty;

/// A test that waits so long for bytes has failed.
const WAIT_MAX: Duration = Duration::from_secs(10);

pub(super) struct Pty {
    master: Box<dyn MasterPty + Send>,
    _slave: Box<dyn SlavePty + Send>,
    keyboard: Box<dyn Write + Send>,
    written: Receiver<Vec<u8>>,
    reading: JoinHandle<()>,
}

impl Pty {
    pub(super) fn open(columns: u16, rows: u16) -> Self {
        let size = PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 };
        let PtyPair { slave, master } = native_pty_system().openpty(size).unwrap();
        let mut reader = master.try_clone_reader().unwrap();
        let (sender, written) = sync_channel(64);
        let reading = thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut bytes) {
                if sender.send(bytes[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        let keyboard = master.take_writer().unwrap();
        Self { master, _slave: slave, keyboard, written, reading }
    }

    /// What a program sees of it.
    pub(super) fn tty(&self) -> Tty {
        let device = || {
            let path = self.master.tty_name().unwrap();
            open(path, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty()).unwrap()
        };
        let (input, output): (OwnedFd, OwnedFd) = (device(), device());
        Tty::new(input, output)
    }

    pub(super) fn attributes(&self) -> Termios {
        self.tty().attributes().unwrap()
    }

    pub(super) fn press(&mut self, bytes: impl AsRef<[u8]>) {
        self.keyboard.write_all(bytes.as_ref()).unwrap();
        self.keyboard.flush().unwrap();
    }

    pub(super) fn resize(&self, columns: u16, rows: u16) {
        let size = PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 };
        self.master.resize(size).unwrap();
    }

    /// As many bytes as `expected` has of what the program wrote next.
    pub(super) fn check_written(&self, expected: &str) {
        let mut written = Vec::new();
        while written.len() < expected.len() {
            let more = self.written.recv_timeout(WAIT_MAX);
            written.extend(more.unwrap_or_else(|_| {
                panic!("written: {}", String::from_utf8_lossy(&written).escape_debug())
            }));
        }
        assert_eq!(String::from_utf8_lossy(&written), expected);
    }

    /// Closes the window. Its thread has a hold on it and ends with the next bytes.
    pub(super) fn hang_up(self) {
        let tty = self.tty();
        drop(self.written);
        tty.write_all(b"x").unwrap();
        self.reading.join().unwrap();
        drop((self.keyboard, self.master));
    }
}
