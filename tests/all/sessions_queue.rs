//! Messages that wait: delivered once, in the order in which they were typed, and never behind a
//! person's back. On a scripted runtime.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use turnstile::base::clock::Timestamp;
use turnstile::base::id::{EventId, SessionId, ToolCallId, TurnId};
use turnstile::domain::agent::RequestedAgent;
use turnstile::domain::json::Json;
use turnstile::domain::message::UserMessage;
use turnstile::domain::turn::event::{Decision, ReasoningEffort};
use turnstile::domain::turn::status::TurnStatus;
use turnstile::runtime::error::ResolveError;
use turnstile::sessions::api::{SendMessageConfig, Sent};
use turnstile::sessions::error::SessionError;
use turnstile::sessions::trouble::Trouble;
use turnstile::sessions::waiting::{Item, Source, WaitingError};
use turnstile::testing::disk::{Call, EIO, ENOSPC, Fault, Plan};
use turnstile::testing::gate::Gate;
use turnstile::testing::sessions::{SessionWorld, config};
use turnstile::testing::store::Home;
use turnstile::testing::turns::{Script, answering, asking};

/// A world for each form of what keeps the messages.
fn worlds() -> Vec<SessionWorld> {
    vec![SessionWorld::new(), SessionWorld::in_files(&Home::new())]
}

/// A session whose first turn stands at `gate`, and then plays `rest`.
async fn busy(world: &SessionWorld, gate: &Gate, rest: Script) -> (SessionId, TurnId) {
    let session = world.session().await;
    world.turns.then(Script::new().gate(gate).and(rest));
    let sent = world.try_queue(&session, "first").await.expect("sent");
    let Sent::Turn(turn) = sent else { panic!("{sent:?}") };
    gate.reached().await;
    (session, turn)
}

/// The context of the `number`th message that a turn took in; of its input for 0.
async fn context(world: &SessionWorld, turn: &TurnId, number: usize) -> String {
    let state = world.sessions.get_turn(turn).await.expect("readable").state;
    let message = match number.checked_sub(1) {
        None => &state.definition.input,
        Some(at) => &state.inputs[at].message,
    };
    message.user_message_context.as_ref().map(Json::get).unwrap_or_default().to_owned()
}

async fn latest(world: &SessionWorld, session: &SessionId) -> TurnId {
    let state = world.sessions.get_session(session).await.expect("readable");
    state.latest().expect("a turn").id.clone()
}

/// A message that waits, and says whether anybody is to answer it in particular.
fn item(id: &str, text: &str, config: Option<SendMessageConfig>) -> Item {
    Item {
        id: EventId::from(id),
        source: Source::Terminal,
        created_at: Timestamp::from_ms(0),
        message: Arc::new(UserMessage::text(text)),
        config,
    }
}

const E1: &str = "019a7133-74c8-7000-8000-000000000001";
const E2: &str = "019a7133-74c8-7000-8000-000000000002";

#[tokio::test]
async fn a_message_to_a_turn_that_runs_reaches_its_next_boundary() {
    for world in worlds() {
        let gate = Gate::new();
        let (session, turn) = busy(&world, &gate, Script::new().boundary().answer("Done.")).await;
        let event = world.queue(&session, "and then").await;
        world.queue(&session, "and last").await;
        assert_eq!(world.waits(&session).await, ["and then", "and last"]);
        assert_eq!(world.entry(&session).unsent, 2);
        world.clock.pass(Duration::from_mins(1));
        gate.open();
        world.quiet().await;
        assert_eq!(world.said(&session).await, ["first + and then + and last"]);
        assert_eq!(
            context(&world, &turn, 1).await,
            format!(
                r#"{{"currentDateTime":"2026-03-04T05:06:00+00:00","cwd":"/project","eventIds":["{event}"]}}"#
            ),
            "of the moment at which it was delivered"
        );
        assert_eq!(world.waits(&session).await, [""; 0]);
        assert_eq!(world.entry(&session).unsent, 0);
    }
}

#[tokio::test]
async fn what_waits_when_a_turn_completes_becomes_turns_of_their_own_in_order() {
    for world in worlds() {
        let gate = Gate::new();
        let (session, _) = busy(&world, &gate, answering("Done.")).await;
        for text in ["second", "third", "fourth"] {
            world.queue(&session, text).await;
            world.turns.then(Script::new().boundary().answer("Done."));
        }
        gate.open();
        world.quiet().await;
        assert_eq!(world.said(&session).await, ["first", "second", "third", "fourth"]);
        assert_eq!(world.waits(&session).await, [""; 0]);
        assert_eq!(world.entry(&session).unsent, 0);
    }
}

/// A session whose second turn stands at `gate` before a boundary, while a third message, which is
/// given, and a fourth wait. The third waits for a turn of its own.
async fn second_of_four(world: &SessionWorld, gate: &Gate) -> (SessionId, EventId) {
    let first = Gate::new();
    let (session, _) = busy(world, &first, answering("Done.")).await;
    world.queue(&session, "second").await;
    let third = world.queue(&session, "third").await;
    world.turns.then(Script::new().gate(gate).boundary().answer("Done."));
    first.open();
    gate.reached().await;
    world.queue(&session, "fourth").await;
    (session, third)
}

#[tokio::test]
async fn nothing_overtakes_what_waits_for_a_turn_of_its_own() {
    for world in worlds() {
        let gate = Gate::new();
        let (session, _) = second_of_four(&world, &gate).await;
        gate.open();
        world.quiet().await;
        assert_eq!(world.said(&session).await, ["first", "second", "third", "fourth"]);
        assert_eq!(world.waits(&session).await, [""; 0]);
    }
}

#[tokio::test]
async fn what_waits_when_a_turn_is_sent_is_no_part_of_it() {
    for world in worlds() {
        let (gate, completed, again) = (Gate::new(), Gate::new(), Gate::new());
        let (session, _) = busy(&world, &gate, answering("Done.").hold(&completed)).await;
        world.queue(&session, "third").await;
        gate.open();
        completed.reached().await;
        // Faster than whatever follows the first turn.
        world.turns.then(Script::new().gate(&again).boundary().answer("Done."));
        world.try_send(&session, "second").await.expect("the first has ended");
        completed.open();
        again.reached().await;
        again.open();
        world.quiet().await;
        assert_eq!(world.said(&session).await, ["first", "second", "third"]);
        assert_eq!(world.waits(&session).await, [""; 0]);
    }
}

#[tokio::test]
async fn once_what_waits_for_a_turn_of_its_own_is_taken_back_the_next_reaches_the_boundary() {
    for world in worlds() {
        let again = Gate::new();
        let (session, third) = second_of_four(&world, &again).await;
        let taken = world.sessions.take_back(&session, &third).await.expect("it waits");
        assert_eq!((taken.text.as_str(), taken.held), ("third", false));
        again.open();
        world.quiet().await;
        assert_eq!(world.said(&session).await, ["first", "second + fourth"]);
    }
}

#[tokio::test]
async fn after_a_turn_that_failed_or_was_stopped_all_is_held_until_the_person_says_so() {
    let failing = worlds().into_iter().map(|world| (world, true));
    let stopped = worlds().into_iter().map(|world| (world, false));
    for (world, fails) in failing.chain(stopped) {
        let gate = Gate::new();
        let (session, turn) = busy(&world, &gate, Script::new().fail()).await;
        world.queue(&session, "second").await;
        if fails {
            gate.open();
            world.quiet().await;
        } else {
            world.sessions.stop_turn(&turn, None).await.expect("stopped");
        }
        assert_eq!(world.waits(&session).await, ["[second]"]);
        world.queue(&session, "third").await;
        assert_eq!(world.waits(&session).await, ["[second]", "[third]"], "behind what is held");
        assert_eq!(world.said(&session).await, ["first"]);
        world.turns.forget_scripts();
        world.sessions.send_waiting(&session).await.expect("sent");
        world.quiet().await;
        assert_eq!(world.said(&session).await, ["first", "second", "third"]);
    }
}

#[tokio::test]
async fn a_message_to_a_turn_that_waits_is_no_answer_and_goes_on_with_it() {
    for world in worlds() {
        let session = world.session().await;
        let turn = world.run(&session, asking()).await;
        world.queue(&session, "yes").await;
        world.quiet().await;
        assert_eq!(world.waits(&session).await, ["yes"]);
        assert_eq!(world.entry(&session).waiting.len(), 1, "the approval still waits");
        world.turns.then(Script::new().deny_unresolved().boundary().answer("Done."));
        let call = world.entry(&session).waiting[0].call.clone();
        let decided = world.sessions.respond_to_permission(&turn, &call, Decision::Deny, None);
        decided.await.expect("decided");
        world.quiet().await;
        assert_eq!(world.said(&session).await, ["Look at the watcher. + yes"]);
    }
}

#[tokio::test]
async fn an_interrupted_turn_is_not_resumed_by_what_waits_behind_it() {
    for world in worlds() {
        let gate = Gate::new();
        let (session, turn) = busy(&world, &gate, Script::new()).await;
        let next = world.restarted();
        next.queue(&session, "second").await;
        next.sessions.send_waiting(&session).await.expect("nothing to do yet");
        assert_eq!(next.turns.advances(), []);
        assert_eq!(next.waits(&session).await, ["second"]);
        next.turns.then(Script::new().boundary().answer("Done."));
        next.sessions.resume_turn(&session).await.expect("resumed");
        next.rested(&turn).await;
        assert_eq!(next.said(&session).await, ["first + second"]);
    }
}

#[tokio::test]
async fn what_waits_when_the_program_ends_is_held_by_the_next_one() {
    for world in worlds() {
        let gate = Gate::new();
        let (session, _) = busy(&world, &gate, Script::new()).await;
        let event = world.queue(&session, "second").await;
        let next = world.restarted();
        next.sessions.scan().await.expect("scanned");
        assert_eq!(next.entry(&session).unsent, 1);
        assert_eq!(next.waits(&session).await, ["[second]"]);
        next.sessions.edit_waiting(&session, &event, "second thought").await.expect("edited");
        next.turns.then(Script::new().boundary().answer("Done."));
        next.sessions.resume_turn(&session).await.expect("resumed");
        next.quiet().await;
        assert_eq!(next.said(&session).await, ["first"], "what is held is not taken in");
        assert_eq!(next.waits(&session).await, ["[second thought]"]);
        next.sessions.send_waiting(&session).await.expect("sent");
        next.quiet().await;
        assert_eq!(next.said(&session).await, ["first", "second thought"]);
    }
}

#[tokio::test]
async fn a_claim_without_a_trace_in_a_log_returns_at_the_next_start() {
    for world in worlds() {
        let (gate, claimed) = (Gate::new(), Gate::new());
        let (session, _) = busy(&world, &gate, Script::new().boundary()).await;
        world.queue(&session, "second").await;
        world.turns.stop_after_claim(&claimed);
        gate.open();
        claimed.reached().await;
        assert_eq!(world.waits(&session).await, [""; 0]);
        let next = world.restarted();
        next.sessions.scan().await.expect("scanned");
        assert_eq!(next.entry(&session).unsent, 1, "it is still to be sent");
        next.sessions.recover_queues().await.expect("recovered");
        assert_eq!(next.waits(&session).await, ["[second]"]);
    }
}

#[tokio::test]
async fn a_claim_that_a_turn_carries_is_not_delivered_again() {
    for world in worlds() {
        let session = world.session().await;
        for (id, text) in [(E1, "first"), (E2, "second")] {
            world.waiting.put(&session, &item(id, text, None)).await.expect("put");
        }
        let context = Json::parse(&format!(r#"{{"eventIds":["{E1}"]}}"#)).expect("JSON");
        let message =
            UserMessage { user_message_context: Some(context), ..UserMessage::text("first") };
        world.sessions.send_message(&session, message.into(), config()).await.expect("sent");
        world.quiet().await;
        let ids = [E1, E2].map(EventId::from);
        world.waiting.claim(&session, &ids).await.expect("claimed");
        let next = world.restarted();
        next.sessions.recover_queues().await.expect("recovered");
        assert_eq!(next.waits(&session).await, ["[second]"]);
        let kept = next.waiting.look(&session).await.expect("readable");
        assert_eq!(kept.claimed, []);
    }
}

#[tokio::test]
async fn a_message_that_comes_when_the_turn_has_just_ended_begins_the_next_one() {
    for world in worlds() {
        let (gate, resting, running) = (Gate::new(), Gate::new(), Gate::new());
        let (session, first) = busy(&world, &gate, answering("Done.").hold(&resting)).await;
        gate.open();
        resting.reached().await;
        assert!(world.sessions.is_running(&first), "its end is recorded, but it does not rest");
        world.turns.then(Script::new().gate(&running).answer("Done."));
        let sent = world.try_queue(&session, "second").await.expect("sent");
        assert!(matches!(sent, Sent::Turn(_)), "{sent:?}");
        running.reached().await;
        world.queue(&session, "third").await;
        resting.open();
        world.rested(&first).await;
        assert_eq!(world.waits(&session).await, ["third"], "for the turn that runs now");
        running.open();
        world.quiet().await;
        assert_eq!(world.said(&session).await, ["first", "second", "third"]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_message_is_lost_or_sent_twice_however_it_meets_the_end_of_a_turn() {
    for world in worlds() {
        for _ in 0..40 {
            let gate = Gate::new();
            let (session, _) = busy(&world, &gate, answering("Done.")).await;
            gate.open();
            let (second, third) = tokio::join!(
                world.try_queue(&session, "second"),
                world.try_queue(&session, "third")
            );
            second.and(third).expect("sent or waiting");
            world.quiet().await;
            assert_eq!(world.said(&session).await, ["first", "second", "third"]);
        }
    }
}

#[tokio::test]
async fn a_stop_holds_what_waits_before_it_stops_anything() {
    for world in worlds() {
        let gate = Gate::new();
        let session = world.session().await;
        let turn = world.send(&session, Script::new().hold(&gate).answer("Done.")).await;
        gate.reached().await;
        world.queue(&session, "second").await;
        let stop = world.sessions.stop_turn(&turn, None);
        tokio::pin!(stop);
        assert!(futures_util::poll!(&mut stop).is_pending());
        assert_eq!(world.waits(&session).await, ["[second]"]);
        // The turn ends by itself before the signal reaches it.
        world.turns.complete(&turn).await;
        gate.open();
        stop.await.expect("an ended turn counts as stopped");
        world.quiet().await;
        let status = world.sessions.get_turn(&turn).await.expect("readable").state.status();
        assert_eq!(status, TurnStatus::Completed);
        assert_eq!(world.said(&session).await.len(), 1, "nothing follows a stop by itself");
        assert_eq!(world.waits(&session).await, ["[second]"]);
    }
}

#[tokio::test]
async fn stopping_a_turn_that_waits_holds_what_waits_behind_it() {
    for world in worlds() {
        let session = world.session().await;
        let turn = world.run(&session, asking()).await;
        world.queue(&session, "second").await;
        world.sessions.stop_turn(&turn, None).await.expect("stopped");
        world.quiet().await;
        assert_eq!(world.waits(&session).await, ["[second]"]);
        assert_eq!(world.said(&session).await.len(), 1);
    }
}

#[tokio::test]
async fn what_waits_behind_a_turn_at_rest_is_held_before_that_is_stopped() {
    let world = SessionWorld::new();
    let session = world.session().await;
    let turn = world.run(&session, asking()).await;
    world.queue(&session, "second").await;
    let held = Arc::new(AtomicBool::new(false));
    let (sessions, seen, id) = (world.sessions.clone(), Arc::clone(&held), session.clone());
    world.turns.on_advance(move |_| {
        let waiting = sessions.waiting_messages(&id).now_or_never().expect("it is in memory");
        let all_held = waiting.expect("readable").iter().all(|message| message.held);
        seen.store(all_held, Ordering::Relaxed);
    });
    world.sessions.stop_turn(&turn, None).await.expect("stopped");
    assert!(held.load(Ordering::Relaxed), "before the turn is told to end");
}

#[tokio::test]
async fn stopping_a_late_answer_to_an_earlier_turn_holds_nothing_behind_the_one_that_runs() {
    for world in worlds() {
        let (late, gate) = (Gate::new(), Gate::new());
        let session = world.session().await;
        let first = world.run(&session, asking()).await;
        // An answer to the first turn is on its way while that ends and the next one begins.
        world.turns.stop_arrival(&late);
        let call = ToolCallId::from("c1");
        let answer = world.sessions.respond_to_permission(&first, &call, Decision::Allow, None);
        let stop = async {
            late.reached().await;
            world.turns.end(&first).await;
            world.send(&session, Script::new().gate(&gate).answer("Done.")).await;
            gate.reached().await;
            world.queue(&session, "third").await;
            assert!(world.sessions.is_running(&first));
            let arrive = async { late.open() };
            tokio::join!(world.sessions.stop_turn(&first, None), arrive).0
        };
        let (answered, stopped) = tokio::join!(answer, stop);
        assert!(answered.is_err(), "{answered:?}");
        stopped.expect("it has ended");
        assert_eq!(world.waits(&session).await, ["third"]);
        gate.open();
        world.quiet().await;
        assert_eq!(world.said(&session).await.last().map(String::as_str), Some("third"));
    }
}

#[tokio::test]
async fn stopping_a_turn_that_has_ended_holds_nothing_behind_the_one_that_runs() {
    for world in worlds() {
        let gate = Gate::new();
        let session = world.session().await;
        let first = world.run(&session, answering("Done.")).await;
        world.send(&session, Script::new().gate(&gate).answer("Done.")).await;
        gate.reached().await;
        world.queue(&session, "third").await;
        world.sessions.stop_turn(&first, None).await.expect("it has ended");
        assert_eq!(world.waits(&session).await, ["third"]);
        gate.open();
        world.quiet().await;
    }
}

#[tokio::test]
async fn what_is_claimed_cannot_be_taken_back_or_edited() {
    for world in worlds() {
        let (gate, claimed) = (Gate::new(), Gate::new());
        let (session, _) = busy(&world, &gate, Script::new().boundary().answer("Done.")).await;
        let event = world.queue(&session, "second").await;
        world.turns.stop_after_claim(&claimed);
        gate.open();
        claimed.reached().await;
        let taken = world.sessions.take_back(&session, &event).await.map(|it| it.text);
        assert!(
            matches!(&taken, Err(SessionError::Waiting(WaitingError::Claimed(it))) if *it == event),
            "{taken:?}"
        );
        let edited = world.sessions.edit_waiting(&session, &event, "other").await;
        assert!(
            matches!(&edited, Err(SessionError::Waiting(WaitingError::Claimed(_)))),
            "{edited:?}"
        );
        claimed.open();
        world.quiet().await;
        let taken = world.sessions.take_back(&session, &event).await.map(|it| it.text);
        assert!(matches!(&taken, Err(SessionError::Waiting(WaitingError::Gone(_)))), "{taken:?}");
        assert_eq!(world.said(&session).await, ["first + second"]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_message_is_taken_back_or_delivered_and_never_both() {
    for world in worlds() {
        for _ in 0..40 {
            let gate = Gate::new();
            let script = Script::new().boundary().answer("Done.");
            let (session, _) = busy(&world, &gate, script).await;
            let event = world.queue(&session, "second").await;
            gate.open();
            let taken = world.sessions.take_back(&session, &event).await;
            world.quiet().await;
            let said = world.said(&session).await;
            assert_eq!(said, [if taken.is_ok() { "first" } else { "first + second" }]);
            assert_eq!(world.entry(&session).unsent, 0);
        }
    }
}

#[tokio::test]
async fn what_cannot_be_delivered_is_held_and_says_why() {
    for world in worlds() {
        let gate = Gate::new();
        let (session, _) = busy(&world, &gate, answering("Done.")).await;
        world.queue(&session, "second").await;
        let mut changes = world.sessions.follow_queue();
        world.turns.refuse_create(ResolveError::UnknownModel("the model is gone".to_owned()));
        gate.open();
        world.quiet().await;
        assert_eq!(world.waits(&session).await, ["[second]"]);
        assert_eq!(changes.try_recv().expect("it was told").session, session);
        let entry = world.entry(&session);
        assert_eq!(entry.unsent, 1);
        assert!(entry.last_error.is_some_and(|why| why.contains("the model is gone")));
        world.sessions.send_waiting(&session).await.expect("sent");
        world.quiet().await;
        assert_eq!(world.entry(&session).last_error, None);
        assert_eq!(world.said(&session).await, ["first", "second"]);
    }
}

#[tokio::test]
async fn what_cannot_be_claimed_is_held_and_says_why() {
    let home = Home::new();
    let (world, gate) = (SessionWorld::in_files(&home), Gate::new());
    let (session, _) = busy(&world, &gate, answering("Done.")).await;
    world.queue(&session, "second").await;
    world.queue(&session, "third").await;
    let (only, fault) = (Some(Call::Rename), Fault::Error(ENOSPC));
    home.disk.fail(Plan { only, from: 0, times: u64::MAX, fault });
    gate.open();
    world.quiet().await;
    home.disk.heal();
    assert_eq!(world.waits(&session).await, ["[second]", "[third]"]);
    let entry = world.entry(&session);
    assert_eq!(entry.unsent, 2);
    assert!(entry.last_error.as_ref().is_some_and(|why| why.contains(".item.json")), "{entry:?}");
    world.sessions.send_waiting(&session).await.expect("sent");
    world.quiet().await;
    assert_eq!(world.said(&session).await, ["first", "second", "third"]);
    assert_eq!(world.entry(&session).last_error, None);
}

#[tokio::test]
async fn what_kept_a_message_from_being_delivered_is_over_once_any_is() {
    for world in worlds() {
        let gate = Gate::new();
        let (session, _) = busy(&world, &gate, answering("Done.")).await;
        let second = world.queue(&session, "second").await;
        world.turns.refuse_create(ResolveError::UnknownModel("the model is gone".to_owned()));
        gate.open();
        world.quiet().await;
        assert!(world.entry(&session).last_error.is_some());
        world.sessions.take_back(&session, &second).await.expect("taken back");
        assert!(world.entry(&session).last_error.is_some());
        assert!(matches!(world.try_queue(&session, "third").await, Ok(Sent::Turn(_))));
        assert_eq!(world.entry(&session).last_error, None);
    }
}

#[tokio::test]
async fn each_change_of_what_waits_is_told_once() {
    for world in worlds() {
        let gate = Gate::new();
        let (session, turn) = busy(&world, &gate, answering("Done.")).await;
        let mut changes = world.sessions.follow_queue();
        let mut told = || std::iter::from_fn(|| changes.try_recv().ok()).count();
        world.queue(&session, "second").await;
        assert_eq!(told(), 1, "it waits");
        world.sessions.stop_turn(&turn, None).await.expect("stopped");
        world.quiet().await;
        assert_eq!(told(), 1, "it is held");
        world.turns.refuse_create(ResolveError::UnknownModel("the model is gone".to_owned()));
        assert!(world.sessions.send_waiting(&session).await.is_err());
        assert_eq!(told(), 3, "it was let go, claimed, and is held again");
    }
}

#[tokio::test]
async fn a_message_that_does_not_say_so_is_answered_as_the_one_before_it() {
    for world in worlds() {
        let session = world.session().await;
        let nobody = world.waiting.put(&session, &item(E1, "second", None)).await;
        nobody.expect("put");
        let refused = world.sessions.send_waiting(&session).await;
        assert!(
            matches!(refused, Err(SessionError::Waiting(WaitingError::NoAgent(_)))),
            "{refused:?}"
        );
        let config = SendMessageConfig {
            reasoning_effort: Some(ReasoningEffort::High),
            ..SendMessageConfig::of(RequestedAgent::by_id("reviewer"))
        };
        let message = Arc::new(UserMessage::text("first"));
        world.sessions.send_message(&session, message, config).await.expect("sent");
        world.quiet().await;
        world.sessions.send_waiting(&session).await.expect("sent");
        world.quiet().await;
        let turn = latest(&world, &session).await;
        let definition = world.sessions.get_turn(&turn).await.expect("readable").state.definition;
        assert_eq!(definition.agent.requested, RequestedAgent::by_id("reviewer"));
        assert_eq!(definition.config.reasoning_effort, Some(ReasoningEffort::High));
    }
}

#[tokio::test]
async fn what_waits_is_destroyed_with_a_purged_session() {
    let home = Home::new();
    let world = SessionWorld::in_files(&home);
    let (session, _) = busy(&world, &Gate::new(), Script::new()).await;
    world.queue(&session, "second").await;
    world.sessions.purge_session(&session).await.expect("purged");
    for folder in ["var/sessions", "var/deleted"] {
        let left = fs::read_dir(home.work_dir().root().join(folder));
        assert_eq!(left.map_or(0, Iterator::count), 0, "{folder}");
    }
    assert!(world.try_queue(&session, "third").await.is_err());
}

#[tokio::test]
async fn what_waits_goes_with_a_deleted_session_and_comes_back_with_it() {
    for world in worlds() {
        let gate = Gate::new();
        let (session, _) = busy(&world, &gate, Script::new()).await;
        world.queue(&session, "second").await;
        world.sessions.delete_session(&session).await.expect("deleted");
        assert_eq!(world.waits(&session).await, [""; 0]);
        assert!(world.try_queue(&session, "third").await.is_err());
        world.sessions.restore_session(&session).await.expect("restored");
        assert_eq!(world.waits(&session).await, ["[second]"]);
        assert_eq!(world.entry(&session).unsent, 1);
        world.sessions.send_waiting(&session).await.expect("sent");
        world.quiet().await;
        assert_eq!(world.said(&session).await, ["first", "second"]);
    }
}

#[tokio::test]
async fn what_was_claimed_in_a_deleted_session_waits_again_once_that_is_restored() {
    for world in worlds() {
        let (session, event) = (world.session().await, EventId::from(E1));
        world.waiting.put(&session, &item(E1, "first", None)).await.expect("put");
        world.waiting.claim(&session, std::slice::from_ref(&event)).await.expect("claimed");
        let next = world.restarted();
        next.sessions.delete_session(&session).await.expect("deleted");
        next.sessions.recover_queues().await.expect("recovered");
        next.sessions.take_back(&session, &event).await.expect_err("it is gone");
        next.sessions.restore_session(&session).await.expect("restored");
        assert_eq!(next.waits(&session).await, ["[first]"]);
        assert_eq!(next.entry(&session).unsent, 1);
    }
}

#[tokio::test]
async fn what_waits_and_cannot_be_read_is_told_once() {
    let home = Home::new();
    let world = SessionWorld::in_files(&home);
    let session = world.session().await;
    world.waiting.put(&session, &item(E1, "first", None)).await.expect("put");
    let mut folders = fs::read_dir(home.work_dir().runtime_state()).expect("there");
    let folder = folders.next().expect("one").expect("readable").path();
    let file = folder.join("inbox").join(format!("{E1}.pending"));
    fs::write(file, "{").expect("written");
    let next = world.restarted();
    let mut troubles = next.sessions.follow_trouble();
    next.sessions.recover_queues().await.expect("listed");
    let told = troubles.try_recv().expect("told");
    assert!(
        matches!(&told, Trouble::Rejected { session: of, rejected }
            if *of == session && rejected.path.exists() && rejected.path.starts_with(&folder)),
        "{told:?}"
    );
    next.sessions.recover_queues().await.expect("listed");
    assert!(troubles.try_recv().is_err());
}

#[tokio::test]
async fn a_file_that_turns_bad_later_is_moved_away_before_the_next_change_and_told_once() {
    let home = Home::new();
    let world = SessionWorld::in_files(&home);
    let mut troubles = world.sessions.follow_trouble();
    let session = world.session().await;
    world.run(&session, asking()).await;
    let damaged = world.queue(&session, "damaged").await;
    world.queue(&session, "whole").await;
    let folder = fs::read_dir(home.work_dir().runtime_state()).expect("there").next();
    let inbox = folder.expect("the session's").expect("listed").path().join("inbox");
    let bad = [format!("{damaged}.pending"), format!("{E1}.pending")];
    for name in &bad {
        fs::write(inbox.join(name), "{").expect("written");
    }

    assert_eq!(world.waits(&session).await, ["whole"]);
    assert!(troubles.try_recv().is_err(), "who only looks moves nothing");
    world.queue(&session, "next").await;
    assert_eq!(world.waits(&session).await, ["whole", "next"]);
    for name in &bad {
        assert!(!inbox.join(name).exists(), "{name} is still there");
        assert!(inbox.join("rejected").join(name).exists(), "{name} is kept");
        let told = troubles.try_recv().expect("told");
        assert!(matches!(&told, Trouble::Rejected { session: of, .. } if *of == session));
    }
    world.queue(&session, "last").await;
    assert!(troubles.try_recv().is_err(), "it is told once");
}

#[tokio::test]
async fn what_the_disk_does_not_give_today_is_not_taken_for_bad() {
    let home = Home::new();
    let world = SessionWorld::in_files(&home);
    let mut troubles = world.sessions.follow_trouble();
    let session = world.session().await;
    world.run(&session, asking()).await;
    world.queue(&session, "whole").await;
    let fault = Fault::Error(EIO);
    home.disk.fail(Plan { only: Some(Call::Read), from: 0, times: 1, fault });
    assert_eq!(world.waits(&session).await, [""; 0]);
    home.disk.heal();
    world.queue(&session, "next").await;
    assert_eq!(world.waits(&session).await, ["whole", "next"]);
    assert!(troubles.try_recv().is_err(), "nothing is moved");
}
