//! What is said of a session beyond its turns: put away, grants, and the schema that says it.

use std::fs;
use std::sync::Arc;

use turnstile::base::id::{SessionId, TurnId};
use turnstile::domain::event::Fact as _;
use turnstile::domain::session::event::SessionFact;
use turnstile::sessions::error::SessionError;
use turnstile::store::error::StoreError;
use turnstile::store::jsonl::Options;
use turnstile::store::log::LogId;
use turnstile::testing::sessions::SessionWorld;
use turnstile::testing::store::Home;
use turnstile::testing::turns::answering;

async fn kinds(world: &SessionWorld, session: &SessionId) -> Vec<&'static str> {
    let events = world.sessions.session_events(session).await.expect("readable");
    events.iter().map(|event| event.fact.kind()).collect()
}

async fn versions(world: &SessionWorld, session: &SessionId) -> Vec<u64> {
    let events = world.sessions.session_events(session).await.expect("readable");
    let version = |fact: &SessionFact| match fact {
        SessionFact::Created(created) => Some(created.schema_version),
        SessionFact::SchemaUpgraded(upgraded) => Some(upgraded.schema_version),
        _ => None,
    };
    events.iter().filter_map(|event| version(&event.fact)).collect()
}

#[tokio::test]
async fn a_title_leaves_a_session_in_the_first_schema() {
    let world = SessionWorld::new();
    let session = world.session().await;
    world.run(&session, answering("Done.")).await;
    world.sessions.set_title(&session, "Renamed").await.expect("named");
    assert_eq!(versions(&world, &session).await, [1]);
}

#[tokio::test]
async fn the_first_newer_event_of_a_session_upgrades_it_first_and_only_once() {
    let world = SessionWorld::new();
    let session = world.session().await;
    world.sessions.set_archived(&session, true).await.expect("put away");
    let grant = world.sessions.add_grant(&session, "shell", Some("git *")).await.expect("granted");
    world.sessions.remove_grant(&session, &grant).await.expect("taken back");
    let expected = [
        "session_created",
        "schema_upgraded",
        "archived",
        "permission_grant_added",
        "permission_grant_removed",
    ];
    assert_eq!(kinds(&world, &session).await, expected);
    assert_eq!(versions(&world, &session).await, [1, 2]);
}

#[tokio::test]
async fn a_reader_of_the_first_schema_fails_at_the_upgrade_and_reads_all_before_it() {
    let home = Home::new();
    let world = SessionWorld::over(Arc::new(home.store(Options::default())));
    let session = world.session().await;
    world.run(&session, answering("Done.")).await;
    world.sessions.set_archived(&session, true).await.expect("put away");
    let file = home.file(&LogId::session(&session).expect("valid"));
    let text = fs::read_to_string(file).expect("there");
    let known = ["session_created", "turn_appended", "title_changed"];
    let is_known = |line: &&str| known.iter().any(|kind| line.contains(&format!("{kind:?}")));
    let (read, first_unknown) = (text.lines().take_while(is_known).count(), text.lines().nth(3));
    assert_eq!(read, 3);
    let line = first_unknown.expect("there is more");
    assert!(line.contains(r#""type":"schema_upgraded""#), "{line}");
    assert!(line.contains(r#""schemaVersion":2"#), "{line}");
}

#[tokio::test]
async fn a_session_is_put_away_and_taken_out_and_the_list_knows() {
    let world = SessionWorld::new();
    let session = world.session().await;
    world.run(&session, answering("Done.")).await;
    let active_at = world.entry(&session).active_at;
    for archived in [true, true, false, false] {
        world.sessions.set_archived(&session, archived).await.expect("recorded");
        assert_eq!(world.entry(&session).archived, archived);
        assert_eq!(world.scanned().await, world.sessions.list_sessions());
    }
    let said = kinds(&world, &session).await;
    let said = said.iter().filter(|kind| **kind == "archived").count();
    assert_eq!(said, 2, "what is so already is not said again");
    assert_eq!(world.entry(&session).active_at, active_at, "it does not move up");
    world.run(&session, answering("It goes on.")).await;
}

#[tokio::test]
async fn grants_have_ids_of_their_own_and_one_is_taken_back_once() {
    let world = SessionWorld::new();
    let session = world.session().await;
    let all = world.sessions.add_grant(&session, "shell", None).await.expect("granted");
    let some = world.sessions.add_grant(&session, "shell", Some("git *")).await.expect("granted");
    assert_ne!(all, some);
    world.sessions.remove_grant(&session, &all).await.expect("taken back");
    let state = world.sessions.get_session(&session).await.expect("readable");
    let left: Vec<_> =
        state.grants.iter().map(|it| (&it.grant_id, &*it.tool_id, it.pattern.as_deref())).collect();
    assert_eq!(left, [(&some, "shell", Some("git *"))]);
    let again = world.sessions.remove_grant(&session, &all).await;
    assert!(matches!(again, Err(SessionError::Store(StoreError::Refused { .. }))), "{again:?}");
}

#[tokio::test]
async fn a_session_with_a_damaged_turn_takes_no_facts() {
    let home = Home::new();
    let world = SessionWorld::over(Arc::new(home.store(Options::default())));
    let session = world.session().await;
    let turn: TurnId = world.run(&session, answering("Done.")).await;
    fs::write(home.file(&LogId::turn(&turn).expect("valid")), "{}\n").expect("damaged");
    let world = SessionWorld::over(Arc::new(home.store(Options::default())));
    let before = kinds(&world, &session).await;
    let (sessions, id) = (&world.sessions, &session);
    let refused = [
        sessions.set_archived(id, true).await,
        sessions.add_grant(id, "shell", None).await.map(drop),
    ];
    for refused in refused {
        assert!(matches!(refused, Err(SessionError::Read(_))), "{refused:?}");
    }
    assert_eq!(kinds(&world, &session).await, before);
}
