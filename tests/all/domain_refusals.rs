//! Every rule of `design/turn-runtime.md` section 5 about the life of a turn: what breaks it, how
//! the refusal is told, and that nothing has changed after it.

use std::sync::Arc;

use turnstile::base::id::{ToolCallId, TurnId};
use turnstile::domain::agent::{AgentSnapshot, InheritedAgent, TurnAgent};
use turnstile::domain::turn::apply::reduce_turn;
use turnstile::domain::turn::event::{Decision, TurnContext, TurnCreated, TurnFact};
use turnstile::domain::turn::refusal::{LifeRefusal, TurnCorruption, TurnRefusal};
use turnstile::domain::turn::state::TurnState;
use turnstile::testing::fact::{
    answer, ask, call_failed, calls, cancel, complete, created, decide, extend, fail, inline,
    input, invoke, model, previous, progress, request, result, step, suspend, turn,
};
use turnstile::testing::log::{Log, PREVIOUS_TURN, TURN};

/// The next fact of a log is refused so and told so; the state is as before, and a replay finds the
/// same.
pub(crate) fn check_refused(
    log: &Log<TurnFact>,
    fact: TurnFact,
    refusal: impl Into<TurnRefusal>,
    message: &str,
) {
    let refusal = refusal.into();
    let event = log.next(fact.clone());
    let before = log.state();
    let mut state = before.clone();
    assert_eq!(state.apply(&event), Err(refusal.clone()), "{event:?}");
    assert_eq!(state, before, "{event:?} changed something");
    assert_eq!(refusal.to_string(), message);

    let events = log.clone().then(fact).into_events();
    let corruption = TurnCorruption { number: events.len(), refusal };
    let told = format!("event {}: {message}", events.len());
    assert_eq!(corruption.to_string(), told);
    assert_eq!(reduce_turn(&events), Err(corruption));
}

/// A turn that has just begun.
pub(crate) fn begun() -> Log<TurnFact> {
    Log::turn(created())
}

/// A turn whose first model call is open.
pub(crate) fn asking() -> Log<TurnFact> {
    begun().then(request(0, "input"))
}

/// A turn whose first answer called these tools.
pub(crate) fn calling(named: &str) -> Log<TurnFact> {
    asking().then(calls(0, named))
}

/// A turn that was answered.
pub(crate) fn answered() -> Log<TurnFact> {
    asking().then(answer(0, "Done."))
}

pub(crate) fn call_id(id: &str) -> ToolCallId {
    ToolCallId::from(id)
}

fn endings() -> [TurnFact; 3] {
    [complete(), fail(), cancel()]
}

fn kind(fact: &TurnFact) -> &'static str {
    turnstile::domain::event::Fact::kind(fact)
}

#[test]
fn an_empty_log_is_refused() {
    let empty = TurnCorruption { number: 1, refusal: LifeRefusal::Empty.into() };
    assert_eq!(empty.to_string(), "event 1: the log is empty");
    assert_eq!(reduce_turn(&[]), Err(empty));
}

#[test]
fn a_log_begins_with_turn_created() {
    for fact in [request(0, "input"), result("c1:read-file"), input(1, "x"), cancel()] {
        let log = Log::empty(TurnId::from(TURN)).then(fact.clone());
        let refusal = TurnRefusal::from(LifeRefusal::NotCreated(kind(&fact)));
        let told = format!("the first event is {}, not turn_created", kind(&fact));
        assert_eq!(refusal.to_string(), told);
        assert_eq!(TurnState::begin(&log.events()[0]), Err(refusal.clone()));
        assert_eq!(reduce_turn(log.events()), Err(TurnCorruption { number: 1, refusal }));
    }
}

#[test]
fn a_turn_is_created_once() {
    check_refused(&begun(), created(), LifeRefusal::CreatedTwice, "a second turn_created");
    check_refused(&asking(), created(), LifeRefusal::CreatedTwice, "a second turn_created");
}

#[test]
fn an_event_of_another_turn_is_refused() {
    let foreign = TurnId::from(PREVIOUS_TURN);
    let event = turnstile::domain::event::Event {
        id: foreign.clone(),
        ..begun().next(request(0, "input"))
    };
    let refusal = TurnRefusal::from(LifeRefusal::ForeignTurn {
        expected: TurnId::from(TURN),
        found: foreign,
    });
    let told = format!("the event belongs to turn {PREVIOUS_TURN}, not to {TURN}");
    assert_eq!(refusal.to_string(), told);

    let before = begun().state();
    let mut state = before.clone();
    assert_eq!(state.apply(&event), Err(refusal));
    assert_eq!(state, before);
}

#[test]
fn nothing_follows_an_ending() {
    let late = [
        created(),
        request(1, "assistant:0"),
        step(0),
        ask("c1:read-file"),
        invoke("c1:read-file"),
        result("c1:read-file"),
        input(1, "x"),
        suspend("", ""),
        complete(),
        fail(),
        cancel(),
    ];
    for ending in endings() {
        let ended = answered().then(ending);
        for fact in &late {
            let told = format!("{} after the turn has ended", kind(fact));
            check_refused(&ended, fact.clone(), LifeRefusal::AfterEnd(kind(fact)), &told);
        }
    }
}

fn created_with(context: TurnContext, inherited_from: &str) -> Log<TurnFact> {
    let resolved = AgentSnapshot::Inherited(InheritedAgent {
        agent_id: "assistant".into(),
        model: model(),
        inherited_from: TurnId::from(inherited_from),
    });
    let agent = TurnAgent { resolved, ..turn().agent };
    let created = TurnCreated { context, agent, ..turn() };
    Log::empty(TurnId::from(TURN)).then(TurnFact::Created(Arc::new(created)))
}

fn check_refused_at_once(log: &Log<TurnFact>, refusal: LifeRefusal, message: &str) {
    let refusal = TurnRefusal::from(refusal);
    assert_eq!(refusal.to_string(), message);
    assert_eq!(TurnState::begin(&log.events()[0]), Err(refusal.clone()));
    assert_eq!(reduce_turn(log.events()), Err(TurnCorruption { number: 1, refusal }));
}

#[test]
fn a_snapshot_is_inherited_from_the_previous_turn_only() {
    assert!(reduce_turn(created_with(previous(), PREVIOUS_TURN).events()).is_ok());
    for context in [inline(), TurnContext::Inline(Vec::new())] {
        check_refused_at_once(
            &created_with(context, PREVIOUS_TURN),
            LifeRefusal::InheritedInline,
            "an inherited snapshot on an inline context",
        );
    }
    check_refused_at_once(
        &created_with(previous(), "another"),
        LifeRefusal::InheritedElsewhere {
            from: TurnId::from("another"),
            previous: TurnId::from(PREVIOUS_TURN),
        },
        &format!(
            "the snapshot is inherited from another, but the previous turn is {PREVIOUS_TURN}"
        ),
    );
}

#[test]
fn a_turn_of_another_schema_is_refused() {
    for schema_version in [0, 2] {
        let created = TurnCreated { schema_version, ..turn() };
        check_refused_at_once(
            &Log::empty(TurnId::from(TURN)).then(TurnFact::Created(Arc::new(created))),
            LifeRefusal::UnsupportedVersion(schema_version),
            &format!("unsupported schema version {schema_version}"),
        );
    }
}

#[test]
fn an_open_model_call_holds_everything_up() {
    let ran = calling("c1:read-file").then(invoke("c1:read-file")).then(result("c1:read-file"));
    let open = ran.then(request(1, "assistant:0 toolResult:c1"));
    let held = [request(2, ""), extend("c1", "extra"), input(1, "x"), suspend("", "")];
    for fact in held.into_iter().chain(endings()) {
        let told = format!("{} while a model call is open", kind(&fact));
        check_refused(&open, fact.clone(), LifeRefusal::CallOpen(kind(&fact)), &told);
    }
}

#[test]
fn a_tool_call_without_a_result_holds_the_next_step_up() {
    let invoked = calling("c1:read-file c2:deploy")
        .then(invoke("c1:read-file"))
        .then(result("c1:read-file"))
        .then(invoke("c2:deploy"))
        .then(suspend("", "c2:deploy"));
    let held = [request(1, "assistant:0 toolResult:c1 toolResult:c2"), input(1, "x")];
    for fact in held.into_iter().chain(endings()) {
        let refusal = LifeRefusal::ToolOpen { kind: kind(&fact), call: call_id("c2") };
        let told = format!("{} while tool call c2 has no result", kind(&fact));
        check_refused(&invoked, fact, refusal, &told);
    }
}

#[test]
fn a_turn_completes_with_an_answer_only() {
    let told = "turn_completed without a completed response";
    check_refused(&begun(), complete(), LifeRefusal::NoResponse, told);
    check_refused(&asking().then(call_failed(0)), complete(), LifeRefusal::NoResponse, told);
    let failed_later = answered()
        .then(input(1, "And?"))
        .then(request(1, "assistant:0 input:1"))
        .then(call_failed(1));
    check_refused(&failed_later, complete(), LifeRefusal::NoResponse, told);
}

#[test]
fn a_turn_does_not_complete_while_its_last_answer_calls_tools() {
    let ran = calling("c1:read-file").then(invoke("c1:read-file")).then(result("c1:read-file"));
    let told = "turn_completed although the last response has tool calls";
    check_refused(&ran, complete(), LifeRefusal::ResponseHasCalls, told);
    assert!(reduce_turn(ran.then(fail()).events()).is_ok());
}

#[test]
fn added_inputs_are_numbered_from_one() {
    let out_of = |expected, found| LifeRefusal::InputIndex { expected, found };
    let told = "input 2 out of sequence; 1 would be next";
    check_refused(&begun(), input(2, "x"), out_of(1, 2), told);
    let once = begun().then(input(1, "x"));
    check_refused(&once, input(1, "x"), out_of(2, 1), "input 1 out of sequence; 2 would be next");
    check_refused(&once, input(3, "x"), out_of(2, 3), "input 3 out of sequence; 2 would be next");
    check_refused(&once, input(0, "x"), out_of(2, 0), "input 0 out of sequence; 2 would be next");
}

#[test]
fn a_turn_is_suspended_only_while_something_is_outstanding() {
    let told = "turn_suspended with nothing outstanding";
    let check = |log: &Log<TurnFact>| {
        check_refused(log, suspend("", ""), LifeRefusal::NothingOutstanding, told);
        check_refused(log, suspend("c1:read-file", ""), LifeRefusal::NothingOutstanding, told);
    };
    check(&begun());
    check(&calling("c1:read-file"));
    check(&calling("c1:read-file").then(invoke("c1:read-file")));
    check(&calling("c1:read-file").then(ask("c1:read-file")).then(decide("c1", Decision::Deny)));
    check(&answered());
}

#[test]
fn a_suspension_names_the_outstanding_permissions() {
    let asked = calling("c1:read-file c2:write-file c3:deploy")
        .then(ask("c1:read-file"))
        .then(ask("c2:write-file"))
        .then(invoke("c3:deploy"));
    let told = "turn_suspended names other permissions than the outstanding ones";
    for permissions in [
        "",
        "c1:read-file",
        "c1:read-file c1:read-file",
        "c1:read-file c2:write-file c3:deploy",
        "c1:read-file c2:write-file c2:write-file",
        "c1:read-file c9:write-file",
    ] {
        let fact = suspend(permissions, "c3:deploy");
        check_refused(&asked, fact, LifeRefusal::PermissionsDiffer, told);
    }
    let any_order = asked.clone().then(suspend("c2:write-file c1:read-file", "c3:deploy"));
    assert!(reduce_turn(any_order.events()).is_ok());
    let decided = asked.then(decide("c1", Decision::Allow));
    let stale = suspend("c1:read-file c2:write-file", "c3:deploy");
    check_refused(&decided, stale, LifeRefusal::PermissionsDiffer, told);
}

#[test]
fn a_suspension_names_the_outstanding_async_tools() {
    let exposed = calling("c1:deploy c2:ask-human c3:read-file")
        .then(invoke("c1:deploy"))
        .then(invoke("c2:ask-human"))
        .then(progress("c1:deploy"))
        .then(invoke("c3:read-file"));
    let told = "turn_suspended names other async tools than the outstanding ones";
    for async_tools in
        ["", "c2:ask-human", "c1:deploy c1:deploy", "c1:deploy c2:ask-human c3:read-file"]
    {
        let fact = suspend("", async_tools);
        check_refused(&exposed, fact, LifeRefusal::AsyncToolsDiffer, told);
    }
    assert!(
        reduce_turn(exposed.clone().then(suspend("", "c2:ask-human c1:deploy")).events()).is_ok()
    );
    let arrived = exposed.then(result("c1:deploy"));
    let stale = suspend("", "c1:deploy c2:ask-human");
    check_refused(&arrived, stale, LifeRefusal::AsyncToolsDiffer, told);
}
