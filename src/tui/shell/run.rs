//! The loop: what the terminal, the program and the clock tell becomes messages, what an update wants
//! done is done, and a frame is drawn when something changed. Between messages nothing wakes up.

mod pace;
mod perform;
mod screen;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::mpsc;

use crate::app::notice::Notice;
use crate::app::{App, StartError};
use crate::base::clock::Clock;
use crate::base::id::SessionId;
use crate::tui::shell::attention::Attention;
use crate::tui::shell::input::Reader;
use crate::tui::shell::run::screen::{Screen, Sources};
use crate::tui::shell::signal::{Signal, Signals};
use crate::tui::shell::terminal::{Options as Hold, Terminal, TerminalError};
use crate::tui::shell::tty::Tty;
use crate::tui::state::settings::Settings;
use crate::tui::theme::colour::Depth;
use crate::tui::theme::{Ground, ThemeProblem};

/// The program on its way, with the notices that it will send.
pub type Starting =
    Pin<Box<dyn Future<Output = Result<(App, mpsc::Receiver<Notice>), StartError>> + Send>>;

/// How the screen is to be.
pub struct Options {
    /// What the configuration says about the screen.
    pub settings: Settings,
    /// The ground of the theme; by what the terminal says without it.
    pub ground: Option<Ground>,
    /// How many colours there are.
    pub depth: Depth,
    /// Whether the mouse is ours.
    pub mouse: bool,
    /// Whether the terminal can be asked what it can do.
    pub ask: bool,
    /// What is shown first.
    pub begin: Begin,
    /// How a person is told something who looks elsewhere.
    pub attention: Attention,
}

/// What is shown first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Begin {
    /// The empty page.
    #[default]
    EmptyPage,
    /// The session that was used last.
    Latest,
    /// This session.
    Session(SessionId),
}

/// How the screen was left.
#[derive(Default)]
pub struct Left {
    /// The program, if it had been built.
    pub app: Option<App>,
    /// The session that was on the screen.
    pub session: Option<SessionId>,
    /// The signal that ended it, if one did.
    pub ended_by: Option<Signal>,
    /// What ended it, if it could not go on.
    pub trouble: Option<ScreenError>,
}

/// Why the screen cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum ScreenError {
    /// The terminal cannot be used.
    #[error(transparent)]
    Terminal(#[from] TerminalError),
    /// Its input or its signals cannot be waited for.
    #[error("the terminal cannot be waited for")]
    Wait(#[from] std::io::Error),
    /// The program cannot start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The built-in theme is broken: a fault of this program.
    #[error(transparent)]
    Theme(#[from] ThemeProblem),
}

/// Shows the screen until the person leaves. The first frame is drawn before anything is read; what
/// is typed before the program stands is kept. The terminal is as it was when this returns.
///
/// # Errors
/// [`ScreenError`] if it cannot begin. What ends it later stands in what is returned.
pub async fn run(
    tty: Arc<Tty>,
    clock: Arc<dyn Clock>,
    options: Options,
    starting: Starting,
) -> Result<Left, ScreenError> {
    let signals = Signals::new()?;
    let terminal =
        Terminal::enter(Arc::clone(&tty), Hold { mouse: options.mouse, ask: options.ask })?;
    let _restored = terminal.restore_on_panic();
    let reader = Reader::new(tty, Arc::clone(&clock))?;
    let mut screen = Screen::new(terminal, clock, options)?;
    screen.frame()?;
    let sources = Sources { signals, reader, starting: Some(starting), notices: None };
    Ok(screen.show(sources).await)
}
