//! The program without a screen: it builds the graph of everything below, takes commands in and
//! gives notices out.

mod assemble;
mod background;
pub mod command;
pub mod convert;
mod deletion;
mod follow;
mod graph;
pub mod health;
mod keep;
mod last_run;
pub mod log;
pub mod notice;
pub mod notify;
pub mod onlook;
pub mod paged;
mod perform;
mod providers;
mod shut_down;
mod storage;
pub mod upkeep;

use std::future::Future;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot, watch};

use crate::agents::choice::DefaultModel;
use crate::app::keep::Keep;
use crate::app::keep::overflow::{Added, Overflow};
use crate::app::last_run::RunMark;
use crate::app::notice::{Notice, Refused};
use crate::app::storage::Storage;
use crate::base::clock::Clock;
use crate::base::id::SessionId;
use crate::base::tasks::Tasks;
use crate::config::origin::Origin;
use crate::domain::session::entry::SessionIndexEntry;
use crate::models::registry::Models;
use crate::runtime::TurnRuntime;
use crate::sessions::Sessions;
use crate::store::lock::{GuestPass, InstanceLock};
use crate::store::scratch::Scratch;
use crate::store::session_repo::SessionRepo;
use crate::store::turn_repo::TurnRepo;
use crate::store::work_dir::WorkDir;

pub use assemble::{Access, StartError, Startup, WorkPlace};
pub use shut_down::LeaveError;

/// How many notices wait for whoever looks. Live text is joined before it gets here, so this is
/// some seconds of everything else; then the program waits.
const NOTICES_WAITING_MAX: usize = 4_096;

/// The program. Cheap to clone; all clones are one.
#[derive(Clone)]
pub struct App {
    graph: Arc<Graph>,
    notices: mpsc::Sender<Notice>,
    /// The session that is to be shown; only the last request counts.
    following: watch::Sender<Option<SessionId>>,
    keeping: mpsc::Sender<Keep>,
    /// What waits while that is full.
    overflow: Arc<Mutex<Overflow>>,
    run_mark: Arc<RunMark>,
}

/// Everything that the program works with.
pub struct Graph {
    /// The sessions.
    pub sessions: Sessions,
    /// The runtime under them.
    pub runtime: TurnRuntime,
    /// The models.
    pub models: Arc<Models>,
    /// Which of them answers when nothing else is said.
    pub default_model: DefaultModel,
    /// Whether that model was named for this start, so that conversations go on with it.
    model_is_for_this_start: bool,
    /// The agent that answers when nothing else is said.
    pub default_agent: String,
    origins: Origins,
    /// Whether anything may be changed.
    pub access: Access,
    /// Who owns what runs in the background.
    pub tasks: Tasks,
    /// Where the guide's sessions have their folders.
    scratch_folders: PathBuf,
    /// For how many days deleted sessions can be restored.
    keep_deleted_days: u64,
    scratch: Scratch,
    dir: WorkDir,
    storage: Storage,
    session_logs: SessionRepo,
    turn_logs: TurnRepo,
    clock: Arc<dyn Clock>,
    _lock: Option<Arc<InstanceLock>>,
    _guest: Option<Arc<GuestPass>>,
}

/// Who named what answers when nothing else is said.
struct Origins {
    agent: Origin,
    model: Origin,
}

/// Why no session can be gone on with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoLatest {
    /// There is none of a person's own.
    #[error("there is no session yet")]
    NoSession,
    /// There are some, and all of them are put away.
    #[error("every session is put away")]
    PutAway,
    /// None of those that are not put away can be read.
    #[error("no session can be read")]
    Unreadable,
}

/// Among all sessions, the one in which a person last did something.
fn latest_of(entries: &[Arc<SessionIndexEntry>]) -> Result<&SessionId, NoLatest> {
    let own = || entries.iter().filter(|entry| entry.origin.is_none());
    let current = || own().filter(|entry| !entry.archived);
    let sound = current().filter(|entry| entry.error.is_none());
    let latest = sound.max_by_key(|entry| entry.active_at).map(|entry| &entry.session_id);
    latest.ok_or_else(|| match (own().next(), current().next()) {
        (None, _) => NoLatest::NoSession,
        (Some(_), None) => NoLatest::PutAway,
        (Some(_), Some(_)) => NoLatest::Unreadable,
    })
}

impl App {
    /// Everything that the program works with.
    #[must_use]
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The session in which somebody last did something, as far as the index knows; damaged ones,
    /// those that were put away, and those of agents and jobs do not count.
    ///
    /// # Errors
    /// [`NoLatest`] says why there is none.
    pub fn latest_session(&self) -> Result<SessionId, NoLatest> {
        let entries = self.graph.sessions.list_sessions();
        latest_of(&entries).cloned()
    }

    fn follow(&self, session: Option<SessionId>) {
        self.following.send_replace(session);
    }

    /// Shows a session anew, unless another one is wanted by now.
    fn follow_again(&self, session: &SessionId) {
        self.following.send_if_modified(|wanted| wanted.as_ref() == Some(session));
    }

    /// Hands something to the keeper, in the order of the calls.
    fn keep(&self, keep: Keep) {
        let added = {
            let mut overflow = self.overflow();
            let sent = if overflow.is_idle() {
                self.keeping.try_send(keep)
            } else {
                Err(TrySendError::Full(keep))
            };
            let Err(TrySendError::Full(keep)) = sent else { return };
            overflow.add(keep)
        };
        if added == Added::First {
            let app = self.clone();
            self.spawn(async move { app.move_on().await });
        }
    }

    /// Moves what waits on to the keeper.
    async fn move_on(&self) {
        let why = "the disk is slow: what is typed stands only on the screen until it keeps up";
        self.tell(Notice::Refused { what: Refused::Keep, why: why.into() }).await;
        loop {
            let next = self.overflow().next();
            let Some(keep) = next else { return };
            // A closed channel means that the program is ending.
            self.keeping.send(keep).await.ok();
        }
    }

    fn overflow(&self) -> MutexGuard<'_, Overflow> {
        self.overflow.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the keeper for something, and waits until it is done.
    async fn wait_for<T: Default>(&self, keep: impl FnOnce(oneshot::Sender<T>) -> Keep) -> T {
        let (done, is_done) = oneshot::channel();
        self.keep(keep(done));
        // A closed channel means that the program is ending.
        is_done.await.unwrap_or_default()
    }

    async fn tell(&self, notice: Notice) {
        // Nobody listening means that the program is ending.
        self.notices.send(notice).await.ok();
    }

    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        drop(self.graph.tasks.spawn("command", work));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::clock::Timestamp;
    use crate::domain::event::Event;
    use crate::domain::session::apply::reduce_session;
    use crate::domain::session::event::{Origin as SessionOrigin, SessionFact};
    use crate::testing::session_fact::header;

    #[test]
    fn what_is_gone_on_with_is_the_last_of_a_person_s_own_and_there_is_a_reason_for_none() {
        let entry = |id: &str, change: fn(&mut SessionIndexEntry)| {
            let fact = SessionFact::Created(Arc::new(header()));
            let created = Event { id: SessionId::from(id), ts: Timestamp::from_ms(0), fact };
            let state = reduce_session(&[created]).expect("legal");
            let mut entry = SessionIndexEntry::new(&state, None);
            change(&mut entry);
            Arc::new(entry)
        };
        let sound = || entry("s1", |_| {});
        let agent = || entry("s2", |entry| entry.origin = Some(SessionOrigin::Subagent));
        let away = || entry("s3", |entry| entry.archived = true);
        let damaged = || entry("s4", |entry| entry.error = Some("torn".to_owned()));
        let check = |entries: &[Arc<SessionIndexEntry>], expected| {
            assert_eq!(latest_of(entries).map(SessionId::as_str), expected);
        };
        check(&[], Err(NoLatest::NoSession));
        check(&[agent()], Err(NoLatest::NoSession));
        check(&[agent(), away()], Err(NoLatest::PutAway));
        check(&[agent(), away(), damaged()], Err(NoLatest::Unreadable));
        check(&[agent(), away(), damaged(), sound()], Ok("s1"));

        // Neither its place, nor when it began, nor what else happened to it counts.
        let renamed = || {
            entry("s5", |entry| {
                entry.created_at = Timestamp::from_ms(8);
                entry.updated_at = Timestamp::from_ms(9);
            })
        };
        let used = || entry("s6", |entry| entry.active_at = Timestamp::from_ms(1));
        check(&[renamed(), used(), sound()], Ok("s6"));
        check(&[used(), renamed(), sound()], Ok("s6"));
        check(&[sound(), renamed(), used()], Ok("s6"));
    }
}
