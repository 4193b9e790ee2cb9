//! One process of a simulation: everything below the screen over the parts that chance drives.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::tz::TimeZone;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::TryRecvError;
use tokio::task::JoinHandle;

use crate::base::id::{EventIds, Ids, SessionId, TurnId};
use crate::base::tasks::{Ended, Tasks};
use crate::domain::session::entry::SessionIndexEntry;
use crate::runtime::context::ContextResolver;
use crate::runtime::hub::{Hub, Interest, Subscription};
use crate::runtime::{Options, Parts, TurnRuntime};
use crate::sessions::index::IndexChange;
use crate::sessions::trouble::Trouble;
use crate::sessions::waiting::Waiting;
use crate::sessions::{self, Sessions, SessionsParts};
use crate::store::cache::CacheBounds;
use crate::store::repo::Repo;
use crate::store::seam::LogStore;
use crate::store::session_repo::SessionRepo;
use crate::store::turn_repo::TurnRepo;
use crate::testing::agents::ScriptedAgents;
use crate::testing::checker::ScriptedChecker;
use crate::testing::clock::HandClock;
use crate::testing::sim::Sim;
use crate::testing::sim::gated::GatedAgents;
use crate::testing::sim::parts::{SimChecker, SimClassifier, SimModel, SimTool};
use crate::testing::sim::storage::Opened;
use crate::testing::told::Told;
use crate::testing::tools::FakeTool;
use crate::tools::output::OUTPUT_BYTES;
use crate::tools::registry::Registry;

/// The processes have ids of their own, from here on.
const FIRST_PROCESS: u32 = 100;
/// Another process, which only looks.
const ONLOOKER: u32 = 99;

/// A process.
pub(super) struct Life {
    pub(super) sessions: Sessions,
    pub(super) tasks: Tasks,
    /// The logs without gates.
    pub(super) plain: Arc<dyn LogStore>,
    pub(super) session_logs: SessionRepo,
    pub(super) turn_logs: TurnRepo,
    /// The operations that are under way.
    pub(super) operations: Vec<JoinHandle<Ended<()>>>,
    changes: broadcast::Receiver<IndexChange>,
    followed: BTreeMap<SessionId, Arc<SessionIndexEntry>>,
    trouble: broadcast::Receiver<Trouble>,
    hub: Subscription,
    told: Told,
    /// How many events the turns had that were there when it began.
    pub(super) known: BTreeMap<TurnId, usize>,
    clock: Arc<HandClock>,
    /// The messages that wait, without gates.
    pub(super) waiting: Arc<dyn Waiting>,
    event_ids: Arc<EventIds>,
}

impl Life {
    pub(super) fn begin(sim: &Sim) -> Self {
        let tasks = Tasks::inline();
        let Opened { gated, plain, live_text, waiting, plain_waiting, event_ids } =
            sim.storage.open(&tasks);
        let clock = Arc::clone(&sim.clock);
        let ids =
            Arc::new(Ids::new(Arc::<HandClock>::clone(&clock), FIRST_PROCESS + sim.processes));
        let bounds = CacheBounds::default();
        let turns: TurnRepo = Repo::new(Arc::clone(&gated), tasks.clone(), bounds);
        let odds = &sim.odds;
        let hub = Hub::new();
        let subscription = hub.subscribe(Interest::Everything);
        let tools = Registry::new(vec![
            Arc::new(SimTool::new("read-file", odds, &sim.runs)),
            Arc::new(SimTool::new("write-file", odds, &sim.runs)),
            Arc::new(FakeTool::outside("ask_human").for_humans()),
            Arc::new(FakeTool::outside("deploy")),
        ]);
        let tools = tools.expect("they have names of their own");
        let runtime = TurnRuntime::new(Parts {
            turns: turns.clone(),
            live_text,
            clock: Arc::<HandClock>::clone(&clock),
            ids: Arc::<Ids>::clone(&ids),
            agents: Arc::new(GatedAgents {
                inner: ScriptedAgents::new(tools.descriptors()),
                gates: odds.gates.clone(),
            }),
            models: SimModel::new(odds.clone()),
            tools,
            checker: Arc::new(SimChecker { odds: odds.clone(), rules: ScriptedChecker::default() }),
            classifier: Some(Arc::new(SimClassifier { odds: odds.clone() })),
            hub,
            tasks: tasks.clone(),
            context: ContextResolver::default(),
            options: Options {
                max_model_calls: 4,
                output_dir: std::env::temp_dir(),
                output_bytes_max: OUTPUT_BYTES,
            },
        });
        let sessions = Sessions::new(SessionsParts {
            repo: Repo::new(gated, tasks.clone(), bounds),
            turn_logs: turns,
            turns: Arc::new(runtime),
            clock: Arc::<HandClock>::clone(&clock),
            ids,
            waiting,
            event_ids: Arc::clone(&event_ids),
            zone: TimeZone::UTC,
            tasks: tasks.clone(),
            current_folder: std::env::temp_dir(),
            options: sim.options,
        });
        Self {
            changes: sessions.index().follow(),
            trouble: sessions.follow_trouble(),
            hub: subscription,
            told: Told::default(),
            known: BTreeMap::new(),
            sessions,
            session_logs: Repo::new(Arc::clone(&plain), tasks.clone(), bounds),
            turn_logs: Repo::new(Arc::clone(&plain), tasks.clone(), bounds),
            tasks,
            plain,
            operations: Vec::new(),
            followed: BTreeMap::new(),
            clock,
            waiting: plain_waiting,
            event_ids,
        }
    }

    /// Whether every operation has been carried out and nothing runs.
    pub(super) async fn is_at_rest(&mut self) -> bool {
        let (ended, under_way): (Vec<_>, _) =
            std::mem::take(&mut self.operations).into_iter().partition(JoinHandle::is_finished);
        self.operations = under_way;
        for operation in ended {
            if let Ended::Panicked(why) = operation.await.expect("nobody ends operations") {
                panic!("{why}");
            }
        }
        self.operations.is_empty() && self.sessions.running().is_empty()
    }

    /// What went wrong that nobody waited for.
    pub(super) fn trouble(&mut self) -> Option<String> {
        match self.trouble.try_recv() {
            Ok(Trouble::Advance { turn, error, .. }) => Some(format!("{turn}: {error}")),
            Ok(Trouble::Rejected { session, rejected }) => Some(format!("{session}: {rejected}")),
            Err(TryRecvError::Lagged(missed)) => Some(format!("{missed} that were not looked at")),
            Err(TryRecvError::Empty | TryRecvError::Closed) => None,
        }
    }

    /// How many events a turn had when this began.
    pub(super) fn known(&self, turn: &TurnId) -> usize {
        self.known.get(turn).copied().unwrap_or(0)
    }

    /// What was told of the turns from the start.
    pub(super) fn told(&mut self) -> &Told {
        self.told.hear(&self.hub).expect("it is heard after every step");
        &self.told
    }

    /// The index of whoever followed it from the start.
    pub(super) fn followed(&mut self) -> Vec<Arc<SessionIndexEntry>> {
        loop {
            match self.changes.try_recv() {
                Ok(IndexChange::Session { session, entry: Some(entry) }) => {
                    self.followed.insert(session, entry);
                }
                Ok(IndexChange::Session { session, entry: None }) => {
                    self.followed.remove(&session);
                }
                Ok(IndexChange::Scanned { entries, .. }) => {
                    let entries = entries.into_iter();
                    self.followed.extend(entries.map(|it| (it.session_id.clone(), it)));
                }
                Ok(IndexChange::ScanEnded { error }) => assert_eq!(error, None),
                Err(TryRecvError::Lagged(_)) => {
                    let list = self.sessions.list_sessions().into_iter();
                    self.followed = list.map(|it| (it.session_id.clone(), it)).collect();
                }
                Err(TryRecvError::Empty | TryRecvError::Closed) => break,
            }
        }
        self.followed.values().cloned().collect()
    }

    /// What a process finds that starts now and only looks.
    pub(super) async fn scanned(&self) -> Vec<Arc<SessionIndexEntry>> {
        let clock = Arc::<HandClock>::clone(&self.clock);
        let ids = Arc::new(Ids::new(Arc::<HandClock>::clone(&clock), ONLOOKER));
        let onlooker = Sessions::new(SessionsParts {
            repo: self.session_logs.clone(),
            turn_logs: self.turn_logs.clone(),
            turns: Arc::new(crate::testing::turns::ScriptedTurns::new(
                self.turn_logs.clone(),
                Arc::<HandClock>::clone(&clock),
                Arc::<Ids>::clone(&ids),
            )),
            clock,
            ids,
            waiting: Arc::clone(&self.waiting),
            event_ids: Arc::clone(&self.event_ids),
            zone: TimeZone::UTC,
            tasks: self.tasks.clone(),
            current_folder: std::env::temp_dir(),
            options: sessions::Options::default(),
        });
        onlooker.scan().await.expect("the sessions can be listed");
        onlooker.list_sessions()
    }
}
