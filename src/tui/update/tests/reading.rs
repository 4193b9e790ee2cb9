//! Reading: the place stays, jumps land where they say, copies are the source.

use super::script::{OPEN_ROWS, Screen, TIMELINE_ROWS, commands};
use super::world::{Session, ended};
use crate::tui::effect::Effect;
use crate::tui::input::{Button, Input, Mouse, MouseKind};
use crate::tui::key::Mods;
use crate::tui::msg::{Copied, Msg};
use crate::tui::state::conversation::{At, Form, Place, Reading};
use crate::tui::state::folds::Fold;
use crate::tui::state::item::{ItemId, Part};

/// A session of `turns` turns of three items each, on screen with the focus in the conversation.
fn long(turns: usize) -> (Screen, Session) {
    let mut session = Session::new("s1");
    for number in 0..turns {
        session.begin(&format!("question {number}"));
        let turn = session.turn();
        turn.asks_model();
        turn.answers(&format!("answer {number}"), &[]);
        turn.completes();
    }
    let mut screen = Screen::showing(&session);
    screen.keys("Esc");
    (screen, session)
}

/// A new answer at the bottom: four items.
fn more(session: &mut Session) -> Vec<crate::app::notice::Notice> {
    let created = session.begin("more");
    let turn = session.turn();
    let mut notices = vec![created, turn.asks_model()];
    notices.push(turn.answers("one", &[("shell", "{}")]));
    notices
}

fn top(screen: &Screen) -> (ItemId, usize) {
    let top = screen.layout.timeline.as_ref().and_then(|area| area.top.clone()).expect("items");
    (top.item, top.row)
}

fn input_of(session: &Session, turn: usize) -> ItemId {
    ItemId { turn: session.turns[turn].id.clone(), part: Part::Input }
}

#[test]
fn at_the_bottom_the_view_follows() {
    let (mut screen, mut session) = long(10);
    screen.tell_all(more(&mut session));
    assert_eq!(screen.state.conversation.reading, Reading::Follow);
    let bottom = screen.layout.timeline.clone().expect("drawn").items;
    assert_eq!(bottom.last().map(|area| area.item.part.clone()), Some(Part::End));
}

#[test]
fn elsewhere_the_place_stays_and_what_is_new_is_counted() {
    let (mut screen, mut session) = long(10);
    screen.keys("PgUp");
    let before = top(&screen);
    screen.tell_all(more(&mut session));
    let turn = session.turn();
    screen.tell_all([turn.started(), turn.delta(0, "x")]);
    assert_eq!(top(&screen), before);
    assert_eq!(screen.state.conversation.new_below, 4);
    screen.keys("G");
    assert_eq!(screen.state.conversation.new_below, 0);
    assert_eq!(screen.state.conversation.reading, Reading::Follow);
}

#[test]
fn scrolling_to_the_bottom_follows_again() {
    let (mut screen, _) = long(10);
    screen.keys("PgUp PgUp");
    assert_ne!(screen.state.conversation.reading, Reading::Follow);
    screen.keys("PgDn PgDn PgDn");
    assert_eq!(screen.state.conversation.reading, Reading::Follow);
}

#[test]
fn pages_overlap_by_a_row_and_add_up_between_frames() {
    let (mut screen, _) = long(20);
    let rows = usize::from(TIMELINE_ROWS) - 1;
    screen.keys("PgUp");
    let once = top(&screen);
    screen.keys("PgDn");
    screen.is_drawn = false;
    screen.keys("PgUp PgUp");
    screen.is_drawn = true;
    screen.draw();
    screen.keys("PgDn");
    assert_eq!(top(&screen), once);
    screen.keys("g");
    screen.keys("PgDn");
    let turn = rows / 3;
    assert_eq!(screen.rows()[0].split('@').next(), Some("Input"));
    assert_eq!(top(&screen).1, 0);
    assert_eq!(screen.state.items().of(&top(&screen).0.turn).len(), 3);
    assert!(top(&screen).0.turn.as_str().ends_with(&format!("-t{}", turn + 1)));
}

#[test]
fn the_ends_are_held() {
    let (mut screen, session) = long(10);
    for _ in 0..10 {
        screen.keys("PgUp");
    }
    assert_eq!(top(&screen), (input_of(&session, 0), 0));
    screen.keys("k k Ctrl-U");
    assert_eq!(top(&screen), (input_of(&session, 0), 0));
}

#[test]
fn the_focus_moves_by_item_and_scrolls_at_the_edges() {
    let (mut screen, session) = long(10);
    screen.keys("g");
    let focus =
        |screen: &Screen| screen.layout.timeline.as_ref().and_then(|area| area.focus.clone());
    for _ in 0..4 {
        screen.keys("j");
    }
    let turn = session.turns[1].id.clone();
    let part = Part::Block { call: 0, block: 0 };
    assert_eq!(focus(&screen), Some(ItemId { turn, part }));
    assert_eq!(top(&screen).0, input_of(&session, 0), "nothing scrolled");
    for _ in 0..6 {
        screen.keys("j");
    }
    assert_eq!(top(&screen).1, 0);
    assert_ne!(top(&screen).0, input_of(&session, 0), "the view followed the focus");
    for _ in 0..10 {
        screen.keys("k");
    }
    assert_eq!(focus(&screen), Some(input_of(&session, 0)));
}

#[test]
fn jumps_go_from_turn_to_turn_and_from_message_to_message() {
    let (mut screen, session) = long(10);
    screen.keys("g ] ]");
    assert_eq!(top(&screen).0, input_of(&session, 2));
    screen.keys("j [");
    assert_eq!(top(&screen).0, input_of(&session, 2), "first to the start of this turn");
    screen.keys("[");
    assert_eq!(top(&screen).0, input_of(&session, 1));
    screen.keys("}");
    assert_eq!(top(&screen).0, input_of(&session, 2));
    screen.keys("{ { {");
    assert_eq!(top(&screen).0, input_of(&session, 0));
}

#[test]
fn a_resize_keeps_the_text_that_stands_in_the_first_row() {
    let (mut screen, _) = long(10);
    screen.keys("g ] j j j j j j j j j j");
    let (item, row) = top(&screen);
    for width in [40, 200, 80] {
        screen.send(Msg::Resize(ratatui::layout::Size::new(width, 30)));
        let place = Place { item: item.clone(), at: At::Source(row) };
        assert_eq!(screen.state.conversation.reading, Reading::Pinned(place));
    }
}

#[test]
fn folding_keeps_the_first_row_where_it_is() {
    let mut session = ended("s1");
    session.begin("work");
    let turn = session.turn();
    turn.asks_model();
    turn.answers("", &[("shell", "{}"); 12]);
    let mut screen = Screen::showing(&session);
    screen.keys("Esc g");
    let before = top(&screen);
    screen.keys("j j j j Enter");
    assert_eq!(top(&screen), before);
    let area = screen.layout.timeline.as_ref().expect("drawn");
    let focus = area.focus.clone().expect("a focus");
    let shown = area.items.iter().find(|area| area.item == focus).expect("in sight");
    assert_eq!((usize::from(shown.rows), shown.rows_below), (OPEN_ROWS, 0));
    let fold = |screen: &Screen| {
        let item = screen.state.items().find(&focus).expect("there");
        screen.state.conversation.folds.of(&item)
    };
    assert_eq!(fold(&screen), Fold::Open);
    screen.keys("Enter");
    assert_eq!(fold(&screen), Fold::Folded);
    screen.keys("z");
    assert_eq!(fold(&screen), Fold::Open);
    screen.keys("Z z");
    assert_eq!(fold(&screen), Fold::Folded);
    screen.keys("R");
    assert_eq!(screen.state.conversation.form, Form::Raw);
}

#[test]
fn copies_are_the_source_and_say_which_way_they_went() {
    let mut session = ended("s1");
    session.begin("code?");
    let turn = session.turn();
    turn.asks_model();
    let source = "Two:\n\n```rust\nfn a() {}\n```\n\n> ```\n> b\tc\n> ```\n";
    turn.answers(source, &[]);
    turn.completes();
    let mut screen = Screen::showing(&session);
    screen.keys("Esc k");
    let copy = |text: &str| vec![Effect::Copy { text: text.to_owned() }];
    assert_eq!(screen.keys("y"), copy(source));
    assert_eq!(screen.keys("Y"), copy(&format!("code?\n\n{source}")));
    assert_eq!(screen.keys("c"), vec![]);
    assert_eq!(screen.keys("9 x"), vec![]);
    assert_eq!(screen.keys("2"), copy("b\tc\n"));
    assert_eq!(screen.state.overlay, None);
    screen.send(Msg::Copied(Copied::File("/tmp/x".into())));
    assert_eq!(screen.toast(), "No clipboard was found; written to /tmp/x");
    assert_eq!(screen.keys("{ c"), vec![]);
    assert_eq!(screen.toast(), "There is no code block here");
}

#[test]
fn below_the_answer_the_answer_is_what_is_copied() {
    let mut session = ended("s1");
    session.begin("code?");
    let turn = session.turn();
    turn.asks_model();
    let source = "One:\n\n```\nfn a() {}\n```\n";
    turn.answers(source, &[]);
    turn.completes();
    let mut screen = Screen::showing(&session);
    screen.keys("Esc");
    let focus = screen.layout.timeline.as_ref().and_then(|area| area.focus.clone());
    assert_eq!(focus.map(|item| item.part), Some(Part::End));
    assert_eq!(screen.keys("y"), [Effect::Copy { text: source.to_owned() }]);
    assert_eq!(screen.keys("c"), [Effect::Copy { text: "fn a() {}\n".to_owned() }]);
}

#[test]
fn an_answer_that_grows_out_of_sight_shows_that_there_is_more() {
    let (mut screen, mut session) = long(10);
    session.begin("more?");
    screen.tell_all(session.opened());
    let turn = session.turn();
    screen.tell_all([turn.started(), turn.asks_model(), turn.delta(0, "It begins\n")]);
    screen.keys("PgUp");
    assert_eq!(screen.state.conversation.new_below, 0);
    let turn = session.turn();
    screen.tell_all([turn.delta(10, "and goes\n"), turn.delta(19, "on\n")]);
    assert_eq!(screen.state.conversation.new_below, 1);
    screen.keys("G");
    assert_eq!(screen.state.conversation.new_below, 0);
}

#[test]
fn the_wheel_scrolls_and_a_click_focuses() {
    let (mut screen, _) = long(10);
    let mouse = |kind, column, row| Input::Mouse(Mouse { kind, column, row, mods: Mods::NONE });
    screen.input(mouse(MouseKind::WheelUp, 50, 2));
    assert_ne!(screen.state.conversation.reading, Reading::Follow);
    screen.input(mouse(MouseKind::WheelDown, 50, 2));
    assert_eq!(screen.state.conversation.reading, Reading::Follow);
    screen.input(mouse(MouseKind::Press(Button::Left), 50, 3));
    let clicked = screen.layout.timeline.as_ref().expect("drawn").items[3].item.clone();
    assert_eq!(screen.state.conversation.focus, Some(clicked));
    let effects = screen.input(mouse(MouseKind::Press(Button::Left), 5, 0));
    assert_eq!(commands(effects), []);
    assert_eq!(screen.state.focus, crate::tui::state::Focus::List);
}

#[test]
fn help_shows_the_keys_of_the_place_and_scrolls() {
    let (mut screen, _) = long(3);
    screen.keys("? j j k");
    let Some(crate::tui::state::overlay::Overlay::Help(help)) = &screen.state.overlay else {
        panic!("no help")
    };
    assert_eq!(help.scroll, 1);
    assert_eq!(help.contexts.first(), Some(&crate::tui::keymap::context::Context::Timeline));
    screen.keys("?");
    assert_eq!(screen.state.overlay, None);
}
