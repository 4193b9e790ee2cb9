//! Marks: signs for how a session, a turn or a call stands. Each is a character of its own, so that
//! they can be told apart without colours.

/// How something stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mark {
    /// It runs.
    Running,
    /// It waits for the person.
    Waiting,
    /// It is done.
    Done,
    /// It failed.
    Failed,
    /// It was stopped.
    Stopped,
    /// A crash interrupted it.
    Interrupted,
    /// It cannot be read.
    Damaged,
    /// Messages wait to be sent.
    Unsent,
}

/// One turn of the spinner.
const TURNING: [&str; 4] = ["◐", "◓", "◑", "◒"];

impl Mark {
    /// All of them, with their names in theme files.
    pub(super) const NAMED: &'static [(Self, &'static str)] = &[
        (Self::Running, "running"),
        (Self::Waiting, "waiting"),
        (Self::Done, "done"),
        (Self::Failed, "failed"),
        (Self::Stopped, "stopped"),
        (Self::Interrupted, "interrupted"),
        (Self::Damaged, "damaged"),
        (Self::Unsent, "unsent"),
    ];

    /// Its sign, one cell wide; what runs is still in it.
    #[must_use]
    pub fn sign(self) -> &'static str {
        match self {
            Self::Running => "●",
            Self::Waiting => "◆",
            Self::Done => "✓",
            Self::Failed => "✗",
            Self::Stopped => "■",
            Self::Interrupted => "~",
            Self::Damaged => "!",
            Self::Unsent => "✉",
        }
    }

    /// Its sign in a frame of the spinner, of which the first is still.
    #[must_use]
    pub fn sign_in(self, beat: Beat) -> &'static str {
        match (self, beat) {
            (Self::Running, Beat::Frame(frame)) => {
                TURNING.get(usize::from(frame) % TURNING.len()).copied().unwrap_or("●")
            }
            _ => self.sign(),
        }
    }
}

/// Where what turns stands in this frame of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Beat {
    /// Nothing turns.
    Still,
    /// This frame of the spinner.
    Frame(u8),
}
