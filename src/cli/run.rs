//! `turnstile run`: one prompt without a session.

use std::io::Read as _;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::app::{Access, App};
use crate::cli::args::{Common, Run};
use crate::cli::report::{Exit, Form, Problem, print, print_answer};
use crate::cli::stalled::{attended, interrupt};
use crate::cli::start::{Setting, problem, threads};
use crate::domain::agent::RequestedAgent;
use crate::domain::message::UserMessage;
use crate::domain::turn::live::{LiveEvent, News};
use crate::runtime::api::{StopSignal, TurnOutcome};
use crate::runtime::error::{AdvanceError, CreateError};
use crate::runtime::execution::ExecutionEvents;
use crate::runtime::headless::{HeadlessError, HeadlessRun, HeadlessTurn, start_headless};
use crate::runtime::hub::Received;
use crate::sessions::circumstances::with_circumstances;

/// The longest prompt that is read from standard input, in bytes; no model takes more.
const PROMPT_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Runs the prompt.
pub(super) fn run(common: &Common, run: &Run) -> Result<Exit, Problem> {
    let prompt = prompt(&run.prompt)?;
    if prompt.trim().is_empty() {
        return Err(Problem::new(Exit::Usage, "the prompt is empty; say something"));
    }
    let setting = Setting::read(common)?;
    let place = setting.take(Access::OwnTurns)?;
    let _log = setting.log(&place);
    let folder = match (&run.cwd, &setting.environment.folder) {
        (Some(folder), _) => std::path::absolute(folder),
        (None, Some(folder)) => Ok(folder.clone()),
        (None, None) => {
            return Err(Problem::new(
                Exit::Usage,
                "the current folder is gone; name one with --cwd",
            ));
        }
    };
    let folder = folder.map_err(|error| Problem::of(Exit::Usage, &error))?;
    threads()?.block_on(async {
        let now = place.clock().now();
        let (app, mut notices) = setting.start(place).map_err(|error| problem(&error))?;
        app.require_answerer().map_err(|error| problem(&error))?;
        // Nobody looks at notices here; they must not fill up all the same.
        app.graph()
            .tasks
            .spawn("drain notices", async move { while notices.recv().await.is_some() {} });
        app.choose_model().await;
        let turn = HeadlessTurn {
            agent: RequestedAgent::by_id(&app.graph().default_agent),
            context: Vec::new(),
            input: with_circumstances(
                Arc::new(UserMessage::text(&prompt)),
                now,
                &jiff::tz::TimeZone::system(),
                &folder,
            ),
            max_model_calls: run.max_model_calls,
            reasoning_effort: None,
            folder,
            now,
        };
        let ended = answer(&app, turn, Form::of(run.json)).await;
        let left = app.shut_down().await.map_err(|error| Problem::of(Exit::Disk, &error));
        ended.and_then(|exit| left.map(|()| exit))
    })
}

fn prompt(argument: &str) -> Result<String, Problem> {
    if argument != "-" {
        return Ok(argument.to_owned());
    }
    let mut bytes = Vec::new();
    let read = std::io::stdin().take(PROMPT_BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|error| Problem::of(Exit::Usage, &error))?;
    if bytes.len() as u64 > PROMPT_BYTES_MAX {
        let why = format!("standard input holds more than {PROMPT_BYTES_MAX} bytes; send less");
        return Err(Problem::new(Exit::Usage, why));
    }
    let text = String::from_utf8(bytes);
    text.map_err(|_| Problem::new(Exit::Usage, "standard input is not UTF-8; send text"))
}

async fn answer(app: &App, turn: HeadlessTurn, form: Form) -> Result<Exit, Problem> {
    let stop = StopSignal::new();
    let runtime = &app.graph().runtime;
    let run = start_headless(runtime, turn, stop.clone()).await;
    let run = run.map_err(|error| not_created(&error))?;
    let interrupted = CancellationToken::new();
    let on_interrupt = async {
        interrupt().await;
        stop.stop(Some("interrupted by a person"));
        // The end of the turn does not wait for a disk that takes nothing.
        interrupted.cancel();
        interrupt().await;
        drop(app.hold_nothing());
    };
    tokio::select! {
        biased;
        // Who interrupts a second time does not wait for the turn, which is then left interrupted.
        () = on_interrupt => Ok(Exit::Interrupted),
        ended = attended(app, &interrupted, follow(app, run, form)) => ended,
    }
}

/// Follows the turn to its end; prints its events, or its answer.
async fn follow(app: &App, mut run: HeadlessRun, form: Form) -> Result<Exit, Problem> {
    let runtime = &app.graph().runtime;
    if form == Form::Json {
        Lines { printed: 0, turn: run.turn.clone() }.print_all(app, &mut run.events).await?;
    }
    let result = match run.finish(runtime).await {
        Ok(result) => result,
        Err(HeadlessError::Create(error)) => return Err(not_created(&error)),
        Err(HeadlessError::Advance(error)) => return Err(not_advanced(&error)),
        Err(HeadlessError::Read(error)) => return Err(Problem::of(Exit::Disk, &error)),
    };
    if form == Form::Text && !result.text.is_empty() {
        print_answer(&result.text)?;
    }
    match result.outcome {
        TurnOutcome::Completed(completed) => match cut_off(&completed.finish_reason) {
            None => Ok(Exit::Done),
            Some(why) => Err(Problem::new(Exit::CutOff, why)),
        },
        TurnOutcome::Failed(failed) => Err(Problem::new(Exit::Failed, failed.error)),
        TurnOutcome::Cancelled(_) => Ok(Exit::Interrupted),
        TurnOutcome::Suspended(_) => Err(Problem::new(
            Exit::Failed,
            "the turn waits for somebody outside, and nobody is there",
        )),
    }
}

/// Why an answer is not whole, by its finish reason.
fn cut_off(finish_reason: &str) -> Option<&'static str> {
    match finish_reason {
        "length" => Some("the answer was cut off: it reached the length limit of the model"),
        "content-filter" => Some("the answer was cut off by the content filter of the provider"),
        _ => None,
    }
}

pub(super) fn not_created(error: &CreateError) -> Problem {
    let exit = match error {
        CreateError::Resolve(_) => Exit::Usage,
        CreateError::Store(_) => Exit::Disk,
    };
    Problem::of(exit, error)
}

pub(super) fn not_advanced(error: &AdvanceError) -> Problem {
    let exit = match error {
        AdvanceError::ModelGone { .. } => Exit::Usage,
        AdvanceError::Read(_) | AdvanceError::Context(_) | AdvanceError::Store(_) => Exit::Disk,
        AdvanceError::Refused(_)
        | AdvanceError::Illegal { .. }
        | AdvanceError::NotEnded(_)
        | AdvanceError::Panicked { .. } => Exit::Failed,
    };
    Problem::of(exit, error)
}

/// The events as lines, each once and in order.
struct Lines {
    printed: u64,
    turn: crate::base::id::TurnId,
}

impl Lines {
    async fn print_all(&mut self, app: &App, events: &mut ExecutionEvents) -> Result<(), Problem> {
        // Why an advance came to no rest is said by its outcome.
        while let Some(Ok(received)) = events.next().await {
            self.print(app, &received).await?;
        }
        self.catch_up(app).await
    }

    async fn print(&mut self, app: &App, received: &Received) -> Result<(), Problem> {
        match received {
            Received::Event(LiveEvent { news: News::Recorded { offset, event }, .. }) => {
                if *offset <= self.printed {
                    return Ok(());
                }
                if *offset == self.printed + 1 {
                    self.printed = *offset;
                    return print(&format!("{}\n", event.to_line()));
                }
                self.catch_up(app).await
            }
            Received::Event(_) => Ok(()),
            Received::Lagged => self.catch_up(app).await,
        }
    }

    /// Prints what was recorded and not told.
    async fn catch_up(&mut self, app: &App) -> Result<(), Problem> {
        use crate::runtime::api::Turns as _;
        let turn = app.graph().runtime.get_turn(&self.turn).await;
        let turn = turn.map_err(|error| Problem::of(Exit::Disk, &error))?;
        let from = usize::try_from(self.printed).unwrap_or(usize::MAX);
        for event in turn.events.get(from..).unwrap_or_default() {
            print(&format!("{}\n", event.to_line()))?;
            self.printed += 1;
        }
        Ok(())
    }
}
