//! Titles that a model gives: when, to what, and what they never replace.

use turnstile::base::id::{SessionId, ToolCallId};
use turnstile::domain::agent::RequestedAgent;
use turnstile::domain::event::Fact as _;
use turnstile::domain::turn::event::Decision;
use turnstile::sessions::Options;
use turnstile::testing::gate::Gate;
use turnstile::testing::sessions::SessionWorld;
use turnstile::testing::turns::{Script, answering};

const DEFAULT: &str = "Look at the watcher.";

fn titling() -> SessionWorld {
    SessionWorld::new().with(Options { auto_title: true, ..Options::default() })
}

fn title(world: &SessionWorld, session: &SessionId) -> String {
    world.entry(session).title.expect("it has one")
}

/// A session after its first turn, which answered, and what `script` made of its title.
async fn titled_by(world: &SessionWorld, script: Script) -> SessionId {
    let session = world.session().await;
    world.turns.then(answering("It was the clock."));
    world.turns.then(script);
    world.try_send(&session, DEFAULT).await.expect("sent");
    world.idle().await;
    session
}

/// The title of a session after a turn that answered and a model that names it.
async fn title_after(world: &SessionWorld, session: &SessionId, text: &str) -> String {
    world.turns.then(answering("It was the clock."));
    world.turns.then(answering("Another name"));
    world.try_send(session, text).await.expect("sent");
    world.idle().await;
    title(world, session)
}

#[tokio::test]
async fn after_its_first_answer_a_session_is_named() {
    let world = titling();
    let session = titled_by(&world, answering("A watcher and its clock\n")).await;
    assert_eq!(title(&world, &session), "A watcher and its clock");
    let events = world.sessions.session_events(&session).await.expect("readable");
    let kinds: Vec<_> = events.iter().map(|event| event.fact.kind()).collect();
    assert_eq!(kinds, ["session_created", "turn_appended", "title_changed", "title_changed"]);
    let asked = world.turns.created().pop().expect("created");
    let RequestedAgent::Inline(agent) = &asked.agent else { panic!("{asked:?}") };
    assert_eq!((agent.inline.name.as_str(), &agent.inline.tools), ("title", &Some(Vec::new())));
    assert_eq!(asked.session_id, None);
    let text = asked.input.plain_text();
    assert!(text.contains(DEFAULT) && text.contains("It was the clock."), "{text}");
    assert_eq!(world.scanned().await, world.sessions.list_sessions());
}

#[tokio::test]
async fn no_model_is_asked_unless_that_is_configured() {
    let world = SessionWorld::new();
    let session = titled_by(&world, answering("Another name")).await;
    assert_eq!((title(&world, &session).as_str(), world.turns.created().len()), (DEFAULT, 1));
}

#[tokio::test]
async fn a_title_is_one_short_line_without_controls() {
    let world = titling();
    let name = format!("\u{1b}[31mA {}\nand more", "very ".repeat(30));
    let session = titled_by(&world, answering(&name)).await;
    let title = title(&world, &session);
    assert!(title.contains("A very") && title.ends_with('…'), "{title}");
    assert!(title.chars().count() <= 60 && !title.contains(['\u{1b}', '\n']), "{title}");
}

#[tokio::test]
async fn a_name_that_the_person_gave_meanwhile_stays() {
    let world = titling();
    let session = world.session().await;
    let gate = Gate::new();
    world.turns.then(answering("It was the clock."));
    world.turns.then(Script::new().gate(&gate).answer("Another name"));
    world.try_send(&session, DEFAULT).await.expect("sent");
    gate.reached().await;
    world.sessions.set_title(&session, "Mine").await.expect("named");
    gate.open();
    world.idle().await;
    assert_eq!(title(&world, &session), "Mine");
}

#[tokio::test]
async fn a_session_that_was_named_before_is_not_named() {
    let world = titling();
    let session = world.session().await;
    world.sessions.set_title(&session, "Mine").await.expect("named");
    world.run(&session, answering("It was the clock.")).await;
    world.idle().await;
    assert_eq!((title(&world, &session).as_str(), world.turns.created().len()), ("Mine", 1));
}

#[tokio::test]
async fn without_a_name_from_the_model_the_default_one_stays_and_is_not_asked_for_again() {
    for script in [Script::new().fail(), answering(" "), Script::new().break_down()] {
        let world = titling();
        let session = titled_by(&world, script).await;
        assert_eq!(title(&world, &session), DEFAULT);
        world.run(&session, answering("Once more.")).await;
        world.idle().await;
        assert_eq!((title(&world, &session).as_str(), world.turns.created().len()), (DEFAULT, 3));
    }
}

#[tokio::test]
async fn a_first_turn_that_did_not_complete_names_nothing() {
    let world = titling();
    let session = world.session().await;
    world.run(&session, Script::new().fail()).await;
    world.idle().await;
    assert_eq!((title(&world, &session).as_str(), world.turns.created().len()), (DEFAULT, 1));
}

#[tokio::test]
async fn the_first_turn_that_completes_names_the_session_whatever_went_before() {
    let world = titling();
    let session = world.session().await;
    world.run(&session, Script::new().fail()).await;
    assert_eq!(title_after(&world, &session, "Again.").await, "Another name");
}

#[tokio::test]
async fn a_session_is_named_although_the_next_message_waits_already() {
    let world = titling();
    let session = world.session().await;
    let gate = Gate::new();
    world.turns.then(Script::new().gate(&gate).answer("It was the clock."));
    world.try_send(&session, DEFAULT).await.expect("sent");
    gate.reached().await;
    world.queue(&session, "And now?").await;
    for _ in 0..2 {
        // The name and the next answer, in whichever order they are asked for.
        world.turns.then(answering("Another name"));
    }
    gate.open();
    world.idle().await;
    assert_eq!(world.said(&session).await, [DEFAULT, "And now?"]);
    assert_eq!(
        (title(&world, &session).as_str(), world.turns.created().len()),
        ("Another name", 3)
    );
}

#[tokio::test]
async fn a_session_is_named_although_the_next_turn_begins_before_the_first_one_rests() {
    let world = titling();
    let session = world.session().await;
    let gate = Gate::new();
    world.turns.then(answering("It was the clock.").hold(&gate));
    world.try_send(&session, DEFAULT).await.expect("sent");
    gate.reached().await;
    world.turns.then(answering("And so."));
    world.turns.then(answering("Another name"));
    let second = world.try_send(&session, "And now?").await.expect("sent");
    world.rested(&second).await;
    gate.open();
    world.idle().await;
    assert_eq!(
        (title(&world, &session).as_str(), world.turns.created().len()),
        ("Another name", 3)
    );
}

#[tokio::test]
async fn a_fork_is_named_by_the_first_turn_of_its_own() {
    let world = titling();
    let session = titled_by(&world, Script::new().fail()).await;
    let state = world.sessions.get_session(&session).await.expect("readable");
    let at = &state.turns[0].id;
    let fork = world.sessions.fork_session(&session, Some(at)).await.expect("forked");
    assert_eq!(title_after(&world, &fork, "And now?").await, "Another name");
}

#[tokio::test]
async fn a_late_answer_to_a_turn_that_has_ended_asks_for_no_name() {
    let world = titling();
    let session = titled_by(&world, Script::new().fail()).await;
    let state = world.sessions.get_session(&session).await.expect("readable");
    let turn = &state.turns[0].id;
    let call = ToolCallId::from("c1");
    let late = world.sessions.respond_to_permission(turn, &call, Decision::Allow, None).await;
    assert!(late.is_err(), "the turn has ended");
    world.idle().await;
    assert_eq!(world.turns.created().len(), 2);
}

#[tokio::test]
async fn nothing_of_the_question_stays_whatever_came_of_it() {
    for script in [answering("A name"), Script::new().fail(), Script::new().break_down()] {
        let world = titling();
        let session = titled_by(&world, script).await;
        let state = world.sessions.get_session(&session).await.expect("readable");
        assert_eq!(world.turn_repo.ids().await.expect("listed"), [state.turns[0].id.clone()]);
        assert_eq!(world.turn_repo.store().removed().await.expect("listed"), []);
    }
}

#[tokio::test]
async fn a_session_that_was_deleted_meanwhile_does_not_come_back() {
    let world = titling();
    let session = world.session().await;
    let gate = Gate::new();
    world.turns.then(answering("It was the clock."));
    world.turns.then(Script::new().gate(&gate).answer("Another name"));
    world.try_send(&session, DEFAULT).await.expect("sent");
    gate.reached().await;
    world.sessions.delete_session(&session).await.expect("deleted");
    gate.open();
    world.idle().await;
    assert_eq!(world.sessions.list_sessions(), []);
    assert_eq!(world.scanned().await, []);
}
