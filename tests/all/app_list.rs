//! The list of sessions as the program tells it.

use std::collections::{BTreeMap, BTreeSet};

use turnstile::app::command::DraftOf;
use turnstile::app::notice::Notice;
use turnstile::base::id::{SessionId, TurnId};
use turnstile::domain::session::entry::SessionIndexEntry;
use turnstile::domain::turn::live::{LiveEvent, News};
use turnstile::sessions::api::NewSession;
use turnstile::testing::model_server::{ModelServer, Reply};

use crate::app_world::{GUIDE, Person, process, with_model};

#[test]
fn a_start_tells_the_whole_list_and_then_that_it_is_whole() {
    let person = Person::new(GUIDE);
    process(async {
        let running = person.start();
        for _ in 0..300 {
            let sessions = &running.app.graph().sessions;
            sessions.create_session(NewSession::default()).await.expect("created");
        }
        running.leave().await;
    });
    process(async {
        let mut running = person.start();
        let mut listed = BTreeMap::new();
        let error = running
            .until(|notice| match notice {
                Notice::Scanned { entries, done, total } => {
                    assert!(*done <= *total && *total == 300);
                    let entries = entries.iter().cloned();
                    listed.extend(entries.map(|entry| (entry.session_id.clone(), entry)));
                    None
                }
                Notice::ScanEnded { error, .. } => Some(error.clone()),
                _ => None,
            })
            .await;
        assert_eq!(error, None);
        let index = running.app.graph().sessions.list_sessions();
        assert_eq!(listed.into_values().collect::<Vec<_>>(), index);
        assert_eq!(index.len(), 300);
    });
}

#[tokio::test]
async fn whoever_reads_late_still_arrives_at_the_index() {
    const CHANGES: usize = 1_100; // more than wait for anybody
    let person = Person::new(GUIDE);
    let mut running = person.start();
    running.listed().await;
    let sessions = running.app.graph().sessions.clone();
    let create = || sessions.create_session(NewSession::default());
    let gone = create().await.expect("created");
    let mut seen = BTreeSet::new();
    running.until(|notice| see(&mut seen, notice).contains(&gone).then_some(())).await;

    // The queue of notices is full, and nobody reads.
    let hub = running.app.graph().runtime.hub().clone();
    for number in 0..FLOOD {
        let (session, turn) = (None, TurnId::from(format!("t{number}")));
        hub.publish(&LiveEvent { session, turn, news: News::Started });
        if number % 64 == 0 {
            tokio::task::yield_now().await;
        }
    }
    sessions.delete_session(&gone).await.expect("deleted");
    for _ in 0..CHANGES {
        create().await.expect("created");
    }
    let index: BTreeSet<_> =
        sessions.list_sessions().iter().map(|entry| entry.session_id.clone()).collect();
    assert!(index.len() == CHANGES && !index.contains(&gone));
    running.until(|notice| (*see(&mut seen, notice) == index).then_some(())).await;
}

/// More than wait for anybody.
const FLOOD: usize = 6_000;

/// Takes in what is told of the list.
fn see<'a>(seen: &'a mut BTreeSet<SessionId>, notice: &Notice) -> &'a BTreeSet<SessionId> {
    match notice {
        Notice::IndexChanged { session, entry: None } => drop(seen.remove(session)),
        Notice::IndexChanged { session, .. } => drop(seen.insert(session.clone())),
        Notice::Scanned { entries, .. } => {
            seen.extend(entries.iter().map(|entry| entry.session_id.clone()));
        }
        _ => {}
    }
    seen
}

#[tokio::test]
async fn a_session_is_named_by_the_model_where_the_configuration_says_so() {
    let says = |text| Reply::stream().text(text).finish("stop").event("[DONE]");
    let server = ModelServer::start([says("It was the clock."), says("A watcher and its clock")]);
    let server = server.await.expect("a port");
    let person = Person::new(&format!("{}[agents]\nauto_title = true\n", with_model(&server)));
    let mut running = person.start();
    let (session, _) = running.run(DraftOf::NewSession, "Look at the watcher.").await;
    let named = "A watcher and its clock";
    let named = |entry: &SessionIndexEntry| entry.title.as_deref() == Some(named);
    running
        .until(|notice| match notice {
            Notice::IndexChanged { session: of, entry: Some(entry) } if *of == session => {
                named(entry).then_some(())
            }
            _ => None,
        })
        .await;
    let tools = server.requests().into_iter().map(|request| request.body.contains("\"tools\""));
    assert_eq!(tools.collect::<Vec<_>>(), [true, false]);
}
