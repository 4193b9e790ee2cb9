//! Reading the terminal: its bytes become batches of input. An idle terminal wakes nothing, and
//! one that is gone ends the reading.

use std::future::pending;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::base::clock::Clock;
use crate::tui::input::Input;
use crate::tui::shell::decode::Decoder;
use crate::tui::shell::tty::{Gone, Tty};

/// What one read of a terminal gives at most.
const READ_BYTES_MAX: usize = 4096;

/// A batch is told after so many reads even if more is there, so that the loop can draw.
const READS_MAX: usize = 16;

/// Reads one terminal. There is no thread and no queue: what is not asked for stays in the
/// terminal.
pub struct Reader {
    tty: Arc<Tty>,
    clock: Arc<dyn Clock>,
    decoder: Decoder,
    /// Nothing while reading is paused.
    ready: Option<AsyncFd<OwnedFd>>,
    bytes: Vec<u8>,
}

impl Reader {
    /// Reads `tty`, which must be in raw mode, with the time of `clock`.
    ///
    /// # Errors
    ///
    /// When it cannot be waited for.
    pub fn new(tty: Arc<Tty>, clock: Arc<dyn Clock>) -> io::Result<Self> {
        let bytes = vec![0; READ_BYTES_MAX];
        let mut reader = Self { tty, clock, decoder: Decoder::new(), ready: None, bytes };
        reader.resume()?;
        Ok(reader)
    }

    /// The next batch, which is not empty. While reading is paused there is none. Cancel-safe.
    ///
    /// # Errors
    ///
    /// When nothing will ever come again; then end.
    pub async fn next(&mut self) -> Result<Vec<Input>, Gone> {
        let mut batch = Vec::new();
        while batch.is_empty() {
            let Some(ready) = &self.ready else {
                return pending().await;
            };
            let wait = self.decoder.deadline().map(|at| at.saturating_sub(self.clock.elapsed()));
            // Waiting takes no bytes, so nothing is lost when an arm or the whole is dropped.
            tokio::select! {
                biased;
                guard = ready.readable() => {
                    let mut guard = guard.map_err(Gone::Refused)?;
                    for _ in 0..READS_MAX {
                        let now = self.clock.elapsed();
                        let count = match self.tty.read(&mut self.bytes) {
                            Ok(count) => count,
                            // What came before the end is told before it.
                            Err(gone) => {
                                self.decoder.tick(Duration::MAX, &mut batch);
                                return if batch.is_empty() { Err(gone) } else { Ok(batch) };
                            }
                        };
                        if count == 0 {
                            self.decoder.dry(now, &mut batch);
                            guard.clear_ready();
                            break;
                        }
                        let bytes = self.bytes.get(..count).unwrap_or_default();
                        self.decoder.feed(bytes, now, &mut batch);
                    }
                }
                () = sleep(wait) => self.decoder.tick(self.clock.elapsed(), &mut batch),
            }
        }
        Ok(batch)
    }

    /// Leaves the terminal alone: somebody else reads it.
    pub fn pause(&mut self) {
        self.ready = None;
        self.decoder = Decoder::new();
    }

    /// Reads again.
    ///
    /// # Errors
    ///
    /// When the terminal cannot be waited for.
    pub fn resume(&mut self) -> io::Result<()> {
        self.ready = Some(register(self.tty.input()?)?);
        Ok(())
    }
}

#[expect(unsafe_code, reason = "tokio has no safe way to wait for a descriptor it does not know")]
fn register(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` is open for as long as it lives, its number never changes, and the
    // `AsyncFd` owns it.
    Ok(unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }?)
}

async fn sleep(wait: Option<Duration>) {
    match wait {
        Some(wait) => tokio::time::sleep(wait).await,
        None => pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::clock::System;
    use crate::tui::key::{Key, KeyCode};
    use crate::tui::shell::pty::Pty;
    use crate::tui::shell::terminal::{Options, Terminal};

    const OPTIONS: Options = Options { mouse: false, ask: false };

    fn key(c: char) -> Input {
        Input::Key(Key::plain(KeyCode::Char(c)))
    }

    fn open() -> (Pty, Terminal, Reader) {
        let pty = Pty::open(80, 24);
        let tty = Arc::new(pty.tty());
        let terminal = Terminal::enter(Arc::clone(&tty), OPTIONS).expect("a terminal");
        let reader = Reader::new(tty, Arc::new(System::new())).expect("a terminal can be read");
        (pty, terminal, reader)
    }

    #[tokio::test]
    async fn what_is_typed_comes_in_batches() {
        let (mut pty, _terminal, mut reader) = open();
        pty.press("x");
        assert_eq!(reader.next().await.expect("a key"), [key('x')]);
        pty.press("\x1b[A\x1b[200~two\rlines\x1b[201~");
        let up = Input::Key(Key::plain(KeyCode::Up));
        let mut inputs = Vec::new();
        while inputs.len() < 2 {
            inputs.extend(reader.next().await.expect("a key and a paste"));
        }
        assert_eq!(inputs, [up, Input::Paste("two\nlines".to_owned())]);
    }

    #[tokio::test]
    async fn a_lone_escape_becomes_a_key_without_another_byte() {
        let (mut pty, _terminal, mut reader) = open();
        pty.press("\x1b");
        let escape = Input::Key(Key::plain(KeyCode::Esc));
        assert_eq!(reader.next().await.expect("a key"), [escape]);
    }

    #[tokio::test]
    async fn reading_ends_when_the_terminal_is_gone() {
        let (mut pty, _terminal, mut reader) = open();
        pty.press("x");
        assert_eq!(reader.next().await.expect("a key"), [key('x')]);
        pty.hang_up();
        for _ in 0..10 {
            if let Err(end) = reader.next().await {
                assert!(matches!(end, Gone::HungUp), "{end:?}");
                return;
            }
        }
        panic!("reading goes on");
    }

    #[tokio::test]
    async fn a_paused_reader_takes_nothing() {
        let (mut pty, _terminal, mut reader) = open();
        reader.pause();
        pty.press("x");
        tokio::select! {
            biased;
            batch = reader.next() => panic!("read while paused: {batch:?}"),
            () = tokio::task::yield_now() => {}
        }
        reader.resume().expect("a terminal can be read");
        assert_eq!(reader.next().await.expect("a key"), [key('x')]);
    }
}
