//! What people and programs do in a simulation. A new operation is a variant, a row, and an arm.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use crate::base::id::{SessionId, ToolCallId, TurnId};
use crate::domain::agent::RequestedAgent;
use crate::domain::json::Json;
use crate::domain::message::UserMessage;
use crate::domain::turn::event::{Decision, ToolResultData};
use crate::domain::turn::state::{ToolCall, TurnState};
use crate::runtime::api::{Human, PermissionMode};
use crate::runtime::error::AdvanceError;
use crate::sessions::Sessions;
use crate::sessions::api::{NewSession, SendMessageConfig};
use crate::sessions::error::SessionError;
use crate::sessions::waiting::WaitingError;
use crate::store::error::StoreError;
use crate::testing::agents::AGENT;
use crate::testing::sim::life::Life;
use crate::testing::sim::seed::Seed;
use crate::testing::sim::{Fate, Message, Sim};

/// What can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Create,
    Send,
    Decide,
    Answer,
    Report,
    Stop,
    Resume,
    Close,
    Rename,
    Delete,
    Restore,
    Scan,
    Wait,
    Restart,
}

/// How often each happens, beside the others.
pub(super) const OPERATIONS: &[(Operation, usize)] = &[
    (Operation::Create, 4),
    (Operation::Send, 22),
    (Operation::Decide, 14),
    (Operation::Answer, 10),
    (Operation::Report, 3),
    (Operation::Stop, 6),
    (Operation::Resume, 9),
    (Operation::Close, 4),
    (Operation::Rename, 4),
    (Operation::Delete, 4),
    (Operation::Restore, 5),
    (Operation::Scan, 2),
    (Operation::Wait, 8),
    (Operation::Restart, 2),
];

type Work = BoxFuture<'static, Result<(), SessionError>>;

impl Sim {
    /// Starts an operation, which is carried out, refused, or gone with its process.
    pub(super) fn begin(&self, life: &mut Life, operation: Operation) {
        let sessions = life.sessions.clone();
        let work = match operation {
            Operation::Create => self.create(sessions),
            Operation::Scan => async move { Ok(sessions.scan().await?) }.boxed(),
            Operation::Wait | Operation::Restart => return,
            other => {
                let all = self.shared.lock().sessions.clone();
                let session = all.get(self.odds.seed.below(all.len()));
                let Some(session) = session.cloned() else { return };
                self.trace.push(format!("{other:?} in {session}"));
                self.in_session(other, sessions, session)
            }
        };
        let (shared, trace, folder) =
            (self.shared.clone(), self.trace.clone(), self.storage.folder());
        let name = operation.name();
        life.operations.push(life.tasks.spawn("operation", async move {
            match work.await {
                Ok(()) => {
                    trace.push(format!("{name}: done"));
                    *shared.lock().played.done.entry(name).or_default() += 1;
                }
                Err(error) if is_refusal(&error) => {
                    let why = error.to_string();
                    let why = if folder.is_empty() { why } else { why.replace(&folder, "…") };
                    trace.push(format!("{name}: {why}"));
                }
                Err(error) => panic!("{name}: {error}: {error:?}"),
            }
        }));
    }

    fn create(&self, sessions: Sessions) -> Work {
        self.trace.push("create".to_owned());
        let shared = self.shared.clone();
        async move {
            let session = sessions.create_session(NewSession::default()).await?;
            shared.lock().sessions.push(session);
            Ok(())
        }
        .boxed()
    }

    fn in_session(&self, operation: Operation, sessions: Sessions, session: SessionId) -> Work {
        let seed = self.odds.seed.clone();
        match operation {
            Operation::Send => self.send(sessions, session),
            Operation::Decide => decide(sessions, session, seed).boxed(),
            Operation::Answer => answer(sessions, session, seed).boxed(),
            Operation::Report => report(sessions, session, seed).boxed(),
            Operation::Stop => stop(sessions, session).boxed(),
            Operation::Resume => async move { sessions.resume_turn(&session).await }.boxed(),
            Operation::Close => async move { sessions.close_interrupted(&session).await }.boxed(),
            Operation::Rename => {
                async move { sessions.set_title(&session, "Renamed").await }.boxed()
            }
            Operation::Delete => delete(sessions, session).boxed(),
            Operation::Restore => async move { sessions.restore_session(&session).await }.boxed(),
            Operation::Create | Operation::Scan | Operation::Wait | Operation::Restart => {
                async { Ok(()) }.boxed()
            }
        }
    }

    fn send(&self, sessions: Sessions, session: SessionId) -> Work {
        let (seed, shared) = (&self.odds.seed, self.shared.clone());
        let config = SendMessageConfig {
            permission: if seed.chance(30) { PermissionMode::Auto } else { PermissionMode::Manual },
            human: if seed.chance(10) { Human::Unavailable } else { Human::Available },
            ..SendMessageConfig::of(RequestedAgent::by_id(AGENT))
        };
        let (number, text) = {
            let mut left = shared.lock();
            let number = left.messages.len();
            let text = format!("Message {number}.");
            let (session, fate) = (session.clone(), Fate::Unknown);
            left.messages.push(Message { text: text.clone(), session, fate });
            (number, text)
        };
        async move {
            let message = Arc::new(UserMessage::text(&text));
            match sessions.send_message(&session, message, config).await {
                Ok(turn) => {
                    shared.set_fate(number, Fate::Turn(turn));
                    Ok(())
                }
                Err(error) => {
                    shared.set_fate(number, Fate::Refused);
                    Err(error)
                }
            }
        }
        .boxed()
    }
}

async fn latest(
    sessions: &Sessions,
    session: &SessionId,
) -> Result<Option<TurnState>, SessionError> {
    let state = sessions.get_session(session).await?;
    let Some(latest) = state.latest() else { return Ok(None) };
    Ok(Some(sessions.get_turn(&latest.id).await?.state))
}

/// One of the calls of the latest turn for which `is_meant` holds.
async fn some_call(
    sessions: &Sessions,
    session: &SessionId,
    seed: &Seed,
    is_meant: fn(&ToolCall) -> bool,
) -> Result<Option<(TurnId, ToolCallId)>, SessionError> {
    let Some(turn) = latest(sessions, session).await? else { return Ok(None) };
    let calls: Vec<_> = turn.unresolved().filter(|call| is_meant(call)).collect();
    let call = calls.get(seed.below(calls.len()));
    Ok(call.map(|call| (turn.id.clone(), call.id.clone())))
}

/// What was decided stands in the log.
async fn decide(sessions: Sessions, session: SessionId, seed: Seed) -> Result<(), SessionError> {
    let meant = some_call(&sessions, &session, &seed, ToolCall::awaits_permission).await?;
    let Some((turn, call)) = meant else { return Ok(()) };
    let decision = if seed.chance(70) { Decision::Allow } else { Decision::Deny };
    let metadata = Some(Json::of(&serde_json::json!({ "reason": "as you like" })));
    sessions.respond_to_permission(&turn, &call, decision, metadata).await?;
    let decided = sessions.get_turn(&turn).await?.state;
    let permission = decided.tool_calls.get(&call).and_then(|call| call.permission.as_ref());
    assert!(permission.is_some_and(|it| it.resolved.is_some()), "{call} was decided on");
    Ok(())
}

async fn answer(sessions: Sessions, session: SessionId, seed: Seed) -> Result<(), SessionError> {
    let meant = some_call(&sessions, &session, &seed, ToolCall::awaits_async_result).await?;
    let Some((turn, call)) = meant else { return Ok(()) };
    let is_error = seed.chance(20);
    let result = ToolResultData { output: Json::text("this"), is_error, metadata: None };
    sessions.deliver_async_tool_result(&turn, &call, result).await
}

async fn report(sessions: Sessions, session: SessionId, seed: Seed) -> Result<(), SessionError> {
    let meant = some_call(&sessions, &session, &seed, ToolCall::awaits_async_result).await?;
    let Some((turn, call)) = meant else { return Ok(()) };
    let progress = Json::of(&serde_json::json!({ "bytes": seed.below(100) }));
    sessions.report_async_tool_progress(&turn, &call, progress).await
}

/// A turn that was stopped has ended.
async fn stop(sessions: Sessions, session: SessionId) -> Result<(), SessionError> {
    let Some(turn) = latest(&sessions, &session).await? else { return Ok(()) };
    sessions.stop_turn(&turn.id, Some("enough")).await?;
    let stopped = sessions.get_turn(&turn.id).await?.state;
    assert!(stopped.terminal.is_some(), "{} was stopped and goes on", turn.id);
    Ok(())
}

/// Nothing runs in a session that was deleted.
async fn delete(sessions: Sessions, session: SessionId) -> Result<(), SessionError> {
    sessions.delete_session(&session).await?;
    let running = sessions.running();
    assert!(running.iter().all(|(of, _)| *of != session), "{session} is deleted: {running:?}");
    Ok(())
}

/// Whether the layer said no, as it may. Everything else is a fault: nothing here fails by itself.
fn is_refusal(error: &SessionError) -> bool {
    let is_gone = |error: &StoreError| {
        matches!(error, StoreError::NotFound(_) | StoreError::AlreadyExists(_))
    };
    match error {
        SessionError::TurnNotSettled { .. }
        | SessionError::NothingToResume { .. }
        | SessionError::NotInSession { .. }
        | SessionError::NothingToCompact(_)
        | SessionError::NoSummary { .. }
        | SessionError::Entangled { .. }
        | SessionError::Waiting(
            WaitingError::Claimed(_) | WaitingError::Gone(_) | WaitingError::NoAgent(_),
        )
        | SessionError::BeingDeleted(_)
        | SessionError::NotDeleted(_)
        | SessionError::Advance(AdvanceError::Refused(_)) => true,
        SessionError::Store(error) => is_gone(error),
        SessionError::Waiting(_)
        | SessionError::Aside(_)
        | SessionError::Read(_)
        | SessionError::Create(_)
        | SessionError::Advance(_)
        | SessionError::Folder(_)
        | SessionError::NoSession(_)
        | SessionError::SeveralQuestions(_) => false,
    }
}

impl Operation {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Send => "send",
            Self::Decide => "decide",
            Self::Answer => "answer",
            Self::Report => "report",
            Self::Stop => "stop",
            Self::Resume => "resume",
            Self::Close => "close",
            Self::Rename => "rename",
            Self::Delete => "delete",
            Self::Restore => "restore",
            Self::Scan => "scan",
            Self::Wait => "wait",
            Self::Restart => "restart",
        }
    }
}
