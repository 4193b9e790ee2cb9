//! Answers from outside, by the numbers of `spec/session-layer.md` section 13, on a scripted runtime.

use tokio::sync::broadcast::Receiver;
use turnstile::base::id::{SessionId, ToolCallId, TurnId};
use turnstile::domain::json::Json;
use turnstile::domain::question::Answer;
use turnstile::domain::session::entry::{LatestTurnStatus, WaitingKind};
use turnstile::domain::turn::event::{Decision, ToolResultData};
use turnstile::domain::turn::status::TurnStatus;
use turnstile::runtime::api::ExternalInput;
use turnstile::runtime::error::{AdvanceError, InputRefused, ReadError};
use turnstile::sessions::error::SessionError;
use turnstile::sessions::trouble::Trouble;
use turnstile::testing::fact::json;
use turnstile::testing::gate::Gate;
use turnstile::testing::log::TURN;
use turnstile::testing::sessions::SessionWorld;
use turnstile::testing::turns::{Script, answering, asking, questioning};

fn c1() -> ToolCallId {
    ToolCallId::from("c1")
}

fn refusal(answered: Result<(), SessionError>) -> InputRefused {
    match answered {
        Err(SessionError::Advance(AdvanceError::Refused(refused))) => refused,
        other => panic!("{other:?}"),
    }
}

async fn allow(world: &SessionWorld, turn: &TurnId, call: &str) -> Result<(), SessionError> {
    let call = ToolCallId::from(call);
    world.sessions.respond_to_permission(turn, &call, Decision::Allow, None).await
}

/// The inputs that the runtime was given for a turn.
fn inputs(world: &SessionWorld, turn: &TurnId) -> Vec<ExternalInput> {
    let advances = world.turns.advances().into_iter();
    advances.filter(|advance| advance.turn == *turn).filter_map(|advance| advance.input).collect()
}

fn status(world: &SessionWorld, session: &SessionId) -> LatestTurnStatus {
    world.entry(session).latest_turn_status
}

/// Two sessions that wait, of which only the first is answered.
async fn two_waiting(script: Script) -> (SessionWorld, [(SessionId, TurnId); 2]) {
    let world = SessionWorld::new();
    let (one, two) = (world.session().await, world.session().await);
    let first = world.run(&one, script.clone()).await;
    let second = world.run(&two, script).await;
    (world, [(one, first), (two, second)])
}

#[tokio::test]
async fn s13_5_a_decision_advances_its_turn() {
    for (decision, script) in [
        (Decision::Allow, Script::new().run("c1").result("c1").answer("Done.")),
        (Decision::Deny, Script::new().deny("c1").answer("Done.")),
    ] {
        let (world, [(one, first), (two, second)]) = two_waiting(asking()).await;
        world.turns.then(script);
        let metadata = Some(json(r#"{"reason":"as you like"}"#));
        let (sessions, call) = (&world.sessions, c1());
        let decided = sessions.respond_to_permission(&first, &call, decision, metadata.clone());
        decided.await.expect("decided");
        world.rested(&first).await;
        let expected = ExternalInput::PermissionDecision { call: c1(), decision, metadata };
        assert_eq!(inputs(&world, &first), [expected]);
        assert_eq!(inputs(&world, &second), []);
        assert_eq!(status(&world, &one), LatestTurnStatus::Turn(TurnStatus::Completed));
        assert_eq!(status(&world, &two), LatestTurnStatus::Turn(TurnStatus::Suspended));
    }
}

#[tokio::test]
async fn s13_5_an_answer_to_a_question_advances_its_turn() {
    let (world, [(one, first), (two, second)]) = two_waiting(questioning()).await;
    world.turns.then(answering("Done."));
    world.sessions.respond_to_ask_human(&first, &c1(), "The left one").await.expect("answered");
    world.rested(&first).await;
    let result = ToolResultData {
        output: json(r#"{"outcome":"answered","answers":{"which":["The left one"]}}"#),
        is_error: false,
        metadata: None,
    };
    let expected = ExternalInput::AsyncToolResult { call: c1(), result };
    assert_eq!(inputs(&world, &first), [expected]);
    assert_eq!(inputs(&world, &second), []);
    assert_eq!(status(&world, &one), LatestTurnStatus::Turn(TurnStatus::Completed));
    assert_eq!(status(&world, &two), LatestTurnStatus::Turn(TurnStatus::Suspended));
}

#[tokio::test]
async fn s13_5_forms_are_answered_as_a_whole_or_dismissed() {
    let form = r#"{"questions":[{"id":"a","text":"A?"},{"id":"b","text":"B?"}]}"#;
    let script = || Script::new().calls_with("c1:ask-human", form).expose("c1").suspend();
    let (world, [(_, first), (_, second)]) = two_waiting(script()).await;
    let one_text = world.sessions.respond_to_ask_human(&first, &c1(), "x").await;
    assert!(matches!(&one_text, Err(SessionError::SeveralQuestions(call)) if *call == c1()));
    assert_eq!(inputs(&world, &first), []);
    let answers = [("a", "1"), ("b", "2")].map(|(id, it)| (id.to_owned(), vec![it.to_owned()]));
    let answer = Answer::Answered(answers.to_vec());
    for (turn, answer) in [(&first, answer), (&second, Answer::Dismissed)] {
        world.turns.then(answering("Done."));
        world.sessions.answer_questions(turn, &c1(), &answer).await.expect("answered");
        world.rested(turn).await;
        let result = answer.to_result();
        assert_eq!(inputs(&world, turn), [ExternalInput::AsyncToolResult { call: c1(), result }]);
    }
}

#[tokio::test]
async fn s13_5_a_result_and_reports_before_it_advance_their_turn() {
    let script = Script::new().calls("c1:deploy").expose("c1").suspend();
    let (world, [(one, first), (_, second)]) = two_waiting(script).await;
    let progress = json("0.5");
    world.turns.then(Script::new().suspend());
    let reported = world.sessions.report_async_tool_progress(&first, &c1(), progress.clone()).await;
    reported.expect("reported");
    world.rested(&first).await;
    assert_eq!(status(&world, &one), LatestTurnStatus::Turn(TurnStatus::Suspended));
    world.turns.then(answering("Done."));
    let result = ToolResultData { output: Json::text("live"), is_error: false, metadata: None };
    let delivered = world.sessions.deliver_async_tool_result(&first, &c1(), result.clone()).await;
    delivered.expect("delivered");
    world.rested(&first).await;
    let expected = [
        ExternalInput::AsyncToolProgress { call: c1(), progress },
        ExternalInput::AsyncToolResult { call: c1(), result },
    ];
    assert_eq!(inputs(&world, &first), expected);
    assert_eq!(inputs(&world, &second), []);
    assert_eq!(status(&world, &one), LatestTurnStatus::Turn(TurnStatus::Completed));
}

#[tokio::test]
async fn s13_5_only_the_tool_that_asks_a_person_takes_a_persons_answer() {
    let script = Script::new().calls("c1:deploy").expose("c1").suspend();
    let (world, [(_, turn), _]) = two_waiting(script).await;
    let text = world.sessions.respond_to_ask_human(&turn, &c1(), "yes").await;
    let form = world.sessions.answer_questions(&turn, &c1(), &Answer::Dismissed).await;
    let why = "tool call c1 asks nobody; deliver the result of \"deploy\" instead of an answer";
    for refused in [text, form] {
        assert!(matches!(refused, Err(SessionError::NoQuestion { .. })), "{refused:?}");
        assert_eq!(refused.expect_err("refused").to_string(), why);
    }
    assert_eq!(inputs(&world, &turn), []);
}

#[tokio::test]
async fn s13_5_what_the_runtime_refuses_is_refused() {
    let world = SessionWorld::new();
    let session = world.session().await;
    let turn = world.run(&session, asking()).await;
    let before = world.turn_repo.read(&turn).await.expect("readable").events.len();
    let call = ToolCallId::from("c9");
    let unknown = InputRefused::UnknownCall { turn: turn.clone(), call };
    assert_eq!(refusal(allow(&world, &turn, "c9").await), unknown);
    let answered = world.sessions.answer_questions(&turn, &c1(), &Answer::Dismissed).await;
    assert_eq!(refusal(answered), InputRefused::NoResultPending(c1()));
    let after = world.turn_repo.read(&turn).await.expect("readable").events.len();
    assert_eq!(
        (before, status(&world, &session)),
        (after, LatestTurnStatus::Turn(TurnStatus::Suspended))
    );

    world.turns.then(Script::new().run("c1").result("c1").answer("Done."));
    allow(&world, &turn, "c1").await.expect("decided");
    world.rested(&turn).await;
    let ended = InputRefused::Ended { turn: turn.clone(), status: TurnStatus::Completed };
    assert_eq!(refusal(allow(&world, &turn, "c1").await), ended, "a late answer changes nothing");
    let missing = allow(&world, &TurnId::from(TURN), "c1").await;
    assert!(matches!(missing, Err(SessionError::Read(ReadError::Store(_)))), "{missing:?}");
}

#[tokio::test]
async fn s13_5_a_message_is_never_taken_for_an_answer() {
    let world = SessionWorld::new();
    let session = world.session().await;
    let turn = world.run(&session, questioning()).await;
    let before = world.turn_repo.read(&turn).await.expect("readable").events.len();
    let refused = world.try_send(&session, "The left one").await;
    assert!(matches!(refused, Err(SessionError::TurnNotSettled { .. })), "{refused:?}");
    assert_eq!(inputs(&world, &turn), []);
    assert_eq!(world.turn_repo.read(&turn).await.expect("readable").events.len(), before);
    assert_eq!(world.entry(&session).waiting.len(), 1);
}

#[tokio::test]
async fn an_answer_is_accepted_once_it_is_recorded_while_the_turn_goes_on() {
    let world = SessionWorld::new();
    let (session, gate) = (world.session().await, Gate::new());
    let turn = world.run(&session, asking()).await;
    world.turns.then(Script::new().gate(&gate).run("c1").result("c1").answer("Done."));
    let decided = world.sessions.respond_to_permission(&turn, &c1(), Decision::Allow, None).await;
    decided.expect("decided");
    assert!(world.sessions.is_running(&turn), "nobody waited for its end");
    assert_eq!(world.entry(&session).waiting, [], "and the index knows");
    gate.open();
    world.rested(&turn).await;
    assert_eq!(status(&world, &session), LatestTurnStatus::Turn(TurnStatus::Completed));
}

#[tokio::test]
async fn of_two_answers_to_one_prompt_one_is_taken_and_the_other_is_told() {
    let world = SessionWorld::new();
    let (session, gate) = (world.session().await, Gate::new());
    let turn = world.run(&session, asking()).await;
    world.turns.then(Script::new().gate(&gate).run("c1").result("c1").answer("Done."));
    let allowed = allow(&world, &turn, "c1").await;
    let denied = world.sessions.respond_to_permission(&turn, &c1(), Decision::Deny, None).await;
    let again = allow(&world, &turn, "c1").await;
    allowed.expect("the first one is taken");
    assert_eq!(refusal(denied), InputRefused::NoDecisionPending(c1()));
    assert_eq!(refusal(again), InputRefused::NoDecisionPending(c1()));
    gate.open();
    world.rested(&turn).await;
}

#[tokio::test]
async fn a_prompt_that_appears_while_a_sibling_runs_waits_in_the_index_at_once() {
    let world = SessionWorld::new();
    let (session, asked, ran) = (world.session().await, Gate::new(), Gate::new());
    let script = Script::new()
        .calls("c1:read-file c2:write-file c3:ask-human")
        .run("c1")
        .ask("c2:write-file")
        .expose("c3")
        .gate(&asked)
        .result("c1")
        .gate(&ran)
        .suspend();
    let turn = world.send(&session, script).await;
    let kinds = |world: &SessionWorld| {
        let waiting = world.entry(&session).waiting;
        waiting.iter().map(|it| (it.call.to_string(), it.kind)).collect::<Vec<_>>()
    };
    let all =
        [("c2".to_owned(), WaitingKind::Permission), ("c3".to_owned(), WaitingKind::Question)];
    asked.reached().await;
    while kinds(&world).len() < 2 {
        tokio::task::yield_now().await;
    }
    assert!(world.sessions.is_running(&turn));
    assert_eq!(kinds(&world), all);
    assert_eq!(status(&world, &session), LatestTurnStatus::Turn(TurnStatus::Suspended));
    asked.open();
    ran.reached().await;

    // One is answered while the advance still runs: it no longer waits, and the other one does.
    let answered = world.sessions.respond_to_ask_human(&turn, &ToolCallId::from("c3"), "x").await;
    answered.expect("answered");
    assert_eq!(kinds(&world), all[..1]);
    ran.open();
    world.rested(&turn).await;
    assert_eq!(kinds(&world), all[..1]);
}

/// The next advance that is told to have broken off, and why.
async fn broken_off(troubles: &mut Receiver<Trouble>) -> (SessionId, TurnId, String) {
    match troubles.recv().await.expect("told") {
        Trouble::Advance { session, turn, error } => (session, turn, error.to_string()),
        Trouble::Rejected { rejected, .. } => panic!("{rejected}"),
    }
}

#[tokio::test]
async fn an_advance_that_breaks_down_is_told_to_whoever_follows() {
    let world = SessionWorld::new();
    let mut troubles = world.sessions.follow_trouble();
    let session = world.session().await;
    let turn = world.run(&session, Script::new().calls("c1:read-file").break_down()).await;
    let (of, at, why) = broken_off(&mut troubles).await;
    assert_eq!((of, at), (session.clone(), turn.clone()));
    assert_eq!(why, format!("turn {turn} could not be ended"));
    assert_eq!(status(&world, &session), LatestTurnStatus::Turn(TurnStatus::Idle));

    // Whoever waits for it is told alone.
    world.turns.refuse_advance(AdvanceError::NotEnded(turn.clone()));
    let closed = world.sessions.close_interrupted(&session).await;
    assert!(matches!(closed, Err(SessionError::Advance(AdvanceError::NotEnded(_)))), "{closed:?}");
    world.sessions.close_interrupted(&session).await.expect("closed");
    assert!(troubles.try_recv().is_err());
}

#[tokio::test]
async fn trouble_after_an_answer_that_was_taken_is_told_and_the_answer_stands() {
    let (world, [(session, turn), _]) = two_waiting(asking()).await;
    let mut troubles = world.sessions.follow_trouble();
    world.turns.then(Script::new().break_down());
    allow(&world, &turn, "c1").await.expect("it is recorded");
    let (of, at, _) = broken_off(&mut troubles).await;
    assert_eq!((of, at), (session, turn));
}

#[tokio::test]
async fn an_answer_that_is_recorded_is_taken_although_nobody_heard_of_it() {
    let (world, [(_, turn), _]) = two_waiting(asking()).await;
    let mut troubles = world.sessions.follow_trouble();
    world.turns.break_off_after_recording(AdvanceError::NotEnded(turn.clone()));
    allow(&world, &turn, "c1").await.expect("it stands in the log");
    assert_eq!(broken_off(&mut troubles).await.1, turn);
}

#[tokio::test]
async fn an_answer_of_which_nothing_is_known_is_not_taken_for_safe() {
    let (world, [(_, turn), _]) = two_waiting(asking()).await;
    let gate = Gate::new();
    world.turns.stop_arrival(&gate);
    let work = async {
        gate.reached().await;
        let stopping = world.sessions.stop_turn(&turn, None);
        let go_on = async {
            world.turns.refuse_reads(&turn);
            gate.open();
        };
        drop(tokio::join!(stopping, go_on));
    };
    let (allowed, ()) = tokio::join!(allow(&world, &turn, "c1"), work);
    assert!(matches!(allowed, Err(SessionError::Advance(AdvanceError::Read(_)))), "{allowed:?}");
}
