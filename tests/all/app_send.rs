//! Sending through the program: what a first message makes, what a refused one leaves, what becomes
//! of drafts.

use std::fs;
use std::sync::Arc;

use turnstile::app::command::{Command, DraftOf, Send, SendSettings};
use turnstile::app::notice::{Notice, Refused};
use turnstile::base::id::ToolCallId;
use turnstile::domain::agent::{ModelDescriptor, RequestedAgent};
use turnstile::domain::session::entry::WaitingKind;
use turnstile::domain::turn::event::Decision;
use turnstile::models::guide::{WELCOME_FILE, WELCOME_TEXT};
use turnstile::sessions::api::NewSession;
use turnstile::testing::model_server::{ModelServer, Reply};

use crate::app_world::{GUIDE, Person, draft, has_file, send};

#[tokio::test]
async fn a_first_message_makes_a_session_in_which_the_guide_has_a_folder_of_its_own() {
    let person = Person::new(GUIDE);
    let mut running = person.start();
    running.listed().await;
    let (session, turn) = running.run(DraftOf::NewSession, "Hello there.").await;
    let folder = person.path("cache/turnstile/scratch").join(session.as_str());
    let welcome = fs::read_to_string(folder.join(WELCOME_FILE)).expect("there");
    assert_eq!(welcome, WELCOME_TEXT);
    let entry = running
        .until(|notice| match notice {
            Notice::IndexChanged { session: of, entry: Some(entry) } if *of == session => {
                (!entry.waiting.is_empty()).then(|| Arc::clone(entry))
            }
            _ => None,
        })
        .await;
    assert_eq!(entry.cwd.as_deref(), folder.to_str());
    assert_eq!(entry.title.as_deref(), Some("Hello there."));
    assert_eq!((entry.turn_count, entry.latest_turn_id.as_ref()), (1, Some(&turn)));
    // The guide has read the file, and asks whether it may write one.
    assert_eq!(entry.waiting[0].kind, WaitingKind::Permission);
    let call = entry.waiting[0].call.clone();
    let decide = turnstile::app::command::Decide {
        turn: turn.clone(),
        call,
        decision: Decision::Allow,
        reason: None,
    };
    running.perform(Command::Decide(decide));
    running
        .until(|notice| match notice {
            Notice::IndexChanged { entry: Some(entry), .. } => {
                entry.waiting.iter().any(|it| it.kind == WaitingKind::Question).then_some(())
            }
            _ => None,
        })
        .await;
    assert!(has_file(&folder, "notes.md"), "it wrote into its own folder");
}

#[tokio::test]
async fn a_real_model_s_session_runs_where_the_program_was_started() {
    let server = ModelServer::start([Reply::stream().text("Hi.").finish("stop").event("[DONE]")]);
    let server = server.await.expect("a port");
    let person = Person::with_model(&server);
    let mut running = person.start();
    let (session, _) = running.run(DraftOf::NewSession, "Hello.").await;
    let sessions = &running.app.graph().sessions;
    let state = sessions.get_session(&session).await.expect("readable");
    assert_eq!(sessions.folder_of(&state), person.path(""));
    assert!(!person.path("cache/turnstile/scratch").exists());
}

#[tokio::test]
async fn a_refused_first_message_leaves_no_session_and_its_draft() {
    let person = Person::new(GUIDE);
    let mut running = person.start();
    running.listed().await;
    let of = DraftOf::NewSession;
    running.perform(Command::SaveDraft { of: of.clone(), draft: draft("Hello.") });
    let agent = Some(RequestedAgent::by_id("nobody"));
    let settings = SendSettings { agent, ..SendSettings::default() };
    let Command::Send(plain) = send(of.clone(), "Hello.") else { panic!("a send") };
    running.perform(Command::Send(Send { settings, ..plain }));
    let (what, why) = running.refused().await;
    assert_eq!(what, Refused::Send(of.clone()));
    assert!(why.contains("there is no agent \"nobody\""), "{why}");
    assert_eq!(running.app.graph().sessions.list_sessions(), []);
    assert_eq!(fs::read_dir(person.work_dir().join("var/deleted")).expect("there").count(), 0);
    assert_eq!(running.draft(of).await, draft("Hello."));
}

#[tokio::test]
async fn a_conversation_goes_on_with_the_agent_and_the_model_that_it_had() {
    let answer = |text| Reply::stream().text(text).finish("stop").event("[DONE]");
    let server = ModelServer::start([answer("One."), answer("Two.")]).await.expect("a port");
    let person = Person::with_model(&server);
    let mut running = person.start();
    let model = ModelDescriptor { provider: "lab".to_owned(), model: "other".to_owned() };
    let overrides =
        turnstile::domain::agent::AgentOverrides { model: Some(model.clone()), composition: None };
    let agent = RequestedAgent::ById(turnstile::domain::agent::AgentById {
        agent_id: "assistant".to_owned(),
        overrides: Some(overrides),
    });
    let settings = SendSettings { agent: Some(agent), ..SendSettings::default() };
    let Command::Send(plain) = send(DraftOf::NewSession, "Hello.") else { panic!("a send") };
    running.perform(Command::Send(Send { settings, ..plain }));
    let (session, turn) = running
        .until(|notice| match notice {
            Notice::Sent { session, turn, .. } => Some((session.clone(), turn.clone())),
            _ => None,
        })
        .await;
    running.rested(&turn).await;
    running.run(DraftOf::Session(session.clone()), "And?").await;
    let state = running.app.graph().sessions.get_session(&session).await.expect("readable");
    let ran = state.turns.iter().map(|turn| (turn.agent_id.as_str(), &turn.model));
    assert_eq!(ran.collect::<Vec<_>>(), [("assistant", &model), ("assistant", &model)]);
}

#[tokio::test]
async fn a_message_into_an_open_turn_waits_and_its_draft_goes() {
    let person = Person::new(GUIDE);
    let mut running = person.start();
    let (session, _) = running.run(DraftOf::NewSession, "Hello.").await;
    let of = DraftOf::Session(session.clone());
    running.perform(Command::SaveDraft { of: of.clone(), draft: draft("And?") });
    running.perform(send(of.clone(), "And?"));
    running
        .until(|notice| matches!(notice, Notice::Queued { from, .. } if *from == of).then_some(()))
        .await;
    assert_eq!(running.draft(of).await, draft(""));
    let sessions = &running.app.graph().sessions;
    let waiting = sessions.waiting_messages(&session).await.expect("readable");
    assert_eq!(waiting.iter().map(|it| &*it.text).collect::<Vec<_>>(), ["And?"]);
}

#[tokio::test]
async fn a_sent_draft_goes_and_what_was_typed_since_stays() {
    let person = Person::new(GUIDE);
    let mut running = person.start();
    let of = DraftOf::NewSession;
    running.perform(Command::SaveDraft { of: of.clone(), draft: draft("Hello.") });
    let (session, turn) = running.run(of.clone(), "Hello.").await;
    assert_eq!(running.draft(of.clone()).await, draft(""));
    assert_eq!(person.draft_files(), 0);
    running.perform(Command::Stop(turn.clone()));
    running.rested(&turn).await;

    // The person types on before the message is safe.
    running.perform(Command::SaveDraft { of: of.clone(), draft: draft("Again.") });
    running.perform(send(of.clone(), "Again."));
    running.perform(Command::SaveDraft { of: of.clone(), draft: draft("And then") });
    running.until(|notice| matches!(notice, Notice::Sent { .. }).then_some(())).await;
    assert_eq!(running.draft(of).await, draft("And then"));
    assert_ne!(running.app.graph().sessions.list_sessions()[1].session_id, session);
}

#[tokio::test]
async fn a_half_typed_answer_goes_once_it_is_given_and_not_before() {
    let person = Person::new(GUIDE);
    let mut running = person.start();
    let (_, turn) = running.run(DraftOf::NewSession, "Hello.").await;
    let state = running.app.graph().sessions.get_turn(&turn).await.expect("readable").state;
    let call = state.outstanding_permissions().next().expect("it asks").id.clone();
    let of = |call: &ToolCallId| DraftOf::Prompt(call.clone());
    running.perform(Command::SaveDraft { of: of(&call), draft: draft("because") });
    let decide = |call: &ToolCallId| {
        let (turn, call) = (turn.clone(), call.clone());
        let reason = Some("because".to_owned());
        let decision = Decision::Deny;
        Command::Decide(turnstile::app::command::Decide { turn, call, decision, reason })
    };
    let unknown = ToolCallId::from("no-such-call");
    running.perform(Command::SaveDraft { of: of(&unknown), draft: draft("lost?") });
    running.perform(decide(&unknown));
    let (what, _) = running.refused().await;
    assert_eq!(what, Refused::Respond(turn.clone()));
    assert_eq!(running.draft(of(&unknown)).await, draft("lost?"));

    running.perform(decide(&call));
    running.rested(&turn).await;
    while running.draft(of(&call)).await != draft("") {
        tokio::task::yield_now().await;
    }
    let state = running.app.graph().sessions.get_turn(&turn).await.expect("readable").state;
    let permission = state.tool_calls.get(&call).and_then(|call| call.permission.clone());
    let resolved = permission.and_then(|permission| permission.resolved).expect("decided");
    assert_eq!(resolved.reason.as_deref(), Some("because"), "the model gets the words");
    let late = decide(&call);
    running.perform(late);
    assert_eq!(running.refused().await.0, Refused::Respond(turn));
}

#[tokio::test]
async fn a_session_that_is_there_already_keeps_its_folder() {
    let person = Person::new(GUIDE);
    let mut running = person.start();
    let made = running.app.graph().sessions.create_session(NewSession::default()).await;
    let session = made.expect("created");
    running.run(DraftOf::Session(session.clone()), "Hello.").await;
    let sessions = &running.app.graph().sessions;
    let state = sessions.get_session(&session).await.expect("readable");
    assert_eq!(sessions.folder_of(&state), person.path(""));
    assert!(!has_file(&person.path(""), WELCOME_FILE), "nobody's folder is touched");
}
