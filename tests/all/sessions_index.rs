//! The index and what it tells, by the numbers of `spec/session-layer.md` section 13, on a scripted
//! runtime.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast;
use turnstile::base::id::{SessionId, ToolCallId, TurnId};
use turnstile::domain::session::entry::{LatestTurnStatus, SessionIndexEntry};
use turnstile::domain::session::event::Origin;
use turnstile::domain::turn::event::Decision;
use turnstile::domain::turn::live::{LiveEvent, News};
use turnstile::domain::turn::status::TurnStatus;
use turnstile::runtime::hub::{Interest, Received};
use turnstile::sessions::api::NewSession;
use turnstile::sessions::error::SessionError;
use turnstile::sessions::index::IndexChange;
use turnstile::store::jsonl::Options;
use turnstile::store::log::{LogId, LogKind};
use turnstile::testing::gate::Gate;
use turnstile::testing::sessions::SessionWorld;
use turnstile::testing::store::Home;
use turnstile::testing::turns::{Script, answering, asking, questioning};

/// What somebody who follows the changes has arrived at.
#[derive(Default)]
struct Follower(BTreeMap<SessionId, Arc<SessionIndexEntry>>);

impl Follower {
    fn follow(&mut self, changes: &mut broadcast::Receiver<IndexChange>) -> usize {
        let mut count = 0;
        while let Ok(change) = changes.try_recv() {
            count += 1;
            match change {
                IndexChange::Session { session, entry: Some(entry) } => {
                    assert_eq!(session, entry.session_id);
                    self.0.insert(session, entry);
                }
                IndexChange::Session { session, entry: None } => drop(self.0.remove(&session)),
                IndexChange::Scanned { entries, .. } => {
                    let entries = entries.into_iter();
                    self.0.extend(entries.map(|entry| (entry.session_id.clone(), entry)));
                }
                IndexChange::ScanEnded { error } => assert_eq!(error, None),
            }
        }
        count
    }

    fn list(&self) -> Vec<Arc<SessionIndexEntry>> {
        self.0.values().cloned().collect()
    }
}

fn status(world: &SessionWorld, session: &SessionId) -> LatestTurnStatus {
    world.entry(session).latest_turn_status
}

#[tokio::test]
async fn s13_6_the_scan_finds_what_was_written_through() {
    let home = Home::new();
    let worlds =
        [SessionWorld::new(), SessionWorld::over(Arc::new(home.store(Options::default())))];
    for world in worlds {
        let (empty, named) = (world.session().await, world.session().await);
        world.clock.pass(Duration::from_millis(5));
        world.sessions.set_title(&named, "Named before its first turn").await.expect("named");
        for script in [answering("Done."), Script::new().fail(), asking(), questioning()] {
            let session = world.session().await;
            world.clock.pass(Duration::from_millis(7));
            world.run(&session, answering("Before.")).await;
            world.run(&session, script).await;
            world.clock.pass(Duration::from_secs(1));
            world.sessions.set_title(&session, "Renamed").await.expect("named");
        }
        let gone = world.session().await;
        world.sessions.delete_session(&gone).await.expect("deleted");
        let list = world.sessions.list_sessions();
        assert_eq!(list.len(), 6);
        assert!(list.is_sorted_by_key(|entry| entry.session_id.clone()));
        assert_eq!(list[0].session_id, empty);
        assert_eq!(world.scanned().await, list);
    }
}

#[tokio::test]
async fn s13_6_every_status_is_derived_from_the_latest_turn() {
    let world = SessionWorld::new();
    let (session, gate) = (world.session().await, Gate::new());
    assert_eq!(status(&world, &session), LatestTurnStatus::None);
    let check = |expected| {
        assert_eq!(status(&world, &session), LatestTurnStatus::Turn(expected));
    };
    let turn = world.send(&session, Script::new().gate(&gate).answer("Done.")).await;
    check(TurnStatus::Idle);
    gate.open();
    world.rested(&turn).await;
    check(TurnStatus::Completed);
    world.run(&session, Script::new().fail()).await;
    check(TurnStatus::Failed);
    let turn = world.run(&session, asking()).await;
    check(TurnStatus::Suspended);
    world.sessions.stop_turn(&turn, None).await.expect("stopped");
    check(TurnStatus::Cancelled);
    let turn = world.run(&session, questioning()).await;
    check(TurnStatus::Suspended);
    assert_eq!(world.entry(&session).waiting[0].turn, turn);
    // Outstanding work decides, not whether the suspension was written before a crash.
    world.sessions.stop_turn(&turn, None).await.expect("stopped");
    let script = Script::new().calls("c1:write-file").ask("c1:write-file").break_down();
    world.run(&session, script).await;
    check(TurnStatus::Suspended);
    assert_eq!(world.scanned().await, world.sessions.list_sessions());
}

#[tokio::test]
async fn s13_6_a_damaged_file_makes_an_errored_entry_and_stops_nothing() {
    let home = Home::new();
    let world = SessionWorld::over(Arc::new(home.store(Options::default())));
    let [whole, bad_session, bad_turn, no_turn] = [
        world.session().await,
        world.session().await,
        world.session().await,
        world.session().await,
    ];
    let mut turns = Vec::new();
    for session in [&whole, &bad_session, &bad_turn, &no_turn] {
        turns.push(world.run(session, answering("Done.")).await);
    }
    let file = |kind, id: &str| home.file(&LogId::new(kind, id).expect("valid"));
    let spoil = |path: &std::path::Path| {
        let text = fs::read_to_string(path).expect("there");
        fs::write(path, text.replacen("\"type\":\"", "\"type\":\"no_", 2)).expect("written");
    };
    spoil(&file(LogKind::Session, bad_session.as_str()));
    spoil(&file(LogKind::Turn, turns[2].as_str()));
    fs::remove_file(file(LogKind::Turn, turns[3].as_str())).expect("removed");

    let next = SessionWorld::over(Arc::new(home.store(Options::default())));
    next.sessions.scan().await.expect("scanned");
    assert_eq!(next.sessions.list_sessions().len(), 4);
    assert_eq!(next.entry(&whole), world.entry(&whole));
    let damaged = next.entry(&bad_session);
    assert!(damaged.error.as_ref().is_some_and(|error| error.contains("corrupt at line 1")));
    assert_eq!((damaged.turn_count, damaged.title), (0, None));
    assert_eq!(damaged.created_at, world.entry(&bad_session).created_at, "by its id");
    for (session, why) in [(&bad_turn, "corrupt at line 1"), (&no_turn, "there is no turn")] {
        let entry = next.entry(session);
        let error = entry.error.clone().expect("it is damaged");
        assert!(error.contains(why), "{error}");
        let known = SessionIndexEntry { error: None, ..entry };
        let expected = SessionIndexEntry {
            latest_turn_status: LatestTurnStatus::Turn(TurnStatus::Idle),
            ..world.entry(session)
        };
        assert_eq!(known, expected, "the session's own fields hold");
    }

    // Only inspection, export and deletion work on them.
    for session in [&bad_session, &bad_turn, &no_turn] {
        assert!(next.try_send(session, "Go.").await.is_err());
        assert!(next.sessions.resume_turn(session).await.is_err());
        assert!(next.sessions.set_title(session, "x").await.is_err());
        next.sessions.delete_session(session).await.expect("deleted");
    }
    assert_eq!(next.turns.created().len(), 0);
    assert_eq!(next.sessions.list_sessions(), [Arc::new(next.entry(&whole))]);
}

#[tokio::test]
async fn what_is_no_file_or_lies_in_a_wrong_folder_is_an_errored_entry_with_a_remedy() {
    let home = Home::new();
    let world = SessionWorld::over(Arc::new(home.store(Options::default())));
    let file = |session: &SessionId| home.file(&LogId::session(session).expect("valid"));
    let (whole, pipe, moved) =
        (world.session().await, world.session().await, world.session().await);
    fs::remove_file(file(&pipe)).expect("removed");
    rustix::fs::mkfifoat(rustix::fs::CWD, file(&pipe), rustix::fs::Mode::RWXU).expect("a pipe");
    let folder = home.work_dir().logs(LogKind::Session).join("2020/02/02");
    let found = folder.join(file(&moved).file_name().expect("a name"));
    fs::create_dir_all(&folder).expect("a folder");
    fs::rename(file(&moved), &found).expect("moved");

    let next = SessionWorld::over(Arc::new(home.store(Options::default())));
    let mut changes = next.sessions.index().follow();
    next.sessions.scan().await.expect("scanned");
    assert_eq!(next.sessions.list_sessions().len(), 3);
    assert_eq!(next.entry(&whole).error, None);
    let error = |session| next.entry(session).error.expect("it is damaged");
    let (pipe_is, moved_is) = (error(&pipe), error(&moved));
    let pipe_file = file(&pipe).display().to_string();
    assert!(pipe_is.contains(&pipe_file) && pipe_is.contains("move it away"), "{pipe_is}");
    let (from, to) = (found.display(), file(&moved));
    let remedy = format!("lies in {from}; move it to {}", to.display());
    assert!(moved_is.ends_with(&remedy), "{moved_is}");
    let mut last = None;
    while let Ok(IndexChange::Scanned { done, total, .. }) = changes.try_recv() {
        last = Some((done, total));
    }
    assert_eq!(last, Some((3, 3)));
    fs::rename(found, file(&moved)).expect("moved back");
    next.sessions.scan().await.expect("scanned");
    assert_eq!(next.entry(&moved).error, None);
}

#[tokio::test]
async fn s13_6_every_mutation_is_told_and_a_follower_arrives_at_the_index() {
    let world = SessionWorld::new();
    let mut changes = world.sessions.index().follow();
    let mut follower = Follower::default();
    let mut told = |what: &str| {
        assert!(follower.follow(&mut changes) > 0, "{what} was not told");
        assert_eq!(follower.list(), world.sessions.list_sessions(), "after {what}");
    };
    let session = world.session().await;
    told("the creation");
    let turn = world.run(&session, asking()).await;
    told("the turn and its rest");
    world.sessions.set_title(&session, "Renamed").await.expect("named");
    told("the new name");
    world.sessions.stop_turn(&turn, None).await.expect("stopped");
    told("the end");
    world.sessions.delete_session(&session).await.expect("deleted");
    told("the deletion");
    assert_eq!(world.sessions.list_sessions(), []);
    world.sessions.restore_session(&session).await.expect("restored");
    told("the restoration");
    assert_eq!(world.sessions.list_sessions().len(), 1);
}

#[tokio::test]
async fn s13_6_deletion_removes_the_entry_and_tells_it_once() {
    let world = SessionWorld::new();
    let session = world.session().await;
    let mut changes = world.sessions.index().follow();
    world.sessions.delete_session(&session).await.expect("deleted");
    let gone = IndexChange::Session { session: session.clone(), entry: None };
    assert_eq!(changes.try_recv().expect("told"), gone);
    assert!(changes.try_recv().is_err());
    let again = world.sessions.delete_session(&session).await;
    assert!(matches!(again, Err(SessionError::Store(_))), "{again:?}");
    assert!(changes.try_recv().is_err());
}

#[tokio::test]
async fn s13_7_what_is_told_carries_its_session_and_comes_in_order() {
    let world = SessionWorld::new();
    let all = world.turns.hub().subscribe(Interest::Everything);
    let (one, two) = (world.session().await, world.session().await);
    let turns =
        [(world.run(&one, asking()).await, one), (world.run(&two, answering("Done.")).await, two)];
    world.turns.then(Script::new().deny("c1").answer("Done."));
    let call = ToolCallId::from("c1");
    let decision = Decision::Deny;
    let decided = world.sessions.respond_to_permission(&turns[0].0, &call, decision, None).await;
    decided.expect("decided");
    world.rested(&turns[0].0).await;
    let mut told: BTreeMap<TurnId, Vec<u64>> = BTreeMap::new();
    while let Some(received) = all.try_next() {
        let Received::Event(LiveEvent { session, turn, news }) = received else {
            panic!("nothing is missed in a short test");
        };
        let of = turns.iter().find(|(id, _)| *id == turn).map(|(_, session)| session);
        assert_eq!(session.as_ref(), of);
        if let News::Recorded { offset, event } = news {
            assert_eq!(event.id, turn);
            told.entry(turn).or_default().push(offset);
        }
    }
    for (turn, _) in &turns {
        let recorded = world.turn_repo.read(turn).await.expect("readable").events.len() as u64;
        assert_eq!(told[turn], (1..=recorded).collect::<Vec<_>>(), "without a gap, over its rests");
    }
}

#[tokio::test]
async fn s13_7_a_rest_updates_the_latest_turn_s_status() {
    let world = SessionWorld::new();
    let session = world.session().await;
    let mut changes = world.sessions.index().follow();
    world.run(&session, answering("Done.")).await;
    let mut statuses = Vec::new();
    while let Ok(IndexChange::Session { entry: Some(entry), .. }) = changes.try_recv() {
        statuses.push(entry.latest_turn_status);
    }
    let expected = [TurnStatus::Idle, TurnStatus::Completed].map(LatestTurnStatus::Turn);
    assert_eq!(statuses, expected);
}

#[tokio::test]
async fn a_late_rest_of_an_earlier_turn_changes_nothing() {
    let world = SessionWorld::new();
    let (session, late) = (world.session().await, Gate::new());
    let first = world.run(&session, asking()).await;
    // An answer to the first turn is on its way while that ends and the next one begins.
    world.turns.stop_arrival(&late);
    let call = ToolCallId::from("c1");
    let decision = Decision::Allow;
    let answer = world.sessions.respond_to_permission(&first, &call, decision, None);
    let rest = async {
        late.reached().await;
        world.turns.end(&first).await;
        let second = world.run(&session, questioning()).await;
        let before = world.entry(&session);
        late.open();
        (second, before)
    };
    let (answered, (second, before)) = tokio::join!(answer, rest);
    assert!(answered.is_err(), "{answered:?}");
    world.rested(&first).await;
    assert_eq!(world.entry(&session), before);
    assert_eq!(before.latest_turn_id, Some(second));
    assert_eq!(world.scanned().await, world.sessions.list_sessions());
}

#[tokio::test]
async fn what_is_done_before_the_scan_comes_to_it_is_in_the_index() {
    let world = SessionWorld::new();
    let [named, answered, deleted] =
        [world.session().await, world.session().await, world.session().await];
    let turn = world.run(&answered, asking()).await;
    let next = world.restarted();
    // Everything here happens while the index is empty.
    let call = ToolCallId::from("c1");
    let decision = Decision::Deny;
    next.turns.then(Script::new().deny("c1").answer("Done."));
    let (scanned, ()) = tokio::join!(next.sessions.scan(), async {
        next.sessions.set_title(&named, "Named").await.expect("named");
        let decided = next.sessions.respond_to_permission(&turn, &call, decision, None).await;
        decided.expect("decided");
        next.sessions.delete_session(&deleted).await.expect("deleted");
        next.rested(&turn).await;
    });
    scanned.expect("scanned");
    assert_eq!(next.sessions.list_sessions().len(), 2);
    assert_eq!(next.scanned().await, next.sessions.list_sessions());
    assert_eq!(status(&next, &answered), LatestTurnStatus::Turn(TurnStatus::Completed));
}

#[tokio::test]
async fn what_a_session_was_spawned_from_is_in_its_entry() {
    let world = SessionWorld::new();
    let parent = world.session().await;
    let new = NewSession {
        parent_session: Some(parent.clone()),
        origin: Some(Origin::Subagent),
        delegation_depth: Some(1),
        ..NewSession::default()
    };
    let child = world.sessions.create_session(new).await.expect("created");
    world.run(&child, answering("Done.")).await;
    let entry = world.entry(&child);
    assert_eq!((entry.parent_session, entry.origin), (Some(parent), Some(Origin::Subagent)));
    let header = world.sessions.get_session(&child).await.expect("readable").header;
    assert_eq!(header.delegation_depth, Some(1));
    assert_eq!(world.scanned().await, world.sessions.list_sessions());
}

#[tokio::test]
async fn a_scan_that_cannot_list_says_so_and_leaves_nothing_behind() {
    let home = Home::new();
    let world = SessionWorld::over(Arc::new(home.store(Options::default())));
    let mut changes = world.sessions.index().follow();
    let folder = home.work_dir().logs(LogKind::Session);
    fs::remove_dir_all(&folder).expect("removed");
    fs::write(&folder, "in the way").expect("written");
    assert!(world.sessions.scan().await.is_err());
    let ended = changes.try_recv().expect("told");
    assert!(matches!(ended, IndexChange::ScanEnded { error: Some(_) }), "{ended:?}");
    assert!(!world.sessions.index().is_scanning());
}

#[tokio::test]
async fn a_name_changes_no_activity() {
    let world = SessionWorld::new();
    let session = world.session().await;
    world.run(&session, answering("Done.")).await;
    let before = world.entry(&session);
    world.clock.pass(Duration::from_mins(1));
    world.sessions.set_title(&session, "Renamed").await.expect("named");
    let after = world.entry(&session);
    assert_eq!(after.active_at, before.active_at);
    assert!(after.updated_at > before.updated_at);
}
