//! What must hold after every step of a simulation, and what must hold once nothing moves.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::id::TurnId;
use crate::domain::turn::event::{ResultSource, TurnFact};
use crate::store::error::StoreError;
use crate::store::log::{LogId, LogKind, Revision};
use crate::testing::sim::life::Life;
use crate::testing::sim::{Fate, Interrupted, Sim};

/// What was seen of the logs so far.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// How each log was when it was looked at last.
    revisions: BTreeMap<LogId, Revision>,
    /// How long the logs of turns are that have ended.
    ended: BTreeMap<TurnId, usize>,
}

impl Sim {
    /// When a process starts: what it finds begins with all that was acknowledged.
    pub(super) async fn check_found(&mut self, life: &mut Life) {
        // A kill leaves what no revision tells.
        self.seen.revisions.clear();
        self.check_always(life).await;
        for log in self.seen.revisions.keys() {
            self.storage.adopt(log, life.plain.scan(log).expect("it was read just now").records);
        }
    }

    /// After every step: each log can be read and begins with all that was acknowledged of it, what
    /// has ended stays as it is, and no tool runs twice for one call.
    pub(super) async fn check_always(&mut self, life: &mut Life) {
        let acknowledged = self.storage.acknowledged();
        for kind in [LogKind::Session, LogKind::Turn] {
            let logs = life.plain.list(kind).await.expect("logs can be listed");
            for log in logs {
                let revision = life.plain.revision(&log).await.expect("it is there");
                if self.seen.revisions.get(&log) == Some(&revision) {
                    continue;
                }
                let records = life.plain.scan(&log).expect("it can be read").records;
                let known = acknowledged.get(&log).map_or(&[][..], Vec::as_slice);
                assert!(records.starts_with(known), "{log} has lost what was acknowledged");
                self.check_legal(life, &log);
                self.seen.revisions.insert(log, revision);
            }
        }
        let runs = self.runs.all();
        let calls: BTreeSet<_> = runs.iter().collect();
        assert_eq!(calls.len(), runs.len(), "a tool ran twice for one call: {runs:?}");
        if let Some(trouble) = life.trouble() {
            panic!("trouble: {trouble}");
        }
    }

    fn check_legal(&mut self, life: &Life, log: &LogId) {
        match log.kind() {
            LogKind::Session => {
                let read = life.session_logs.scan(&log.id().into());
                read.unwrap_or_else(|error| panic!("{log}: {error}"));
            }
            LogKind::Turn => {
                let turn = TurnId::from(log.id());
                let read = life.turn_logs.scan(&turn);
                let read = read.unwrap_or_else(|error| panic!("{log}: {error}"));
                if let Some(ended) = self.seen.ended.get(&turn) {
                    assert_eq!(read.events.len(), *ended, "{turn} had ended");
                } else if read.state.terminal.is_some() {
                    self.seen.ended.insert(turn, read.events.len());
                }
            }
        }
    }

    /// Once nothing moves: the index is what a fresh scan finds and what whoever followed it has,
    /// every log that was acknowledged is there or can be restored, and every message is where
    /// whoever sent it was told.
    pub(super) async fn check_quiet(&mut self, life: &mut Life) {
        let list = life.sessions.list_sessions();
        assert_eq!(list, life.scanned().await, "the index, and a fresh scan");
        assert_eq!(life.followed(), list, "the index, and whoever followed it");
        let removed = life.plain.removed().await.expect("removals can be listed");
        for log in self.storage.acknowledged().keys() {
            let is_there = life.plain.revision(log).await.is_ok();
            let can_be_restored = removed.iter().any(|it| it.log == *log);
            assert!(is_there || can_be_restored, "{log} is gone");
        }
        self.check_messages(life);
        self.count_turns(life).await;
    }

    /// Each message is in exactly one turn of its session, or in none, as whoever sent it was told;
    /// who was told nothing may find it once or not at all.
    fn check_messages(&self, life: &Life) {
        let messages = self.shared.lock().messages.clone();
        for message in &messages {
            let session = match life.session_logs.scan(&message.session) {
                Ok(session) => session.state,
                // What is deleted cannot be looked at.
                Err(StoreError::NotFound(_)) => continue,
                Err(error) => panic!("{error}"),
            };
            let turns = session.turns.iter().map(|turn| &turn.id);
            let carries = |turn: &&TurnId| {
                let turn = life.turn_logs.scan(turn).expect("what is referred to can be read");
                turn.state.definition.input.plain_text() == message.text
            };
            let found: Vec<_> = turns.filter(carries).collect();
            let is_right = match &message.fate {
                Fate::Turn(turn) => found == [turn],
                Fate::Refused => found.is_empty(),
                Fate::Unknown => found.len() <= 1,
            };
            assert!(is_right, "{message:?} is in {found:?}");
        }
    }

    /// How the turns stand in the end, and what had happened to them on the way.
    async fn count_turns(&self, life: &Life) {
        let turns = life.turn_logs.ids().await.expect("turns can be listed");
        let (mut counts, mut interrupted) = (BTreeMap::new(), Interrupted::default());
        for turn in &turns {
            let turn = life.turn_logs.scan(turn).expect("it can be read");
            *counts.entry(turn.state.status().to_string()).or_default() += 1;
            for event in &turn.events {
                match &event.fact {
                    TurnFact::ModelCallFailed(failed) => {
                        interrupted.calls += usize::from(failed.error.starts_with("interrupted"));
                    }
                    TurnFact::ToolResult(result) if result.source == ResultSource::Runtime => {
                        let text = result.result.output.as_text().unwrap_or_default();
                        interrupted.tools += usize::from(text.starts_with("Interrupted"));
                    }
                    _ => {}
                }
            }
        }
        let mut left = self.shared.lock();
        (left.played.turns, left.played.interrupted) = (counts, interrupted);
    }
}
