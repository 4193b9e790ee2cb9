//! What happens by itself while the program runs: the list is read, changes are told, a local server
//! is looked for, what is too old to be restored goes.

use std::collections::HashSet;
use std::time::Duration;

use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};

use crate::agents::choice::Chosen;
use crate::app::graph::chosen_of;
use crate::app::notice::{Notice, Refused, Storage};
use crate::app::onlook::Onlooker;
use crate::app::perform::refused;
use crate::app::{Access, App};
use crate::base::id::SessionId;
use crate::models::registry::{Choice, LOCAL_WAIT, LocalServer, Why};
use crate::sessions::index::IndexChange;
use crate::sessions::trouble::Trouble;
use crate::store::coordinate::Stall;
use crate::store::log::SetAside;

/// What the session layer tells, and what of it has been told on.
struct Feed {
    changes: broadcast::Receiver<IndexChange>,
    troubles: broadcast::Receiver<Trouble>,
    set_aside: broadcast::Receiver<SetAside>,
    known: HashSet<SessionId>,
    /// Whether the end of the scan was told.
    scanned: bool,
    began: Duration,
}

impl App {
    /// Starts all of it; what comes of it are notices.
    pub fn begin(&self) {
        let sessions = &self.graph.sessions;
        // Followed from before anything happens, so that nothing is missed.
        let feed = Feed {
            changes: sessions.index().follow(),
            troubles: sessions.follow_trouble(),
            set_aside: self.graph.storage.follow_set_aside(),
            known: HashSet::new(),
            scanned: false,
            began: self.graph.clock.elapsed(),
        };
        let app = self.clone();
        self.spawn(async move { app.tell_changes(feed).await });
        let (app, mut stalls) = (self.clone(), self.follow_stalls());
        // What is stalled already is news too.
        if !stalls.borrow().is_empty() {
            stalls.mark_changed();
        }
        self.spawn(async move { app.tell_stalls(stalls).await });
        let app = self.clone();
        self.spawn(async move { app.read_sessions().await });
        let app = self.clone();
        self.spawn(async move { app.choose_model().await });
        if self.graph.access == Access::Full {
            let app = self.clone();
            self.spawn(async move { app.destroy_expired().await });
        }
        if self.graph.access == Access::ReadOnly {
            self.spawn(Onlooker::new(self.clone()).run());
        }
    }

    async fn tell_changes(&self, mut feed: Feed) {
        let ending = self.graph.tasks.cancel_token().clone();
        loop {
            let change = tokio::select! {
                biased;
                // All are safe to drop: a token keeps its state, the others their queues.
                () = ending.cancelled() => return,
                trouble = feed.troubles.recv() => {
                    // What lagged is in the log of the program.
                    if let Ok(trouble) = trouble {
                        self.tell(told_of(trouble)).await;
                    }
                    continue;
                }
                set_aside = feed.set_aside.recv() => {
                    if let Ok(set_aside) = set_aside {
                        self.tell(Notice::Storage(Storage::SetAside(set_aside))).await;
                    }
                    continue;
                }
                change = feed.changes.recv() => change,
            };
            match change {
                Ok(change) => self.tell_change(&mut feed, change).await,
                Err(RecvError::Lagged(_)) => self.list_again(&mut feed).await,
                Err(RecvError::Closed) => return,
            }
        }
    }

    /// Follows what the disk has not taken.
    #[must_use]
    pub fn follow_stalls(&self) -> watch::Receiver<Vec<Stall>> {
        self.graph.storage.coordinator.follow_stalls()
    }

    async fn tell_stalls(&self, mut stalls: watch::Receiver<Vec<Stall>>) {
        let ending = self.graph.tasks.cancel_token().clone();
        loop {
            tokio::select! {
                biased;
                // Both are safe to drop: a token keeps its state, and what changed stays changed.
                () = ending.cancelled() => return,
                changed = stalls.changed() => if changed.is_err() { return },
            }
            let stalls = stalls.borrow_and_update().clone();
            self.tell(Notice::Storage(Storage::Stalled(stalls))).await;
        }
    }

    async fn tell_change(&self, feed: &mut Feed, change: IndexChange) {
        match change {
            IndexChange::Session { session, entry } => {
                match &entry {
                    Some(_) => feed.known.insert(session.clone()),
                    None => feed.known.remove(&session),
                };
                self.tell(Notice::IndexChanged { session, entry }).await;
            }
            IndexChange::Scanned { entries, done, total } => {
                feed.known.extend(entries.iter().map(|entry| entry.session_id.clone()));
                self.tell(Notice::Scanned { entries, done, total }).await;
            }
            IndexChange::ScanEnded { error } => self.tell_scanned(feed, error).await,
        }
    }

    async fn tell_scanned(&self, feed: &mut Feed, error: Option<String>) {
        if std::mem::replace(&mut feed.scanned, true) {
            return;
        }
        let took = self.graph.clock.elapsed().saturating_sub(feed.began);
        let took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        self.tell(Notice::ScanEnded { took_ms, error }).await;
        if self.run_mark.was_left_behind() {
            let interrupted = self.interrupted_sessions();
            self.tell(Notice::LastRunEndedBadly { interrupted }).await;
        }
    }

    /// Some changes were missed: tells how things stand now, what is gone too.
    async fn list_again(&self, feed: &mut Feed) {
        let index = self.graph.sessions.index();
        let (is_scanning, entries) = (index.is_scanning(), index.list());
        let now: HashSet<_> = entries.iter().map(|entry| entry.session_id.clone()).collect();
        let mut gone: Vec<_> = feed.known.difference(&now).cloned().collect();
        gone.sort_unstable();
        for session in gone {
            self.tell(Notice::IndexChanged { session, entry: None }).await;
        }
        feed.known = now;
        let (done, total) = (entries.len(), entries.len());
        self.tell(Notice::Scanned { entries, done, total }).await;
        if !is_scanning && !feed.scanned {
            self.tell_scanned(feed, None).await;
        }
    }

    async fn read_sessions(&self) {
        if self.graph.access == Access::Full
            && let Err(error) = self.run_mark.make(&self.graph.scratch).await
        {
            tracing::warn!(%error, "it cannot be marked that the program runs");
        }
        if let Err(error) = self.graph.sessions.scan().await {
            tracing::warn!(%error, "the sessions cannot be listed");
        }
        if self.graph.access == Access::Full
            && let Err(error) = self.graph.sessions.recover_queues().await
        {
            tracing::warn!(%error, "what was claimed for turns is not settled");
        }
    }

    /// Tells which model answers when nothing else is said, and looks for a local server where only
    /// the guide would; that takes up to [`LOCAL_WAIT`].
    pub async fn choose_model(&self) {
        let chosen = self.graph.default_model.get();
        self.tell_chosen(chosen).await;
        let models = &self.graph.models;
        match models.default_model(None) {
            Ok(Choice { why: Why::NothingElse, .. }) => {}
            Ok(_) | Err(_) => return,
        }
        let servers = models.local_servers(LOCAL_WAIT).await;
        let Some(local) = servers.iter().find_map(LocalServer::model) else { return };
        if let Ok(choice) = models.default_model(Some(local)) {
            let chosen = chosen_of(choice);
            self.graph.default_model.set(chosen.clone());
            self.tell_chosen(chosen).await;
        }
    }

    async fn tell_chosen(&self, chosen: Chosen) {
        let Chosen { model, why } = chosen;
        self.tell(Notice::ModelChosen { model, why }).await;
    }
}

fn told_of(trouble: Trouble) -> Notice {
    match trouble {
        Trouble::Advance { turn, error, .. } => refused(Refused::Advance(turn), &*error),
        Trouble::Rejected { session, rejected } => refused(Refused::Session(session), &rejected),
    }
}
