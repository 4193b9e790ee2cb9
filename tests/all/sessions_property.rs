//! The index after anything at all equals the index of a fresh scan, and whoever follows it arrives
//! there too.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::Config;
use tokio::sync::broadcast;
use turnstile::base::id::SessionId;
use turnstile::domain::question::Answer;
use turnstile::domain::session::entry::{SessionIndexEntry, WaitingKind};
use turnstile::domain::turn::event::Decision;
use turnstile::sessions::api::{NewSession, Sent};
use turnstile::sessions::index::IndexChange;
use turnstile::testing::sessions::SessionWorld;
use turnstile::testing::turns::{Script, answering, asking, questioning};

/// How many histories are played; each step of each is compared with a fresh scan.
const HISTORIES: u32 = 100;
const STEPS_MAX: usize = 20;

/// What happens to one of the sessions so far, by its number.
#[derive(Clone, Copy, Debug)]
enum Step {
    Create,
    Send(usize, Ending),
    Queue(usize, Ending),
    SendWaiting(usize),
    TakeBack(usize),
    Answer(usize),
    Stop(usize),
    Resume(usize),
    Close(usize),
    Rename(usize),
    Archive(usize, bool),
    Grant(usize),
    Fork(usize, usize),
    Compact(usize),
    Delete(usize),
    Restore(usize),
    Purge(usize),
    Collect,
    Nothing,
}

/// How the turn of a message ends up.
#[derive(Clone, Copy, Debug)]
enum Ending {
    Answered,
    AnsweredAtLength,
    Failed,
    Asking,
    Questioning,
    BrokenDown,
    BrokenDownAsking,
}

/// A step, and what goes on beside it.
#[derive(Clone, Copy, Debug)]
enum Beside {
    Nothing,
    /// A scan of the filled index.
    Scan,
    /// The program was started anew, and scans.
    Start,
}

fn step() -> impl Strategy<Value = Step> {
    let ending = prop_oneof![
        Just(Ending::Answered),
        Just(Ending::AnsweredAtLength),
        Just(Ending::Failed),
        Just(Ending::Asking),
        Just(Ending::Questioning),
        Just(Ending::BrokenDown),
        Just(Ending::BrokenDownAsking),
    ];
    let which = || 0..4_usize;
    prop_oneof![
        2 => Just(Step::Create),
        4 => (which(), ending.clone()).prop_map(|(which, ending)| Step::Send(which, ending)),
        4 => (which(), ending).prop_map(|(which, ending)| Step::Queue(which, ending)),
        2 => which().prop_map(Step::SendWaiting),
        1 => which().prop_map(Step::TakeBack),
        3 => which().prop_map(Step::Answer),
        2 => which().prop_map(Step::Stop),
        1 => which().prop_map(Step::Resume),
        1 => which().prop_map(Step::Close),
        2 => which().prop_map(Step::Rename),
        1 => (which(), any::<bool>()).prop_map(|(which, away)| Step::Archive(which, away)),
        1 => which().prop_map(Step::Grant),
        2 => (which(), 0..4_usize).prop_map(|(which, turns)| Step::Fork(which, turns)),
        1 => which().prop_map(Step::Compact),
        2 => which().prop_map(Step::Delete),
        2 => which().prop_map(Step::Restore),
        1 => which().prop_map(Step::Purge),
        1 => Just(Step::Collect),
        1 => Just(Step::Nothing),
    ]
}

fn beside() -> impl Strategy<Value = Beside> {
    prop_oneof![
        3 => Just(Beside::Nothing),
        1 => Just(Beside::Scan),
        1 => Just(Beside::Start),
    ]
}

fn script(ending: Ending) -> Script {
    match ending {
        Ending::Answered => answering("Done."),
        // Too long to be kept by a compaction beside another one.
        Ending::AnsweredAtLength => answering(&"word ".repeat(8 * 1024)),
        Ending::Failed => Script::new().fail(),
        Ending::Asking => asking(),
        Ending::Questioning => questioning(),
        Ending::BrokenDown => Script::new().calls("c1:read-file").run("c1").break_down(),
        Ending::BrokenDownAsking => {
            Script::new().calls("c1:write-file").ask("c1:write-file").break_down()
        }
    }
}

/// A history under way.
struct History {
    world: SessionWorld,
    sessions: Vec<SessionId>,
    changes: broadcast::Receiver<IndexChange>,
    followed: BTreeMap<SessionId, Arc<SessionIndexEntry>>,
    /// What was put into the sessions to wait or to be sent, and is not taken back.
    put: BTreeMap<SessionId, Vec<String>>,
    /// How many messages were put, ever.
    messages: usize,
}

impl History {
    fn of(world: SessionWorld, sessions: Vec<SessionId>) -> Self {
        let changes = world.sessions.index().follow();
        let (followed, put) = (BTreeMap::new(), BTreeMap::new());
        Self { world, sessions, changes, followed, put, messages: 0 }
    }

    async fn play(steps: Vec<(Step, Beside)>) {
        let mut history = Self::of(SessionWorld::new(), Vec::new());
        for (step, beside) in steps {
            if let Beside::Start = beside {
                let next = Self::of(history.world.restarted(), history.sessions);
                history = Self { put: history.put, messages: history.messages, ..next };
            }
            match beside {
                Beside::Nothing => history.take(step).await,
                Beside::Scan | Beside::Start => {
                    let sessions = history.world.sessions.clone();
                    let (scanned, ()) = tokio::join!(sessions.scan(), history.take(step));
                    scanned.expect("the sessions can be listed");
                }
            }
            history.check().await;
        }
    }

    /// Does it, or is refused.
    async fn take(&mut self, step: Step) {
        let sessions = self.world.sessions.clone();
        match step {
            Step::Create => {
                let new = NewSession::default();
                self.sessions.push(sessions.create_session(new).await.expect("created"));
            }
            Step::Send(which, ending) => {
                let Some(session) = self.session(which) else { return };
                self.world.turns.then(script(ending));
                let sent = self.world.try_send(&session, "Look at the watcher.").await;
                if sent.is_err() {
                    self.world.turns.forget_scripts();
                }
            }
            Step::Queue(which, ending) => self.queue(which, ending).await,
            Step::SendWaiting(which) => {
                let Some(session) = self.session(which) else { return };
                drop(sessions.send_waiting(&session).await);
            }
            Step::TakeBack(which) => self.take_back(which).await,
            Step::Answer(which) => self.answer(which).await,
            Step::Stop(which) => {
                let Some(entry) = self.entry(which).await else { return };
                if let Some(turn) = &entry.latest_turn_id {
                    drop(sessions.stop_turn(turn, None).await);
                }
            }
            Step::Resume(which) => {
                let Some(session) = self.session(which) else { return };
                self.world.turns.then(Script::new().deny_unresolved().boundary().answer("Done."));
                if sessions.resume_turn(&session).await.is_err() {
                    self.world.turns.forget_scripts();
                }
            }
            Step::Close(which) => {
                let Some(session) = self.session(which) else { return };
                drop(sessions.close_interrupted(&session).await);
            }
            Step::Rename(which) => {
                let Some(session) = self.session(which) else { return };
                self.world.clock.pass(std::time::Duration::from_millis(3));
                drop(sessions.set_title(&session, "Renamed").await);
            }
            Step::Archive(which, away) => {
                let Some(session) = self.session(which) else { return };
                drop(sessions.set_archived(&session, away).await);
            }
            Step::Grant(which) => {
                let Some(session) = self.session(which) else { return };
                drop(sessions.add_grant(&session, "shell", None).await);
            }
            Step::Fork(which, turns) => self.fork(which, turns).await,
            Step::Compact(which) => self.compact(which).await,
            Step::Delete(which) => {
                let Some(session) = self.session(which) else { return };
                drop(sessions.delete_session(&session).await);
            }
            Step::Restore(which) => {
                let Some(session) = self.session(which) else { return };
                drop(sessions.restore_session(&session).await);
            }
            Step::Purge(which) => {
                let Some(session) = self.session(which) else { return };
                drop(sessions.purge_session(&session).await);
            }
            Step::Collect => self.collect().await,
            Step::Nothing => {}
        }
    }

    async fn queue(&mut self, which: usize, ending: Ending) {
        let Some(session) = self.session(which) else { return };
        self.messages += 1;
        let text = format!("message {}", self.messages);
        self.world.turns.then(script(ending));
        let sent = self.world.try_queue(&session, &text).await;
        if !matches!(sent, Ok(Sent::Turn(_))) {
            self.world.turns.forget_scripts();
        }
        if sent.is_ok() {
            self.put.entry(session).or_default().push(text);
        }
    }

    async fn take_back(&mut self, which: usize) {
        let Some(session) = self.session(which) else { return };
        let sessions = &self.world.sessions;
        let waiting = sessions.waiting_messages(&session).await.expect("readable");
        let Some(last) = waiting.last() else { return };
        let taken = sessions.take_back(&session, &last.id).await.expect("it waits");
        self.put.entry(session).or_default().retain(|text| *text != taken.text);
    }

    /// Every message that was put is in one place, and in the order in which it was put.
    async fn check_messages(&self) {
        for entry in self.world.sessions.list_sessions() {
            let session = &entry.session_id;
            let waiting = self.world.sessions.waiting_messages(session).await.expect("readable");
            let said = self.world.said(session).await;
            let said = said.iter().flat_map(|turn| turn.split(" + ")).map(str::to_owned);
            let found = said.chain(waiting.into_iter().map(|message| message.text));
            let found: Vec<_> = found.filter(|text| text.starts_with("message")).collect();
            assert_eq!(found, self.put.get(session).cloned().unwrap_or_default());
        }
    }

    /// Forks a session after so many turns, if it has them.
    async fn fork(&mut self, which: usize, turns: usize) {
        let Some(session) = self.session(which) else { return };
        let Ok(state) = self.world.sessions.get_session(&session).await else { return };
        let at = turns.checked_sub(1).and_then(|last| state.turns.get(last));
        let forked = self.world.sessions.fork_session(&session, at.map(|turn| &turn.id)).await;
        if let Ok(fork) = &forked {
            // Said in it as well.
            let said = self.world.said(fork).await;
            let said = said.iter().flat_map(|turn| turn.split(" + ")).map(str::to_owned);
            let inherited = said.filter(|text| text.starts_with("message")).collect();
            self.put.insert(fork.clone(), inherited);
        }
        self.sessions.extend(forked);
    }

    async fn compact(&self, which: usize) {
        let Some(session) = self.session(which) else { return };
        self.world.turns.then(answering("A summary."));
        drop(self.world.sessions.compact(&session).await);
        self.world.turns.forget_scripts();
    }

    /// Destroys all that was deleted, and what nothing reaches then.
    async fn collect(&self) {
        let sessions = &self.world.sessions;
        let found = sessions.find_garbage(|_| true).await.expect("listed");
        sessions.destroy_garbage(&found).await.expect("destroyed");
    }

    async fn answer(&self, which: usize) {
        let Some(entry) = self.entry(which).await else { return };
        let Some(waiting) = entry.waiting.first() else { return };
        let (sessions, turn, call) = (&self.world.sessions, &waiting.turn, &waiting.call);
        self.world.turns.then(Script::new().deny_unresolved().boundary().answer("Done."));
        let answered = match waiting.kind {
            WaitingKind::Permission => {
                sessions.respond_to_permission(turn, call, Decision::Deny, None).await
            }
            WaitingKind::Question => {
                sessions.answer_questions(turn, call, &Answer::Dismissed).await
            }
        };
        if answered.is_err() {
            self.world.turns.forget_scripts();
        }
    }

    fn session(&self, which: usize) -> Option<SessionId> {
        self.sessions.get(which % self.sessions.len().max(1)).cloned()
    }

    /// What the logs say of a session, whether or not it is in the index by now.
    async fn entry(&self, which: usize) -> Option<Arc<SessionIndexEntry>> {
        let session = self.session(which)?;
        let scanned = self.world.scanned().await;
        scanned.into_iter().find(|entry| entry.session_id == session)
    }

    async fn check(&mut self) {
        while !self.world.sessions.running().is_empty() {
            tokio::task::yield_now().await;
        }
        self.check_messages().await;
        let list = self.world.sessions.list_sessions();
        assert_eq!(list, self.world.scanned().await, "the index, and a fresh scan");
        while let Ok(change) = self.changes.try_recv() {
            match change {
                IndexChange::Session { session, entry: Some(entry) } => {
                    self.followed.insert(session, entry);
                }
                IndexChange::Session { session, entry: None } => {
                    self.followed.remove(&session);
                }
                IndexChange::Scanned { entries, .. } => {
                    let entries = entries.into_iter();
                    self.followed.extend(entries.map(|it| (it.session_id.clone(), it)));
                }
                IndexChange::ScanEnded { .. } => {}
            }
        }
        let followed: Vec<_> = self.followed.values().cloned().collect();
        assert_eq!(followed, list, "a follower's index, and the index");
    }
}

proptest! {
    #![proptest_config(Config { cases: HISTORIES, ..Config::default() })]

    #[test]
    fn the_index_is_what_a_fresh_scan_finds(steps in vec((step(), beside()), 1..STEPS_MAX)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.expect("a runtime").block_on(History::play(steps));
    }
}
