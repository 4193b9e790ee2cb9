//! Holding the terminal: taking it over, drawing on it, and giving it back as it was on every way
//! out.

mod modes;

use std::io;
use std::panic::PanicHookInfo;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Size};
use rustix::process::{Signal, getpid, getsid, kill_current_process_group};
use rustix::termios::Termios;

use crate::tui::input::{Input, Reply};
use crate::tui::shell::decode::Decoder;
use crate::tui::shell::paint::Painter;
use crate::tui::shell::terminal::modes::Switched;
use crate::tui::shell::tty::Tty;

/// How a terminal is taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Whether the mouse is ours; else the terminal selects text with it.
    pub mouse: bool,
    /// Whether to ask the terminal what it can do. Off for those that show questions as text.
    pub ask: bool,
}

/// Why a terminal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TerminalError {
    /// Its modes cannot be read or changed; often it is no terminal at all.
    #[error("the modes of the terminal cannot be changed")]
    Modes(#[source] io::Error),
    /// It takes no output.
    #[error("the terminal cannot be written to")]
    Write(#[source] io::Error),
    /// There is no shell that could wake the program again.
    #[error("nothing could wake the program again; it is the first of its terminal")]
    NoShell,
    /// Stopping was refused.
    #[error("the program cannot be stopped")]
    Stop(#[source] io::Error),
}

/// A terminal that is ours until this is dropped.
#[derive(Debug)]
pub struct Terminal {
    hold: Arc<Hold>,
    painter: Painter,
    /// The signal that ends a stop of our own has not been seen yet.
    woken: bool,
}

impl Terminal {
    /// Takes `tty` over: raw mode, our own screen, pastes and focus reported. Questions are sent
    /// and not waited for; give their answers to [`Terminal::answered`].
    ///
    /// # Errors
    ///
    /// When it cannot be switched; then it is as it was.
    pub fn enter(tty: Arc<Tty>, options: Options) -> Result<Self, TerminalError> {
        let before = tty.attributes().map_err(TerminalError::Modes)?;
        let hold = Arc::new(Hold {
            tty,
            options,
            before: Mutex::new(before),
            held: AtomicBool::new(false),
            keyboard: AtomicBool::new(false),
            answers: AtomicBool::new(false),
        });
        let terminal = Self { hold, painter: Painter::new(), woken: false };
        terminal.hold.enter(options.ask)?;
        Ok(terminal)
    }

    /// The size in cells.
    #[must_use]
    pub fn size(&self) -> Size {
        self.hold.tty.size()
    }

    /// Shows `frame` with the cursor at `caret`; see [`Painter::paint`]. While the terminal is
    /// released nothing is drawn.
    ///
    /// # Errors
    ///
    /// When the terminal is gone; then end.
    pub fn draw(&mut self, frame: &Buffer, caret: Option<Position>) -> Result<(), TerminalError> {
        if !self.hold.is_held() {
            return Ok(());
        }
        let mut output = Output(&self.hold.tty);
        self.painter.paint(frame, caret, &mut output).map_err(TerminalError::Write)
    }

    /// The next frame writes every cell: something else may have drawn on the screen.
    pub fn redraw(&mut self) {
        self.painter.forget();
    }

    /// Writes a sequence that draws nothing, such as one for the clipboard or a notice.
    ///
    /// # Errors
    ///
    /// When the terminal is gone.
    pub fn send(&mut self, sequence: &str) -> Result<(), TerminalError> {
        self.hold.tty.write_all(sequence.as_bytes()).map_err(TerminalError::Write)
    }

    /// Takes notice of an answer. Better keyboard reports are switched on once the terminal has
    /// said that it knows them.
    ///
    /// # Errors
    ///
    /// When the terminal is gone.
    pub fn answered(&mut self, reply: Reply) -> Result<(), TerminalError> {
        match reply {
            Reply::KeyboardFlags(_) => self.hold.switch_keyboard_on(),
            Reply::DeviceAttributes => {
                self.hold.answers.store(true, Ordering::Relaxed);
                Ok(())
            }
            Reply::Foreground(_) | Reply::Background(_) => Ok(()),
        }
    }

    /// Gives the terminal back for a while, as to an editor. Pause whoever reads it first.
    pub fn release(&mut self) {
        self.hold.leave();
    }

    /// Takes a released terminal over again; the next frame writes every cell.
    ///
    /// # Errors
    ///
    /// When it cannot be switched.
    pub fn resume(&mut self) -> Result<(), TerminalError> {
        self.painter.forget();
        self.hold.enter(false)?;
        if self.hold.keyboard.swap(false, Ordering::Relaxed) {
            self.hold.switch_keyboard_on()?;
        }
        Ok(())
    }

    /// Gives the terminal back, stops the program and all of its job, and takes the terminal over
    /// again when the shell wakes it. A released terminal stays released: its editor was stopped.
    ///
    /// # Errors
    ///
    /// [`TerminalError::NoShell`] without having done anything, or when the terminal cannot be
    /// switched afterwards.
    pub fn suspend(&mut self) -> Result<(), TerminalError> {
        // Who leads the session has no shell, and stopped it would be stopped for ever.
        if getsid(None).is_ok_and(|leader| leader == getpid()) {
            return Err(TerminalError::NoShell);
        }
        self.suspend_with(|| kill_current_process_group(Signal::STOP))
    }

    fn suspend_with(
        &mut self,
        stop: impl FnOnce() -> rustix::io::Result<()>,
    ) -> Result<(), TerminalError> {
        let held = self.hold.is_held();
        self.hold.leave();
        // The whole group: a shell waits for all of its job, as for `cargo run` and the program.
        let stopped = stop().map_err(|error| TerminalError::Stop(error.into()));
        self.woken = stopped.is_ok();
        if held {
            self.resume()?;
        }
        stopped
    }

    /// Takes notice of the signal that the program goes on. If it was stopped by somebody else,
    /// the shell has used the terminal meanwhile, and it is taken over anew.
    ///
    /// # Errors
    ///
    /// When it cannot be switched.
    pub fn continued(&mut self) -> Result<(), TerminalError> {
        if std::mem::take(&mut self.woken) || !self.hold.is_held() {
            return Ok(());
        }
        self.hold.leave();
        self.resume()
    }

    /// From now on a panic of this thread gives the terminal back before it is reported by the
    /// hook that was there. A panic of another thread goes to the log: whoever owns the thread
    /// decides what follows, and a report would be drawn over the screen. So this belongs to the
    /// main future of a runtime whose tasks run on other threads.
    ///
    /// The hook that was there comes back when the guard is dropped.
    #[must_use]
    pub fn restore_on_panic(&self) -> PanicGuard {
        let before: Arc<Hook> = std::panic::take_hook().into();
        let (hold, report, screen_thread) =
            (Arc::clone(&self.hold), Arc::clone(&before), thread::current().id());
        std::panic::set_hook(Box::new(move |panic| {
            if hold.is_held() && thread::current().id() != screen_thread {
                tracing::error!(%panic, "a thread panicked");
                return;
            }
            hold.leave();
            report(panic);
        }));
        PanicGuard { before }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.hold.leave();
    }
}

type Hook = dyn Fn(&PanicHookInfo<'_>) + Send + Sync;

/// Puts the panic hook back that was there before [`Terminal::restore_on_panic`].
pub struct PanicGuard {
    before: Arc<Hook>,
}

impl Drop for PanicGuard {
    fn drop(&mut self) {
        // The hook of a panicking thread cannot be changed; by then it has done its work.
        if !thread::panicking() {
            let before = Arc::clone(&self.before);
            std::panic::set_hook(Box::new(move |panic| before(panic)));
        }
    }
}

/// Repairs a terminal that a killed program has left behind. Knows nothing of how it was before.
///
/// # Errors
///
/// When it cannot be switched.
pub fn reset(tty: &Tty) -> Result<(), TerminalError> {
    tty.write_all(modes::reset().as_bytes()).map_err(TerminalError::Write)?;
    tty.make_sane().map_err(TerminalError::Modes)
}

/// What must be undone. A panic hook undoes it too, from the middle of anything, so nothing here
/// waits for a lock while it is changed.
#[derive(Debug)]
struct Hold {
    tty: Arc<Tty>,
    options: Options,
    /// How the kernel treated the terminal before.
    before: Mutex<Termios>,
    held: AtomicBool,
    /// Whether keyboard flags are pushed, or were until the terminal was released.
    keyboard: AtomicBool,
    /// Whether the terminal answers questions.
    answers: AtomicBool,
}

/// How often, and how long each time, the answer to the last question is waited for.
const LAST_WORDS: (u8, Duration) = (5, Duration::from_millis(20));

/// More than one read of a terminal gives.
const LAST_BYTES: usize = 4096;

impl Hold {
    fn is_held(&self) -> bool {
        self.held.load(Ordering::Relaxed)
    }

    fn enter(&self, ask: bool) -> Result<(), TerminalError> {
        let before = self.tty.attributes().map_err(TerminalError::Modes)?;
        if self.held.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        *self.before.lock().unwrap_or_else(PoisonError::into_inner) = before.clone();
        let switched = self.tty.make_raw(before).map_err(TerminalError::Modes).and_then(|()| {
            let sequence = modes::enter(Options { ask, ..self.options });
            self.tty.write_all(sequence.as_bytes()).map_err(TerminalError::Write)
        });
        if switched.is_err() {
            self.leave();
        }
        switched
    }

    fn switch_keyboard_on(&self) -> Result<(), TerminalError> {
        if !self.is_held() || self.keyboard.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        self.tty.write_all(modes::keyboard_on().as_bytes()).map_err(TerminalError::Write)
    }

    /// Undoes everything, once. Errors are of no use here: the terminal is gone then.
    fn leave(&self) {
        if !self.held.swap(false, Ordering::Relaxed) {
            return;
        }
        let (mouse, keyboard) = (self.options.mouse, self.keyboard.load(Ordering::Relaxed));
        let written = self.tty.write_all(modes::leave(Switched { mouse, keyboard }).as_bytes());
        if written.is_ok() && (mouse || keyboard) && self.answers.load(Ordering::Relaxed) {
            self.drain();
        }
        let before = self.before.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Err(error) = self.tty.restore(&before) {
            tracing::debug!(%error, "the modes of the terminal could not be restored");
        }
    }

    /// Reads until the terminal has dealt with all that it was sent. What it reported before, such
    /// as the release of the key that quit the program, must not reach the shell as typed text.
    fn drain(&self) {
        let (mut decoder, mut inputs) = (Decoder::new(), Vec::new());
        let mut bytes = [0; LAST_BYTES];
        if self.tty.write_all(modes::ATTRIBUTES.as_bytes()).is_err() {
            return;
        }
        for _ in 0..LAST_WORDS.0 {
            if !self.tty.wait_for_input(LAST_WORDS.1).unwrap_or(false) {
                continue;
            }
            let Ok(count) = self.tty.read(&mut bytes) else {
                return;
            };
            decoder.feed(bytes.get(..count).unwrap_or_default(), Duration::ZERO, &mut inputs);
            if inputs.contains(&Input::Reply(Reply::DeviceAttributes)) {
                return;
            }
        }
    }
}

struct Output<'a>(&'a Tty);

impl io::Write for Output<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::shell::pty::Pty;
    use ratatui::layout::Rect;
    use ratatui::style::Style;

    const PLAIN: Options = Options { mouse: false, ask: false };
    const ENTER: &str = "\x1b[?1049h\x1b[?2004h\x1b[?1004h";
    const LEAVE: &str = "\x1b[?2026l\x1b[?1004l\x1b[?2004l\x1b[0m\x1b[?25h\x1b[?1049l";

    fn modes(pty: &Pty) -> String {
        format!("{:?}", pty.attributes())
    }

    fn entered(options: Options) -> (Pty, Terminal, String) {
        let pty = Pty::open(20, 3);
        let before = modes(&pty);
        let terminal = Terminal::enter(Arc::new(pty.tty()), options).expect("a terminal");
        pty.check_written(&modes::enter(options));
        (pty, terminal, before)
    }

    #[test]
    fn a_dropped_terminal_is_as_it_was() {
        let (pty, terminal, before) = entered(PLAIN);
        assert_ne!(modes(&pty), before);
        drop(terminal);
        pty.check_written(LEAVE);
        assert_eq!(modes(&pty), before);
    }

    #[test]
    fn keyboard_flags_wait_for_the_answer_and_what_is_pending_is_drained() {
        let (mut pty, mut terminal, before) = entered(Options { mouse: true, ask: true });
        terminal.answered(Reply::KeyboardFlags(0)).expect("a terminal");
        terminal.answered(Reply::KeyboardFlags(0)).expect("a terminal");
        terminal.answered(Reply::DeviceAttributes).expect("a terminal");
        pty.check_written("\x1b[>5u");
        pty.press("\x1b[113;1:3u\x1b[<35;62;19M\x1b[?62;22c");
        drop(terminal);
        let mouse = "\x1b[?1006l\x1b[?1003l\x1b[?1002l\x1b[?1000l";
        let rest = LEAVE.strip_prefix("\x1b[?2026l").expect("it begins so");
        pty.check_written(&format!("\x1b[?2026l\x1b[<1u{mouse}{rest}\x1b[c"));
        assert_eq!(modes(&pty), before);
        assert!(!pty.tty().wait_for_input(Duration::ZERO).expect("a terminal"), "nothing is left");
    }

    #[test]
    fn a_frame_is_drawn_at_the_size_of_the_terminal() {
        let (pty, mut terminal, _) = entered(PLAIN);
        assert_eq!(terminal.size(), Size::new(20, 3));
        pty.resize(3, 1);
        let Size { width, height } = terminal.size();
        let mut frame = Buffer::empty(Rect::new(0, 0, width, height));
        frame.set_string(0, 0, "hi", Style::new());
        terminal.draw(&frame, Some(Position::new(2, 0))).expect("a terminal");
        pty.check_written(
            "\x1b[?2026h\x1b[?25l\x1b[1;1Hhi \x1b[39m\x1b[49m\x1b[59m\x1b[0m\x1b[1;3H\x1b[?25h\x1b[?2026l",
        );
    }

    #[test]
    fn a_stop_happens_on_the_screen_of_the_shell_and_the_frame_comes_back_whole() {
        let (pty, mut terminal, before) = entered(PLAIN);
        let frame = Buffer::empty(Rect::new(0, 0, 1, 1));
        let cell = "\x1b[?2026h\x1b[?25l\x1b[1;1H \x1b[39m\x1b[49m\x1b[59m\x1b[0m\x1b[?2026l";
        terminal.draw(&frame, None).expect("a terminal");
        pty.check_written(cell);
        let mut stopped_with = String::new();
        let stop = || {
            stopped_with = modes(&pty);
            Ok(())
        };
        terminal.suspend_with(stop).expect("a terminal");
        assert_eq!(stopped_with, before);
        pty.check_written(&format!("{LEAVE}{ENTER}"));
        terminal.continued().expect("a terminal");
        terminal.draw(&frame, None).expect("a terminal");
        pty.check_written(cell);
    }

    #[test]
    fn after_a_stop_by_somebody_else_the_terminal_is_taken_over_anew() {
        let (pty, mut terminal, _) = entered(PLAIN);
        terminal.continued().expect("a terminal");
        pty.check_written(&format!("{LEAVE}{ENTER}"));
    }

    #[test]
    fn a_released_terminal_is_left_alone_until_it_is_resumed() {
        let (pty, mut terminal, before) = entered(PLAIN);
        terminal.release();
        pty.check_written(LEAVE);
        assert_eq!(modes(&pty), before);
        terminal.draw(&Buffer::empty(Rect::new(0, 0, 1, 1)), None).expect("nothing happens");
        terminal.continued().expect("nothing happens");
        terminal.suspend_with(|| Ok(())).expect("only the stop happens");
        terminal.resume().expect("a terminal");
        pty.check_written(ENTER);
    }

    #[test]
    fn a_panic_of_the_drawing_thread_restores_the_terminal_and_one_elsewhere_does_not() {
        let (pty, terminal, before) = entered(PLAIN);
        let guard = terminal.restore_on_panic();
        assert!(thread::spawn(|| panic!("elsewhere")).join().is_err());
        assert_ne!(modes(&pty), before);
        assert!(std::panic::catch_unwind(|| panic!("here")).is_err());
        drop(guard);
        pty.check_written(LEAVE);
        assert_eq!(modes(&pty), before);
    }

    #[test]
    fn a_reset_makes_lines_and_echo_again() {
        let (pty, terminal, before) = entered(PLAIN);
        reset(&pty.tty()).expect("a terminal");
        pty.check_written(&modes::reset());
        let sane = pty.attributes().local_modes;
        assert!(before.contains("ECHO"), "{before}");
        assert!(
            sane.contains(rustix::termios::LocalModes::ECHO | rustix::termios::LocalModes::ICANON)
        );
        drop(terminal);
    }

    #[test]
    fn what_is_no_terminal_is_refused() {
        let file = tempfile::tempfile().expect("a file");
        let tty = Tty::new(file.try_clone().expect("a file").into(), file.into());
        let refused = Terminal::enter(Arc::new(tty), PLAIN);
        assert!(matches!(refused, Err(TerminalError::Modes(_))));
    }
}
