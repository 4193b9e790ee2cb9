//! Sending messages, by the numbers of `spec/session-layer.md` section 13, on a scripted runtime.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use turnstile::base::id::{SessionId, TurnId};
use turnstile::domain::agent::{AgentById, AgentOverrides, ModelDescriptor, RequestedAgent};
use turnstile::domain::event::Fact as _;
use turnstile::domain::message::UserMessage;
use turnstile::domain::session::entry::LatestTurnStatus;
use turnstile::domain::turn::event::{ContextRef, ReasoningEffort, TurnConfig, TurnContext};
use turnstile::domain::turn::status::TurnStatus;
use turnstile::runtime::api::{Human, PermissionMode};
use turnstile::runtime::error::ResolveError;
use turnstile::sessions::api::{NewSession, SendMessageConfig, SessionFolder};
use turnstile::sessions::error::{SessionError, Standing};
use turnstile::store::jsonl::Options;
use turnstile::testing::disk::{Call, EIO, ENOSPC, Fault, Plan};
use turnstile::testing::gate::Gate;
use turnstile::testing::log::{SESSION, TURN};
use turnstile::testing::sessions::{FOLDER, SessionWorld};
use turnstile::testing::store::Home;
use turnstile::testing::turns::{Script, answering, asking, questioning};

fn check_not_settled(sent: &Result<TurnId, SessionError>, latest: &TurnId, standing: Standing) {
    match sent {
        Err(SessionError::TurnNotSettled { turn, standing: found, .. }) => {
            assert_eq!((turn, *found), (latest, standing));
        }
        other => panic!("{other:?}"),
    }
}

async fn kinds(world: &SessionWorld, session: &SessionId) -> Vec<&'static str> {
    let stored = world.repo.read(session).await.expect("readable");
    stored.events.iter().map(|event| event.fact.kind()).collect()
}

async fn seqs(world: &SessionWorld, session: &SessionId) -> Vec<(TurnId, u64)> {
    let state = world.sessions.get_session(session).await.expect("readable");
    state.turns.iter().map(|turn| (turn.id.clone(), turn.session_seq)).collect()
}

#[tokio::test]
async fn s13_3_the_first_turn_begins_with_nothing_and_names_the_session() {
    let world = SessionWorld::new();
    let session = world.session().await;
    let turn = world.run(&session, answering("Done.")).await;
    let created = world.turns.created();
    assert_eq!(created[0].context, TurnContext::Inline(Vec::new()));
    assert_eq!(created[0].session_id.as_ref(), Some(&session));
    assert_eq!(seqs(&world, &session).await, [(turn, 1)]);
    let entry = world.entry(&session);
    assert_eq!(entry.title.as_deref(), Some("Look at the watcher."));
    let expected = ["session_created", "turn_appended", "title_changed"];
    assert_eq!(kinds(&world, &session).await, expected);
}

#[tokio::test]
async fn s13_3_later_turns_refer_to_the_one_before_and_count_on() {
    let world = SessionWorld::new();
    let session = world.session().await;
    let first = world.run(&session, answering("One.")).await;
    let second = world.run(&session, answering("Two.")).await;
    let third = world.run(&session, answering("Three.")).await;
    let contexts: Vec<_> = world.turns.created().into_iter().map(|turn| turn.context).collect();
    let after =
        |turn: &TurnId| TurnContext::Previous(ContextRef { previous_turn_id: turn.clone() });
    assert_eq!(contexts[1..], [after(&first), after(&second)]);
    assert_eq!(seqs(&world, &session).await, [(first, 1), (second, 2), (third, 3)]);
    let titles = kinds(&world, &session).await.iter().filter(|it| **it == "title_changed").count();
    assert_eq!(titles, 1, "it is named once");
}

#[tokio::test]
async fn s13_3_a_title_is_kept_and_an_empty_message_gives_none() {
    let world = SessionWorld::new();
    let named = NewSession { title: Some("Mine".to_owned()), ..NewSession::default() };
    let session = world.sessions.create_session(named).await.expect("created");
    world.run(&session, answering("Done.")).await;
    assert_eq!(world.entry(&session).title.as_deref(), Some("Mine"));

    let session = world.session().await;
    let turn = world.try_send(&session, " \n\u{7} ").await.expect("sent");
    world.rested(&turn).await;
    assert_eq!(world.entry(&session).title, None);
    world.run(&session, answering("Done.")).await;
    assert_eq!(world.entry(&session).title.as_deref(), Some("Look at the watcher."));
}

#[tokio::test]
async fn s13_3_a_message_is_refused_while_the_latest_turn_runs() {
    let world = SessionWorld::new();
    let (session, gate) = (world.session().await, Gate::new());
    let turn = world.send(&session, Script::new().gate(&gate).answer("Done.")).await;
    gate.reached().await;
    let refused = world.try_send(&session, "And?").await;
    check_not_settled(&refused, &turn, Standing::Running);
    assert_eq!(
        refused.expect_err("refused").to_string(),
        format!(
            "the latest turn of session {session} has not ended (running); wait for it, or stop it"
        )
    );
    assert_eq!((world.turns.created().len(), seqs(&world, &session).await.len()), (1, 1));
    gate.open();
    world.rested(&turn).await;
    world.run(&session, answering("Done.")).await;
}

#[tokio::test]
async fn s13_3_a_message_is_refused_while_the_latest_turn_waits() {
    for script in [asking(), questioning()] {
        let world = SessionWorld::new();
        let session = world.session().await;
        let turn = world.run(&session, script).await;
        let refused = world.try_send(&session, "yes").await;
        check_not_settled(&refused, &turn, Standing::Resting(TurnStatus::Suspended));
        assert_eq!(world.turns.created().len(), 1);
        world.sessions.stop_turn(&turn, None).await.expect("stopped");
        world.run(&session, answering("Done.")).await;
    }
}

#[tokio::test]
async fn s13_3_a_message_is_refused_while_the_latest_turn_is_interrupted() {
    let world = SessionWorld::new();
    let (session, gate) = (world.session().await, Gate::new());
    let turn = world.send(&session, Script::new().gate(&gate)).await;
    gate.reached().await;
    let next = world.restarted();
    next.sessions.scan().await.expect("scanned");
    let refused = next.try_send(&session, "And?").await;
    check_not_settled(&refused, &turn, Standing::Resting(TurnStatus::Idle));
    assert_eq!(next.turns.created().len(), 0);
    next.sessions.resume_turn(&session).await.expect("resumed");
    next.rested(&turn).await;
    next.run(&session, answering("Done.")).await;
}

#[tokio::test]
async fn s13_3_a_conversation_goes_on_after_failed_exhausted_and_stopped_turns() {
    let world = SessionWorld::new();
    let session = world.session().await;
    let failed = world.run(&session, Script::new().fail()).await;
    let exhausted = world.run(&session, Script::new().fail_with("model-call-limit")).await;
    let stopped = world.run(&session, asking()).await;
    world.sessions.stop_turn(&stopped, None).await.expect("stopped");
    let last = world.run(&session, answering("At last.")).await;
    let after: Vec<_> = world.turns.created().into_iter().map(|it| it.context).skip(1).collect();
    let before = [&failed, &exhausted, &stopped]
        .map(|turn| TurnContext::Previous(ContextRef { previous_turn_id: turn.clone() }));
    assert_eq!(after, before);
    let entry = world.entry(&session);
    assert_eq!(entry.latest_turn_id, Some(last));
    assert_eq!(entry.latest_turn_status, LatestTurnStatus::Turn(TurnStatus::Completed));
}

#[tokio::test]
async fn s13_3_concurrent_sends_serialize() {
    let world = SessionWorld::new();
    let (session, gate) = (world.session().await, Gate::new());
    world.turns.then(Script::new().gate(&gate).answer("Done."));
    let sends = (0..5).map(|_| world.try_send(&session, "Look at the watcher."));
    let sent = futures_util::future::join_all(sends).await;
    let (won, lost): (Vec<_>, Vec<_>) = sent.into_iter().partition(Result::is_ok);
    let [Ok(turn)] = &won[..] else { panic!("exactly one wins: {won:?}") };
    for sent in &lost {
        check_not_settled(sent, turn, Standing::Running);
    }
    assert_eq!((lost.len(), world.turns.created().len()), (4, 1));
    gate.open();
    world.rested(turn).await;
}

#[tokio::test]
async fn s13_3_the_configuration_lands_on_the_turn_and_not_in_the_session() {
    let world = SessionWorld::new();
    let session = world.session().await;
    let model = ModelDescriptor { provider: "lab".to_owned(), model: "large".to_owned() };
    let overrides = AgentOverrides { model: Some(model.clone()), composition: None };
    let agent = RequestedAgent::ById(AgentById {
        agent_id: "reviewer".to_owned(),
        overrides: Some(overrides),
    });
    let config = SendMessageConfig {
        agent: agent.clone(),
        permission: PermissionMode::Auto,
        human: Human::Unavailable,
        max_model_calls: Some(3),
        reasoning_effort: Some(ReasoningEffort::High),
    };
    let message = Arc::new(UserMessage::text("Go."));
    let sent = world.sessions.send_message(&session, Arc::clone(&message), config).await;
    let turn = sent.expect("sent");
    world.rested(&turn).await;
    let definition = world.sessions.get_turn(&turn).await.expect("readable").state.definition;
    assert_eq!(
        definition.config,
        TurnConfig {
            auto_permission: true,
            human_available: false,
            max_model_calls: 3,
            reasoning_effort: Some(ReasoningEffort::High),
        }
    );
    assert_eq!((&definition.agent.requested, &definition.input), (&agent, &message));
    let stored = world.repo.read(&session).await.expect("readable");
    let line = stored.events[1].to_line();
    let ts = stored.events[1].ts;
    assert_eq!(
        line,
        format!(
            r#"{{"type":"turn_appended","sessionId":"{session}","ts":"{ts}","turnId":"{turn}","sessionSeq":1,"agentId":"reviewer","model":{{"provider":"lab","model":"large"}}}}"#
        )
    );
    let entry = world.entry(&session);
    assert_eq!((entry.last_agent_id.as_deref(), entry.last_model), (Some("reviewer"), Some(model)));
}

#[tokio::test]
async fn s13_3_without_a_word_a_person_is_there_and_decides() {
    let world = SessionWorld::new();
    let session = world.session().await;
    let turn = world.run(&session, answering("Done.")).await;
    let state = world.sessions.get_turn(&turn).await.expect("readable").state;
    let config = &state.definition.config;
    assert!(config.human_available && !config.auto_permission);
}

#[tokio::test]
async fn s13_4_a_crash_between_the_turn_s_file_and_its_reference_leaves_an_orphan() {
    let world = SessionWorld::new();
    let (session, gate) = (world.session().await, Gate::new());
    world.turns.stop_after_create(&gate);
    {
        let send = world.try_send(&session, "Look at the watcher.");
        tokio::pin!(send);
        // The program is killed at the gate.
        tokio::select! {
            biased;
            _ = &mut send => panic!("nobody opened the gate"),
            () = gate.reached() => {}
        }
    }
    let [orphan] = &world.turn_repo.ids().await.expect("listed")[..] else { panic!("one turn") };
    let next = world.restarted();
    next.sessions.scan().await.expect("scanned");
    assert_eq!(next.entry(&session).latest_turn_status, LatestTurnStatus::None);
    assert_eq!(kinds(&next, &session).await, ["session_created"]);
    let turn = next.run(&session, answering("Done.")).await;
    assert_ne!(turn, *orphan);
    assert_eq!(seqs(&next, &session).await, [(turn, 1)]);
    let first = next.turns.created().remove(0);
    assert_eq!(first.context, TurnContext::Inline(Vec::new()), "the orphan is before nothing");
    assert!(next.turns.advances().iter().all(|advance| advance.turn != *orphan));
}

#[tokio::test]
async fn s13_4_the_reference_stands_before_the_first_advance() {
    let world = SessionWorld::new();
    let session = world.session().await;
    let (repo, id, seen) = (world.repo.clone(), session.clone(), Arc::new(Mutex::new(Vec::new())));
    let saw = Arc::clone(&seen);
    world.turns.on_advance(move |turn| {
        let state = repo.scan(&id, drop).expect("readable");
        saw.lock().expect("alone").push((turn.clone(), state.has_turn(turn)));
    });
    let first = world.run(&session, answering("One.")).await;
    let second = world.run(&session, answering("Two.")).await;
    assert_eq!(*seen.lock().expect("alone"), [(first, true), (second, true)]);
}

#[tokio::test]
async fn an_agent_that_cannot_be_resolved_changes_nothing() {
    let world = SessionWorld::new();
    let session = world.session().await;
    let before = world.entry(&session);
    let why = ResolveError::UnknownModel("no model is named large".to_owned());
    world.turns.refuse_create(why);
    let refused = world.try_send(&session, "Go.").await;
    assert_eq!(refused.expect_err("refused").to_string(), "no model is named large");
    assert_eq!(world.entry(&session), before);
    assert_eq!(kinds(&world, &session).await, ["session_created"]);
}

#[tokio::test]
async fn a_reference_that_cannot_be_written_runs_nothing() {
    let home = Home::new();
    let world = SessionWorld::over(Arc::new(home.store(Options::default())));
    let (session, gate) = (world.session().await, Gate::new());
    let before = world.entry(&session);
    world.turns.stop_after_create(&gate);
    let (refused, ()) = tokio::join!(world.try_send(&session, "Go."), async {
        gate.reached().await;
        let fault = Fault::HalfThenError(ENOSPC);
        home.disk.fail(Plan { only: Some(Call::Write), from: 0, times: u64::MAX, fault });
        gate.open();
    });
    assert!(matches!(refused, Err(SessionError::Store(_))), "{refused:?}");
    home.disk.heal();
    assert_eq!((world.entry(&session), world.turns.advances().len()), (before, 0));
    assert_eq!(world.scanned().await, world.sessions.list_sessions());
    world.run(&session, answering("Done.")).await;
    assert_eq!(seqs(&world, &session).await.len(), 1);
}

#[tokio::test]
async fn what_the_disk_has_not_taken_is_flushed_before_a_new_turn_is_made() {
    let home = Home::new();
    let world = SessionWorld::over(Arc::new(home.store(Options::default())));
    let session = world.session().await;
    let (turn, gate) = (world.run(&session, asking()).await, Gate::new());
    world.sessions.stop_turn(&turn, None).await.expect("stopped");
    // The scripted runtime leaves its appends to a later barrier; the device refuses that.
    let fault = Fault::Error(EIO);
    home.disk.fail(Plan { only: Some(Call::Sync), from: 0, times: u64::MAX, fault });
    let made = world.turns.created().len();
    let refused = world.try_send(&session, "Go.").await;
    assert!(matches!(refused, Err(SessionError::Store(_))), "{refused:?}");
    assert_eq!(world.turns.created().len(), made, "nothing is created");
    home.disk.heal();
    let turn = world.send(&session, Script::new().gate(&gate)).await;
    gate.reached().await;

    // The same holds for going on with a turn that a crash interrupted.
    let store = home.store(Options::default());
    let next = SessionWorld::over(Arc::new(store));
    home.disk.fail(Plan { only: Some(Call::Sync), from: 0, times: u64::MAX, fault });
    let renamed = next.sessions.set_title(&session, "Mine").await;
    assert!(renamed.is_err());
    let refused = next.sessions.resume_turn(&session).await;
    assert!(matches!(refused, Err(SessionError::Store(_))), "{refused:?}");
    home.disk.heal();
    next.sessions.resume_turn(&session).await.expect("resumed");
    next.rested(&turn).await;
}

#[tokio::test]
async fn a_session_runs_its_tools_in_its_own_folder() {
    let world = SessionWorld::new();
    let at = |folder| NewSession { folder, ..NewSession::default() };
    for (folder, expected) in [
        (SessionFolder::Current, Some(PathBuf::from(FOLDER))),
        (SessionFolder::At(PathBuf::from("/elsewhere")), Some(PathBuf::from("/elsewhere"))),
        (SessionFolder::OwnIn(PathBuf::from("/scratch")), None),
    ] {
        let session = world.sessions.create_session(at(folder)).await.expect("created");
        let expected = expected.unwrap_or_else(|| PathBuf::from("/scratch").join(session.as_str()));
        world.run(&session, answering("Done.")).await;
        let created = world.turns.created().pop().expect("created");
        let advance = world.turns.advances().pop().expect("advanced");
        assert_eq!((created.folder, advance.folder), (expected.clone(), expected));
        let began = world.sessions.get_session(&session).await.expect("readable").created_at;
        assert_eq!(created.session_created_at, began);
    }
}

#[tokio::test]
async fn a_folder_that_cannot_be_recorded_makes_no_session() {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt as _;
    let world = SessionWorld::new();
    let odd = PathBuf::from(OsString::from_vec(b"/odd-\xff".to_vec()));
    for folder in [
        SessionFolder::At(PathBuf::from("relative")),
        SessionFolder::At(odd.clone()),
        SessionFolder::OwnIn(odd),
    ] {
        let new = NewSession { folder, ..NewSession::default() };
        let refused = world.sessions.create_session(new).await;
        assert!(matches!(refused, Err(SessionError::Folder(_))), "{refused:?}");
    }
    assert_eq!(world.repo.ids().await.expect("listed"), []);
}

#[tokio::test]
async fn an_id_that_is_on_the_disk_already_is_skipped() {
    let world = SessionWorld::new();
    let first = world.session().await;
    // The next process begins to count where this one did, with the same process id.
    let again = SessionWorld::over(Arc::clone(world.repo.store()));
    let second = again.session().await;
    assert_ne!(first, second);
    assert_eq!(again.repo.ids().await.expect("listed"), [first, second]);
}

#[tokio::test]
async fn there_is_nothing_to_send_to_in_a_session_that_is_not_there() {
    let world = SessionWorld::new();
    for session in [SESSION, TURN, "..", ""] {
        let refused = world.try_send(&SessionId::from(session), "Go.").await;
        assert!(matches!(refused, Err(SessionError::Store(_))), "{refused:?}");
    }
    assert_eq!(world.turns.created().len(), 0);
}
