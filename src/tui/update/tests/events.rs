//! The event view: a turn's log, event by event, and what was sent.

use std::sync::Arc;

use super::script::{Screen, commands, settings};
use super::world::ended;
use crate::app::command::{Command, Inspect, InspectWhat, TextOf};
use crate::app::notice::{EventLine, Inspected, Notice};
use crate::app::paged::Paged;
use crate::base::clock::Timestamp;
use crate::base::id::TurnId;
use crate::tui::effect::Effect;
use crate::tui::state::overlay::{Events, Fetched, Overlay};
use crate::tui::state::settings::{Access, Settings};

/// So many events, every other one of a model call.
pub(super) fn lines(turn: &TurnId, count: u64) -> Notice {
    let lines = (1..=count).map(|offset| EventLine {
        offset,
        at: Timestamp::from_ms(0),
        kind: "model_step_event",
        model_call: (offset % 2 == 0).then_some(offset / 2),
        tool: None,
    });
    Notice::Inspected(Inspected::Events { turn: turn.clone(), events: Ok(lines.collect()) })
}

fn text(turn: &TurnId, what: TextOf, text: &str) -> Notice {
    let text = Ok(Arc::new(Paged::new(text.to_owned())));
    Notice::Inspected(Inspected::Text { turn: turn.clone(), what, text })
}

fn asks(turn: &TurnId, what: InspectWhat) -> Vec<Command> {
    vec![Command::Inspect(Inspect { turn: turn.clone(), what })]
}

fn view(screen: &Screen) -> &Events {
    match &screen.state.overlay {
        Some(Overlay::Events(events)) => events,
        other => panic!("{other:?}"),
    }
}

/// The view of a turn of four events.
fn screen() -> (Screen, TurnId) {
    let mut session = ended("s1");
    let mut screen = Screen::showing(&session);
    let turn = session.turn().id.clone();
    screen.keys("Esc");
    assert_eq!(commands(screen.keys("x")), asks(&turn, InspectWhat::Events));
    assert_eq!(view(&screen).lines, Fetched::Asked);
    screen.tell(lines(&turn, 4));
    (screen, turn)
}

#[test]
fn an_event_opens_scrolls_is_copied_and_closes() {
    let (mut screen, turn) = screen();
    let what = TextOf::Event(2);
    assert_eq!(commands(screen.keys("j Enter")), asks(&turn, InspectWhat::Text(what)));
    screen.tell(text(&turn, what, "{\n}"));
    assert_eq!(screen.keys("y"), [Effect::Copy { text: "{\n}".into() }]);
    screen.keys("j");
    assert_eq!(view(&screen).page.as_ref().map(|page| page.scroll), Some(1));
    screen.keys("Esc");
    assert_eq!((&view(&screen).page, view(&screen).selected), (&None, 1));
    screen.keys("Esc");
    assert_eq!(screen.state.overlay, None);
}

#[test]
fn the_request_of_a_model_call_is_shown_from_any_of_its_events() {
    let (mut screen, turn) = screen();
    assert_eq!(commands(screen.keys("r")), []);
    assert!(screen.toast().contains("No model call"), "{}", screen.toast());
    assert_eq!(commands(screen.keys("j r")), asks(&turn, InspectWhat::Text(TextOf::Request(1))));
    let why = "not there".to_owned();
    let what = TextOf::Request(1);
    screen.tell(Notice::Inspected(Inspected::Text { turn, what, text: Err(why.clone()) }));
    let page = view(&screen).page.as_ref().expect("a page");
    assert_eq!(page.text, Fetched::Failed(why));
}

#[test]
fn what_comes_late_or_for_another_turn_changes_nothing() {
    let (mut screen, turn) = screen();
    let other = TurnId::from("t9");
    screen.keys("Enter");
    let before = screen.state.overlay.clone();
    screen.tell(lines(&other, 9));
    screen.tell(text(&other, TextOf::Event(1), "x"));
    screen.tell(text(&turn, TextOf::Event(3), "x"));
    assert_eq!(screen.state.overlay, before);
    screen.keys("Esc Esc");
    screen.tell(text(&turn, TextOf::Event(1), "x"));
    assert_eq!(screen.state.overlay, None);
}

#[test]
fn events_are_seen_where_nothing_can_be_changed() {
    let mut session = ended("s1");
    let mut screen = Screen::with(Settings { access: Access::ReadOnly, ..settings() });
    screen.open(&session);
    let turn = session.turn().id.clone();
    screen.keys("Esc");
    assert_eq!(commands(screen.keys("x")), asks(&turn, InspectWhat::Events));
}
