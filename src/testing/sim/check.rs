//! What must hold after every step of a simulation, and what must hold once nothing moves.

mod count;
mod grants;
mod lineage;
mod messages;
mod reach;

use std::collections::{BTreeMap, BTreeSet};

use crate::base::id::{SessionId, TurnId};
use crate::domain::session::state::SessionState;
use crate::domain::turn::state::TurnState;
use crate::sessions::waiting::Undelivered;
use crate::store::log::{LogId, LogKind, Removed, Revision};
use crate::store::session_repo::SessionKind;
use crate::store::turn_repo::TurnKind;
use crate::testing::sim::Sim;
use crate::testing::sim::check::lineage::check_chains;
use crate::testing::sim::life::Life;
use crate::testing::store::Kept;

/// What was seen of the logs so far.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// How each log was when it was looked at last.
    revisions: BTreeMap<LogId, Revision>,
    /// How long the logs of turns are that have ended.
    ended: BTreeMap<TurnId, usize>,
    /// The turns that each session refers to.
    turns: BTreeMap<SessionId, Vec<TurnId>>,
    /// The turns that some fork has inherited.
    shared: BTreeSet<TurnId>,
}

/// All that there is once nothing moves.
struct Found {
    sessions: BTreeMap<SessionId, Kept<SessionKind>>,
    turns: BTreeMap<TurnId, Kept<TurnKind>>,
    removed: Vec<Removed>,
    undelivered: BTreeMap<SessionId, Undelivered>,
}

impl Found {
    fn session(&self, session: &SessionId) -> &SessionState {
        let found = self.sessions.get(session);
        &found.unwrap_or_else(|| panic!("{session} is gone")).state
    }

    fn turn(&self, turn: &TurnId) -> &TurnState {
        &self.turns.get(turn).unwrap_or_else(|| panic!("{turn} is gone")).state
    }

    fn undelivered_in(&self, session: &SessionId) -> &Undelivered {
        self.undelivered.get(session).unwrap_or_else(|| panic!("{session} is gone"))
    }

    /// Whether a log is there, or can be restored.
    fn has(&self, log: &LogId) -> bool {
        let is_there = match log.kind() {
            LogKind::Session => self.sessions.contains_key(log.id()),
            LogKind::Turn => self.turns.contains_key(log.id()),
        };
        is_there || self.removed.iter().any(|removed| removed.log == *log)
    }

    async fn of(life: &Life) -> Self {
        let sessions = life.session_logs.ids().await.expect("sessions can be listed");
        let turns = life.turn_logs.ids().await.expect("turns can be listed");
        let mut undelivered = BTreeMap::new();
        for session in &sessions {
            let kept = life.waiting.look(session).await.expect("what waits can be read");
            undelivered.insert(session.clone(), kept);
        }
        let scan_session = |id: SessionId| {
            let kept = Kept::read(&life.session_logs, &id);
            (id, kept.expect("it can be read"))
        };
        let scan_turn = |id: TurnId| {
            let kept = Kept::read(&life.turn_logs, &id);
            (id, kept.expect("it can be read"))
        };
        Self {
            sessions: sessions.into_iter().map(scan_session).collect(),
            turns: turns.into_iter().map(scan_turn).collect(),
            removed: life.plain.removed().await.expect("removals can be listed"),
            undelivered,
        }
    }
}

impl Sim {
    /// When a process starts: what it finds begins with all that was acknowledged.
    pub(super) async fn check_found(&mut self, life: &mut Life) {
        // A kill leaves what no revision tells.
        self.seen.revisions.clear();
        self.check_always(life).await;
        let there: BTreeSet<_> =
            life.session_logs.ids().await.expect("listed").into_iter().collect();
        {
            let left = &mut *self.shared.lock();
            let gone = left.sessions.iter().filter(|session| !there.contains(*session));
            left.absences.begin(gone.cloned());
        }
        for log in self.seen.revisions.keys() {
            let scanned = life.plain.scan(log).expect("it was read just now");
            let records = scanned.records().expect("records");
            if log.kind() == LogKind::Turn {
                life.known.insert(TurnId::from(log.id()), records.len());
            }
            self.storage.adopt(log, records);
        }
    }

    /// After every step: each log can be read and begins with all that was acknowledged of it and told
    /// on the hub, what has ended stays as it is, what a session refers to is there, and no tool runs
    /// twice for one call.
    pub(super) async fn check_always(&mut self, life: &mut Life) {
        let acknowledged = self.storage.acknowledged();
        let mut there = BTreeSet::new();
        for kind in [LogKind::Session, LogKind::Turn] {
            let logs = life.plain.list(kind).await.expect("logs can be listed");
            there.extend(logs.iter().cloned());
            for log in logs {
                let revision = life.plain.revision(&log).await.expect("it is there");
                if self.seen.revisions.get(&log) == Some(&revision) {
                    continue;
                }
                let records =
                    life.plain.scan(&log).expect("it can be read").records().expect("records");
                let known = acknowledged.get(&log).map_or(&[][..], Vec::as_slice);
                assert!(records.starts_with(known), "{log} has lost what was acknowledged");
                self.check_legal(life, &log);
                self.seen.revisions.insert(log, revision);
            }
        }
        self.check_referred(&there);
        let runs = self.runs.all();
        let calls: BTreeSet<_> = runs.iter().collect();
        assert_eq!(calls.len(), runs.len(), "a tool ran twice for one call: {runs:?}");
        if let Some(trouble) = life.trouble() {
            panic!("trouble: {trouble}");
        }
    }

    /// What a session refers to is there, whatever else is destroyed.
    fn check_referred(&self, there: &BTreeSet<LogId>) {
        for (session, turns) in &self.seen.turns {
            let is_there = |log: Result<LogId, _>| there.contains(&log.expect("a log had it"));
            if !is_there(LogId::session(session)) {
                continue;
            }
            for turn in turns {
                assert!(is_there(LogId::turn(turn)), "{turn} of {session} is gone");
            }
        }
    }

    fn check_legal(&mut self, life: &mut Life, log: &LogId) {
        match log.kind() {
            LogKind::Session => {
                let session = SessionId::from(log.id());
                let read = life.session_logs.scan(&session, drop);
                let state = read.unwrap_or_else(|error| panic!("{log}: {error}"));
                let turns: Vec<_> = state.turns.into_iter().map(|turn| turn.id).collect();
                let inherited = usize::try_from(state.header.seed_length.unwrap_or(0));
                let inherited = turns.iter().take(inherited.expect("a few"));
                self.seen.shared.extend(inherited.cloned());
                self.seen.turns.insert(session, turns);
            }
            LogKind::Turn => {
                let turn = TurnId::from(log.id());
                let read = Kept::read(&life.turn_logs, &turn);
                let Kept { events, state } = read.unwrap_or_else(|error| panic!("{log}: {error}"));
                let known = life.known(&turn);
                life.told().check_begun(&turn, known, &events);
                let events = events.len();
                if let Some(ended) = self.seen.ended.get(&turn) {
                    assert_eq!(events, *ended, "{turn} had ended");
                } else if state.terminal.is_some() {
                    self.seen.ended.insert(turn, events);
                }
            }
        }
    }

    /// Once nothing moves: the index is what a fresh scan finds and what whoever followed it has, what
    /// was recorded of the turns is what was told of them, nothing is gone that somebody may need,
    /// every message is where whoever sent it was told, and every session is a chain of turns.
    pub(super) async fn check_quiet(&mut self, life: &mut Life) {
        let _open = self.odds.gates.hold_open();
        let list = life.sessions.list_sessions();
        assert_eq!(list, life.scanned().await, "the index, and a fresh scan");
        assert_eq!(life.followed(), list, "the index, and whoever followed it");
        let found = Found::of(life).await;
        check_told(life, &found);
        self.check_gone(&found);
        self.check_garbage(life, &found).await;
        self.check_messages(&found);
        self.check_waiting(life, &found).await;
        self.check_grants(&found);
        check_chains(&found);
        self.count(&found);
    }
}

/// Of what was destroyed nothing is left that could be compared.
fn check_told(life: &mut Life, found: &Found) {
    for (turn, kept) in &found.turns {
        let known = life.known(turn);
        life.told().check_whole(turn, known, &kept.events);
    }
}
