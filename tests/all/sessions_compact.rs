//! Compaction: what is summarised, what is kept, what the next turns begin with, and what is refused.

use std::fs;
use std::pin::Pin;
use std::sync::Arc;

use turnstile::base::id::{SessionId, ToolCallId, TurnId};
use turnstile::domain::agent::RequestedAgent;
use turnstile::domain::event::Fact as _;
use turnstile::domain::message::Message;
use turnstile::domain::session::event::Compacted;
use turnstile::domain::turn::event::{ContextRef, Decision, TurnContext};
use turnstile::runtime::CONTEXT_OVERFLOW;
use turnstile::runtime::api::CreateTurn;
use turnstile::sessions::Options;
use turnstile::sessions::error::{SessionError, Standing};
use turnstile::store::jsonl;
use turnstile::store::log::LogId;
use turnstile::testing::fact::model;
use turnstile::testing::gate::Gate;
use turnstile::testing::sessions::SessionWorld;
use turnstile::testing::store::Home;
use turnstile::testing::turns::{Script, answering, asking};

use crate::sessions_real_world::{World, says};

/// An answer that is too long to be kept beside another one.
fn long(word: &str) -> String {
    word.repeat(40 * 1024 / word.len())
}

/// A session with two turns, of which one is kept.
async fn session_of_two(world: &SessionWorld) -> (SessionId, [TurnId; 2]) {
    let session = world.session().await;
    let first = world.run(&session, answering(&long("one "))).await;
    let second = world.run(&session, answering(&long("two "))).await;
    (session, [first, second])
}

async fn compactions(world: &SessionWorld, session: &SessionId) -> Vec<Compacted> {
    let state = world.sessions.get_session(session).await.expect("readable");
    state.compactions.into_iter().map(|compaction| compaction.fact).collect()
}

async fn compact(world: &SessionWorld, session: &SessionId, summary: &str) {
    world.turns.then(answering(summary));
    world.sessions.compact(session).await.expect("compacted");
}

fn last_created(world: &SessionWorld) -> CreateTurn {
    world.turns.created().pop().expect("created")
}

/// What the inline context of a turn says, message by message.
fn said(context: &TurnContext) -> Vec<String> {
    let TurnContext::Inline(messages) = context else { panic!("{context:?}") };
    let text = |message: &Message| match message {
        Message::User(message) => message.plain_text(),
        Message::Assistant(message) => message.plain_text(),
        Message::Tool(message) => message.content.to_string(),
    };
    messages.iter().map(text).collect()
}

#[tokio::test]
async fn the_next_turn_begins_with_the_summary_and_what_was_kept_and_later_ones_go_on_from_it() {
    let world = SessionWorld::new();
    let (session, [_, second]) = session_of_two(&world).await;
    compact(&world, &session, "They looked at it.").await;
    let events = world.sessions.session_events(&session).await.expect("readable");
    let kinds: Vec<_> = events.iter().rev().take(2).map(|event| event.fact.kind()).collect();
    assert_eq!(kinds, ["compacted", "schema_upgraded"]);
    let found = compactions(&world, &session).await;
    let [compacted] = &found[..] else { panic!("{found:?}") };
    assert_eq!(compacted.summary, "They looked at it.");
    assert_eq!(compacted.first_kept_turn_id, second);

    let third = world.run(&session, answering("Three.")).await;
    let context = said(&last_created(&world).context);
    let [summary, message, answer] = &context[..] else { panic!("{context:?}") };
    assert!(summary.ends_with("\n\nThey looked at it."), "{summary}");
    assert_eq!((&**message, answer), ("Look at the watcher.", &long("two ")));
    world.run(&session, answering("Four.")).await;
    let reference = ContextRef { previous_turn_id: third };
    assert_eq!(last_created(&world).context, TurnContext::Previous(reference));
    assert_eq!(world.scanned().await, world.sessions.list_sessions());
}

#[tokio::test]
async fn the_summary_is_asked_for_beside_the_session_of_its_model_and_without_tools() {
    let world = SessionWorld::new();
    let (session, _) = session_of_two(&world).await;
    compact(&world, &session, "They looked at it.").await;
    let asked = last_created(&world);
    assert_eq!((&asked.session_id, &asked.context), (&None, &TurnContext::Inline(Vec::new())));
    let RequestedAgent::Inline(agent) = &asked.agent else { panic!("{asked:?}") };
    assert_eq!((agent.inline.name.as_str(), &agent.inline.tools), ("compact", &Some(Vec::new())));
    assert_eq!(agent.inline.model, Some(model()));
    let text = asked.input.plain_text();
    assert!(text.contains("Look at the watcher.") && text.contains(&long("one ")), "{text}");
    assert!(!text.contains("two "), "what is kept is not summarised");
    assert_eq!(world.entry(&session).turn_count, 2, "it is none of the session's turns");
}

#[tokio::test]
async fn a_compaction_that_no_turn_has_used_is_not_repeated() {
    let world = SessionWorld::new();
    let (session, _) = session_of_two(&world).await;
    compact(&world, &session, "They looked at it.").await;
    let asked = world.turns.created().len();
    world.sessions.compact(&session).await.expect("it is compacted");
    assert_eq!(world.turns.created().len(), asked);
    assert_eq!(compactions(&world, &session).await.len(), 1);
}

#[tokio::test]
async fn a_second_compaction_goes_on_from_the_first() {
    let world = SessionWorld::new();
    let (session, _) = session_of_two(&world).await;
    compact(&world, &session, "The first summary.").await;
    let third = world.run(&session, answering(&long("three "))).await;
    compact(&world, &session, "The second summary.").await;
    let text = last_created(&world).input.plain_text();
    assert!(text.contains("The first summary.") && text.contains("two "), "{text}");
    assert!(!text.contains("one ") && !text.contains("three "), "{text}");
    let last = compactions(&world, &session).await.pop().expect("compacted");
    assert_eq!((last.summary.as_str(), last.first_kept_turn_id), ("The second summary.", third));
}

#[tokio::test]
async fn what_one_call_cannot_take_is_summarised_piece_by_piece() {
    let world = SessionWorld::new();
    let session = world.session().await;
    for _ in 0..9 {
        world.run(&session, answering(&long("word "))).await;
    }
    let before = world.turns.created().len();
    world.turns.then(answering("Of the first piece."));
    compact(&world, &session, "Of both pieces.").await;
    let asked = world.turns.created().split_off(before);
    let [first, second] = &asked[..] else { panic!("{} calls", asked.len()) };
    assert!(!first.input.plain_text().contains("Of the first piece."));
    assert!(second.input.plain_text().contains("Of the first piece."));
    let sizes = [first, second].map(|asked| asked.input.plain_text().len());
    assert!(sizes.iter().all(|size| *size < 300 * 1024), "{sizes:?}");
    assert_eq!(compactions(&world, &session).await[0].summary, "Of both pieces.");
}

#[tokio::test]
async fn a_session_that_would_be_kept_whole_has_nothing_to_compact() {
    let world = SessionWorld::new();
    let session = world.session().await;
    for _ in 0..3 {
        let refused = world.sessions.compact(&session).await;
        assert!(matches!(refused, Err(SessionError::NothingToCompact(_))), "{refused:?}");
        world.run(&session, answering("Short.")).await;
    }
    let alone = world.session().await;
    world.run(&alone, answering(&long("long "))).await;
    let refused = world.sessions.compact(&alone).await;
    assert!(matches!(refused, Err(SessionError::NothingToCompact(_))), "{refused:?}");
}

#[tokio::test]
async fn a_turn_that_has_not_ended_is_not_compacted() {
    let world = SessionWorld::new();
    let (session, _) = session_of_two(&world).await;
    world.run(&session, asking()).await;
    let refused = world.sessions.compact(&session).await;
    assert!(matches!(refused, Err(SessionError::TurnNotSettled { .. })), "{refused:?}");
}

#[tokio::test]
async fn no_turn_starts_while_a_session_is_compacted_and_all_else_goes_on() {
    let world = SessionWorld::new();
    let (session, [_, second]) = session_of_two(&world).await;
    let gate = Gate::new();
    world.turns.then(Script::new().gate(&gate).answer("They looked at it."));
    let work = async {
        gate.reached().await;
        let refused = world.try_send(&session, "Now?").await;
        let compacting = Standing::Compacting;
        match &refused {
            Err(error @ SessionError::TurnNotSettled { standing, .. }) => {
                assert_eq!(*standing, compacting);
                let told =
                    format!("session {session} is being summarised; wait until that is done");
                assert_eq!(error.to_string(), told);
            }
            other => panic!("{other:?}"),
        }
        let twice = world.sessions.compact(&session).await;
        assert!(matches!(twice, Err(SessionError::TurnNotSettled { .. })), "{twice:?}");
        world.sessions.set_title(&session, "Renamed").await.expect("named");
        world.sessions.fork_session(&session, Some(&second)).await.expect("forked");
        gate.open();
    };
    let (compacted, ()) = tokio::join!(world.sessions.compact(&session), work);
    compacted.expect("compacted");
    assert_eq!(world.entry(&session).title.as_deref(), Some("Renamed"));
    world.run(&session, answering("Three.")).await;
    assert!(said(&last_created(&world).context)[0].ends_with("They looked at it."));
}

#[tokio::test]
async fn what_is_sent_while_a_session_is_compacted_is_its_next_turn_with_or_without_a_summary() {
    for (script, summaries) in [(answering("They looked."), 1), (Script::new().fail(), 0)] {
        let world = SessionWorld::new();
        let (session, _) = session_of_two(&world).await;
        let gate = Gate::new();
        world.turns.then(Script::new().gate(&gate).and(script));
        let work = async {
            gate.reached().await;
            world.queue(&session, "Three?").await;
            world.turns.then(answering("Three."));
            gate.open();
        };
        let (compacted, ()) = tokio::join!(world.sessions.compact(&session), work);
        assert_eq!(compacted.is_ok(), summaries == 1);
        world.quiet().await;
        assert_eq!(world.said(&session).await.last().map(String::as_str), Some("Three?"));
        assert_eq!(compactions(&world, &session).await.len(), summaries);
        let begins_anew = matches!(last_created(&world).context, TurnContext::Inline(_));
        assert_eq!(begins_anew, summaries == 1);
    }
}

#[tokio::test]
async fn a_turn_that_comes_to_rest_while_its_session_is_compacted_is_followed_by_nothing_before_that()
 {
    let world = SessionWorld::new();
    let (session, _) = session_of_two(&world).await;
    let (ended, asked) = (Gate::new(), Gate::new());
    world.turns.then(answering(&long("three ")).hold(&ended));
    world.turns.then(Script::new().gate(&asked).answer("They looked at it."));
    world.turns.then(answering("Four."));
    world.try_send(&session, "Three?").await.expect("sent");
    ended.reached().await;
    let work = async {
        asked.reached().await;
        world.queue(&session, "Four?").await;
        ended.open();
        world.quiet().await;
        assert_eq!(world.waits(&session).await, ["Four?"]);
        asked.open();
    };
    let (compacted, ()) = tokio::join!(world.sessions.compact(&session), work);
    compacted.expect("compacted");
    world.quiet().await;
    assert_eq!(world.said(&session).await.last().map(String::as_str), Some("Four?"));
    assert!(matches!(last_created(&world).context, TurnContext::Inline(_)));
}

/// A compaction whose question has been put and is not answered; nobody else holds it.
async fn asked_for_a_summary<'a>(
    world: &'a SessionWorld,
    session: &'a SessionId,
) -> Pin<Box<dyn Future<Output = Result<(), SessionError>> + 'a>> {
    let gate = Gate::new();
    world.turns.then(Script::new().gate(&gate).answer("They looked at it."));
    let mut compaction = Box::pin(world.sessions.compact(session));
    tokio::select! {
        biased;
        () = gate.reached() => {}
        compacted = &mut compaction => panic!("{compacted:?}"),
    }
    compaction
}

#[tokio::test]
async fn a_compaction_that_nobody_waits_for_any_more_is_stopped_and_over() {
    let world = SessionWorld::new();
    let (session, _) = session_of_two(&world).await;
    drop(asked_for_a_summary(&world, &session).await);
    let asked = world.turns.advances().pop().expect("the question").turn;
    world.run(&session, answering("Three.")).await;
    world.idle().await;
    let kept = world.turn_repo.ids().await.expect("listed");
    assert!(!kept.contains(&asked), "nothing of the question is kept");
    assert_eq!(world.sessions.get_session(&session).await.expect("readable").compactions, []);
}

#[tokio::test]
async fn what_waits_for_a_compaction_that_nobody_waits_for_any_more_goes() {
    let world = SessionWorld::new();
    let (session, _) = session_of_two(&world).await;
    let compaction = asked_for_a_summary(&world, &session).await;
    world.queue(&session, "Three?").await;
    world.turns.then(answering("Three."));
    drop(compaction);
    world.idle().await;
    assert_eq!(world.waits(&session).await, [""; 0]);
    assert_eq!(world.said(&session).await.last().map(String::as_str), Some("Three?"));
}

#[tokio::test]
async fn nothing_of_the_question_stays_whatever_came_of_it() {
    let world = SessionWorld::new();
    let (session, turns) = session_of_two(&world).await;
    for script in [Script::new().fail(), Script::new().break_down(), answering("They looked.")] {
        world.turns.then(script);
        drop(world.sessions.compact(&session).await);
        assert_eq!(world.turn_repo.ids().await.expect("listed"), turns);
    }
    assert_eq!(world.repo.store().removed().await.expect("listed"), []);
}

#[tokio::test]
async fn a_late_answer_to_a_turn_that_has_failed_compacts_nothing_again() {
    let world = SessionWorld::new().with(Options { auto_compact: true, ..Options::default() });
    let (session, _) = session_of_two(&world).await;
    world.turns.then(Script::new().fail_with(CONTEXT_OVERFLOW));
    world.turns.then(Script::new().fail());
    let turn = world.try_send(&session, "Now?").await.expect("sent");
    world.rested(&turn).await;
    world.idle().await;
    let asked = world.turns.created().len();
    let call = ToolCallId::from("c1");
    let late = world.sessions.respond_to_permission(&turn, &call, Decision::Allow, None).await;
    assert!(late.is_err(), "the turn has ended");
    world.idle().await;
    assert_eq!(world.turns.created().len(), asked);
}

#[tokio::test]
async fn without_a_summary_the_session_is_as_it_was() {
    let world = SessionWorld::new();
    let (session, [_, second]) = session_of_two(&world).await;
    for script in [Script::new().fail(), answering(" \n")] {
        world.turns.then(script);
        let refused = world.sessions.compact(&session).await;
        assert!(matches!(refused, Err(SessionError::NoSummary { .. })), "{refused:?}");
        assert_eq!(compactions(&world, &session).await, []);
    }
    world.run(&session, answering("Three.")).await;
    let reference = ContextRef { previous_turn_id: second };
    assert_eq!(last_created(&world).context, TurnContext::Previous(reference));
}

#[tokio::test]
async fn deleting_a_session_stops_its_compaction() {
    let world = SessionWorld::new();
    let (session, _) = session_of_two(&world).await;
    let gate = Gate::new();
    world.turns.then(Script::new().gate(&gate).answer("They looked at it."));
    let work = async {
        gate.reached().await;
        world.sessions.delete_session(&session).await.expect("deleted");
    };
    let (compacted, ()) = tokio::join!(world.sessions.compact(&session), work);
    assert!(matches!(compacted, Err(SessionError::NoSummary { .. })), "{compacted:?}");
    world.sessions.restore_session(&session).await.expect("restored");
    assert_eq!(compactions(&world, &session).await, []);
    world.run(&session, answering("Three.")).await;
}

#[tokio::test]
async fn a_compaction_is_told_of_and_can_be_stopped_and_what_waited_for_it_goes() {
    let world = SessionWorld::new();
    let (session, [_, second]) = session_of_two(&world).await;
    let mut under_way = world.sessions.follow_compactions();
    assert!(under_way.borrow_and_update().is_empty());
    world.sessions.stop_compaction(&session);
    let gate = Gate::new();
    world.turns.then(Script::new().gate(&gate).answer("They looked at it."));
    let work = async {
        gate.reached().await;
        assert!(under_way.borrow_and_update().contains(&session));
        world.queue(&session, "Three?").await;
        world.turns.then(answering("Three."));
        world.sessions.stop_compaction(&session);
    };
    let (compacted, ()) = tokio::join!(world.sessions.compact(&session), work);
    assert!(compacted.is_err_and(|error| error.was_stopped()));
    assert!(under_way.borrow_and_update().is_empty());
    assert_eq!(compactions(&world, &session).await, []);
    world.quiet().await;
    assert_eq!(world.said(&session).await.last().map(String::as_str), Some("Three?"));
    let reference = ContextRef { previous_turn_id: second };
    assert_eq!(last_created(&world).context, TurnContext::Previous(reference));
}

#[tokio::test]
async fn a_turn_that_cannot_be_kept_refuses_the_next_one() {
    let home = Home::new();
    let store = || Arc::new(home.store(jsonl::Options::default()));
    let world = SessionWorld::over(store());
    let session = world.session().await;
    world.run(&session, answering(&long("one "))).await;
    let second = world.run(&session, answering("Two.")).await;
    world.run(&session, answering("Three.")).await;
    compact(&world, &session, "They looked at it.").await;
    let file = home.file(&LogId::turn(&second).expect("valid"));
    let text = fs::read_to_string(&file).expect("there");
    fs::write(&file, "{}\n").expect("damaged");

    let next = SessionWorld::over(store());
    let refused = next.try_send(&session, "Now?").await;
    assert!(matches!(refused, Err(SessionError::Read(_))), "{refused:?}");
    assert!(next.turns.created().is_empty(), "and creates nothing");
    fs::write(&file, text).expect("repaired");
    let next = SessionWorld::over(store());
    next.run(&session, answering("Four.")).await;
    assert_eq!(said(&last_created(&next).context).len(), 5);
}

#[tokio::test]
async fn a_session_that_its_model_refuses_as_too_long_is_compacted_where_that_is_wanted() {
    for auto_compact in [false, true] {
        let world = SessionWorld::new().with(Options { auto_compact, ..Options::default() });
        let (session, _) = session_of_two(&world).await;
        world.run(&session, Script::new().fail()).await;
        world.idle().await;
        assert_eq!(compactions(&world, &session).await, [], "that was no want of room");
        world.turns.then(Script::new().fail_with(CONTEXT_OVERFLOW));
        world.turns.then(answering("They looked at it."));
        let turn = world.try_send(&session, "Now?").await.expect("sent");
        world.rested(&turn).await;
        world.idle().await;
        assert_eq!(compactions(&world, &session).await.len(), usize::from(auto_compact));
    }
}

#[tokio::test]
async fn what_is_sent_after_a_compaction_begins_all_that_is_sent_later() {
    let world = World::new();
    let session = world.session().await;
    for word in ["one ", "two "] {
        world.run(&session, says(&long(word))).await;
    }
    world.model.then(says("They looked at it.").finish("stop"));
    world.sessions.compact(&session).await.expect("compacted");
    world.run(&session, says("Three.")).await;
    world.run(&session, says("Four.")).await;
    let requests = world.model.requests();
    let [_, _, summary, third, fourth] = &requests[..] else { panic!("{} calls", requests.len()) };
    assert_eq!((summary.messages.len(), summary.tools.len()), (1, 0));
    let [Message::User(first), Message::User(_), Message::Assistant(kept), Message::User(_)] =
        &third.messages[..]
    else {
        panic!("{:?}", third.messages)
    };
    assert!(first.plain_text().ends_with("They looked at it."));
    assert_eq!(kept.plain_text(), long("two "));
    assert_eq!(fourth.messages[..4], third.messages);
    assert_eq!(fourth.messages.len(), 6);
}
