//! The one place through which everything live reaches whoever looks: what turns tell, and the
//! session that is open. It does one thing at a time, so that a turn that was fetched and the events
//! that follow it arrive in their order.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::sync::{broadcast, mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::app::notice::{Compaction, LoadedTurn, Notice, Refused, TurnView, UnsentMessage};
use crate::app::perform::refused;
use crate::base::id::{SessionId, TurnId};
use crate::base::tasks::Tasks;
use crate::domain::session::state::{SessionState, SessionTurn};
use crate::domain::turn::live::{LiveEvent, News, OpenCall};
use crate::domain::turn::state::TurnState;
use crate::runtime::hub::{Hub, Received, Subscription};
use crate::sessions::Sessions;
use crate::sessions::api::{FactsChanged, QueueChanged};
use crate::sessions::error::SessionError;
use crate::store::error::StoreError;
use crate::store::turn_repo::TurnRepo;

/// How many of the latest turns come at once: more than any screen shows.
const FIRST_TURNS: usize = 16;
/// How many older turns come at a time.
const TURNS_AT_A_TIME: usize = 128;

/// The follower.
pub(super) struct Follower {
    pub(super) sessions: Sessions,
    pub(super) turns: TurnRepo,
    pub(super) hub: Hub,
    pub(super) subscription: Subscription,
    /// Where something else waits to be delivered.
    pub(super) queue: broadcast::Receiver<QueueChanged>,
    /// Of which sessions something was recorded beside their turns.
    pub(super) facts: broadcast::Receiver<FactsChanged>,
    /// Which sessions are being summed up.
    pub(super) compactions: watch::Receiver<BTreeSet<SessionId>>,
    pub(super) notices: mpsc::Sender<Notice>,
    pub(super) tasks: Tasks,
    pub(super) open: Option<OpenSession>,
    /// The turns that were told to run.
    pub(super) running: BTreeSet<(SessionId, TurnId)>,
}

/// The session that is open.
pub(super) struct OpenSession {
    state: Arc<SessionState>,
    watched: Vec<TurnId>,
    /// Ends the loading of its older turns.
    loading: CancellationToken,
}

impl Drop for OpenSession {
    fn drop(&mut self) {
        self.loading.cancel();
    }
}

impl Follower {
    /// Follows until nobody asks or listens any more.
    pub(super) async fn run(mut self, mut asked: watch::Receiver<Option<SessionId>>) {
        loop {
            let listened = tokio::select! {
                biased;
                // All are safe to drop: what was not taken is still there.
                changed = asked.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    let session = asked.borrow_and_update().clone();
                    self.show(session).await
                }
                received = self.subscription.next() => self.pass_on(received).await,
                changed = self.queue.recv() => {
                    // One that lagged looks anew, whatever it missed.
                    self.tell_unsent(changed.ok().map(|changed| changed.session)).await
                }
                changed = self.facts.recv() => {
                    self.tell_facts(changed.ok().map(|changed| changed.session)).await
                }
                Ok(()) = self.compactions.changed() => {
                    let now = self.compactions.borrow_and_update().clone();
                    self.tell(Notice::Compaction(Compaction::UnderWay(now))).await
                }
            };
            if !listened {
                return;
            }
        }
    }

    async fn show(&mut self, session: Option<SessionId>) -> bool {
        if let Some(session) = session {
            return self.open(session).await;
        }
        self.close();
        true
    }

    async fn pass_on(&mut self, received: Received) -> bool {
        match received {
            Received::Event(event) => {
                self.note_running(&event);
                let joined = self.joined_by(&event);
                let listened = self.tell(Notice::Live(event)).await;
                match joined {
                    Some(joined) => self.tell(joined).await,
                    None => listened,
                }
            }
            // What was missed is told from how things stand now; the index tells of everything else.
            Received::Lagged => {
                let open = self.open.as_ref().map(|open| open.state.id.clone());
                self.tell_running().await && (open.is_none() || self.show(open).await)
            }
        }
    }

    fn note_running(&mut self, event: &LiveEvent) {
        let Some(session) = event.session.clone() else { return };
        match event.news {
            News::Started => drop(self.running.insert((session, event.turn.clone()))),
            News::Rested => drop(self.running.remove(&(session, event.turn.clone()))),
            News::Recorded { .. }
            | News::Delta(_)
            | News::ModelWaiting { .. }
            | News::ToolTail { .. } => {}
        }
    }

    /// Tells which turns run by now, and which do not any more.
    async fn tell_running(&mut self) -> bool {
        // A turn counts as live for a moment longer than it runs; only of one that runs the end will
        // still be told.
        let live = self.sessions.running().into_iter();
        let now: BTreeSet<_> = live.filter(|(_, turn)| self.hub.is_running(turn)).collect();
        let told = std::mem::replace(&mut self.running, now);
        let rested = told.difference(&self.running).map(|it| (it, News::Rested));
        let started = self.running.difference(&told).map(|it| (it, News::Started));
        for ((session, turn), news) in rested.chain(started) {
            let event = LiveEvent { session: Some(session.clone()), turn: turn.clone(), news };
            if !self.tell(Notice::Live(event)).await {
                return false;
            }
        }
        true
    }

    /// Watches a turn that is new to the open session.
    fn joined_by(&mut self, event: &LiveEvent) -> Option<Notice> {
        let News::Recorded { .. } = &event.news else { return None };
        let turn = &event.turn;
        let open = self.open.as_mut()?;
        let is_known = open.state.has_turn(turn) || open.watched.contains(turn);
        if is_known || event.session.as_ref() != Some(&open.state.id) {
            return None;
        }
        open.watched.push(turn.clone());
        let joined = self.subscription.watch(turn);
        Some(Notice::Joined { turn: turn.clone(), open_call: joined.open_call })
    }

    async fn open(&mut self, session: SessionId) -> bool {
        self.close();
        let state = match self.sessions.get_session(&session).await {
            Ok(state) => Arc::new(state),
            Err(error) => {
                let state = Err(self.missing(&session, &error).unwrap_or(error.to_string()));
                return self.tell(Notice::SessionOpened { session, state }).await;
            }
        };
        let opened = Notice::SessionOpened { session, state: Ok(Arc::clone(&state)) };
        if !self.tell(opened).await {
            return false;
        }
        let open = OpenSession { state, watched: Vec::new(), loading: CancellationToken::new() };
        self.open = Some(open);
        if !self.tell_unsent(None).await {
            return false;
        }
        let Some(open) = &mut self.open else { return true };
        let Some(last) = open.state.latest().cloned() else { return true };
        // From here on nothing of it is missed; what is told twice has an offset to know it by.
        let joined = self.subscription.watch(&last.id);
        open.watched.push(last.id.clone());
        self.show_turns(&last, joined.running, joined.open_call).await
    }

    /// Tells what waits in the session that is open, unless it is another one that changed.
    async fn tell_unsent(&self, changed: Option<SessionId>) -> bool {
        let Some(open) = &self.open else { return true };
        let session = open.state.id.clone();
        if changed.is_some_and(|changed| changed != session) {
            return true;
        }
        let notice = match self.sessions.waiting_messages(&session).await {
            Ok(waiting) => {
                let unsent = waiting.into_iter().map(|it| UnsentMessage {
                    id: it.id,
                    text: it.text,
                    held: it.held,
                });
                Notice::UnsentChanged { session, messages: unsent.collect() }
            }
            Err(error) => refused(Refused::Session(session), &error),
        };
        self.tell(notice).await
    }

    /// Tells what the session that is open amounts to, unless it is another one that changed. Turns
    /// are told of by their own events.
    async fn tell_facts(&self, changed: Option<SessionId>) -> bool {
        let Some(open) = &self.open else { return true };
        let session = open.state.id.clone();
        if changed.is_some_and(|changed| changed != session) {
            return true;
        }
        let notice = match self.sessions.get_session(&session).await {
            Ok(state) => Notice::SessionChanged { session, state: Arc::new(state) },
            Err(error) => refused(Refused::Session(session), &error),
        };
        self.tell(notice).await
    }

    /// Where a session is that is not in its place, as the list knows.
    fn missing(&self, session: &SessionId, error: &SessionError) -> Option<String> {
        match error {
            SessionError::Store(StoreError::NotFound(_)) => {
                self.sessions.index().get(session)?.error.clone()
            }
            _ => None,
        }
    }

    /// The latest turns at once; the others, which have ended and change no more, in the background.
    async fn show_turns(
        &self,
        last: &SessionTurn,
        running: bool,
        open_call: Option<OpenCall>,
    ) -> bool {
        let Some(OpenSession { state, loading, .. }) = &self.open else { return true };
        let session = state.id.clone();
        let left = state.turns.len().saturating_sub(FIRST_TURNS);
        let mut turns = vec![self.latest(last, running).await];
        let open_call = open_call.filter(|call| is_open(&turns, call));
        for turn in state.turns.iter().rev().skip(1).take(FIRST_TURNS - 1) {
            turns.push(self.ended(turn).await);
        }
        if !self.tell(Notice::TurnsLoaded { session: session.clone(), turns, left }).await {
            return false;
        }
        let joined = Notice::Joined { turn: last.id.clone(), open_call };
        if !self.tell(joined).await {
            return false;
        }
        if left > 0 {
            let (repo, notices) = (self.turns.clone(), self.notices.clone());
            let (state, loading) = (Arc::clone(state), loading.clone());
            // The thread of a blocking task: reading and parsing is all it does.
            self.tasks.spawn_blocking(move || {
                load_older(&repo, &state, left, &Telling { session, notices, loading });
            });
        }
        true
    }

    /// The latest turn, which may be under way.
    async fn latest(&self, turn: &SessionTurn, running: bool) -> LoadedTurn {
        let content = match self.sessions.get_turn(&turn.id).await {
            Ok(read) => Ok(TurnView {
                offset: read.events.len() as u64,
                state: Arc::new(read.state),
                interrupted: read.interrupted,
                running,
            }),
            Err(error) => Err(error.to_string()),
        };
        LoadedTurn { id: turn.id.clone(), session_seq: turn.session_seq, content }
    }

    /// A turn that has ended.
    async fn ended(&self, turn: &SessionTurn) -> LoadedTurn {
        let content = match self.turns.read(&turn.id).await {
            Ok(stored) => Ok(ended_view(stored.events.len(), stored.state.clone())),
            Err(error) => Err(error.to_string()),
        };
        LoadedTurn { id: turn.id.clone(), session_seq: turn.session_seq, content }
    }

    fn close(&mut self) {
        if let Some(open) = self.open.take() {
            for turn in &open.watched {
                self.subscription.unwatch(turn);
            }
        }
    }

    async fn tell(&self, notice: Notice) -> bool {
        self.notices.send(notice).await.is_ok()
    }
}

/// Where older turns go.
struct Telling {
    session: SessionId,
    notices: mpsc::Sender<Notice>,
    loading: CancellationToken,
}

/// Loads the turns before `first`, the latest of them first.
fn load_older(repo: &TurnRepo, state: &SessionState, first: usize, telling: &Telling) {
    let mut left = first;
    while left > 0 && !telling.loading.is_cancelled() {
        let from = left.saturating_sub(TURNS_AT_A_TIME);
        let turns = load(repo, state.turns.get(from..left).unwrap_or_default());
        left = from;
        let session = telling.session.clone();
        if telling.notices.blocking_send(Notice::TurnsLoaded { session, turns, left }).is_err() {
            return;
        }
    }
}

/// Reads turns that have ended, the latest first, on this thread and without keeping them.
fn load(repo: &TurnRepo, turns: &[SessionTurn]) -> Vec<LoadedTurn> {
    let loaded = turns.iter().rev().map(|turn| {
        let mut events = 0;
        let content = match repo.scan(&turn.id, |_| events += 1) {
            Ok(state) => Ok(ended_view(events, state)),
            Err(error) => Err(error.to_string()),
        };
        LoadedTurn { id: turn.id.clone(), session_seq: turn.session_seq, content }
    });
    loaded.collect()
}

fn ended_view(events: usize, state: TurnState) -> TurnView {
    let (offset, state) = (events as u64, Arc::new(state));
    TurnView { offset, state, interrupted: None, running: false }
}

/// Whether the turn that was loaded first has not settled the call since its answer was joined.
fn is_open(turns: &[LoadedTurn], call: &OpenCall) -> bool {
    let Some(Ok(view)) = turns.first().map(|turn| &turn.content) else { return true };
    let at = usize::try_from(call.model_call_index).ok();
    let known = at.and_then(|at| view.state.model_calls.get(at));
    known.is_none_or(|known| known.settlement.is_none())
}
