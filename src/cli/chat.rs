//! The terminal: `turnstile` without a command.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::app::Access;
use crate::base::id::SessionId;
use crate::cli::args::{Chat, Common};
use crate::cli::report::{Exit, Problem, print, say};
use crate::cli::start::{Setting, problem, threads};
use crate::config::environment::Environment;
use crate::config::schema::{self, Config};
use crate::tui::keymap::read::Source;
use crate::tui::keymap::{Keymap, Personal};
use crate::tui::shell::attention::{Attention, Multiplexer};
use crate::tui::shell::run::{Begin, Left, Options, ScreenError, run};
use crate::tui::shell::signal::Signal;
use crate::tui::shell::terminal;
use crate::tui::shell::tty::Tty;
use crate::tui::state::settings::{Access as Allowed, Deleted, Motion, NotifyWhen, Settings};
use crate::tui::theme::Ground;
use crate::tui::theme::colour::Depth;

/// How long leaving waits for tasks that do not end when they are dropped.
const LAST_TASKS_MAX: Duration = Duration::from_secs(1);

/// Shows the terminal until the person leaves.
pub(super) fn chat(common: &Common, chat: &Chat) -> Result<Exit, Problem> {
    let tty = own_terminal()?;
    let setting = Setting::read(common)?;
    if term(&setting.environment) == "dumb" {
        return Err(no_terminal("this terminal shows no screens (TERM is dumb)"));
    }
    let access = if chat.read_only { Access::ReadOnly } else { Access::Full };
    let options = options(&setting.loaded.config, &setting.environment, chat)?;
    let place = setting.take(access)?;
    let log = if chat.read_only { None } else { setting.log(&place) };
    let logs = setting.loaded.paths.logs();
    name_logs_in_panics(&logs);
    let clock = place.clock();
    let threads = threads()?;
    let ended = threads.block_on(async {
        let starting = Box::pin(async move {
            let (app, notices) = setting.start(place)?;
            if access == Access::Full {
                app.require_answerer()?;
            }
            Ok((app, notices))
        });
        let left = run(Arc::new(tty), clock, options, starting).await;
        leave(left.map_err(|error| refusal(&error, &logs))?, &logs).await
    });
    // What still runs is dropped, and with it the commands that tools have started.
    threads.shutdown_timeout(LAST_TASKS_MAX);
    drop(log);
    ended
}

/// A panic says where the log is; the screen has been given back by then.
fn name_logs_in_panics(logs: &Path) {
    let (report, logs) = (std::panic::take_hook(), logs.display().to_string());
    std::panic::set_hook(Box::new(move |panic| {
        tracing::error!(%panic, "the program failed");
        report(panic);
        // Nobody reading it is no further error.
        writeln!(std::io::stderr(), "the log in {logs} may say more").ok();
    }));
}

/// Puts a terminal right that a killed program left in a bad state.
pub(super) fn reset_terminal() -> Result<Exit, Problem> {
    let tty = own_terminal()?;
    terminal::reset(&tty).map_err(|error| Problem::of(Exit::Usage, &error))?;
    Ok(Exit::Done)
}

fn own_terminal() -> Result<Tty, Problem> {
    Tty::of_process().map_err(|_| no_terminal("this is no terminal"))
}

fn no_terminal(why: &str) -> Problem {
    let hint = "`turnstile run \"…\"` answers a prompt without one";
    Problem::new(Exit::Usage, format!("{why}; {hint}"))
}

/// What the terminal calls itself.
fn term(environment: &Environment) -> String {
    let term = environment.variable("TERM").map(|term| term.to_string_lossy().into_owned());
    term.unwrap_or_default()
}

/// The program ends; the main screen says how to come back.
async fn leave(left: Left, logs: &Path) -> Result<Exit, Problem> {
    let Left { app, session, ended_by, trouble } = left;
    if let Some(stall) = app.as_ref().and_then(|app| app.follow_stalls().borrow().first().cloned())
    {
        say(&format!("{}; leaving tries for some seconds more", stall.why));
    }
    let shut_down = match &app {
        Some(app) => app.shut_down().await.map_err(|error| Problem::of(Exit::Disk, &error)),
        None => Ok(()),
    };
    let gone = ended_by == Some(Signal::HangUp);
    if let Some(session) = session.filter(|_| !gone) {
        print(&format!("turnstile --session {session} comes back to this session\n"))?;
    }
    shut_down?;
    if let Some(trouble) = trouble {
        return Err(refusal(&trouble, logs));
    }
    Ok(if ended_by.is_some() { Exit::Interrupted } else { Exit::Done })
}

fn refusal(error: &ScreenError, logs: &Path) -> Problem {
    match error {
        ScreenError::Start(start) => problem(start),
        ScreenError::Terminal(_) | ScreenError::Wait(_) | ScreenError::Theme(_) => {
            let problem = Problem::of(Exit::Failed, error);
            problem.with_hint(&format!("the log in {} may say more", logs.display()))
        }
    }
}

fn options(config: &Config, environment: &Environment, chat: &Chat) -> Result<Options, Problem> {
    let set = |name: &str| environment.variable(name).is_some();
    let term = term(environment);
    let begin = match &chat.session {
        Some(session) => Begin::Session(SessionId::from(session.as_str())),
        None if chat.continue_latest => Begin::Latest,
        None => Begin::EmptyPage,
    };
    Ok(Options {
        settings: Settings {
            keymap: Arc::new(keymap(config)?),
            zone: jiff::tz::TimeZone::system(),
            access: if chat.read_only { Allowed::ReadOnly } else { Allowed::Full },
            deleted: match config.delete.keep_days.get() {
                0 => Deleted::Destroyed,
                _ => Deleted::Kept,
            },
            motion: match config.ui.motion {
                schema::Motion::Full => Motion::Full,
                schema::Motion::Reduced => Motion::Reduced,
            },
            notify: match config.ui.notify {
                schema::Notify::Unfocused => NotifyWhen::Unfocused,
                schema::Notify::Always => NotifyWhen::Always,
                schema::Notify::Never => NotifyWhen::Never,
            },
        },
        ground: match config.ui.theme {
            schema::Theme::Auto => None,
            schema::Theme::Dark => Some(Ground::Dark),
            schema::Theme::Light => Some(Ground::Light),
        },
        depth: depth(environment, &term),
        mouse: config.ui.mouse,
        // The Linux console shows questions as text.
        ask: !matches!(term.as_str(), "linux" | ""),
        begin,
        attention: Attention {
            desktop: !set("SSH_CONNECTION") && !set("SSH_TTY"),
            multiplexer: if set("TMUX") { Multiplexer::Tmux } else { Multiplexer::None },
        },
    })
}

/// The keys that are bound.
pub(super) fn keymap(config: &Config) -> Result<Keymap, Problem> {
    let keymap = match &config.keys {
        None => Keymap::new(None),
        Some(keys) => {
            let (name, table) = (keys.file.display().to_string(), keys.table());
            let source = Source { name: &name, text: &keys.text };
            Keymap::new(Some(Personal { source, table: &table }))
        }
    };
    keymap.map_err(|problems| {
        let mut text = String::from("the key tables cannot be used");
        for problem in problems {
            // A string takes everything.
            write!(text, "\n  {problem}").ok();
        }
        Problem::new(Exit::Usage, text)
    })
}

/// How many colours the terminal says it has (`NO_COLOR`, `COLORTERM`, `TERM`).
fn depth(environment: &Environment, term: &str) -> Depth {
    let colours = environment.variable("COLORTERM").map(|it| it.to_string_lossy().into_owned());
    match colours.as_deref() {
        _ if environment.variable("NO_COLOR").is_some() => Depth::None,
        Some("truecolor" | "24bit") => Depth::Full,
        _ if term.contains("direct") => Depth::Full,
        _ if term.contains("256color") => Depth::TwoFiftySix,
        _ => Depth::Sixteen,
    }
}
