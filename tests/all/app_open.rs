//! Opening a session: what is told, in which order, and that nothing of a running answer is lost.

use std::collections::BTreeMap;

use serde_json::json;
use turnstile::app::command::{Command, DraftOf};
use turnstile::app::notice::{LoadedTurn, Notice, TurnView};
use turnstile::base::id::{SessionId, TurnId};
use turnstile::domain::turn::live::{Folded, LiveEvent, News, OpenCall};
use turnstile::domain::turn::state::TurnState;
use turnstile::domain::turn::status::TurnStatus;
use turnstile::sessions::api::NewSession;
use turnstile::testing::gate::Gate;
use turnstile::testing::model_server::{ModelServer, Reply};

use crate::app_world::{GUIDE, Person, Running, with_model};

fn answer(text: &str) -> Reply {
    Reply::stream().text(text).finish("stop").event("[DONE]")
}

/// A session on the screen, folded from what is told as a screen folds it.
#[derive(Default)]
struct Screen {
    order: Vec<String>,
    turns: BTreeMap<u64, (TurnId, u64, TurnState)>,
    streaming: Option<OpenCall>,
    left: usize,
}

impl Screen {
    fn take(&mut self, notice: Notice) {
        match notice {
            Notice::SessionOpened { state, .. } => {
                self.order.push(format!("opened {}", state.expect("readable").turns.len()));
            }
            Notice::TurnsLoaded { turns, left, .. } => {
                let seqs: Vec<_> = turns.iter().map(|turn| turn.session_seq).collect();
                self.order.push(format!("loaded {seqs:?}, {left} left"));
                self.left = left;
                for LoadedTurn { id, session_seq, content } in turns {
                    let TurnView { offset, state, .. } = content.expect("readable");
                    self.turns.insert(session_seq, (id, offset, TurnState::clone(&state)));
                }
            }
            Notice::Joined { open_call, .. } => {
                self.order.push(format!("joined {}", open_call.is_some()));
                self.streaming = open_call;
            }
            Notice::Live(LiveEvent { turn, news, .. }) if !self.order.is_empty() => {
                self.hear(&turn, news);
            }
            _ => {}
        }
    }

    fn hear(&mut self, turn: &TurnId, news: News) {
        match news {
            News::Recorded { offset: 1, event } if self.turns.values().all(|it| it.0 != *turn) => {
                self.order.push("begun".to_owned());
                let state = TurnState::begin(&event).expect("a turn begins");
                self.turns.insert(self.turns.len() as u64 + 1, (turn.clone(), 1, state));
            }
            News::Recorded { offset, event } => {
                let known = self.turns.values_mut().find(|it| it.0 == *turn);
                let Some((_, at, state)) = known else { return };
                if offset <= *at {
                    return;
                }
                assert_eq!(offset, *at + 1, "without a gap");
                state.apply(&event).expect("it follows");
                *at = offset;
                if state.open_call().is_none() {
                    self.streaming = None;
                }
            }
            News::Delta(delta) => {
                let fresh = || OpenCall::new(delta.model_call_index);
                let open = self.streaming.get_or_insert_with(fresh);
                assert_ne!(open.fold(&delta), Folded::Gap, "without a gap");
            }
            _ => {}
        }
    }

    fn text(&self) -> String {
        let blocks = self.streaming.iter().flat_map(|call| &call.blocks);
        blocks.map(|block| block.text.as_str()).collect()
    }

    fn last(&self) -> &TurnState {
        &self.turns.values().next_back().expect("a turn").2
    }
}

fn open(running: &Running, session: &SessionId) {
    running.perform(Command::Open(session.clone()));
}

/// Shows what is told until it looks like this.
async fn show(running: &mut Running, screen: &mut Screen, until: impl Fn(&Screen) -> bool) {
    while !until(screen) {
        screen.take(running.next().await);
    }
}

/// What was answered in a turn.
fn answered(turn: &TurnState) -> String {
    let response = turn.model_calls.last().and_then(|call| call.response());
    response.map(|response| response.plain_text()).unwrap_or_default()
}

#[tokio::test]
async fn a_session_comes_with_its_turns_the_latest_first_and_then_the_older_ones() {
    const TURNS: usize = 20;
    let server = ModelServer::start((0..TURNS).map(|_| answer("Yes."))).await.expect("a port");
    let person = Person::with_model(&server);
    let mut running = person.start();
    let (session, _) = running.run(DraftOf::NewSession, "Really?").await;
    for _ in 1..TURNS {
        running.run(DraftOf::Session(session.clone()), "Really?").await;
    }
    let mut screen = Screen::default();
    open(&running, &session);
    show(&mut running, &mut screen, |screen| screen.turns.len() == TURNS && screen.left == 0).await;
    assert_eq!(
        screen.order,
        [
            "opened 20",
            "loaded [20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5], 4 left",
            "joined false",
            "loaded [4, 3, 2, 1], 0 left",
        ]
    );
    assert!(screen.turns.values().all(|turn| turn.2.status() == TurnStatus::Completed));
}

#[tokio::test]
async fn an_answer_that_streams_is_joined_in_its_middle_and_lost_nowhere() {
    let (server, gate, later) = {
        let (gate, later) = (Gate::new(), Gate::new());
        let reply = Reply::stream().text("One ").text("two ").gate(&gate).text("three ");
        let reply = reply.gate(&later).text("four.").finish("stop").event("[DONE]");
        (ModelServer::start([reply]).await.expect("a port"), gate, later)
    };
    let person = Person::with_model(&server);
    let mut running = person.start();
    let (session, turn) = running.send(DraftOf::NewSession, "Count.").await;
    gate.reached().await;
    let mut screen = Screen::default();
    open(&running, &session);
    // What came before it was opened is there, whatever of it had arrived by then.
    show(&mut running, &mut screen, |screen| screen.text() == "One two ").await;
    assert_eq!(screen.order[..2], ["opened 1", "loaded [1], 0 left"]);
    gate.open();
    later.reached().await;
    show(&mut running, &mut screen, |screen| screen.text() == "One two three ").await;

    // Opening it again, and another in between, changes nothing.
    let other = running.app.graph().sessions.create_session(NewSession::default()).await;
    open(&running, &other.expect("created"));
    open(&running, &session);
    let mut screen = Screen::default();
    show(&mut running, &mut screen, |screen| screen.text() == "One two three ").await;
    later.open();
    show(&mut running, &mut screen, |screen| {
        screen.turns.values().any(|turn| turn.2.terminal.is_some())
    })
    .await;
    assert_eq!(
        (answered(screen.last()), screen.text()),
        ("One two three four.".to_owned(), String::new())
    );
    let recorded = running.app.graph().sessions.get_turn(&turn).await.expect("readable");
    assert_eq!(*screen.last(), recorded.state);
}

#[tokio::test]
async fn a_turn_that_begins_in_the_open_session_is_shown_from_its_first_event_on() {
    let gate = Gate::new();
    let reply = Reply::stream().text("One ").gate(&gate).text("two.").finish("stop");
    let server = ModelServer::start([answer("Yes."), reply.event("[DONE]")]).await.expect("a port");
    let person = Person::with_model(&server);
    let mut running = person.start();
    let (session, _) = running.run(DraftOf::NewSession, "Really?").await;
    let mut screen = Screen::default();
    open(&running, &session);
    show(&mut running, &mut screen, |screen| screen.turns.len() == 1).await;
    running.perform(crate::app_world::send(DraftOf::Session(session.clone()), "Count."));
    show(&mut running, &mut screen, |screen| screen.text() == "One ").await;
    assert_eq!(screen.order[2..], ["joined false", "begun", "joined false"]);
    gate.open();
    show(&mut running, &mut screen, |screen| screen.last().terminal.is_some()).await;
    assert_eq!(answered(screen.last()), "One two.");
}

#[tokio::test]
async fn a_session_that_is_closed_streams_no_more() {
    let (gate, later) = (Gate::new(), Gate::new());
    let reply = Reply::stream().text("One ").gate(&gate).text("two ").gate(&later).text("three.");
    let reply = reply.finish("stop").event("[DONE]");
    let server = ModelServer::start([reply]).await.expect("a port");
    let person = Person::with_model(&server);
    let mut running = person.start();
    let (session, turn) = running.send(DraftOf::NewSession, "Count.").await;
    gate.reached().await;
    let mut screen = Screen::default();
    open(&running, &session);
    show(&mut running, &mut screen, |screen| screen.text() == "One ").await;
    running.perform(Command::Close);
    // What is told after this was told with the session closed.
    let (session, turn_elsewhere) = (None, TurnId::from("elsewhere"));
    let marker = LiveEvent { session, turn: turn_elsewhere, news: News::Started };
    running.app.graph().runtime.hub().publish(&marker);
    running.until(|notice| is_live(notice, "elsewhere").then_some(())).await;
    gate.open();
    later.open();
    running.rested(&turn).await;
    let rest = running.until_rested(&turn).await;
    let deltas = rest
        .iter()
        .filter(|notice| matches!(notice, Notice::Live(LiveEvent { news: News::Delta(_), .. })));
    assert_eq!(deltas.count(), 0);
    let ended = |notice: &&Notice| matches!(notice, Notice::Live(_));
    assert!(rest.iter().filter(ended).count() > 1, "what was recorded is told all the same");
}

#[tokio::test]
async fn a_session_that_cannot_be_read_says_why() {
    let person = Person::new(GUIDE);
    let mut running = person.start();
    running.listed().await;
    let sessions = running.app.graph().sessions.clone();
    let made = async || sessions.create_session(NewSession::default()).await.expect("created");
    let (session, moved) = (made().await, made().await);
    let below = person.work_dir().join("storage/sessions");
    let file = |id: &SessionId| {
        let id = id.as_str();
        let date = id.get(..10).expect("an id begins with a date").replace('-', "/");
        below.join(format!("{date}/{id}.jsonl"))
    };
    std::fs::write(file(&session), "{}\n").expect("written");
    std::fs::rename(file(&moved), below.join(format!("{moved}.jsonl"))).expect("moved");
    sessions.scan().await.expect("listed");
    for (asked, why) in [
        (session, "is corrupt at line 1"),
        (moved, "; move it to "),
        (SessionId::from("x"), "not a valid id"),
    ] {
        open(&running, &asked);
        let opened = running
            .until(|notice| match notice {
                Notice::SessionOpened { session, state } if *session == asked => {
                    Some(state.clone())
                }
                _ => None,
            })
            .await;
        let said = opened.expect_err("unreadable");
        assert!(said.contains(why), "{said}");
    }
}

#[tokio::test]
async fn a_damaged_turn_is_loaded_as_damaged_beside_the_others() {
    let server = ModelServer::start((0..3).map(|_| answer("Yes."))).await.expect("a port");
    let person = Person::with_model(&server);
    let mut running = person.start();
    let (session, first) = running.run(DraftOf::NewSession, "Really?").await;
    running.run(DraftOf::Session(session.clone()), "Really?").await;
    let id = first.as_str();
    let date = id.get(..10).expect("an id begins with a date").replace('-', "/");
    let file = person.work_dir().join(format!("storage/turns/{date}/{id}.jsonl"));
    std::fs::write(&file, "{}\n").expect("written");
    open(&running, &session);
    let turns = running
        .until(|notice| match notice {
            Notice::TurnsLoaded { turns, .. } => Some(turns.clone()),
            _ => None,
        })
        .await;
    let readable: Vec<_> = turns.iter().map(|turn| turn.content.is_ok()).collect();
    assert_eq!(readable, [true, false]);
    let why = turns[1].content.as_ref().expect_err("damaged");
    assert!(why.contains("is corrupt at line 1"), "{why}");
}

#[tokio::test]
async fn opening_writes_nothing() {
    let person = Person::new(GUIDE);
    let mut running = person.start();
    let (session, _) = running.run(DraftOf::NewSession, "Hello.").await;
    running.draft(DraftOf::NewSession).await;
    let before = person.tree();
    for _ in 0..3 {
        open(&running, &session);
        running.until(|notice| matches!(notice, Notice::Joined { .. }).then_some(())).await;
    }
    running.draft(DraftOf::Session(session)).await;
    assert_eq!(person.tree(), before);
}

#[tokio::test]
async fn switching_between_sessions_mixes_nothing_up() {
    let server = ModelServer::start((0..6).map(|_| answer("Yes."))).await.expect("a port");
    let person = Person::with_model(&server);
    let mut running = person.start();
    let (one, _) = running.run(DraftOf::NewSession, "One?").await;
    let (two, _) = running.run(DraftOf::NewSession, "Two?").await;
    for session in [&one, &two, &one, &two] {
        open(&running, session);
        running.run(DraftOf::Session(session.clone()), "And?").await;
    }
    let sessions = &running.app.graph().sessions;
    for session in [&one, &two] {
        let events = sessions.session_events(session).await.expect("readable");
        assert!(events.iter().all(|event| event.id == *session));
        let state = sessions.get_session(session).await.expect("readable");
        assert_eq!(state.turns.len(), 3);
        for turn in &state.turns {
            let turn = sessions.get_turn(&turn.id).await.expect("readable").state;
            assert_eq!(turn.definition.session_id.as_ref(), Some(session));
        }
    }
}

/// More events than wait for anybody, twice over: in the queue of the hub and in that of the notices.
const FLOOD: usize = 10_000;

#[tokio::test]
async fn a_listener_that_lagged_gets_what_is_shown_and_what_runs_again() {
    let gate = Gate::new();
    let reply = Reply::stream().text("One ").gate(&gate).text("two.").finish("stop");
    let server = ModelServer::start([reply.event("[DONE]")]).await.expect("a port");
    let person = Person::with_model(&server);
    let mut running = person.start();
    let (session, turn) = running.send(DraftOf::NewSession, "Count.").await;
    gate.reached().await;
    let mut screen = Screen::default();
    open(&running, &session);
    show(&mut running, &mut screen, |screen| screen.text() == "One ").await;

    // A turn that runs elsewhere talks, and nobody reads.
    let hub = running.app.graph().runtime.hub().clone();
    let other = SessionId::from("another");
    let talk = |news| {
        hub.publish(&LiveEvent {
            session: Some(other.clone()),
            turn: TurnId::from("elsewhere"),
            news,
        });
    };
    talk(News::Started);
    running.until(|notice| is_live(notice, "elsewhere").then_some(())).await;
    for number in 0..FLOOD {
        talk(if number % 2 == 0 { News::Rested } else { News::Started });
        if number % 64 == 0 {
            tokio::task::yield_now().await;
        }
    }
    talk(News::Rested);
    gate.open();
    running.rested(&turn).await;

    let mut running_elsewhere = true;
    let mut reopened = Screen::default();
    loop {
        let notice = running.next().await;
        if is_live(&notice, "elsewhere") {
            let Notice::Live(LiveEvent { news, .. }) = &notice else { continue };
            running_elsewhere = *news == News::Started;
        }
        let opened = matches!(notice, Notice::SessionOpened { .. });
        if opened || !reopened.order.is_empty() {
            reopened.take(notice);
        }
        if reopened.order.len() == 3 {
            break;
        }
    }
    assert!(!running_elsewhere, "it was told that it rests");
    assert_eq!(reopened.order, ["opened 1", "loaded [1], 0 left", "joined false"]);
    assert_eq!(answered(reopened.last()), "One two.");
}

fn is_live(notice: &Notice, turn: &str) -> bool {
    matches!(notice, Notice::Live(event) if event.turn.as_str() == turn)
}

#[tokio::test]
async fn where_the_open_session_was_summed_up_is_told_also_when_nobody_asked_for_it() {
    let long = "long ".repeat(10 * 1024);
    let too_long = json!({"error": {"message": "m", "code": "context_length_exceeded"}});
    let replies = [answer(&long), answer(&long), Reply::json(400, &too_long), answer("In short.")];
    let server = ModelServer::start(replies).await.expect("a port");
    let person = Person::new(&format!("{}[agents]\nauto_compact = true\n", with_model(&server)));
    let mut running = person.start();
    let (session, _) = running.run(DraftOf::NewSession, "One?").await;
    running.run(DraftOf::Session(session.clone()), "Two?").await;
    running.perform(Command::Open(session.clone()));
    running.run(DraftOf::Session(session.clone()), "Three?").await;
    let summaries = running.until(|notice| match notice {
        Notice::SessionChanged { session: of, state } if *of == session => {
            let summaries = state.compactions.iter().map(|it| it.fact.summary.clone());
            Some(summaries.collect::<Vec<_>>())
        }
        _ => None,
    });
    assert_eq!(summaries.await, ["In short."]);
}
