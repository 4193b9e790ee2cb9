//! Forks: what a fork has of the other session, what it has not, and what is refused.

use std::fs;
use std::sync::Arc;

use turnstile::base::id::{SessionId, TurnId};
use turnstile::domain::event::{Event, Fact as _};
use turnstile::domain::session::event::{SessionEvent, SessionFact};
use turnstile::domain::turn::event::{ContextRef, TurnContext};
use turnstile::domain::turn::status::TurnStatus;
use turnstile::sessions::error::{SessionError, Standing};
use turnstile::store::jsonl::Options;
use turnstile::store::log::LogId;
use turnstile::store::seam::Durability;
use turnstile::testing::disk::{EIO, Fault, Plan};
use turnstile::testing::session_fact::compacted;
use turnstile::testing::sessions::SessionWorld;
use turnstile::testing::store::Home;
use turnstile::testing::turns::{Script, answering, asking};

async fn events(world: &SessionWorld, session: &SessionId) -> Vec<Arc<SessionEvent>> {
    world.sessions.session_events(session).await.expect("readable")
}

async fn kinds(world: &SessionWorld, session: &SessionId) -> Vec<&'static str> {
    events(world, session).await.iter().map(|event| event.fact.kind()).collect()
}

async fn turns(world: &SessionWorld, session: &SessionId) -> Vec<TurnId> {
    let state = world.sessions.get_session(session).await.expect("readable");
    state.turns.iter().map(|turn| turn.id.clone()).collect()
}

async fn fork(world: &SessionWorld, session: &SessionId, at: Option<&TurnId>) -> SessionId {
    world.sessions.fork_session(session, at).await.expect("forked")
}

/// Adds facts to a session behind the layer's back.
async fn add(world: &SessionWorld, session: &SessionId, facts: Vec<SessionFact>) {
    let ts = world.sessions.get_session(session).await.expect("readable").updated_at;
    let event = |fact| Event { id: session.clone(), ts, fact };
    let events: Vec<_> = facts.into_iter().map(event).collect();
    world.repo.append(session, &events, Durability::Barrier).await.expect("appended");
}

#[tokio::test]
async fn a_fork_has_the_turns_up_to_its_place_and_goes_on_from_there() {
    let world = SessionWorld::new();
    let session = world.session().await;
    let first = world.run(&session, answering("One.")).await;
    let second = world.run(&session, Script::new().fail()).await;
    world.run(&session, answering("Three.")).await;
    world.clock.pass(std::time::Duration::from_mins(1));

    let fork = fork(&world, &session, Some(&second)).await;
    let (source, copied) = (events(&world, &session).await, events(&world, &fork).await);
    let SessionFact::Created(header) = &copied[0].fact else { panic!("{copied:?}") };
    let SessionFact::Created(original) = &source[0].fact else { panic!("{source:?}") };
    assert_eq!((header.schema_version, header.seed_length), (1, Some(2)));
    assert_eq!((&header.parent_session, &header.cwd), (&Some(session.clone()), &original.cwd));
    assert_eq!(header.title.as_deref(), Some("Look at the watcher."));
    let appended = |events: &[Arc<SessionEvent>]| {
        let facts = events.iter().map(|event| event.fact.clone());
        facts.filter(|fact| fact.kind() == "turn_appended").collect::<Vec<_>>()
    };
    assert_eq!(appended(&copied), appended(&source)[..2], "seq, agent and model are kept");
    assert!(copied.iter().all(|event| event.id == fork && event.ts == copied[0].ts));
    assert!(copied[0].ts > source.last().expect("some").ts, "the lines are of the fork's time");

    let next = world.run(&fork, answering("Instead.")).await;
    assert_eq!(turns(&world, &fork).await, [first, second.clone(), next]);
    let context = world.turns.created().pop().expect("created").context;
    assert_eq!(context, TurnContext::Previous(ContextRef { previous_turn_id: second }));
    assert_eq!(turns(&world, &session).await.len(), 3, "the other one is as it was");
    assert_eq!(world.scanned().await, world.sessions.list_sessions());
}

#[tokio::test]
async fn a_fork_before_the_first_turn_has_none_and_is_called_after_its_own() {
    let world = SessionWorld::new();
    let session = world.session().await;
    world.run(&session, answering("One.")).await;
    let fork = fork(&world, &session, None).await;
    assert_eq!(kinds(&world, &fork).await, ["session_created"]);
    let state = world.sessions.get_session(&fork).await.expect("readable");
    assert_eq!(
        (state.header.seed_length, state.header.parent_session.as_ref()),
        (None, Some(&session))
    );
    assert_eq!(state.title, None);
    world.turns.then(answering("Instead."));
    let turn = world.try_send(&fork, "Look elsewhere.").await.expect("sent");
    world.rested(&turn).await;
    assert_eq!(world.entry(&fork).title.as_deref(), Some("Look elsewhere."));
    let context = world.turns.created().pop().expect("created").context;
    assert_eq!(context, TurnContext::Inline(Vec::new()));
    assert_eq!(world.scanned().await, world.sessions.list_sessions());
}

#[tokio::test]
async fn a_fork_of_a_fork_has_the_turns_of_both() {
    let world = SessionWorld::new();
    let session = world.session().await;
    let first = world.run(&session, answering("One.")).await;
    let child = fork(&world, &session, Some(&first)).await;
    let second = world.run(&child, answering("Two.")).await;
    let grandchild = fork(&world, &child, Some(&second)).await;
    world.run(&grandchild, answering("Three.")).await;
    assert_eq!(turns(&world, &grandchild).await[..2], [first.clone(), second]);
    let state = world.sessions.get_session(&grandchild).await.expect("readable");
    assert_eq!(
        (state.header.seed_length, state.header.parent_session.as_ref()),
        (Some(2), Some(&child))
    );
    // Inherited turns can be forked at, too.
    let sibling = fork(&world, &grandchild, Some(&first)).await;
    assert_eq!(turns(&world, &sibling).await, [first]);
}

#[tokio::test]
async fn grants_titles_and_being_put_away_are_not_inherited_and_compactions_are() {
    let world = SessionWorld::new();
    let session = world.session().await;
    let first = world.run(&session, answering("One.")).await;
    world.sessions.set_archived(&session, true).await.expect("put away");
    world.sessions.add_grant(&session, "shell", None).await.expect("granted");
    let second = world.run(&session, answering("Two.")).await;
    add(&world, &session, vec![compacted("k1", second.as_str())]).await;
    world.sessions.set_title(&session, "Renamed").await.expect("named");
    let third = world.run(&session, answering("Three.")).await;
    add(&world, &session, vec![compacted("k2", third.as_str())]).await;

    let plain = fork(&world, &session, Some(&first)).await;
    assert_eq!(kinds(&world, &plain).await, ["session_created", "turn_appended"]);
    let compact = fork(&world, &session, Some(&second)).await;
    let expected = ["session_created", "turn_appended", "turn_appended", "compacted"];
    assert_eq!(kinds(&world, &compact).await, expected);
    let state = world.sessions.get_session(&compact).await.expect("readable");
    assert_eq!((state.schema_version, state.header.schema_version), (2, 2), "no upgrade is needed");
    assert_eq!((state.grants.len(), state.archived), (0, false));
    assert_eq!(state.title.as_deref(), Some("Renamed"));
    let pending = state.pending_compaction().map(|it| it.fact.compaction_id.as_str());
    assert_eq!(pending, Some("k1"), "its next turn begins with it");
    world.sessions.set_archived(&compact, true).await.expect("put away");
    assert!(!kinds(&world, &compact).await.contains(&"schema_upgraded"));
}

#[tokio::test]
async fn a_fork_at_a_turn_that_has_not_ended_is_refused_and_before_it_is_not() {
    let world = SessionWorld::new();
    let session = world.session().await;
    let ended = world.run(&session, answering("One.")).await;
    let open = world.run(&session, asking()).await;
    let before = world.sessions.ids().await.expect("listed");
    let refused = world.sessions.fork_session(&session, Some(&open)).await;
    match &refused {
        Err(SessionError::TurnNotSettled { turn, standing, .. }) => {
            assert_eq!((turn, *standing), (&open, Standing::Resting(TurnStatus::Suspended)));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(world.sessions.ids().await.expect("listed"), before, "nothing was created");
    let elsewhere = TurnId::from("2026-03-04T05-06-07Z-0000042-999");
    let refused = world.sessions.fork_session(&session, Some(&elsewhere)).await;
    let in_none =
        matches!(&refused, Err(SessionError::NotInSession { turn, .. }) if *turn == elsewhere);
    assert!(in_none, "{refused:?}");
    assert_eq!(turns(&world, &fork(&world, &session, Some(&ended)).await).await, [ended]);
}

#[tokio::test]
async fn a_fork_before_a_damaged_turn_is_the_way_out() {
    let home = Home::new();
    let world = SessionWorld::over(Arc::new(home.store(Options::default())));
    let session = world.session().await;
    let good = world.run(&session, answering("One.")).await;
    let damaged = world.run(&session, answering("Two.")).await;
    fs::write(home.file(&LogId::turn(&damaged).expect("valid")), "{}\n").expect("damaged");
    let world = SessionWorld::over(Arc::new(home.store(Options::default())));
    let refused = world.sessions.fork_session(&session, Some(&damaged)).await;
    assert!(matches!(refused, Err(SessionError::Read(_))), "{refused:?}");
    let fork = fork(&world, &session, Some(&good)).await;
    world.run(&fork, answering("Instead.")).await;
    assert_eq!(world.entry(&fork).error, None);
}

#[tokio::test]
async fn a_fork_outlives_the_session_that_it_was_forked_from() {
    let world = SessionWorld::new();
    let session = world.session().await;
    let first = world.run(&session, answering("One.")).await;
    let fork = fork(&world, &session, Some(&first)).await;
    let removed = world.sessions.delete_session(&session).await.expect("deleted");
    world.repo.store().destroy(&removed).await.expect("destroyed");
    let next = world.run(&fork, answering("Two.")).await;
    assert_eq!(turns(&world, &fork).await, [first, next]);
    assert_eq!(world.scanned().await, world.sessions.list_sessions());
}

#[tokio::test]
async fn wherever_the_disk_breaks_in_forking_there_is_a_whole_fork_or_none() {
    let fault = Fault::Error(EIO);
    let mut whole = 0;
    for from in 0.. {
        let home = Home::new();
        let world = SessionWorld::over(Arc::new(home.store(Options::default())));
        let session = world.session().await;
        let first = world.run(&session, answering("One.")).await;
        world.run(&session, answering("Two.")).await;
        home.disk.fail(Plan { only: None, from, times: u64::MAX, fault });
        let forked = world.sessions.fork_session(&session, Some(&first)).await;
        home.disk.heal();

        let next = SessionWorld::over(Arc::new(home.store(Options::default())));
        next.sessions.scan().await.expect("scanned");
        let found = next.sessions.list_sessions();
        assert!(found.iter().all(|entry| entry.error.is_none()), "{from}: {found:?}");
        let forks = found.iter().filter(|entry| entry.parent_session.is_some());
        let forks: Vec<_> =
            forks.map(|entry| (entry.session_id.clone(), entry.turn_count)).collect();
        assert_eq!(found.len(), 1 + forks.len());
        match forked {
            Ok(fork) => {
                assert_eq!(forks, [(fork, 1)]);
                whole = from;
                break;
            }
            Err(_) => assert!(forks.iter().all(|(_, turns)| *turns == 1), "{from}: {forks:?}"),
        }
    }
    assert!(whole > 3, "it broke in {whole} places");
}
