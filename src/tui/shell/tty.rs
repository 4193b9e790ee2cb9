//! The device: bytes in, bytes out, its size, and how the kernel treats what is typed.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use ratatui::layout::Size;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::termios::{
    ControlModes, InputModes, LocalModes, OptionalActions, OutputModes, QueueSelector,
    SpecialCodeIndex, Termios, tcflush, tcgetattr, tcgetwinsize, tcsetattr,
};

/// What a terminal has that does not tell its size.
const SIZE_UNKNOWN: Size = Size { width: 80, height: 24 };

/// The device where the terminal of a process is, whatever its standard streams are.
const CONTROLLING_TERMINAL: &str = "/dev/tty";

/// There is no terminal to work with.
#[derive(Debug, thiserror::Error)]
#[error("no terminal: neither the standard streams nor {CONTROLLING_TERMINAL} are one")]
pub struct NoTerminal(#[source] io::Error);

/// Why nothing more will come from a terminal.
#[derive(Debug, thiserror::Error)]
pub enum Gone {
    /// Its window was closed, or the line was cut.
    #[error("the terminal has hung up")]
    HungUp,
    /// The device refuses.
    #[error("the terminal cannot be read")]
    Refused(#[source] io::Error),
}

/// A terminal: where to read and where to write.
#[derive(Debug)]
pub struct Tty {
    input: OwnedFd,
    output: OwnedFd,
}

impl Tty {
    /// The terminal of this process: its standard streams, or where one of them is something else,
    /// its controlling terminal.
    ///
    /// # Errors
    ///
    /// When it has none.
    pub fn of_process() -> Result<Self, NoTerminal> {
        let controlling = || {
            let device = File::options().read(true).write(true).open(CONTROLLING_TERMINAL);
            device.map(OwnedFd::from).map_err(NoTerminal)
        };
        let copy = |stream: BorrowedFd<'_>| stream.try_clone_to_owned().map_err(NoTerminal);
        let (stdin, stdout) = (io::stdin(), io::stdout());
        let input = if stdin.is_terminal() { copy(stdin.as_fd())? } else { controlling()? };
        let output = if stdout.is_terminal() { copy(stdout.as_fd())? } else { controlling()? };
        Ok(Self { input, output })
    }

    /// A terminal that is open already.
    #[must_use]
    pub fn new(input: OwnedFd, output: OwnedFd) -> Self {
        Self { input, output }
    }

    /// The size in cells.
    #[must_use]
    pub fn size(&self) -> Size {
        let told = tcgetwinsize(&self.output).ok();
        let size = told.map(|size| Size { width: size.ws_col, height: size.ws_row });
        size.filter(|size| size.width > 0 && size.height > 0).unwrap_or(SIZE_UNKNOWN)
    }

    /// Writes all of `bytes`, and waits for a slow line.
    ///
    /// # Errors
    ///
    /// When the terminal is gone.
    pub fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match retry_on_intr(|| rustix::io::write(&self.output, bytes)) {
                Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
                // Somebody who shares the device has made it non-blocking.
                Err(Errno::AGAIN) => {
                    wait_for(&self.output, PollFlags::OUT, None)?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Reads what is there into `buffer`, and never waits: no bytes if there are none.
    ///
    /// # Errors
    ///
    /// When nothing will ever come again.
    pub(super) fn read(&self, buffer: &mut [u8]) -> Result<usize, Gone> {
        let ready = wait_for(&self.input, PollFlags::IN, Some(Duration::ZERO));
        let ready = ready.map_err(Gone::Refused)?;
        let over = ready.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL);
        if ready.is_empty() {
            return Ok(0);
        }
        match retry_on_intr(|| rustix::io::read(&self.input, &mut *buffer)) {
            Ok(0) | Err(Errno::AGAIN) if !over => Ok(0),
            Ok(0) | Err(Errno::IO) => Err(Gone::HungUp),
            Ok(count) => Ok(count),
            Err(error) => Err(Gone::Refused(error.into())),
        }
    }

    /// Waits until there is something to read, or `wait` has passed.
    pub(super) fn wait_for_input(&self, wait: Duration) -> io::Result<bool> {
        Ok(!wait_for(&self.input, PollFlags::IN, Some(wait))?.is_empty())
    }

    /// A descriptor of its own for waiting without blocking.
    pub(super) fn input(&self) -> io::Result<OwnedFd> {
        self.input.try_clone()
    }

    /// How the kernel treats the terminal now.
    pub(super) fn attributes(&self) -> io::Result<Termios> {
        Ok(tcgetattr(&self.input)?)
    }

    /// Hands every byte over as it is typed, does nothing with it, and never lets a read wait.
    pub(super) fn make_raw(&self, mut attributes: Termios) -> io::Result<()> {
        attributes.make_raw();
        attributes.special_codes[SpecialCodeIndex::VMIN] = 0;
        attributes.special_codes[SpecialCodeIndex::VTIME] = 0;
        Ok(tcsetattr(&self.input, OptionalActions::Now, &attributes)?)
    }

    /// Treats the terminal in the given way again. What was typed and not read is thrown away.
    pub(super) fn restore(&self, attributes: &Termios) -> io::Result<()> {
        tcflush(&self.input, QueueSelector::IFlush)?;
        Ok(tcsetattr(&self.input, OptionalActions::Now, attributes)?)
    }

    /// Makes a terminal usable whose former treatment nobody remembers: lines, echo, signals.
    pub(super) fn make_sane(&self) -> io::Result<()> {
        let mut attributes = self.attributes()?;
        attributes.input_modes |= InputModes::BRKINT | InputModes::ICRNL | InputModes::IXON;
        attributes.input_modes -= InputModes::IGNCR | InputModes::INLCR | InputModes::ISTRIP;
        attributes.output_modes |= OutputModes::OPOST | OutputModes::ONLCR;
        attributes.control_modes |= ControlModes::CREAD;
        attributes.local_modes |= LocalModes::ISIG
            | LocalModes::ICANON
            | LocalModes::IEXTEN
            | LocalModes::ECHO
            | LocalModes::ECHOE
            | LocalModes::ECHOK;
        self.restore(&attributes)
    }
}

fn wait_for(fd: &OwnedFd, flags: PollFlags, wait: Option<Duration>) -> io::Result<PollFlags> {
    let wait = wait.and_then(|wait| Timespec::try_from(wait).ok());
    let mut fds = [PollFd::new(fd, flags)];
    retry_on_intr(|| poll(&mut fds, wait.as_ref()))?;
    Ok(fds.iter().map(PollFd::revents).collect())
}
