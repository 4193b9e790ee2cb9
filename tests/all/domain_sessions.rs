//! The session reducer (`spec/session-layer.md` sections 6 and 13.1, `design/sessions.md`): what a
//! log amounts to, and every rule that refuses one.

use turnstile::base::id::{SessionId, TurnId};
use turnstile::domain::event::{Event, Fact as _};
use turnstile::domain::session::apply::{SessionCorruption, SessionRefusal, reduce_session};
use turnstile::domain::session::event::{GrantAdded, Origin, SessionCreated, SessionFact};
use turnstile::domain::session::state::{SessionState, SessionTurn};
use turnstile::testing::fact::model;
use turnstile::testing::log::{Log, PREVIOUS_TURN, SESSION, moment};
use turnstile::testing::session_fact::{
    appended, archived, compacted, granted, header, revoked, titled, upgraded,
};

fn begun() -> Log<SessionFact> {
    Log::session(header())
}

/// A session of version 2 with one turn.
fn newer() -> Log<SessionFact> {
    begun().then(appended(1, "t1")).then(upgraded(2))
}

fn check_refused(
    log: &Log<SessionFact>,
    fact: SessionFact,
    refusal: SessionRefusal,
    message: &str,
) {
    let event = log.next(fact.clone());
    let before = log.state();
    let mut state = before.clone();
    assert_eq!(state.apply(&event), Err(refusal.clone()), "{event:?}");
    assert_eq!(state, before, "{event:?} changed something");
    assert_eq!(refusal.to_string(), message);

    let events = log.clone().then(fact).into_events();
    let corruption = SessionCorruption { number: events.len(), refusal };
    assert_eq!(corruption.to_string(), format!("event {}: {message}", events.len()));
    assert_eq!(reduce_session(&events), Err(corruption));
}

fn check_refused_at_once(log: &Log<SessionFact>, refusal: SessionRefusal, message: &str) {
    assert_eq!(refusal.to_string(), message);
    assert_eq!(SessionState::begin(&log.events()[0]), Err(refusal.clone()));
    assert_eq!(reduce_session(log.events()), Err(SessionCorruption { number: 1, refusal }));
}

#[test]
fn a_session_is_its_header_its_turns_and_its_last_title() {
    let header = SessionCreated {
        title: Some("First".into()),
        cwd: Some("/p".into()),
        parent_session: Some(SessionId::from("parent")),
        seed_length: Some(1),
        origin: Some(Origin::Job),
        delegation_depth: Some(2),
        ..header()
    };
    let state = Log::session(header.clone())
        .then(appended(1, "t1"))
        .then(titled("Second"))
        .then(appended(2, "t2"))
        .then(titled("Third"))
        .state();
    let turn = |id: &str, session_seq, at| SessionTurn {
        id: TurnId::from(id),
        session_seq,
        agent_id: "assistant".into(),
        model: model(),
        at: moment(at),
    };
    assert_eq!(state.id, SessionId::from(SESSION));
    assert_eq!(*state.header, header);
    assert_eq!(state.schema_version, 1);
    assert_eq!(state.title.as_deref(), Some("Third"));
    assert_eq!(state.turns, [turn("t1", 1, 2), turn("t2", 2, 4)]);
    assert_eq!(state.latest(), Some(&turn("t2", 2, 4)));
    assert_eq!((state.created_at, state.updated_at), (moment(1), moment(5)));
    assert!(state.has_turn(&TurnId::from("t1")) && !state.has_turn(&TurnId::from("t3")));
    assert_eq!((state.grants.len(), state.compactions.len(), state.archived), (0, 0, false));
}

#[test]
fn a_title_is_the_header_s_until_it_is_changed() {
    assert_eq!(begun().state().title, None);
    let titled_header = SessionCreated { title: Some("First".into()), ..header() };
    assert_eq!(Log::session(titled_header).state().title.as_deref(), Some("First"));
    assert_eq!(begun().then(titled("")).state().title.as_deref(), Some(""));
}

#[test]
fn what_happened_last_is_what_the_last_line_says() {
    let mut events = begun().then(appended(1, "t1")).then(titled("x")).into_events();
    events[2].ts = moment(0);
    let state = reduce_session(&events).expect("clocks may go back");
    assert_eq!((state.created_at, state.updated_at), (moment(1), moment(0)));
}

#[test]
fn newer_events_follow_an_upgrade_or_a_newer_header() {
    let state = newer()
        .then(granted("g1"))
        .then(granted("g2"))
        .then(revoked("g1"))
        .then(granted("g1"))
        .then(compacted("k1", "t1"))
        .then(appended(2, "t2"))
        .then(compacted("k2", "t2"))
        .then(archived(true))
        .then(titled("Still here"))
        .state();
    let grant =
        |id: &str| GrantAdded { grant_id: id.into(), tool_id: "shell".into(), pattern: None };
    assert_eq!(state.schema_version, 2);
    assert_eq!(state.grants, [grant("g2"), grant("g1")]);
    let compactions = state.compactions.iter();
    let compactions: Vec<_> = compactions
        .map(|it| (&*it.fact.compaction_id, it.fact.first_kept_turn_id.as_str(), it.after_turns))
        .collect();
    assert_eq!(compactions, [("k1", "t1", 1), ("k2", "t2", 2)]);
    assert!(state.archived);
    assert!(!newer().then(archived(true)).then(archived(false)).state().archived);

    let born_newer = Log::session(SessionCreated { schema_version: 2, ..header() });
    assert_eq!(born_newer.then(granted("g1")).state().grants, [grant("g1")]);
}

#[test]
fn a_log_begins_with_session_created() {
    let empty = SessionCorruption { number: 1, refusal: SessionRefusal::Empty };
    assert_eq!(empty.to_string(), "event 1: the log is empty");
    assert_eq!(reduce_session(&[]), Err(empty));
    for fact in [appended(1, "t1"), titled("x"), upgraded(2), archived(true)] {
        let kind = fact.kind();
        check_refused_at_once(
            &Log::empty(SessionId::from(SESSION)).then(fact),
            SessionRefusal::NotCreated(kind),
            &format!("the first event is {kind}, not session_created"),
        );
    }
}

#[test]
fn a_session_is_created_once() {
    for again in [header(), SessionCreated { schema_version: 2, ..header() }] {
        check_refused(
            &begun().then(appended(1, "t1")),
            SessionFact::Created(again.into()),
            SessionRefusal::CreatedTwice,
            "a second session_created",
        );
    }
}

#[test]
fn an_event_of_another_session_is_refused() {
    let foreign = SessionId::from("another");
    let event = Event { id: foreign.clone(), ..begun().next(titled("x")) };
    let refusal =
        SessionRefusal::ForeignSession { expected: SessionId::from(SESSION), found: foreign };
    let told = format!("the event belongs to session another, not to {SESSION}");
    assert_eq!(refusal.to_string(), told);

    let before = begun().state();
    let mut state = before.clone();
    assert_eq!(state.apply(&event), Err(refusal));
    assert_eq!(state, before);
}

#[test]
fn turns_are_numbered_from_one_without_gaps() {
    let check = |log: &Log<SessionFact>, found, expected| {
        let turn = TurnId::from("new");
        let told = format!("turn new has sessionSeq {found}; {expected} would be next");
        let refusal = SessionRefusal::Place { turn, expected, found };
        check_refused(log, appended(found, "new"), refusal, &told);
    };
    check(&begun(), 2, 1);
    check(&begun(), 0, 1);
    let two = begun().then(appended(1, "t1")).then(appended(2, "t2"));
    for found in [0, 1, 2, 4, u64::MAX] {
        check(&two, found, 3);
    }
}

#[test]
fn a_turn_is_in_its_session_once() {
    let two = begun().then(appended(1, PREVIOUS_TURN)).then(appended(2, "t2"));
    check_refused(
        &two,
        appended(3, PREVIOUS_TURN),
        SessionRefusal::TurnTwice(TurnId::from(PREVIOUS_TURN)),
        &format!("turn {PREVIOUS_TURN} is in the session already"),
    );
}

#[test]
fn newer_events_are_refused_before_an_upgrade() {
    let log = begun().then(appended(1, "t1"));
    for fact in [granted("g1"), revoked("g1"), compacted("k1", "t1"), archived(true)] {
        let kind = fact.kind();
        let refusal = SessionRefusal::VersionTooLow { kind, needed: 2, version: 1 };
        let told = format!("{kind} needs schema version 2, and the session has version 1");
        check_refused(&log, fact, refusal, &told);
    }
}

#[test]
fn an_upgrade_goes_up_to_a_known_version() {
    let told =
        |version| format!("an upgrade to schema version {version}, which the session has already");
    check_refused(&begun(), upgraded(1), SessionRefusal::NoUpgrade(1), &told(1));
    check_refused(&newer(), upgraded(1), SessionRefusal::NoUpgrade(1), &told(1));
    check_refused(&newer(), upgraded(2), SessionRefusal::NoUpgrade(2), &told(2));
    for version in [0, 3] {
        let told = format!("unsupported schema version {version}");
        let refusal = SessionRefusal::UnsupportedVersion(version);
        check_refused(&begun(), upgraded(version), refusal.clone(), &told);
        let header = SessionCreated { schema_version: version, ..header() };
        check_refused_at_once(&Log::session(header), refusal, &told);
    }
}

#[test]
fn a_grant_has_an_id_of_its_own_while_it_stands() {
    let log = newer().then(granted("g1"));
    let twice = SessionRefusal::GrantTwice("g1".into());
    check_refused(&log, granted("g1"), twice, "grant g1 exists already");
    let none = |id: &str| SessionRefusal::NoGrant(id.into());
    check_refused(&log, revoked("g2"), none("g2"), "no grant g2 to remove");
    check_refused(&log.then(revoked("g1")), revoked("g1"), none("g1"), "no grant g1 to remove");
}

#[test]
fn a_compaction_has_an_id_of_its_own_and_keeps_a_turn_of_the_session() {
    let log = newer().then(compacted("k1", "t1"));
    let twice = SessionRefusal::CompactionTwice("k1".into());
    check_refused(&log, compacted("k1", "t1"), twice, "compaction k1 exists already");
    check_refused(
        &log,
        compacted("k2", "t2"),
        SessionRefusal::KeptTurnUnknown(TurnId::from("t2")),
        "a compaction keeps turn t2, which is not in the session",
    );
}
