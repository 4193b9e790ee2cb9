//! Forking, deleting, destroying: what is about more than one log.

use crate::base::id::{SessionId, TurnId};
use crate::domain::session::state::SessionState;
use crate::sessions::Sessions;
use crate::sessions::error::SessionError;
use crate::store::log::LogKind;
use crate::testing::seed::Seed;
use crate::testing::sim::left::Shared;

/// A fork has the turns up to its place, and nothing else of the other session.
pub(super) async fn fork(
    sessions: Sessions,
    session: SessionId,
    seed: Seed,
    shared: Shared,
) -> Result<(), SessionError> {
    let source = turns_of(&sessions.get_session(&session).await?);
    let kept = source.get(..seed.below(source.len() + 1)).unwrap_or_default();
    let fork = sessions.fork_session(&session, kept.last()).await?;
    let state = sessions.get_session(&fork).await?;
    assert_eq!(turns_of(&state), kept, "the turns of {fork}, forked from {session}");
    assert_eq!(state.header.parent_session.as_ref(), Some(&session), "where {fork} comes from");
    assert!(!state.archived, "{fork} is put away from the start");
    let waiting = sessions.waiting_messages(&fork).await?;
    assert!(waiting.is_empty(), "in {fork} waits what was put elsewhere: {waiting:?}");
    shared.lock().sessions.push(fork);
    Ok(())
}

fn turns_of(session: &SessionState) -> Vec<TurnId> {
    session.turns.iter().map(|turn| turn.id.clone()).collect()
}

/// Nothing runs in a session that was deleted.
pub(super) async fn delete(
    sessions: Sessions,
    session: SessionId,
    shared: Shared,
) -> Result<(), SessionError> {
    shared.lock().absences.begin_deletion(&session);
    let deleted = sessions.delete_session(&session).await;
    if let Err(error) = deleted {
        shared.lock().absences.end_deletion(&session);
        return Err(error);
    }
    shared.lock().absences.deleted(&session);
    check_nothing_runs(&sessions, &session);
    Ok(())
}

/// A session that was restored is listed, and can be read.
pub(super) async fn restore(
    sessions: Sessions,
    session: SessionId,
    shared: Shared,
) -> Result<(), SessionError> {
    sessions.restore_session(&session).await?;
    assert!(sessions.index().get(&session).is_some(), "{session} is restored, and not listed");
    shared.lock().absences.restored(&session);
    sessions.get_session(&session).await?;
    Ok(())
}

/// Of a session that was destroyed nothing runs, is listed or can be restored.
pub(super) async fn purge(
    sessions: Sessions,
    session: SessionId,
    shared: Shared,
) -> Result<(), SessionError> {
    shared.lock().doomed.sessions.insert(session.clone());
    sessions.purge_session(&session).await?;
    check_nothing_runs(&sessions, &session);
    let entry = sessions.index().get(&session);
    assert!(entry.is_none(), "{session} is destroyed, and listed");
    let deletion = sessions.last_deletion(&session).await;
    assert!(matches!(deletion, Err(SessionError::NotDeleted(_))), "{session}: {deletion:?}");
    let mut left = shared.lock();
    left.sessions.retain(|it| *it != session);
    left.purged.insert(session);
    Ok(())
}

fn check_nothing_runs(sessions: &Sessions, session: &SessionId) {
    let running = sessions.running();
    assert!(running.iter().all(|(of, _)| of != session), "{session} is gone: {running:?}");
}

/// Nothing but what was found is destroyed. That nobody needs it is seen in what is left.
pub(super) async fn collect(
    sessions: Sessions,
    seed: Seed,
    shared: Shared,
) -> Result<(), SessionError> {
    let is_expired = seed.chance(25);
    let found = sessions.find_garbage(|_| is_expired).await?;
    assert!(found.unsure.is_empty(), "all can be read: {:?}", found.unsure);
    {
        let doomed = &mut shared.lock().doomed;
        let expired = found.expired.iter().filter(|it| it.log.kind() == LogKind::Session);
        doomed.sessions.extend(expired.map(|it| SessionId::from(it.log.id())));
        doomed.turns.extend(found.turns.iter().cloned());
    }
    let gone = sessions.destroy_garbage(&found).await?;
    assert!(gone.unsure.is_empty(), "all can be read: {:?}", gone.unsure);
    let is_found = gone.turns.iter().all(|turn| found.turns.contains(turn))
        && gone.expired.iter().all(|removed| found.expired.contains(removed));
    assert!(is_found, "more is gone than was found: {gone:?} of {found:?}");
    shared.lock().collected.extend(gone.turns);
    Ok(())
}
