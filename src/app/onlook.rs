//! Looking on without writing: what another process does in the folder is told by nobody, so it is
//! looked for. Only a view does this; a program that works is told everything, and looks for nothing.

use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Duration;

use crate::app::App;
use crate::app::notice::Notice;
use crate::base::id::{SessionId, TurnId};
use crate::store::disk::RealDisk;
use crate::store::error::StoreError;
use crate::store::lock::{self, Holder};
use crate::store::log::{LogId, LogKind, Revision};

/// How often a view looks: soon enough to read along, and too seldom to be felt.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);

/// What a view knows of the other process.
pub struct Onlooker {
    app: App,
    told: Told,
    seen: Option<Seen>,
    /// The folders of the sessions when the list was last compared with them.
    listed: Vec<(PathBuf, u64)>,
}

/// What was told of who holds the folder.
#[derive(PartialEq, Eq)]
enum Told {
    Nothing,
    HeldBy(Option<Holder>),
}

/// The open session as it was last looked at.
#[derive(PartialEq, Eq)]
struct Seen {
    session: SessionId,
    log: Revision,
    latest: Option<(TurnId, Revision)>,
    /// How many bytes of an answer that is not settled had been streamed.
    streamed: u64,
}

impl Onlooker {
    /// Somebody who has not looked yet.
    #[must_use]
    pub fn new(app: App) -> Self {
        Self { app, told: Told::Nothing, seen: None, listed: Vec::new() }
    }

    /// Looks until the program ends.
    pub(super) async fn run(mut self) {
        let ending = self.app.graph.tasks.cancel_token().clone();
        loop {
            self.look().await;
            tokio::select! {
                biased;
                // Neither wait loses anything.
                () = ending.cancelled() => return,
                () = tokio::time::sleep(LOOK_INTERVAL) => {}
            }
        }
    }

    /// Looks once, and tells what is news.
    pub async fn look(&mut self) {
        let holder = self.find_holder().await;
        if self.told != Told::HeldBy(holder) {
            self.told = Told::HeldBy(holder);
            self.app.tell(Notice::HeldBy(holder)).await;
        }
        // Whoever held it may have worked and ended since the last look.
        let list = self.look_at_the_list().await;
        let open = self.look_at_the_open_session().await;
        if let Err(error) = list.and(open) {
            tracing::debug!(%error, "what another process does cannot be followed");
        }
    }

    /// A folder that cannot be looked at is held by nobody who is known.
    async fn find_holder(&self) -> Option<Holder> {
        let dir = self.app.graph.dir.clone();
        let held = move || lock::holder(&RealDisk, &dir).ok().flatten();
        self.app.graph.tasks.spawn_blocking(held).await.ok().flatten()
    }

    /// Takes over which sessions came and went. One that is damaged may be listed without being in
    /// its place.
    async fn look_at_the_list(&mut self) -> Result<(), StoreError> {
        let sessions = &self.app.graph.sessions;
        if sessions.index().is_scanning() {
            return Ok(());
        }
        let folders = self.app.graph.storage.folders(LogKind::Session).await?;
        if folders == self.listed {
            return Ok(());
        }
        // What came after a change of the same moment would not be seen.
        let newest_ms = folders.iter().map(|(_, changed)| changed / 1_000_000).max().unwrap_or(0);
        let now_ms = u64::try_from(self.app.graph.clock.now().ms()).unwrap_or(0);
        let is_settled = Duration::from_millis(now_ms.saturating_sub(newest_ms)) > LOOK_INTERVAL;
        self.listed = if is_settled { folders } else { Vec::new() };
        let there: HashSet<_> = sessions.ids().await?.into_iter().collect();
        let listed = sessions.list_sessions();
        let sound = listed.iter().filter(|entry| entry.error.is_none());
        let gone = sound.map(|entry| &entry.session_id).filter(|id| !there.contains(*id));
        let known: HashSet<_> = listed.iter().map(|entry| &entry.session_id).collect();
        let came = there.iter().filter(|id| !known.contains(id));
        let mut changed: Vec<_> = came.chain(gone).collect();
        changed.sort_unstable();
        for session in changed {
            sessions.look_again(session).await;
        }
        Ok(())
    }

    /// Shows the open session anew when its log, or that of its latest turn, has changed.
    async fn look_at_the_open_session(&mut self) -> Result<(), StoreError> {
        let Some(session) = self.app.following.borrow().clone() else {
            self.seen = None;
            return Ok(());
        };
        let now = self.see(&session).await?;
        if self.seen.as_ref() == Some(&now) {
            return Ok(());
        }
        // Also at the first look: what is shown may be older than what was seen now.
        self.seen = Some(now);
        self.app.graph.sessions.look_again(&session).await;
        self.app.follow_again(&session);
        Ok(())
    }

    async fn see(&self, session: &SessionId) -> Result<Seen, StoreError> {
        let store = &self.app.graph.storage.logs;
        let log = store.revision(&LogId::session(session)?).await?;
        let state = self.app.graph.sessions.get_session(session).await.ok();
        let mut seen = Seen { session: session.clone(), log, latest: None, streamed: 0 };
        if let Some(turn) = state.as_ref().and_then(|state| state.latest()) {
            let log = LogId::turn(&turn.id)?;
            seen.latest = Some((turn.id.clone(), store.revision(&log).await?));
            // Without the buffer the rest is news all the same.
            let call = self.app.graph.storage.live_text.read(&log).await.ok().flatten();
            seen.streamed = call.map_or(0, |call| call.len);
        }
        Ok(seen)
    }
}
