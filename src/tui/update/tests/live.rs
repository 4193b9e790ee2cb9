//! The live stream: nothing is missed, nothing is shown twice, nothing jumps.

use std::sync::Arc;

use super::script::{Screen, commands};
use super::world::{Session, ended, running};
use crate::app::command::Command;
use crate::app::notice::{LoadedTurn, Notice, TurnView};
use crate::domain::agent::Execution;
use crate::domain::turn::event::{Decision, ResultSource, TurnFact};
use crate::domain::turn::live::{DeltaKind, News, OpenBlock, OpenCall};
use crate::domain::turn::step::StepEvent;
use crate::store::lock::Holder;
use crate::tui::state::item::{Body, Growth, Part, Standing};
use crate::tui::state::turns::Content;
use crate::tui::words;

/// What the conversation shows, item by item.
pub(super) fn shown(screen: &Screen) -> Vec<String> {
    let items = screen.state.items();
    let all = std::iter::successors(items.first(), |item| items.after(&item.id));
    let texts = all.map(|item| match item.body {
        Body::Loading => "loading".to_owned(),
        Body::Damaged(why) => format!("damaged: {why}"),
        Body::Message { message, .. } => format!("> {}", message.plain_text()),
        Body::Text { text, growth: Growth::Settled } => text.to_owned(),
        Body::Text { text, growth: Growth::Growing } => format!("{text}…"),
        Body::Text { text, growth: Growth::Interrupted } => format!("{text}~"),
        Body::Text { text, growth: Growth::Elsewhere } => format!("{text}, so far"),
        Body::Reasoning { text, .. } => format!("({text})"),
        Body::Call(call) => format!("[{}]", call.name),
        Body::Failure { error, .. } => format!("failed: {error}"),
        Body::Divider(summary) => format!("-- {summary}"),
        Body::End(end) => match end.standing {
            Standing::Running { .. } => "running".to_owned(),
            Standing::Suspended => "waiting".to_owned(),
            Standing::Elsewhere(holder) => format!("open in {}", words::holder(&holder)),
            Standing::Interrupted => "interrupted".to_owned(),
            Standing::Ended(_) => "end".to_owned(),
        },
    });
    texts.collect()
}

pub(super) fn open(session: &Session) -> Command {
    Command::Open(session.id.clone())
}

#[test]
fn an_answer_streams_in_and_settles_in_its_place() {
    let mut session = running("s1");
    let mut screen = Screen::showing(&session);
    let turn = session.turn();
    screen.tell(turn.started());
    screen.tell_all([turn.delta(0, "Hel"), turn.delta(3, "lo")]);
    assert_eq!(shown(&screen), ["> hello", "Hello…", "running"]);
    let before: Vec<_> = screen.layout.timeline.clone().expect("drawn").items;
    let answer = turn.answers("Hello", &[("shell", "{}")]);
    screen.tell(answer);
    assert_eq!(shown(&screen), ["> hello", "Hello", "[shell]", "running"]);
    assert_eq!(screen.layout.timeline.as_ref().expect("drawn").items[..2], before[..2]);
}

#[test]
fn joining_in_the_middle_of_an_answer_shows_all_of_it_once() {
    let session = running("s1");
    let mut screen = Screen::showing(&session);
    let turn = session.turns[0].clone();
    let block = OpenBlock { block: 0, kind: DeltaKind::Text, text: "Hello".into() };
    let call = OpenCall { model_call_index: 0, blocks: vec![block], len: 5 };
    screen.tell(Notice::Joined { turn: turn.id.clone(), open_call: Some(call) });
    let effects = screen.tell_all([turn.delta(3, "lo"), turn.delta(5, " you")]);
    assert_eq!(commands(effects), []);
    assert_eq!(shown(&screen)[1], "Hello you…");
}

#[test]
fn a_gap_in_an_answer_is_asked_for_once() {
    let session = running("s1");
    let mut screen = Screen::showing(&session);
    let turn = session.turns[0].clone();
    let effects = screen.tell_all([turn.delta(7, "x"), turn.delta(8, "y"), turn.delta(9, "z")]);
    assert_eq!(commands(effects), [open(&session)]);
}

#[test]
fn events_that_are_known_are_dropped_and_those_that_follow_are_folded() {
    let mut session = running("s1");
    let before = session.clone();
    let turn = session.turn();
    let answer = turn.answers("Hi", &[]);
    let end = turn.completes();
    let mut screen = Screen::showing(&session);
    assert_eq!(commands(screen.tell_all([answer.clone(), end.clone()])), []);
    assert_eq!(shown(&screen), ["> hello", "Hi", "end"]);
    let mut screen = Screen::showing(&before);
    assert_eq!(commands(screen.tell_all([answer, end])), []);
    assert_eq!(shown(&screen), ["> hello", "Hi", "end"]);
}

#[test]
fn a_gap_in_the_log_is_asked_for_and_what_came_meanwhile_follows() {
    let mut session = running("s1");
    let mut screen = Screen::showing(&session);
    let turn = session.turn();
    let _missed = turn.answers("", &[("shell", "{}")]);
    let required = turn.requires(1);
    let reloaded = turn.loaded(1);
    let suspended = turn.suspends();
    assert_eq!(commands(screen.tell(required)), [open(&session)]);
    assert_eq!(commands(screen.tell(suspended)), [], "asked once");
    let turns = vec![reloaded];
    let notice = Notice::TurnsLoaded { session: session.id.clone(), turns, left: 0 };
    let effects = commands(screen.tell(notice));
    assert!(!effects.contains(&open(&session)), "{effects:?}");
    assert_eq!(shown(&screen), ["> hello", "[shell]", "waiting"]);
    let slot = screen.state.conversation.turns.latest().expect("a turn");
    assert_eq!(slot.loaded().expect("loaded").offset, 5);
}

#[test]
fn an_event_that_the_fold_refuses_is_asked_for_again() {
    let mut session = running("s1");
    let mut screen = Screen::showing(&session);
    let turn = session.turn();
    let mut other = turn.clone();
    let Notice::Live(mut strange) = other.answers("x", &[]) else { panic!("live") };
    let News::Recorded { event, .. } = &mut strange.news else { panic!("recorded") };
    let completed = crate::domain::turn::event::ModelCallCompleted {
        model_call_index: 7,
        ..match &event.fact {
            TurnFact::ModelCallCompleted(fact) => fact.clone(),
            _ => panic!("completed"),
        }
    };
    Arc::make_mut(event).fact = TurnFact::ModelCallCompleted(completed);
    assert_eq!(commands(screen.tell(Notice::Live(strange))), [open(&session)]);
    assert_eq!(shown(&screen), ["> hello", "interrupted"]);
}

#[test]
fn a_new_turn_of_the_session_is_known_from_its_first_event() {
    let mut session = ended("s1");
    let mut screen = Screen::showing(&session);
    let created = session.begin("again");
    let turn = session.turn();
    let notices = [turn.started(), created, turn.asks_model(), turn.delta(0, "Yes")];
    assert_eq!(commands(screen.tell_all(notices)), []);
    assert_eq!(shown(&screen)[3..], ["> again", "Yes…", "running"]);
    assert_eq!(screen.state.running_turn(), Some(&session.turn().id));
}

#[test]
fn what_is_told_while_a_session_is_being_opened_is_not_lost() {
    let mut session = ended("s1");
    let mut screen = Screen::new();
    screen.tell(session.indexed());
    screen.keys("Shift-Tab Shift-Tab Enter");
    let opened = session.opened();
    let created = session.begin("again");
    let turn = session.turn();
    let notices = [turn.started(), created, turn.asks_model()];
    screen.tell_all(notices);
    screen.tell_all(opened);
    screen.tell(session.turn().delta(0, "Yes"));
    assert_eq!(shown(&screen), ["> hello", "Hello there.", "end", "> again", "Yes…", "running"]);
}

#[test]
fn a_turn_of_another_session_changes_nothing_here() {
    let mut screen = Screen::showing(&ended("s1"));
    let mut other = Session::new("s2");
    let created = other.begin("elsewhere");
    let before = shown(&screen);
    screen.tell_all([other.turn().started(), created]);
    assert_eq!(shown(&screen), before);
}

#[test]
fn an_answer_that_a_crash_cut_off_is_shown_and_becomes_part_of_the_log() {
    let mut session = running("s1");
    let block = OpenBlock { block: 0, kind: DeltaKind::Text, text: "Half an".into() };
    let call = OpenCall { model_call_index: 0, blocks: vec![block], len: 7 };
    let mut opened = session.opened();
    let Some(Notice::TurnsLoaded { turns, .. }) = opened.get_mut(1) else { panic!("turns") };
    let Ok(view) = &mut turns[0].content else { panic!("a view") };
    view.interrupted = Some(call);
    let mut screen = Screen::new();
    screen.tell(session.indexed());
    screen.keys("Shift-Tab Shift-Tab Enter");
    screen.tell_all(opened);
    assert_eq!(shown(&screen), ["> hello", "Half an~", "interrupted"]);
    screen.tell(Notice::Joined { turn: session.turn().id.clone(), open_call: None });
    assert_eq!(shown(&screen), ["> hello", "Half an~", "interrupted"], "nothing streams");
    let holder = Holder { process: Some(77), since: None };
    screen.tell(Notice::HeldBy(Some(holder)));
    let elsewhere = ["> hello", "Half an, so far", "open in process 77"];
    assert_eq!(shown(&screen), elsewhere, "nothing was cut off");
    screen.tell(Notice::HeldBy(None));
    let turn = session.turn();
    let step = crate::domain::turn::event::ModelStep {
        model_call_index: 0,
        event: StepEvent::TextEnd { text: Arc::from("Half an") },
    };
    let failed = crate::domain::turn::event::ModelCallFailed {
        model_call_index: 0,
        error: "interrupted".into(),
    };
    let notices = [
        turn.started(),
        turn.tell(TurnFact::ModelStep(step)),
        turn.tell(TurnFact::ModelCallFailed(failed)),
    ];
    screen.tell_all(notices);
    assert_eq!(shown(&screen), ["> hello", "Half an", "failed: interrupted", "running"]);
}

#[test]
fn a_turn_that_cannot_be_read_is_shown_with_its_reason() {
    let session = ended("s1");
    let mut opened = session.opened();
    let Some(Notice::TurnsLoaded { turns, .. }) = opened.get_mut(1) else { panic!("turns") };
    turns[0].content = Err("line 2: torn".into());
    let mut screen = Screen::new();
    screen.tell(session.indexed());
    screen.keys("Shift-Tab Shift-Tab Enter");
    screen.tell_all(opened);
    assert_eq!(shown(&screen), ["damaged: line 2: torn"]);
    screen.keys("i");
    screen.types("x");
    assert_eq!(commands(screen.keys("Enter")), []);
}

#[test]
fn older_turns_load_above_what_is_read() {
    let mut session = ended("s1");
    session.begin("again");
    let mut screen = Screen::new();
    screen.tell(session.indexed());
    screen.keys("Shift-Tab Shift-Tab Enter");
    let mut opened = session.opened();
    let Some(Notice::TurnsLoaded { turns, left, .. }) = opened.get_mut(1) else { panic!("turns") };
    let older = turns.split_off(1);
    *left = 1;
    screen.tell_all(opened);
    assert_eq!(shown(&screen), ["loading", "> again", "interrupted"]);
    let notice = Notice::TurnsLoaded { session: session.id.clone(), turns: older, left: 0 };
    screen.tell(notice);
    assert_eq!(shown(&screen)[..3], ["> hello", "Hello there.", "end"]);
    assert_eq!(screen.state.conversation.turns.item_count(), 5);
}

#[test]
fn a_running_tools_tail_and_a_waiting_client_show_and_go() {
    let mut session = running("s1");
    let mut screen = Screen::showing(&session);
    let turn = session.turn();
    let until = crate::base::clock::Timestamp::from_ms(5);
    let wait = turn.news(News::ModelWaiting { until, why: "429".into() });
    screen.tell_all([turn.started(), wait]);
    let live =
        |screen: &Screen| screen.state.conversation.turns.latest().expect("a turn").live.clone();
    assert!(live(&screen).wait.is_some());
    let answer = turn.answers("", &[("shell", "{}")]);
    let invoked = turn.invokes(1, Execution::Sync);
    let tail = turn.news(News::ToolTail { call: turn.call(1), tail: "50%".into() });
    screen.tell_all([answer, invoked, tail]);
    assert!(live(&screen).wait.is_none());
    assert_eq!(live(&screen).tails.len(), 1);
    let done = turn.finishes(1, ResultSource::Sync);
    screen.tell(done);
    assert!(live(&screen).tails.is_empty());
}

#[test]
fn an_items_revision_changes_whenever_it_looks_different() {
    let mut session = running("s1");
    let mut screen = Screen::showing(&session);
    let mut seen = std::collections::BTreeMap::new();
    let mut look = |screen: &Screen| {
        let items = screen.state.items();
        for item in std::iter::successors(items.first(), |item| items.after(&item.id)) {
            let looks = format!("{:?}", item.body);
            let known = seen.entry((item.id, item.revision)).or_insert_with(|| looks.clone());
            assert_eq!(*known, looks);
        }
    };
    look(&screen);
    let turn = session.turn();
    let mut notices = vec![turn.started(), turn.delta(0, "one"), turn.delta(3, " two")];
    notices.push(turn.answers("one two", &[("shell", "{}")]));
    notices.push(turn.requires(1));
    notices.push(turn.resolves(1, Decision::Allow));
    notices.push(turn.invokes(1, Execution::Sync));
    for tail in ["a", "b"] {
        notices.push(turn.news(News::ToolTail { call: turn.call(1), tail: tail.into() }));
    }
    notices.push(turn.finishes(1, ResultSource::Sync));
    notices.push(turn.asks_model());
    notices.push(turn.answers("done", &[]));
    notices.push(turn.completes());
    notices.push(turn.rested());
    for notice in notices {
        screen.tell(notice);
        look(&screen);
    }
}

#[test]
fn a_token_costs_the_same_in_a_long_conversation() {
    let mut session = Session::new("s1");
    for _ in 0..2_000 {
        session.begin("hello");
        let turn = session.turn();
        turn.asks_model();
        turn.answers("Hi.", &[]);
        turn.completes();
    }
    session.begin("last");
    session.turn().asks_model();
    let mut screen = Screen::new();
    screen.is_drawn = false;
    screen.open(&session);
    let turn = session.turns.last().expect("a turn").clone();
    let (mut at, piece) = (0, "token ");
    for _ in 0..20_000 {
        screen.tell(turn.delta(at, piece));
        at += piece.len() as u64;
    }
    let last = screen.state.items().last().expect("an item");
    assert_eq!(last.id.part, Part::End);
    let text = screen.state.items().before(&last.id).expect("the answer");
    assert_eq!(text.body.source().map(|text| text.len()), Some(120_000));
    let slot = screen.state.conversation.turns.latest().expect("a turn");
    assert!(matches!(slot.content, Content::Loaded(_)));
    let view = TurnView {
        offset: 99,
        state: Arc::new(turn.state().clone()),
        interrupted: None,
        running: true,
    };
    let loaded = LoadedTurn { id: turn.id.clone(), session_seq: 2_001, content: Ok(view) };
    let turns = vec![loaded];
    screen.tell(Notice::TurnsLoaded { session: session.id.clone(), turns, left: 0 });
    assert_eq!(screen.state.running_turn(), Some(&turn.id));
}
