//! Whatever a person does and whatever the program tells: every frame is whole, safe, and the same
//! with an empty cache.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect, Size};
use unicode_width::UnicodeWidthStr;

use super::drawn;
use super::scenery::{self, SECOND, TURN, asks, entry, questions};
use crate::base::id::{SessionId, TurnId};
use crate::base::sanitize::hostile;
use crate::domain::turn::live::DeltaKind;
use crate::tui::cache::Cache;
use crate::tui::input::Input;
use crate::tui::key::Key;
use crate::tui::layout::{Layout, layout};
use crate::tui::msg::Msg;
use crate::tui::scenes::{self, Turn, at, call, reasoning, text};
use crate::tui::state::status::Tone;
use crate::tui::state::{Now, State};
use crate::tui::update::update;

/// Something that happens.
#[derive(Clone, Debug)]
enum Step {
    Key(Key),
    Typed(String),
    Paste(String),
    Resize(Size),
    Wait(u64),
    Toast(String),
    Session(u8, String),
    Worked { input: String, said: String, output: String },
    Streams(String),
    Waits(bool),
}

const KEYS: [&str; 42] = [
    "Tab",
    "Shift-Tab",
    "Esc",
    "Enter",
    "Up",
    "Down",
    "Left",
    "Right",
    "PgUp",
    "PgDn",
    "Home",
    "End",
    "j",
    "k",
    "g",
    "G",
    "h",
    "l",
    "i",
    "z",
    "Z",
    "R",
    "[",
    "]",
    "{",
    "}",
    "y",
    "n",
    "N",
    "v",
    "/",
    "r",
    "d",
    "Space",
    "?",
    "F1",
    "Ctrl-T",
    "Ctrl-Y",
    "Ctrl-B",
    "Ctrl-N",
    "s",
    "Ctrl-C",
];

fn size() -> impl Strategy<Value = Size> {
    (1..140u16, 1..50u16).prop_map(|(width, height)| Size { width, height })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => prop::sample::select(KEYS.to_vec()).prop_map(|key| Step::Key(key.parse().unwrap())),
        1 => hostile::text().prop_map(Step::Typed),
        1 => hostile::text().prop_map(Step::Paste),
        2 => size().prop_map(Step::Resize),
        2 => (0..2_000u64).prop_map(Step::Wait),
        1 => hostile::text().prop_map(Step::Toast),
        1 => (any::<u8>(), hostile::text()).prop_map(|(id, title)| Step::Session(id, title)),
        2 => (hostile::text(), hostile::text(), hostile::text())
            .prop_map(|(input, said, output)| Step::Worked { input, said, output }),
        2 => hostile::text().prop_map(Step::Streams),
        1 => any::<bool>().prop_map(Step::Waits),
    ]
}

/// A screen that lives on.
struct Screen {
    state: State,
    layout: Layout,
    cache: Cache,
    turns: usize,
}

impl Screen {
    fn new(size: Size) -> Self {
        let mut cache = scenes::cache();
        let state = scenery::full(size, vec![scenery::worked()]);
        let layout = layout(&state, size, &mut cache);
        Self { state, layout, cache, turns: 1 }
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Key(key) => self.update(Msg::Input(Input::Key(key))),
            Step::Typed(typed) => self.update(Msg::Input(Input::Text(typed))),
            Step::Paste(pasted) if pasted.is_empty() => {}
            Step::Paste(pasted) => self.update(Msg::Input(Input::Paste(pasted))),
            Step::Resize(size) => self.update(Msg::Resize(size)),
            Step::Wait(ms) => {
                let now = self.state.now;
                let span = Duration::from_millis(ms);
                let (elapsed, wall) = (now.elapsed + span, now.wall.after(span));
                self.update(Msg::Tick(Now { elapsed, wall }));
            }
            Step::Toast(text) => {
                let now = self.state.now.elapsed;
                self.state.status.toast(Tone::Problem, text, now);
            }
            Step::Session(id, title) => {
                let mut entry = entry(&format!("s-{id}"), &title, at("08:00:00"));
                entry.cwd = Some(title.clone());
                entry.error = (id % 7 == 0).then_some(title);
                self.state.list.put(&Arc::new(entry));
            }
            Step::Worked { input, said, output } => self.add(hostile_turn(&input, &said, &output)),
            Step::Streams(said) => self.stream(&said),
            Step::Waits(question) => self.add(if question { questions() } else { asks() }),
        }
        self.state.list.filter_more();
        self.layout = layout(&self.state, self.state.size, &mut self.cache);
        self.update(Msg::Drawn);
        self.layout = layout(&self.state, self.state.size, &mut self.cache);
    }

    fn update(&mut self, msg: Msg) {
        drop(update(&mut self.state, &self.layout, msg));
    }

    /// Adds a turn, unless another session has been put on screen.
    fn add(&mut self, turn: Turn) {
        if self.state.session() != Some(&SessionId::from(scenes::SESSION)) {
            return;
        }
        self.turns += 1;
        let id = format!("{TURN}-{}", self.turns);
        let loaded = turn.named_as(&id).loaded(self.turns as u64);
        let _folded = self.state.conversation.turns.load(loaded);
        scenes::sync_prompts(&mut self.state);
    }

    fn stream(&mut self, said: &str) {
        if self.state.session() != Some(&SessionId::from(scenes::SESSION)) || said.is_empty() {
            return;
        }
        let turns = &self.state.conversation.turns;
        if turns.slot(&TurnId::from(SECOND)).is_none() {
            let turn = Turn::begin(SECOND, "10:41:00", "Go on").ask();
            self.turns += 1;
            let _folded = self.state.conversation.turns.load(turn.loaded(self.turns as u64));
            scenes::run(&mut self.state, SECOND);
        }
        let kind =
            if said.len().is_multiple_of(5) { DeltaKind::Reasoning } else { DeltaKind::Text };
        scenes::stream(&mut self.state, SECOND, kind, said);
    }
}

/// A turn in which everything that comes from outside is hostile.
fn hostile_turn(input: &str, said: &str, output: &str) -> Turn {
    let arguments = serde_json::json!({ "command": output, "path": said, said: input }).to_string();
    let diff = format!("--- a\n+++ b\n@@ -1,2 +1,2 @@\n-{output}\n+{said}\n");
    let metadata = serde_json::json!({ "summary": said, "diff": diff }).to_string();
    let metadata = (said.len().is_multiple_of(2)).then_some(metadata.as_str());
    Turn::begin(TURN, "10:31:00", input)
        .ask()
        .answer(vec![reasoning(said), text(said), call("h1", "shell", &arguments)])
        .require("h1", &serde_json::json!({ "rule": said, "plan": output }).to_string())
        .decide("h1", crate::domain::turn::event::Decision::Allow)
        .result("h1", output, metadata)
        .ask()
        .answer_for(vec![text(output)], said)
        .complete()
}

/// Whether a character steers a terminal, reorders text, or cannot be seen in any company.
fn steers(c: char) -> bool {
    c.is_control()
        || matches!(u32::from(c), 0x61C | 0x200B | 0x200E..=0x200F | 0x2028..=0x202E)
        || matches!(u32::from(c), 0x2060..=0x206F | 0xFEFF | 0xFFF9..=0xFFFB)
}

/// No cell steers the terminal, hides anything, or holds half of a wide character.
fn check_cells(buffer: &Buffer) {
    let area = buffer.area;
    for y in area.top()..area.bottom() {
        let mut x = area.left();
        while x < area.right() {
            let symbol = buffer[(x, y)].symbol();
            assert!(!symbol.contains(steers), "{symbol:?} at {x},{y}");
            let cols = u16::try_from(symbol.width()).unwrap().max(1);
            assert!(x + cols <= area.right(), "{symbol} at {x},{y} is cut");
            for hidden in x + 1..x + cols {
                assert_eq!(buffer[(hidden, y)].symbol(), " ", "behind {symbol} at {x},{y}");
            }
            x += cols;
        }
    }
}

fn check_layout(layout: &Layout, size: Size) {
    let screen = Rect::new(0, 0, size.width, size.height);
    let inside = |rect: Rect| assert_eq!(rect.intersection(screen), rect, "inside of the screen");
    if let Some(area) = &layout.timeline {
        inside(area.rect);
        let mut next = 0;
        for item in &area.items {
            assert_eq!(item.row, next, "items stand one below the other");
            next += item.rows;
        }
        assert!(next <= area.rect.height);
    }
    if let Some(area) = &layout.list {
        inside(area.rect);
        assert!(area.rows.iter().all(|row| row.row < area.rect.height));
    }
    layout.prompt.iter().for_each(|area| inside(area.rect));
    layout.composer.iter().for_each(|area| inside(area.rect));
    layout.overlay.iter().for_each(|area| inside(area.rect));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_frame_is_whole_and_safe_and_the_same_with_an_empty_cache(
        first in size(),
        steps in prop::collection::vec(step(), 1..24),
    ) {
        let mut screen = Screen::new(first);
        for step in steps {
            screen.take(step);
            let size = screen.state.size;
            check_layout(&screen.layout, size);
            let warm = drawn(&screen.state, size, &mut screen.cache);
            check_cells(&warm);
            let cold = drawn(&screen.state, size, &mut scenes::cache());
            prop_assert_eq!(&warm, &cold);
            let caret = screen.layout.drawn.caret;
            let area = Rect::new(0, 0, size.width, size.height);
            prop_assert!(caret.is_none_or(|caret: Position| area.contains(caret)));
        }
    }
}
