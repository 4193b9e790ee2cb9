//! Answers from outside, and stops.

use crate::base::id::{SessionId, ToolCallId, TurnId};
use crate::domain::json::Json;
use crate::domain::turn::event::{Decision, ToolResultData};
use crate::domain::turn::state::{ToolCall, TurnState};
use crate::sessions::Sessions;
use crate::sessions::error::SessionError;
use crate::testing::seed::Seed;

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
pub(super) async fn decide(
    sessions: Sessions,
    session: SessionId,
    seed: Seed,
) -> Result<(), SessionError> {
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

/// What was answered stands in the log.
pub(super) async fn answer(
    sessions: Sessions,
    session: SessionId,
    seed: Seed,
) -> Result<(), SessionError> {
    let meant = some_call(&sessions, &session, &seed, ToolCall::awaits_async_result).await?;
    let Some((turn, call)) = meant else { return Ok(()) };
    let is_error = seed.chance(20);
    let result = ToolResultData { output: Json::text("this"), is_error, metadata: None };
    sessions.deliver_async_tool_result(&turn, &call, result).await?;
    let answered = sessions.get_turn(&turn).await?.state;
    let result = answered.tool_calls.get(&call).and_then(|call| call.result.as_ref());
    assert!(result.is_some(), "{call} was answered");
    Ok(())
}

/// What was reported stands in the log.
pub(super) async fn report(
    sessions: Sessions,
    session: SessionId,
    seed: Seed,
) -> Result<(), SessionError> {
    let meant = some_call(&sessions, &session, &seed, ToolCall::awaits_async_result).await?;
    let Some((turn, call)) = meant else { return Ok(()) };
    let progress = Json::of(&serde_json::json!({ "bytes": seed.below(100) }));
    sessions.report_async_tool_progress(&turn, &call, progress.clone()).await?;
    let reported = sessions.get_turn(&turn).await?.state;
    let reports = reported.tool_calls.get(&call).map(|call| &call.progress);
    assert!(reports.is_some_and(|all| all.contains(&progress)), "{call} has got on");
    Ok(())
}

/// A turn that is gone on with runs.
pub(super) async fn resume(sessions: Sessions, session: SessionId) -> Result<(), SessionError> {
    sessions.resume_turn(&session).await?;
    let running = sessions.running();
    assert!(running.iter().any(|(of, _)| *of == session), "{session} goes on: {running:?}");
    Ok(())
}

/// A turn that was closed has ended: before that, no other can have become the latest.
pub(super) async fn close(sessions: Sessions, session: SessionId) -> Result<(), SessionError> {
    let turn = latest(&sessions, &session).await?;
    sessions.close_interrupted(&session).await?;
    let Some(turn) = turn else { return Ok(()) };
    let closed = sessions.get_turn(&turn.id).await?.state;
    assert!(closed.terminal.is_some(), "{} was closed and goes on", turn.id);
    Ok(())
}

/// A turn that was stopped has ended.
pub(super) async fn stop(sessions: Sessions, session: SessionId) -> Result<(), SessionError> {
    let Some(turn) = latest(&sessions, &session).await? else { return Ok(()) };
    sessions.stop_turn(&turn.id, Some("enough")).await?;
    let stopped = sessions.get_turn(&turn.id).await?.state;
    assert!(stopped.terminal.is_some(), "{} was stopped and goes on", turn.id);
    Ok(())
}
