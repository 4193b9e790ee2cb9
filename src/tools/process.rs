//! Commands in a session of their own, without a terminal, ended as a group: TERM, and KILL for
//! what is still there after a grace (`design/tools.md`).

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use process_wrap::tokio::{ChildWrapper, CommandWrap, KillOnDrop, ProcessSession};
use rustix::io::Errno;
use rustix::process::{Pid, Signal};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;
use tokio::time::{Interval, MissedTickBehavior, Sleep};
use tokio_util::sync::CancellationToken;

use crate::tools::record::Recorder;
use crate::tools::tool::Progress;

/// A command line that is to run.
pub(crate) struct Command {
    /// For `sh -c`.
    pub(crate) line: String,
    /// Where it runs.
    pub(crate) folder: PathBuf,
    /// All of its environment.
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// When it is ended.
    pub(crate) timeout: Duration,
    /// How long it has after TERM before it gets KILL.
    pub(crate) grace: Duration,
}

/// Why a command did not run, or not to an end.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// It was not started.
    #[error("the command cannot be started")]
    Start(#[source] io::Error),
    /// The system does not say how it ended.
    #[error("it is unknown how the command ended")]
    Wait(#[source] io::Error),
    /// It does not end, not even by KILL.
    #[error("process group {0} does not end, not even by KILL; it hangs in the system")]
    Stuck(i32),
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) by: By,
    pub(crate) status: ExitStatus,
    /// Whether something that it had started was still there, and was ended too.
    pub(crate) left_behind: bool,
}

/// What ended a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    Itself,
    Timeout,
    Cancel,
}

/// How often the live tail is shown (`design/turn-runtime.md` section 9: at most 4 a second).
const TAIL_INTERVAL: Duration = Duration::from_millis(250);
/// How much of the output the live tail shows: about a screenful.
const TAIL_BYTES: usize = 4 * 1024;
/// How often a group that was told to end is looked at: nothing announces its end.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);
/// How long what is left in the pipe is read after the end of the group. It is no more than a pipe
/// holds, unless something that left the group writes on.
const DRAIN_TIME: Duration = Duration::from_millis(500);
/// What is read at once; as much as a pipe holds.
const CHUNK_BYTES: usize = 64 * 1024;

/// Runs a command to its end, or ends it on time-out and cancellation.
pub(crate) async fn run(
    command: &Command,
    record: &mut Recorder,
    progress: &dyn Progress,
    cancel: &CancellationToken,
) -> Result<Ended, ProcessError> {
    let (group, output) = Group::spawn(command)?;
    let mut run = Run {
        group,
        output: Some(output),
        stage: Stage::Running,
        status: None,
        left_behind: false,
        timer: Box::pin(tokio::time::sleep(command.timeout)),
        grace: command.grace,
    };
    let (mut show, mut look) = (every(TAIL_INTERVAL), every(LOOK_INTERVAL));
    let (mut chunk, mut is_shown) = (vec![0; CHUNK_BYTES], true);
    while !run.is_over() {
        let is_running = run.stage == Stage::Running;
        // Every arm may be dropped and made again: waiting and reading pick up where they were.
        let event = tokio::select! {
            biased;
            () = cancel.cancelled(), if is_running => Event::Cancelled,
            () = &mut run.timer => Event::TimeUp,
            ended = run.group.child.wait(), if run.status.is_none() => Event::Exited(ended),
            _ = look.tick(), if !is_running => Event::Nothing,
            _ = show.tick(), if !is_shown => Event::Show,
            read = read(&mut run.output, &mut chunk), if run.output.is_some() => Event::Output(read),
        };
        match event {
            Event::Cancelled => run.end(By::Cancel),
            Event::TimeUp => run.time_up()?,
            Event::Exited(status) => run.exited(status.map_err(ProcessError::Wait)?),
            Event::Nothing => {}
            Event::Show => {
                progress.tail(&record.tail(TAIL_BYTES));
                is_shown = true;
            }
            Event::Output(None) => run.output = None,
            Event::Output(Some(bytes)) => {
                record.push(chunk.get(..bytes).unwrap_or_default()).await;
                is_shown = false;
            }
        }
    }
    run.group.is_over = true;
    let drain = async {
        while let Some(bytes) = read(&mut run.output, &mut chunk).await {
            record.push(chunk.get(..bytes).unwrap_or_default()).await;
        }
    };
    // In time or not: what could be had is recorded.
    drop(tokio::time::timeout(DRAIN_TIME, drain).await);
    let last = record.tail(TAIL_BYTES);
    if !last.is_empty() {
        progress.tail(&last);
    }
    run.into_ended()
}

enum Event {
    Cancelled,
    TimeUp,
    Exited(io::Result<ExitStatus>),
    Nothing,
    Show,
    Output(Option<usize>),
}

fn every(period: Duration) -> Interval {
    let mut interval = tokio::time::interval(period);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}

/// Reads what there is; `None` at the end.
async fn read(output: &mut Option<Receiver>, chunk: &mut [u8]) -> Option<usize> {
    match output.as_mut()?.read(chunk).await {
        Ok(0) | Err(_) => None,
        Ok(bytes) => Some(bytes),
    }
}

struct Run {
    group: Group,
    output: Option<Receiver>,
    stage: Stage,
    status: Option<ExitStatus>,
    left_behind: bool,
    timer: Pin<Box<Sleep>>,
    grace: Duration,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Running,
    /// The group got TERM.
    Ending(By),
    /// The group got KILL.
    Killed(By),
}

impl Run {
    fn is_over(&self) -> bool {
        self.status.is_some()
            && match self.stage {
                Stage::Running => false,
                Stage::Ending(_) => !self.group.is_there(),
                Stage::Killed(_) => true,
            }
    }

    /// The command itself ended; what it left running is ended too.
    fn exited(&mut self, status: ExitStatus) {
        self.status = Some(status);
        if self.stage == Stage::Running {
            self.left_behind = self.group.is_there();
            self.end(By::Itself);
        }
    }

    fn end(&mut self, by: By) {
        self.group.signal(Signal::TERM);
        self.stage = Stage::Ending(by);
        self.timer = Box::pin(tokio::time::sleep(self.grace));
    }

    fn time_up(&mut self) -> Result<(), ProcessError> {
        match self.stage {
            Stage::Running => self.end(By::Timeout),
            Stage::Ending(by) => {
                self.group.signal(Signal::KILL);
                self.stage = Stage::Killed(by);
                self.timer = Box::pin(tokio::time::sleep(self.grace));
            }
            Stage::Killed(_) => return Err(self.group.stuck()),
        }
        Ok(())
    }

    fn into_ended(self) -> Result<Ended, ProcessError> {
        let by = match self.stage {
            Stage::Running => By::Itself,
            Stage::Ending(by) | Stage::Killed(by) => by,
        };
        let status = self.status.ok_or_else(|| self.group.stuck())?;
        Ok(Ended { by, status, left_behind: self.left_behind })
    }
}

/// A process group, whose id is that of its first process. Unless it is over, it is killed when
/// this is dropped; afterwards its id may be somebody else's.
struct Group {
    child: Box<dyn ChildWrapper>,
    id: Pid,
    is_over: bool,
}

impl Group {
    /// Starts the command. Its output and its errors come through one pipe, in their true order.
    fn spawn(command: &Command) -> Result<(Self, Receiver), ProcessError> {
        let (reader, writer) = io::pipe().map_err(ProcessError::Start)?;
        let errors = writer.try_clone().map_err(ProcessError::Start)?;
        let output = Receiver::from_owned_fd(reader.into()).map_err(ProcessError::Start)?;
        let mut shell = tokio::process::Command::new("/bin/sh");
        shell.arg("-c").arg("--").arg(&command.line).current_dir(&command.folder);
        shell.env_clear().envs(command.environment.iter().map(|(name, value)| (name, value)));
        shell.stdin(Stdio::null()).stdout(writer).stderr(errors);
        let mut wrapped = CommandWrap::from(shell);
        // A session of its own has no terminal: nothing can ask there or write over the screen.
        wrapped.wrap(ProcessSession).wrap(KillOnDrop);
        let child = wrapped.spawn().map_err(ProcessError::Start)?;
        let id = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let lost = || ProcessError::Start(io::ErrorKind::NotFound.into());
        Ok((Self { id: id.ok_or_else(lost)?, child, is_over: false }, output))
    }

    /// Whether a process of the group is left, dead ones that nobody has collected included.
    fn is_there(&self) -> bool {
        rustix::process::test_kill_process_group(self.id) != Err(Errno::SRCH)
    }

    fn signal(&self, signal: Signal) {
        // It fails when the group is gone, which is what the signal is for.
        let _ = rustix::process::kill_process_group(self.id, signal);
    }

    fn stuck(&self) -> ProcessError {
        ProcessError::Stuck(self.id.as_raw_nonzero().get())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !self.is_over {
            self.signal(Signal::KILL);
        }
    }
}
