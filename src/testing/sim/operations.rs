//! What people and programs do in a simulation. A new operation is a variant, a row, and an arm.

mod answers;
mod grants;
mod lineage;
mod messages;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use crate::base::id::SessionId;
use crate::runtime::error::{AdvanceError, ReadError};
use crate::sessions::Sessions;
use crate::sessions::api::NewSession;
use crate::sessions::error::SessionError;
use crate::sessions::waiting::WaitingError;
use crate::store::error::StoreError;
use crate::testing::sim::Sim;
use crate::testing::sim::life::Life;

/// What can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Create,
    Send,
    Queue,
    TakeBack,
    Edit,
    SendWaiting,
    Decide,
    Answer,
    Report,
    Stop,
    Resume,
    Close,
    Rename,
    Archive,
    Grant,
    Compact,
    Fork,
    Delete,
    Restore,
    Purge,
    Collect,
    Scan,
    Recover,
    Wait,
    Restart,
}

/// How often each happens, beside the others.
pub(super) const OPERATIONS: &[(Operation, usize)] = &[
    (Operation::Create, 3),
    (Operation::Send, 12),
    (Operation::Queue, 18),
    (Operation::TakeBack, 3),
    (Operation::Edit, 4),
    (Operation::SendWaiting, 6),
    (Operation::Decide, 14),
    (Operation::Answer, 10),
    (Operation::Report, 3),
    (Operation::Stop, 6),
    (Operation::Resume, 11),
    (Operation::Close, 4),
    (Operation::Rename, 2),
    (Operation::Archive, 3),
    (Operation::Grant, 3),
    (Operation::Compact, 7),
    (Operation::Fork, 3),
    (Operation::Delete, 3),
    (Operation::Restore, 5),
    (Operation::Purge, 1),
    (Operation::Collect, 2),
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
            Operation::Recover => async move { sessions.recover_queues().await }.boxed(),
            Operation::Collect => {
                self.trace.push("collect".to_owned());
                let (seed, shared) = (self.odds.seed.clone(), self.shared.clone());
                lineage::collect(sessions, seed, shared).boxed()
            }
            Operation::Wait | Operation::Restart => return,
            other => {
                let all = self.shared.lock().sessions.clone();
                // The newer the likelier, so that some sessions grow long.
                let back = self.odds.seed.below(self.odds.seed.below(all.len()) + 1);
                let Some(session) = all.into_iter().rev().nth(back) else { return };
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
        let (seed, shared) = (self.odds.seed.clone(), self.shared.clone());
        match operation {
            Operation::Send => self.send(sessions, session),
            Operation::Queue => self.queue(sessions, session),
            Operation::TakeBack => messages::take_back(sessions, session, seed, shared).boxed(),
            Operation::Edit => messages::edit(sessions, session, seed, shared).boxed(),
            Operation::SendWaiting => async move { sessions.send_waiting(&session).await }.boxed(),
            Operation::Decide => answers::decide(sessions, session, seed).boxed(),
            Operation::Answer => answers::answer(sessions, session, seed).boxed(),
            Operation::Report => answers::report(sessions, session, seed).boxed(),
            Operation::Stop => answers::stop(sessions, session).boxed(),
            Operation::Resume => async move { sessions.resume_turn(&session).await }.boxed(),
            Operation::Close => async move { sessions.close_interrupted(&session).await }.boxed(),
            Operation::Rename => {
                async move { sessions.set_title(&session, "Renamed").await }.boxed()
            }
            Operation::Archive => {
                let away = seed.chance(60);
                async move { sessions.set_archived(&session, away).await }.boxed()
            }
            Operation::Grant => grants::grant(sessions, session, seed, shared).boxed(),
            Operation::Compact => async move { sessions.compact(&session).await }.boxed(),
            Operation::Fork => lineage::fork(sessions, session, seed, shared).boxed(),
            Operation::Delete => lineage::delete(sessions, session).boxed(),
            Operation::Restore => async move { sessions.restore_session(&session).await }.boxed(),
            Operation::Purge => lineage::purge(sessions, session, shared).boxed(),
            Operation::Create
            | Operation::Collect
            | Operation::Scan
            | Operation::Recover
            | Operation::Wait
            | Operation::Restart => async { Ok(()) }.boxed(),
        }
    }
}

/// Whether the layer said no, as it may. Everything else is a fault: nothing here fails by itself.
fn is_refusal(error: &SessionError) -> bool {
    let is_gone = |error: &StoreError| {
        matches!(error, StoreError::NotFound(_) | StoreError::AlreadyExists(_))
    };
    match error {
        SessionError::TurnNotSettled { .. }
        | SessionError::NothingToResume { .. }
        | SessionError::NothingToCompact(_)
        | SessionError::NoSummary { .. }
        | SessionError::Waiting(WaitingError::Claimed(_) | WaitingError::Gone(_))
        | SessionError::BeingDeleted(_)
        | SessionError::NotDeleted(_)
        | SessionError::Advance(AdvanceError::Refused(_)) => true,
        SessionError::Store(error) | SessionError::Read(ReadError::Store(error)) => is_gone(error),
        SessionError::NotInSession { .. }
        | SessionError::Entangled { .. }
        | SessionError::Waiting(_)
        | SessionError::Create(_)
        | SessionError::Advance(_)
        | SessionError::Folder(_)
        | SessionError::NoSession(_)
        | SessionError::SeveralQuestions(_)
        | SessionError::NoQuestion { .. } => false,
    }
}

impl Operation {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Send => "send",
            Self::Queue => "queue",
            Self::TakeBack => "take back",
            Self::Edit => "edit",
            Self::SendWaiting => "send waiting",
            Self::Decide => "decide",
            Self::Answer => "answer",
            Self::Report => "report",
            Self::Stop => "stop",
            Self::Resume => "resume",
            Self::Close => "close",
            Self::Rename => "rename",
            Self::Archive => "archive",
            Self::Grant => "grant",
            Self::Compact => "compact",
            Self::Fork => "fork",
            Self::Delete => "delete",
            Self::Restore => "restore",
            Self::Purge => "purge",
            Self::Collect => "collect",
            Self::Scan => "scan",
            Self::Recover => "recover",
            Self::Wait => "wait",
            Self::Restart => "restart",
        }
    }
}
