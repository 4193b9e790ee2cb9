//! The reducer and the repository of sessions, by the numbers of `spec/session-layer.md` section 13.
//! Each refusal has a test of its own beside the reducer's; here stands that the session layer's own
//! files are held to all of them.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use turnstile::base::id::SessionId;
use turnstile::base::tasks::Tasks;
use turnstile::domain::session::apply::{SessionRefusal, reduce_session};
use turnstile::domain::session::event::{SessionCreated, SessionEvent, SessionFact};
use turnstile::store::cache::CacheBounds;
use turnstile::store::error::StoreError;
use turnstile::store::jsonl::Options;
use turnstile::store::log::{LogId, LogKind};
use turnstile::store::seam::Durability;
use turnstile::store::session_repo::SessionRepo;
use turnstile::testing::log::{Log, SESSION};
use turnstile::testing::session_fact::{appended, header, titled};
use turnstile::testing::store::{Home, memory_store};

fn id() -> SessionId {
    SessionId::from(SESSION)
}

fn begun() -> Log<SessionFact> {
    Log::session(header())
}

fn repo_in(home: &Home) -> SessionRepo {
    let store = Arc::new(home.store(Options::default()));
    SessionRepo::new(store, Tasks::new(), CacheBounds::default())
}

fn file_in(home: &Home, id: &str) -> PathBuf {
    home.file(&LogId::new(LogKind::Session, id).expect("a valid id"))
}

/// Where the events of a log cannot follow one another.
fn refused_at(events: &[SessionEvent]) -> Option<usize> {
    reduce_session(events).err().map(|corruption| corruption.number)
}

#[test]
fn s13_1_valid_sequences_reduce_to_what_they_say() {
    let log = begun().then(appended(1, "t1")).then(titled("Watcher")).then(appended(2, "t2"));
    let state = log.state();
    let turns = state.turns.iter().map(|turn| (turn.id.as_str(), turn.session_seq));
    assert_eq!(turns.collect::<Vec<_>>(), [("t1", 1), ("t2", 2)]);
    assert_eq!(state.latest().map(|turn| turn.id.as_str()), Some("t2"));
    assert_eq!(state.title.as_deref(), Some("Watcher"));
    assert_eq!((state.created_at, state.updated_at), (log.events()[0].ts, log.events()[3].ts));
}

#[test]
fn s13_1_every_violation_is_refused() {
    let foreign = SessionEvent { id: SessionId::from("another"), ..begun().next(titled("x")) };
    let with = |event: SessionEvent| [begun().into_events(), vec![event]].concat();
    let two = || begun().then(appended(1, "t1"));
    let future = SessionCreated { schema_version: 3, ..header() };
    assert_eq!(refused_at(&[]), Some(1), "no session_created");
    assert_eq!(refused_at(Log::empty(id()).then(titled("x")).events()), Some(1), "another first");
    let again = begun().then(SessionFact::Created(header().into()));
    assert_eq!(refused_at(again.events()), Some(2), "session_created twice");
    assert_eq!(refused_at(&with(foreign)), Some(2), "another session");
    for seq in [0, 1, 3] {
        assert_eq!(refused_at(two().then(appended(seq, "t2")).events()), Some(3), "seq {seq}");
    }
    assert_eq!(refused_at(two().then(appended(2, "t1")).events()), Some(3), "a turn twice");
    assert_eq!(refused_at(Log::session(future).events()), Some(1), "an unknown version");
}

#[test]
fn s13_1_titles_fold_to_the_last_one() {
    assert_eq!(begun().state().title, None);
    let titled_header = SessionCreated { title: Some("First".to_owned()), ..header() };
    let log = Log::session(titled_header);
    assert_eq!(log.state().title.as_deref(), Some("First"));
    let log = log.then(titled("Second")).then(appended(1, "t1")).then(titled("Third"));
    assert_eq!(log.state().title.as_deref(), Some("Third"));
}

#[tokio::test]
async fn s13_2_a_session_has_a_dated_file_and_is_created_once() {
    let home = Home::new();
    let repo = repo_in(&home);
    let created = begun().into_events();
    drop(repo.create(&id(), &created).await.expect("created"));
    let path = home.work_dir().root().join(format!("storage/sessions/2026/03/04/{SESSION}.jsonl"));
    assert_eq!(file_in(&home, SESSION), path);
    assert_eq!(fs::read_to_string(&path).expect("there"), format!("{}\n", created[0].to_line()));
    let again = repo.create(&id(), &created).await;
    assert!(matches!(again, Err(StoreError::AlreadyExists(_))), "{again:?}");
    assert_eq!(repo.read(&id()).await.expect("readable").events.len(), 1);
}

#[tokio::test]
async fn s13_2_an_id_that_is_none_never_becomes_a_path() {
    let home = Home::new();
    let repo = repo_in(&home);
    for text in ["", "..", "../../etc/passwd", "2026-03-04", "2026-02-30T04-59-59Z-0000042-000"] {
        let id = SessionId::from(text);
        let event = SessionEvent { id: id.clone(), ..begun().into_events().remove(0) };
        let (created, read) = (repo.create(&id, &[event]).await, repo.read(&id).await);
        assert!(matches!(created, Err(StoreError::Id(_))), "{text:?}: {created:?}");
        assert!(matches!(read, Err(StoreError::Id(_))), "{text:?}: {read:?}");
        let deleted = repo.delete(&id).await;
        assert!(matches!(deleted, Err(StoreError::Id(_))), "{text:?}: {deleted:?}");
    }
}

#[tokio::test]
async fn s13_2_a_file_with_a_bad_line_is_rejected_whole() {
    let good = begun().then(appended(1, "t1")).then(titled("x")).into_events();
    let lines: Vec<_> = good.iter().map(SessionEvent::to_line).collect();
    let broken = [
        lines[1].replace("\"sessionSeq\":1", "\"sessionSeq\":2"),
        lines[1].replace("turn_appended", "turn_added"),
        lines[1].replace(SESSION, "2026-03-04T04-59-59Z-0000042-001"),
        lines[1].replace("\"agentId\":\"assistant\",", ""),
        "not JSON".to_owned(),
        String::new(),
    ];
    for line in broken {
        let home = Home::new();
        let repo = repo_in(&home);
        drop(repo.create(&id(), &good[..1]).await.expect("created"));
        let text = format!("{}\n{line}\n{}\n", lines[0], lines[2]);
        fs::write(file_in(&home, SESSION), &text).expect("written");
        let read = repo_in(&home).read(&id()).await;
        assert!(matches!(read, Err(StoreError::Corrupt { line: 2, .. })), "{line}: {read:?}");
        let event = begun().then(appended(1, "t1")).next(titled("y"));
        let appended = repo_in(&home).append(&id(), &[event], Durability::Barrier).await;
        assert!(appended.is_err(), "{line}");
        assert_eq!(fs::read_to_string(file_in(&home, SESSION)).expect("there"), text, "untouched");
    }
}

#[tokio::test]
async fn s13_2_an_event_that_cannot_follow_is_never_written() {
    let memory = SessionRepo::new(Arc::new(memory_store()), Tasks::new(), CacheBounds::default());
    let home = Home::new();
    for repo in [memory, repo_in(&home)] {
        drop(repo.create(&id(), begun().events()).await.expect("created"));
        let batch = [begun().next(titled("fine")), begun().next(appended(2, "t2"))];
        let refused = repo.append(&id(), &batch, Durability::Written).await;
        let Err(StoreError::Refused { line: 3, why, .. }) = refused else { panic!("{refused:?}") };
        let turn = "t2".into();
        let refusal = SessionRefusal::Place { turn, expected: 1, found: 2 };
        assert_eq!(why.to_string(), refusal.to_string());
        assert_eq!(repo.read(&id()).await.expect("readable").events.len(), 1, "all or nothing");
    }
}

#[tokio::test]
async fn a_fork_that_lacks_what_it_inherited_is_neither_written_nor_read() {
    let seeded = |seed| SessionCreated { seed_length: Some(seed), ..header() };
    let log = |seed| Log::session(seeded(seed)).then(appended(1, "t1")).then(appended(2, "t2"));
    let home = Home::new();
    let repo = repo_in(&home);
    let missing = SessionRefusal::SeedMissing { seed: 3, turns: 2 };
    let refused = repo.create(&id(), log(3).events()).await;
    let Err(StoreError::Refused { line: 1, why, .. }) = refused else { panic!("{refused:?}") };
    assert_eq!(why.to_string(), missing.to_string());
    drop(repo.create(&id(), log(2).events()).await.expect("created"));
    assert_eq!(repo.read(&id()).await.expect("readable").state.turns.len(), 2);

    let text = fs::read_to_string(file_in(&home, SESSION)).expect("there");
    let longer = text.replace("\"seedLength\":2", "\"seedLength\":3");
    fs::write(file_in(&home, SESSION), longer).expect("written");
    let read = repo_in(&home).read(&id()).await;
    let Err(StoreError::Corrupt { line: 1, why, .. }) = read else { panic!("{read:?}") };
    assert_eq!(why.to_string(), missing.to_string());
    let events = log(3).into_events();
    assert!(reduce_session(&events).is_ok(), "other readers ignore the field");
}

#[tokio::test]
async fn s13_2_ids_are_listed_over_all_dates() {
    let ids = [
        "2025-12-31T23-59-59Z-0000042-999",
        "2026-01-01T00-00-00Z-0000042-000",
        "2026-03-04T04-59-59Z-0000042-000",
    ];
    let home = Home::new();
    let repo = repo_in(&home);
    for id in [ids[2], ids[0], ids[1]] {
        let id = SessionId::from(id);
        let event = SessionEvent { id: id.clone(), ..begun().into_events().remove(0) };
        drop(repo.create(&id, &[event]).await.expect("created"));
    }
    let folder = file_in(&home, ids[0]).parent().expect("a dated folder").to_owned();
    for stray in ["notes.txt", ".x.jsonl", "2026-01-01T00-00-00Z-0000042-007.jsonl"] {
        fs::write(folder.join(stray), "").expect("written");
    }
    assert_eq!(repo_in(&home).ids().await.expect("listed"), ids.map(SessionId::from));
}

#[tokio::test]
async fn s13_2_deletion_takes_only_the_session_s_file() {
    let home = Home::new();
    let repo = repo_in(&home);
    drop(repo.create(&id(), begun().events()).await.expect("created"));
    let other = SessionId::from("2026-03-04T04-59-59Z-0000042-001");
    let event = SessionEvent { id: other.clone(), ..begun().into_events().remove(0) };
    drop(repo.create(&other, &[event]).await.expect("created"));
    repo.delete(&id()).await.expect("deleted");
    assert!(matches!(repo.read(&id()).await, Err(StoreError::NotFound(_))));
    assert!(!file_in(&home, SESSION).exists());
    assert_eq!(repo.ids().await.expect("listed"), [other]);
    assert!(matches!(repo.delete(&id()).await, Err(StoreError::NotFound(_))));
}
