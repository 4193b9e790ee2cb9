//! Work directories full of sessions, each log made and checked as the program itself makes it.

mod prose;

use std::borrow::Borrow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use futures_util::{StreamExt as _, stream};

use crate::app::notice::{LoadedTurn, Notice, TurnView};
use crate::base::clock::{Clock, Timestamp};
use crate::base::id::{IdForm, IdSource, Ids, SessionId, ToolCallId, TurnId};
use crate::base::tasks::Tasks;
use crate::domain::event::{Event, Fact};
use crate::domain::message::UserMessage;
use crate::domain::session::apply::reduce_session;
use crate::domain::session::event::{SessionCreated, SessionFact};
use crate::domain::turn::apply::reduce_turn;
use crate::domain::turn::event::{ContextRef, TurnContext, TurnFact};
use crate::store::cache::CacheBounds;
use crate::store::format::Format;
use crate::store::log::{LogKind, Record};
use crate::store::repo::{Kind, Repo};
use crate::store::seam::Durability;
use crate::store::session_repo::SessionRepo;
use crate::store::turn_repo::TurnRepo;
use crate::testing::backend::Backend;
use crate::testing::fixture::prose::prose;
use crate::testing::{fact, session_fact};

/// How many sessions are written at a time.
const AT_A_TIME: usize = 16;
/// From one log to the next, so that 10,000 sessions fill a year of folders.
const BETWEEN_LOGS: Duration = Duration::from_mins(26);
/// The first of them: the begin of 2025.
const FIRST_MS: i64 = 1_735_689_600_000;

/// What a session is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Its turns.
    pub turns: usize,
    /// How many tools each turn has run before it answered.
    pub calls: usize,
    /// How long each answer is.
    pub answer_bytes: usize,
}

impl Shape {
    /// How many items a timeline has of it: of each turn the question, the tools, the answer and how
    /// it ended.
    #[must_use]
    pub fn items(self) -> usize {
        self.turns * (self.calls + 3)
    }

    /// A short exchange, as most sessions are: 1 KB of session, 3 KB of turn.
    pub const SMALL: Self = Self { turns: 1, calls: 0, answer_bytes: 1_300 };
}

/// A work directory to be filled.
#[derive(Debug)]
pub struct Archive {
    sessions: SessionRepo,
    turns: TurnRepo,
    ids: Ids,
}

impl Archive {
    /// The one in `folder`, which nobody else writes, in the form that is the default.
    ///
    /// # Panics
    /// When the folder cannot be used.
    #[must_use]
    pub fn new(folder: &Path, tasks: &Tasks) -> Self {
        Self::kept(Format::default(), folder, tasks)
    }

    /// The same, whose logs are kept in this form. Whoever opens the folder next lets go of it first.
    ///
    /// # Panics
    /// When the folder cannot be used.
    #[must_use]
    pub fn kept(format: Format, folder: &Path, tasks: &Tasks) -> Self {
        let store = Backend::Kept(format).bare(folder, tasks);
        Self {
            sessions: Repo::new(Arc::clone(&store), tasks.clone(), CacheBounds::default()),
            turns: Repo::new(store, tasks.clone(), CacheBounds::default()),
            ids: Ids::new(Arc::new(Calendar(AtomicI64::new(FIRST_MS))), 42),
        }
    }

    /// Adds sessions of a shape, oldest first.
    ///
    /// # Panics
    /// When one cannot be written.
    pub async fn add(&self, count: usize, shape: Shape) -> Vec<SessionId> {
        let plans = (0..count).map(|number| Plan::new(&self.ids, number, shape));
        let written = stream::iter(plans).map(|plan| self.write(plan)).buffered(AT_A_TIME);
        written.collect().await
    }

    /// How many bytes all its logs are as lines.
    ///
    /// # Panics
    /// When one cannot be read.
    pub async fn lines_bytes(&self) -> u64 {
        let mut bytes = 0;
        for kind in [LogKind::Session, LogKind::Turn] {
            let store = self.turns.store();
            for log in store.list(kind).await.expect("listed") {
                let text = store.scan(&log).expect("read");
                bytes += text.lines().map(|line| line.len() as u64 + 1).sum::<u64>();
            }
        }
        bytes
    }

    async fn write(&self, plan: Plan) -> SessionId {
        for (turn, facts) in plan.turn_facts() {
            let events = events(&turn, facts);
            write(&self.turns, &turn, &events).await;
        }
        let events = events(&plan.session, plan.session_facts());
        write(&self.sessions, &plan.session, &events).await;
        plan.session
    }
}

/// Writes a log as it came to be: event by event.
async fn write<K: Kind>(repo: &Repo<K>, id: &K::Id, events: &[Event<K::Fact>]) {
    let (first, rest) = events.split_at(1);
    let mut log = repo.create(id, first).await.expect("a log is begun");
    for event in rest {
        let event = std::slice::from_ref(event);
        log.append(event, Durability::Written).await.expect("an event is written");
    }
}

/// What the program tells when a session of this shape is opened, without any disk.
///
/// # Panics
/// When the log of the shape does not reduce, which every test of the shape sees.
#[must_use]
pub fn opened(shape: Shape) -> Vec<Notice> {
    let ids = Ids::new(Arc::new(Calendar(AtomicI64::new(FIRST_MS))), 42);
    let plan = Plan::new(&ids, 0, shape);
    let facts = events(&plan.session, plan.session_facts());
    let state = reduce_session(&facts).expect("the session is legal");
    let mut turns: Vec<_> = (1..)
        .zip(plan.turn_facts())
        .map(|(session_seq, (id, facts))| {
            let events = events(&id, facts);
            let state = Arc::new(reduce_turn(&events).expect("the turn is legal"));
            let offset = events.len() as u64;
            let content = Ok(TurnView { offset, state, interrupted: None, running: false });
            LoadedTurn { id, session_seq, content }
        })
        .collect();
    turns.reverse();
    let session = plan.session;
    vec![
        Notice::SessionOpened { session: session.clone(), state: Ok(Arc::new(state)) },
        Notice::TurnsLoaded { session, turns, left: 0 },
    ]
}

/// Records that each say so many bytes of something else.
///
/// # Panics
/// Never: they are objects.
#[must_use]
pub fn records(count: usize, text_bytes: usize) -> Vec<Record> {
    let line = |seed| serde_json::json!({"type": "x", "text": prose(text_bytes, seed)}).to_string();
    (0..).take(count).map(|seed| Record::new(line(seed)).expect("an object")).collect()
}

/// A clock that moves on whenever it is looked at.
struct Calendar(AtomicI64);

impl Clock for Calendar {
    fn now(&self) -> Timestamp {
        let step = i64::try_from(BETWEEN_LOGS.as_millis()).unwrap_or(i64::MAX);
        Timestamp::from_ms(self.0.fetch_add(step, Ordering::Relaxed))
    }

    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }
}

/// A session to be written.
struct Plan {
    number: usize,
    shape: Shape,
    session: SessionId,
    turns: Vec<TurnId>,
}

impl Plan {
    fn new(ids: &Ids, number: usize, shape: Shape) -> Self {
        let session = SessionId::from(ids.next());
        let turns = (0..shape.turns).map(|_| TurnId::from(ids.next())).collect();
        Self { number, shape, session, turns }
    }

    fn session_facts(&self) -> Vec<SessionFact> {
        let header = SessionCreated {
            cwd: Some(format!("/home/ada/projects/project-{}", self.number % 20)),
            ..session_fact::header()
        };
        let mut facts = vec![SessionFact::Created(Arc::new(header))];
        let title =
            format!("Session {}: why does the watcher test fail one time in ten?", self.number);
        let turns = (1..).zip(&self.turns);
        facts.extend(turns.map(|(seq, turn)| session_fact::appended(seq, turn.as_str())));
        // Somebody has named it again and again.
        facts.extend(
            ["", " (looking into it)", " (found: it listens too late)"]
                .map(|part| session_fact::titled(&format!("{title}{part}"))),
        );
        facts
    }

    fn turn_facts(&self) -> impl Iterator<Item = (TurnId, Vec<TurnFact>)> {
        let before = std::iter::once(None).chain(self.turns.iter().map(Some));
        (1..).zip(&self.turns).zip(before).map(|((seq, turn), before)| {
            let context = match before {
                Some(before) => {
                    TurnContext::Previous(ContextRef { previous_turn_id: before.clone() })
                }
                None => TurnContext::Inline(Vec::new()),
            };
            (turn.clone(), self.facts_of(turn, seq, &context))
        })
    }

    /// A turn that looked at some files, one after the other, and then answered.
    fn facts_of(&self, turn: &TurnId, seq: usize, context: &TurnContext) -> Vec<TurnFact> {
        let question = format!("Question {seq} of session {}: why does it fail?", self.number);
        let mut created = fact::turn();
        created.session_id = Some(self.session.clone());
        created.context = context.clone();
        created.input = Arc::new(UserMessage::text(&question));
        created.config.max_model_calls = self.shape.calls as u64 + 1;
        let mut facts = vec![TurnFact::Created(Arc::new(created))];
        let mut refs = "input".to_owned();
        for (index, number) in (0..).zip(1..=self.shape.calls) {
            let id = ToolCallId::of_turn(turn, number);
            let call = format!("{id}:read-file");
            facts.push(fact::request_in(context, index, &refs));
            facts.push(fact::calls(index, &call));
            facts.push(fact::invoke(&call));
            facts.push(fact::result(&call));
            refs = format!("assistant:{index} toolResult:{id}");
        }
        let last = self.shape.calls as u64;
        facts.push(fact::request_in(context, last, &refs));
        let seed = (self.number * self.shape.turns + seq) as u64;
        facts.push(fact::answer(last, &prose(self.shape.answer_bytes, seed)));
        facts.push(fact::complete());
        facts
    }
}

/// Facts as the events of a log, each a second after the one before.
fn events<F>(id: &F::Id, facts: Vec<F>) -> Vec<Event<F>>
where
    F: Fact,
    F::Id: Clone + Borrow<str>,
{
    let form: IdForm = id.borrow().parse().expect("the archive makes its own ids");
    let at = |seconds| form.second.after(Duration::from_secs(seconds));
    let facts = (0..).zip(facts);
    facts.map(|(second, fact)| Event { id: id.clone(), ts: at(second), fact }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::turn::status::TurnStatus;

    #[tokio::test]
    async fn an_archive_is_read_as_it_was_meant() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let tasks = Tasks::new();
        let archive = Archive::new(folder.path(), &tasks);
        let shape = Shape { turns: 2, calls: 3, answer_bytes: 10 };
        let sessions = archive.add(2, shape).await;
        assert_eq!(archive.sessions.ids().await.expect("listed"), sessions);
        for session in &sessions {
            let state = archive.sessions.read(session).await.expect("read").state.clone();
            assert_eq!(state.turns.len(), 2);
            for turn in &state.turns {
                let turn = archive.turns.read(&turn.id).await.expect("read");
                assert_eq!(turn.state.status(), TurnStatus::Completed);
                assert_eq!(turn.events.len(), 1 + 3 * 4 + 3);
            }
        }
    }

    #[tokio::test]
    async fn a_small_session_takes_a_kilobyte_and_its_turn_three() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let archive = Archive::new(folder.path(), &Tasks::new());
        let session = archive.add(1, Shape::SMALL).await.remove(0);
        let stored = archive.sessions.read(&session).await.expect("read");
        let bytes = |lines: &mut dyn Iterator<Item = String>| -> usize {
            lines.map(|line| line.len() + 1).sum()
        };
        let session_bytes = bytes(&mut stored.events.iter().map(|event| event.to_line()));
        assert!((950..1_100).contains(&session_bytes), "{session_bytes}");
        let turn = stored.state.latest().expect("it has one").id.clone();
        let stored = archive.turns.read(&turn).await.expect("read");
        let turn_bytes = bytes(&mut stored.events.iter().map(|event| event.to_line()));
        assert!((2_900..3_150).contains(&turn_bytes), "{turn_bytes}");
    }
}
