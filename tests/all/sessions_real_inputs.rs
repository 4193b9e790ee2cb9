//! Answers from outside, by the numbers of `spec/session-layer.md` section 13, on the real runtime.

use std::sync::Arc;

use turnstile::base::id::{ToolCallId, TurnId};
use turnstile::domain::json::Json;
use turnstile::domain::question::Answer;
use turnstile::domain::session::entry::LatestTurnStatus;
use turnstile::domain::turn::event::{Decision, ToolResultData, TurnFact};
use turnstile::domain::turn::status::TurnStatus;
use turnstile::runtime::error::{AdvanceError, InputRefused};
use turnstile::sessions::error::SessionError;
use turnstile::testing::fact::json;
use turnstile::testing::gate;
use turnstile::testing::model::Reply;
use turnstile::testing::store::memory_store;
use turnstile::testing::store::scripted::ScriptedStore;
use turnstile::testing::tools::{FakeTool, Gate};

use crate::sessions_real_world::{World, asks, says, writes};

const COMPLETED: LatestTurnStatus = LatestTurnStatus::Turn(TurnStatus::Completed);
const SUSPENDED: LatestTurnStatus = LatestTurnStatus::Turn(TurnStatus::Suspended);
const CANCELLED: LatestTurnStatus = LatestTurnStatus::Turn(TurnStatus::Cancelled);

fn first(turn: &TurnId) -> ToolCallId {
    ToolCallId::of_turn(turn, 1)
}

async fn events(world: &World, turn: &TurnId) -> usize {
    world.turns.read(turn).await.expect("readable").events.len()
}

fn refusal(answered: Result<(), SessionError>) -> InputRefused {
    match answered {
        Err(SessionError::Advance(AdvanceError::Refused(refused))) => refused,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn s13_5_forms_are_answered_or_dismissed_on_the_real_runtime() {
    let form = r#"{"questions":[{"id":"a","text":"A?"},{"id":"b","text":"B?"}]}"#;
    let answers = [("a", "1"), ("b", "2")].map(|(id, it)| (id.to_owned(), vec![it.to_owned()]));
    for answer in [Answer::Answered(answers.to_vec()), Answer::Dismissed] {
        let world = World::new();
        let session = world.session().await;
        let turn = world.run(&session, Reply::new().call("ask-human", json(form))).await;
        let one_text = world.sessions.respond_to_ask_human(&turn, &first(&turn), "x").await;
        assert!(matches!(one_text, Err(SessionError::SeveralQuestions(_))), "{one_text:?}");
        world.model.then(says("Done.").finish("stop"));
        let answered = world.sessions.answer_questions(&turn, &first(&turn), &answer).await;
        answered.expect("answered");
        world.rested().await;
        let state = world.sessions.get_turn(&turn).await.expect("readable").state;
        let result = state.tool_calls.get(&first(&turn)).and_then(|call| call.result.clone());
        assert_eq!(result.expect("it has one").data, answer.to_result());
        assert_eq!(world.status(&session), COMPLETED);
    }
}

#[tokio::test]
async fn s13_5_a_result_and_reports_before_it_advance_their_turn_on_the_real_runtime() {
    let world = World::new();
    let (one, two) = (world.session().await, world.session().await);
    let turn = world.run(&one, asks()).await;
    let other = world.run(&two, asks()).await;
    let untouched = events(&world, &other).await;
    // An integer that other readers would round stands as text in the log; the report counts.
    let progress = json(r#"{"bytes":9007199254740993}"#);
    let sessions = &world.sessions;
    let reported = sessions.report_async_tool_progress(&turn, &first(&turn), progress).await;
    reported.expect("reported");
    world.rested().await;
    let log = sessions.get_turn(&turn).await.expect("readable").events;
    let told = log.iter().find_map(|event| match &event.fact {
        TurnFact::ToolProgress(fact) => Some(fact.progress.clone()),
        _ => None,
    });
    assert_eq!(told, Some(json(r#"{"bytes":"9007199254740993"}"#)));
    assert_eq!(world.status(&one), SUSPENDED);

    world.model.then(says("Done.").finish("stop"));
    let result = ToolResultData { output: Json::text("live"), is_error: false, metadata: None };
    let delivered = sessions.deliver_async_tool_result(&turn, &first(&turn), result).await;
    delivered.expect("delivered");
    world.rested().await;
    assert_eq!((world.status(&one), world.status(&two)), (COMPLETED, SUSPENDED));
    assert_eq!(events(&world, &other).await, untouched);
}

#[tokio::test]
async fn s13_5_what_the_runtime_refuses_is_refused_on_the_real_runtime() {
    let world = World::new();
    let session = world.session().await;
    let turn = world.run(&session, writes()).await;
    let before = events(&world, &turn).await;
    let call = ToolCallId::of_turn(&turn, 9);
    let unknown = InputRefused::UnknownCall { turn: turn.clone(), call: call.clone() };
    assert_eq!(refusal(world.allow_call(&turn, 9).await), unknown);
    let answered = world.sessions.answer_questions(&turn, &first(&turn), &Answer::Dismissed).await;
    assert_eq!(refusal(answered), InputRefused::NoResultPending(first(&turn)));
    let deep = serde_json::from_str(&("[".repeat(65) + &"]".repeat(65))).expect("JSON");
    let (allow, metadata) = (Decision::Allow, Some(deep));
    let unfit = world.sessions.respond_to_permission(&turn, &first(&turn), allow, metadata).await;
    assert!(matches!(refusal(unfit), InputRefused::Unfit { .. }));
    world.rested().await;
    assert_eq!(events(&world, &turn).await, before);
    assert_eq!(world.status(&session), SUSPENDED);
}

#[tokio::test]
async fn a_long_answer_of_a_person_is_recorded_to_the_last_word() {
    let world = World::new();
    let session = world.session().await;
    let turn = world.run(&session, asks()).await;
    world.model.then(says("Done.").finish("stop"));
    let text = "word ".repeat(14 * 1024);
    world.sessions.respond_to_ask_human(&turn, &first(&turn), &text).await.expect("answered");
    world.rested().await;
    let state = world.sessions.get_turn(&turn).await.expect("readable").state;
    let result = state.tool_calls.get(&first(&turn)).and_then(|call| call.result.clone());
    let result = result.expect("it has one").data;
    let answers = serde_json::json!({ "question": [text] });
    let expected = serde_json::json!({ "outcome": "answered", "answers": answers });
    assert_eq!((result.output.to_value(), result.is_error), (expected, false));
    assert_eq!(world.status(&session), COMPLETED);
}

#[tokio::test]
async fn an_answer_that_is_too_long_is_refused_and_the_question_waits_on() {
    let world = World::new();
    let session = world.session().await;
    let turn = world.run(&session, asks()).await;
    let before = events(&world, &turn).await;
    let text = "x".repeat(256 * 1024);
    let refused = world.sessions.respond_to_ask_human(&turn, &first(&turn), &text).await;
    let InputRefused::Unfit { call, why } = refusal(refused) else { panic!("it does not fit") };
    assert_eq!(call, first(&turn));
    assert_eq!(why, "it has 262194 bytes, and 262144 fit");
    world.rested().await;
    assert_eq!(events(&world, &turn).await, before);
    assert_eq!(world.status(&session), SUSPENDED);
}

#[tokio::test]
async fn a_result_that_was_changed_to_fit_is_accepted_once_it_is_recorded() {
    let world = World::new();
    let (session, gate) = (world.session().await, gate::Gate::new());
    let turn = world.run(&session, asks()).await;
    world.model.then(Reply::new().gate(&gate).text("Done.").finish("stop"));
    let output = json(r#"{"id":9007199254740993}"#);
    let result = ToolResultData { output, is_error: false, metadata: None };
    let delivered = world.sessions.deliver_async_tool_result(&turn, &first(&turn), result).await;
    delivered.expect("delivered");
    assert!(world.sessions.is_running(&turn), "nobody waited for its end");
    let state = world.sessions.get_turn(&turn).await.expect("readable").state;
    let result = state.tool_calls.get(&first(&turn)).and_then(|call| call.result.clone());
    assert_eq!(result.expect("it has one").data.output, json(r#"{"id":"9007199254740993"}"#));
    gate.open();
    world.rested().await;
    assert_eq!(world.status(&session), COMPLETED);
}

#[tokio::test]
async fn s13_5_a_message_is_never_taken_for_an_answer_on_the_real_runtime() {
    let world = World::new();
    let session = world.session().await;
    let turn = world.run(&session, asks()).await;
    let before = events(&world, &turn).await;
    let refused = world.try_send(&session).await;
    assert!(matches!(refused, Err(SessionError::TurnNotSettled { .. })), "{refused:?}");
    assert_eq!(events(&world, &turn).await, before);
    let entry = world.sessions.index().get(&session).expect("in the index");
    assert_eq!((entry.waiting.len(), &entry.waiting[0].call), (1, &first(&turn)));
}

#[tokio::test]
async fn s13_5_a_stop_ends_every_live_advance_on_the_real_runtime() {
    let gate = Gate::new();
    let writer = FakeTool::sync("write_file").waiting_at(&gate);
    let world = World::writing_with(writer, Arc::new(memory_store()), 42);
    let session = world.session().await;
    let path = || json(r#"{"path":"a"}"#);
    let two = Reply::new().call("write-file", path()).call("write-file", path());
    world.model.then(two.finish("tool-calls"));
    let turn = world.try_send(&session).await.expect("sent");
    world.rested().await;
    world.allow_call(&turn, 1).await.expect("decided");
    gate.arrival().await;
    // Its advance runs; the next one waits for it, its decision recorded already.
    world.allow_call(&turn, 2).await.expect("decided");
    world.sessions.stop_turn(&turn, Some("enough")).await.expect("stopped");
    assert_eq!(world.sessions.running(), []);
    assert_eq!(world.status(&session), CANCELLED);
    world.sessions.stop_turn(&turn, None).await.expect("what has ended counts as stopped");
    assert_eq!(world.model.requests().len(), 1, "no further call");
}

#[tokio::test]
async fn s13_5_a_stop_that_cannot_be_recorded_says_so_on_the_real_runtime() {
    let store = ScriptedStore::new(Arc::new(memory_store()));
    let world = World::over(Arc::new(store.clone()), 42);
    let session = world.session().await;
    let turn = world.run(&session, writes()).await;
    store.fail_at("turn_cancelled");
    let refused = world.sessions.stop_turn(&turn, None).await;
    let full = matches!(refused, Err(SessionError::Advance(AdvanceError::Store(_))));
    assert!(full, "{refused:?}");
    assert_eq!(world.status(&session), SUSPENDED, "nothing false is recorded");
    world.sessions.stop_turn(&turn, None).await.expect("there is room again");
    assert_eq!(world.status(&session), CANCELLED);
}
