//! Signals of the process, as events for the loop.

use std::io;

use tokio::signal::unix::{self, SignalKind};

/// What the system tells the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// The terminal is gone (SIGHUP): end, and do not expect to draw.
    HangUp,
    /// End (SIGTERM).
    Terminate,
    /// End (SIGINT, which in raw mode no key sends).
    Interrupt,
    /// Stop until the shell wakes the program (SIGTSTP, from elsewhere than the keyboard).
    Suspend,
    /// The program goes on after a stop (SIGCONT).
    Continue,
    /// The terminal has another size (SIGWINCH).
    Resize,
}

/// Takes over the signals above. Their default effects are gone for the rest of the process, so
/// whoever asks for this must act on them.
#[derive(Debug)]
pub struct Signals {
    hang_up: unix::Signal,
    terminate: unix::Signal,
    interrupt: unix::Signal,
    suspend: unix::Signal,
    goes_on: unix::Signal,
    resize: unix::Signal,
}

impl Signals {
    /// Listens from now on.
    ///
    /// # Errors
    ///
    /// When the system refuses a handler.
    pub fn new() -> io::Result<Self> {
        let other = |signal: rustix::process::Signal| SignalKind::from_raw(signal.as_raw());
        Ok(Self {
            hang_up: unix::signal(SignalKind::hangup())?,
            terminate: unix::signal(SignalKind::terminate())?,
            interrupt: unix::signal(SignalKind::interrupt())?,
            suspend: unix::signal(other(rustix::process::Signal::TSTP))?,
            goes_on: unix::signal(other(rustix::process::Signal::CONT))?,
            resize: unix::signal(SignalKind::window_change())?,
        })
    }

    /// The next signal. Several of one kind may come as one. Cancel-safe.
    pub async fn next(&mut self) -> Signal {
        // Every arm is a receiver that loses nothing when it is dropped.
        tokio::select! {
            biased;
            _ = self.hang_up.recv() => Signal::HangUp,
            _ = self.terminate.recv() => Signal::Terminate,
            _ = self.interrupt.recv() => Signal::Interrupt,
            _ = self.goes_on.recv() => Signal::Continue,
            _ = self.suspend.recv() => Signal::Suspend,
            _ = self.resize.recv() => Signal::Resize,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{Signal as Sent, getpid, kill_process};

    #[tokio::test]
    async fn every_signal_is_told() {
        let mut signals = Signals::new().expect("handlers");
        for (sent, told) in [
            (Sent::HUP, Signal::HangUp),
            (Sent::TERM, Signal::Terminate),
            (Sent::INT, Signal::Interrupt),
            (Sent::TSTP, Signal::Suspend),
            (Sent::CONT, Signal::Continue),
            (Sent::WINCH, Signal::Resize),
        ] {
            kill_process(getpid(), sent).expect("the process is there");
            assert_eq!(signals.next().await, told);
        }
    }
}
