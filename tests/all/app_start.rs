//! Starting, looking without touching, leaving, and looking back at how the last run ended.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::sync::Arc;

use turnstile::agents::choice::Chosen;
use turnstile::app::command::{Command, Decide, Draft, DraftOf, ListSettings, StalledWish, Unsent};
use turnstile::app::notice::{Notice, Refused, Storage};
use turnstile::app::onlook::Onlooker;
use turnstile::app::{Access, StartError};
use turnstile::base::id::{EventId, SessionId, ToolCallId, TurnId};
use turnstile::base::tasks::Tasks;
use turnstile::domain::agent::RequestedAgent;
use turnstile::domain::message::UserMessage;
use turnstile::domain::question::Answer;
use turnstile::domain::session::entry::{LatestTurnStatus, SessionIndexEntry};
use turnstile::domain::turn::event::Decision;
use turnstile::domain::turn::live::{Delta, DeltaKind};
use turnstile::domain::turn::status::TurnStatus;
use turnstile::sessions::api::{NewSession, SendMessageConfig, Sent};
use turnstile::store::disk::RealDisk;
use turnstile::store::live_text::{self, LiveText as _};
use turnstile::store::log::LogId;
use turnstile::store::work_dir::WorkDir;
use turnstile::testing::beside;
use turnstile::testing::gate::Gate;
use turnstile::testing::model_server::{ModelServer, Reply};

use crate::app_world::{GUIDE, Person, Running, draft, process, send, with_model};

/// What is told of the last run until the list is complete and a moment longer.
async fn looked_back(running: &mut Running) -> Option<Vec<SessionId>> {
    running.listed().await;
    // Told after everything that a start tells by itself.
    let session = running.app.graph().sessions.create_session(NewSession::default()).await;
    let session = session.expect("created");
    let mut ended_badly = None;
    running
        .until(|notice| match notice {
            Notice::LastRunEndedBadly { interrupted } => {
                ended_badly = Some(interrupted.clone());
                None
            }
            Notice::IndexChanged { session: changed, .. } if *changed == session => Some(()),
            _ => None,
        })
        .await;
    running.app.delete_session(&session).await.expect("deleted");
    ended_badly
}

/// Kills the program while a turn runs.
fn killed_in_a_turn(person: &Person, gate: &Gate) -> (SessionId, TurnId) {
    process(async {
        let mut running = person.start();
        running.listed().await;
        let sent = running.send(DraftOf::NewSession, "Count.").await;
        gate.reached().await;
        sent
    })
}

/// A server that answers once up to a gate, and then once to the end.
fn server(tokio: &tokio::runtime::Runtime) -> (ModelServer, Gate) {
    let gate = Gate::new();
    let stuck = Reply::stream().text("One ").gate(&gate).text("two.").finish("stop");
    let whole = Reply::stream().text("One two.").finish("stop").event("[DONE]");
    let started = tokio.block_on(ModelServer::start([stuck, whole])).expect("a port");
    (started, gate)
}

#[test]
fn after_a_kill_the_sessions_with_interrupted_turns_are_named_and_can_go_on() {
    let tokio = beside::runtime();
    let (server, gate) = server(&tokio);
    let person = Person::with_model(&server);
    let (session, turn) = killed_in_a_turn(&person, &gate);
    process(async {
        let mut running = person.start();
        assert_eq!(looked_back(&mut running).await, Some(vec![session.clone()]));
        assert!(!running.app.graph().sessions.is_running(&turn), "nothing goes on by itself");
        assert_eq!(server.requests().len(), 1);
        running.perform(Command::Resume(session.clone()));
        running.until_rested(&turn).await;
        running.rested(&turn).await;
        let entry = running.app.graph().sessions.index().get(&session).expect("listed");
        assert_eq!(entry.latest_turn_status, LatestTurnStatus::Turn(TurnStatus::Completed));
        running.perform(Command::Resume(session.clone()));
        assert_eq!(running.refused().await.0, Refused::Resume(session.clone()));
        running.leave().await;
    });
    process(async {
        let mut running = person.start();
        assert_eq!(looked_back(&mut running).await, None, "the last run ended as it should");
    });
}

#[test]
fn a_torn_line_that_is_set_aside_is_told_with_its_place() {
    let tokio = beside::runtime();
    let (server, gate) = server(&tokio);
    let person = Person::with_model(&server);
    let (session, turn) = killed_in_a_turn(&person, &gate);
    process(async {
        let mut running = person.start();
        running.listed().await;
        let log = LogId::turn(&turn).expect("valid");
        let date = turn.as_str().get(..10).expect("an id begins with a date").replace('-', "/");
        let file = person.work_dir().join(format!("storage/turns/{date}/{turn}.jsonl"));
        let mut open = fs::OpenOptions::new().append(true).open(file).expect("there");
        open.write_all(b"{\"type\":\"mod").expect("torn");
        running.perform(Command::CloseInterrupted(session));
        let told = running
            .until(|notice| match notice {
                Notice::Storage(Storage::SetAside(told)) => Some(told.clone()),
                _ => None,
            })
            .await;
        assert_eq!((&told.log, told.bytes), (&log, 12));
        assert_eq!(fs::read(&told.path).expect("kept"), b"{\"type\":\"mod");
    });
}

#[test]
fn an_interrupted_turn_can_be_closed() {
    let tokio = beside::runtime();
    let (server, gate) = server(&tokio);
    let person = Person::with_model(&server);
    let (session, turn) = killed_in_a_turn(&person, &gate);
    process(async {
        let mut running = person.start();
        running.listed().await;
        running.perform(Command::CloseInterrupted(session.clone()));
        running.until_rested(&turn).await;
        running.rested(&turn).await;
        let state = running.app.graph().sessions.get_turn(&turn).await.expect("readable").state;
        assert!(state.terminal.is_some_and(|terminal| terminal.is_closed_interruption()));
        running.run(DraftOf::Session(session), "Again.").await;
    });
}

#[test]
fn leaving_in_the_middle_of_a_turn_leaves_it_interrupted_and_is_no_bad_end() {
    let tokio = beside::runtime();
    let (server, gate) = server(&tokio);
    let person = Person::with_model(&server);
    let of = DraftOf::NewSession;
    let (session, turn) = process(async {
        let mut running = person.start();
        running.listed().await;
        let sent = running.send(of.clone(), "Count.").await;
        gate.reached().await;
        running.perform(Command::SaveDraft { of: of.clone(), draft: draft("typed last") });
        running.leave().await;
        sent
    });
    process(async {
        let mut running = person.start();
        assert_eq!(looked_back(&mut running).await, None);
        let entry = running.app.graph().sessions.index().get(&session).expect("listed");
        assert_eq!(entry.latest_turn_status, LatestTurnStatus::Turn(TurnStatus::Idle));
        assert_eq!(running.draft(of).await, draft("typed last"), "it was kept before the end");
        running.perform(Command::Resume(session));
        running.until_rested(&turn).await;
        running.rested(&turn).await;
        let state = running.app.graph().sessions.get_turn(&turn).await.expect("readable").state;
        assert_eq!(state.status(), TurnStatus::Completed);
    });
}

#[test]
fn only_a_run_that_may_change_everything_tells_of_the_last_one() {
    let tokio = beside::runtime();
    let (server, gate) = server(&tokio);
    let person = Person::with_model(&server);
    let (session, _) = killed_in_a_turn(&person, &gate);
    // Views, single prompts and single commands come and go in between.
    for access in [Access::ReadOnly, Access::OwnTurns, Access::Full] {
        process(async {
            let mut running = person.assemble(access);
            if access == Access::ReadOnly {
                running.app.begin();
                running.listed().await;
                assert!(
                    running
                        .told()
                        .iter()
                        .all(|notice| { !matches!(notice, Notice::LastRunEndedBadly { .. }) })
                );
            }
            running.leave().await;
        });
    }
    process(async {
        let mut running = person.start();
        assert_eq!(looked_back(&mut running).await, Some(vec![session.clone()]));
    });
    // That run was killed too.
    process(async {
        let mut running = person.start();
        assert_eq!(looked_back(&mut running).await, Some(vec![session]));
        running.leave().await;
    });
}

#[test]
fn a_run_that_is_left_before_the_list_is_read_has_not_ended_badly() {
    let person = Person::new(GUIDE);
    process(async { person.start().leave().await });
    process(async {
        let mut running = person.start();
        assert_eq!(looked_back(&mut running).await, None);
    });
}

#[test]
fn a_turn_whose_model_is_gone_says_so_when_it_is_resumed() {
    let tokio = beside::runtime();
    let (server, gate) = server(&tokio);
    let person = Person::new(&with_model(&server));
    let (session, turn) = killed_in_a_turn(&person, &gate);
    person.configure(GUIDE);
    process(async {
        let mut running = person.start();
        running.listed().await;
        running.perform(Command::Resume(session.clone()));
        let (what, why) = running.refused().await;
        assert_eq!(what, Refused::Advance(turn.clone()));
        assert!(why.contains("lab/tiny"), "{why}");
        // It needs nothing live to be closed.
        running.perform(Command::CloseInterrupted(session));
        running.until_rested(&turn).await;
    });
}

/// Sends a message into a turn that waits.
async fn queue(running: &Running, session: &SessionId) {
    let message = Arc::new(UserMessage::text("And then?"));
    let config = SendMessageConfig::of(RequestedAgent::by_id("guide"));
    let sent = running.app.graph().sessions.send_or_queue(session, message, config).await;
    assert!(matches!(sent, Ok(Sent::Waits(_))), "{sent:?}");
}

async fn waits(running: &Running, session: &SessionId) -> Vec<String> {
    let waiting = running.app.graph().sessions.waiting_messages(session).await;
    waiting.expect("readable").into_iter().map(|message| message.text).collect()
}

#[test]
fn what_an_earlier_run_had_claimed_and_not_delivered_waits_again() {
    let person = Person::new(GUIDE);
    let session = process(async {
        let mut running = person.start();
        let (session, _) = running.run(DraftOf::NewSession, "Hello.").await;
        queue(&running, &session).await;
        running.leave().await;
        session
    });
    let folders = fs::read_dir(person.work_dir().join("var/sessions")).expect("there");
    let folder = folders.last().expect("one").expect("readable").path();
    let inbox = fs::read_dir(folder.join("inbox")).expect("there");
    let pending = inbox.last().expect("one").expect("readable").path();
    let item = fs::read_to_string(&pending).expect("there");
    let name = pending.with_extension("item.json");
    let claims = folder.join("mailbox/pending");
    fs::create_dir_all(&claims).expect("made");
    let claim = claims.join(name.file_name().expect("a name"));
    fs::write(claim, format!(r#"{{"events":[{item}]}}"#)).expect("written");
    fs::remove_file(&pending).expect("claimed");
    process(async {
        let running = person.start();
        while waits(&running, &session).await.is_empty() {
            tokio::task::yield_now().await;
        }
        assert_eq!(waits(&running, &session).await, ["And then?"]);
        assert_eq!(fs::read_to_string(&pending).expect("there"), item);
        running.leave().await;
    });
}

#[test]
fn a_view_reads_everything_and_writes_nothing() {
    let person = Person::new(GUIDE);
    let (session, turn, call) = process(async {
        let mut running = person.start();
        let (session, turn) = running.run(DraftOf::NewSession, "Hello.").await;
        let of = DraftOf::Session(session.clone());
        running.perform(Command::SaveDraft { of, draft: draft("half a thought") });
        let state = running.app.graph().sessions.get_turn(&turn).await.expect("readable").state;
        let call = state.outstanding_permissions().next().expect("it asks").id.clone();
        queue(&running, &session).await;
        running.leave().await;
        (session, turn, call)
    });
    let before = person.tree();
    process(async {
        let mut running = person.assemble(Access::ReadOnly);
        running.app.begin();
        running.listed().await;
        let unsent = |entry: &Arc<SessionIndexEntry>| entry.unsent;
        let listed = running.app.graph().sessions.list_sessions();
        assert_eq!(listed.iter().map(unsent).collect::<Vec<_>>(), [1]);
        assert_eq!(waits(&running, &session).await, ["And then?"]);
        running.perform(Command::Open(session.clone()));
        let loaded = |notice: &Notice| match notice {
            Notice::TurnsLoaded { turns, .. } => Some(turns.len()),
            _ => None,
        };
        assert_eq!(running.until(loaded).await, 1);
        let of = DraftOf::Session(session.clone());
        assert_eq!(running.draft(of.clone()).await, draft("half a thought"));

        let writing = writing(&session, &turn, &call);
        let kinds: BTreeSet<_> = writing.iter().map(|(command, _)| kind(command)).collect();
        assert_eq!(kinds, (0..WRITING).map(Kind::Writes).collect(), "all are tried");
        for (command, refused) in writing {
            running.perform(command);
            let (what, why) = running.refused().await;
            assert_eq!(what, refused);
            assert!(why.contains("--read-only"), "{why}");
        }
        running.perform(Command::Close);
        running.leave().await;
    });
    assert_eq!(person.tree(), before);
}

#[test]
fn a_view_reads_along_while_another_process_works() {
    let tokio = beside::runtime();
    let (server, gate) = server(&tokio);
    let person = Person::with_model(&server);
    process(async {
        let mut working = person.start();
        working.listed().await;
        let mut view = person.assemble(Access::ReadOnly);
        let mut onlooker = Onlooker::new(view.app.clone());
        view.app.graph().sessions.scan().await.expect("listed");
        onlooker.look().await;
        let told = view.told();
        let holder = told.iter().find_map(|notice| match notice {
            Notice::HeldBy(holder) => Some(holder.as_ref()?.process),
            _ => None,
        });
        assert_eq!(holder, Some(Some(std::process::id())), "{told:?}");

        let joined = |notice: &Notice| matches!(notice, Notice::Joined { .. }).then_some(());
        let (session, turn) = working.send(DraftOf::NewSession, "Count.").await;
        gate.reached().await;
        onlooker.look().await;
        let status = |view: &Running| {
            let entry = view.app.graph().sessions.index().get(&session);
            entry.map(|entry| entry.latest_turn_status)
        };
        let idle = LatestTurnStatus::Turn(TurnStatus::Idle);
        assert_eq!(status(&view), Some(idle), "it came");
        view.app.perform(Command::Open(session.clone()));
        view.until(joined).await;
        onlooker.look().await;
        // What was shown may have been older than what was seen, so it is shown anew.
        view.until(joined).await;
        onlooker.look().await;
        assert_eq!(view.told(), [], "nothing has changed");
        stream_more(&person, &turn).await;
        onlooker.look().await;
        let more = |notice: &Notice| match notice {
            Notice::TurnsLoaded { turns, .. } => Some(format!("{turns:?}").contains("and more")),
            _ => None,
        };
        assert!(view.until(more).await, "what is streamed is read along");
        view.until(joined).await;
        gate.open();
        working.rested(&turn).await;
        onlooker.look().await;
        let completed = LatestTurnStatus::Turn(TurnStatus::Completed);
        assert_eq!(status(&view), Some(completed));
        let ended = |notice: &Notice| match notice {
            Notice::TurnsLoaded { turns, .. } => {
                let view = turns.first()?.content.as_ref().ok()?;
                view.state.terminal.as_ref().map(drop)
            }
            _ => None,
        };
        view.until(ended).await;
        view.until(joined).await;
        onlooker.look().await;
        assert_eq!(view.told(), [], "nothing has changed");

        working.app.delete_session(&session).await.expect("deleted");
        view.perform(Command::Close);
        onlooker.look().await;
        assert_eq!(view.app.graph().sessions.list_sessions(), []);
    });
}

/// Streams some more of a turn's answer, as another process does.
async fn stream_more(person: &Person, turn: &TurnId) {
    let work_dir = WorkDir::new(person.work_dir()).expect("an absolute path");
    let streamed = live_text::Files::new(Arc::new(RealDisk), work_dir, Tasks::new());
    let log = LogId::turn(turn).expect("an id");
    let call = streamed.read(&log).await.expect("readable");
    let (index, at) = call.map_or((0, 0), |call| (call.model_call_index, call.len));
    let text = "and more".to_owned();
    let delta = Delta { model_call_index: index, kind: DeltaKind::Text, block: 0, at, text };
    streamed.put(&log, &[delta]).await.expect("kept");
}

/// What a command does to what is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Looks,
    /// It changes something: the number of the kind of command.
    Writes(usize),
}

/// How many kinds of commands change something.
const WRITING: usize = 22;

/// A new command is given a place here, and a number if it changes something; [`WRITING`] then says
/// that it is to be tried too.
fn kind(command: &Command) -> Kind {
    Kind::Writes(match command {
        Command::Open(_) | Command::Close | Command::Inspect(_) | Command::LoadDraft(_) => {
            return Kind::Looks;
        }
        Command::Send(_) => 0,
        Command::Unsent(Unsent::Release(_)) => 1,
        Command::Unsent(Unsent::Edit { .. }) => 2,
        Command::Unsent(Unsent::TakeBack { .. }) => 3,
        Command::Decide(_) => 4,
        Command::Answer { .. } => 5,
        Command::Stop(_) => 6,
        Command::Resume(_) => 7,
        Command::CloseInterrupted(_) => 8,
        Command::Rename { .. } => 9,
        Command::Fork { .. } => 10,
        Command::Compact(_) => 11,
        Command::Delete(_) => 12,
        Command::Archive { .. } => 13,
        Command::Restore(_) => 14,
        Command::Purge(_) => 15,
        Command::SaveDraft { .. } => 16,
        Command::AppendDraft { .. } => 17,
        Command::Remember(_) => 18,
        Command::SaveListSettings(_) => 19,
        Command::StopCompaction(_) => 20,
        Command::Stalled(_) => 21,
    })
}

/// Every command that changes something, and what is refused of it.
fn writing(session: &SessionId, turn: &TurnId, call: &ToolCallId) -> Vec<(Command, Refused)> {
    let (of, session) = (DraftOf::Session(session.clone()), session.clone());
    let (turn, call) = (turn.clone(), call.clone());
    let (decision, reason) = (Decision::Allow, None);
    let decide = Decide { turn: turn.clone(), call: call.clone(), decision, reason };
    let answer = Command::Answer { turn: turn.clone(), call, answer: Answer::Dismissed };
    let rename = Command::Rename { session: session.clone(), title: "x".to_owned() };
    let fork = Command::Fork { session: session.clone(), at: None, draft: Draft::default() };
    let (sessions, refused) = (vec![session.clone()], Refused::Session(session.clone()));
    let event = EventId::from("evt-1");
    let (of_edit, of_take) = (event.clone(), event.clone());
    let edit = Unsent::Edit { session: session.clone(), event: of_edit, text: "x".to_owned() };
    let (session_of, draft_of) = (session.clone(), Draft::default());
    let take_back = Unsent::TakeBack { session: session_of, event: of_take, draft: draft_of };
    vec![
        (send(of.clone(), "Go."), Refused::Send(of.clone())),
        (Command::Decide(decide), Refused::Respond(turn.clone())),
        (answer, Refused::Respond(turn.clone())),
        (Command::Stop(turn.clone()), Refused::Stop(turn)),
        (Command::Resume(session.clone()), Refused::Resume(session.clone())),
        (Command::CloseInterrupted(session.clone()), Refused::Resume(session.clone())),
        (rename, refused.clone()),
        (fork, refused.clone()),
        (Command::Compact(session.clone()), refused.clone()),
        (Command::StopCompaction(session.clone()), refused.clone()),
        (Command::Delete(sessions.clone()), refused.clone()),
        (Command::Archive { sessions: sessions.clone(), archived: true }, refused.clone()),
        (Command::Restore(sessions.clone()), refused.clone()),
        (Command::Purge(sessions), refused.clone()),
        (Command::Unsent(Unsent::Release(session.clone())), refused.clone()),
        (Command::Unsent(edit), refused),
        (Command::Unsent(take_back), Refused::TakeBack { session, event }),
        (Command::SaveDraft { of: of.clone(), draft: Draft::default() }, Refused::Keep),
        (Command::AppendDraft { of, typed: draft("x") }, Refused::Keep),
        (Command::Remember("x".to_owned()), Refused::Keep),
        (Command::SaveListSettings(ListSettings::default()), Refused::Keep),
        (Command::Stalled(StalledWish::Retry), Refused::Keep),
    ]
}

#[tokio::test]
async fn a_view_of_a_folder_that_is_not_there_makes_none() {
    let person = Person::new(GUIDE);
    let mut running = person.assemble(Access::ReadOnly);
    running.app.begin();
    running.listed().await;
    assert_eq!(running.app.graph().sessions.list_sessions(), []);
    running.leave().await;
    assert!(!person.work_dir().exists());
}

#[tokio::test]
async fn a_folder_is_held_by_one_and_seen_by_many() {
    let person = Person::new(GUIDE);
    let held = person.take(Access::Full).expect("it is free");
    let refused = person.take(Access::Full).map(drop);
    assert!(matches!(refused, Err(StartError::Lock(_))), "{refused:?}");
    for access in [Access::ReadOnly, Access::OwnTurns] {
        drop(person.take(access).expect("it needs no lock"));
    }
    drop(held);
    drop(person.take(Access::Full).expect("it is free again"));
}

#[tokio::test]
async fn the_model_that_answers_is_told_with_the_reason() {
    let server = ModelServer::start([]).await.expect("a port");
    for (config, model, why) in [
        (GUIDE.to_owned(), "guide/guide", "configured default"),
        (with_model(&server), "lab/tiny", "configured default"),
    ] {
        let person = Person::new(&config);
        let mut running = person.start();
        let chosen = running
            .until(|notice| match notice {
                Notice::ModelChosen { model, why } => {
                    Some(Chosen { model: model.clone(), why: why.clone() })
                }
                _ => None,
            })
            .await;
        assert_eq!((chosen.model.to_string(), chosen.why), (model.to_owned(), why.to_owned()));
    }
    let person = Person::new("");
    let running = person.assemble(Access::Full);
    let chosen = running.app.graph().default_model.get();
    assert_eq!(chosen.model.to_string(), "guide/guide", "whoever has nothing gets the guide");
    assert_eq!(chosen.why, "a script: no model is connected");
}
