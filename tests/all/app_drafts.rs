//! What is kept for a person between runs, and what of it goes with a deleted session.

use std::fs;

use turnstile::app::command::{Command, Draft, DraftOf, ListSettings, SortBy};
use turnstile::app::notice::{Notice, Refused};
use turnstile::base::id::{SessionId, ToolCallId, TurnId};
use turnstile::domain::session::event::Origin;
use turnstile::sessions::api::NewSession;

use crate::app_world::{GUIDE, Person, Running, draft, process};

async fn remembered(running: &mut Running) -> (Vec<String>, ListSettings) {
    running
        .until(|notice| match notice {
            Notice::Remembered { history, list } => Some((history.clone(), *list)),
            _ => None,
        })
        .await
}

async fn deleted(running: &mut Running) -> Vec<SessionId> {
    running
        .until(|notice| match notice {
            Notice::Deleted(sessions) => Some(sessions.clone()),
            _ => None,
        })
        .await
}

async fn restored(running: &mut Running) -> Vec<SessionId> {
    running
        .until(|notice| match notice {
            Notice::Restored(sessions) => Some(sessions.clone()),
            _ => None,
        })
        .await
}

/// A session of the guide's that waits for a decision, with something half typed in its composer and
/// in its prompt.
async fn half_typed(running: &mut Running) -> (SessionId, TurnId, ToolCallId) {
    let (session, turn) = running.run(DraftOf::NewSession, "Hello.").await;
    let state = running.app.graph().sessions.get_turn(&turn).await.expect("readable").state;
    let call = state.outstanding_permissions().next().expect("it asks").id.clone();
    let (composer, prompt) = (DraftOf::Session(session.clone()), DraftOf::Prompt(call.clone()));
    running.perform(Command::SaveDraft { of: composer.clone(), draft: draft("half a thought") });
    running.perform(Command::SaveDraft { of: prompt, draft: draft("half an answer") });
    assert_eq!(running.draft(composer).await, draft("half a thought"));
    (session, turn, call)
}

#[test]
fn drafts_survive_a_kill_each_for_itself() {
    let person = Person::new(GUIDE);
    let whose = [
        DraftOf::NewSession,
        DraftOf::Session(SessionId::from("2026-03-04T04-59-59Z-0000042-000")),
        DraftOf::Prompt(ToolCallId::from("2026-03-04T04-59-59Z-0000042-000_1")),
    ];
    let text = |number: usize| Draft {
        text: format!("draft {number} \u{1f600}\n"),
        caret: number,
        pastes: vec!["pasted".to_owned(); number],
    };
    process(async {
        let mut running = person.start();
        for (number, of) in whose.iter().enumerate() {
            for draft in [draft("an older one"), text(number)] {
                running.perform(Command::SaveDraft { of: of.clone(), draft });
            }
        }
        // Whoever loads hears of what was saved before.
        assert_eq!(running.draft(whose[2].clone()).await, text(2));
    });
    process(async {
        let mut running = person.start();
        for (number, of) in whose.iter().enumerate() {
            assert_eq!(running.draft(of.clone()).await, text(number));
            running.perform(Command::SaveDraft { of: of.clone(), draft: Draft::default() });
            assert_eq!(running.draft(of.clone()).await, Draft::default());
        }
        assert_eq!(person.draft_files(), 0, "an empty draft is none");
        running.leave().await;
    });
}

#[tokio::test]
async fn what_was_typed_before_its_draft_was_given_back_comes_behind_it() {
    let person = Person::new(GUIDE);
    let mut running = person.start();
    let of = DraftOf::NewSession;
    let typed = |text: &str, paste: &str| Draft {
        text: format!("{text} \u{e000}"),
        caret: 0,
        pastes: vec![paste.to_owned()],
    };
    for typed in [typed("one", "first"), typed("two", "second")] {
        running.perform(Command::AppendDraft { of: of.clone(), typed });
    }
    let text = "one \u{e000}\ntwo \u{e000}".to_owned();
    let pastes = ["first", "second"].map(str::to_owned).to_vec();
    assert_eq!(running.draft(of).await, Draft { caret: text.len(), text, pastes });
}

#[test]
fn history_and_list_settings_are_there_at_the_next_start() {
    let person = Person::new(GUIDE);
    let settings = ListSettings { sort: SortBy::Title, hidden: true };
    process(async {
        let mut running = person.start();
        assert_eq!(remembered(&mut running).await, (Vec::new(), ListSettings::default()));
        for text in ["one", "two", "one"] {
            running.perform(Command::Remember(text.to_owned()));
        }
        running.perform(Command::SaveListSettings(settings));
        running.leave().await;
    });
    process(async {
        let mut running = person.start();
        let history = ["two", "one"].map(str::to_owned).to_vec();
        assert_eq!(remembered(&mut running).await, (history, settings));
    });
}

#[test]
fn what_cannot_be_read_any_more_is_as_if_it_were_not_there() {
    let person = Person::new(GUIDE);
    process(async { person.start().leave().await });
    fs::write(person.work_dir().join("var/composer/history.json"), "[").expect("written");
    process(async {
        let mut running = person.start();
        assert_eq!(remembered(&mut running).await.0, Vec::<String>::new());
    });
}

#[tokio::test]
async fn a_deleted_session_leaves_no_draft_and_a_restored_one_has_all_again() {
    let person = Person::new(GUIDE);
    let mut running = person.start();
    running.listed().await;
    let (session, _, call) = half_typed(&mut running).await;
    let before = person.tree();
    running.perform(Command::Delete(vec![session.clone()]));
    assert_eq!(deleted(&mut running).await, std::slice::from_ref(&session));
    assert_eq!(person.draft_files(), 0);
    let (of, prompt) = (DraftOf::Session(session.clone()), DraftOf::Prompt(call));
    assert_eq!(running.draft(of.clone()).await, Draft::default());
    assert_eq!(running.app.graph().sessions.list_sessions(), []);
    running.perform(Command::Restore(vec![session.clone()]));
    assert_eq!(restored(&mut running).await, std::slice::from_ref(&session));
    assert_eq!(person.tree(), before, "byte for byte");
    assert_eq!(running.draft(of).await, draft("half a thought"));
    assert_eq!(running.draft(prompt).await, draft("half an answer"));
    running.perform(Command::Restore(vec![session.clone()]));
    let (what, why) = running.refused().await;
    assert_eq!(what, Refused::Session(session));
    assert!(why.contains("is not among the deleted ones"), "{why}");
}

#[test]
fn the_next_process_restores_drafts_too() {
    let person = Person::new(GUIDE);
    let (session, before) = process(async {
        let mut running = person.start();
        let (session, ..) = half_typed(&mut running).await;
        running.app.shut_down().await.expect("all is safe");
        let before = person.tree();
        running.perform(Command::Delete(vec![session.clone()]));
        deleted(&mut running).await;
        (session, before)
    });
    process(async {
        let running = person.assemble(turnstile::app::Access::Full);
        running.app.restore_session(&session).await.expect("restored");
        assert_eq!(person.tree(), before);
    });
}

#[tokio::test]
async fn what_is_saved_for_a_deleted_session_comes_back_with_it() {
    let person = Person::new(GUIDE);
    let mut running = person.start();
    let (session, ..) = half_typed(&mut running).await;
    let of = DraftOf::Session(session.clone());
    running.perform(Command::Delete(vec![session.clone()]));
    deleted(&mut running).await;
    running.perform(Command::SaveDraft { of: of.clone(), draft: draft("the whole thought") });
    assert_eq!(running.draft(of.clone()).await, Draft::default());
    assert_eq!(person.draft_files(), 0);
    running.perform(Command::Restore(vec![session]));
    restored(&mut running).await;
    assert_eq!(running.draft(of).await, draft("the whole thought"));
}

#[tokio::test]
async fn with_no_days_to_restore_all_is_destroyed_at_once() {
    let person = Person::new(&format!("{GUIDE}[delete]\nkeep_days = 0\n"));
    let mut running = person.start();
    let (session, ..) = half_typed(&mut running).await;
    running.perform(Command::Delete(vec![session.clone()]));
    deleted(&mut running).await;
    let of = DraftOf::Session(session.clone());
    running.perform(Command::SaveDraft { of: of.clone(), draft: draft("too late") });
    assert_eq!(running.draft(of).await, Draft::default());
    assert_eq!(person.draft_files(), 0);
    assert_eq!(fs::read_dir(person.work_dir().join("var/deleted")).expect("there").count(), 0);
    running.perform(Command::Restore(vec![session.clone()]));
    assert_eq!(running.refused().await.0, Refused::Session(session));
}

#[test]
fn what_was_deleted_too_long_ago_is_destroyed_at_the_next_start() {
    let person = Person::new(GUIDE);
    let deleted_folder = person.work_dir().join("var/deleted");
    process(async {
        let mut running = person.start();
        for _ in 0..2 {
            let (session, ..) = half_typed(&mut running).await;
            running.perform(Command::Delete(vec![session]));
            deleted(&mut running).await;
        }
    });
    // One of the two was deleted years ago.
    let mut removals = fs::read_dir(&deleted_folder).expect("there");
    let old = removals.next().expect("one").expect("an entry").path();
    let note = fs::read_to_string(old.join("removed.json")).expect("a note");
    let (before, time) = note.split_once("\"removedAt\":\"").expect("the time of its removal");
    let note = format!("{before}\"removedAt\":\"2020{}", time.get(4..).expect("a time"));
    fs::write(old.join("removed.json"), note).expect("written");
    process(async {
        let _running = person.start();
        while old.exists() {
            tokio::task::yield_now().await;
        }
    });
    assert_eq!(fs::read_dir(&deleted_folder).expect("there").count(), 1, "the other one stays");
}

#[tokio::test]
async fn of_several_sessions_each_is_deleted_or_refused_for_itself() {
    let person = Person::new(GUIDE);
    let mut running = person.start();
    let (session, _) = running.run(DraftOf::NewSession, "Hello.").await;
    let unknown = SessionId::from("2026-03-04T04-59-59Z-0000042-000");
    running.perform(Command::Delete(vec![unknown.clone(), session.clone()]));
    assert_eq!(running.refused().await.0, Refused::Session(unknown.clone()));
    assert_eq!(deleted(&mut running).await, std::slice::from_ref(&session));
    running.perform(Command::Restore(vec![session.clone(), unknown.clone()]));
    assert_eq!(running.refused().await.0, Refused::Session(unknown));
    assert_eq!(restored(&mut running).await, [session]);
}

#[tokio::test]
async fn what_was_half_typed_in_a_session_and_in_the_agents_under_it_is_destroyed_with_them() {
    let person = Person::new(GUIDE);
    let mut running = person.start();
    running.listed().await;
    let (session, ..) = half_typed(&mut running).await;
    let sessions = running.app.graph().sessions.clone();
    let child = NewSession {
        parent_session: Some(session.clone()),
        origin: Some(Origin::Subagent),
        ..NewSession::default()
    };
    let of = DraftOf::Session(sessions.create_session(child).await.expect("created"));
    running.perform(Command::SaveDraft { of: of.clone(), draft: draft("a word to the agent") });
    assert_eq!(running.draft(of.clone()).await, draft("a word to the agent"));
    running.perform(Command::Purge(vec![session.clone()]));
    let gone = |notice: &Notice| match notice {
        Notice::IndexChanged { session: it, entry: None } => (*it == session).then_some(()),
        _ => None,
    };
    running.until(gone).await;
    // The drafts go last, which nobody is told.
    while person.draft_files() > 0 {
        running.draft(DraftOf::NewSession).await;
    }
}
