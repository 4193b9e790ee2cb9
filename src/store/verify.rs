//! Reads everything that is stored, strictly, and follows what refers to what: from sessions to turns,
//! and from turns to those that they go back to. Changes nothing.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

use crate::base::id::TurnId;
use crate::base::tasks::Tasks;
use crate::domain::agent::AgentSnapshot;
use crate::domain::session::state::SessionState;
use crate::domain::turn::event::TurnContext;
use crate::domain::turn::state::TurnState;
use crate::store::blocking::blocking;
use crate::store::error::{Place, StoreError};
use crate::store::log::{LogId, LogKind, Misplaced, Removed};
use crate::store::progress::{Progress, Stage, Told};
use crate::store::repo::{Kind, Repo};
use crate::store::session_repo::{SessionKind, SessionRepo};
use crate::store::turn_repo::{TurnKind, TurnRepo};

/// Logs that are read between two words about how far it is.
const LOGS_AT_ONCE: usize = 32;

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// How many sessions there are.
    pub sessions: u64,
    /// How many turns.
    pub turns: u64,
    /// How many logs were removed and can be restored.
    pub removed: u64,
    /// How many records were read.
    pub records: u64,
    /// Logs that end in a torn write, which the next opening sets aside.
    pub torn: Vec<Place>,
    /// Turns that have not ended.
    pub open: u64,
    /// What is wrong.
    pub faults: Vec<Fault>,
}

/// Something that is wrong.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Fault {
    /// A log cannot be read, or what all logs share is damaged.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A log that was removed cannot be read.
    #[error("deleted: {error}")]
    Removed {
        /// Which removal.
        removed: Removed,
        /// Why.
        error: StoreError,
    },
    /// A log cannot be found by its id.
    #[error(transparent)]
    Misplaced(#[from] Misplaced),
    /// A log refers to one that is not there.
    #[error("{from} {reference} {to}, and that is not there")]
    Dangling {
        /// Which log.
        from: LogId,
        /// How it refers.
        reference: Reference,
        /// To which.
        to: LogId,
    },
    /// A turn goes back to itself, by way of others or not.
    #[error("{0} goes back to itself")]
    Circle(LogId),
}

/// How a log refers to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reference {
    /// A session to one of its turns.
    Appended,
    /// A session to the first turn that a summary leaves as it is.
    Kept,
    /// A turn to the one whose conversation it goes on with.
    Context,
    /// A turn to the one whose agent it has.
    Agent,
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Appended => "holds",
            Self::Kept => "keeps all from",
            Self::Context => "goes on from",
            Self::Agent => "has the agent of",
        })
    }
}

/// What one log says.
struct Look {
    place: Place,
    records: u64,
    is_torn: bool,
    is_open: bool,
    refers: Refers,
}

type Refers = Vec<(Reference, TurnId)>;

/// What a log of a kind refers to.
trait Refer: Kind {
    fn refers(state: &Self::State) -> Refers;
}

impl Refer for SessionKind {
    fn refers(state: &SessionState) -> Refers {
        let turns = state.turns.iter().map(|turn| (Reference::Appended, turn.id.clone()));
        let kept = state.compactions.iter().map(|it| it.fact.first_kept_turn_id.clone());
        let kept = kept.filter(|turn| !state.has_turn(turn));
        turns.chain(kept.map(|turn| (Reference::Kept, turn))).collect()
    }
}

impl Refer for TurnKind {
    fn refers(state: &TurnState) -> Refers {
        let created = &state.definition;
        let context = match &created.context {
            TurnContext::Previous(context) => {
                Some((Reference::Context, context.previous_turn_id.clone()))
            }
            TurnContext::Inline(_) => None,
        };
        let agent = match &created.agent.resolved {
            AgentSnapshot::Inherited(agent) => {
                Some((Reference::Agent, agent.inherited_from.clone()))
            }
            AgentSnapshot::Full(_) => None,
        };
        context.into_iter().chain(agent).collect()
    }
}

/// Looks at everything, and tells how far that is.
///
/// # Errors
/// [`StoreError`] if the logs cannot be listed.
pub async fn verify(
    sessions: &SessionRepo,
    turns: &TurnRepo,
    tasks: &Tasks,
    told: Told<'_>,
) -> Result<Verdict, StoreError> {
    let store = sessions.store();
    let session_ids = sessions.ids().await?;
    let turn_ids = turns.ids().await?;
    let progress = Progress::new(Stage::Reading, session_ids.len() + turn_ids.len());
    let (verdict, refers) = (Verdict::default(), BTreeMap::new());
    let mut work = Work { verdict, refers, tasks, progress, told };
    (work.told)(progress);
    work.verdict.sessions = session_ids.len() as u64;
    work.read(sessions, session_ids).await?;
    // Once more: a turn that was made meanwhile may be held by a session that was read meanwhile.
    let turn_ids = turns.ids().await?;
    work.progress.total = work.progress.done + turn_ids.len() as u64;
    work.verdict.turns = turn_ids.len() as u64;
    let there: BTreeSet<_> = turn_ids.iter().cloned().collect();
    work.read(turns, turn_ids).await?;
    if let Err(error) = work.read_removed(sessions, turns).await {
        work.verdict.faults.push(error.into());
    }
    for kind in [LogKind::Session, LogKind::Turn] {
        let misplaced = store.strays(kind).await?.misplaced;
        work.verdict.faults.extend(misplaced.into_iter().map(Fault::Misplaced));
    }
    work.follow(&there)?;
    (work.told)(Progress::new(Stage::Checking, 0));
    match store.check().await {
        Ok(wrong) => work.verdict.faults.extend(wrong.into_iter().map(Fault::Store)),
        Err(error) => work.verdict.faults.push(error.into()),
    }
    Ok(work.verdict)
}

/// What was found so far.
struct Work<'a> {
    verdict: Verdict,
    refers: BTreeMap<LogId, Refers>,
    tasks: &'a Tasks,
    progress: Progress,
    told: Told<'a>,
}

impl Work<'_> {
    async fn read<K: Refer>(&mut self, repo: &Repo<K>, ids: Vec<K::Id>) -> Result<(), StoreError>
    where
        K::Id: Clone,
    {
        for some in ids.chunks(LOGS_AT_ONCE) {
            let (repo, some) = (repo.clone(), some.to_vec());
            let count = some.len();
            let looks = move || some.iter().map(|id| look(&repo, id)).collect::<Vec<_>>();
            for found in blocking(self.tasks, looks).await? {
                self.take(found);
            }
            self.progress.advance(count);
            (self.told)(self.progress);
        }
        Ok(())
    }

    fn take(&mut self, found: Result<Look, StoreError>) {
        let verdict = &mut self.verdict;
        match found {
            Ok(Look { place, records, is_torn, is_open, refers }) => {
                verdict.records += records;
                verdict.open += u64::from(is_open);
                self.refers.insert(place.log.clone(), refers);
                if is_torn {
                    verdict.torn.push(place);
                }
            }
            // It went meanwhile.
            Err(StoreError::NotFound(_)) => {}
            Err(error) => verdict.faults.push(error.into()),
        }
    }

    async fn read_removed(
        &mut self,
        sessions: &SessionRepo,
        turns: &TurnRepo,
    ) -> Result<(), StoreError> {
        for removed in sessions.store().removed().await? {
            self.verdict.removed += 1;
            let read = match removed.log.kind() {
                LogKind::Session => sessions.read_removed(&removed).await.map(|stored| {
                    let refers = SessionKind::refers(&stored.state);
                    (stored.events.len(), refers)
                }),
                LogKind::Turn => turns
                    .read_removed(&removed)
                    .await
                    .map(|stored| (stored.events.len(), TurnKind::refers(&stored.state))),
            };
            match read {
                Ok((records, refers)) => {
                    self.verdict.records += records as u64;
                    self.refers.entry(removed.log).or_insert(refers);
                }
                Err(StoreError::NotFound(_)) => {}
                Err(error) => self.verdict.faults.push(Fault::Removed { removed, error }),
            }
        }
        Ok(())
    }

    /// Looks for what is referred to and not there, and for turns that go back to themselves.
    fn follow(&mut self, there: &BTreeSet<TurnId>) -> Result<(), StoreError> {
        let mut back: HashMap<&TurnId, Vec<&TurnId>> = HashMap::new();
        let own: HashMap<&str, &TurnId> = there.iter().map(|id| (id.as_str(), id)).collect();
        for (from, refers) in &self.refers {
            for (reference, to) in refers {
                if !there.contains(to) {
                    let (from, to) = (from.clone(), LogId::turn(to)?);
                    let reference = *reference;
                    self.verdict.faults.push(Fault::Dangling { from, reference, to });
                } else if from.kind() == LogKind::Turn
                    && let Some(from) = own.get(from.id())
                {
                    back.entry(from).or_default().push(to);
                }
            }
        }
        for turn in in_circles(&back) {
            self.verdict.faults.push(Fault::Circle(LogId::turn(turn)?));
        }
        Ok(())
    }
}

/// The turns that stand before themselves.
fn in_circles<'a>(back: &HashMap<&'a TurnId, Vec<&'a TurnId>>) -> BTreeSet<&'a TurnId> {
    // Whatever nothing in question goes back to is in no circle, one after the other.
    let mut before: HashMap<&TurnId, usize> = HashMap::new();
    for to in back.values().flatten() {
        *before.entry(to).or_default() += 1;
    }
    let is_free = |turn: &&TurnId, before: &HashMap<&TurnId, usize>| !before.contains_key(*turn);
    let mut left: BTreeSet<&TurnId> = back.keys().copied().collect();
    let mut free: Vec<_> = left.iter().copied().filter(|turn| is_free(turn, &before)).collect();
    while let Some(turn) = free.pop() {
        left.remove(turn);
        for to in back.get(turn).into_iter().flatten() {
            if let Some(count) = before.get_mut(to) {
                *count -= 1;
                if *count == 0 {
                    before.remove(to);
                    free.push(to);
                }
            }
        }
    }
    // What only hangs behind a circle is left too, and goes back to nothing that is.
    let ends = |turn: &&TurnId, left: &BTreeSet<&TurnId>| {
        !back.get(*turn).is_some_and(|tos| tos.iter().any(|to| left.contains(to)))
    };
    while let Some(end) = left.iter().copied().find(|turn| ends(turn, &left)) {
        left.remove(end);
    }
    left
}

fn look<K: Refer>(repo: &Repo<K>, id: &K::Id) -> Result<Look, StoreError> {
    let mut records = 0;
    let (state, torn) = repo.scan_to_end(id, |_| records += 1)?;
    let log = LogId::new(K::KIND, id.borrow())?;
    let path = repo.store().locate(&log).map(|location| location.path);
    let refers = K::refers(&state);
    let is_open = K::is_open(&state);
    Ok(Look { place: Place { log, path }, records, is_torn: torn.is_some(), is_open, refers })
}
