//! The index of all sessions, in memory: what the list is drawn from. Every change is made and told
//! in one step, so that whoever follows the changes always arrives at the index
//! (`spec/session-layer.md` section 8, `design/sessions.md`).

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::broadcast;

use crate::base::id::{SessionId, TurnId};
use crate::domain::session::entry::SessionIndexEntry;
use crate::domain::turn::state::TurnState;

/// How many changes wait for a follower before it has to list again. A follower that draws reads
/// them at every frame; more than this in one frame is cheaper to list.
const CHANGES_WAITING_MAX: usize = 1_024;

/// What the index tells its followers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndexChange {
    /// A session changed, or went (`session-index-changed`).
    Session {
        /// The session.
        session: SessionId,
        /// Its entry now; none once it is deleted.
        entry: Option<Arc<SessionIndexEntry>>,
    },
    /// The scan has come on.
    Scanned {
        /// The entries that are news.
        entries: Vec<Arc<SessionIndexEntry>>,
        /// How many sessions have been read.
        done: usize,
        /// How many there are.
        total: usize,
    },
    /// The scan is over.
    ScanEnded {
        /// Why the sessions could not be listed, if so.
        error: Option<String>,
    },
}

/// The index.
pub struct Index {
    inner: Mutex<Inner>,
    changes: broadcast::Sender<IndexChange>,
}

#[derive(Default)]
struct Inner {
    entries: HashMap<SessionId, Known>,
    /// What waits to be sent, also in sessions that the scan has not come to.
    unsent: HashMap<SessionId, Unsent>,
    scan: Option<ScanUnderWay>,
    scans: u64,
}

/// What waits to be sent in a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Unsent {
    /// How many messages.
    pub(super) count: usize,
    /// Why the last of them was not delivered.
    pub(super) last_error: Option<String>,
}

struct Known {
    entry: Arc<SessionIndexEntry>,
    /// How far the latest turn's log had come when it was last looked at.
    offset: u64,
}

/// A scan reads what was there some time ago; this is what happened since it began.
struct ScanUnderWay {
    number: u64,
    /// Sessions that changed, or went: what the scan says of them is older than what is known.
    changed: HashSet<SessionId>,
    /// The last looks at turns of sessions that the scan has not come to.
    looks: HashMap<SessionId, Look>,
    done: usize,
    total: usize,
}

struct Look {
    turn: TurnState,
    offset: u64,
}

/// What a scan found of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Scanned {
    pub(super) entry: SessionIndexEntry,
    /// How many events its latest turn's log holds.
    pub(super) offset: u64,
}

/// The scan under way. What is found after it was dropped, or after another one has begun, is
/// ignored.
pub(super) struct ScanRight {
    index: Arc<Index>,
    number: u64,
}

impl Default for Index {
    fn default() -> Self {
        let (changes, _) = broadcast::channel(CHANGES_WAITING_MAX);
        Self { inner: Mutex::default(), changes }
    }
}

impl Index {
    /// An empty index.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Follows the changes from now on. A follower that lagged lists again.
    #[must_use]
    pub fn follow(&self) -> broadcast::Receiver<IndexChange> {
        self.changes.subscribe()
    }

    /// All entries, the oldest session first.
    #[must_use]
    pub fn list(&self) -> Vec<Arc<SessionIndexEntry>> {
        let mut entries: Vec<_> =
            self.lock().entries.values().map(|known| Arc::clone(&known.entry)).collect();
        entries.sort_unstable_by(|one, other| one.session_id.cmp(&other.session_id));
        entries
    }

    /// The entry of a session.
    #[must_use]
    pub fn get(&self, session: &SessionId) -> Option<Arc<SessionIndexEntry>> {
        self.lock().entries.get(session).map(|known| Arc::clone(&known.entry))
    }

    /// Whether a scan is under way.
    #[must_use]
    pub fn is_scanning(&self) -> bool {
        self.lock().scan.is_some()
    }

    /// Begins a scan: what changes from now on is newer than what it finds.
    pub(super) fn begin_scan(self: &Arc<Self>) -> ScanRight {
        let mut inner = self.lock();
        inner.scans += 1;
        let number = inner.scans;
        inner.scan = Some(ScanUnderWay {
            number,
            changed: HashSet::new(),
            looks: HashMap::new(),
            done: 0,
            total: 0,
        });
        ScanRight { index: Arc::clone(self), number }
    }

    /// A session was created or changed: this is its entry, with its latest turn looked at when its
    /// log had come to `offset`. A later look at that turn, which is here already, stays.
    pub(super) fn put(&self, mut entry: SessionIndexEntry, mut offset: u64) {
        let mut inner = self.lock();
        inner.mark(&entry.session_id);
        let known = inner.entries.get(&entry.session_id);
        if let Some(known) = known.filter(|known| known.offset > offset)
            && known.entry.latest_turn_id == entry.latest_turn_id
        {
            entry.latest_turn_status = known.entry.latest_turn_status;
            entry.waiting.clone_from(&known.entry.waiting);
            entry.error.clone_from(&known.entry.error);
            offset = known.offset;
        }
        inner.dress(&mut entry);
        let (session, entry) = (entry.session_id.clone(), Arc::new(entry));
        let known = Known { entry: Arc::clone(&entry), offset };
        inner.entries.insert(session.clone(), known);
        self.tell(IndexChange::Session { session, entry: Some(entry) });
    }

    /// A session was deleted.
    pub(super) fn remove(&self, session: &SessionId) {
        let mut inner = self.lock();
        inner.mark(session);
        inner.unsent.remove(session);
        if inner.entries.remove(session).is_some() {
            self.tell(IndexChange::Session { session: session.clone(), entry: None });
        }
    }

    /// Shows why the last message was not delivered, where nothing new is known of how many wait.
    /// Called under the lock on what waits.
    pub(super) fn set_last_error(&self, session: &SessionId, last_error: Option<String>) {
        let count = self.lock().unsent.get(session).map_or(0, |known| known.count);
        self.set_unsent(session, Unsent { count, last_error });
    }

    /// So much waits to be sent in a session.
    pub(super) fn set_unsent(&self, session: &SessionId, unsent: Unsent) {
        let mut inner = self.lock();
        if unsent == Unsent::default() {
            inner.unsent.remove(session);
        } else {
            inner.unsent.insert(session.clone(), unsent);
        }
        let Some(known) = inner.entries.get(session) else { return };
        let mut entry = SessionIndexEntry::clone(&known.entry);
        inner.dress(&mut entry);
        let Some(known) = inner.entries.get_mut(session).filter(|it| *it.entry != entry) else {
            return;
        };
        known.entry = Arc::new(entry);
        let entry = Some(Arc::clone(&known.entry));
        self.tell(IndexChange::Session { session: session.clone(), entry });
    }

    /// A turn came to rest, or to something that a person should see. Counts only while the turn is
    /// the latest of its session and the look is newer than the last; never brings a session back.
    pub(super) fn observe(&self, session: &SessionId, turn: &TurnState, offset: u64) {
        let mut inner = self.lock();
        let Inner { entries, scan, .. } = &mut *inner;
        let Some(known) = entries.get_mut(session) else {
            if let Some(scan) = scan {
                scan.keep(session, Look { turn: turn.clone(), offset });
            }
            return;
        };
        if known.look(turn, offset) {
            let entry = Some(Arc::clone(&known.entry));
            self.tell(IndexChange::Session { session: session.clone(), entry });
        }
        inner.mark(session);
    }

    fn tell(&self, change: IndexChange) {
        // Nobody following is no error.
        drop(self.changes.send(change));
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ScanRight {
    /// There are so many sessions to read.
    pub(super) fn expect(&self, total: usize) {
        if let Some(scan) = self.index.lock().scan_of(self.number) {
            scan.total = total;
        }
    }

    /// Takes in what was found of some sessions, but for those that changed meanwhile.
    pub(super) fn take(&self, found: Vec<Option<Scanned>>) {
        let mut inner = self.index.lock();
        let Some(mut scan) = inner.scan.take_if(|scan| scan.number == self.number) else { return };
        scan.done += found.len();
        let mut taken = Vec::with_capacity(found.len());
        for Scanned { mut entry, offset } in found.into_iter().flatten() {
            let session = entry.session_id.clone();
            if scan.changed.contains(&session) {
                continue;
            }
            inner.dress(&mut entry);
            let mut known = Known { entry: Arc::new(entry), offset };
            if let Some(look) = scan.looks.remove(&session) {
                known.look(&look.turn, look.offset);
            }
            taken.push(Arc::clone(&known.entry));
            inner.entries.insert(session, known);
        }
        let ScanUnderWay { done, total, .. } = scan;
        inner.scan = Some(scan);
        self.index.tell(IndexChange::Scanned { entries: taken, done, total });
    }

    /// Ends the scan.
    pub(super) fn end(&self, error: Option<String>) {
        let mut inner = self.index.lock();
        if inner.scan.take_if(|scan| scan.number == self.number).is_some() {
            self.index.tell(IndexChange::ScanEnded { error });
        }
    }
}

impl Drop for ScanRight {
    fn drop(&mut self) {
        self.end(None);
    }
}

impl Inner {
    /// Puts into an entry what no log says.
    fn dress(&self, entry: &mut SessionIndexEntry) {
        let unsent = self.unsent.get(&entry.session_id).cloned().unwrap_or_default();
        entry.unsent = unsent.count;
        entry.last_error = unsent.last_error;
    }

    fn mark(&mut self, session: &SessionId) {
        if let Some(scan) = &mut self.scan {
            scan.changed.insert(session.clone());
            scan.looks.remove(session);
        }
    }

    fn scan_of(&mut self, number: u64) -> Option<&mut ScanUnderWay> {
        self.scan.as_mut().filter(|scan| scan.number == number)
    }
}

impl ScanUnderWay {
    fn keep(&mut self, session: &SessionId, look: Look) {
        let older = |kept: &Look| (&kept.turn.id, kept.offset) < (&look.turn.id, look.offset);
        if !self.changed.contains(session) && self.looks.get(session).is_none_or(older) {
            self.looks.insert(session.clone(), look);
        }
    }
}

impl Known {
    /// Takes over what a look at a turn says, if that is news; says whether anything changed.
    fn look(&mut self, turn: &TurnState, offset: u64) -> bool {
        let latest: Option<&TurnId> = self.entry.latest_turn_id.as_ref();
        if latest != Some(&turn.id) || offset <= self.offset {
            return false;
        }
        self.offset = offset;
        let mut entry = SessionIndexEntry::clone(&self.entry);
        entry.observe(turn);
        let changed = entry != *self.entry;
        if changed {
            self.entry = Arc::new(entry);
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::session::entry::LatestTurnStatus;
    use crate::domain::turn::event::{ResultSource, TurnFact};
    use crate::domain::turn::status::TurnStatus::{self, Cancelled, Idle, Suspended};
    use crate::testing::fact::{ask, calls, cancel, created, request, result_from};
    use crate::testing::log::{Log, SESSION, TURN};
    use crate::testing::session_fact::{appended, header, titled};

    fn session() -> SessionId {
        SessionId::from(SESSION)
    }

    /// Three looks at one turn, each after the one before, with their offsets.
    fn looks() -> [(TurnState, u64); 3] {
        let begun = Log::<TurnFact>::turn(created()).then(request(0, "input"));
        let asks = begun.clone().then(calls(0, "c1:write-file")).then(ask("c1:write-file"));
        let runtime = ResultSource::Runtime;
        let ended = asks.clone().then(result_from("c1:write-file", runtime)).then(cancel());
        [begun, asks, ended].map(|log| (log.state(), log.events().len() as u64))
    }

    /// The entry of a session with that turn, as it stood at a look.
    fn entry_at(title: &str, look: &(TurnState, u64)) -> Scanned {
        let session = Log::session(header()).then(appended(1, TURN)).then(titled(title)).state();
        Scanned { entry: SessionIndexEntry::new(&session, Some(&look.0)), offset: look.1 }
    }

    fn put(index: &Index, Scanned { entry, offset }: Scanned) {
        index.put(entry, offset);
    }

    fn observe(index: &Index, (turn, offset): &(TurnState, u64)) {
        index.observe(&session(), turn, *offset);
    }

    fn check(index: &Index, title: &str, status: TurnStatus) {
        let entry = index.get(&session()).expect("the session is there");
        let found = (entry.title.as_deref(), entry.latest_turn_status);
        assert_eq!(found, (Some(title), LatestTurnStatus::Turn(status)));
        assert_eq!(entry.waiting.len(), usize::from(status == Suspended));
    }

    #[test]
    fn a_late_look_never_takes_an_entry_back() {
        let [begun, asks, ended] = &looks();
        let index = Index::new();
        put(&index, entry_at("new", begun));
        observe(&index, ended);
        observe(&index, asks);
        check(&index, "new", Cancelled);
        put(&index, entry_at("renamed", asks));
        check(&index, "renamed", Cancelled);
        index.remove(&session());
        observe(&index, ended);
        assert_eq!(index.list(), []);
    }

    #[test]
    fn a_scan_never_replaces_or_revives_what_changed_meanwhile() {
        let [begun, asks, ended] = &looks();
        let index = Arc::new(Index::new());
        let scan = index.begin_scan();
        put(&index, entry_at("new", ended));
        scan.take(vec![Some(entry_at("old", asks))]);
        check(&index, "new", Cancelled);
        index.remove(&session());
        scan.take(vec![Some(entry_at("old", begun))]);
        assert_eq!(index.list(), []);
        scan.end(None);
        let scan = index.begin_scan();
        scan.take(vec![Some(entry_at("old", begun))]);
        check(&index, "old", Idle);
    }

    #[test]
    fn a_look_at_what_a_scan_has_not_come_to_counts_when_it_comes() {
        let [begun, asks, ended] = &looks();
        for (found, status) in [(begun, Suspended), (ended, Cancelled)] {
            let index = Arc::new(Index::new());
            let scan = index.begin_scan();
            observe(&index, asks);
            assert_eq!(index.list(), []);
            scan.take(vec![Some(entry_at("found", found))]);
            check(&index, "found", status);
        }
    }

    #[test]
    fn what_a_scan_finds_after_its_end_is_ignored() {
        let [begun, ..] = &looks();
        let index = Arc::new(Index::new());
        let (first, second) = (index.begin_scan(), index.begin_scan());
        first.take(vec![Some(entry_at("first", begun))]);
        first.end(None);
        assert!(index.is_scanning() && index.list().is_empty());
        second.take(vec![Some(entry_at("second", begun))]);
        second.end(None);
        second.take(vec![Some(entry_at("third", begun))]);
        assert!(!index.is_scanning());
        check(&index, "second", Idle);
    }

    #[test]
    fn every_change_is_told_in_its_order() {
        let [begun, asks, _] = &looks();
        let index = Arc::new(Index::new());
        let mut changes = index.follow();
        let scan = index.begin_scan();
        scan.expect(1);
        scan.take(vec![Some(entry_at("one", begun))]);
        observe(&index, asks);
        observe(&index, asks);
        put(&index, entry_at("two", asks));
        index.remove(&session());
        index.remove(&session());
        scan.end(Some("the rest is lost".to_owned()));
        let told = std::iter::from_fn(|| changes.try_recv().ok()).map(|change| match change {
            IndexChange::Session { entry: None, .. } => "gone".to_owned(),
            IndexChange::Session { entry: Some(entry), .. } => {
                let Some(title) = &entry.title else { panic!("every entry here has a title") };
                format!("{title}, {} wait", entry.waiting.len())
            }
            IndexChange::Scanned { entries, done, total } => {
                format!("scanned {} ({done} of {total})", entries.len())
            }
            IndexChange::ScanEnded { error } => format!("ended: {}", error.unwrap_or_default()),
        });
        assert_eq!(
            told.collect::<Vec<_>>(),
            ["scanned 1 (1 of 1)", "one, 1 wait", "two, 1 wait", "gone", "ended: the rest is lost"]
        );
    }
}
