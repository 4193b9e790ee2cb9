//! The index entry of a session (`spec/session-layer.md` sections 8 and 13.6, `design/sessions.md`).

use serde_json::{Value, json};
use turnstile::base::clock::Timestamp;
use turnstile::base::id::{SessionId, TurnId};
use turnstile::domain::session::entry::{
    LatestTurnStatus, SessionIndexEntry, WaitingCall, WaitingKind, waiting_calls,
};
use turnstile::domain::session::event::{Origin, SessionCreated, SessionFact};
use turnstile::domain::turn::event::{Decision, ResultSource, TurnCancelled, TurnFact};
use turnstile::domain::turn::status::{INTERRUPTED, TurnStatus};
use turnstile::testing::fact::{
    ask, call_failed, cancel, complete, decide, fail, invoke, request, result, result_from,
    suspend, usage,
};
use turnstile::testing::log::{Log, SESSION, TURN, moment};
use turnstile::testing::session_fact::{appended, archived, header, titled, upgraded};

use crate::domain_refusals::{answered, asking, begun, calling};

/// A session whose one turn is [`TURN`].
fn session() -> Log<SessionFact> {
    Log::session(header()).then(appended(1, TURN))
}

fn entry_of(turn: &Log<TurnFact>) -> SessionIndexEntry {
    SessionIndexEntry::new(&session().state(), Some(&turn.state()))
}

fn check_status(turn: &Log<TurnFact>, status: TurnStatus, word: &str) {
    let entry = entry_of(turn);
    assert_eq!(entry.latest_turn_status, LatestTurnStatus::Turn(status));
    assert_eq!(json!(entry)["latestTurnStatus"], word);
    assert_eq!(status.to_string(), word);
    assert_eq!(status.is_terminal(), turn.state().terminal.is_some());
}

#[test]
fn a_session_without_turns_has_no_status() {
    let entry = SessionIndexEntry::new(&Log::session(header()).state(), None);
    assert_eq!(entry.latest_turn_status, LatestTurnStatus::None);
    assert_eq!(
        json!(entry),
        json!({
            "sessionId": SESSION,
            "createdAt": "2026-03-04T05:06:07.001Z",
            "updatedAt": "2026-03-04T05:06:07.001Z",
            "turnCount": 0,
            "latestTurnStatus": "none",
            "archived": false,
            "waiting": [],
            "unsent": 0,
        })
    );
}

#[test]
fn a_turn_that_ended_says_how() {
    check_status(&answered().then(complete()), TurnStatus::Completed, "completed");
    check_status(&answered().then(fail()), TurnStatus::Failed, "failed");
    check_status(&begun().then(cancel()), TurnStatus::Cancelled, "cancelled");
}

#[test]
fn a_turn_that_was_closed_after_a_crash_is_told_from_one_that_was_stopped() {
    let ended = |reason: Option<&str>| {
        let reason = reason.map(str::to_owned);
        let log = begun().then(TurnFact::Cancelled(TurnCancelled { reason, usage: usage() }));
        log.state().terminal.expect("it ended")
    };
    assert!(ended(Some(INTERRUPTED)).is_closed_interruption());
    assert!(!ended(Some("stopped")).is_closed_interruption());
    assert!(!ended(None).is_closed_interruption());
    let failed = begun().then(fail()).state().terminal.expect("it ended");
    assert!(!failed.is_closed_interruption());
}

#[test]
fn a_turn_that_waits_for_nobody_is_idle() {
    let ran = calling("c1:read-file").then(invoke("c1:read-file"));
    let denied =
        calling("c1:read-file").then(ask("c1:read-file")).then(decide("c1", Decision::Deny));
    for turn in [
        begun(),
        asking(),
        asking().then(call_failed(0)),
        answered(),
        calling("c1:read-file"),
        calling("c1:deploy"),
        ran.clone(),
        ran.clone().then(result("c1:read-file")),
        ran.then(result("c1:read-file")).then(request(1, "assistant:0 toolResult:c1")),
        denied,
    ] {
        check_status(&turn, TurnStatus::Idle, "idle");
    }
}

#[test]
fn what_is_outstanding_suspends_a_turn_written_down_or_not() {
    let asked = calling("c1:write-file c2:read-file").then(ask("c1:write-file"));
    let exposed = calling("c1:deploy").then(invoke("c1:deploy"));
    for turn in [
        asked.clone(),
        asked.clone().then(suspend("c1:write-file", "")),
        asked.then(invoke("c2:read-file")),
        exposed.clone(),
        exposed.clone().then(suspend("", "c1:deploy")),
    ] {
        check_status(&turn, TurnStatus::Suspended, "suspended");
    }
    let answered = exposed.clone().then(suspend("", "c1:deploy")).then(result("c1:deploy"));
    check_status(&answered, TurnStatus::Idle, "idle");
    let given_up = exposed.then(result_from("c1:deploy", ResultSource::Runtime));
    check_status(&given_up, TurnStatus::Idle, "idle");
}

#[test]
fn an_entry_shows_the_session_and_its_latest_turn() {
    let header = SessionCreated {
        title: Some("The watcher".into()),
        cwd: Some("/p".into()),
        parent_session: Some(SessionId::from("parent")),
        origin: Some(Origin::Subagent),
        ..header()
    };
    let state = Log::session(header)
        .then(appended(1, "t1"))
        .then(appended(2, TURN))
        .then(upgraded(2))
        .then(archived(true))
        .state();
    let turn = calling("c1:write-file").then(ask("c1:write-file")).state();
    let mut entry = SessionIndexEntry::new(&state, Some(&turn));
    assert_eq!(entry.active_at, moment(3));
    entry.unsent = 2;
    entry.last_error = Some("the disk is full".into());
    let shown: Value = json!(entry);
    assert_eq!(
        shown,
        json!({
            "sessionId": SESSION,
            "title": "The watcher",
            "createdAt": "2026-03-04T05:06:07.001Z",
            "updatedAt": "2026-03-04T05:06:07.005Z",
            "turnCount": 2,
            "lastAgentId": "assistant",
            "lastModel": {"provider": "lab", "model": "tiny-1"},
            "latestTurnId": TURN,
            "latestTurnStatus": "suspended",
            "cwd": "/p",
            "parentSession": "parent",
            "origin": "subagent",
            "archived": true,
            "waiting": [{
                "turn": TURN,
                "call": "c1",
                "kind": "permission",
                "since": "2026-03-04T05:06:07.004Z",
            }],
            "unsent": 2,
            "lastError": "the disk is full",
        })
    );
}

#[test]
fn a_new_name_does_not_move_a_session_up_and_a_new_turn_does() {
    let entry = |log: &Log<SessionFact>| SessionIndexEntry::new(&log.state(), None);
    let log = Log::session(header()).then(titled("Named"));
    assert_eq!((entry(&log).active_at, entry(&log).updated_at), (moment(1), moment(2)));
    let log = log.then(appended(1, "t1"));
    assert_eq!((entry(&log).active_at, entry(&log).updated_at), (moment(3), moment(3)));
    let log = log.then(titled("Renamed")).then(upgraded(2)).then(archived(true));
    assert_eq!((entry(&log).active_at, entry(&log).updated_at), (moment(3), moment(6)));
}

#[test]
fn a_session_whose_latest_turn_is_damaged_keeps_its_own_fields() {
    let log = session().then(titled("Named"));
    let entry = SessionIndexEntry::with_damaged_turn(&log.state(), "line 3: not UTF-8".into());
    let whole = SessionIndexEntry::new(&log.state(), Some(&begun().state()));
    assert_eq!(entry, SessionIndexEntry { error: Some("line 3: not UTF-8".into()), ..whole });
    assert_eq!(json!(entry)["error"], "line 3: not UTF-8");
}

#[test]
fn a_damaged_session_has_an_id_times_and_an_error() {
    let entry = SessionIndexEntry::damaged(SESSION.into(), moment(7), "line 1: {".into());
    assert_eq!(entry.active_at, moment(7));
    assert_eq!(
        json!(entry),
        json!({
            "sessionId": SESSION,
            "createdAt": "2026-03-04T05:06:07.007Z",
            "updatedAt": "2026-03-04T05:06:07.007Z",
            "turnCount": 0,
            "latestTurnStatus": "none",
            "error": "line 1: {",
            "archived": false,
            "waiting": [],
            "unsent": 0,
        })
    );
}

/// What of a waiting call differs from call to call: its id, its kind, since when, and its place
/// among the calls of the answer with the tool.
type Seen = (String, WaitingKind, Timestamp, (usize, String));

fn waiting(call: &str, kind: WaitingKind, since: usize, (place, tool): (usize, &str)) -> Seen {
    (call.to_owned(), kind, moment(since), (place, tool.to_owned()))
}

fn seen(calls: Vec<WaitingCall>) -> Vec<Seen> {
    assert!(calls.iter().all(|call| call.turn == TurnId::from(TURN) && !call.wants.is_empty()));
    let seen = calls.into_iter();
    seen.map(|it| (it.call.to_string(), it.kind, it.since, (it.place, it.tool))).collect()
}

#[test]
fn decisions_and_questions_wait_for_a_person_in_source_order() {
    let turn = calling("c1:ask-human c2:write-file c3:deploy c4:read-file c5:ask-human")
        .then(ask("c2:write-file"))
        .then(invoke("c5:ask-human"))
        .then(invoke("c3:deploy"))
        .then(invoke("c1:ask-human"))
        .then(ask("c4:read-file"));
    let (permission, question) = (WaitingKind::Permission, WaitingKind::Question);
    let all = [
        waiting("c1", question, 7, (0, "ask-human")),
        waiting("c2", permission, 4, (1, "write-file")),
        waiting("c4", permission, 8, (3, "read-file")),
        waiting("c5", question, 5, (4, "ask-human")),
    ];
    assert_eq!(seen(waiting_calls(&turn.state())), all);
    assert_eq!(seen(entry_of(&turn).waiting), all);
    assert_eq!(json!(question), "question");

    let acted = turn
        .then(decide("c2", Decision::Allow))
        .then(decide("c4", Decision::Deny))
        .then(result("c1:ask-human"));
    assert_eq!(seen(waiting_calls(&acted.state())), [waiting("c5", question, 5, (4, "ask-human"))]);
}

#[test]
fn a_question_that_may_not_be_asked_yet_waits_for_its_permission() {
    let asked = calling("c1:ask-human").then(ask("c1:ask-human"));
    let [call] = &waiting_calls(&asked.state())[..] else { panic!("one call waits") };
    assert_eq!(call.kind, WaitingKind::Permission);
    let allowed = asked.then(decide("c1", Decision::Allow));
    assert_eq!(waiting_calls(&allowed.state()), []);
    let invoked = allowed.then(invoke("c1:ask-human"));
    let waits = waiting("c1", WaitingKind::Question, 6, (0, "ask-human"));
    assert_eq!(seen(waiting_calls(&invoked.state())), [waits]);
}

#[test]
fn nothing_waits_in_a_turn_that_has_ended() {
    let turn = calling("c1:ask-human").then(invoke("c1:ask-human"));
    let ended = turn.then(result_from("c1:ask-human", ResultSource::Runtime)).then(cancel());
    assert_eq!(entry_of(&ended).waiting, []);
}

#[test]
fn a_newer_look_at_the_turn_replaces_what_the_entry_says_of_it() {
    let turn = calling("c1:ask-human").then(invoke("c1:ask-human"));
    let mut entry = SessionIndexEntry::with_damaged_turn(&session().state(), "gone".into());
    entry.unsent = 1;
    entry.observe(&turn.state());
    assert_eq!(entry, SessionIndexEntry { unsent: 1, ..entry_of(&turn) });
    let ended = turn.then(result("c1:ask-human")).then(fail());
    entry.observe(&ended.state());
    assert_eq!(entry, SessionIndexEntry { unsent: 1, ..entry_of(&ended) });
}
