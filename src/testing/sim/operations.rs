//! What people and programs do in a simulation. A new operation is a variant, a row, and an arm.

mod answers;
mod grants;
mod lineage;
mod messages;
mod records;

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
use crate::testing::sim::absence::Since;
use crate::testing::sim::left::Shared;
use crate::testing::sim::life::Life;
use crate::testing::sim::operations::records::Place;

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
        let mut since = None;
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
                since = Some(self.shared.lock().absences.since(&session));
                self.in_session(other, life, session)
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
                Err(error) if is_refusal(&error) || is_missing(&error, since.as_ref(), &shared) => {
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

    fn in_session(&self, operation: Operation, life: &Life, session: SessionId) -> Work {
        let (seed, shared) = (self.odds.seed.clone(), self.shared.clone());
        let sessions = life.sessions.clone();
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
            Operation::Resume => answers::resume(sessions, session).boxed(),
            Operation::Close => answers::close(sessions, session).boxed(),
            Operation::Rename => records::rename(sessions, session).boxed(),
            Operation::Archive => {
                let place = if seed.chance(60) { Place::Away } else { Place::Back };
                records::archive(sessions, session, life.session_logs.clone(), place).boxed()
            }
            Operation::Grant => grants::grant(sessions, session, seed, shared).boxed(),
            Operation::Compact => records::compact(sessions, session).boxed(),
            Operation::Fork => lineage::fork(sessions, session, seed, shared).boxed(),
            Operation::Delete => lineage::delete(sessions, session, shared).boxed(),
            Operation::Restore => lineage::restore(sessions, session, shared).boxed(),
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

/// Whether the layer said that the session of an operation is not there, or a turn of it, and that
/// may have been so.
fn is_missing(error: &SessionError, since: Option<&Since>, shared: &Shared) -> bool {
    let is_said = match error {
        SessionError::Store(error) | SessionError::Read(ReadError::Store(error)) => {
            matches!(error, StoreError::NotFound(_))
        }
        _ => false,
    };
    is_said && since.is_some_and(|since| shared.may_have_been_gone(since))
}

/// Whether the layer said no, as it may. Everything else is a fault: nothing here fails by itself.
fn is_refusal(error: &SessionError) -> bool {
    match error {
        SessionError::TurnNotSettled { .. }
        | SessionError::NothingToResume { .. }
        | SessionError::NothingToCompact(_)
        | SessionError::NoSummary { .. }
        | SessionError::Waiting(WaitingError::Claimed(_) | WaitingError::Gone(_))
        | SessionError::BeingDeleted(_)
        | SessionError::NotDeleted(_)
        | SessionError::Advance(AdvanceError::Refused(_)) => true,
        SessionError::Store(_)
        | SessionError::Read(_)
        | SessionError::NotInSession { .. }
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
