//! What stands in the files of sessions, and how many of them there may be.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use turnstile::base::id::SessionId;
use turnstile::domain::session::entry::LatestTurnStatus;
use turnstile::domain::session::event::{Origin, SessionEvent, SessionFact};
use turnstile::domain::turn::event::{TurnCreated, TurnFact};
use turnstile::domain::turn::status::TurnStatus;
use turnstile::sessions::api::{NewSession, SessionFolder};
use turnstile::sessions::index::IndexChange;
use turnstile::store::jsonl::Options;
use turnstile::store::log::{LogId, LogKind, Record};
use turnstile::store::seam::LogStore;
use turnstile::testing::fact::{answer, complete, request, turn};
use turnstile::testing::log::{Log, TURN};
use turnstile::testing::session_fact::{appended, header};
use turnstile::testing::sessions::SessionWorld;
use turnstile::testing::store::{Home, memory_store};
use turnstile::testing::turns::{Script, answering};

/// The names of the fields of each line, in their order.
fn fields(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).expect("there");
    let fields = |line: &str| {
        let line: Value = serde_json::from_str(line).expect("a line is JSON");
        let fields = line.as_object().expect("a line is an object").keys();
        fields.cloned().collect::<Vec<_>>().join(" ")
    };
    text.lines().map(fields).collect()
}

#[tokio::test]
async fn a_plain_session_s_file_holds_the_specified_fields_and_nothing_else() {
    let home = Home::new();
    let world = SessionWorld::over(Arc::new(home.store(Options::default())));
    let plain = world.session().await;
    let new = NewSession {
        title: Some("Reviews".to_owned()),
        folder: SessionFolder::At("/elsewhere".into()),
        parent_session: Some(plain.clone()),
        origin: Some(Origin::Subagent),
        delegation_depth: Some(1),
        created_at: Some("2020-02-02T02:02:02.002Z".parse().expect("a time")),
    };
    let child = world.sessions.create_session(new).await.expect("created");
    for session in [&plain, &child] {
        world.run(session, answering("Done.")).await;
        world.run(session, Script::new().fail()).await;
        world.sessions.set_title(session, "Renamed").await.expect("named");
    }
    let file = |session| home.file(&LogId::session(session).expect("valid"));
    let created = "type sessionId ts schemaVersion";
    let appended = "type sessionId ts turnId sessionSeq agentId model";
    let titled = "type sessionId ts title";
    let with_folder = format!("{created} cwd");
    assert_eq!(fields(&file(&plain)), [&with_folder, appended, titled, appended, titled]);
    let with_all = format!("{created} title cwd parentSession origin delegationDepth");
    assert_eq!(fields(&file(&child)), [&with_all, appended, appended, titled]);
    let text = fs::read_to_string(file(&child)).expect("there");
    assert!(text.lines().all(|line| !line.contains("\"schemaVersion\":2")), "the lowest version");
    assert!(text.contains(r#""ts":"2020-02-02T02:02:02.002Z","schemaVersion":1"#), "{text}");
    let entry = world.entry(&child);
    assert_eq!(entry.created_at.to_string(), "2020-02-02T02:02:02.002Z");
    assert!(child.as_str().starts_with("2026-03-04T"), "its id is of now");
}

/// More would show nothing new, and fewer would not be many.
const MANY: usize = 10_000;

fn id(number: usize) -> String {
    let (seconds, sequence) = (number / 1_000, number % 1_000);
    format!("2026-01-{:02}T00-00-{:02}Z-0000042-{sequence:03}", 1 + number % 28, seconds)
}

/// The files of a session and its one turn, in which the id of both is [`TURN`].
fn templates() -> [(LogKind, String); 2] {
    let session = SessionId::from(TURN);
    let log = Log::empty(session.clone())
        .then(SessionFact::Created(header().into()))
        .then(appended(1, TURN));
    let session_lines = log.events().iter().map(|event: &SessionEvent| event.to_line() + "\n");
    let created = TurnCreated { session_id: Some(session), ..turn() };
    let log = Log::turn(TurnFact::Created(created.into()))
        .then(request(0, "input"))
        .then(answer(0, "Done."))
        .then(complete());
    let turn_lines = log.events().iter().map(|event| event.to_line() + "\n");
    [(LogKind::Session, session_lines.collect()), (LogKind::Turn, turn_lines.collect())]
}

async fn write(store: &dyn LogStore, kind: LogKind, id: &str, lines: &str) {
    let log = LogId::new(kind, id).expect("valid");
    let records = lines.lines().map(|line| Record::new(line.to_owned()).expect("an object"));
    let written = store.create(&log, &records.collect::<Vec<_>>()).await;
    drop(written.expect("created"));
}

#[tokio::test]
async fn of_ten_thousand_sessions_three_damaged_ones_harm_no_other() {
    // In memory, since making so many files is what would take the time.
    let store = memory_store();
    let templates = templates();
    let damaged = [(7, LogKind::Session), (4_321, LogKind::Turn), (9_999, LogKind::Session)];
    for number in 0..MANY {
        for (kind, lines) in &templates {
            let is_damaged = damaged.contains(&(number, *kind));
            let lines = if is_damaged { "{}" } else { &lines.replace(TURN, &id(number)) };
            write(&store, *kind, &id(number), lines).await;
        }
    }
    let world = SessionWorld::over(Arc::new(store));
    let mut changes = world.sessions.index().follow();
    world.sessions.scan().await.expect("scanned");
    let entries = world.sessions.list_sessions();
    let (errored, usable): (Vec<_>, Vec<_>) =
        entries.into_iter().partition(|entry| entry.error.is_some());
    assert_eq!((usable.len(), errored.len()), (MANY - 3, 3));
    let done = LatestTurnStatus::Turn(TurnStatus::Completed);
    assert!(usable.iter().all(|it| it.latest_turn_status == done && it.turn_count == 1));
    let errored: Vec<_> = errored.iter().map(|entry| entry.session_id.to_string()).collect();
    let mut expected = damaged.map(|(number, _)| id(number));
    expected.sort_unstable();
    assert_eq!(errored, expected);

    // It came in parts, and each part said how far it was.
    let (mut told, mut last) = (0, 0);
    while let Ok(IndexChange::Scanned { entries, done, total }) = changes.try_recv() {
        assert!(done > last && total == MANY, "{done} of {total} after {last}");
        (told, last) = (told + entries.len(), done);
    }
    assert_eq!((told, last), (MANY, MANY));
}
