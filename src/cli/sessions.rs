//! `turnstile sessions`: listing, showing, naming, forking, putting away, removing and restoring them.

mod deleted;
mod gc;

use std::fmt::Write as _;
use std::sync::Arc;

use crate::app::{Access, App};
use crate::base::id::{SessionId, TurnId};
use crate::base::sanitize;
use crate::cli::args::{Common, Sessions};
use crate::cli::report::{Exit, Form, Problem, print, readable, tell};
use crate::cli::run::{not_advanced, not_created};
use crate::cli::sessions::gc::{Fate, gc};
use crate::cli::stalled::attended_or_interrupted;
use crate::cli::start::{Setting, problem, threads};
use crate::domain::session::entry::{LatestTurnStatus, SessionIndexEntry};
use crate::domain::session::state::SessionState;
use crate::domain::turn::state::{Terminal, TerminalKind, TurnState};
use crate::runtime::error::ReadError;
use crate::sessions::error::SessionError;
use crate::sessions::waiting::WaitingError;
use crate::store::error::StoreError;

/// Does what is asked with sessions.
pub(super) fn sessions(common: &Common, sessions: &Sessions) -> Result<Exit, Problem> {
    let setting = Setting::read(common)?;
    let access = match sessions {
        Sessions::List { .. } | Sessions::Show { .. } => Access::ReadOnly,
        Sessions::Rename { .. }
        | Sessions::Archive { .. }
        | Sessions::Fork { .. }
        | Sessions::Rm { .. }
        | Sessions::Restore { .. }
        | Sessions::Gc { .. } => Access::Full,
    };
    let work_dir = &setting.loaded.paths.work_dir.path;
    if access == Access::ReadOnly && !work_dir.is_dir() {
        let why = format!("there is no folder {} yet, and so no sessions", work_dir.display());
        tell(&Problem::new(Exit::Done, why));
    }
    let place = setting.take(access)?;
    threads()?.block_on(async {
        let (app, _notices) = setting.start(place).map_err(|error| problem(&error))?;
        let done = attended_or_interrupted(&app, act(&app, sessions)).await;
        let left = app.shut_down().await.map_err(|error| Problem::of(Exit::Disk, &error));
        done.and_then(|exit| left.map(|()| exit))
    })
}

async fn act(app: &App, sessions: &Sessions) -> Result<Exit, Problem> {
    match sessions {
        Sessions::List { json, deleted: true, .. } => deleted::list(app, Form::of(*json)).await,
        Sessions::List { all, json, deleted: false } => {
            let listed = if *all { Listed::All } else { Listed::NotArchived };
            list(app, listed, Form::of(*json)).await
        }
        Sessions::Show { id, json } => {
            show(app, &SessionId::from(id.as_str()), Form::of(*json)).await
        }
        Sessions::Rename { id, title } => rename(app, id, title).await,
        Sessions::Archive { ids, undo } => {
            let place = if *undo { Place::List } else { Place::Archive };
            archive(app, ids, place).await
        }
        Sessions::Fork { id, at } => fork(app, id, at.as_deref()).await,
        Sessions::Gc { yes, json } => {
            let fate = if *yes { Fate::Destroyed } else { Fate::Named };
            gc(app, fate, Form::of(*json)).await
        }
        Sessions::Rm { ids, json } => remove(app, ids, Form::of(*json)).await,
        Sessions::Restore { ids, json } => deleted::restore(app, ids, Form::of(*json)).await,
    }
}

/// Which sessions are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Listed {
    All,
    NotArchived,
}

/// Where a session is to be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    List,
    Archive,
}

async fn list(app: &App, listed: Listed, form: Form) -> Result<Exit, Problem> {
    let sessions = &app.graph().sessions;
    sessions.scan().await.map_err(|error| Problem::of(Exit::Disk, &error))?;
    let mut entries = sessions.list_sessions();
    entries.retain(|entry| listed == Listed::All || !entry.archived);
    entries.sort_by_key(|entry| std::cmp::Reverse(entry.active_at));
    let mut text = String::new();
    for entry in &entries {
        let line = match form {
            Form::Json => json_of(entry),
            Form::Text => line_of(entry),
        };
        writeln!(text, "{line}").ok();
    }
    print(&text)?;
    Ok(Exit::Done)
}

fn json_of(entry: &Arc<SessionIndexEntry>) -> String {
    serde_json::to_string(entry.as_ref()).unwrap_or_default()
}

fn line_of(entry: &Arc<SessionIndexEntry>) -> String {
    let title = entry.title.as_deref().unwrap_or("(no title)");
    let standing = match (&entry.error, entry.latest_turn_status) {
        (Some(_), _) => "damaged".to_owned(),
        (None, LatestTurnStatus::None) => "empty".to_owned(),
        (None, LatestTurnStatus::Turn(status)) => status.to_string(),
    };
    let title = sanitize::for_line(title);
    format!("{}  {}  {standing:<9}  {title}", entry.session_id, entry.active_at)
}

async fn show(app: &App, session: &SessionId, form: Form) -> Result<Exit, Problem> {
    let sessions = &app.graph().sessions;
    let state = sessions.get_session(session).await.map_err(|error| refusal(&error))?;
    if form == Form::Json {
        return show_json(app, session, &state).await;
    }
    let mut text = String::new();
    let title = state.title.as_deref().unwrap_or("(no title)");
    writeln!(text, "# {}\n", sanitize::for_line(title)).ok();
    let mut exit = Exit::Done;
    for turn in &state.turns {
        match sessions.get_turn(&turn.id).await {
            Ok(read) => text.push_str(&turn_text(&read.state)),
            Err(error) => {
                let why = error.to_string();
                writeln!(text, "! turn {}: {}\n", turn.id, sanitize::for_line(&why)).ok();
                exit = Exit::Disk;
            }
        }
    }
    print(&text)?;
    Ok(exit)
}

async fn show_json(app: &App, id: &SessionId, state: &SessionState) -> Result<Exit, Problem> {
    let sessions = &app.graph().sessions;
    let events = sessions.session_events(id).await.map_err(|error| refusal(&error))?;
    let mut text = String::new();
    for event in events {
        writeln!(text, "{}", event.to_line()).ok();
    }
    let mut exit = Exit::Done;
    for turn in &state.turns {
        match sessions.get_turn(&turn.id).await {
            Ok(read) => {
                for event in read.events {
                    writeln!(text, "{}", event.to_line()).ok();
                }
            }
            Err(error) => {
                tell(&refusal(&error));
                exit = Exit::Disk;
            }
        }
    }
    print(&text)?;
    Ok(exit)
}

/// A turn as text: what was said, what was answered, how it ended.
fn turn_text(turn: &TurnState) -> String {
    let mut text = String::new();
    let said = |text: &mut String, who: &str, what: &str| {
        if !what.is_empty() {
            writeln!(text, "## {}\n\n{}\n", sanitize::for_line(who), readable(what)).ok();
        }
    };
    said(&mut text, "You", &turn.definition.input.plain_text());
    for (index, call) in (0..).zip(&turn.model_calls) {
        for input in turn.inputs.iter().filter(|input| input.first_call == index && index > 0) {
            said(&mut text, "You", &input.message.plain_text());
        }
        let Some(answer) = call.response() else { continue };
        said(&mut text, turn.definition.agent.resolved.agent_id(), &answer.plain_text());
        for call in turn.tool_calls.batch(index) {
            let outcome = match &call.result {
                None => "no result yet",
                Some(result) if result.data.is_error => "error",
                Some(_) => "done",
            };
            let arguments = sanitize::for_line(call.arguments.get()).into_owned();
            writeln!(text, "- {} {arguments}: {outcome}", sanitize::for_line(&call.name)).ok();
        }
        if !turn.tool_calls.batch(index).is_empty() {
            text.push('\n');
        }
    }
    writeln!(text, "({})\n", ending(turn)).ok();
    text
}

fn ending(turn: &TurnState) -> String {
    match &turn.terminal {
        None => turn.status().to_string(),
        Some(Terminal { kind: TerminalKind::Completed(completed), .. }) => {
            format!("completed: {}", sanitize::for_line(&completed.finish_reason))
        }
        Some(Terminal { kind: TerminalKind::Failed(failed), .. }) => {
            format!("failed: {}", sanitize::for_line(&failed.error))
        }
        Some(Terminal { kind: TerminalKind::Cancelled(cancelled), .. }) => {
            let reason = cancelled.reason.as_deref().unwrap_or("stopped");
            format!("cancelled: {}", sanitize::for_line(reason))
        }
    }
}

async fn rename(app: &App, id: &str, title: &str) -> Result<Exit, Problem> {
    let title = title.trim();
    if title.is_empty() {
        return Err(Problem::new(Exit::Usage, "the title is blank; say what the session is about"));
    }
    let session = SessionId::from(id);
    let named = app.graph().sessions.set_title(&session, title).await;
    named.map_err(|error| refusal(&error))?;
    print(&format!("renamed {id}\n"))?;
    Ok(Exit::Done)
}

async fn archive(app: &App, ids: &[String], place: Place) -> Result<Exit, Problem> {
    let (done, archived) = match place {
        Place::Archive => ("archived", true),
        Place::List => ("unarchived", false),
    };
    let said = Said { done, form: Form::Text };
    each(ids, said, async |session| app.graph().sessions.set_archived(session, archived).await)
        .await
}

async fn fork(app: &App, id: &str, at: Option<&str>) -> Result<Exit, Problem> {
    let (sessions, session) = (&app.graph().sessions, SessionId::from(id));
    let at = if let Some(turn) = at {
        Some(TurnId::from(turn))
    } else {
        let state = sessions.get_session(&session).await.map_err(|error| refusal(&error))?;
        state.latest().map(|latest| latest.id.clone())
    };
    let forked = sessions.fork_session(&session, at.as_ref()).await;
    let fork = forked.map_err(|error| refusal(&error))?;
    print(&format!("{fork}\n"))?;
    Ok(Exit::Done)
}

async fn remove(app: &App, ids: &[String], form: Form) -> Result<Exit, Problem> {
    each(ids, Said { done: "removed", form }, async |session| app.delete_session(session).await)
        .await
}

/// What is said of a session with which something was done.
#[derive(Clone, Copy)]
struct Said {
    done: &'static str,
    form: Form,
}

impl Said {
    fn line(self, id: &str) -> String {
        let Self { done, form } = self;
        match form {
            Form::Json => format!("{}\n", serde_json::json!({done: id})),
            Form::Text => format!("{done} {id}\n"),
        }
    }
}

/// Does something with each of several sessions. One with which it cannot be done is named, and keeps
/// it from none of the others.
async fn each(
    ids: &[String],
    said: Said,
    act: impl AsyncFn(&SessionId) -> Result<(), SessionError>,
) -> Result<Exit, Problem> {
    let mut exit = Exit::Done;
    for id in ids {
        match act(&SessionId::from(id.as_str())).await {
            Ok(()) => print(&said.line(id))?,
            Err(error) => {
                let problem = refusal(&error);
                exit = exit.or_worse(problem.exit());
                tell(&problem);
            }
        }
    }
    Ok(exit)
}

fn refusal(error: &SessionError) -> Problem {
    let exit = match error {
        SessionError::Store(error) | SessionError::Read(ReadError::Store(error)) => code_of(error),
        SessionError::Waiting(error) => match error {
            WaitingError::File(_) | WaitingError::Locked(_) => Exit::Disk,
            WaitingError::Claimed(_)
            | WaitingError::Gone(_)
            | WaitingError::NoAgent(_)
            | WaitingError::TooLong { .. } => Exit::Failed,
        },
        SessionError::Create(error) => not_created(error).exit(),
        SessionError::Advance(error) => not_advanced(error).exit(),
        SessionError::Folder(_) => Exit::Usage,
        SessionError::TurnNotSettled { .. }
        | SessionError::NotInSession { .. }
        | SessionError::NothingToResume { .. }
        | SessionError::NothingToCompact(_)
        | SessionError::NoSummary { .. }
        | SessionError::BeingDeleted(_)
        | SessionError::NotDeleted(_)
        | SessionError::Entangled { .. }
        | SessionError::NoSession(_)
        | SessionError::SeveralQuestions(_)
        | SessionError::NoQuestion { .. } => Exit::Failed,
    };
    Problem::of(exit, error)
}

fn code_of(error: &StoreError) -> Exit {
    match error {
        StoreError::Id(_) => Exit::Usage,
        StoreError::NotFound(_) | StoreError::LiveTurnOpen(_) | StoreError::Ending(_) => {
            Exit::Failed
        }
        StoreError::AlreadyExists(_)
        | StoreError::AlreadyOwned(_)
        | StoreError::NoFirstRecord(_)
        | StoreError::Corrupt { .. }
        | StoreError::Refused { .. }
        | StoreError::Torn { .. }
        | StoreError::Changed { .. }
        | StoreError::Overtaken { .. }
        | StoreError::Unsupported { .. }
        | StoreError::Damaged { .. }
        | StoreError::Poisoned { .. }
        | StoreError::Stalled { .. }
        | StoreError::WriterLost(_)
        | StoreError::LockLost(_)
        | StoreError::Io(_) => Exit::Disk,
    }
}
