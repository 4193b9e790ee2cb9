//! The session layer, the runtime and the store as one seed plays them: on one thread, with every
//! place at which something can wait held up and opened in a drawn order, and with processes that
//! are killed wherever they happen to be. The same seed plays the same, event by event.
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a simulation stops where the program breaks a promise"
)]

mod absence;
mod check;
mod gated;
mod gates;
mod left;
mod life;
mod operations;
mod parts;
mod storage;

use std::collections::{BTreeMap, VecDeque};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Builder;

use crate::sessions::Options;
use crate::store::log::{LogId, Record};
use crate::testing::clock::HandClock;
use crate::testing::seed::Seed;
use crate::testing::sim::check::Seen;
use crate::testing::sim::gates::Gates;
use crate::testing::sim::left::Shared;
use crate::testing::sim::life::Life;
use crate::testing::sim::operations::{OPERATIONS, Operation};
use crate::testing::sim::parts::{Odds, Runs};
use crate::testing::sim::storage::Storage;

/// How many steps a simulation takes: operations, and gates that are opened.
const STEPS: usize = 600;
/// At every step one process of so many is killed, whatever waits.
const KILLED_ONE_OF: usize = 200;
/// How many of the last steps are told when one goes wrong.
const TOLD_MAX: usize = 40;
/// More gates than any drain opens. After that something waits for itself.
const DRAIN_MAX: usize = 5_000;

/// What came about in a simulation that kept all promises.
#[derive(Clone, Debug, Default)]
pub struct Played {
    /// How often each operation was carried out.
    pub done: BTreeMap<&'static str, usize>,
    /// How many turns stand how, in the end.
    pub turns: BTreeMap<String, usize>,
    /// How often else came about what is to be tried, by its name.
    pub met: BTreeMap<&'static str, usize>,
    /// All steps, as one number.
    pub digest: u64,
}

/// Plays what belongs to `seed`.
///
/// # Errors
/// What promise was broken, with the last steps before.
pub fn play(seed: u64) -> Result<Played, String> {
    let trace = Trace::default();
    let sim = std::panic::AssertUnwindSafe(|| Sim::new(seed, trace.clone()).play());
    std::panic::catch_unwind(sim).map_err(|panic| {
        let why = crate::base::tasks::panic_message(panic.as_ref());
        format!("seed {seed}: {why}\nthe last steps:\n{}", trace.told())
    })
}

/// A simulation: all that outlives a process.
struct Sim {
    odds: Odds,
    /// What the layer does without being asked for.
    options: Options,
    clock: Arc<HandClock>,
    storage: Storage,
    runs: Runs,
    steps_left: usize,
    processes: u32,
    shared: Shared,
    seen: Seen,
    trace: Trace,
}

/// How a process ends.
enum End {
    /// It is killed, with these batches on their way.
    Killed(Vec<(LogId, Vec<Record>)>),
    /// It has nothing more to do.
    Left,
}

impl Sim {
    fn new(seed: u64, trace: Trace) -> Self {
        let (clock, gates) = (HandClock::new(), Gates::default());
        let storage = Storage::new(seed, &clock, &gates);
        let seed = Seed::new(seed);
        let options = Options { auto_title: seed.chance(50), auto_compact: seed.chance(50) };
        Self {
            odds: Odds { seed, gates },
            options,
            clock,
            storage,
            runs: Runs::default(),
            steps_left: STEPS,
            processes: 0,
            shared: Shared::default(),
            seen: Seen::default(),
            trace,
        }
    }

    fn play(mut self) -> Played {
        while self.steps_left > 0 {
            self.process();
        }
        // The last process finds what all others left, and goes on with it.
        self.process();
        let digest = self.trace.digest();
        Played { digest, ..self.shared.lock().played.clone() }
    }

    /// One process from its start to its end. Whatever was under way in it is gone with its runtime.
    fn process(&mut self) {
        self.processes += 1;
        let number = self.processes;
        self.trace.push(format!("process {number} starts"));
        // Time passes when nothing else can happen, so that waiting a moment is waiting for that.
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
        let runtime = runtime.expect("a runtime");
        let end = runtime.block_on(async {
            let mut life = Life::begin(self);
            self.live(&mut life).await
        });
        drop(runtime);
        match end {
            End::Left => self.trace.push(format!("process {number} has ended")),
            End::Killed(under_way) => {
                self.trace.push(format!("process {number} is killed"));
                self.shared.lock().torn += under_way.len();
                let tearing = self.storage.tear(&under_way, &self.odds.seed);
                futures_util::FutureExt::now_or_never(tearing).expect("nothing waits");
            }
        }
    }

    async fn live(&mut self, life: &mut Life) -> End {
        self.check_found(life).await;
        // Both run beside the first operations.
        self.begin(life, Operation::Scan);
        self.begin(life, Operation::Recover);
        while self.steps_left > 0 {
            self.steps_left -= 1;
            settle().await;
            self.check_always(life).await;
            let (seed, waiting) = (&self.odds.seed, self.odds.gates.waiting().len());
            if seed.below(KILLED_ONE_OF) == 0 {
                return End::Killed(self.storage.under_way());
            }
            if waiting > 0 && seed.chance(90) {
                self.open_a_gate(waiting);
                continue;
            }
            match seed.weighted(OPERATIONS) {
                Operation::Restart => break,
                Operation::Wait => {
                    let span = Duration::from_millis(self.odds.seed.below(300) as u64);
                    self.trace.push(format!("{} ms pass", span.as_millis()));
                    self.clock.pass(span);
                    tokio::time::sleep(span).await;
                }
                operation => self.begin(life, operation),
            }
        }
        self.drain(life).await;
        self.check_quiet(life).await;
        End::Left
    }

    fn open_a_gate(&self, waiting: usize) {
        if let Some(name) = self.odds.gates.open(self.odds.seed.below(waiting)) {
            self.trace.push(format!("goes on: {name}"));
        }
    }

    /// Opens gates until nothing is under way any more.
    async fn drain(&mut self, life: &mut Life) {
        for _ in 0..DRAIN_MAX {
            settle().await;
            self.check_always(life).await;
            let waiting = self.odds.gates.waiting().len();
            if waiting > 0 {
                self.open_a_gate(waiting);
            } else if life.is_at_rest().await {
                return;
            } else {
                // Something waits for its time: a tool that does not heed a stop is given some.
                self.clock.pass(Duration::from_secs(1));
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
        panic!("something waits for itself: {:?}", life.sessions.running());
    }
}

/// Waits until nothing moves: paused time goes on only then.
async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

/// The last steps, and what all of them amount to.
#[derive(Clone, Debug, Default)]
struct Trace(Arc<Mutex<Steps>>);

#[derive(Debug, Default)]
struct Steps {
    last: VecDeque<String>,
    hasher: DefaultHasher,
}

impl Trace {
    fn push(&self, step: String) {
        let mut steps = self.lock();
        step.hash(&mut steps.hasher);
        if steps.last.len() == TOLD_MAX {
            steps.last.pop_front();
        }
        steps.last.push_back(step);
    }

    fn told(&self) -> String {
        self.lock().last.iter().cloned().collect::<Vec<_>>().join("\n")
    }

    fn digest(&self) -> u64 {
        self.lock().hasher.finish()
    }

    fn lock(&self) -> MutexGuard<'_, Steps> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
