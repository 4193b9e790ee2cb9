//! No key that help shows is dead, and no shown key panics anywhere.

use super::script::Screen;
use super::world::{Turn, asking, ended, listed, questioning, running};
use crate::app::notice::{Notice, UnsentMessage};
use crate::domain::turn::event::ResultSource;
use crate::domain::turn::status::TurnStatus;
use crate::tui::keymap::Row;
use crate::tui::msg::{Copied, Msg};

/// A screen on which everything that can be done has something to do.
fn screen() -> Screen {
    let mut session = ended("s5");
    for _ in 0..8 {
        session.begin("more");
        let turn = session.turn();
        turn.asks_model();
        turn.answers("```\ncode\n```", &[("shell", "{}")]);
        turn.finishes(turn_call(turn), ResultSource::Runtime);
        turn.asks_model();
        turn.answers("done", &[]);
        turn.completes();
    }
    let mut screen = Screen::new();
    let mut entries: Vec<_> = (1..=9).map(|n| listed(&format!("s{n}"), TurnStatus::Idle)).collect();
    entries.push(asking("w1", 1).entry());
    entries.push(asking("w2", 1).entry());
    entries.push(asking("w3", 1).entry());
    let done = entries.len();
    screen.tell(Notice::Scanned { entries, done, total: done });
    screen.tell(Notice::Deleted(vec![crate::base::id::SessionId::from("gone")]));
    let history = vec!["older".to_owned(), "old".to_owned()];
    screen.tell(Notice::Remembered { history, list: crate::app::command::ListSettings::default() });
    screen.open(&session);
    let id = crate::base::id::EventId::from("e1");
    let messages = vec![UnsentMessage { id, text: "later".into(), held: true }];
    screen.tell(Notice::UnsentChanged { session: session.id.clone(), messages });
    screen.wait(20_000);
    screen
}

/// A place, and how to get there.
type Place = (&'static str, fn() -> Screen);

const PLACES: [Place; 14] = [
    ("composer", || {
        let mut screen = screen();
        screen.keys("PgUp PgUp");
        screen.types("one two");
        screen.keys("Alt-Enter");
        screen.types("three four");
        screen.keys("Alt-Enter");
        screen.types("five six");
        screen.keys("Ctrl-W Ctrl-/ Up Alt-B");
        screen
    }),
    ("list", || {
        let mut screen = screen();
        screen.keys("Esc h g j j j");
        screen
    }),
    ("timeline", || {
        let mut screen = screen();
        screen.keys("Esc g ] ] ] ] j j");
        screen.send(Msg::Copied(Copied::Desktop));
        screen
    }),
    ("filter", || {
        let mut screen = screen();
        screen.keys("Esc h /");
        screen.types("s s");
        screen.keys("Ctrl-W Ctrl-/ Ctrl-A Alt-F Down Down Down");
        screen
    }),
    ("title", || {
        let mut screen = screen();
        screen.keys("Esc h r Ctrl-W");
        screen.types("one two");
        screen.keys("Alt-B Left");
        screen
    }),
    ("purge", || {
        let mut screen = screen();
        screen.keys("Esc h D Ctrl-W");
        screen.types("one two");
        screen.keys("Ctrl-W Ctrl-/ Alt-B Left");
        screen
    }),
    ("permission", || {
        let mut screen = Screen::showing(&asking("s1", 2));
        screen.keys("Ctrl-Y");
        screen.wait(400);
        screen
    }),
    ("full view", || {
        let mut screen = Screen::showing(&asking("s1", 2));
        screen.keys("Ctrl-Y");
        screen.wait(400);
        screen.keys("v PgDn");
        screen
    }),
    ("interrupted", || {
        let mut screen = Screen::showing(&running("s1"));
        screen.types("go on");
        screen.keys("Enter");
        screen.wait(400);
        screen
    }),
    ("question", || question(r#"{"questions":[{"id":"a","text":"?","options":["x","y","z"]}]}"#)),
    ("answer", || {
        let mut screen = question(r#"{"questions":[{"id":"a","text":"?","options":["x"]}]}"#);
        screen.types("one two three");
        screen.keys("Ctrl-W Ctrl-/ Alt-B Left");
        screen
    }),
    ("waiting", || {
        let mut screen = screen();
        screen.keys("Ctrl-T j");
        screen
    }),
    ("events", || {
        let mut screen = screen();
        screen.keys("Esc g ] x");
        let turn = screen.state.conversation.turns.slots()[1].id.clone();
        screen.tell(super::events::lines(&turn, 30));
        screen.keys("PgDn PgDn");
        screen
    }),
    ("help", || {
        let mut screen = screen();
        screen.keys("F1 PgDn");
        screen
    }),
];

fn turn_call(turn: &Turn) -> usize {
    turn.state().tool_calls.len()
}

fn question(form: &str) -> Screen {
    let mut screen = Screen::showing(&questioning("s1", form));
    screen.keys("Ctrl-Y");
    screen.wait(400);
    screen.keys("Down");
    screen
}

/// What has nothing to do where the person is: going where they are, the lines of a single line,
/// what a redo needs.
const AT_HOME: [(&str, &str); 19] = [
    ("list", "to-list"),
    ("timeline", "to-timeline"),
    ("composer", "redo"),
    ("title", "redo"),
    ("title", "line-up"),
    ("title", "line-down"),
    ("filter", "redo"),
    ("purge", "redo"),
    ("purge", "line-up"),
    ("purge", "line-down"),
    ("purge", "next-pane"),
    ("purge", "previous-pane"),
    ("answer", "redo"),
    ("answer", "line-up"),
    ("answer", "line-down"),
    ("permission", "go-to-prompt"),
    ("full view", "go-to-prompt"),
    ("question", "go-to-prompt"),
    ("answer", "go-to-prompt"),
];

#[test]
fn every_key_that_help_shows_does_something() {
    let mut dead = Vec::new();
    for (place, there) in PLACES {
        let start = there();
        let keymap = std::sync::Arc::clone(&start.state.settings.keymap);
        for Row { keys, action, .. } in keymap.rows(start.state.contexts()) {
            for sequence in keys {
                let mut screen = start.clone();
                let effects = screen.keys(&sequence.to_string());
                let step = screen.state.keys.step.take();
                screen.state.keys =
                    crate::tui::state::keys::Keys { step, ..start.state.keys.clone() };
                screen.state.now = start.state.now;
                let did_nothing = effects.is_empty() && screen.state == start.state;
                if did_nothing && !AT_HOME.contains(&(place, action.name())) {
                    dead.push(format!("{place}: {sequence} ({action})"));
                }
            }
        }
    }
    assert_eq!(dead, Vec::<String>::new());
}

#[test]
fn every_key_of_every_place_can_be_pressed_on_any_screen() {
    let keymap = std::sync::Arc::clone(&Screen::new().state.settings.keymap);
    let mut all: Vec<String> = Vec::new();
    for (_, there) in PLACES {
        let rows = keymap.rows(there().state.contexts());
        all.extend(rows.iter().flat_map(|row| &row.keys).map(ToString::to_string));
    }
    all.sort();
    all.dedup();
    for (_, there) in PLACES {
        for size in [(120, 40), (40, 10), (10, 3)] {
            let mut screen = there();
            screen.send(Msg::Resize(ratatui::layout::Size::new(size.0, size.1)));
            for keys in &all {
                screen.keys(keys);
            }
        }
    }
}
