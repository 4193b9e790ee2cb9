//! Logs as what they mean: typed events, checked when they are read and before they are written, and
//! the state that they amount to.

use std::borrow::Borrow;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::base::tasks::Tasks;
use crate::domain::event::{Event, Fact};
use crate::store::blocking::blocking;
use crate::store::cache::{CacheBounds, Memo, Readout};
use crate::store::error::{Corruption, Place, StoreError};
use crate::store::log::{Inspection, LogId, LogKind, Record, Removed, Revision, Torn};
use crate::store::seam::{Durability, LogStore, LogWriter};

/// Parsed events take about so many times the memory of their lines.
const PARSED_SIZE: usize = 3;

/// One of the two kinds of logs, with its events and its reducer.
pub trait Kind: Sized + 'static {
    /// The ids of its logs.
    type Id: Borrow<str> + for<'a> From<&'a str> + fmt::Debug + Send + Sync;
    /// What its events say.
    type Fact: Fact<Id = Self::Id> + fmt::Debug + Send + Sync;
    /// What its events amount to.
    type State: fmt::Debug + Send + Sync;

    /// The kind.
    const KIND: LogKind;

    /// The state after the first event.
    ///
    /// # Errors
    /// The event cannot be the first.
    fn begin(event: &Event<Self::Fact>) -> Result<Self::State, Corruption>;

    /// Takes the next event in.
    ///
    /// # Errors
    /// The event cannot follow those before it; the state is then as it was.
    fn apply(state: &mut Self::State, event: &Event<Self::Fact>) -> Result<(), Corruption>;

    /// What holds for a whole log only, and not for each beginning of it.
    ///
    /// # Errors
    /// What the first event promises is not in the log.
    fn check_whole(state: &Self::State) -> Result<(), Corruption>;

    /// Whether a log in this state is in the middle of something, if anybody is writing it.
    fn is_open(state: &Self::State) -> bool;
}

/// A log as it was read.
#[derive(Debug)]
pub struct Stored<K: Kind> {
    /// Its events.
    pub events: Vec<Arc<Event<K::Fact>>>,
    /// What they amount to.
    pub state: K::State,
    /// What was read.
    pub revision: Revision,
    /// What was left out at the end.
    pub torn: Option<Torn>,
    bytes: usize,
}

impl<K: Kind> Readout for Stored<K> {
    fn revision(&self) -> Revision {
        self.revision
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}

/// The logs of one kind. Clones share everything.
pub struct Repo<K: Kind> {
    store: Arc<dyn LogStore>,
    tasks: Tasks,
    memo: Arc<Memo<Stored<K>>>,
}

impl<K: Kind> Repo<K> {
    /// The logs of a kind in `store`, of which so much is kept parsed; `tasks` owns the parsing.
    #[must_use]
    pub fn new(store: Arc<dyn LogStore>, tasks: Tasks, bounds: CacheBounds) -> Self {
        Self { store, tasks, memo: Arc::new(Memo::new(bounds)) }
    }

    /// Begins a log with these events, all of them or none, and owns it.
    ///
    /// # Errors
    /// As [`LogStore::create`]; [`StoreError::Refused`] if the events are no beginning of a log.
    pub async fn create(
        &self,
        id: &K::Id,
        events: &[Event<K::Fact>],
    ) -> Result<EventLog<K>, StoreError> {
        let place = self.place(id)?;
        let mut state = None;
        for (line, event) in (1..).zip(events) {
            fold::<K>(&mut state, event).map_err(|why| refused(&place, line, why))?;
        }
        if let Some(state) = &state {
            K::check_whole(state).map_err(|why| refused(&place, 1, why))?;
        }
        let batch = lines::<K>(&place, 1, events)?;
        let writer = self.store.create(&place.log, &batch).await?;
        Ok(EventLog { writer, place, kind: PhantomData })
    }

    /// Owns a log for writing; gives what it holds.
    ///
    /// # Errors
    /// As [`LogStore::open`], and as [`read`](Self::read).
    pub async fn open(&self, id: &K::Id) -> Result<(EventLog<K>, Arc<Stored<K>>), StoreError> {
        let place = self.place(id)?;
        let writer = self.store.open(&place.log).await?;
        let stored = self.read(id).await?;
        Ok((EventLog { writer, place, kind: PhantomData }, stored))
    }

    /// Reads a log: every line strictly, and that they can follow one another. Never writes.
    ///
    /// # Errors
    /// As [`LogStore::inspect`]; [`StoreError::Corrupt`] with the first line that is no event or
    /// cannot follow those before it.
    pub async fn read(&self, id: &K::Id) -> Result<Arc<Stored<K>>, StoreError> {
        let place = self.place(id)?;
        let inspection = self.store.inspect(&place.log).await?;
        let memo = Arc::clone(&self.memo);
        blocking(&self.tasks, move || {
            memo.get_or_read(&place.log, inspection.revision, || parse(&place, &inspection))
        })
        .await?
    }

    /// As [`read`](Self::read), on this thread and without keeping anything: gives what the events
    /// amount to, and each of them to `each`. For a bounded pool of threads that goes over thousands
    /// of logs.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn scan(
        &self,
        id: &K::Id,
        each: impl FnMut(Event<K::Fact>),
    ) -> Result<K::State, StoreError> {
        Ok(self.scan_to_end(id, each)?.0)
    }

    /// As [`scan`](Self::scan); also gives what was left out at the end.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub(super) fn scan_to_end(
        &self,
        id: &K::Id,
        each: impl FnMut(Event<K::Fact>),
    ) -> Result<(K::State, Option<Torn>), StoreError> {
        let log = LogId::new(K::KIND, id.borrow())?;
        let text = self.store.scan(&log)?;
        let state = replay::<K>(&log, text.lines(), each);
        let state = state.map_err(|broken| broken.at(&self.place_of(log)))?;
        Ok((state, text.torn))
    }

    /// Reads a log once all that was acknowledged of it is safe on the device.
    ///
    /// # Errors
    /// As [`read`](Self::read) and [`LogStore::flush`]; [`StoreError::LiveTurnOpen`] for a turn
    /// that is under way in this process.
    pub async fn settled(&self, id: &K::Id) -> Result<Arc<Stored<K>>, StoreError> {
        let place = self.place(id)?;
        if let Err(error) = self.store.flush(Some(&place.log)).await {
            return Err(error.first);
        }
        let stored = self.read(id).await?;
        if self.store.is_live(&place.log) && K::is_open(&stored.state) {
            return Err(StoreError::LiveTurnOpen(place));
        }
        Ok(stored)
    }

    /// The ids of all logs, oldest first, damaged ones too.
    ///
    /// # Errors
    /// As [`LogStore::list`].
    pub async fn ids(&self) -> Result<Vec<K::Id>, StoreError> {
        let logs = self.store.list(K::KIND).await?;
        Ok(logs.iter().map(|log| K::Id::from(log.id())).collect())
    }

    /// Reads a log of this kind that was removed, without keeping the result.
    ///
    /// # Errors
    /// As [`LogStore::inspect_removed`], and as [`read`](Self::read).
    pub async fn read_removed(&self, removed: &Removed) -> Result<Stored<K>, StoreError> {
        let place = Place { log: removed.log.clone(), path: None };
        let inspection = self.store.inspect_removed(removed).await?;
        blocking(&self.tasks, move || parse(&place, &inspection)).await?
    }

    /// Takes one log out of the store, and nothing else; see [`LogStore::remove`].
    ///
    /// # Errors
    /// As [`LogStore::remove`].
    pub async fn delete(&self, id: &K::Id) -> Result<Removed, StoreError> {
        self.store.remove(&self.place(id)?.log).await
    }

    /// The store itself, for what needs no events.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn LogStore> {
        &self.store
    }

    fn place(&self, id: &K::Id) -> Result<Place, StoreError> {
        Ok(self.place_of(LogId::new(K::KIND, id.borrow())?))
    }

    fn place_of(&self, log: LogId) -> Place {
        let path = self.store.locate(&log).map(|location| location.path);
        Place { log, path }
    }
}

impl<K: Kind> Clone for Repo<K> {
    fn clone(&self) -> Self {
        let (store, memo) = (Arc::clone(&self.store), Arc::clone(&self.memo));
        Self { store, tasks: self.tasks.clone(), memo }
    }
}

impl<K: Kind> fmt::Debug for Repo<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Repo").field("store", &self.store).finish_non_exhaustive()
    }
}

/// The one writer of a log of events; frees the log when dropped.
#[derive(Debug)]
pub struct EventLog<K> {
    writer: Box<dyn LogWriter>,
    place: Place,
    kind: PhantomData<fn() -> K>,
}

impl<K: Kind> EventLog<K> {
    /// The offset (from 1) of the last event that was acknowledged.
    #[must_use]
    pub fn last_offset(&self) -> u64 {
        self.writer.records()
    }

    /// Adds events at the end, all or none; gives the offset (from 1) of the first of them. Whoever
    /// appends has folded them already; here each is checked to belong to this log and to be
    /// readable again.
    ///
    /// # Errors
    /// As [`LogWriter::append`]; [`StoreError::Refused`] for an event that could not be read back.
    pub async fn append(
        &mut self,
        events: &[Event<K::Fact>],
        durability: Durability,
    ) -> Result<u64, StoreError> {
        let first = self.last_offset() + 1;
        let batch = lines::<K>(&self.place, first, events)?;
        self.writer.append(&batch, durability).await?;
        Ok(first)
    }

    /// Why an event cannot become line `line`.
    pub(super) fn refusal(&self, line: u64, why: Corruption) -> StoreError {
        refused(&self.place, line, why)
    }

    /// A barrier, then the log is free; see [`LogWriter::close`].
    ///
    /// # Errors
    /// As [`LogWriter::close`].
    pub async fn close(self) -> Result<(), StoreError> {
        self.writer.close().await
    }
}

/// The records of events that are to stand from line `first` on.
fn lines<K: Kind>(
    place: &Place,
    first: u64,
    events: &[Event<K::Fact>],
) -> Result<Vec<Record>, StoreError> {
    let record = |event: &Event<K::Fact>| {
        let record = Record::new(event.to_line())?;
        event_of::<K>(&place.log, record.as_bytes())?;
        Ok(record)
    };
    let records = (first..).zip(events);
    records.map(|(line, event)| record(event).map_err(|why| refused(place, line, why))).collect()
}

fn refused(place: &Place, line: u64, why: Corruption) -> StoreError {
    StoreError::Refused { place: place.clone(), line, why: Arc::new(why) }
}

fn parse<K: Kind>(place: &Place, inspection: &Inspection) -> Result<Stored<K>, StoreError> {
    let Inspection { records, revision, torn, .. } = inspection;
    let bytes = inspection.bytes() * PARSED_SIZE;
    let mut events = Vec::with_capacity(records.len());
    let lines = records.iter().map(Record::as_bytes);
    let state = replay::<K>(&place.log, lines, |event| events.push(Arc::new(event)))
        .map_err(|broken| broken.at(place))?;
    Ok(Stored { events, state, revision: *revision, torn: *torn, bytes })
}

/// The first line of a log that is no event or cannot follow, from 1, and why.
struct Broken {
    line: u64,
    why: Corruption,
}

impl Broken {
    fn at(self, place: &Place) -> StoreError {
        let Self { line, why } = self;
        StoreError::Corrupt { place: place.clone(), line, why: Arc::new(why) }
    }
}

/// Gives each event of these lines to `each`, and what they amount to.
fn replay<'a, K: Kind>(
    log: &LogId,
    lines: impl Iterator<Item = &'a [u8]>,
    mut each: impl FnMut(Event<K::Fact>),
) -> Result<K::State, Broken> {
    let corrupt = |line, why| Broken { line, why };
    let mut state = None;
    for (number, line) in (1..).zip(lines) {
        let event = event_of::<K>(log, line).map_err(|why| corrupt(number, why))?;
        fold::<K>(&mut state, &event).map_err(|why| corrupt(number, why))?;
        each(event);
    }
    let state = state.ok_or_else(|| corrupt(1, Corruption::NoFirstRecord))?;
    K::check_whole(&state).map_err(|why| corrupt(1, why))?;
    Ok(state)
}

pub(super) fn event_of<K: Kind>(log: &LogId, line: &[u8]) -> Result<Event<K::Fact>, Corruption> {
    let event = Event::<K::Fact>::parse_line(line)?;
    let id: &str = event.id.borrow();
    if id == log.id() { Ok(event) } else { Err(Corruption::Foreign(id.to_owned())) }
}

pub(super) fn fold<K: Kind>(
    state: &mut Option<K::State>,
    event: &Event<K::Fact>,
) -> Result<(), Corruption> {
    match state {
        None => *state = Some(K::begin(event)?),
        Some(state) => K::apply(state, event)?,
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::id::{SessionId, TurnId};
    use crate::domain::session::event::SessionEvent;
    use crate::domain::turn::event::{ToolsExtended, TurnEvent, TurnFact};
    use crate::domain::turn::status::TurnStatus;
    use crate::store::coordinate::Coordinator;
    use crate::store::jsonl::{Encoding, Options};
    use crate::store::session_repo::SessionRepo;
    use crate::store::sqlite;
    use crate::store::turn_repo::TurnRepo;
    use crate::testing::disk::Call;
    use crate::testing::store::{Home, Kept, in_encoding, memory_store};
    use std::fs;

    const TURN: &str = "2026-03-04T05-06-07Z-0000042-000";
    const SESSION: &str = "2026-03-04T04-59-59Z-0000042-000";

    fn turn_event(turn: &str, kind: &str, fields: &str) -> TurnEvent {
        let line = format!(
            r#"{{"type":"{kind}","turnId":"{turn}","ts":"2026-03-04T05:06:07.001Z",{fields}}}"#
        );
        TurnEvent::parse_line(line.as_bytes()).expect("an event")
    }

    fn turn_created() -> TurnEvent {
        let fields = r#""schemaVersion":1,"sessionId":null,"agent":{"requested":{"agentId":"a"},"resolved":{"agentId":"a","systemPrompt":"","model":{"provider":"p","model":"m"},"tools":[]}},"context":[],"input":{"role":"user","content":"Hi."},"config":{"autoPermission":false,"humanAvailable":true,"maxModelCalls":5}"#;
        turn_event(TURN, "turn_created", fields)
    }

    fn requested(index: u64) -> TurnEvent {
        let fields = format!(
            r#""modelCallIndex":{index},"request":{{"messages":["input"],"parameters":{{}}}}"#
        );
        turn_event(TURN, "model_call_requested", &fields)
    }

    fn cancelled(turn: &str) -> TurnEvent {
        turn_event(turn, "turn_cancelled", r#""usage":{}"#)
    }

    fn session_event(kind: &str, fields: &str) -> SessionEvent {
        let line = format!(
            r#"{{"type":"{kind}","sessionId":"{SESSION}","ts":"2026-03-04T05:06:07.001Z",{fields}}}"#
        );
        SessionEvent::parse_line(line.as_bytes()).expect("an event")
    }

    fn turns(store: Arc<dyn LogStore>) -> TurnRepo {
        TurnRepo::new(store, Tasks::new(), CacheBounds::default())
    }

    fn turns_in(home: &Home) -> TurnRepo {
        turns(Arc::new(home.store(Options::default())))
    }

    fn turn() -> TurnId {
        TurnId::from(TURN)
    }

    #[tokio::test]
    async fn events_come_back_with_their_offsets_and_their_state() {
        let repo = turns(Arc::new(memory_store()));
        let mut log = repo.create(&turn(), &[turn_created()]).await.expect("created");
        assert_eq!(log.append(&[requested(0)], Durability::Barrier).await.expect("appended"), 2);
        assert_eq!(log.last_offset(), 2);
        let stored = repo.read(&turn()).await.expect("readable");
        assert_eq!(stored.events, [turn_created(), requested(0)].map(Arc::new));
        assert_eq!(stored.state.status(), TurnStatus::Idle);
        log.close().await.expect("closed");
        assert_eq!(repo.ids().await.expect("listed"), [turn()]);
        let (log, reopened) = repo.open(&turn()).await.expect("free");
        assert!(Arc::ptr_eq(&stored, &reopened), "read and parsed once");
        drop(log);
        let scanned = Kept::read(&repo, &turn()).expect("readable");
        assert_eq!((scanned.events, scanned.state), (stored.events.clone(), stored.state.clone()));
        repo.delete(&turn()).await.expect("deleted");
        assert!(matches!(repo.read(&turn()).await, Err(StoreError::NotFound(_))));
    }

    #[tokio::test]
    async fn an_event_that_does_not_belong_is_refused_before_it_is_written() {
        let repo = turns(Arc::new(memory_store()));
        for (first, rest) in [(requested(0), vec![]), (turn_created(), vec![requested(1)])] {
            let line = rest.len() as u64 + 1;
            let refused = repo.create(&turn(), &[vec![first], rest].concat()).await;
            let as_expected =
                matches!(refused, Err(StoreError::Refused { line: l, .. }) if l == line);
            assert!(as_expected, "{refused:?}");
        }
        assert!(matches!(repo.create(&turn(), &[]).await, Err(StoreError::NoFirstRecord(_))));
        let unnamed = repo.create(&TurnId::from("../x"), &[turn_created()]).await;
        assert!(matches!(unnamed, Err(StoreError::Id(_))), "{unnamed:?}");
        assert_eq!(repo.ids().await.expect("listed"), []);

        let mut log = repo.create(&turn(), &[turn_created()]).await.expect("created");
        let foreign = cancelled("2026-03-04T05-06-07Z-0000042-001");
        let refused = log.append(&[requested(0), foreign], Durability::Written).await;
        let why = refused.expect_err("another turn's").to_string();
        assert!(
            why.contains("at line 3: the event belongs to 2026-03-04T05-06-07Z-0000042-001"),
            "{why}"
        );
        assert_eq!(repo.read(&turn()).await.expect("readable").events.len(), 1);
    }

    #[tokio::test]
    async fn nothing_is_written_that_could_not_be_read_again() {
        let repo = turns(Arc::new(memory_store()));
        let mut created = turn_created();
        let TurnFact::Created(fact) = &mut created.fact else { panic!("it is one") };
        Arc::make_mut(fact).config.max_model_calls = 0;
        let refused = repo.create(&turn(), &[created]).await;
        assert!(matches!(refused, Err(StoreError::Refused { line: 1, .. })), "{refused:?}");
        assert_eq!(repo.ids().await.expect("listed"), []);

        let mut log = repo.create(&turn(), &[turn_created()]).await.expect("created");
        let extended = TurnFact::ToolsExtended(ToolsExtended {
            tool_call_id: "call".into(),
            source: "tool".to_owned(),
            tools: Vec::new(),
        });
        let extended = Event { fact: extended, ..requested(0) };
        let refused = log.append(&[requested(0), extended], Durability::Written).await;
        assert!(matches!(refused, Err(StoreError::Refused { line: 3, .. })), "{refused:?}");
        assert_eq!(repo.read(&turn()).await.expect("readable").events.len(), 1);
    }

    /// Writes the lines as a turn's file and gives what reading it says.
    async fn check_corrupt(lines: &[String], line: u64, why: &str) {
        let home = Home::new();
        let repo = turns_in(&home);
        drop(repo.create(&turn(), &[turn_created()]).await.expect("created"));
        let log = LogId::turn(&turn()).expect("valid");
        fs::write(home.file(&log), lines.join("\n") + "\n").expect("written");
        for outcome in [
            repo.read(&turn()).await.map(drop),
            repo.scan(&turn(), drop).map(drop),
            repo.open(&turn()).await.map(drop),
        ] {
            let error = outcome.expect_err("damaged").to_string();
            let file = home.file(&log).display().to_string();
            let place = format!("corrupt at line {line}: ");
            for part in [why, &file, &place] {
                assert!(error.contains(part), "{part:?} in {error:?}");
            }
        }
    }

    #[tokio::test]
    async fn the_first_line_that_is_no_event_or_cannot_follow_is_named() {
        let created = turn_created().to_line();
        let unknown = created.replace("turn_created", "turn_dreamt");
        check_corrupt(&[created.clone(), unknown], 2, "unknown event type").await;
        check_corrupt(&[requested(0).to_line()], 1, "not turn_created").await;
        let lines = [created.clone(), requested(0).to_line(), created.clone()];
        check_corrupt(&lines, 3, "second turn_created").await;
        let version = created.replace("\"schemaVersion\":1", "\"schemaVersion\":9");
        check_corrupt(&[version], 1, "schema version 9").await;
        let other = cancelled("2026-03-04T05-06-07Z-0000042-001").to_line();
        check_corrupt(&[created, other], 2, "belongs to 2026-03-04T05-06-07Z-0000042-001").await;
    }

    #[tokio::test]
    async fn what_is_settled_is_safe_and_not_in_the_middle_of_a_turn() {
        let home = Home::new();
        let repo = turns_in(&home);
        let mut log = repo.create(&turn(), &[turn_created()]).await.expect("created");
        let open = repo.settled(&turn()).await;
        assert!(matches!(open, Err(StoreError::LiveTurnOpen(_))), "{open:?}");
        log.append(&[cancelled(TURN)], Durability::Written).await.expect("appended");
        let syncs = || home.disk.calls().iter().filter(|call| **call == Call::Sync).count();
        let before = syncs();
        assert_eq!(repo.settled(&turn()).await.expect("ended").events.len(), 2);
        assert_eq!(syncs(), before + 1);
        drop(log);
        let other = TurnId::from("2026-03-04T05-06-07Z-0000042-001");
        let missing = repo.settled(&other).await;
        assert!(matches!(missing, Err(StoreError::NotFound(_))), "{missing:?}");
    }

    /// The same over every backend, alone and behind the coordinator.
    #[tokio::test]
    async fn what_is_settled_is_no_open_turn_wherever_it_is_kept() {
        for coordinated in [false, true] {
            let homes = [Home::new(), Home::new(), Home::new()];
            let [lines, frames, database] = &homes;
            let stores: [Arc<dyn LogStore>; 4] = [
                Arc::new(memory_store()),
                Arc::new(lines.store(in_encoding(Encoding::Lines))),
                Arc::new(frames.store(in_encoding(Encoding::Frames))),
                Arc::new(database.database(sqlite::Options::default())),
            ];
            for store in stores {
                let name = format!("{store:?}, {coordinated}");
                let store: Arc<dyn LogStore> = if coordinated {
                    Arc::new(Coordinator::new(store, Tasks::new()))
                } else {
                    store
                };
                let repo = TurnRepo::new(store, Tasks::new(), CacheBounds::default());
                let mut log = repo.create(&turn(), &[turn_created()]).await.expect("created");
                let open = repo.settled(&turn()).await;
                assert!(matches!(open, Err(StoreError::LiveTurnOpen(_))), "{name}: {open:?}");
                assert_eq!(repo.read(&turn()).await.expect("live").events.len(), 1, "{name}");
                log.append(&[cancelled(TURN)], Durability::Written).await.expect("appended");
                let settled = repo.settled(&turn()).await.expect("ended");
                assert_eq!(settled.events.len(), 2, "{name}");
                log.close().await.expect("closed");
            }
        }
    }

    #[tokio::test]
    async fn a_session_grows_only_by_events_that_can_follow() {
        let store: Arc<dyn LogStore> = Arc::new(memory_store());
        let repo = SessionRepo::new(store, Tasks::new(), CacheBounds::default());
        let id = SessionId::from(SESSION);
        let created = session_event("session_created", r#""schemaVersion":1"#);
        drop(repo.create(&id, std::slice::from_ref(&created)).await.expect("created"));
        let title = session_event("title_changed", r#""title":"Named""#);
        let append = |events: Vec<SessionEvent>| {
            let (repo, id) = (repo.clone(), id.clone());
            async move { repo.append(&id, &events, Durability::Barrier).await }
        };
        let state = append(vec![title.clone()]).await.expect("appended");
        assert_eq!(state.title.as_deref(), Some("Named"));
        let archived = session_event("archived", r#""archived":true"#);
        let refused = append(vec![title.clone(), archived]).await;
        assert!(matches!(refused, Err(StoreError::Refused { line: 4, .. })), "{refused:?}");
        let stored = repo.read(&id).await.expect("readable");
        assert_eq!(stored.state, state);
        assert_eq!(stored.events, [created, title].map(Arc::new));
    }
}
